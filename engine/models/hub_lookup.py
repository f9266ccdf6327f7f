"""A model of the hub: from what was kept, from the hub, and where the hub fails from what else is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.errors import (
    ConfigUnreadable,
    HubRateLimited,
    HubUnavailable,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
)
from engine.models import catalogue
from engine.models.facts import ModelFacts
from engine.models.hub_breaker import HubBreaker, HubSlow
from engine.models.hub_counts import HubCounts, Outcome
from engine.models.parsing import read_config
from engine.models.reading import facts_of
from engine.models.settings import ModelSettings

if TYPE_CHECKING:
    from engine.models.hub import HubFile
    from engine.models.hub_cache import Kept

OnCall = Callable[[Outcome, float], None]
"""Told of each question over the network: how it ended, and after how many seconds."""

FOREVER = float("inf")


class HubLookup:
    """Looks ids up, one question after the other; safe to share between threads."""

    def __init__(self, settings: ModelSettings, on_call: OnCall | None = None) -> None:
        self.settings = settings
        self.counts = HubCounts()
        self.breaker = HubBreaker(settings.hub_failures, settings.quiet_s)
        self._on_call = on_call

    def status(self) -> dict[str, Any]:
        """Whether the hub is asked, and what became of the questions so far."""
        return {
            "state": "offline" if self.settings.offline else self.breaker.state,
            "left_alone_s": round(self.breaker.left_s, 1),
            "calls": dict(self.counts.calls),
            "answers": dict(self.counts.answers),
        }

    def quiet_s(self, error: ModelError) -> float:
        """How long the same question is not put again after an error, in seconds."""
        if isinstance(error, ModelNotFound | ModelAccessDenied):
            return self.settings.missing_cache_s
        asked = error.retry_after if isinstance(error, HubRateLimited) else None
        return max(self.settings.negative_cache_s, float(asked or 0))

    def look_up(self, model_id: str, revision: str | None) -> tuple[ModelFacts, float]:
        """The facts, and for how many seconds they hold: a commit's for ever.

        Raises:
            ModelError: one of its kinds.
        """
        from engine.models.hub_cache import HubCache, Kept  # 10 ms to import, for ids outside the catalogue

        settings, cache = self.settings, HubCache(self.settings)
        kept = cache.get(model_id, revision)
        if kept is not None and (kept.commit is not None and kept.commit == revision):
            self.counts.answer("disk")
            return self._read(model_id, kept), FOREVER
        if settings.offline:
            return self.without_hub(model_id, revision, _offline(model_id), kept), settings.refresh_s
        if kept is not None and kept.age_s < settings.refresh_s:
            self.counts.answer("disk")
            return self._read(model_id, kept), settings.refresh_s - kept.age_s
        try:
            file = self._fetch(model_id, revision)
        except (HubUnavailable, HubRateLimited) as error:
            return self.without_hub(model_id, revision, error, kept), self.quiet_s(error)
        except ModelAccessDenied as error:
            return self._from_catalogue(model_id, revision, error), settings.refresh_s
        except ModelNotFound as error:
            raise with_near(error, model_id) from None
        facts = self._read(model_id, Kept(data=file.data, commit=file.commit, age_s=0.0))
        cache.put(model_id, revision, file.data, file.commit)
        if file.commit is None or file.commit == revision:
            return facts, FOREVER if file.commit is not None else settings.refresh_s
        cache.put(model_id, file.commit, file.data, file.commit)
        return facts, settings.refresh_s

    def without_hub(
        self, model_id: str, revision: str | None, error: ModelError, kept: Kept | None = None
    ) -> ModelFacts:
        """Facts from what was kept, however old, or from the catalogue; else the error that kept the hub from it.

        Raises:
            ModelError: ``error``, with models of the catalogue that look like the one asked for.
        """
        from engine.models.hub_cache import HubCache, from_hub_library  # as in look_up

        kept = kept or HubCache(self.settings).get(model_id, revision)
        kept = kept or from_hub_library(model_id, revision, self.settings)
        if kept is None:
            return self._from_catalogue(model_id, revision, error)
        self.counts.answer("stale")
        return catalogue.with_notes(self._read(model_id, kept), f"From an earlier answer of the hub: {error.detail}")

    def _from_catalogue(self, model_id: str, revision: str | None, error: ModelError) -> ModelFacts:
        found = catalogue.find(model_id) if revision is None else None
        if found is None:
            raise with_near(error, model_id)
        self.counts.answer("catalogue")
        return catalogue.with_notes(found, error.detail)

    def _fetch(self, model_id: str, revision: str | None) -> HubFile:
        """Ask the hub, unless it failed several times just now."""
        from engine.models.hub import fetch_config  # as in look_up

        try:
            self.breaker.check(model_id)
        except HubUnavailable:
            self.counts.answer("refused")
            raise
        begun = time.monotonic()
        outcome: Outcome = "failed"
        wait_s = 0.0
        healthy = False
        try:
            file = fetch_config(model_id, revision, self.settings)
            outcome, healthy = "found", True
        except HubRateLimited as error:
            wait_s = float(error.retry_after or 0)
            raise
        except HubUnavailable as error:
            outcome = "timeout" if isinstance(error, HubSlow) else "failed"
            raise
        except ModelError as error:
            healthy = True  # it answered, and said no
            outcome = _REFUSALS.get(type(error), "failed")
            raise
        finally:
            if healthy:
                self.breaker.succeeded()
            else:
                self.breaker.failed(wait_s)
            self.counts.call(outcome)
            if self._on_call is not None:
                self._on_call(outcome, time.monotonic() - begun)
        return file

    def _read(self, model_id: str, kept: Kept) -> ModelFacts:
        try:
            config = read_config(kept.data, limit=self.settings.max_config_bytes)
        except ConfigUnreadable as error:
            if not kept.data.lstrip()[:1] == b"{":
                raise HubUnavailable(
                    f"The hub answered with something else than a config.json for {model_id}: {error.detail}",
                    remedy="Check GRAPHGATE_HUB_ENDPOINT and the proxy between, or give the config itself.",
                    field="model.id",
                ) from None
            raise
        return facts_of(config, model_id=model_id, source="hub", revision=kept.commit)


_REFUSALS: dict[type[ModelError], Outcome] = {ModelNotFound: "missing", ModelAccessDenied: "denied"}


def _offline(model_id: str) -> HubUnavailable:
    return HubUnavailable(
        f"{model_id} is not in the packaged catalogue, and the hub is not asked: offline mode is on.",
        remedy="Give the config itself or a local folder, or unset GRAPHGATE_OFFLINE and HF_HUB_OFFLINE.",
        field="model.id",
    )


def with_near(error: ModelError, model_id: str) -> ModelError:
    """The error, naming models of the catalogue that look like the one asked for."""
    near = [name for name in catalogue.near(model_id) if name.lower() != model_id.lower()]
    if near and "The packaged catalogue has" not in error.remedy:
        error.remedy = f"{error.remedy} The packaged catalogue has {', '.join(near)}.".strip()
    return error
