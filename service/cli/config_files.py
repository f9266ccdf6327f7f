"""``--config FILE`` among the engine's arguments: the operator's file is read here and merged as the engine does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.errors import InvalidLaunch

OPTION = "--config"
MOST_BYTES = 1_000_000


def with_config_file(words: Sequence[str], release: str) -> list[str]:
    """The arguments with the options of the file that they name before their own.

    Raises:
        InvalidLaunch: the file cannot be read, or the engine would refuse it; in its words.
        UnknownRelease: the release is not covered.
    """
    if OPTION not in words:
        return list(words)
    from engine.sglang.config_file import SUFFIXES, file_named, merged  # only where a file is named
    from engine.sglang.releases import release_named
    from engine.sglang.resolution import Refusal

    try:
        path = Path(file_named(words) or "")
        if path.suffix.lower() not in SUFFIXES:
            raise Refusal("ValueError", f"Config file must be YAML format, got: {path.suffix}")
        return merged(words, _content(path), release_named(release))
    except Refusal as refusal:
        raise InvalidLaunch(
            f"SGLang refuses the configuration file: {refusal.message}", remedy="Mend the file.", field="arguments"
        ) from None


def _content(path: Path) -> Any:
    import yaml  # a tenth of the time that a check may take; only where a file is named

    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidLaunch(
            f"{str(path)[:200]} cannot be read: {reason}.", remedy=f"Check the path after {OPTION}.", field="arguments"
        ) from None
    if len(data) > MOST_BYTES:
        raise InvalidLaunch(
            f"{str(path)[:200]} is longer than {MOST_BYTES:,} bytes.", remedy="Name a shorter file.", field="arguments"
        )
    try:
        return yaml.safe_load(data.decode())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidLaunch(
            f"{str(path)[:200]} is not YAML: {first}.", remedy="Mend the file.", field="arguments"
        ) from None
