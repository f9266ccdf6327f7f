"""Alembic's entry: migrations run over the connection that :mod:`service.store.migrate` gives."""

from __future__ import annotations

from alembic import context

from service.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
connection.commit()
