"""One file of one model from the hub: its config.json, at a commit, within a size and a time."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from engine.errors import (
    ConfigTooLarge,
    HubRateLimited,
    HubUnavailable,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
)
from engine.models.hub_breaker import HubSlow, HubUnreachable
from engine.models.parsing import too_large
from engine.models.settings import ModelSettings

if TYPE_CHECKING:
    import ssl

    import httpx

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REDIRECTS = 3
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST_WAIT_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """What the hub answered: the bytes, and the commit that they are of (None where the hub does not say)."""

    data: bytes
    commit: str | None


def fetch_config(model_id: str, revision: str | None, settings: ModelSettings) -> HubFile:
    """The model's config.json from the hub.

    Only the configured endpoint is asked; a redirect that leaves it is an error, so that neither the token nor the
    request goes elsewhere. Nothing over ``settings.max_config_bytes`` is read, whether or not the hub announces the
    size, and after ``settings.timeout_s`` the connection is cut, however slowly it still gives.

    Raises:
        ModelNotFound, ModelAccessDenied, HubRateLimited, HubUnavailable, ConfigTooLarge: as their names say.
    """
    import httpx  # 0.2 s to import, needed only where the hub is asked
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented, but not in __all__

    url = hf_hub_url(model_id, "config.json", revision=revision, endpoint=settings.hub_endpoint)
    headers = build_hf_headers(token=settings.token or False, library_name="graphgate")
    headers["Accept-Encoding"] = "identity"  # the size on the wire is then the size of the file
    deadline = time.monotonic() + settings.timeout_s
    try:
        client = httpx.Client(follow_redirects=False, timeout=httpx.Timeout(settings.timeout_s), verify=_authorities())
    except Exception as error:  # httpx raises various types for a proxy variable that it cannot use
        raise _unreachable(model_id, f"no connection can be set up ({type(error).__name__})", settings) from None
    try:
        with client, _cut_at(deadline, client):
            return _follow(client, url, headers, deadline, model_id, revision, settings)
    except ModelError:
        raise
    except httpx.TimeoutException:
        raise _slow(model_id, settings) from None
    except Exception as error:
        # Beside httpx's own errors, a connection that was cut at the deadline fails in ways that no library promises.
        if time.monotonic() >= deadline:
            raise _slow(model_id, settings) from None
        if isinstance(error, httpx.HTTPError | httpx.InvalidURL | OSError | RuntimeError):
            raise _unreachable(model_id, f"the connection failed ({type(error).__name__})", settings) from None
        raise


def prepare() -> None:
    """Load what asking takes (half a second), so that the first question does not pay for it."""
    from huggingface_hub import hf_hub_url  # as in fetch_config
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # as in fetch_config

    hf_hub_url("organisation/name", "config.json")
    build_hf_headers(token=False, library_name="graphgate")  # finds out versions, once
    _authorities()


@cache
def _authorities() -> ssl.SSLContext:
    """The certificate authorities that are trusted; reading them takes longer than a request."""
    import httpx  # as in fetch_config

    return httpx.create_ssl_context()


@contextlib.contextmanager
def _cut_at(deadline: float, client: httpx.Client) -> Iterator[None]:
    """Close the client's connections at the deadline: a hub that sends a byte a second passes every read timeout."""
    timer = threading.Timer(max(0.0, deadline - time.monotonic()), client.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _follow(
    client: httpx.Client,
    url: str,
    headers: dict[str, str],
    deadline: float,
    model_id: str,
    revision: str | None,
    settings: ModelSettings,
) -> HubFile:
    """Ask, and follow redirects as long as they stay at the hub (a renamed model, the hub's own cache)."""
    commit: str | None = None
    for _ in range(_REDIRECTS + 1):
        with client.stream("GET", url, headers=headers) as response:
            named = response.headers.get("X-Repo-Commit", "")
            commit = commit or (named if _COMMIT.fullmatch(named) else None)
            if response.is_redirect:
                target = urljoin(url, response.headers.get("Location", ""))
                if _origin(target) != _origin(url):
                    raise _unavailable(model_id, "it redirects to another host, which is not followed", settings)
                url = target
                continue
            _check_status(response, model_id, revision, settings)
            data = _body(response, deadline, settings, model_id)
        if commit is None and revision is not None and _COMMIT.fullmatch(revision):
            commit = revision
        return HubFile(data=data, commit=commit)
    raise _unavailable(model_id, "it redirects in a circle", settings)


def _body(response: httpx.Response, deadline: float, settings: ModelSettings, model_id: str) -> bytes:
    limit = settings.max_config_bytes
    if response.headers.get("Content-Encoding", "identity") not in ("", "identity"):
        raise _unavailable(model_id, "it sends a compressed file although none was asked for", settings)
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _named(too_large(int(announced), limit), model_id)
    read = bytearray()
    for chunk in response.iter_raw():
        read += chunk
        if len(read) > limit:
            raise _named(too_large(None, limit), model_id)
        if time.monotonic() >= deadline:
            raise _slow(model_id, settings)
    if time.monotonic() >= deadline:
        raise _slow(model_id, settings)
    return bytes(read)


def _check_status(response: httpx.Response, model_id: str, revision: str | None, settings: ModelSettings) -> None:
    status, code = response.status_code, response.headers.get("X-Error-Code", "")
    if status == 200:
        return
    if status == 404 or code in ("RepoNotFound", "RevisionNotFound", "EntryNotFound"):
        raise not_found(model_id, revision, code)
    if status in (401, 403):
        remedy = (
            "Request access to the model for the account whose token GRAPHGATE_HUB_TOKEN holds."
            if settings.token
            else "Set GRAPHGATE_HUB_TOKEN to a token that may read the model, or give the config itself."
        )
        raise ModelAccessDenied(f"The hub does not give access to {model_id}.", remedy=remedy, field="model.id")
    if status == 429:
        raise _rate_limited(response, model_id)
    raise _unavailable(model_id, f"it answers with status {status}", settings)


def not_found(model_id: str, revision: str | None, code: str = "") -> ModelNotFound:
    """The error for a model, a revision or a file that the hub does not have."""
    if code == "EntryNotFound":
        return ModelNotFound(
            f"{model_id} has no config.json on the hub.",
            remedy="Give the id of a model in the transformers layout, or the config itself.",
            field="model.id",
        )
    if revision is not None and code == "RevisionNotFound":
        return ModelNotFound(
            f"{model_id} has no revision {revision!r} on the hub.",
            remedy="Give a branch, tag or commit that the repository has, or leave the revision out.",
            field="model.revision",
        )
    at = f" at revision {revision!r}" if revision else ""
    return ModelNotFound(
        f"The hub has no model {model_id}{at}, or does not show it without a token.",
        remedy="Check the spelling; for a private model set GRAPHGATE_HUB_TOKEN.",
        field="model.id",
    )


def _rate_limited(response: httpx.Response, model_id: str) -> HubRateLimited:
    asked = response.headers.get("Retry-After", "").strip()
    wait: int | None = None
    if asked.isdecimal() and len(asked) < 9:
        wait = int(asked)
    elif asked:
        from email.utils import parsedate_to_datetime  # the header's other form, a date

        with contextlib.suppress(ValueError, OverflowError):
            wait = max(0, round(parsedate_to_datetime(asked).timestamp() - time.time()))
    wait = None if wait is None else min(wait, _LONGEST_WAIT_S)
    said = f" for {wait} seconds" if wait is not None else ""
    return HubRateLimited(
        f"The hub asks to wait{said} before {model_id} is asked for again.",
        remedy="Ask again later, set GRAPHGATE_HUB_TOKEN for a higher limit, or give the config itself.",
        field="model.id",
        retry_after=wait,
    )


def _unavailable(model_id: str, why: str, settings: ModelSettings) -> HubUnavailable:
    return HubUnavailable(
        f"The hub at {_shown(settings.hub_endpoint)} cannot be asked for {model_id}: {why}.",
        remedy="Give the config itself or a local folder, or ask again when the hub answers.",
        field="model.id",
    )


def _unreachable(model_id: str, why: str, settings: ModelSettings) -> HubUnreachable:
    error = _unavailable(model_id, why, settings)
    return HubUnreachable(error.detail, remedy=error.remedy, field=error.field)


def _slow(model_id: str, settings: ModelSettings) -> HubSlow:
    error = _unavailable(model_id, f"it did not answer within {settings.timeout_s:g} seconds", settings)
    return HubSlow(error.detail, remedy=error.remedy, field=error.field)


def _named(error: ConfigTooLarge, model_id: str) -> ConfigTooLarge:
    return ConfigTooLarge(f"{model_id}: {error.detail}", remedy=error.remedy, field="model.id")


def _shown(endpoint: str) -> str:
    """The endpoint without user name and password."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
