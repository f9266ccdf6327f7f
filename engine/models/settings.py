"""Where models are looked up, and the limits of each look-up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine.errors import QuestionError
from engine.models.parsing import MAX_CONFIG_BYTES

DEFAULT_ENDPOINT = "https://huggingface.co"
Prefer = Literal["catalogue", "hub"]
_LONGEST_QUIET_S = 15.0
_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model reference becomes a config.json. Times are in seconds, sizes in bytes.

    ``token`` is sent to ``hub_endpoint`` and nowhere else. ``timeout_s`` bounds one whole look-up, from the connection
    to the last byte. ``cache_dir`` keeps what the hub answered (None: nothing is kept on disk); what it keeps of a
    branch is asked again after ``refresh_s``, of a commit never. ``hub_cache`` is the read-only cache that
    huggingface_hub itself fills, read when the hub cannot be asked. ``negative_cache_s`` is how long a failed look-up
    is not repeated, ``missing_cache_s`` how long one that the hub answered with "no such model" or "no access" is not.
    After ``hub_failures`` in a row the hub is not asked at all for ``hub_quiet_s`` (None: as ``negative_cache_s``, at
    most 15). ``allowed_roots`` are the folders below which local paths may lie. ``prefer`` says who answers for
    an id of the catalogue when no revision is asked for.

    Proxies are those of the environment (``HTTPS_PROXY``, ``NO_PROXY`` ...).
    """

    hub_endpoint: str = DEFAULT_ENDPOINT
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 10.0
    offline: bool = False
    cache_dir: Path | None = None
    hub_cache: Path | None = None
    allowed_roots: tuple[Path, ...] = ()
    max_config_bytes: int = MAX_CONFIG_BYTES
    negative_cache_s: float = 30.0
    missing_cache_s: float = 60.0
    hub_failures: int = 5
    hub_quiet_s: float | None = None
    refresh_s: float = 3600.0
    prefer: Prefer = "catalogue"

    @property
    def quiet_s(self) -> float:
        """How long a hub that fails again and again is left alone, at first."""
        return min(self.negative_cache_s, _LONGEST_QUIET_S) if self.hub_quiet_s is None else self.hub_quiet_s

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ModelSettings:
        """The settings that the environment variables give; GRAPHGATE_ names win over the hub's own.

        Raises:
            QuestionError: a variable that cannot be understood.
        """

        def first(*names: str) -> str | None:
            return next((value for name in names if (value := environment.get(name, "").strip())), None)

        home = first("HOME", "USERPROFILE")
        hf_home = first("HF_HOME") or (f"{home}/.cache/huggingface" if home else None)
        hub_cache = first("HF_HUB_CACHE") or (f"{hf_home}/hub" if hf_home else None)
        cache = first("GRAPHGATE_MODEL_CACHE")
        data = first("GRAPHGATE_DATA")
        roots = first("GRAPHGATE_MODEL_ROOTS") or ""
        endpoint = first("GRAPHGATE_HUB_ENDPOINT", "HF_ENDPOINT") or DEFAULT_ENDPOINT
        if not endpoint.startswith(("https://", "http://")) or "@" in endpoint:
            # A password in the address would stand in every log of a request.
            raise _unusable("GRAPHGATE_HUB_ENDPOINT", "an http:// or https:// address without user name and password")
        quiet = first("GRAPHGATE_HUB_QUIET")
        prefer = first("GRAPHGATE_MODEL_PREFER") or "catalogue"
        if prefer not in ("catalogue", "hub"):
            raise _unusable("GRAPHGATE_MODEL_PREFER", "catalogue or hub")
        return cls(
            hub_endpoint=endpoint.rstrip("/"),
            token=first("GRAPHGATE_HUB_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
            timeout_s=_seconds("GRAPHGATE_HUB_TIMEOUT", first("GRAPHGATE_HUB_TIMEOUT"), 10.0),
            offline=(first("GRAPHGATE_OFFLINE", "HF_HUB_OFFLINE") or "").lower() in _TRUE,
            cache_dir=Path(cache) if cache else (Path(data) / "models" if data else None),
            hub_cache=Path(hub_cache) if hub_cache else None,
            allowed_roots=tuple(Path(root) for root in roots.split(os.pathsep) if root.strip()),
            max_config_bytes=int(
                _seconds("GRAPHGATE_MAX_CONFIG_BYTES", first("GRAPHGATE_MAX_CONFIG_BYTES"), MAX_CONFIG_BYTES)
            ),
            negative_cache_s=_seconds("GRAPHGATE_NEGATIVE_CACHE", first("GRAPHGATE_NEGATIVE_CACHE"), 30.0),
            missing_cache_s=_seconds("GRAPHGATE_MISSING_CACHE", first("GRAPHGATE_MISSING_CACHE"), 60.0),
            hub_failures=max(1, int(_seconds("GRAPHGATE_HUB_FAILURES", first("GRAPHGATE_HUB_FAILURES"), 5))),
            hub_quiet_s=_seconds("GRAPHGATE_HUB_QUIET", quiet, 0.0) if quiet else None,
            refresh_s=_seconds("GRAPHGATE_MODEL_REFRESH", first("GRAPHGATE_MODEL_REFRESH"), 3600.0),
            prefer="hub" if prefer == "hub" else "catalogue",
        )


def _seconds(name: str, value: str | None, default: float) -> float:
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        raise _unusable(name, "a number") from None
    if not 0 <= number < float("inf"):
        raise _unusable(name, "a number from 0")
    return number


def _unusable(name: str, wanted: str) -> QuestionError:
    return QuestionError(f"The environment variable {name} must be {wanted}.", remedy="Set it so, or unset it.")
