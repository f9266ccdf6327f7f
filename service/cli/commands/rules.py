"""The guards: what each looks for, why it is bad, what to do, since when and on whose evidence.

graphgate rules            the list
graphgate rules GG101      one rule's page
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

from engine.guards import all_rules
from engine.guards.base import Rule
from service.cli.problems import UsageError
from service.cli.rule_pages import page, plain
from service.cli.tables import document, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("id", metavar="ID", nargs="?", help="a rule's id or slug")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default %(default)s")


def run(asked: argparse.Namespace) -> int:
    """Print the list, or one rule."""
    rules = all_rules() if asked.id is None else (_named(asked.id, all_rules()),)
    if asked.format == "json":
        content = {"rules": [rule.to_dict() for rule in rules]} if asked.id is None else {"rule": rules[0].to_dict()}
        print(document(content))
    elif asked.format == "markdown":
        print("\n".join(page(rule) for rule in rules), end="")
    elif asked.id is None:
        rows = [(rule.id, rule.severity, "-".join(_bounds(rule)), f"{rule.slug}: {rule.title}") for rule in rules]
        print(table(("rule", "severity", "sglang", "what"), rows))
    else:
        print(plain(rules[0]))
    return 0


def _bounds(rule: Rule) -> tuple[str, str]:
    first, last = (".".join(map(str, bound)) for bound in rule.releases)
    return first, last


def _named(name: str, rules: Sequence[Rule]) -> Rule:
    for rule in rules:
        if name.lower() in (rule.id.lower(), rule.slug):
            return rule
    names = [*(rule.id for rule in rules), *(rule.slug for rule in rules)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"There is no rule {name[:60]!r}.", remedy=f"{hint}graphgate rules lists them.")
