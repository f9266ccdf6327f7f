"""One round of what the API does all the time: captures of silent workers go back into the queue, or are given up, and
what the broker lost is sent again. For the hour in which no API process runs; it does nothing while one does.
"""

from __future__ import annotations

import argparse

from service.cli.problems import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has no arguments: settings are environment variables."""


def run(asked: argparse.Namespace) -> int:  # noqa: ARG001 - a command's signature
    """Print what was done; 1 where the broker does not answer."""
    from service.fleet.broker import BrokerDown, open_broker  # the database and the broker, for this command alone
    from service.fleet.reconciler import Reconciler
    from service.settings import SettingsError, load_settings
    from service.store.opening import open_database

    try:
        settings = load_settings()
        broker = open_broker(settings)
        database = open_database(settings, connections=2)
    except SettingsError as error:
        raise UsageError(str(error), remedy="Set the environment variable so, or unset it.") from None
    reconciler = Reconciler(database, settings, broker)
    try:
        print(reconciler.once())
    except BrokerDown as error:
        print(f"The broker does not answer ({error}); captures of silent workers were taken back.")
        return 1
    finally:
        reconciler.stop()
        database.close()
    return 0
