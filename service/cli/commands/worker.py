"""The capture worker as its own process, over the database of the API (GRAPHGATE_DATABASE_URL, or the same
GRAPHGATE_DATA).

With GRAPHGATE_BROKER_URL it takes what is sent to the queue of its GPU's kind; without, it asks the database, and the
API is to be started with GRAPHGATE_EMBEDDED_WORKER=off. Start as many workers as captures may run at the same time.
"""

from __future__ import annotations

import argparse

from service.cli.problems import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has no arguments: settings are environment variables."""


def run(asked: argparse.Namespace) -> int:  # noqa: ARG001 - a command's signature
    """Take captures until SIGTERM or SIGINT."""
    from service.jobs.process import run_worker  # the database, for this command alone
    from service.settings import SettingsError, load_settings

    try:
        run_worker(load_settings())
    except SettingsError as error:
        raise UsageError(str(error), remedy="Set the environment variable so, or unset it.") from None
    return 0
