"""The first tables, and the index of words that searches go by, as each database writes them."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    connection = op.get_bind()
    file = Path(__file__).with_name(f"0001_first.{connection.dialect.name}.sql")
    for statement in file.read_text("utf-8").split("\n--\n"):
        connection.exec_driver_sql(statement)
