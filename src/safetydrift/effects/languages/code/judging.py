"""Judging a program: what its calls do, by the names in the catalogue and the values of their arguments."""

from __future__ import annotations

from safetydrift.effects.catalogue.calls import ASKS, OPENS
from safetydrift.effects.languages.addresses import host_of
from safetydrift.effects.languages.code.expressions import Call, Constant, Index, Name
from safetydrift.effects.languages.code.values import (
    HOLE,
    UNKNOWN,
    Function,
    Keyed,
    Library,
    Method,
    Several,
    as_text,
    command_line,
    is_known,
)
from safetydrift.effects.operations import LIKELY, POSSIBLE
from safetydrift.effects.reading import UnreadableError, shown
from safetydrift.effects.recording import would
from safetydrift.effects.tool_operations import tool_operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.effects.catalogue.calls import CallEntry, Deed
    from safetydrift.effects.languages.code.expressions import Expression
    from safetydrift.effects.languages.code.program import Program
    from safetydrift.effects.reading import Reading

    Values = tuple[object, ...]

_FILES = frozenset(("reads", "writes", "deletes", OPENS))
_NETWORK = frozenset(("fetches", "sends", "connects", ASKS))
_SAFE_METHODS = frozenset(("get", "head", "options"))
_WRITING = frozenset("wax+>")
_MODE_SIGNS = frozenset("rwaxbtU+<>e")
_STAND_INS = {"shell": "$computed"}
_MAX_TEXTS = 16
_BARE_VERBS = frozenset(
    (
        "create",
        "send",
        "delete",
        "update",
        "confirm",
        "capture",
        "cancel",
        "transfer",
        "pay",
        "close",
        "remove",
        "put",
        "post",
        "add",
        "set",
        "push",
        "merge",
        "edit",
        "invite",
        "run",
        "publish",
        "terminate",
        "stop",
        "destroy",
    )
)
"""Names of methods that only say what is done together with what they belong to."""
_WHOLE = (
    "rmtree",
    "removedirs",
    "remove_tree",
    "rm_rf",
    "rmsync",
    "rmdirsync",
    "rimraf",
    "deltree",
    "delete_directory",
)
"""How the names of calls end that delete folders with what they hold, in small letters."""


class Judge:
    """Adds to a reading what the calls and mentions of a program do."""

    __slots__ = ("program", "reading")

    def __init__(self, reading: Reading, program: Program) -> None:
        self.reading, self.program = reading, program

    def everything(self) -> None:
        """Judge the whole program.

        Raises
        ------
        UnreadableError
            If its values take too long to tell, or text within it cannot be read.
        """
        self.program.connect()
        self._imports()
        for call in self.program.called:
            self._call(call)
        for expression in self.program.mentioned:
            self._mention(expression)

    # -- what is called, what is mentioned ----------------------------------------------------------------

    def _call(self, call: Call) -> None:
        program = self.program
        for callee in program.values(call.callee):
            if isinstance(callee, Library):
                if callee.name.endswith("[]") and callee.name[:-2] in program.calls.modules:
                    self._computed(call)
                for entry in program.calls.acting(callee.name):
                    self.entry(entry, callee.name, call)
            elif isinstance(callee, Method):
                method = program.calls.method(callee.name)
                if method is not None and not method.idle:
                    self.entry(method, callee.name, call, callee.base)

    def _computed(self, call: Call) -> None:
        """Add a call of a library's function whose name may be put together while running."""
        key = call.callee.key if isinstance(call.callee, Index) else None
        if key is None or any(not isinstance(name, str) or HOLE in name for name in self.program.values(key)):
            self.reading.hides("calls a function that is named while running")

    def _imports(self) -> None:
        """Add what is imported: what no catalogue knows is code that is not read here."""
        for module in self.program.imported:
            if module.partition(".")[0] not in self.program.calls.modules:
                self.reading.act("runs", f"runs the module {shown(module)}, which is not read here")

    def _module(self, name: str, call: Call | None) -> None:
        """Add what is imported by a call."""
        values = self.program.values(call.arguments[0]) if call is not None and call.arguments else (UNKNOWN,)
        for value in values:
            if isinstance(value, str) and HOLE not in value:
                module = value.removeprefix("node:").replace("/", ".")
                if module.partition(".")[0] not in self.program.calls.modules:
                    self.reading.act("runs", f"runs the module {shown(value)}, which is not read here")
            else:
                self.reading.hides(f"{name} of a module that is named while running")

    def _mention(self, expression: Expression) -> None:
        """Judge a function that is handed on rather than called, and what counts by being looked at."""
        program = self.program
        own = expression.name if isinstance(expression, Name) and program.is_own(expression.name) else ""
        for value in program.values(expression):
            if own and not (isinstance(value, Library) and value.name != own and not value.made):
                continue
            if isinstance(value, Method):
                entry = program.calls.method(value.name)
                if entry is not None and entry.used:
                    self.entry(entry, value.name, None)
            elif isinstance(value, Library) and value.name:
                self._mentioned(value.name, expression)

    def _mentioned(self, name: str, expression: Expression) -> None:
        """Judge the mention of a name; an item of something may count as if it were got by a call."""
        calls = self.program.calls
        entry = calls.exact(name)
        if entry is not None and not name.endswith("[]"):
            self.entry(entry, name, None)
            return
        base, _, last = name.removesuffix("[]").rpartition(".")
        if entry is not None and isinstance(expression, Index):
            self.entry(entry, name, Call(expression.base, (expression.key,)))
            return
        method = calls.method(last)
        if method is not None and method.used:
            self.entry(method, name, None)
        items = calls.exact(base + "[]") if base and not name.endswith("[]") else None
        if items is not None and not isinstance(expression, Index):
            self.entry(items, base, Call(expression, (Constant(last),)))

    # -- entries ------------------------------------------------------------------------------------------

    def entry(self, entry: CallEntry, name: str, call: Call | None, receiver: object = None) -> None:
        """Add what an entry says of a call, or of the mere mention of a function if `call` is None."""
        if entry.folds == "module":
            self._module(name, call)
        label = f"{name}: {entry.note}" if entry.note else name
        for deed in entry.does(name):
            self._deed(deed, label, call, receiver)
        self._operations(entry, name, label, call)
        if entry.ranks is not None or entry.kinds:
            ranks = entry.ranks if entry.ranks is not None else self.reading.catalogue.scales.lowest
            self.reading.add(ranks, label, kinds=entry.kinds)

    def _operations(self, entry: CallEntry, name: str, label: str, call: Call | None) -> None:
        """Add what an entry says of a call beyond its acts: an operation of its own, or the one its name tells."""
        reading = self.reading
        if entry.harm.action and entry.does(name) is entry.deeds:
            reading.does(entry.harm, "", "" if entry.harm.note else would(label))
        if entry.by_name and call is not None:
            words = name.split(".")
            told = reading.catalogue.pattern("_".join(words[-2:] if words[-1] in _BARE_VERBS else words[-1:]))
            if told is not None and told.harm.certainty:
                args = self._arguments(call)
                for one in tool_operations(reading.catalogue, reading.boundary, told.harm, (), args):
                    reading.operations.add(one)

    def _arguments(self, call: Call) -> dict[str, object]:
        """Return what is known of the arguments of a call, by name or by place."""
        given = dict(call.keywords) | {str(place): value for place, value in enumerate(call.arguments)}
        known: dict[str, object] = {}
        for name, expression in list(given.items())[:_MAX_TEXTS]:
            texts = [text for value in self.program.values(expression)[:1] for text in _paths(value)]
            known[name] = [_readable(text) for text in texts if text.strip(HOLE)]
        return known

    def _deed(self, deed: Deed, name: str, call: Call | None, receiver: object) -> None:
        if deed.act == "computes" and not deed.code:
            return
        operands = (UNKNOWN,) if call is None else self._operands(deed, call, receiver)
        if deed.code:
            self._code(
                deed,
                name,
                operands if deed.words is None or call is None else self._words(deed, call, operands),
            )
        elif not operands or not deed.operates:
            if not deed.operates or deed.argument is None or deed.act not in _FILES:
                self._act(deed, name, call)
        elif deed.act in _FILES:
            self._files(self._file_acts(deed, call), name, operands)
        elif deed.act in _NETWORK:
            self._network(deed, name, call, operands)
        elif deed.act == "looks":
            self._names(name, operands)
        else:
            operand = _readable(_texts(operands)[0])
            self.reading.act(deed.act, f"{name} {shown(operand)}", operand)

    def _names(self, name: str, operands: Values) -> None:
        """Add what the names of things tell that are looked at."""
        for text in _texts(operands):
            if text.strip(HOLE):
                self.reading.names(text)
            else:
                self.reading.act("reads", f"{name} of something named while running")

    def _act(self, deed: Deed, name: str, call: Call | None) -> None:
        """Add an act that is done to nothing that can be named."""
        act = deed.act
        if act == OPENS:
            acts = self._file_acts(deed, call)
            for one in acts:
                self.reading.act(one, f"{name}, a file named while running")
            return
        if act == ASKS:
            act = "sends" if self._hands_over(deed, call) else "fetches"
        self.reading.act(act, name)

    def _operands(self, deed: Deed, call: Call, receiver: object) -> Values:
        """Return the values of what a deed is done to; empty if the call has no such argument."""
        program = self.program
        for keyword in deed.keywords:
            if keyword in call.keywords:
                return program.values(call.keywords[keyword])
        if deed.argument is not None and deed.argument < len(call.arguments):
            return program.values(call.arguments[deed.argument])
        for keyed in self._tables(call) if deed.keywords else ():
            for keyword in deed.keywords:
                if keyword in keyed.items:
                    return keyed.items[keyword]
        if deed.receiver:
            return (UNKNOWN if receiver is None else receiver,)
        return ()

    def _tables(self, call: Call) -> Iterable[Keyed]:
        """Return the tables of options that a call is handed."""
        for argument in call.arguments:
            for value in self.program.values(argument):
                if isinstance(value, Keyed):
                    yield value

    # -- files --------------------------------------------------------------------------------------------

    def _file_acts(self, deed: Deed, call: Call | None) -> tuple[str, ...]:
        if deed.act != OPENS:
            return (deed.act,)
        mode = self._option(deed, call, "mode", "r")
        if not isinstance(mode, str) or not _MODE_SIGNS.issuperset(mode):
            return ("reads", "writes")
        return ("writes",) if _WRITING.intersection(mode) else ("reads",)

    def _option(self, deed: Deed, call: Call | None, keyword: str, default: str) -> object:
        """Return the value of the argument that decides between acts; UNKNOWN if there may be several."""
        if call is None:
            return UNKNOWN
        if keyword in call.keywords:
            values = self.program.values(call.keywords[keyword])
        elif deed.mode is not None and deed.mode < len(call.arguments):
            values = self.program.values(call.arguments[deed.mode])
        else:
            values = next(
                (keyed.items[keyword] for keyed in self._tables(call) if keyword in keyed.items), ()
            )
        if not values:
            return default
        value = values[0] if len(values) == 1 else UNKNOWN
        return default if isinstance(value, Keyed) else value

    def _files(self, acts: tuple[str, ...], name: str, operands: Values) -> None:
        for operand in operands:
            for path in _paths(operand):
                for act in acts:
                    self._file(act, name, path)

    def _file(self, act: str, name: str, path: str) -> None:
        reading = self.reading
        if not path.strip(HOLE):
            reading.act(act, f"{name}, a file named while running")
        elif "://" in path and act == "reads":
            reading.fetches(host_of(path), _readable(path))
        elif act == "deletes":
            reading.deletes(_readable(path), whole=name.partition(":")[0].lower().endswith(_WHOLE))
        else:
            {"reads": reading.reads, "writes": reading.writes}[act](_readable(path))

    # -- the network --------------------------------------------------------------------------------------

    def _network(self, deed: Deed, name: str, call: Call | None, operands: Values) -> None:
        deletes = name.partition(":")[0].endswith(".delete") or (
            call is not None and self._option(deed, call, "method", "") in {"DELETE", "delete"}
        )
        if deletes:
            self.reading.reaches("deletes", f"{name} deletes")
        hands_over = deed.act == "sends" or (deed.act != "connects" and self._hands_over(deed, call))
        for operand in operands:
            for address in _paths(operand)[:1]:
                if deletes:
                    self.reading.has_deleted(host_of(address), _readable(address))
                self._asks(deed, name, address, hands_over=hands_over or HOLE in address.partition("?")[2])

    def _asks(self, deed: Deed, name: str, address: str, *, hands_over: bool) -> None:
        host = host_of(address)
        told = _readable(address) if address.strip(HOLE) else ""
        if deed.act == "connects":
            if host and self.reading.boundary.place(host) != "outside":
                self.reading.sends(host, told)
            else:
                self.reading.act("connects", f"{name} {shown(told)}".strip(), told)
        elif hands_over:
            self.reading.sends(host, told)
        else:
            self.reading.fetches(host, told or name)

    def _hands_over(self, deed: Deed, call: Call | None) -> bool:
        """Return whether a request carries something out."""
        if call is None:
            return deed.act == ASKS
        method = self._option(deed, call, "method", "get")
        if not isinstance(method, str) or method.lower() not in _SAFE_METHODS:
            return True
        given = [call.keywords[key] for key in deed.carries if key in call.keywords]
        given += [
            call.arguments[int(key)]
            for key in deed.carries
            if key.isdecimal() and int(key) < len(call.arguments)
        ]
        if any(self.program.values(value) != (None,) for value in given):
            return True
        if any(key in keyed.items for keyed in self._tables(call) for key in deed.carries):
            return True
        return "params" in call.keywords and not _is_constant(self.program.values(call.keywords["params"]))

    # -- code within code ---------------------------------------------------------------------------------

    def _code(self, deed: Deed, name: str, operands: Values) -> None:
        for operand in operands[:_MAX_TEXTS]:
            if isinstance(operand, Several) and (operand.items or operand.open_ended):
                self._nested(deed, name, command_line(operand))
            elif is_known(operand):
                self._nested(deed, name, operand)
            elif isinstance(operand, Function | bool) or operand is None:
                continue
            elif deed.act == "hides":
                self.reading.hides(f"{name} of what is put together while running")
            elif deed.act != "computes":
                self.reading.act(deed.act, f"{name} of what is put together while running")

    def _words(self, deed: Deed, call: Call, operands: Values) -> Values:
        """Return a command with its further words, which are arguments of their own."""
        further: list[Values] = []
        more = False
        for argument in call.arguments[deed.words :]:
            values = self.program.values(argument)
            several = next((value for value in values if isinstance(value, Several)), None)
            if several is not None:
                further += several.items
                more = more or several.open_ended
            elif not isinstance(values[0], Keyed | Function):
                further.append(values)
        if not further and not more:
            return operands
        return (Several([operands or (UNKNOWN,), *further], open_ended=more),)

    def _nested(self, deed: Deed, name: str, text: str) -> None:
        reading = self.reading
        if deed.code not in {"shell", "sql"} and HOLE in text:
            reading.hides(f"{name} of what is put together while running")
        if text in self.program.decoded:
            sure = POSSIBLE if text.isascii() and "".join(text.split()).isprintable() else LIKELY
            reading.brings_code([shown(text)], "run code that an encoding hides", sure)
        depth = reading.depth
        try:
            reading.nested(deed.code, text.replace(HOLE, _STAND_INS.get(deed.code, "computed")))
        except UnreadableError as problem:
            if reading.budget < 0:
                raise
            reading.depth = depth
            reading.hides(f"{name}: {problem}")


def _texts(values: Values) -> list[str]:
    return [as_text(value) for value in values[:_MAX_TEXTS]] or [HOLE]


def _paths(value: object) -> list[str]:
    """Return the texts of an operand: one, or those of a list, or of the table that describes an address."""
    if isinstance(value, Several):
        found = [as_text(choice) for choices in value.items[:_MAX_TEXTS] for choice in choices[:_MAX_TEXTS]]
        return [*found, HOLE] if value.open_ended or not found else found
    if isinstance(value, Keyed):
        named = [value.items[key] for key in ("url", "host", "hostname", "path") if key in value.items]
        return [as_text(choice) for choices in named[:1] for choice in choices] or [HOLE]
    return [as_text(value)]


def _is_constant(values: Values) -> bool:
    for value in values:
        inner = value.items if isinstance(value, Several) else ()
        inner = list(value.items.values()) if isinstance(value, Keyed) else inner
        if inner and not all(map(_is_constant, inner)):
            return False
        if (
            not isinstance(value, Several | Keyed)
            and HOLE in as_text(value)
            and not isinstance(value, bool | None)
        ):
            return False
    return True


def _readable(text: str) -> str:
    return text.replace(HOLE, "{}")
