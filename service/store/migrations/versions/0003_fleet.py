"""What a capture needs and where it was sent; the workers; leases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("captures") as captures:
        captures.add_column(sa.Column("needs", sa.String(8), nullable=False, server_default="any"))
        captures.add_column(sa.Column("needs_gpu", sa.String(64)))
        captures.add_column(sa.Column("needs_memory_mib", sa.Integer))
        captures.add_column(sa.Column("fence", sa.Integer, nullable=False, server_default="0"))
        captures.add_column(sa.Column("sent_at", sa.Float))
        captures.add_column(sa.Column("waiting_for", sa.String(80)))
    op.create_table(
        "workers",
        sa.Column("id", sa.String(80), primary_key=True),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("gpu", sa.String(120)),
        sa.Column("memory_mib", sa.Integer),
        sa.Column("driver", sa.String(64)),
        sa.Column("torch", sa.String(64)),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("started_at", sa.String(32), nullable=False),
        sa.Column("beat_at", sa.Float, nullable=False),
        sa.Column("capture_id", sa.String(40)),
    )
    leases = op.create_table(
        "leases",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("holder", sa.String(80), nullable=False),
        sa.Column("until", sa.Float, nullable=False),
    )
    op.bulk_insert(leases, [{"name": "reconciler", "holder": "", "until": 0.0}])


def downgrade() -> None:
    op.drop_table("leases")
    op.drop_table("workers")
    with op.batch_alter_table("captures") as captures:
        for column in ("needs", "needs_gpu", "needs_memory_mib", "fence", "sent_at", "waiting_for"):
            captures.drop_column(column)
