"""Runs the migrations on the connection that `safetydrift.service.database.engine.migrate` hands over."""

from __future__ import annotations

from alembic import context

from safetydrift.service.database.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
