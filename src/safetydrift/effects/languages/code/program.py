"""A program as the readers of code see it: what its names stand for, what it calls and what it mentions.

Nothing is run. A name stands for everything that is ever assigned to it, whatever the order, and every branch and
function counts as run; so a value is a set of possible ones, and the sets err to the larger side.
"""

from __future__ import annotations

from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Attribute,
    Call,
    Choice,
    Element,
    Expression,
    Formatted,
    Index,
    Items,
    Joined,
    Name,
    Opaque,
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
    Several,
    Unknown,
    as_text,
    joined,
)
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import ClassVar

    from safetydrift.effects.catalogue.calls import Calls

    Values = tuple[object, ...]

_MAX_CHOICES = 8
"""More values than this of one expression are not followed together with those of others."""
_MAX_VALUES = 64
_MAX_ITEMS = 256
_MAX_STEPS = 100_000
_MAX_NAME = 200
_MAX_DEPTH = 120
_UNKNOWN: Values = (UNKNOWN,)


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
    """

    __slots__ = (
        "_added",
        "_bound",
        "_depth",
        "_grown",
        "_known",
        "_open",
        "_parameters",
        "_returned",
        "_steps",
        "_unbound",
        "_unfinished",
        "aliases",
        "called",
        "calls",
        "everything",
        "imported",
        "mentioned",
        "pay",
        "roots",
    )

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
        self._bound: dict[str, list[Expression]] = {}
        self._added: dict[str, list[Expression]] = {}
        self._grown: dict[str, list[Expression]] = {}
        self._parameters: dict[str, dict[tuple[str, ...], None]] = {}
        self._returned: dict[str, list[Expression]] = {}
        self._known: dict[str, Values] = {}
        self._open: set[str] = set()
        self._unbound: set[str] = set()
        self._unfinished: set[str] = set()
        self._steps = _MAX_STEPS
        self._depth = 0

    # -- filled by the reader -----------------------------------------------------------------------------

    def bind(self, name: str, value: Expression) -> None:
        """Note that a name may have a value; an attribute of some object goes by its name after a dot."""
        self._bound.setdefault(name, []).append(value)

    def add(self, name: str, value: Expression) -> None:
        """Note that a list of some name gets further items."""
        self._added.setdefault(name, []).append(value)

    def grow(self, name: str, value: Expression) -> None:
        """Note that something is put to the end of what a name stands for."""
        self._grown.setdefault(name, []).append(value)

    def routine(self, name: str, parameters: Sequence[str]) -> None:
        """Note a function of the text with its parameters."""
        self._parameters.setdefault(name, {})[tuple(parameters)] = None

    def parameters(self, names: Iterable[str]) -> None:
        """Note the parameters of any function: they are none of the global names."""
        self._unbound.update(names)

    def returns(self, name: str, value: Expression) -> None:
        """Note what a function of the text may return."""
        self._returned.setdefault(name, []).append(value)

    def call(self, call: Call) -> Call:
        """Note a call."""
        self.called.append(call)
        return call

    def mention(self, expression: Expression) -> None:
        """Note a name, part or item that is used as a value."""
        self.mentioned.append(expression)

    def connect(self) -> None:
        """Let the parameters of the text's own functions stand for what they are called with."""
        for call in self.called if self._parameters else ():
            callee = call.callee
            if isinstance(callee, Name | Attribute):
                for parameters in self._parameters.get(callee.name, ()):
                    self._hand_over(call, parameters)
        for name in self._unbound.difference(self._bound):
            self.bind(name, OPAQUE)

    def _hand_over(self, call: Call, parameters: Sequence[str]) -> None:
        self.pay(4 * (len(call.arguments) + len(call.keywords)))
        for name, value in zip(parameters, call.arguments, strict=False):
            self.bind(name, value)
        for name, value in call.keywords.items():
            if name in parameters:
                self.bind(name, value)

    def is_own(self, name: str) -> bool:
        """Return whether the text itself says what a name stands for."""
        return name in self._bound or name in self._parameters or name in self._grown

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
        self._steps -= 1
        self._depth += 1
        if self._steps < 0 or self._depth > _MAX_DEPTH:
            raise UnreadableError("its values are too many or too deeply nested to be told")
        values = _distinct(self._evaluators[type(expression)](self, expression))
        self._depth -= 1
        if not self._unfinished:
            expression.values = values
        return values

    def _name(self, expression: Name) -> Values:
        values = self._known.get(expression.name)
        if values is None:
            values = _distinct(self._told(expression.name))
            if not self._unfinished:
                self._known[expression.name] = values
        return values

    def _told(self, name: str) -> Values:
        """Return everything that a name is ever assigned."""
        if name in self._open:
            self._unfinished.add(name)
            return (Library(name), UNKNOWN) if self.calls.is_builtin(name) else _UNKNOWN
        if name not in self._bound and name not in self._grown:
            return self._foreign(name)
        self._open.add(name)
        values: Values = ()
        for value in self._bound.get(name, ()):
            values += self.values(value)
            if len(values) > _MAX_VALUES:
                values = (*values[:_MAX_VALUES], UNKNOWN)
                break
        self._open.discard(name)
        self._unfinished.discard(name)
        if name in self._grown:
            values = self._longer(name, values)
        if name in self._added:
            values = tuple([self._lengthened(value, name) for value in values])
        if self.calls.is_builtin(name):
            # Perhaps what the text assigns to this name stands elsewhere, or is never assigned.
            values += (Library(name),)
        return values

    def _longer(self, name: str, values: Values) -> Values:
        """Return values as they are, and with everything at their end that is ever put there."""
        self._open.add(name)
        grown = self._grown[name]
        further = self._combinations(grown[:_MAX_VALUES] + [OPAQUE] * (len(grown) > _MAX_VALUES))
        self._open.discard(name)
        self._unfinished.discard(name)
        return values + tuple(
            [
                joined([value, *parts])
                for value in values[:_MAX_CHOICES]
                for parts in further
                if isinstance(value, str | Several)
            ]
        )

    def _lengthened(self, value: object, name: str) -> object:
        if not isinstance(value, Several | Keyed) or name in self._open:
            return value
        self._open.add(name)
        further = [self.values(item) for item in self._added[name][:_MAX_ITEMS]]
        self._open.discard(name)
        if isinstance(value, Keyed):
            return Keyed(value.items | {"": tuple([item for items in further for item in items])})
        more = value.open_ended or len(self._added[name]) > _MAX_ITEMS
        return Several([*value.items, *further], open_ended=more)

    def _foreign(self, name: str) -> Values:
        if name in self._parameters:
            returned = self._returned.get(name)
            return (Library(name),) if returned is None else (Library(name), UNKNOWN)
        for module in self.everything:
            if self.calls.exact(f"{module}.{name}") is not None:
                return (Library(f"{module}.{name}"),)
        return (Library("" if name in self.roots else self.aliases.get(name, name)),)

    def _reference(self, expression: Reference) -> Values:
        return (Library("" if expression.name in self.roots else expression.name),)

    def _attribute(self, expression: Attribute) -> Values:
        own = "." + expression.name
        is_own = own in self._bound and own not in self._open
        values: Values = ()
        for base in self.values(expression.base):
            part = self._part(base, expression.name)
            if not is_own or self._is_catalogued(part):
                values += (part,)
        if is_own:
            self._open.add(own)
            for value in self._bound[own]:
                values += self.values(value)
            self._open.discard(own)
        return values

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
        values: Values = ()
        for base in self.values(expression.base):
            values += self._item(base, keys)
        return values

    def _item(self, base: object, keys: Values) -> Values:
        key = keys[0] if len(keys) == 1 else UNKNOWN
        if isinstance(base, Keyed):
            if isinstance(key, str) and key in base.items:
                return base.items[key]
            return (UNKNOWN, *[value for values in base.items.values() for value in values])
        if isinstance(base, Several):
            exact = isinstance(key, int) and -len(base.items) <= key < len(base.items) and not base.open_ended
            return base.items[key] if exact and isinstance(key, int) else _elements(base)
        if not isinstance(base, Library):
            return _UNKNOWN
        item = Library(base.name + "[]", made=True)
        named = isinstance(key, str) and len(base.name) + len(key) < _MAX_NAME
        return (self._part(base, key), item) if named and isinstance(key, str) else (item,)

    def _call(self, expression: Call) -> Values:
        callee_name = expression.callee.name if isinstance(expression.callee, Name | Attribute) else ""
        returned = self._returned.get(callee_name, ())
        values: Values = ()
        for callee in self.values(expression.callee):
            if not returned or isinstance(callee, Function) or self._is_catalogued(callee):
                values += self._result(callee, expression)
        for value in returned:
            values += self._once(f"{callee_name}()", value)
        return values

    def _is_catalogued(self, value: object) -> bool:
        return isinstance(value, Library) and value.name.partition(".")[0] in self.calls.modules

    def _once(self, name: str, value: Expression) -> Values:
        """Evaluate what a function returns, unless that is what is being done already."""
        if name in self._open:
            self._unfinished.add(name)
            return _UNKNOWN
        self._open.add(name)
        values = self.values(value)
        self._open.discard(name)
        self._unfinished.discard(name)
        return values

    def _result(self, callee: object, call: Call) -> Values:
        if isinstance(callee, Function):
            return callee.returns
        receiver: object = UNKNOWN
        if isinstance(callee, Method):
            receiver = callee.base
            entry = self.calls.method(callee.name)
        elif isinstance(callee, Library):
            found = self.calls.find(callee.name)
            entry = found[0] if found else None
        else:
            return _UNKNOWN
        if entry is not None and entry.folds:
            return self._folded(entry.folds, receiver, call)
        return (Library(callee.name, made=True),) if isinstance(callee, Library) else _UNKNOWN

    def _folded(self, name: str, receiver: object, call: Call) -> Values:
        if name == "same" and isinstance(receiver, Unknown) and not call.arguments:
            return _UNKNOWN
        return tuple([fold(name, receiver, list(given)) for given in self._combinations(call.arguments)])

    def _joined(self, expression: Joined) -> Values:
        return tuple(
            [joined(list(parts), expression.between) for parts in self._combinations(expression.parts)]
        )

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
        values: Values = ()
        for option in expression.options:
            values += self.values(option)
        return values

    def _element(self, expression: Element) -> Values:
        values: Values = ()
        for base in self.values(expression.base):
            if isinstance(base, Several):
                values += _elements(base)
            elif isinstance(base, Keyed):
                values += tuple(base.items)
            elif isinstance(base, Library) and base.name == "range":
                values += (0,)
            else:
                values += _UNKNOWN
        return values

    def _routine(self, expression: Routine) -> Values:
        return (Function(self.values(expression.returns)),)

    def _opaque(self, _expression: Opaque) -> Values:
        return _UNKNOWN

    _evaluators: ClassVar[dict[type, Callable[..., Values]]] = {
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
        Opaque: _opaque,
    }


class Method:
    """A method of something that is of no known library.

    Attributes
    ----------
    base
        The value whose method it is.
    name
        The name of the method.
    """

    __slots__ = ("base", "name")

    def __init__(self, base: object, name: str) -> None:
        self.base, self.name = base, name


def _elements(value: Several) -> Values:
    found: Values = (UNKNOWN,) if value.open_ended or not value.items else ()
    for choices in value.items:
        found += choices
        if len(found) > _MAX_VALUES:
            return (*found[:_MAX_VALUES], UNKNOWN)
    return found


def _distinct(values: Values) -> Values:
    """Return values without repetition, the first ones if they are many; there is always one."""
    if len(values) == 1:
        return values
    kept = list(dict.fromkeys(values[: 4 * _MAX_VALUES]))
    if len(kept) > _MAX_VALUES or len(values) > 4 * _MAX_VALUES:
        kept = [*kept[:_MAX_VALUES], UNKNOWN]
    return tuple(kept) or _UNKNOWN
