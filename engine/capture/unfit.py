"""Why a machine cannot run a job at all. No torch here."""

from __future__ import annotations


class Unfit(Exception):
    """This machine cannot run the job; ``type`` names the reason in the report."""

    def __init__(self, type_: str, message: str) -> None:
        super().__init__(message)
        self.type = type_
