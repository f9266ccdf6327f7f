"""The engine releases that are covered; a newer one is answered as the newest known."""

from __future__ import annotations

import argparse

from engine.sglang.releases import known_releases
from service.cli.tables import add_format, document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    add_format(parser)


def run(asked: argparse.Namespace) -> int:
    """Print the list."""
    releases = known_releases()
    if asked.format == "json":
        print(document({"engine": "sglang", "releases": list(releases), "newest": releases[-1]}))
        return 0
    print("\n".join(f"sglang {release}" for release in releases))
    return 0
