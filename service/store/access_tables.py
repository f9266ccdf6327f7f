"""The tables of access control: keys, what they used of a GPU, and who changed what."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, String, Table, Text

from service.store.tables import metadata

api_keys = Table(
    "api_keys",
    metadata,
    Column("prefix", String(16), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("name", String(64), nullable=False),
    Column("scopes", String(64), nullable=False),
    Column("rate", String(40)),
    Column("gpu_seconds", Integer),
    Column("created_at", String(32), nullable=False),
    Column("expires_at", String(32)),
    Column("revoked_at", String(32)),
    Column("used_at", String(32)),
)
"""``digest`` is the SHA-256 of the whole key; ``scopes`` are comma-separated; ``used_at`` is right to a minute."""

gpu_days = Table(
    "gpu_days",
    metadata,
    Column("subject", String(160), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("seconds", Float, nullable=False),
)
"""GPU seconds of one identity on one day (UTC): what is reserved, and what was really used of settled reservations."""

gpu_reservations = Table(
    "gpu_reservations",
    metadata,
    Column("capture_id", String(40), primary_key=True),
    Column("subject", String(160), nullable=False),
    Column("day", String(10), nullable=False),
    Column("reserved_at", String(32), nullable=False),
    Column("reserved", Float, nullable=False),
    Column("used", Float),
    Index("gpu_reservations_subject", "subject", "day"),
)
"""One accepted capture's part of the day's seconds; ``used`` once it has ended."""

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("at", String(32), nullable=False),
    Column("actor", String(160), nullable=False),
    Column("action", String(40), nullable=False),
    Column("object", String(160)),
    Column("outcome", String(16), nullable=False),
    Column("request_id", String(128)),
    Column("address", String(64)),
    Column("detail", Text),
    Index("audit_log_action", "action", "id"),
)
"""Who did what, newest ids last. ``detail`` says why, in words; it never holds a credential."""
