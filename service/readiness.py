"""What must work for the service to be ready, each asked for real."""

from __future__ import annotations

import logging

import anyio
import anyio.to_thread
from sqlalchemy.exc import SQLAlchemyError

from service.wiring import Services

_WAIT_S = 3.0
_HUB = {"closed": "ok", "half-open": "failing"}
_log = logging.getLogger("graphgate.readiness")


async def checks(wired: Services) -> dict[str, str]:
    """Each part by name: "ok", or what is wrong with it."""
    found = {"database": await _database(wired)}
    if wired.worker is not None:
        found["worker"] = wired.worker.trouble or "ok"
    if wired.stopping.is_set():
        found["service"] = "stopping"
    return found


def hub(wired: Services) -> str:
    """Whether the model hub is asked. It is no part of being ready: known models are answered without it."""
    status = wired.resolver.hub_status()
    state = status["state"]
    return f"left alone for {status['left_alone_s']:.0f} s" if state == "open" else str(_HUB.get(state, state))


async def _database(wired: Services) -> str:
    try:
        with anyio.fail_after(_WAIT_S):
            await anyio.to_thread.run_sync(wired.database.ask, abandon_on_cancel=True, limiter=wired.probing)
    except TimeoutError:
        return f"no answer within {_WAIT_S:g} s"
    except SQLAlchemyError as error:
        _log.warning("the database cannot be used", exc_info=True)
        return wired.database.told(error)
    return "ok"
