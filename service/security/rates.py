"""How often: windows that slide, counted in this process, or in Redis for all processes together."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from functools import lru_cache

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import StorageError

from service.settings import SettingsError

_REDIS_S = 0.5
_AGAIN_S = 5.0
_log = logging.getLogger("graphgate.limits")


@dataclass(frozen=True, slots=True)
class Window:
    """What a limit says: ``quota`` requests in ``window_s`` seconds, ``remaining`` of them, one more in ``reset_s``."""

    allowed: bool
    quota: int
    window_s: int
    remaining: int
    reset_s: int

    @property
    def headers(self) -> dict[str, str]:
        """RateLimit headers as of draft-ietf-httpapi-ratelimit-headers."""
        return {
            "RateLimit-Policy": f'"requests";q={self.quota};w={self.window_s}',
            "RateLimit": f'"requests";r={self.remaining};t={self.reset_s}',
        }


@lru_cache(maxsize=1024)
def rate_of(text: str) -> RateLimitItem:
    """A rate as ``10/second``, ``600/minute`` or ``1000 per 2 hours``.

    Raises:
        ValueError: it is none.
    """
    item = parse(text)
    if item.amount < 1:
        raise ValueError(f"{text} lets nothing through")
    return item


class Rates:
    """Counts by name. While Redis does not answer, each process counts for itself, and says so in its log."""

    def __init__(self, url: str | None = None) -> None:
        self._own = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = SlidingWindowCounterRateLimiter(_redis(url)) if url else None
        self._again = 0.0

    async def take(self, rate: str, name: str, *, cost: int = 1) -> Window:
        """Count one request of that name, where there is room; ``cost`` 0 only looks."""
        item = rate_of(rate)
        shared = self._shared
        if shared is not None and time.monotonic() >= self._again:
            try:
                return await _take(shared, item, name, cost)
            except (StorageError, OSError):
                self._again = time.monotonic() + _AGAIN_S
                _log.warning("the limits' Redis does not answer: this process counts for itself", exc_info=True)
        return await _take(self._own, item, name, cost)


async def _take(limiter: SlidingWindowCounterRateLimiter, item: RateLimitItem, name: str, cost: int) -> Window:
    allowed = await (limiter.hit(item, name, cost=cost) if cost else limiter.test(item, name))
    stats = await limiter.get_window_stats(item, name)
    reset_s = max(1, math.ceil(stats.reset_time - time.time()))
    return Window(allowed, item.amount, item.get_expiry(), stats.remaining if allowed else 0, reset_s)


def _redis(url: str) -> Storage:
    try:
        from limits.aio.storage import RedisStorage  # needs the extra "fleet"

        return RedisStorage(
            f"async+{url}",
            wrap_exceptions=True,
            implementation="redispy",
            key_prefix="graphgate",
            socket_timeout=_REDIS_S,
            socket_connect_timeout=_REDIS_S,
        )
    except ImportError:
        raise SettingsError(
            "GRAPHGATE_LIMITS_URL needs the redis client: install graphgate[fleet], or unset it."
        ) from None
