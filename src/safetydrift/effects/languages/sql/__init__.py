"""The reader of SQL: statements of any dialect, and the commands of the clients that statements are typed into."""

from safetydrift.effects.languages.sql.reader import read_sql

__all__ = ["read_sql"]
