"""The guard itself: propose a call, then confirm or release it.

A proposal is judged on where the run stands, joined with every call that is under way. What is allowed, and what
a person is being asked about, is reserved until it is confirmed with its result, or released. A run that is part of
another one is judged on both, and counts for both. Nothing that goes wrong lets a call through, unless the policy
says so in as many words.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.errors import LostStateError, SafetyDriftError
from safetydrift.guard.asking import MAX_SHOWN, Answer, Question, answered
from safetydrift.guard.asynchronous import AsyncGuard
from safetydrift.guard.decision import Decision
from safetydrift.guard.default_policy import default_policy
from safetydrift.guard.failing import Failures, said
from safetydrift.guard.judging import Judging, after_asking, answer_of, on_the_same_task
from safetydrift.guard.keeping import MAX_ATTEMPTS, Keeper
from safetydrift.guard.opening import opened_log, opened_policy, opened_store, opened_telemetry
from safetydrift.guard.policy import GuardPolicy
from safetydrift.guard.redacting import Redactor
from safetydrift.guard.session import CONFIRMED, REFUSED, RELEASED, Given
from safetydrift.guard.stores.memory import MemoryStore
from safetydrift.guard.values import as_text, call_digest, plain_call
from safetydrift.monitor.foresight import monitor_for
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike
    from pathlib import Path
    from typing import Any, Self

    from safetydrift.effects.labeler import Labeler
    from safetydrift.guard.decision_log import DecisionLog
    from safetydrift.guard.policy_file import WatchedPolicy
    from safetydrift.guard.session import Session
    from safetydrift.guard.stores.protocol import Store
    from safetydrift.guard.telemetry import Telemetry
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.model import Model
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.trace import ToolCall


class Guard(AsyncGuard):
    """Decides about every call of any number of runs; what may wait has a coroutine beside it (`AsyncGuard`).

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
    telemetry
        Who is told of decisions (`safetydrift.guard.telemetry`). What fails there changes no decision.

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
        telemetry: Telemetry | None = None,
    ) -> None:
        self.monitor: LookupMonitor = monitor_for(model, None, labeler)
        self.model_identity = f"{model.space.identity}/{model.notion.value}/{'+' if model.hazard else '-'}"
        self.store: Store = MemoryStore() if store is None else store
        self.store.bind(self.model_identity, model.space)
        self.log = log
        self.approver = approver
        self.telemetry, self._telemetry_failed = telemetry, False
        self.tools: set[str] = set(tools)
        self.redactor = Redactor(self.monitor.labeler.scan)
        self._keeper = Keeper(self.store)
        self._judging = Judging(self.monitor, self.redactor)
        self._failures = Failures(self.redactor)
        self._watched: WatchedPolicy | None = None
        self._policy: GuardPolicy
        if policy is None or isinstance(policy, GuardPolicy):
            self._policy = default_policy(model.space) if policy is None else policy
            self._usable(self._policy)
        else:
            self._watched = policy
            self._policy = policy.current(self._usable)
            self._usable(self._policy)
        self._tell_of_openings()

    @classmethod
    def load(
        cls,
        model: str | PathLike[str] = "default",
        policy: GuardPolicy | str | PathLike[str] | None = None,
        store: Store | str | PathLike[str] | None = None,
        *,
        log: DecisionLog | str | PathLike[str] | None = None,
        config: str | Path | None = None,
        approver: Any = None,
        tools: Iterable[str] = (),
        telemetry: Telemetry | bool = False,
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
        telemetry
            Whether OpenTelemetry is told of decisions, or a `Telemetry` that says how.

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
            opened_policy(policy),
            opened_store(store),
            log=opened_log(log),
            approver=approver,
            labeler=labeler,
            tools=tools,
            telemetry=opened_telemetry(telemetry),
        )

    @staticmethod
    def remote(url: str = "", token: str = "", **options: Any) -> Guard:
        """Return a guard that asks a team's service (`safetydrift serve`) about every call.

        Parameters
        ----------
        url, token
            Of the service; what the environment variables SAFETYDRIFT_URL and SAFETYDRIFT_TOKEN say if not given.
        options
            ``policy`` (what becomes of a call when the service cannot be asked; a refusal by default), ``agent``,
            ``person`` and ``framework`` (shown on its page), ``approver``, ``tools``, ``plain_http``.

        Raises
        ------
        ValueError
            If the address is none, or the token would go over a network in clear.
        """
        from safetydrift.guard.remote import RemoteGuard  # noqa: PLC0415  # only where somebody else decides

        return RemoteGuard(url, token, **options)

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
            What the user asked for, in his words. Without it nobody can be said to have named a value; a part of
            another run is then taken to work on the task of the whole.
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

        def start() -> TrajectoryState:
            begun = self.monitor.start(category, task, pipeline)
            return begun if task or not parent else on_the_same_task(begun, self._keeper.read(parent)[0])

        self._keeper.open(key, parent, start)

    def hear(self, key: str, text: str) -> None:
        """Take note of what the user says during a run.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there, or cannot be read or kept.
        """

        def hear(session: Session) -> None:
            session.position = self.monitor.hear(session.position, text)

        self._keeper.change((key,), hear)

    def end(self, key: str) -> None:
        """Forget a run."""
        self._keeper.forget(key)

    def quiet(self, key: str) -> None:
        """Take note that no call of a run is under way any more, for instance because the user is speaking again.

        What a person was asked about and no result came of was not made; what was allowed is taken for made.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there, or cannot be read or kept.
        """

        def quiet(session: Session) -> None:
            for call_id, pending in list(session.reserved.items()):
                del session.reserved[call_id]
                given = session.answers.get(call_id)
                if given is not None and given.decision.asks:
                    session.settle(call_id, RELEASED)
                else:
                    self._judging.advance(session, pending, None, None)
                    session.settle(call_id, CONFIRMED)

        self._keeper.change((key,), quiet)

    def standing(self, key: str) -> tuple[TrajectoryState, Verdict]:
        """Return where a run stands, calls under way included, and the finding about it.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there or cannot be read.
        """
        session, _ = self._keeper.read(key)
        position = self._judging.joined(session)
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

    def answer(self, key: str, call_id: str, approved: bool | None, by: str = "") -> Decision:
        """Report what a person said about a call that `propose` answered with ASK; None if nobody answered.

        The first answer counts; after that, and for calls that were not asked about, the answer given before is
        returned. Nothing that goes wrong raises.
        """
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
            why = f"the result of call {call_id[:80]!r} could not be recorded: {said(problem)}"
            self._event("doubt", key, call_id, self._keeper.doubt(key, why))
            return None

    def release(self, key: str, call_id: str) -> None:
        """Record that a call was not made after all. Nothing raises."""

        def release(session: Session) -> None:
            for one in (call_id, _rolled(key, call_id)):
                session.reserved.pop(one, None)
            session.settle(call_id, RELEASED)

        try:
            self._keeper.change(self._keeper.lineage(key), release)
        except Exception as problem:  # noqa: BLE001  # the reservation stays, which is the cautious side
            self._event("not released", key, call_id, said(problem))

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
        """The policy in force. Another one can be set; ValueError if it cannot be used."""
        if self._watched is not None:
            fresh = self._watched.current(self._usable)
            if fresh is not self._policy:
                self._policy = fresh
                self._event("policy", detail=f"{fresh.name!r} is in force")
                self._tell_of_openings()
        return self._policy

    @policy.setter
    def policy(self, policy: GuardPolicy) -> None:
        policy.check(self.monitor.model.space)
        self._policy, self._watched = policy, None
        self._event("policy", detail=f"{policy.name!r} is in force")
        self._tell_of_openings()

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
            failed = self._failures.before(key, call_id, digest) if self._failures else None
            if failed is not None:
                return replace(failed, repeated=True), call_id
            decision, position = self._judged(key, call, call_id, digest, policy, started)
        except Exception as problem:  # noqa: BLE001  # whatever it is, the policy says what becomes of the call
            decision = self._failures.decide(self._policy, key, call_id, digest, problem, started)
        if not decision.repeated:
            decision = self._recorded(decision, call, position)
        return decision, decision.call_id

    def _judged(  # noqa: PLR0917  # what is known of the call
        self, key: str, call: ToolCall, call_id: str, digest: str, policy: GuardPolicy, started: float
    ) -> tuple[Decision, TrajectoryState]:
        keeper, judging = self._keeper, self._judging
        line = keeper.lineage(key)
        with keeper.locked(line):
            for _ in range(MAX_ATTEMPTS):
                read = keeper.trusted(line)
                session = read[0][0]
                call_id = call_id or f"#{session.proposals + 1}"
                given = session.answers.get(call_id)
                if given is not None and given.digest == digest:
                    return replace(given.decision, repeated=True), session.position
                names = [call_id if one.key == key else _rolled(key, call_id) for one, _ in read]
                judged = [
                    judging.judge(one, call, name, policy) for (one, _), name in zip(read, names, strict=True)
                ]
                decision = judging.decide(judged, call, policy, self.tools, started, key, call_id)
                if decision.latency > policy.timeout:
                    raise TimeoutError(
                        f"the decision took longer than the {policy.timeout} s that it may take"
                    )
                for (one, _), name, judgement in zip(read, names, judged, strict=True):
                    if decision.refused:
                        one.reserved.pop(name, None)  # of another call under the same id
                    else:
                        judging.reserve(one, name, judgement.pending)
                session.proposals += 1
                session.remember(call_id, answer_of(decision, digest))
                if keeper.all_kept(read):
                    return decision, judged[0].position
        raise keeper.crowded(key)

    def _confirm(
        self, key: str, call_id: str, result: object, error: object, call: ToolCall | None
    ) -> Verdict | None:
        text = None if result is None else as_text(result)
        failure = None if error is None else as_text(error)
        call = None if call is None else plain_call(call)
        keeper, judging = self._keeper, self._judging
        line = keeper.lineage(key)
        with keeper.locked(line):
            read = keeper.read(key)
            given = read[0].answers.get(call_id)
            if given is not None and given.status == CONFIRMED:
                return self.monitor.verdict(read[0].position)
            unexpected = given is None or given.status == REFUSED

            found: Verdict | None = None

            def confirm(one: Session) -> None:
                nonlocal found
                mine = one.key == key
                pending = one.reserved.pop(call_id if mine else _rolled(key, call_id), None)
                if mine or unexpected or pending is not None:
                    pending = pending or judging.unexpected(one, call)
                    found = judging.advance(one, pending, text, failure)
                if mine and given is None:
                    nothing = Decision(Intervention.ALLOW, rule="never proposed", key=key, call_id=call_id)
                    one.remember(call_id, Given("", nothing, CONFIRMED))
                if mine:
                    one.settle(call_id, CONFIRMED)

            for one in line[:0:-1]:  # the part last: once it says so, all of them have it
                keeper.kept(one, confirm)
            keeper.kept(key, confirm, read)
        if unexpected:
            self._event("made without being allowed", key, call_id)
        return found

    def _answered(self, key: str, call_id: str, answer: Answer) -> Decision:
        """Make the decision final that waited for a person."""
        approved = answer.approved
        outcome = Intervention.ALLOW if approved else Intervention.BLOCK
        if approved is None:
            outcome = self._policy.on_unanswered
        by = answer.by or ("nobody" if approved is None else "a person")
        unjudged = self._failures.last(key, call_id) if self._failures else None
        if unjudged is not None:
            digest, decision = unjudged
            if not decision.asks:
                return replace(decision, repeated=True)
            decision = after_asking(decision, outcome, approved, by)
            self._failures.keep(decision, digest)
            return self._recorded(decision)
        final: list[Decision] = []

        def settle(session: Session) -> None:
            given = session.answers.get(call_id)
            if given is None:
                raise LostStateError(key)
            final.clear()
            if not given.decision.asks:
                final.append(replace(given.decision, repeated=True))
                return
            final.append(after_asking(given.decision, outcome, approved, by))
            session.remember(call_id, answer_of(final[0], given.digest))
            if final[0].refused:
                session.reserved.pop(call_id, None)

        try:
            line = self._keeper.lineage(key)
            self._keeper.change(line[:1], settle)
            if final[0].refused:
                self._keeper.change(line[1:], lambda one: _drop(one, _rolled(key, call_id)))
        except Exception as problem:  # noqa: BLE001  # a yes that cannot be kept is no yes
            failed = self._failures.decide(self._policy, key, call_id, "", problem, perf_counter())
            return self._recorded(failed)
        return final[0] if final[0].repeated else self._recorded(final[0])

    # -- telling ------------------------------------------------------------------------------------------

    def _question(self, key: str, call_id: str, call: ToolCall, decision: Decision) -> Question:
        try:
            position, verdict = self.standing(key)
            so_far = self.redactor.text(self.monitor.explain(position, verdict))
        except SafetyDriftError as problem:
            so_far = f"not known ({said(problem)})"
        call = plain_call(call)
        effect = decision.explanation or "what it does could not be judged"
        return Question(
            key=key,
            call_id=call_id,
            tool=call.name,
            arguments=self.redactor.arguments(call.args, MAX_SHOWN),
            decision=decision,
            trajectory=so_far,
            permits=f"this one call of {call.name}, once ({effect})",
        )

    def _recorded(
        self, decision: Decision, call: ToolCall | None = None, position: TrajectoryState | None = None
    ) -> Decision:
        """Record a decision and tell of it; see `_logged`."""
        decision = self._logged(decision, call, position)
        if self.telemetry is not None:
            try:
                self.telemetry.decided(decision, call, self)
            except Exception as problem:  # noqa: BLE001  # whoever looks on has no say
                if not self._telemetry_failed:  # said once, so that it cannot fill the log
                    self._event("telemetry failed", decision.key, decision.call_id, said(problem))
                self._telemetry_failed = True
        return decision

    def _logged(
        self, decision: Decision, call: ToolCall | None, position: TrajectoryState | None
    ) -> Decision:
        """Record a decision; one that cannot be recorded is not given, unless the policy allows what fails."""
        if self.log is None:
            return decision
        try:
            self.log.decision(decision, call, position, self)
        except Exception as problem:  # noqa: BLE001  # a full disk, for one
            if decision.refused or self._policy.on_error is Intervention.ALLOW:
                return decision
            failed = self._failures.decide(
                self._policy, decision.key, decision.call_id, "", problem, perf_counter()
            )
            self._withdraw(decision, failed)
            return failed
        return decision

    def _withdraw(self, decision: Decision, failed: Decision) -> None:
        """Take back an answer that could not be recorded."""
        key, call_id = decision.key, decision.call_id

        def withdraw(session: Session) -> None:
            given = session.answers.get(call_id)
            if session.key != key:
                _drop(session, _rolled(key, call_id))
            elif given is not None:
                _drop(session, call_id)
                session.remember(call_id, answer_of(failed, given.digest))

        try:
            self._keeper.change(self._keeper.lineage(key), withdraw)
        except Exception:  # noqa: BLE001  # the reservation stays, which is the cautious side
            return

    def _event(self, what: str, key: str = "", call_id: str = "", detail: str = "") -> None:
        if self.log is not None:
            from contextlib import suppress  # noqa: PLC0415  # seldom

            with suppress(Exception):
                self.log.event(what, key=key, call_id=call_id, detail=self.redactor.text(detail))

    def _usable(self, policy: GuardPolicy) -> None:
        policy.check(self.monitor.model.space)

    def _tell_of_openings(self) -> None:
        names = self._policy.opens_on_failure
        if names:
            from warnings import warn  # noqa: PLC0415  # seldom

            what = f"the guard fails open: calls that it cannot judge are allowed by {', '.join(names)}"
            self._event("fails open", detail=what)
            warn(what, RuntimeWarning, stacklevel=3)


def _rolled(key: str, call_id: str) -> str:
    """Return the name under which a call of a part is reserved in the whole."""
    return f"{key}\x1f{call_id}"


def _drop(session: Session, under: str) -> None:
    session.reserved.pop(under, None)
