"""The HTTP API under /v1 with a capture worker beside it; SQLite below GRAPHGATE_DATA (./var).

Nothing else is needed on the loopback interface. On another --host callers must say who they are: make a key first
(graphgate keys create). Settings are environment variables named GRAPHGATE_..., see docs/operations.md.
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

from service.cli.problems import UsageError

LARGEST_PORT = 65_535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=_port, default=8000, help="port to listen on (default %(default)s)")
    parser.add_argument("--tls-cert", metavar="FILE", help="serve HTTPS with this certificate and its chain (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="the certificate's key (PEM); both are read again on renewal")


def run(asked: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    _check_address(asked.host, asked.port)
    from service.security.mode import AccessError
    from service.server import serve  # the web framework, for this command alone
    from service.settings import SettingsError, load_settings
    from service.tls import TlsError

    try:
        given = {name: Path(file) for name in ("tls_cert", "tls_key") if (file := getattr(asked, name)) is not None}
        return serve(asked.host, asked.port, load_settings().model_copy(update=given))
    except AccessError as error:
        raise UsageError(error.detail, remedy=error.remedy) from None
    except TlsError as error:
        raise UsageError(str(error), remedy="Name the PEM files of a certificate and its key.") from None
    except SettingsError as error:
        raise UsageError(str(error), remedy="Set the environment variable so, or unset it.") from None


def _check_address(host: str, port: int) -> None:
    """Say in words what would otherwise be a line in the server's log."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{host[:80]} port {port} cannot be listened on: {reason}.",
            remedy="Choose another --port or --host; --port 0 takes any free port.",
        ) from None


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= LARGEST_PORT:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port from 0 to {LARGEST_PORT}")
