"""A server that asks who calls, and keys for it, as `graphgate keys` makes them."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from api_tests.cli.command import Done, environment
from api_tests.planted import plant
from api_tests.server import RunningServer, running_server
from service.cli import main

SCOPES = ("validate", "capture", "worker", "admin")


@dataclass(frozen=True, slots=True)
class Guarded:
    """The server, and the keys by name."""

    server: RunningServer
    keys: dict[str, str]

    def client(self, name: str | None = None) -> httpx.Client:
        """A client with the key of that name, or with none."""
        client = self.server.client()
        if name is not None:
            client.headers["Authorization"] = f"Bearer {self.keys[name]}"
        return client


def make_key(data: Path, name: str, *words: str) -> str:
    """A new key, from the command line; it may be in no log of the whole run."""
    done = keys(data, "create", "--name", name, *words)
    assert done.code == 0, done.err
    return plant(done.out.strip())


def keys(data: Path, *words: str) -> Done:
    """`graphgate keys`, run in this process: a start of the interpreter for each key would be most of the time."""
    out, err = io.StringIO(), io.StringIO()
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(environment(GRAPHGATE_DATA=str(data)))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["keys", *words])
    finally:
        os.environ.clear()
        os.environ.update(before)
    return Done(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def guarded_server(data: Path, keys: Mapping[str, tuple[str, ...]], **settings: str) -> Iterator[Guarded]:
    """A server over ``data`` with access control; ``keys``: the words that make each, by name."""
    made = {name: make_key(data, name, *words) for name, words in keys.items()}
    with running_server(data, **{"GRAPHGATE_ACCESS": "required", **settings}) as server:
        yield Guarded(server, made)
