"""Validations are found by model, release, GPU and rule; captures by their validation and their end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BATCH = 1000


def upgrade() -> None:
    rules = op.create_table(
        "validation_rules",
        sa.Column("rule", sa.String(16), primary_key=True),
        sa.Column("validation_id", sa.String(40), primary_key=True),
        sqlite_with_rowid=False,
    )
    for column in ("model", "release", "gpu"):
        op.create_index(f"validations_{column}", "validations", [column, "id"])
    op.create_index("captures_validation", "captures", ["validation_id"])
    op.create_index("captures_finished", "captures", ["finished_at"])
    _fill(rules)


def _fill(rules: sa.Table) -> None:
    """The rules of the validations that there are, from their comma-separated text."""
    connection = op.get_bind()
    validations = sa.table("validations", sa.column("id"), sa.column("rules"))
    query = sa.select(validations.c.id, validations.c.rules).where(validations.c.rules != "")
    after = ""
    while rows := connection.execute(query.where(validations.c.id > after).order_by("id").limit(_BATCH)).all():
        pairs = [{"rule": rule, "validation_id": row.id} for row in rows for rule in row.rules.split(",")]
        connection.execute(sa.insert(rules), pairs)
        after = rows[-1].id


def downgrade() -> None:
    op.drop_index("captures_finished", "captures")
    op.drop_index("captures_validation", "captures")
    for column in ("gpu", "release", "model"):
        op.drop_index(f"validations_{column}", "validations")
    op.drop_table("validation_rules")
