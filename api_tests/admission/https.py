"""The service over HTTPS, started as people start it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509

from api_tests.material import ROOT
from api_tests.server import free_port


@contextlib.contextmanager
def serving(folder: Path, *words: str, **settings: str) -> Iterator[tuple[int, Path]]:
    """``graphgate serve`` with these words and settings; its port and its log. Its end must be an orderly one."""
    port, log = free_port(), folder / "server.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHGATE_", "HF_"))}
    given = {"GRAPHGATE_DATA": str(folder / "data"), "GRAPHGATE_OFFLINE": "1", "GRAPHGATE_EMBEDDED_WORKER": "off"}
    given |= {"GRAPHGATE_TLS_RELOAD_S": "0.1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "service", "serve", "--port", str(port), *words],
            cwd=ROOT,
            env=kept | given | settings,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                break
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield port, log
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()


def trusting(authority: Path) -> ssl.SSLContext:
    """A caller's trust in this authority alone."""
    return ssl.create_default_context(cafile=str(authority))


def serial(port: int, trust: ssl.SSLContext) -> int:
    """The serial number of the certificate that a new connection is shown."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        trust.wrap_socket(plain, server_hostname="graphgate.graphgate.svc") as wrapped,
    ):
        shown = wrapped.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number
