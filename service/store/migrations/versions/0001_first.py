"""Validations, captures and what happened in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "validations",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("release", sa.String(32), nullable=False),
        sa.Column("gpu", sa.String(64), nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("validations_verdict", "validations", ["verdict", "id"])
    op.create_table(
        "captures",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("validation_id", sa.String(40), sa.ForeignKey("validations.id"), nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("started_at", sa.String(32)),
        sa.Column("finished_at", sa.String(32)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("worker", sa.String(80)),
        sa.Column("lease_until", sa.Float),
        sa.Column("reason", sa.Text),
        sa.Column("report", sa.Text),
    )
    op.create_index("captures_state", "captures", ["state", "id"])
    op.create_table(
        "capture_events",
        sa.Column("capture_id", sa.String(40), sa.ForeignKey("captures.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("data", sa.Text, nullable=False),
    )


def downgrade() -> None:
    for table in ("capture_events", "captures", "validations"):
        op.drop_table(table)
