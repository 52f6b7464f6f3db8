"""Reading code for its effect: short everyday texts in Python, JavaScript and Perl, and full-length ones.

The yardstick is what any reader by syntax tree has to pay: parsing alone, with `ast` or with the grammar. A text is
read anew every time, as it is when an agent writes it; the catalogue is loaded before, and readers are imported.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from _timing import interleaved, options, report
from tree_sitter import Language, Parser
from tree_sitter_javascript import language

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.reading import Reading
from safetydrift.formats.catalogue_file import load_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "Reading code for its effect"
PYTHON = """import os
import pandas as pd

df = pd.read_csv('data/results.csv')
summary = df.groupby('team')['score'].mean().sort_values()
print(summary.head())
for name, value in summary.items():
    if value > 10:
        print(f'{name}: {value:.2f}')
summary.to_csv(os.path.join('out', 'summary.csv'))
print(len(df))
"""
JAVASCRIPT = """const fs = require('fs');
const rows = JSON.parse(fs.readFileSync('data/results.json', 'utf8'));
const totals = {};
for (const row of rows) {
  totals[row.team] = (totals[row.team] || 0) + row.score;
}
console.log(`${rows.length} rows`);
fs.writeFileSync('out/totals.json', JSON.stringify(totals, null, 2));
"""
PERL = """use strict;
open(my $in, '<', 'data/results.txt') or die "no results: $!";
my %totals;
while (my $line = <$in>) {
    chomp $line;
    my ($team, $score) = split /,/, $line;
    $totals{$team} += $score;
}
open(my $out, '>', 'out/totals.txt');
print $out "$_ $totals{$_}\\n" for sort keys %totals;
"""
PARSING, GRAMMAR = "ast.parse, Python", "tree-sitter, JavaScript"
LONG = 60


def main() -> None:
    repeats = 20 if options(TITLE).quick else 100
    catalogue, boundary = load_catalogue(), Boundary()
    parser = Parser(Language(language()))

    def reader(name: str, text: str, times: int) -> Callable[[], None]:
        def read() -> None:
            for _ in range(times):
                READERS[name](Reading(catalogue, boundary, READERS), text)

        return read

    def parse() -> None:
        for _ in range(repeats):
            ast.parse(PYTHON)

    def parse_grammar() -> None:
        encoded = JAVASCRIPT.encode()
        for _ in range(repeats):
            parser.parse(encoded)

    calls: dict[str, Callable[[], object]] = {PARSING: parse, GRAMMAR: parse_grammar}
    texts = {"python": PYTHON, "javascript": JAVASCRIPT, "perl": PERL}
    for name, text in texts.items():
        calls[f"{name}, {len(text)} characters"] = reader(name, text, repeats)
    timings = {name: timing.scaled(1 / repeats) for name, timing in interleaved(calls).items()}
    long = {f"{name}, {LONG} times as long": reader(name, text * LONG, 1) for name, text in texts.items()}
    timings |= interleaved(long, 3)
    ratios = {
        f"{name} / parsing alone": (
            timings[f"{name}, {len(texts[name])} characters"].median / base.median,
            "<= 10",
        )
        for name, base in (("python", timings[PARSING]),)
    }
    ratios |= {
        f"{name}, microseconds": (1e6 * timings[f"{name}, {len(text)} characters"].median, "<= 300")
        for name, text in texts.items()
    }
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
