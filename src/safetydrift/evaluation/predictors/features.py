"""What is known of a run at a point, and of a call about to be made, as columns of numbers.

At point k nothing but the task, what kind of run it is, and calls 1 to k with their results is used; for a proposal
the proposed call is added, and not what came of it. Everything is computed for all points at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.evaluation.predictors.walks import digits_of, flat, join, since, so_far, walks
from safetydrift.states.dimensions import Accumulation
from safetydrift.states.task_words import WORD_BINS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import FloatArray, IntArray
    from safetydrift.states.space import StateSpace

LATEST_TOOLS = 3
"""How many of the latest calls count by their tool."""
MOST_TOOLS = 200
"""Tools told apart, the most frequent of the training runs."""
_NO_CALL, _OTHER = 0, 1


@dataclass(frozen=True, slots=True)
class Table:
    """Features of points or of proposals, one row each.

    Parameters
    ----------
    numbers : (n, numbers) array
        Counts, and numbers of calls; not negative.
    codes : (n, codes) array
        Levels and names as numbers from 0.
    sizes
        Number of values of each code.
    named
        The codes whose numbers are names, without an order.
    texts : (n, texts) array
        Sets of words: of the task, and of what results said so far as if they gave instructions.
    words
        The bins of each set.
    """

    numbers: FloatArray = field(repr=False)
    codes: IntArray = field(repr=False)
    sizes: tuple[int, ...]
    named: tuple[int, ...]
    texts: IntArray = field(repr=False)
    words: tuple[tuple[int, ...], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def dense(self) -> FloatArray:
        """Return numbers and codes side by side, shape (n, numbers + codes)."""
        return np.hstack([self.numbers, self.codes.astype(np.float64)])

    def sparse(self) -> Any:
        """Return a sparse matrix: each code and word a column of its own, counts as logarithms.

        The shape is (n, numbers + sum of sizes + texts * `WORD_BINS`).
        """
        from scipy import sparse  # noqa: PLC0415  # of the extra

        n, starts = len(self), np.cumsum([0, *self.sizes[:-1]])
        columns = (self.codes + starts).ravel()
        rows_end = np.arange(n + 1) * len(self.sizes)
        indicators = sparse.csr_matrix(
            (np.ones(len(columns), dtype=np.float32), columns, rows_end), shape=(n, sum(self.sizes))
        )
        counts = sparse.csr_matrix(np.log1p(self.numbers).astype(np.float32))
        words = self._words()
        return sparse.hstack([counts, indicators, *(words[text] for text in self.texts.T)], format="csr")

    def distinct(self) -> tuple[Table, IntArray]:
        """Return the rows that differ, and which of them each row is, shape (n,).

        Many runs begin alike, so that there are several times fewer.
        """
        whole = np.hstack([part.astype(np.int32) for part in (self.numbers, self.codes, self.texts)])
        rows = np.ascontiguousarray(whole).view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))
        _, first, inverse = np.unique(rows.ravel(), return_index=True, return_inverse=True)
        return self.take(first), inverse

    def take(self, rows: IntArray) -> Table:
        """Return some of the rows."""
        return Table(
            self.numbers[rows], self.codes[rows], self.sizes, self.named, self.texts[rows], self.words
        )

    def _words(self) -> Any:
        """Return each set of words as a row of length one, shape (sets, `WORD_BINS`)."""
        from scipy import sparse  # noqa: PLC0415  # of the extra

        sizes = np.array([len(words) for words in self.words], dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        bins = flat(self.words, int(ends[-1]))
        weights = np.repeat(1.0 / np.sqrt(np.maximum(sizes, 1)), sizes).astype(np.float32)
        return sparse.csr_matrix((weights, bins, ends), shape=(len(sizes), WORD_BINS))


@dataclass(frozen=True, slots=True)
class Features:
    """The features of runs of one space, with the names that training knew.

    Parameters
    ----------
    space
        The space of the runs.
    tools, kinds_of_run
        The tools and the (source, category) pairs told apart; all others count as one.
    with_kind
        Whether source and category are features at all.
    """

    space: StateSpace
    tools: tuple[str, ...]
    kinds_of_run: tuple[tuple[str, str], ...]
    with_kind: bool = True

    @classmethod
    def of(cls, cases: CaseSet, space: StateSpace, *, with_kind: bool = True) -> Features:
        """Return the features with the names of training cases; only calls before their end count."""
        used: Counter[str] = Counter()
        for case in cases.cases:
            used.update(case.run.tools[: case.n_proposals])
        tools = sorted(used, key=lambda tool: (-used[tool], tool))[:MOST_TOOLS]
        return cls(space, tuple(tools), tuple(sorted({case.category for case in cases.cases})), with_kind)

    def points(self, cases: CaseSet) -> Table:
        """Return the features of every point."""
        return _Builder(self, cases).points()

    def proposals(self, cases: CaseSet) -> Table:
        """Return the features of every proposed call: those of the point it is proposed at, and the call's own."""
        return _Builder(self, cases).proposals()


class _Builder:
    """Computes the columns of one set of cases."""

    def __init__(self, features: Features, cases: CaseSet) -> None:
        self.features, self.cases, self.space = features, cases, features.space
        self.walk = walks(cases)
        self.digits = digits_of(self.space)
        self.sizes = [len(dimension.levels) for dimension in self.space.dimensions]
        self.risk = np.array(self.space.risk_of, dtype=np.int64)

    def points(self) -> Table:
        numbers = np.stack(list(self._numbers()), axis=1).astype(np.float64)
        return self._table(numbers, list(self._codes()), self._texts[0])

    def proposals(self) -> Table:
        at, points = self.walk.point, self.points()
        kinds = _flags(self._kinds[0])
        numbers = np.hstack([points.numbers[at], kinds])
        after = join(self.space, self.walk.state[at], self.walk.proposed)
        own = [
            *((self.digits[self.walk.proposed, place], size, False) for place, size in enumerate(self.sizes)),
            *((self.digits[after, place], size, False) for place, size in enumerate(self.sizes)),
            (self.risk[after], len(self.space.risks), False),
            (self._tools[0], len(self.features.tools) + 2, True),
        ]
        before = [
            (points.codes[at, place], size, place in points.named) for place, size in enumerate(points.sizes)
        ]
        return self._table(numbers, [*before, *own], points.texts[at])

    def _table(
        self, numbers: FloatArray, codes: Sequence[tuple[IntArray, int, bool]], texts: IntArray
    ) -> Table:
        return Table(
            numbers,
            np.stack([code for code, _, _ in codes], axis=1),
            tuple(size for _, size, _ in codes),
            tuple(place for place, (_, _, named) in enumerate(codes) if named),
            texts,
            self._texts[1],
        )

    def _numbers(self) -> Iterator[IntArray]:
        """Yield counts: of calls since something happened, and of calls so far by level and by kind of violation."""
        state, effect = self.walk.state, self.walk.effect
        before = np.append(state[:1], state[:-1])
        yield self.cases.step_of_point
        yield since(self.cases, state != before)
        raised = np.zeros(len(state), dtype=np.bool_)
        for place, dimension in enumerate(self.space.dimensions):
            if dimension.accumulation is Accumulation.HIGHEST:
                raised |= self.digits[state, place] > self.digits[before, place]
        yield since(self.cases, raised)
        instructed = np.array([bool(words) for words in self._instructions], dtype=np.bool_)
        yield so_far(self.cases, instructed)
        yield since(self.cases, instructed)
        called = effect >= 0
        for place, size in enumerate(self.sizes):
            for level in range(1, size):
                yield so_far(self.cases, called & (self.digits[effect, place] == level))
        latest = _flags(self._kinds[1])
        for kind in range(len(KINDS)):
            yield latest[:, kind]
            yield so_far(self.cases, latest[:, kind] > 0)

    def _codes(self) -> Iterator[tuple[IntArray, int, bool]]:
        """Yield columns, the number of their values, and whether these are names."""
        state, effect = self.walk.state, self.walk.effect
        for place, size in enumerate(self.sizes):
            yield self.digits[state, place], size, False
            yield np.where(effect >= 0, self.digits[effect, place] + 1, 0), size + 1, False
        yield self.risk[state], len(self.space.risks), False
        latest, step = self._tools[1], self.cases.step_of_point
        for back in range(LATEST_TOOLS):
            earlier = np.concatenate([np.zeros(back, dtype=np.int64), latest])[: len(latest)]
            yield np.where(step > back, earlier, _NO_CALL), len(self.features.tools) + 2, True
        if self.features.with_kind:
            number = {kind: place for place, kind in enumerate(self.features.kinds_of_run, 1)}
            of_run = np.array([number.get(case.category, 0) for case in self.cases.cases], dtype=np.int64)
            yield of_run[self.cases.run_of_point], len(number) + 1, True

    @cached_property
    def _tools(self) -> tuple[IntArray, IntArray]:
        """The tool of each proposed call, and of the latest call at each point."""
        number = {tool: place for place, tool in enumerate(self.features.tools, 2)}
        names = [case.run.tools or ("",) * case.run.n_steps for case in self.cases.cases]
        return self._per_call([[number.get(name, _OTHER) for name in run] for run in names])

    @cached_property
    def _kinds(self) -> tuple[IntArray, IntArray]:
        """The kinds of violation of each proposed call, and of the latest call at each point, as bits."""
        bit = {kind: 1 << place for place, kind in enumerate(KINDS)}
        return self._per_call(
            [
                [sum(bit.get(kind, 0) for kind in move.kinds) for move in case.run.moves]
                for case in self.cases.cases
            ]
        )

    @cached_property
    def _instructions(self) -> list[tuple[int, ...]]:
        """The words of instructions in the result of the latest call, at each point."""
        return list(
            chain.from_iterable(
                ((), *[move.injected for move in case.run.moves[: case.n_points - 1]])
                for case in self.cases.cases
            )
        )

    @cached_property
    def _texts(self) -> tuple[IntArray, tuple[tuple[int, ...], ...]]:
        """The words of the task and of the instructions so far at each point, as numbers of sets, and the sets."""
        number: dict[tuple[int, ...], int] = {(): 0}
        task = [number.setdefault(case.run.words, len(number)) for case in self.cases.cases]
        so_far_heard: list[int] = []
        heard: tuple[int, ...] = ()
        for step, words in zip(self.cases.step_of_point.tolist(), self._instructions, strict=True):
            if step == 0:
                heard = ()
            if words:
                heard = tuple(sorted({*heard, *words}))
            so_far_heard.append(number.setdefault(heard, len(number)))
        of_run = np.array(task, dtype=np.int64)
        texts = np.stack([of_run[self.cases.run_of_point], np.array(so_far_heard, dtype=np.int64)], axis=1)
        return texts, tuple(number)

    def _per_call(self, values: list[list[int]]) -> tuple[IntArray, IntArray]:
        """Return values of calls by proposal, and by point that of the latest call, 0 before the first."""
        cases = self.cases
        pairs = list(zip(cases.cases, values, strict=True))
        proposed = flat((part[: case.n_proposals] for case, part in pairs), int(cases.first_proposal[-1]))
        latest = flat(((0, *part[: case.n_points - 1]) for case, part in pairs), int(cases.first_point[-1]))
        return proposed, latest


def _flags(bits: IntArray) -> IntArray:
    """Return one column per kind of violation, shape (n, kinds)."""
    flags: IntArray = bits[:, None] >> np.arange(len(KINDS)) & 1
    return flags
