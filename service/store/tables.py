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
    Column("created_by", String(160)),
    Index("validations_verdict", "verdict", "id"),
    Index("validations_model", "model", "id"),
    Index("validations_release", "release", "id"),
    Index("validations_gpu", "gpu", "id"),
    Index("validations_created_by", "created_by", "id"),
)
"""``body`` is the whole answer as it was sent, JSON; ``rules`` the ids of the findings' rules, comma-separated."""

validation_rules = Table(
    "validation_rules",
    metadata,
    Column("rule", String(16), primary_key=True),
    Column("validation_id", String(40), primary_key=True),
    sqlite_with_rowid=False,
)
"""Each rule with the validations that it had findings in. A validation's own ``rules`` say which rows are its."""

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
    Column("needs", String(8), nullable=False, default="any"),
    Column("needs_gpu", String(64)),
    Column("needs_memory_mib", Integer),
    Column("fence", Integer, nullable=False, default=0),
    Column("sent_at", Float),
    Column("waiting_for", String(80)),
    Column("created_by", String(160)),
    Index("captures_state", "state", "id"),
    Index("captures_validation", "validation_id"),
    Index("captures_finished", "finished_at"),
    Index("captures_created_by", "created_by", "id"),
)
"""The row is the truth of a capture. ``lease_until`` is in seconds of the epoch: until then ``worker`` has it.

``fence`` counts the claims, and never goes back: only the newest claim may change the row. ``sent_at`` (seconds of the
epoch) is when a broker was last given the capture since it began to wait; ``waiting_for`` the kind of worker that it
needs while none is there.
"""

capture_events = Table(
    "capture_events",
    metadata,
    Column("capture_id", String(40), ForeignKey("captures.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("at", String(32), nullable=False),
    Column("name", String(80), nullable=False),
    Column("data", Text, nullable=False),
)

workers = Table(
    "workers",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("gpu", String(120)),
    Column("memory_mib", Integer),
    Column("driver", String(64)),
    Column("torch", String(64)),
    Column("version", String(32), nullable=False),
    Column("started_at", String(32), nullable=False),
    Column("beat_at", Float, nullable=False),
    Column("capture_id", String(40)),
)
"""What each worker said of itself; ``beat_at`` (seconds of the epoch) is its last sign of life."""

leases = Table(
    "leases",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("holder", String(80), nullable=False),
    Column("until", Float, nullable=False),
)
"""Work that one process at a time may do: ``holder`` until ``until`` (seconds of the epoch)."""
