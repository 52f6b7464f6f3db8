"""Reading statements of SQL, by length and by form; the labeler keeps the effects of texts it has met."""

from __future__ import annotations

from functools import partial

from _timing import interleaved, options, report

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.languages.sql import read_sql
from safetydrift.effects.reading import Reading
from safetydrift.formats.catalogue_file import load_catalogue

TITLE = "Reading SQL"
CATALOGUE = load_catalogue()
BOUNDARY = Boundary()
QUERY = (
    "SELECT c.name, c.email, SUM(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id "
    "WHERE o.placed_at > '2025-01-01' AND c.country = 'NL' GROUP BY c.name, c.email ORDER BY spent DESC LIMIT 10"
)
TEXTS = {
    "a query of 200 characters": QUERY,
    "a query of 30 characters": "SELECT name FROM t WHERE id = 3",
    "DROP TABLE": "DROP TABLE IF EXISTS customers",
    "an update of a row": "UPDATE users SET name = 'Ann' WHERE id = 3",
    "a query in the way of Transact-SQL": "SELECT TOP 5 [name] FROM [dbo].[Users] WHERE [id] > 3",
    "a statement that is not closed": QUERY + " PLEASE NOW AND ( THEN",
    "an insert of 1000 rows": ", ".join(["INSERT INTO t VALUES (0, 'a', 2.5)", *["(1, 'a', 2.5)"] * 999]),
}


def read(text: str) -> None:
    read_sql(Reading(CATALOGUE, BOUNDARY, READERS), text)


def main() -> None:
    rounds = 20 if options(TITLE).quick else 200
    timings = interleaved({name: partial(read, text) for name, text in TEXTS.items()}, rounds)
    query = timings["a query of 200 characters"].median * 1e6
    report(TITLE, timings, {"microseconds of a query of 200 characters": (query, "<= 1000")})


if __name__ == "__main__":
    main()
