"""Queries and changes of rows, by their tree."""

from __future__ import annotations

from itertools import islice

from safetydrift.effects.languages.sql.grammar import expressions
from safetydrift.effects.languages.sql.statement import Statement, completes
from safetydrift.effects.languages.sql.transfers import imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from safetydrift.effects.reading import Reading

MAX_NODES = 20_000
"""Larger trees are looked at so far."""
MAX_CONDITION = 200
"""Conditions of more nodes are not checked for being always true."""
_CHANGES = frozenset(("Insert", "Update", "Delete", "Merge", "Into", "Create"))
_SUMS = (
    "Count",
    "CountIf",
    "Sum",
    "Avg",
    "Stddev",
    "Variance",
    "StddevPop",
    "StddevSamp",
    "ApproxDistinct",
    "Exists",
    "Literal",
)


def read_tree(reading: Reading, tree: Any) -> None:
    """Add what a parsed statement reads and changes."""
    nodes = list(islice(tree.walk(), MAX_NODES))
    parts = Parts(reading, tree, nodes, expressions())
    reading.act("looks", "a query")
    if len(nodes) == MAX_NODES:
        reading.act("reads", "a query of many parts")
    for node in nodes:
        reader = _READERS.get(type(node).__name__)
        if reader is not None:
            reader(parts, node)


class Parts:
    """What the readers of single nodes share.

    Attributes
    ----------
    reading
        What is added to.
    kinds
        The kinds of nodes.
    local
        Names that the statement itself gives to queries.
    targets
        The tables that it changes, by identity.
    sums
        Whether only counts and sums come out of it.
    """

    __slots__ = ("kinds", "local", "reading", "statement", "sums", "targets")

    def __init__(self, reading: Reading, tree: Any, nodes: list[Any], kinds: Any) -> None:
        self.reading, self.kinds = reading, kinds
        self.statement = Statement(reading, ())
        named = [node for node in nodes if isinstance(node, kinds.CTE) and node.alias]
        self.local = frozenset(node.alias.lower() for node in named)
        changes = [node for node in nodes if type(node).__name__ in _CHANGES]
        self.targets = frozenset(id(target) for node in changes for target in _targets(node, kinds))
        self.sums = _sums_alone(tree, kinds)


def _targets(node: Any, kinds: Any) -> list[Any]:
    """Return the tables that a node changes."""
    target = node.this
    if isinstance(target, kinds.Schema):
        target = target.this
    return [target, *(node.args.get("tables") or [])] if isinstance(target, kinds.Table) else []


def _sums_alone(tree: Any, kinds: Any) -> bool:
    if not isinstance(tree, kinds.Select) or tree.args.get("group") or tree.args.get("into"):
        return False
    columns = [part.this if isinstance(part, kinds.Alias) else part for part in tree.expressions]
    return bool(columns) and all(type(part).__name__ in _SUMS for part in columns)


def _table(parts: Parts, node: Any) -> None:
    if id(node) in parts.targets:
        return
    if not isinstance(node.this, parts.kinds.Identifier):
        return  # a function in the place of a table, which is read by its name
    name = _name(node)
    if not node.args.get("db") and name.lower() in parts.local:
        return
    if "/" in name or "\\" in name or name.lower().endswith((".csv", ".parquet", ".json", ".tsv", ".xlsx")):
        imports(parts.reading, name)
        return
    entry = parts.reading.catalogue.tables.table(name)
    if parts.sums and (entry is None or not _hides_nothing(parts, entry)):
        parts.reading.act("reads", f"counts or sums {name[:60]}")
    else:
        parts.statement.table(name)


def _hides_nothing(parts: Parts, entry: Any) -> bool:
    return parts.reading.catalogue.scales.level(entry.ranks, "data") == "none"


def _name(node: Any) -> str:
    parts = [node.args.get("catalog"), node.args.get("db"), node.this]
    return ".".join(str(part.this) for part in parts if part is not None and isinstance(part.this, str))


def _column(parts: Parts, node: Any) -> None:
    if isinstance(node.parent, parts.kinds.Count):
        return
    name = node.name
    if name:
        parts.statement.column(name)


def _schema(parts: Parts, node: Any) -> None:
    """Read the columns that rows are added to."""
    for part in node.expressions:
        entry = parts.statement.column(part.name) if isinstance(part, parts.kinds.Identifier) else None
        if entry is not None and entry.added:
            completes(parts.reading, part.name, entry, entry.added)


def _delete(parts: Parts, node: Any) -> None:
    names = [_name(target) for target in _targets(node, parts.kinds)]
    shown = ", ".join(names)[:60]
    if _bounded(node, parts.kinds):
        parts.statement.irreversible(f"deletes some rows of {shown}")
    else:
        parts.reading.act("deletes", f"deletes all rows of {shown}")
    for name in names:
        parts.statement.removed(name)


def _update(parts: Parts, node: Any) -> None:
    if isinstance(node.parent, parts.kinds.When | parts.kinds.OnConflict):
        _assigned(parts, node)
        return
    names = [_name(target) for target in _targets(node, parts.kinds)]
    shown = ", ".join(names)[:60]
    if _bounded(node, parts.kinds):
        parts.reading.act("writes", f"changes some rows of {shown}")
    else:
        parts.reading.act("deletes", f"overwrites all rows of {shown}")
    for name in names:
        parts.statement.changed(name)
    _assigned(parts, node)


def _assigned(parts: Parts, node: Any) -> None:
    for part in node.expressions:
        target = part.this if isinstance(part, parts.kinds.EQ) else None
        name = target.name if isinstance(target, parts.kinds.Column) else ""
        entry = parts.reading.catalogue.tables.column(name) if name else None
        if entry is not None and entry.changed:
            completes(parts.reading, name, entry, entry.changed)


def _insert(parts: Parts, node: Any) -> None:
    names = [_name(target) for target in _targets(node, parts.kinds)]
    parts.reading.act("writes", f"adds rows to {', '.join(names)[:60]}")
    if node.args.get("overwrite"):
        parts.statement.irreversible("replaces the rows there")
    for name in names:
        parts.statement.added(name)


def _merge(parts: Parts, node: Any) -> None:
    names = [_name(target) for target in _targets(node, parts.kinds)]
    parts.reading.act("writes", f"merges rows into {', '.join(names)[:60]}")
    for name in names:
        parts.statement.added(name)
        parts.statement.changed(name)


def _into(parts: Parts, node: Any) -> None:
    parts.reading.act("writes", f"creates {', '.join(map(_name, _targets(node, parts.kinds)))[:60]}")


# -- conditions ------------------------------------------------------------------------------------------


def _bounded(node: Any, kinds: Any) -> bool:
    """Return whether a change is bounded to some rows: by a condition, a limit, or a join."""
    if node.args.get("limit") is not None or node.args.get("using"):
        return True
    if any(target.args.get("joins") for target in node.find_all(kinds.Table)):
        return True
    where = node.args.get("where")
    if where is None:
        return bool(isinstance(node, kinds.Update) and node.args.get("from_"))
    return not _always(where.this, kinds)


def _always(node: Any, kinds: Any, depth: int = 0) -> bool:
    """Return whether a condition holds for every row, or surely does for nearly all."""
    node = node.unnest()
    if depth == 0 and sum(1 for _ in node.walk()) > MAX_CONDITION:
        return False
    if isinstance(node, kinds.And):
        return _always(node.this, kinds, depth + 1) and _always(node.expression, kinds, depth + 1)
    if isinstance(node, kinds.Or):
        return _always(node.this, kinds, depth + 1) or _always(node.expression, kinds, depth + 1)
    if node.find(kinds.Column) is None:
        return not _never(node, kinds)
    return _trivial(node, kinds)


def _never(node: Any, kinds: Any) -> bool:
    """Return whether a condition without columns is plainly false; any other is taken for true."""
    if isinstance(node, kinds.Boolean):
        return not node.this
    if isinstance(node, kinds.Literal):
        return str(node.this) == "0"
    sides = [node.args.get("this"), node.args.get("expression")]
    if isinstance(node, kinds.EQ) and all(isinstance(side, kinds.Literal) for side in sides):
        return str(sides[0].this) != str(sides[1].this)
    return False


def _trivial(node: Any, kinds: Any) -> bool:
    """Return whether a condition on columns asks for next to nothing: ``x = x``, ``x IS NOT NULL``, ``x LIKE '%'``."""
    if isinstance(node, kinds.EQ | kinds.GTE | kinds.LTE) and node.this == node.expression:
        return True
    if isinstance(node, kinds.Like | kinds.ILike):
        return isinstance(node.expression, kinds.Literal) and not str(node.expression.this).strip("%")
    if isinstance(node, kinds.Not):
        inner = node.this.unnest()
        return isinstance(inner, kinds.Is) and isinstance(inner.expression, kinds.Null)
    if isinstance(node, kinds.GT | kinds.GTE) and isinstance(node.expression, kinds.Literal | kinds.Neg):
        return isinstance(node.expression, kinds.Neg) or str(node.expression.this) == "0"
    return isinstance(node, kinds.NEQ) and str(node.expression.name) in {"", "0", "-1"}


_READERS = {
    "Table": _table,
    "Column": _column,
    "Schema": _schema,
    "Delete": _delete,
    "Update": _update,
    "Insert": _insert,
    "Merge": _merge,
    "Into": _into,
}
