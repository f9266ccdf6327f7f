"""What is at hand, because something like it was examined before."""

from __future__ import annotations

from engine.launch import Launch

_KEPT = 4096


class Warm:
    """Which models were examined on which releases: what is derived from both is at hand from then on."""

    def __init__(self) -> None:
        self._seen: set[tuple[str | None, str | None, str]] = set()

    def knows(self, launch: Launch) -> bool:
        """Whether such a launch was examined before."""
        return self._key(launch) in self._seen

    def learn(self, launch: Launch) -> None:
        """Such a launch was examined."""
        if len(self._seen) >= _KEPT:
            self._seen.clear()
        self._seen.add(self._key(launch))

    @staticmethod
    def _key(launch: Launch) -> tuple[str | None, str | None, str]:
        return launch.model.id, launch.model.revision, launch.release
