"""The tables. Times are RFC 3339 in UTC with milliseconds, so that their order as text is their order in time."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

metadata = MetaData()

validations = Table(
    "validations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("created_at", String(32), nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("summary", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("release", String(32), nullable=False),
    Column("gpu", String(64), nullable=False),
    Column("rules", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("validations_verdict", "verdict", "id"),
)
"""``body`` is the whole answer as it was sent, JSON; ``rules`` the ids of the findings' rules, comma-separated."""

captures = Table(
    "captures",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("created_at", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("validation_id", String(40), ForeignKey("validations.id"), nullable=False),
    Column("options", Text, nullable=False),
    Column("job", Text, nullable=False),
    Column("started_at", String(32)),
    Column("finished_at", String(32)),
    Column("attempts", Integer, nullable=False, default=0),
    Column("cancel_requested", Boolean, nullable=False, default=False),
    Column("worker", String(80)),
    Column("lease_until", Float),
    Column("reason", Text),
    Column("report", Text),
    Index("captures_state", "state", "id"),
)
"""The row is the truth of a capture. ``lease_until`` is in seconds of the epoch: until then ``worker`` has it."""

capture_events = Table(
    "capture_events",
    metadata,
    Column("capture_id", String(40), ForeignKey("captures.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("at", String(32), nullable=False),
    Column("name", String(80), nullable=False),
    Column("data", Text, nullable=False),
)
