"""What a check answers: one launch with its verdict, or with the reason why it could not be looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import QuestionError
from engine.launch import Launch
from engine.verdict import Verdict

EXIT_OK, EXIT_NO, EXIT_UNUSABLE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One launch and what is said of it: ``verdict``, or ``error`` where it could not be looked at.

    ``file`` and ``owner``, ``place`` say where it was found, for launches out of manifests; ``place`` is a path of keys
    inside the document.
    """

    launch: Launch | None = None
    verdict: Verdict | None = None
    error: QuestionError | None = None
    file: str | None = None
    owner: str | None = None
    place: str | None = None

    @property
    def title(self) -> str:
        """The launch in a few words."""
        return self.owner or (self.launch.model.label if self.launch else None) or "launch"


def exit_code(answers: Iterable[Answer], fail_on: str) -> int:
    """2 where one could not be looked at, 1 where one is rejected (``fail_on`` "adjusted": or adjusted), else 0."""
    bad = {"rejected", "adjusted"} if fail_on == "adjusted" else {"rejected"}
    code = EXIT_OK
    for answer in answers:
        if answer.verdict is None:
            return EXIT_UNUSABLE
        if answer.verdict.verdict in bad:
            code = EXIT_NO
    return code
