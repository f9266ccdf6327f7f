"""A rule as a page: markdown for ``docs/rules/``, text for a terminal. The words are the guard's own docstring."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.guards.base import Rule
from service.cli.words import wrapped


def page_name(rule: Rule) -> str:
    """The page's file name."""
    return f"{rule.id}-{rule.slug}.md"


def page(rule: Rule) -> str:
    """The page in markdown, with a line end at its end."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in _facts(rule))
    evidence = "\n".join(f"- {e.kind}: {_linked(e.reference)}: {e.says}" for e in rule.evidence)
    return (
        f"# {rule.id} {rule.slug}\n\n{rule.documentation.strip()}\n\n## Facts\n| | |\n|---|---|\n{facts}\n\n"
        f"## Evidence\n{evidence}\n"
    )


def index(rules: Sequence[Rule]) -> str:
    """The page that lists all rules, in markdown."""
    rows = "\n".join(
        f"| [{rule.id}]({page_name(rule)}) | {rule.slug} | {rule.severity} | {'-'.join(_bounds(rule))} | {rule.title} |"
        for rule in rules
    )
    return f"# Rules\n\n| rule | slug | severity | SGLang | what |\n|---|---|---|---|---|\n{rows}\n"


def plain(rule: Rule) -> str:
    """The page for a terminal."""
    lines = [f"{rule.id} {rule.slug}: {rule.title}", ""]
    for paragraph in re.split(r"\n\s*\n", rule.documentation.strip()):
        head, _, rest = paragraph.partition("\n")
        if head.startswith("## "):
            lines.append(head.removeprefix("## ").upper())
            lines += wrapped(" ".join(rest.split()), indent="  ") if rest.strip() else []
        else:
            lines += wrapped(" ".join(paragraph.split()), indent="  ")
        lines.append("")
    lines.append("FACTS")
    lines += [line for name, value in _facts(rule) for line in wrapped(f"{name}: {value}", indent="  ", hanging="    ")]
    lines += ["", "EVIDENCE"]
    lines += [
        line
        for e in rule.evidence
        for line in wrapped(f"{e.kind}: {e.reference}: {e.says}", indent="  ", hanging="    ")
    ]
    return "\n".join(lines)


def _facts(rule: Rule) -> list[tuple[str, str]]:
    return [
        ("severity", rule.severity),
        ("confidence", rule.confidence),
        ("phase", rule.phase or "both"),
        ("backend", rule.backend or "any"),
        ("SGLang releases", " to ".join(_bounds(rule))),
        ("since graphgate", rule.since),
        ("covers", ", ".join(rule.covers)),
        *((f"parameter {name}", f"{value:g}") for name, value in rule.parameters.items()),
    ]


def _bounds(rule: Rule) -> tuple[str, str]:
    first, last = (".".join(map(str, bound)) for bound in rule.releases)
    return first, last


def _linked(reference: str) -> str:
    return f"<{reference}>" if reference.startswith(("https://", "http://")) else f"`{reference}`"
