"""Workflow commands of GitHub Actions: one annotation a finding.

The escapes are those of the runner's own toolkit: ``%``, line ends, and in properties ``:`` and ``,`` too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.cli.answers import Answer
from service.cli.formats.results import Level, results_of

_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render(answers: Sequence[Answer], *, verbose: bool) -> str:  # noqa: ARG001 - an annotation has no longer form
    """One line a finding; a launch without any has a notice with its verdict."""
    return "\n".join(line for answer in answers for line in _lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    results = results_of(answer)
    for result in results:
        yield command(_COMMANDS[result.level], result.title, result.text, answer.file)
    if not results and answer.verdict is not None:
        text = f"{answer.title}: {answer.verdict.summary}"
        yield command("notice", f"graphgate {answer.verdict.verdict}", text, answer.file)


def command(name: str, title: str, message: str, file: str | None = None) -> str:
    """One workflow command.

    >>> command("error", "GG101: a, b", "50% of\\nit")
    '::error title=GG101%3A a%2C b::50%25 of%0Ait'
    """
    properties = [*([f"file={_property(file)}"] if file else []), f"title={_property(title)}"]
    return f"::{name} {','.join(properties)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
