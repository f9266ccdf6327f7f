"""API keys, GPU seconds, the audit log; who made a validation or a capture."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("prefix", sa.String(16), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("rate", sa.String(40)),
        sa.Column("gpu_seconds", sa.Integer),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("expires_at", sa.String(32)),
        sa.Column("revoked_at", sa.String(32)),
        sa.Column("used_at", sa.String(32)),
    )
    op.create_table(
        "gpu_days",
        sa.Column("subject", sa.String(160), primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("seconds", sa.Float, nullable=False),
    )
    op.create_table(
        "gpu_reservations",
        sa.Column("capture_id", sa.String(40), primary_key=True),
        sa.Column("subject", sa.String(160), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("reserved_at", sa.String(32), nullable=False),
        sa.Column("reserved", sa.Float, nullable=False),
        sa.Column("used", sa.Float),
    )
    op.create_index("gpu_reservations_subject", "gpu_reservations", ["subject", "day"])
    op.create_table(
        "audit_log",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("actor", sa.String(160), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("object", sa.String(160)),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("request_id", sa.String(128)),
        sa.Column("address", sa.String(64)),
        sa.Column("detail", sa.Text),
    )
    op.create_index("audit_log_action", "audit_log", ["action", "id"])
    for table in ("validations", "captures"):
        op.add_column(table, sa.Column("created_by", sa.String(160)))
        op.create_index(f"{table}_created_by", table, ["created_by", "id"])


def downgrade() -> None:
    for table in ("validations", "captures"):
        op.drop_index(f"{table}_created_by", table)
        with op.batch_alter_table(table) as changed:
            changed.drop_column("created_by")
    for table in ("audit_log", "gpu_reservations", "gpu_days", "api_keys"):
        op.drop_table(table)
