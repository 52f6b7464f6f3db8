"""An alarm for when a deployment's transitions no longer fit the model, with a stated error level at every time.

The chain says how runs go on from each row. Two predictors bet on every next row (or on completion):

- the *null* leans on the model. How a deployment goes on from a row need not be as the model says, for rare rows are
  known from few runs and every place is a little different; it is taken as drawn from a Dirichlet distribution around
  what the model says, with a concentration that holds both: no more than the departures counted, and no more than by
  how much parts of the training data differ. The deployment's own transitions then move the prediction (an urn).
- the *rival* leans on the model a little, and on the deployment's latest transitions much.

The product of the ratios of their probabilities is a wager against the null, whose expected value never grows while the
null is true. A new wager is opened with every run, and all are funded from one unit of capital: ``1 / (k (k + 1))`` is
for the ``k``-th. So the total is a nonnegative martingale of mean one, and by Ville's inequality the probability that
it *ever* reaches ``1 / level`` is at most ``level``, however often one looks. A change late in the life of a deployment
finds a wager that was opened shortly before it. An average run length would have been the alternative (a CUSUM); it
promises false alarms at a rate, and who watches a deployment for years wants none.

Of every run, only the first departure from each row counts, and predictions change between runs only: runs repeat
themselves, and what they learn from themselves is no drift. Nothing here needs more than the standard library, and the
state of an alarm is plain data.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log, log1p
from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.errors import ModelFileError
from safetydrift.monitor.model import AGGREGATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from safetydrift.monitor.model import Model

LEVEL = 0.01
"""Probability of ever raising a false alarm."""

CONCENTRATION = 10.0
"""How closely a deployment follows the model, at most, where a model does not say: a row departed from that often lies
half-way."""

EAGERNESS = 8.0
"""By how much the rival leans less on the model."""

HALF_LIFE = 200.0
"""Departures from a row after which the rival gives a transition half its weight."""

LEANING = 10.0
"""Departures by which a category's row leans on the same row of all runs."""

UNSEEN, END = -1, -2
"""The targets *something never seen from here*, and completion."""

VERSION = 1


class _Row:
    """How runs go on from one row: what the model says, and what the deployment showed."""

    __slots__ = ("expected", "firmness", "recent", "recent_total", "seen", "total")

    def __init__(self, expected: Mapping[int, float], firmness: float) -> None:
        self.expected, self.firmness = expected, firmness
        self.seen: dict[int, float] = {}
        self.recent: dict[int, float] = {}
        self.total = self.recent_total = 0.0

    def ratio(self, target: int) -> float:
        """Return the rival's probability over the null's."""
        lean = self.firmness * self.expected[target]
        null = (lean + self.seen.get(target, 0.0)) / (self.firmness + self.total)
        less = self.firmness / EAGERNESS
        rival = (lean / EAGERNESS + self.recent.get(target, 0.0)) / (less + self.recent_total)
        return 0.5 + 0.5 * rival / null

    def restore(self, seen: dict[int, float], recent: dict[int, float]) -> None:
        """Set what the deployment showed."""
        self.seen, self.total = seen, sum(seen.values())
        self.recent, self.recent_total = recent, sum(recent.values())

    def learn(self, target: int) -> None:
        self.seen[target] = self.seen.get(target, 0.0) + 1.0
        self.total += 1.0
        kept: float = 0.5 ** (1.0 / HALF_LIFE)
        self.recent = {known: count * kept for known, count in self.recent.items()}
        self.recent[target] = self.recent.get(target, 0.0) + 1.0
        self.recent_total = self.recent_total * kept + 1.0


class DriftAlarm:
    """Watches a deployment's runs for transitions that the model does not explain.

    Parameters
    ----------
    model
        The fitted model.
    level
        The probability of ever raising a false alarm.
    concentration
        How closely a deployment is expected to follow the model; what the model's settings say if not given.

    Examples
    --------
    >>> from safetydrift import load_model
    >>> alarm = DriftAlarm(load_model())
    >>> alarm.record("banking", [0, 0])
    False
    >>> alarm.runs, alarm.evidence < 100
    (1, True)
    """

    def __init__(self, model: Model, level: float = LEVEL, concentration: float | None = None) -> None:
        if not 0.0 < level < 1.0:
            raise ValueError(f"an error level lies between 0 and 1, got {level}")
        if concentration is not None and not 0.0 < concentration < float("inf"):
            raise ValueError(f"a concentration is above 0, got {concentration}")
        self.level = level
        self.model = model
        said = model.settings.get("concentrations", {}).get("drift", {}).get("tasks", CONCENTRATION)
        self.concentration = float(said) if concentration is None else concentration
        self.runs = 0
        self.alarmed_at: int | None = None
        self._wagers = -inf
        self._rows: dict[tuple[str, int], _Row] = {}
        self._blame: dict[tuple[str, int, int], float] = {}
        self._counts: dict[str, dict[int, dict[int, int]]] = {}

    @property
    def evidence(self) -> float:
        """The value of all wagers together: 1 at first; an alarm is raised when it reaches 1 / level."""
        return exp(min(self.log_evidence, 700.0))

    @property
    def log_evidence(self) -> float:
        """The natural logarithm of `evidence`."""
        return _log_sum(self._wagers, -log(self.runs + 1.0))

    def record(self, category: str, states: Sequence[int], *, completed: bool = False) -> bool:
        """Take in one run; return whether the alarm has been raised, by it or before.

        Parameters
        ----------
        category
            One that the model does not know is taken as all runs.
        states
            The states it stood in, from the start; up to the violating call, where there is one.
        completed
            Whether it finished.
        """
        table = category if category in self.model.tables else AGGREGATE
        places = [self.model.row_of[state] for state in states]
        targets = [*places[1:], END] if completed else places[1:]
        first: dict[int, int] = {}
        for origin, target in zip(places, targets, strict=False):
            first.setdefault(origin, target)
        gain, learnt = 0.0, []
        for origin, target in first.items():
            row = self._row(table, origin)
            known = target if target in row.expected else UNSEEN
            ratio = log(row.ratio(known))
            gain += ratio
            learnt.append((row, known))
            if self.alarmed_at is None:
                blamed = (table, origin, target)
                self._blame[blamed] = self._blame.get(blamed, 0.0) + ratio
        self.runs += 1
        self._wagers = _log_sum(self._wagers, -log(self.runs) - log(self.runs + 1.0)) + gain
        for row, known in learnt:
            row.learn(known)
        if self.alarmed_at is None and self.log_evidence >= -log(self.level):
            self.alarmed_at = self.runs
        return self.alarmed_at is not None

    def drivers(self, most: int = 10) -> list[Driver]:
        """Return the transitions that spoke loudest against the model until the alarm, the loudest first."""
        loudest = sorted(self._blame.items(), key=_loudness)[:most]
        return [self._driver(*where, weight) for where, weight in loudest if weight > 0.0]

    def state(self) -> dict[str, Any]:
        """Return everything it has learnt, as plain data."""
        return {
            "version": VERSION,
            "model": self._identity(),
            "level": self.level,
            "concentration": self.concentration,
            "runs": self.runs,
            "alarmed_at": self.alarmed_at,
            "wagers": None if self._wagers == -inf else self._wagers,
            "rows": [
                [table, origin, sorted(row.seen.items()), sorted(row.recent.items())]
                for (table, origin), row in sorted(self._rows.items())
            ],
            "blame": [[*where, weight] for where, weight in sorted(self._blame.items())],
        }

    @classmethod
    def from_state(cls, model: Model, state: Any) -> DriftAlarm:
        """Return an alarm that goes on where another stopped; the inverse of `state`.

        Raises
        ------
        ModelFileError
            If the state is malformed, of another version, or of an alarm for another model.
        """
        try:
            if state["version"] != VERSION:
                raise ModelFileError("the state of the drift alarm is of another version")
            alarm = cls(model, _finite(state["level"]), _finite(state["concentration"]))
            if state["model"] != alarm._identity():
                raise ModelFileError("the state of the drift alarm belongs to another model")
            alarm.runs = int(state["runs"])
            alarm.alarmed_at = None if state["alarmed_at"] is None else int(state["alarmed_at"])
            alarm._wagers = -inf if state["wagers"] is None else _finite(state["wagers"])
            for table, origin, seen, recent in state["rows"]:
                alarm._row(table, origin).restore(dict(_entries(seen)), dict(_entries(recent)))
            for table, origin, target, weight in state["blame"]:
                alarm._blame[str(table), int(origin), int(target)] = _finite(weight)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(f"the state of the drift alarm cannot be read: {error!r}") from error
        return alarm

    # -- inside -----------------------------------------------------------------------------------------

    def _identity(self) -> str:
        return f"{self.model.space.identity} {len(self.model.rows)} {sum(self.model.tables[AGGREGATE].departures)}"

    def _row(self, table: str, origin: int) -> _Row:
        if not (table in self.model.tables and 0 <= origin < len(self.model.rows)):
            raise ValueError(f"the model has no row {origin} in {table!r}")
        found = self._rows.get((table, origin))
        if found is None:
            found = self._rows[table, origin] = self._expected(table, origin)
        return found

    def _expected(self, table: str, origin: int) -> _Row:
        """Return a row as the model knows it: its category's, leaning on the same row of all other runs."""
        own, everywhere = self._counted(table).get(origin, {}), self._counted(AGGREGATE).get(origin, {})
        others = {target: count - own.get(target, 0) for target, count in everywhere.items()}
        n_own, n_others = sum(own.values()), sum(others.values())
        leaning = min(LEANING, n_others)
        departures = n_own + leaning
        if not departures:
            return _Row({UNSEEN: 1.0}, 1.0)
        # Good and Turing: what was seen once says how much was not seen at all.
        rare = (sum([count == 1 for count in everywhere.values()]) + 0.5) / (n_own + n_others + 1.0)
        rare = min(rare, 0.5)
        expected = {
            target: (1.0 - rare)
            * (own.get(target, 0) + (leaning * count / n_others if n_others else 0.0))
            / departures
            for target, count in others.items()
        }
        expected = {target: share for target, share in expected.items() if share > 0.0}
        expected[UNSEEN] = rare
        return _Row(expected, 1.0 / (1.0 / self.concentration + 1.0 / (departures + 1.0)))

    def _counted(self, table: str) -> dict[int, dict[int, int]]:
        """Return the counts of a table by origin and target, without violations."""
        found = self._counts.get(table)
        if found is None:
            violated = len(self.model.rows)
            found = self._counts[table] = {}
            for origin, target, count in self.model.tables[table].counts:
                if target != violated:
                    found.setdefault(origin, {})[END if target > violated else target] = count
        return found

    def _driver(self, table: str, origin: int, target: int, weight: float) -> Driver:
        row, names = self._rows[table, origin], self.model.rows
        known = target if target in row.expected else UNSEEN
        return Driver(
            table,
            names[origin],
            "completed" if target == END else names[target],
            row.expected[known],
            row.seen.get(known, 0.0) / row.total,
            int(row.total),
            weight,
        )


class Driver(Struct, frozen=True, gc=False):
    """A transition that speaks against the model.

    Parameters
    ----------
    category
        Of the runs; empty for all.
    origin, target
        Names of the rows it leads from and to.
    expected, observed
        Share of the departures from the row that the model expects to go there, and that did. A target never seen from
        there shares both with all others of that kind.
    departures
        Departures observed.
    weight
        Its part in the evidence, in natural logarithms.
    """

    category: str
    origin: str
    target: str
    expected: float
    observed: float
    departures: int
    weight: float

    def __str__(self) -> str:
        where = f" ({self.category})" if self.category else ""
        return (
            f"{self.origin} -> {self.target}{where}: {self.observed:.2f} of {self.departures:,} departures, "
            f"expected {self.expected:.2f}"
        )


def _loudness(pair: tuple[tuple[str, int, int], float]) -> tuple[float, tuple[str, int, int]]:
    return -pair[1], pair[0]


def _log_sum(first: float, second: float) -> float:
    """Return log(exp(first) + exp(second))."""
    high, low = max(first, second), min(first, second)
    return high if low == -inf else high + log1p(exp(low - high))


def _finite(value: Any) -> float:
    if type(value) not in {int, float} or not isfinite(value):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _entries(pairs: Iterable[Any]) -> list[tuple[int, float]]:
    found = [(target, _finite(count)) for target, count in pairs]
    if any(type(target) is not int or count <= 0.0 for target, count in found):
        raise ValueError("a count that cannot be")
    return found
