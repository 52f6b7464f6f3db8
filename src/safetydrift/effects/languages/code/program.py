"""A program as the readers of code see it: what its names stand for, what it calls and what it mentions.

Nothing is run. A name stands for everything that is ever assigned to it, whatever the order, and every branch and
function counts as run; so a value is a set of possible ones, and the sets err to the larger side.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Attribute,
    Call,
    Choice,
    Constant,
    Element,
    Expression,
    Formatted,
    Index,
    Items,
    Joined,
    Name,
    Reference,
    Routine,
    Table,
)
from safetydrift.effects.languages.code.folding import filled, fold
from safetydrift.effects.languages.code.values import (
    UNKNOWN,
    Function,
    Keyed,
    Library,
    Method,
    Several,
    Unknown,
    as_text,
    joined,
)
from safetydrift.effects.reading import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import ClassVar

    from safetydrift.effects.catalogue.calls import Calls

    Values = tuple[object, ...]

_MAX_CHOICES = 8
"""More values than this of one expression are not followed together with those of others."""
_MAX_VALUES = 64
_MAX_ITEMS = 256
_MAX_NAME = 200
_MAX_DEPTH = 120
_PRICE = 4
_CHARACTERS_A_UNIT = 64
_UNKNOWN: Values = (UNKNOWN,)
_DECODING = frozenset(("base32", "base64", "hex", "inflate", "rot13", "unfold"))


class Program:
    """What a text assigns, calls and mentions; filled by the reader of a language.

    Parameters
    ----------
    calls
        What the libraries of the language do.
    aliases
        What names stand for that the text uses without saying so, having said it earlier perhaps.
    roots
        Names of the global object itself, whose parts are the global names (``window``, ``builtins``).
    pay
        Accounts for work, see `Reading.pay`.

    Attributes
    ----------
    called, mentioned
        The calls, and the names, parts and items that are neither called nor assigned to, in the order of the text.
    imported
        The modules that are imported.
    everything
        The modules all of whose names are imported.
    decoded
        What functions that decode return.
    bound, added, grown, returned
        By name: what is assigned to it (to the part of some object behind a dot), what is added to the list, put to
        the end of the text, and returned by the function of that name.
    """

    def __init__(
        self,
        calls: Calls,
        roots: frozenset[str] = frozenset(),
        aliases: Mapping[str, str] | None = None,
        *,
        pay: Callable[[int], None],
    ) -> None:
        self.calls, self.roots, self.aliases, self.pay = calls, roots, aliases or {}, pay
        self.called: list[Call] = []
        self.mentioned: list[Expression] = []
        self.everything: list[str] = []
        self.imported: list[str] = []
        self.bound: defaultdict[str, list[Expression]] = defaultdict(list)
        self.added: defaultdict[str, list[Expression]] = defaultdict(list)
        self.grown: defaultdict[str, list[Expression]] = defaultdict(list)
        self.returned: defaultdict[str, list[Expression]] = defaultdict(list)
        self._parameters: defaultdict[str, dict[tuple[str, ...], None]] = defaultdict(dict)
        self._known: dict[str, Values] = {}
        self.decoded: set[str] = set()
        self._open: set[str] = set()
        self._unbound: set[str] = set()
        self._unfinished: set[str] = set()
        self._depth = 0

    # -- filled by the reader -----------------------------------------------------------------------------

    def routine(self, name: str, parameters: Sequence[str]) -> None:
        """Note a function of the text with its parameters."""
        self._parameters[name][tuple(parameters)] = None

    def parameters(self, names: Iterable[str]) -> None:
        """Note the parameters of any function: they are none of the global names."""
        self._unbound.update(names)

    def call(self, call: Call) -> Call:
        """Note a call."""
        self.called.append(call)
        return call

    def connect(self) -> None:
        """Let the parameters of the text's own functions stand for what they are called with."""
        for call in self.called if self._parameters else ():
            callee = call.callee
            if isinstance(callee, Name | Attribute):
                for parameters in self._parameters.get(callee.name, ()):
                    self._hand_over(call, parameters)
        for name in self._unbound.difference(self.bound):
            self.bound[name].append(OPAQUE)

    def _hand_over(self, call: Call, parameters: Sequence[str]) -> None:
        self.pay(_PRICE * (len(call.arguments) + len(call.keywords)))
        named = [pair for pair in call.keywords.items() if pair[0] in parameters]
        for name, value in chain(zip(parameters, call.arguments, strict=False), named):
            self.bound[name].append(value)

    def is_own(self, name: str) -> bool:
        """Return whether the text itself says what a name stands for."""
        return name in self.bound or name in self._parameters or name in self.grown

    # -- values -------------------------------------------------------------------------------------------

    def values(self, expression: Expression) -> Values:
        """Return the values that an expression may have.

        Raises
        ------
        UnreadableError
            If it takes too many steps to tell, or nests too deeply.
        """
        if expression.values is not None:
            return expression.values
        self.pay(_PRICE)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableError("its values are too deeply nested to be told")
        values = _distinct(self._evaluators[type(expression)](self, expression))
        self._depth -= 1
        if not self._unfinished:
            expression.values = values
        return values

    def _all(self, expressions: Iterable[Expression]) -> Values:
        """Return the values that any of several expressions may have, the first ones if they are many."""
        values: Values = ()
        for expression in expressions:
            values += self.values(expression)
            if len(values) > _MAX_VALUES:
                return (*values[:_MAX_VALUES], UNKNOWN)
        return values

    @contextmanager
    def _within(self, name: str) -> Iterator[None]:
        """Keep in mind that a name is being worked out: what depends on it meanwhile is not known for good."""
        self._open.add(name)
        yield
        self._open.discard(name)
        self._unfinished.discard(name)

    def _constant(self, expression: Constant) -> Values:
        return (expression.value,)

    def _name(self, expression: Name) -> Values:
        values = self._known.get(expression.name)
        if values is None:
            values = _distinct(self._told(expression.name))
            if not self._unfinished:
                self._known[expression.name] = values
        return values

    def _told(self, name: str) -> Values:
        """Return everything that a name is ever assigned."""
        builtin = (Library(name),) if self.calls.is_builtin(name) else ()
        if name in self._open:
            self._unfinished.add(name)
            return (*builtin, UNKNOWN)
        if name not in self.bound and name not in self.grown:
            return self._foreign(name)
        with self._within(name):
            values = self._all(self.bound.get(name, ()))
            if name in self.grown:
                values += self._longer(self.grown[name], values)
            if name in self.added:
                values = tuple([self._lengthened(value, self.added[name]) for value in values])
        # Perhaps what the text assigns to this name stands elsewhere, or is never assigned.
        return values + builtin

    def _longer(self, grown: Sequence[Expression], values: Values) -> Values:
        """Return values with everything at their end that is ever put there."""
        further = self._combinations([*grown[:_MAX_VALUES], *[OPAQUE] * (len(grown) > _MAX_VALUES)])
        texts = [value for value in values[:_MAX_CHOICES] if isinstance(value, str | Several)]
        return tuple([self._put_together([value, *parts]) for value in texts for parts in further])

    def _put_together(self, parts: list[object], between: str = "") -> object:
        self.pay(sum(len(part) for part in parts if isinstance(part, str)) // _CHARACTERS_A_UNIT)
        return joined(parts, between)

    def _lengthened(self, value: object, added: Sequence[Expression]) -> object:
        """Return a list or table with what is added to it anywhere."""
        if not isinstance(value, Several | Keyed):
            return value
        further = [self.values(item) for item in added[:_MAX_ITEMS]]
        if isinstance(value, Keyed):
            return Keyed(value.items | {"": tuple(chain.from_iterable(further))})
        return Several([*value.items, *further], value.open_ended or len(added) > _MAX_ITEMS)

    def _foreign(self, name: str) -> Values:
        if name in self._parameters:
            return (Library(name), UNKNOWN) if name in self.returned else (Library(name),)
        for module in self.everything:
            if self.calls.exact(f"{module}.{name}") is not None:
                return (Library(f"{module}.{name}"),)
        return (Library("" if name in self.roots else self.aliases.get(name, name)),)

    def _reference(self, expression: Reference) -> Values:
        return (Library("" if expression.name in self.roots else expression.name),)

    def _attribute(self, expression: Attribute) -> Values:
        own = "." + expression.name
        parts = [self._part(base, expression.name) for base in self.values(expression.base)]
        if own not in self.bound or own in self._open:
            return tuple(parts)
        with self._within(own):
            return (*filter(self._is_catalogued, parts), *self._all(self.bound[own]))

    def _part(self, base: object, name: str) -> object:
        if isinstance(base, Library):
            if not base.name:
                return Library("" if name in self.roots else name)
            full = base.name if name == "default" else f"{base.name}.{name}"
            return Library(full) if len(full) < _MAX_NAME else UNKNOWN
        if isinstance(base, str) and name == "parent":
            return base.rpartition("/")[0] or UNKNOWN
        if isinstance(base, Keyed) and name in base.items:
            return next(iter(base.items[name]), UNKNOWN)
        return Method(base, name)

    def _index(self, expression: Index) -> Values:
        keys = self.values(expression.key)
        key = keys[0] if len(keys) == 1 else UNKNOWN
        return tuple(chain.from_iterable(self._item(base, key) for base in self.values(expression.base)))

    def _item(self, base: object, key: object) -> Values:
        if isinstance(base, Keyed):
            if isinstance(key, str) and key in base.items:
                return base.items[key]
            return (UNKNOWN, *chain.from_iterable(base.items.values()))
        if isinstance(base, Several):
            exact = isinstance(key, int) and -len(base.items) <= key < len(base.items) and not base.open_ended
            return base.items[key] if exact and isinstance(key, int) else _elements(base)
        if not isinstance(base, Library):
            return _UNKNOWN
        item = Library(base.name + "[]", made=True)
        named = isinstance(key, str) and len(base.name) + len(key) < _MAX_NAME
        return (self._part(base, key), item) if named and isinstance(key, str) else (item,)

    def _call(self, expression: Call) -> Values:
        name = expression.callee.name if isinstance(expression.callee, Name | Attribute) else ""
        returned = self.returned.get(name, ())
        values: Values = ()
        for callee in self.values(expression.callee):
            if not returned or isinstance(callee, Function) or self._is_catalogued(callee):
                values += self._result(callee, expression)
        if not returned:
            return values
        if f"{name}()" in self._open:
            self._unfinished.add(f"{name}()")
            return (*values, UNKNOWN)
        with self._within(f"{name}()"):
            return values + self._all(returned)

    def _is_catalogued(self, value: object) -> bool:
        return isinstance(value, Library) and value.name.partition(".")[0] in self.calls.modules

    def _result(self, callee: object, call: Call) -> Values:
        if isinstance(callee, Function):
            return callee.returns
        if not isinstance(callee, Method | Library):
            return _UNKNOWN
        receiver = callee.base if isinstance(callee, Method) else UNKNOWN
        found = self.calls.find(callee.name) if isinstance(callee, Library) else ()
        entry = self.calls.method(callee.name) if isinstance(callee, Method) else next(iter(found), None)
        if entry is not None and entry.folds:
            return self._folded(entry.folds, receiver, call)
        return (Library(callee.name, made=True),) if isinstance(callee, Library) else _UNKNOWN

    def _folded(self, name: str, receiver: object, call: Call) -> Values:
        if name == "same" and isinstance(receiver, Unknown) and not call.arguments:
            return _UNKNOWN
        return tuple(
            [self._fold(name, receiver, list(given)) for given in self._combinations(call.arguments)]
        )

    def _fold(self, name: str, receiver: object, given: list[object]) -> object:
        worked_on = sum(len(value) for value in (receiver, *given) if isinstance(value, str))
        self.pay(_PRICE + worked_on // _CHARACTERS_A_UNIT)
        value = fold(name, receiver, given)
        if name in _DECODING and isinstance(value, str):
            self.decoded.add(value)
        return value

    def _joined(self, expression: Joined) -> Values:
        combinations = self._combinations(expression.parts)
        return tuple([self._put_together(list(parts), expression.between) for parts in combinations])

    def _combinations(self, parts: Iterable[Expression]) -> list[Values]:
        """Return every choice of one value for each part, as long as they are few; then the first ones."""
        found: list[list[object]] = [[]]
        for part in parts:
            values = self.values(part)
            if len(values) * len(found) > _MAX_CHOICES:
                values = (*values[:1], UNKNOWN) if len(found) * 2 <= _MAX_CHOICES else _UNKNOWN
            if len(values) == 1:  # in place, since there may be very many parts
                for before in found:
                    before.extend(values)
            else:
                found = [[*before, value] for before in found for value in values]
        return [tuple(before) for before in found]

    def _formatted(self, expression: Formatted) -> Values:
        return tuple(
            [
                filled(template, list(map(as_text, given))) if isinstance(template, str) else UNKNOWN
                for template, *given in self._combinations((expression.template, *expression.given))
            ]
        )

    def _items(self, expression: Items) -> Values:
        return (Several([self.values(item) for item in expression.items]),)

    def _table(self, expression: Table) -> Values:
        return (Keyed({key: self.values(value) for key, value in expression.items.items()}),)

    def _choice(self, expression: Choice) -> Values:
        return self._all(expression.options)

    def _element(self, expression: Element) -> Values:
        values: Values = ()
        for base in self.values(expression.base):
            if isinstance(base, Several):
                values += _elements(base)
            elif isinstance(base, Keyed):
                values += tuple(base.items)
            else:
                values += (0,) if base == Library("range", made=True) else _UNKNOWN
        return values

    def _routine(self, expression: Routine) -> Values:
        return (Function(self.values(expression.returns)),)

    _evaluators: ClassVar[dict[type, Callable[..., Values]]] = {
        Constant: _constant,
        Name: _name,
        Reference: _reference,
        Attribute: _attribute,
        Index: _index,
        Call: _call,
        Joined: _joined,
        Formatted: _formatted,
        Items: _items,
        Table: _table,
        Choice: _choice,
        Element: _element,
        Routine: _routine,
    }


def _elements(value: Several) -> Values:
    found = tuple(islice(chain.from_iterable(value.items), _MAX_VALUES + 1))
    if len(found) > _MAX_VALUES:
        return (*found[:_MAX_VALUES], UNKNOWN)
    return (UNKNOWN, *found) if value.open_ended or not value.items else found


def _distinct(values: Values) -> Values:
    """Return values without repetition, the first ones if they are many; there is always one."""
    if len(values) == 1:
        return values
    kept = list(dict.fromkeys(values[: 4 * _MAX_VALUES]))
    if len(kept) > _MAX_VALUES or len(values) > 4 * _MAX_VALUES:
        kept = [*kept[:_MAX_VALUES], UNKNOWN]
    return tuple(kept) or _UNKNOWN
