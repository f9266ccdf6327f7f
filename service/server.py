"""The process that serves: uvicorn, told to end open streams before it waits for connections to close."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from types import FrameType

import uvicorn

from engine.errors import GraphgateError
from engine.modes import gate_at
from service import logs
from service.app import create_app
from service.security.mode import must_identify
from service.settings import Settings, load_settings
from service.store.keys import Keys
from service.store.opening import open_database
from service.tls import Tls, open_tls
from service.wiring import Services

_STREAMS_END_S = 10
_IDLE_S = 75
"""Longer than load balancers keep an idle connection: who closes second never cuts into a request."""


class _Server(uvicorn.Server):
    """On the first signal the services stop: not ready, no event streams, no new capture begun. Requests are answered
    for the settings' ``drain_s`` more, while load balancers turn away; then nothing is listened to. Renews TLS."""

    def __init__(self, config: uvicorn.Config, tls: Tls | None) -> None:
        super().__init__(config)
        self._tls = tls

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        app = self.config.app
        wired = getattr(getattr(app, "state", None), "services", None)
        loop = getattr(self, "loop", None)
        if not isinstance(wired, Services) or not isinstance(loop, asyncio.AbstractEventLoop):
            super().handle_exit(sig, frame)
            return
        first = not wired.stopping.is_set()
        loop.call_soon_threadsafe(wired.stop)
        if first and wired.settings.drain_s > 0:
            loop.call_soon_threadsafe(loop.call_later, wired.settings.drain_s, super().handle_exit, sig, frame)
        else:  # at once, and so does a second signal
            super().handle_exit(sig, frame)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        renewal = None if self._tls is None else asyncio.create_task(self._tls.renew())
        try:
            await super().serve(sockets)
        finally:
            if renewal is not None:
                renewal.cancel()


def serve(host: str = "127.0.0.1", port: int = 8000, settings: Settings | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code, 0 after an orderly end.

    Raises:
        SettingsError: an environment variable that cannot be understood.
        QuestionError: one of those for model look-ups, or a policy file that cannot be used.
        StoreError: the database cannot be opened.
        TlsError: the certificate cannot be used.
        AccessError: others reach the host, and nobody could say who they are.
    """
    settings = settings or load_settings()
    settings.models()
    gate_at("http", settings.policy)
    tls = open_tls(settings)
    database = open_database(settings, connections=2)
    guarded = must_identify(settings, host, has_keys=Keys(database).any_good())
    database.close()
    logs.set_up(settings.log_level)
    config = uvicorn.Config(
        create_app(settings, guarded=guarded),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_STREAMS_END_S,
        lifespan="on",
        ssl_context_factory=None if tls is None else tls.made,
    )
    server = _Server(config, tls)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _nothing)  # uvicorn raises the signal again after an orderly end: that is no failure
    server.run()
    return 0 if server.started else 3


def _nothing(sig: int, frame: FrameType | None) -> None:
    """A signal that has been obeyed already."""


def main() -> int:
    """``python -m service.server HOST PORT``."""
    host, port = sys.argv[1:3]
    try:
        return serve(host, int(port))
    except GraphgateError as error:
        print(f"graphgate serve: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
