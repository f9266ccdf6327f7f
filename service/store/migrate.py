"""Bring the database to the form that this version needs; one process at a time."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from service.store.database import Database

_SCRIPTS = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Run the migrations that are missing. Others that start at the same time wait until it is done."""
    config = _config()
    with database.migrating() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def newest_form() -> str:
    """The name of the newest migration."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise RuntimeError("no migrations are installed")
    return head


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
