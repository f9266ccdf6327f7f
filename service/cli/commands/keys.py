"""API keys, kept in the service's database (the same GRAPHGATE_DATA or GRAPHGATE_DATABASE_URL).

create prints the new key, once: only its SHA-256 is kept. Keys of one NAME are one owner: to replace a key, create
another of the same name, then revoke the old one. A revoked key stops working within five seconds.
"""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from service.cli.problems import UsageError
from service.cli.tables import add_format, document, table

if TYPE_CHECKING:
    from service.store.database import Database
    from service.store.keys import KeyRow

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    commands = parser.add_subparsers(dest="what", metavar="create|list|revoke", required=True)
    create = commands.add_parser("create", help="make a key and print it, once", allow_abbrev=False)
    create.add_argument("--name", required=True, type=_name, help="who will use it; the owner of what it makes")
    create.add_argument(
        "--scope", required=True, action="append", choices=("validate", "capture", "worker", "admin"), help="repeatable"
    )
    create.add_argument(
        "--expires", type=_expiry, metavar="90d", help="how long it is good (h, d, w); for ever if not given"
    )
    create.add_argument("--rate", type=_rate, metavar="10/second", help="requests; GRAPHGATE_RATE if not given")
    create.add_argument(
        "--gpu-seconds", type=_gpu_seconds, metavar="3600/day", help="of captures; GRAPHGATE_GPU_SECONDS if not given"
    )
    add_format(create)
    add_format(commands.add_parser("list", help="every key, without its secret", allow_abbrev=False))
    revoke = commands.add_parser("revoke", help="end a key", allow_abbrev=False)
    revoke.add_argument("prefix", metavar="PREFIX", help="as in the list, or the whole key")


def run(asked: argparse.Namespace) -> int:
    """Do what was asked."""
    from service.settings import SettingsError, load_settings  # the database, for this command alone
    from service.store.opening import open_database

    try:
        database = open_database(load_settings(), connections=1)
    except SettingsError as error:
        raise UsageError(str(error), remedy="Use the settings that the service has.") from None
    try:
        return {"create": _create, "list": _list, "revoke": _revoke}[asked.what](asked, database)
    finally:
        database.close()


def _create(asked: argparse.Namespace, database: Database) -> int:
    from service.security.keys import make_key
    from service.security.trail import tell
    from service.store.audit import AuditEntry
    from service.store.database import now
    from service.store.keys import KeyRow, Keys

    made = make_key()
    row = KeyRow(
        prefix=made.prefix,
        digest=made.digest,
        name=asked.name,
        scopes=tuple(dict.fromkeys(asked.scope)),
        rate=asked.rate,
        gpu_seconds=asked.gpu_seconds,
        created_at=now(),
        expires_at=asked.expires,
    )
    entry = AuditEntry(actor=_actor(), action="key.created", object=f"key:{made.prefix}", detail=_short(row))
    Keys(database).add(row, entry)
    tell(entry)
    if asked.format == "json":
        print(document({"key": made.text, **_shown(row)}))
        return 0
    print(made.text)
    print(f"  {_short(row)}\n  It is shown this once; `graphgate keys revoke {made.prefix}` ends it.", file=sys.stderr)
    return 0


def _list(asked: argparse.Namespace, database: Database) -> int:
    from service.store.keys import Keys

    rows = Keys(database).all()
    if asked.format == "json":
        print(document({"keys": [_shown(row) for row in rows]}))
        return 0
    head = ("prefix", "name", "scopes", "rate", "GPU s/day", "created", "last used", "state")
    print(table(head, [_cells(row) for row in rows]))
    return 0


def _revoke(asked: argparse.Namespace, database: Database) -> int:
    from service.security.keys import prefix_of
    from service.security.trail import tell
    from service.store.audit import AuditEntry
    from service.store.keys import Keys

    prefix = prefix_of(asked.prefix) or asked.prefix.removeprefix("key:")
    entry = AuditEntry(actor=_actor(), action="key.revoked", object=f"key:{prefix[:16]}")
    before = Keys(database).revoke(prefix, entry)
    if before is None:
        raise UsageError(f"No key has the prefix {prefix[:16]!r}.", remedy="`graphgate keys list` shows them.")
    if before.revoked_at is not None:
        print(f"{prefix} ({before.name}) was revoked at {before.revoked_at} already.")
        return 0
    tell(entry)
    print(f"{prefix} ({before.name}) is revoked; no process takes it five seconds from now.")
    return 0


def _actor() -> str:
    """Who sits at this command line, as far as the machine knows."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's numbered user has no name
        return f"cli:{os.getuid()}"


def _state(row: KeyRow) -> str:
    from service.store.database import now

    return row.ended(now()) or "good"


def _shown(row: KeyRow) -> dict[str, object]:
    hidden = {"digest"}
    return {name: getattr(row, name) for name in row.__slots__ if name not in hidden} | {"state": _state(row)}


def _cells(row: KeyRow) -> tuple[str, ...]:
    state = _state(row)
    if state == "good" and row.expires_at:
        state = f"until {row.expires_at[:10]}"
    quota = "-" if row.gpu_seconds is None else str(row.gpu_seconds)
    used = (row.used_at or "never")[:16].replace("T", " ")
    return (row.prefix, row.name, ",".join(row.scopes), row.rate or "-", quota, row.created_at[:10], used, state)


def _short(row: KeyRow) -> str:
    parts = [f"{row.name}: {', '.join(row.scopes)}"]
    parts += [f"until {row.expires_at}"] if row.expires_at else []
    parts += [row.rate] if row.rate else []
    parts += [f"{row.gpu_seconds} GPU seconds a day"] if row.gpu_seconds is not None else []
    return "; ".join(parts)


def _name(text: str) -> str:
    if _NAME.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(f"{text[:80]!r} is no name: letters, digits and ._@- only, at most 64")


def _expiry(text: str) -> str:
    found = re.fullmatch(r"([1-9][0-9]{0,3})([hdw])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time such as 12h, 90d or 4w")
    at = datetime.now(UTC) + timedelta(**{_UNITS[found[2]]: int(found[1])})
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rate(text: str) -> str:
    from service.security.rates import rate_of

    try:
        rate_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a rate such as 10/second or 600/minute") from None
    return text


def _gpu_seconds(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,8})/day", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds a day such as 3600/day")
    return int(found[1])
