"""The guard itself: propose a call, then confirm or release it.

A proposal is judged on where the run stands, joined with every call that is under way. What is allowed, and what
a person is being asked about, is reserved until it is confirmed with its result, or released. A run that is part of
another one is judged on both, and counts for both. Nothing that goes wrong lets a call through, unless the policy
says so in as many words.
"""

from __future__ import annotations

from _thread import allocate_lock
from math import isnan, nan
from time import perf_counter
from typing import Self

from safetydrift.errors import LostStateError, SafetyDriftError, StoreError
from safetydrift.guard.asking import MAX_SHOWN, Question, answered, answered_async
from safetydrift.guard.decision import Decision
from safetydrift.guard.policy import STRICTNESS, Call, GuardPolicy
from safetydrift.guard.redacting import Redactor
from safetydrift.guard.safer import safer_tool
from safetydrift.guard.session import (
    CONFIRMED,
    MAX_RESERVED,
    OPEN,
    REFUSED,
    RELEASED,
    Given,
    Reservation,
    Session,
)
from safetydrift.guard.stores.memory import MemoryStore
from safetydrift.guard.values import MAX_NAME, as_text, call_digest, plain_call
from safetydrift.monitor.foresight import monitor_for
from safetydrift.monitor.verdict import Intervention
from safetydrift.states.trajectory import Move
from safetydrift.trace import Step, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike
    from typing import Any

    from safetydrift.effects.labeler import Labeler
    from safetydrift.guard.asking import Answer
    from safetydrift.guard.decision_log import DecisionLog
    from safetydrift.guard.policy import Finding
    from safetydrift.guard.policy_file import WatchedPolicy
    from safetydrift.guard.stores.protocol import Store
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.model import Model
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.effect import Effect

MAX_ATTEMPTS = 50
"""How often a decision is made anew because somebody else has written in between."""
MAX_DEPTH = 8
"""How many runs may stand inside each other."""
_STRIPES = 64
_MAX_NOTED = 4096
MAX_TOOLS = 512
"""Names of tools that a run is remembered to have used; there is no reason to have more."""


class _Locked:
    """Holds some locks, taken in one order everywhere."""

    __slots__ = ("_held",)

    def __init__(self, locks: list[Any]) -> None:
        self._held = locks

    def __enter__(self) -> None:
        for lock in self._held:
            lock.acquire()

    def __exit__(self, *_: object) -> None:
        for lock in self._held:
            lock.release()


class Guard:
    """Decides about every call of any number of runs.

    Parameters
    ----------
    model
        The fitted model.
    policy
        When to intervene and how: a `GuardPolicy`, or a `WatchedPolicy` that follows its file. The default asks where
        the model's own thresholds alarm, and blocks if nobody can be asked.
    store
        Where the state of runs is kept; in memory if not given.
    log
        Where decisions are recorded; nowhere if not given.
    approver
        Who is asked (`safetydrift.guard.asking`). Without one, `propose` answers ASK and leaves it to the caller, who
        reports with `answer`.
    labeler
        Reads what a call does; by default with the catalogue the model was fitted with.
    tools
        Names of the tools the agent has, from which a safer one may be named; `wrap` adds to them.

    Raises
    ------
    ValueError
        If the policy names something that the model's state space does not have.

    Examples
    --------
    >>> from safetydrift import ToolCall
    >>> guard = Guard.load()
    >>> guard.session("run-1", task="What is new?", category="workspace")
    >>> decision = guard.propose("run-1", ToolCall("read_inbox"), "call-1")
    >>> decision.allowed
    True
    >>> verdict = guard.confirm("run-1", "call-1", "3 new messages")
    """

    def __init__(
        self,
        model: Model,
        policy: GuardPolicy | WatchedPolicy | None = None,
        store: Store | None = None,
        *,
        log: DecisionLog | None = None,
        approver: Any = None,
        labeler: Labeler | None = None,
        tools: Iterable[str] = (),
    ) -> None:
        self.monitor: LookupMonitor = monitor_for(model, None, labeler)
        self.model_identity = f"{model.space.identity}/{model.notion.value}/{'+' if model.hazard else '-'}"
        self.store: Store = MemoryStore() if store is None else store
        self.store.bind(self.model_identity, model.space)
        self.log = log
        self.approver = approver
        self.tools: set[str] = set(tools)
        self.redactor = Redactor(self.monitor.labeler.scan)
        self._space = model.space
        self._watched: WatchedPolicy | None = None
        self._locks = tuple([allocate_lock() for _ in range(_STRIPES)])
        self._parents: dict[str, str] = {}
        self._failures: dict[tuple[str, str, str], Decision] = {}
        self._doubts: dict[str, str] = {}
        self._set_policy(GuardPolicy() if policy is None else policy)

    @classmethod
    def load(
        cls,
        model: str | PathLike[str] = "default",
        policy: GuardPolicy | str | PathLike[str] | None = None,
        store: Store | str | PathLike[str] | None = None,
        *,
        log: DecisionLog | str | PathLike[str] | None = None,
        config: str | PathLike[str] | None = None,
        approver: Any = None,
        tools: Iterable[str] = (),
    ) -> Guard:
        """Return a guard from files.

        Parameters
        ----------
        model
            A model file; ``"default"`` is the one that comes with SafetyDrift.
        policy
            A policy, or a file with one (TOML or JSON) that is read again when it changes.
        store
            A store, or the path of a SQLite file.
        log
            A decision log, or the path of one.
        config
            What is inside the organisation (docs/configuration.md).
        approver, tools
            As for the class.

        Raises
        ------
        SafetyDriftError
            If one of the files cannot be read or believed: a guard that cannot work does not start.
        """
        from safetydrift.formats.model_file import load_model  # noqa: PLC0415  # a guard may be built without files

        loaded = load_model(model)
        labeler = None
        if config is not None:
            from safetydrift.formats.config_file import load_config  # noqa: PLC0415  # reads TOML

            labeler = load_config(config).labeler(loaded.catalogue)
        return cls(
            loaded,
            _opened_policy(policy),
            _opened_store(store),
            log=_opened_log(log),
            approver=approver,
            labeler=labeler,
            tools=tools,
        )

    # -- runs ---------------------------------------------------------------------------------------------

    def session(
        self, key: str, task: str = "", *, category: str = "", pipeline: str = "", parent: str = ""
    ) -> None:
        """Open a run; if it is there already, it goes on from where it stands.

        Parameters
        ----------
        key
            Its name, for all later calls.
        task
            What the user asked for, in his words. Without it nobody can be said to have named a value.
        category
            The kind of task, if the model knows kinds.
        pipeline
            The name of the model that acts, with the defence around it.
        parent
            The key of the run that this one is a part of: an agent that was started by another. It has to be open.
            What the part does counts for the whole, and is judged on both.

        Raises
        ------
        LostStateError
            If the parent is not there.
        SnapshotError, StoreError
            If the state cannot be read or kept.
        """
        with self._locked((key,)):
            for _ in range(MAX_ATTEMPTS):
                if self.store.read(key) is not None:
                    return
                if parent:
                    self._lineage(parent)  # there has to be one
                position = self.monitor.start(category, task, pipeline)
                if self.store.write(key, Session(key, position, parent), 0):
                    self._doubts.pop(key, None)
                    self._parents[key] = parent
                    return
        raise StoreError(f"the run {key!r} could not be opened: others keep writing to it")

    def hear(self, key: str, text: str) -> None:
        """Take note of what the user says during a run.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there, or cannot be read or kept.
        """

        def hear(session: Session) -> None:
            session.position = self.monitor.hear(session.position, text)

        self._change(key, hear)

    def end(self, key: str) -> None:
        """Forget a run."""
        self.store.remove(key)
        self._parents.pop(key, None)
        self._doubts.pop(key, None)

    def standing(self, key: str) -> tuple[TrajectoryState, Verdict]:
        """Return where a run stands, calls under way included, and the finding about it.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there or cannot be read.
        """
        session, _ = self._read(key)
        position = self._joined(session, "")
        return position, self.monitor.verdict(position)

    # -- calls --------------------------------------------------------------------------------------------

    def propose(self, key: str, call: ToolCall, call_id: str = "") -> Decision:
        """Decide about a call before it is made, and reserve it if it may be made.

        Nothing that goes wrong raises: it yields what the policy says of errors. If the decision is to ask and the
        guard has an approver, that one is asked, and the decision is final.

        Parameters
        ----------
        key
            An open run.
        call
            The call as proposed.
        call_id
            Its identifier: the same call under the same one gets the same answer, always. One is made up if it is
            empty; the decision holds it.
        """
        decision, call_id = self._propose(key, call, call_id)
        if decision.asks and self.approver is not None:
            question = self._question(key, call_id, call, decision)
            said = answered(self.approver, question, self.policy.ask_timeout)
            return self._answered(key, call_id, said)
        return decision

    async def apropose(self, key: str, call: ToolCall, call_id: str = "") -> Decision:
        """As `propose`, without blocking the loop while a store or a person is waited for."""
        decision, call_id = await self._off_loop(self._propose, key, call, call_id)
        if decision.asks and self.approver is not None:
            question = await self._off_loop(self._question, key, call_id, call, decision)
            said = await answered_async(self.approver, question, self.policy.ask_timeout)
            return await self._off_loop(self._answered, key, call_id, said)
        return decision

    def answer(self, key: str, call_id: str, approved: bool | None, by: str = "") -> Decision:
        """Report what a person said about a call that `propose` answered with ASK; None if nobody answered.

        The first answer counts; after that, and for calls that were not asked about, the answer given before is
        returned. Nothing that goes wrong raises.
        """
        from safetydrift.guard.asking import Answer  # noqa: PLC0415  # the name is needed as a value here only

        return self._answered(key, call_id, Answer(approved, by))

    def confirm(
        self,
        key: str,
        call_id: str,
        result: object = None,
        *,
        error: object = None,
        call: ToolCall | None = None,
    ) -> Verdict | None:
        """Record that a call was made, with what came back.

        Nothing raises. If the result cannot be recorded, every later call of the run gets what the policy says of
        lost states.

        Parameters
        ----------
        result
            What came back: a text, or anything that can be written as one.
        error
            The tool's own error when the call failed.
        call
            The call itself, for one that was never proposed (a tool that the provider runs by itself).

        Returns
        -------
        Verdict or None
            The finding about where the run stands now; None if nothing could be recorded. A result that comes
            twice counts once.
        """
        try:
            return self._confirm(key, call_id, result, error, call)
        except Exception as problem:  # noqa: BLE001  # a result must not break the agent's loop
            self._doubt(key, f"the result of call {call_id[:80]!r} could not be recorded: {_said(problem)}")
            return None

    def release(self, key: str, call_id: str) -> None:
        """Record that a call was not made after all. Nothing raises."""

        def release(session: Session) -> None:
            for one in (call_id, _rolled(key, call_id)):
                session.reserved.pop(one, None)
            session.settle(call_id, RELEASED)

        try:
            self._change(key, release, up=True)
        except Exception as problem:  # noqa: BLE001  # the reservation stays, which is the cautious side
            self._event("not released", key, call_id, _said(problem))

    async def asession(self, key: str, task: str = "", **options: str) -> None:
        """As `session`, without blocking the loop."""
        await self._off_loop(lambda: self.session(key, task, **options))

    async def ahear(self, key: str, text: str) -> None:
        """As `hear`, without blocking the loop."""
        await self._off_loop(self.hear, key, text)

    async def aend(self, key: str) -> None:
        """As `end`, without blocking the loop."""
        await self._off_loop(self.end, key)

    async def aanswer(self, key: str, call_id: str, approved: bool | None, by: str = "") -> Decision:
        """As `answer`, without blocking the loop."""
        return await self._off_loop(self.answer, key, call_id, approved, by)

    async def aconfirm(
        self,
        key: str,
        call_id: str,
        result: object = None,
        *,
        error: object = None,
        call: ToolCall | None = None,
    ) -> Verdict | None:
        """As `confirm`, without blocking the loop."""
        return await self._off_loop(lambda: self.confirm(key, call_id, result, error=error, call=call))

    async def arelease(self, key: str, call_id: str) -> None:
        """As `release`, without blocking the loop."""
        await self._off_loop(self.release, key, call_id)

    # -- tools --------------------------------------------------------------------------------------------

    def wrap(self, tools: Any, key: str = "", **options: Any) -> Any:
        """Return tools that ask the guard before they run.

        Parameters
        ----------
        tools
            A callable, or a list, tuple or mapping of them; coroutine functions stay such.
        key
            The run they belong to. If empty: that of the surrounding `running` block, or else a run of this guard's
            own.
        options
            As for `safetydrift.guard.wrapping.wrap`.

        Notes
        -----
        A refused call raises `CallRefusedError`, whose message tells the model why.
        """
        from safetydrift.guard.wrapping import wrap  # noqa: PLC0415  # looks at signatures; hooks have none

        return wrap(self, tools, key, **options)

    def tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Guard a function; for use as a decorator."""
        wrapped: Callable[..., Any] = self.wrap(function)
        return wrapped

    def running(self, key: str, task: str = "", **options: str) -> Any:
        """Return a context in which wrapped tools belong to a run; it is opened with these words if it is new."""
        from safetydrift.guard.wrapping import Running  # noqa: PLC0415  # as above

        return Running(self, key, task, options)

    # -- policy and housekeeping --------------------------------------------------------------------------

    @property
    def policy(self) -> GuardPolicy:
        """The policy in force."""
        if self._watched is not None:
            fresh = self._watched.current(self._usable)
            if fresh is not self._policy:
                self._policy = fresh
                self._event("policy", detail=f"{fresh.name!r} is in force")
                self._tell_of_openings()
        return self._policy

    @property
    def policy_name(self) -> str:
        """What the policy in force is called."""
        return self._policy.name

    def close(self) -> None:
        """Write out the decision log and let go of the store."""
        if self.log is not None:
            self.log.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- deciding -----------------------------------------------------------------------------------------

    def _propose(self, key: str, call: ToolCall, call_id: str) -> tuple[Decision, str]:
        started = perf_counter()
        digest = ""
        position: TrajectoryState | None = None
        try:
            policy = self.policy
            call = plain_call(call)
            digest = call_digest(call)
            failed = self._failures.get((key, call_id, digest)) if self._failures else None
            if failed is not None:
                return failed.replace(repeated=True), call_id
            decision, position = self._judged(key, call, call_id, digest, policy, started)
        except Exception as problem:  # noqa: BLE001  # whatever it is, the policy says what becomes of the call
            decision = self._failed(key, call_id, digest, problem, started)
        if not decision.repeated:
            decision = self._recorded(decision, call, position)
        return decision, decision.call_id

    def _judged(
        self, key: str, call: ToolCall, call_id: str, digest: str, policy: GuardPolicy, started: float
    ) -> tuple[Decision, TrajectoryState]:
        if self._doubts and key in self._doubts:
            raise LostStateError(key) from SafetyDriftError(self._doubts[key])
        line = self._lineage(key)
        with self._locked(line):
            for _ in range(MAX_ATTEMPTS):
                read = [self._read(one) for one in line]
                session = read[0][0]
                if not call_id:
                    call_id = f"#{session.proposals + 1}"
                given = session.answers.get(call_id)
                if given is not None and given.digest == digest:
                    return given.decision.replace(repeated=True), session.position
                findings = [self._finding(one, call, call_id, policy) for one, _ in read]
                decision = self._decision(key, call_id, call, policy, findings, started)
                if decision.latency > policy.timeout:
                    raise TimeoutError(
                        f"the decision took longer than the {policy.timeout} s that are allowed"
                    )
                self._reserve(read, call, call_id, digest, decision, findings)
                if all(self.store.write(one.key, one, version) for one, version in reversed(read)):
                    return decision, findings[0][1]
        raise StoreError(f"the state of {key!r} could not be kept: others keep writing to it")

    def _finding(
        self, session: Session, call: ToolCall, call_id: str, policy: GuardPolicy
    ) -> tuple[Finding, TrajectoryState, Effect, Verdict]:
        """Judge a call on where one run stands."""
        if session.doubt:
            raise LostStateError(session.key) from SafetyDriftError(session.doubt)
        monitor, space = self.monitor, self._space
        position = self._joined(session, call_id)
        effect = monitor.labeler.propose(call, position.history)
        index = space.effect_index(effect)
        verdict = monitor.foresee(position, Move(call.name, index, index, effect.kinds))
        standing = monitor.verdict(position).probability if self._asks_standing else nan
        asked = Call(call.name, position.category, effect, verdict, standing)
        return policy.decide(asked, monitor.policy, space), position, effect, verdict

    def _decision(
        self,
        key: str,
        call_id: str,
        call: ToolCall,
        policy: GuardPolicy,
        findings: list[tuple[Finding, TrajectoryState, Effect, Verdict]],
        started: float,
    ) -> Decision:
        """Return the decision that the strictest of the findings makes."""
        found, position, effect, verdict = findings[0]
        for other in findings[1:]:
            if STRICTNESS[other[0].intervention] > STRICTNESS[found.intervention]:
                found, position, effect, verdict = other
        intervention, would_be = found.intervention, None
        reason = explanation = alternative = ""
        if intervention is not Intervention.ALLOW:
            explanation = self.redactor.text(
                "; ".join([self.monitor.explain(position, verdict, effect), *effect.reasons])
            )
            alternative = safer_tool(self.monitor, position, call.name, self.tools, policy)
            reason = _reason(call, found, verdict, effect, alternative, self.redactor)
        if policy.shadow and intervention is not Intervention.ALLOW:
            would_be, intervention = intervention, Intervention.ALLOW
        return Decision(
            intervention,
            reason,
            found.rule,
            probability=verdict.probability,
            threshold=found.threshold,
            explanation=explanation,
            alternative=alternative,
            would_be=would_be,
            verdict=verdict,
            latency=perf_counter() - started,
            key=key,
            call_id=call_id,
        )

    def _reserve(
        self,
        read: list[tuple[Session, int]],
        call: ToolCall,
        call_id: str,
        digest: str,
        decision: Decision,
        findings: list[tuple[Finding, TrajectoryState, Effect, Verdict]],
    ) -> None:
        key = read[0][0].key
        for (session, _), (_, _, effect, _) in zip(read, findings, strict=True):
            under = call_id if session.key == key else _rolled(key, call_id)
            session.reserved.pop(under, None)  # another call under the same id
            if not decision.refused:
                if len(session.reserved) >= MAX_RESERVED:
                    self._take_for_made(session)
                session.reserved[under] = Reservation(call.name, effect)
        session = read[0][0]
        session.proposals += 1
        session.remember(call_id, Given(digest, decision, REFUSED if decision.refused else OPEN))

    def _take_for_made(self, session: Session) -> None:
        """Count the call that has been under way for longest as made: nobody said that it was not."""
        oldest = next(iter(session.reserved))
        self._fold(session, session.reserved.pop(oldest), None, None)
        session.settle(oldest, CONFIRMED)

    def _joined(self, session: Session, call_id: str) -> TrajectoryState:
        """Return where a run stands if every other call that is under way does what it was taken to do."""
        position = session.position
        for other, reservation in session.reserved.items():
            if other != call_id:
                effect = reservation.effect
                index = self._space.effect_index(effect)
                move = Move(reservation.tool, index, index, effect.kinds)
                history = position.history
                position = self.monitor.follow(position, move)
                if position.history is not history:
                    position = position.replace(history=history)
        return position

    # -- settling -----------------------------------------------------------------------------------------

    def _confirm(
        self, key: str, call_id: str, result: object, error: object, call: ToolCall | None
    ) -> Verdict | None:
        text = None if result is None else as_text(result)
        failure = None if error is None else as_text(error)
        call = None if call is None else plain_call(call)
        line = self._lineage(key)
        with self._locked(line):
            session, _ = self._read(key)
            given = session.answers.get(call_id)
            if given is not None and given.status == CONFIRMED:
                return self.monitor.verdict(session.position)
            unexpected = given is None or given.status == REFUSED

            def confirm(one: Session) -> None:
                under = call_id if one.key == key else _rolled(key, call_id)
                reservation = one.reserved.pop(under, None)
                if one.key == key or reservation is not None or unexpected:
                    self._fold(one, reservation, text, failure, call)
                if one.key == key and given is None:
                    nothing = Decision(Intervention.ALLOW, rule="never proposed", key=key, call_id=call_id)
                    one.remember(call_id, Given("", nothing, CONFIRMED))
                if one.key == key:
                    one.settle(call_id, CONFIRMED)

            for one in reversed(line):  # the part last: once it says so, all of them have it
                session = self._kept(one, confirm)
        if unexpected:
            self._event("made without being allowed", key, call_id)
        return self.monitor.verdict(session.position)

    def _fold(
        self,
        session: Session,
        reservation: Reservation | None,
        result: str | None,
        error: str | None,
        call: ToolCall | None = None,
    ) -> None:
        """Move a run on by a call that was made; one that nobody proposed is taken for the worst."""
        effect = None
        if reservation is not None:
            effect = reservation.effect
            call = ToolCall(reservation.tool)
        elif call is None:
            call = ToolCall("", malformed="")
        before = session.position
        after, _ = self.monitor.check(before, Step(call, result, error), effect)
        if after.past is not None and before.past is not None and len(after.past.tools) > MAX_TOOLS:
            after = after.replace(past=after.past._replace(tools=before.past.tools))
        session.position = after

    def _answered(self, key: str, call_id: str, said: Answer) -> Decision:
        """Make the decision final that waited for a person."""
        policy = self.policy
        approved = said.approved
        by = said.by or ("nobody" if approved is None else "a person")
        outcome = (
            policy.on_unanswered
            if approved is None
            else Intervention.ALLOW
            if approved
            else Intervention.BLOCK
        )
        final: list[Decision] = []

        def settle(session: Session) -> None:
            if session.key != key:
                if final and final[0].refused:
                    session.reserved.pop(_rolled(key, call_id), None)
                return
            final.clear()
            given = session.answers.get(call_id)
            if given is None:
                raise LostStateError(key)
            decision = given.decision
            if decision.asks:
                decision = _after_asking(decision, outcome, approved, by)
                refused = decision.refused
                if refused:
                    session.reserved.pop(call_id, None)
                session.remember(call_id, Given(given.digest, decision, REFUSED if refused else OPEN))
            else:
                decision = decision.replace(repeated=True)
            final.append(decision)

        unjudged = [found for found in self._failures if found[:2] == (key, call_id)]
        if unjudged:
            decision = self._failures[unjudged[-1]]
            if not decision.asks:
                return decision.replace(repeated=True)
            decision = self._failures[unjudged[-1]] = _after_asking(decision, outcome, approved, by)
            return self._recorded(decision, None, None)
        try:
            self._change(key, settle, up=True)
        except Exception as problem:  # noqa: BLE001  # a yes that cannot be kept is no yes
            return self._recorded(self._failed(key, call_id, "", problem, perf_counter()), None, None)
        return final[0] if final[0].repeated else self._recorded(final[0], None, None)

    # -- what goes wrong ----------------------------------------------------------------------------------

    def _failed(
        self, key: str, call_id: str, digest: str, problem: BaseException, started: float
    ) -> Decision:
        policy = self._policy
        if isinstance(problem, LostStateError):
            outcome, rule = policy.on_lost_state, "on_lost_state"
        elif isinstance(problem, TimeoutError):
            outcome, rule = policy.on_timeout, "on_timeout"
        else:
            outcome, rule = policy.on_error, "on_error"
        error = self.redactor.text(_said(problem)) if self._can_redact(problem) else type(problem).__name__
        would_be = None
        if policy.shadow and outcome is not Intervention.ALLOW:
            would_be, outcome = outcome, Intervention.ALLOW
        decision = Decision(
            outcome,
            f"The guard could not judge this call, and the policy's answer to that is to "
            f"{(would_be or outcome).value} it ({error}). Do not try to get around this; tell the user.",
            rule,
            error=error,
            would_be=would_be,
            latency=perf_counter() - started,
            key=key,
            call_id=call_id,
        )
        if call_id:
            if len(self._failures) >= _MAX_NOTED:
                self._failures.pop(next(iter(self._failures)), None)
            self._failures[key, call_id, digest] = decision
        return decision

    def _can_redact(self, _problem: BaseException) -> bool:
        try:
            self.redactor.text("probe")
        except Exception:  # noqa: BLE001  # the scanner itself may be what is broken
            return False
        return True

    def _doubt(self, key: str, why: str) -> None:
        """Note that the state of a run can no longer be trusted, where it is kept if possible."""
        if len(self._doubts) >= _MAX_NOTED:
            self._doubts.pop(next(iter(self._doubts)), None)
        self._doubts[key] = why

        def doubt(session: Session) -> None:
            session.doubt = why

        try:
            self._change(key, doubt, up=True)
        except Exception as problem:  # noqa: BLE001  # this process remembers it in any case
            why = f"{why}; {_said(problem)}"
        self._event("doubt", key, detail=why)

    # -- sessions and locks -------------------------------------------------------------------------------

    def _read(self, key: str) -> tuple[Session, int]:
        found = self.store.read(key)
        if found is None:
            raise LostStateError(key)
        return found

    def _lineage(self, key: str) -> tuple[str, ...]:
        """Return a key and those of the runs it is a part of, the whole last."""
        line = [key]
        parents = self._parents
        while True:
            parent = parents.get(line[-1])
            if parent is None:
                if len(parents) >= _MAX_NOTED:
                    parents.clear()
                parent = parents[line[-1]] = self._read(line[-1])[0].parent
            if not parent:
                return tuple(line)
            line.append(parent)
            if len(line) > MAX_DEPTH:
                raise LostStateError(key)

    def _locked(self, keys: tuple[str, ...]) -> _Locked:
        return _Locked([self._locks[one] for one in sorted({hash(key) % _STRIPES for key in keys})])

    def _change(self, key: str, change: Callable[[Session], None], *, up: bool = False) -> None:
        """Change a session, and those it is a part of if asked, until it is kept."""
        line = self._lineage(key) if up else (key,)
        with self._locked(line):
            for one in line:
                self._kept(one, change)

    def _kept(self, key: str, change: Callable[[Session], None]) -> Session:
        """Change one session, whose lock is held, until it is kept; return it."""
        for _ in range(MAX_ATTEMPTS):
            session, version = self._read(key)
            change(session)
            if self.store.write(key, session, version):
                return session
        raise StoreError(f"the state of {key!r} could not be kept: others keep writing to it")

    async def _off_loop(self, function: Callable[..., Any], *args: Any) -> Any:
        if not self.store.waits:
            return function(*args)
        import asyncio  # noqa: PLC0415  # only where a loop runs

        return await asyncio.to_thread(function, *args)

    # -- telling ------------------------------------------------------------------------------------------

    def _question(self, key: str, call_id: str, call: ToolCall, decision: Decision) -> Question:
        try:
            position, verdict = self.standing(key)
            so_far = self.redactor.text(self.monitor.explain(position, verdict))
        except SafetyDriftError as problem:
            so_far = f"not known ({_said(problem)})"
        return Question(
            key=key,
            call_id=call_id,
            tool=call.name[:MAX_NAME],
            arguments=self.redactor.arguments(call.args, MAX_SHOWN),
            decision=decision,
            trajectory=so_far,
            permits=f"this one call of {call.name[:MAX_NAME]}: {decision.explanation or 'its effect is unknown'}",
        )

    def _recorded(
        self, decision: Decision, call: ToolCall | None, position: TrajectoryState | None
    ) -> Decision:
        """Record a decision; one that cannot be recorded is not given."""
        if self.log is None:
            return decision
        try:
            self.log.decision(decision, call, position, self)
        except Exception as problem:  # noqa: BLE001  # a full disk, for one
            if decision.refused or self._policy.on_error is Intervention.ALLOW:
                return decision
            failed = self._failed(decision.key, decision.call_id, "", problem, perf_counter())
            self._withdraw(decision, failed)
            return failed
        return decision

    def _withdraw(self, decision: Decision, failed: Decision) -> None:
        """Take back an answer that could not be recorded."""

        def withdraw(session: Session) -> None:
            if session.key == decision.key and decision.call_id in session.answers:
                digest = session.answers[decision.call_id].digest
                session.reserved.pop(decision.call_id, None)
                session.remember(decision.call_id, Given(digest, failed, REFUSED))
            session.reserved.pop(_rolled(decision.key, decision.call_id), None)

        try:
            self._change(decision.key, withdraw, up=True)
        except Exception:  # noqa: BLE001  # the reservation stays, which is the cautious side
            return

    def _event(self, what: str, key: str = "", call_id: str = "", detail: str = "") -> None:
        if self.log is not None:
            from contextlib import suppress  # noqa: PLC0415  # seldom

            with suppress(Exception):
                self.log.event(what, key=key, call_id=call_id, detail=self.redactor.text(detail))

    def _set_policy(self, policy: GuardPolicy | WatchedPolicy) -> None:
        if isinstance(policy, GuardPolicy):
            self._policy = policy
            self._usable(policy)
        else:
            self._watched = policy
            self._policy = policy.current(self._usable)
        self._tell_of_openings()

    def _usable(self, policy: GuardPolicy) -> None:
        policy.check(self._space)

    def _tell_of_openings(self) -> None:
        self._asks_standing = any(
            not isnan(rule.standing)
            for rules in (self._policy.never, self._policy.always_ask, self._policy.when)
            for rule in rules
        )
        names = self._policy.opens_on_failure
        if names:
            from warnings import warn  # noqa: PLC0415  # seldom

            what = f"the guard fails open: calls that it cannot judge are allowed by {', '.join(names)}"
            self._event("fails open", detail=what)
            warn(what, RuntimeWarning, stacklevel=2)


def _rolled(key: str, call_id: str) -> str:
    """Return the name under which a call of a part is reserved in the whole."""
    return f"{key}\x1f{call_id}"


def _said(problem: BaseException) -> str:
    cause = problem.__cause__
    text = f"{type(problem).__name__}: {problem}"
    return (f"{text} ({cause})" if isinstance(cause, SafetyDriftError) else text)[:500]


def _after_asking(decision: Decision, outcome: Intervention, approved: bool | None, by: str) -> Decision:
    if outcome is Intervention.ALLOW:
        reason = ""
    elif approved is None:
        reason = f"Nobody answered when asked about this call, so it is refused. {decision.reason}"
    else:
        reason = f"A person was asked and said no. Do not try to get around this. {decision.reason}"
    return decision.replace(intervention=outcome, reason=reason.strip(), answered_by=by, repeated=False)


def _reason(
    call: ToolCall,
    found: Finding,
    verdict: Verdict,
    effect: Effect,
    alternative: str,
    redactor: Redactor,
) -> str:
    """Say why, in words that the model can act on."""
    parts = []
    if found.reason:
        parts.append(f"{found.reason}.")
    limit = "" if isnan(found.threshold) else f"; the limit is {found.threshold:.2f}"
    parts.append(f"With this call: {verdict}{limit}.")
    if effect.kinds:
        parts.append(f"It could complete: {', '.join(effect.kinds)}.")
    if effect.reasons:
        parts.append(f"{call.name}: {'; '.join(effect.reasons[:3])}.")
    if alternative:
        parts.append(f"Safer here: {alternative}.")
    parts.append(_ADVICE[found.intervention])
    return redactor.text(" ".join(parts))


_ADVICE = {
    Intervention.WARN: "Go on with care, and only with what the user asked for.",
    Intervention.ASK: "A person has to agree first.",
    Intervention.SUGGEST: "This call was refused; take the safer step, or tell the user why you cannot go on.",
    Intervention.BLOCK: "This call was refused. Do not try another way to the same end; tell the user.",
}


def _opened_policy(policy: Any) -> Any:
    if policy is None or isinstance(policy, GuardPolicy):
        return policy
    from safetydrift.guard.policy_file import WatchedPolicy  # noqa: PLC0415  # reads TOML

    return WatchedPolicy(policy)


def _opened_store(store: Any) -> Any:
    if store is None or hasattr(store, "read"):
        return store
    from safetydrift.guard.stores.sqlite import SQLiteStore  # noqa: PLC0415  # a run in one process needs none

    return SQLiteStore(store)


def _opened_log(log: Any) -> Any:
    if log is None or hasattr(log, "decision"):
        return log
    from safetydrift.guard.decision_log import DecisionLog  # noqa: PLC0415  # not every guard keeps one

    return DecisionLog(log)
