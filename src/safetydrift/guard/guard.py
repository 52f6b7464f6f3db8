"""The guard itself: propose a call, then confirm or release it.

A proposal is judged on where the run stands, joined with every call that is under way. What is allowed, and what
a person is being asked about, is reserved until it is confirmed with its result, or released. A run that is part of
another one is judged on both, and counts for both. Nothing that goes wrong lets a call through, unless the policy
says so in as many words.
"""

from __future__ import annotations

from os import PathLike, urandom
from time import perf_counter, time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.errors import LostStateError, SafetyDriftError
from safetydrift.formats.score_file import load_score
from safetydrift.guard.access import MAX_ATTEMPTS, SessionAccess
from safetydrift.guard.asking import MAX_SHOWN, Answer, Question, answered
from safetydrift.guard.asynchronous import AsyncGuard
from safetydrift.guard.default_policy import ASK_FROM, default_policy
from safetydrift.guard.failing import Failures, said
from safetydrift.guard.judging import Judging, after_asking, answer_of, on_the_same_task
from safetydrift.guard.policy import GuardPolicy
from safetydrift.guard.recording import Recorder
from safetydrift.guard.redacting import Redactor
from safetydrift.guard.session import CONFIRMED, OPEN, RELEASED, Given
from safetydrift.guard.stores.memory import MemoryStore
from safetydrift.guard.values import as_text, call_digest, plain_call, result_digest
from safetydrift.monitor.foresight import monitor_for
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Any, Self

    from safetydrift.authority.score import Score
    from safetydrift.effects.labeler import Labeler
    from safetydrift.guard.decision import Decision
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
    score
        Says how probable it is that a call is harm that nobody with authority asked for; by default the one that comes
        with SafetyDrift.

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
        score: Score | None = None,
    ) -> None:
        self.monitor: LookupMonitor = monitor_for(model, None, labeler, score=score or load_score())
        self.store: Store = MemoryStore() if store is None else store
        self.store.bind(model.identity, model.space)
        self.approver = approver
        self.tools: set[str] = set(tools)
        self.redactor = Redactor(self.monitor.labeler.scan)
        self.recorder = Recorder(log, telemetry, self.redactor, model.identity)
        self._sessions = SessionAccess(self.store, self.monitor.require)
        self._judging = Judging(self.monitor, self.redactor, int.from_bytes(urandom(6)))
        self._failures = Failures(self.redactor)
        self._watched: WatchedPolicy | None = None
        self._policy: GuardPolicy
        if policy is None or isinstance(policy, GuardPolicy):
            self._policy = default_policy() if policy is None else policy
            self._usable(self._policy)
        else:
            self._watched = policy
            self._policy = policy.current(self._usable)
            self._usable(self._policy)
        self._warn_if_open()

    @classmethod
    def load(
        cls,
        model: str | PathLike[str] = "default",
        policy: GuardPolicy | WatchedPolicy | str | PathLike[str] | None = None,
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
            A policy, the name of a shipped one (``"default"``, ``"coding"``, ``"office"``, ``"strict"``), or a file
            with one (TOML or JSON) that is read again when it changes.
        store
            A store, or the path of a SQLite file.
        log
            A decision log, or the path of one.
        config
            What is inside the organisation (docs/how-to/configuration.md).
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
        if isinstance(policy, str) and policy in ASK_FROM:
            policy = default_policy(policy)
        elif isinstance(policy, str | PathLike):
            from safetydrift.guard.policy_file import WatchedPolicy  # noqa: PLC0415  # a policy in code needs no file

            policy = WatchedPolicy(policy)
        if isinstance(store, str | PathLike):
            from safetydrift.guard.stores.sqlite import SQLiteStore  # noqa: PLC0415  # not every run is stored

            store = SQLiteStore(store)
        if isinstance(log, str | PathLike):
            from safetydrift.guard.decision_log import DecisionLog  # noqa: PLC0415  # not every guard has one

            log = DecisionLog(log)
        if telemetry is True:
            from safetydrift.guard.telemetry import Telemetry  # noqa: PLC0415  # an extra

            telemetry = Telemetry()
        return cls(
            loaded,
            policy,
            store,
            log=log,
            approver=approver,
            labeler=labeler,
            tools=tools,
            telemetry=telemetry or None,
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
        from importlib import import_module  # noqa: PLC0415  # only where somebody else decides

        # It derives from this class, so it can only be found where it is asked for.
        made: Guard = import_module("safetydrift.guard.remote").RemoteGuard(url, token, **options)
        return made

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
            What the user asked for, in their words. Without it nobody can be said to have named a value; a part of
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
            return begun if task or not parent else on_the_same_task(begun, self._sessions.read(parent)[0])

        self._sessions.open(key, parent, start)

    def hear(self, key: str, text: str) -> None:
        """Take note of what the user says during a run.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there, or cannot be read or kept.
        """

        def hear(session: Session) -> None:
            session.position = self.monitor.hear(session.position, text)

        self._sessions.change((key,), hear)

    def end(self, key: str) -> None:
        """Forget a run."""
        self._sessions.forget(key)

    def quiet(self, key: str) -> None:
        """Take note that no call of a run is under way any more, for instance because the user is speaking again.

        What a person was asked about and no result came of was not made; what was allowed is taken for made.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there, or cannot be read or kept.
        """

        def quiet(session: Session) -> None:
            for call_id in list(session.reserved):
                self._judging.settle_without(session, call_id)

        self._sessions.change((key,), quiet)

    def current(self, key: str) -> tuple[TrajectoryState, Verdict]:
        """Return the current state of a run, calls under way included, and the finding about it.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the state is not there or cannot be read.
        """
        session, _ = self._sessions.read(key)
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
            Its identifier: until it is confirmed or released, the same call under the same one gets the same answer; a
            person's yes holds for as long as the policy says. One is made up if it is empty; the decision holds it.
        """
        decision = self._propose(key, call, call_id)
        if decision.asks and self.approver is not None:
            answer = answered(self.approver, self._question(call, decision), self.policy.ask_timeout)
            return self._answered(key, decision.call_id, answer, decision.digest)
        return decision

    def answer(
        self, key: str, call_id: str, approved: bool | None, by: str = "", *, digest: str = ""
    ) -> Decision:
        """Report what a person said about a call that `propose` answered with ASK; None if nobody answered.

        The first answer counts; after that, and for calls that were not asked about, the answer given before is
        returned. Nothing that goes wrong raises.

        Parameters
        ----------
        digest
            Which call the person was shown (`Decision.digest`). The answer to one that another call has replaced since,
            under the same identifier, is passed over; without a digest, a yes is where that has happened.
        """
        return self._answered(key, call_id, Answer(approved, by), digest)

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
            twice counts once; another one under the same identifier is read as well.
        """
        try:
            return self._confirm(key, call_id, result, error, call)
        except Exception as problem:  # noqa: BLE001  # a result must not break the agent's loop
            why = f"the result of call {call_id[:80]!r} could not be recorded: {said(problem)}"
            self.recorder.event("doubt", key, call_id, self._sessions.doubt(key, why))
            return None

    def release(self, key: str, call_id: str) -> None:
        """Record that a call was not made after all. Nothing raises."""

        def release(session: Session) -> None:
            session.reserved.pop(_name_in(session, key, call_id), None)
            if session.key == key:
                session.settle(call_id, RELEASED)

        self._failures.settle(key, call_id)
        try:
            self._sessions.change(self._sessions.lineage(key), release)
        except Exception as problem:  # noqa: BLE001  # the reservation stays, which is the cautious side
            self.recorder.event("not released", key, call_id, said(problem))

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

    # -- the policy ---------------------------------------------------------------------------------------

    @property
    def policy(self) -> GuardPolicy:
        """The policy in force. Another one can be set; ValueError if it cannot be used."""
        if self._watched is not None:
            fresh = self._watched.current(self._usable)
            if fresh is not self._policy:
                self._adopt(fresh)
        return self._policy

    @policy.setter
    def policy(self, policy: GuardPolicy) -> None:
        self._usable(policy)
        self._watched = None
        self._adopt(policy)

    def _adopt(self, policy: GuardPolicy) -> None:
        self._policy = policy
        self.recorder.event("policy", detail=f"{policy.name!r} is in force")
        self._warn_if_open()

    def _usable(self, policy: GuardPolicy) -> None:
        policy.check(self.monitor.model.space)

    def _warn_if_open(self) -> None:
        names = self._policy.opens_on_failure
        if names:
            from warnings import warn  # noqa: PLC0415  # seldom

            what = f"the guard fails open: calls that it cannot judge are allowed by {', '.join(names)}"
            self.recorder.event("fails open", detail=what)
            warn(what, RuntimeWarning, stacklevel=3)

    def close(self) -> None:
        """Write out the decision log and let go of the store."""
        if self.recorder.log is not None:
            self.recorder.log.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- deciding -----------------------------------------------------------------------------------------

    def _propose(self, key: str, call: ToolCall, call_id: str) -> Decision:
        started = perf_counter()
        digest = ""
        position: TrajectoryState | None = None
        try:
            policy = self.policy
            call = plain_call(call)
            digest = call_digest(call)
            failed = self._failures.given(key, call_id) if self._failures else None
            if failed is not None and failed.answers(digest, time(), policy.approval_lasts):
                return replace(failed.decision, repeated=True)
            decision, position = self._judged(key, call, call_id, digest, policy, started)
        except Exception as problem:  # noqa: BLE001  # whatever it is, the policy says what becomes of the call
            decision = self._failures.decide(self._policy, key, call_id, digest, problem, started)
        return decision if decision.repeated else self._recorded(decision, call, position)

    def _judged(  # noqa: PLR0917  # what is known of the call
        self, key: str, call: ToolCall, call_id: str, digest: str, policy: GuardPolicy, started: float
    ) -> tuple[Decision, TrajectoryState]:
        sessions, judging, names = self._sessions, self._judging, [""]
        line = sessions.lineage(key)
        with sessions.locked(line):
            for _ in range(MAX_ATTEMPTS):
                read = sessions.trusted(line)
                session = read[0][0]
                name = call_id or session.unused_id()
                given = session.answers.get(name)
                if given is not None and given.answers(digest, time(), policy.approval_lasts):
                    return replace(given.decision.stored(), repeated=True), session.position
                for (one, _), stale in zip(read, names, strict=False):
                    one.reserved.pop(stale, None)  # of an attempt that was not stored, under a name now taken
                names = [_name_in(one, key, name) for one, _ in read]
                judged = [
                    judging.judge(one, call, within, policy)
                    for (one, _), within in zip(read, names, strict=True)
                ]
                decision = judging.decide(judged, call, policy, self.tools, started, key, name, digest)
                if decision.latency > policy.timeout:
                    raise TimeoutError(
                        f"the decision took longer than the {policy.timeout} s that it may take"
                    )
                for (one, _), within, judgement in zip(read, names, judged, strict=True):
                    if decision.refused:
                        one.reserved.pop(within, None)  # of another call under the same id
                    else:
                        judging.reserve(one, within, judgement.pending)
                session.proposals += 1
                session.remember(name, answer_of(decision, call.name, given))
                if sessions.stored(read):
                    return decision, judged[0].position
        raise sessions.crowded(key)

    def _confirm(
        self, key: str, call_id: str, result: object, error: object, call: ToolCall | None
    ) -> Verdict | None:
        text = None if result is None else as_text(result)
        failure = None if error is None else as_text(error)
        call = None if call is None else plain_call(call)
        digest, sessions, judging = result_digest(text, failure), self._sessions, self._judging
        if self._failures:
            self._failures.settle(key, call_id)
        line = sessions.lineage(key)
        with sessions.locked(line):
            read = sessions.read(key)
            given = read[0].answers.get(call_id)
            if given is not None and given.status == CONFIRMED and given.result == digest:
                return self.monitor.verdict(read[0].position)
            unexpected = given is None or given.status != OPEN

            found: Verdict | None = None

            def confirm(one: Session) -> None:
                nonlocal found
                reserved = one.reserved.pop(_name_in(one, key, call_id), None)
                if reserved is not None:
                    found = judging.advance(one, reserved.pending, text, failure)
                elif unexpected or one.key == key:
                    found = judging.advance(one, judging.unexpected(one, call, given), text, failure)
                if one.key == key:
                    one.confirm(call_id, digest, "" if call is None else call.name)

            for one in line[:0:-1]:  # the part last: once it says so, all of them have it
                sessions.changed(one, confirm)
            sessions.changed(key, confirm, read)
        if unexpected:
            self.recorder.event("made without being allowed", key, call_id)
        return found

    def _answered(self, key: str, call_id: str, answer: Answer, digest: str = "") -> Decision:
        """Make the decision final that waited for a person."""
        unjudged = self._failures.given(key, call_id) if self._failures else None
        if unjudged is not None:
            decision = self._final(unjudged, answer, digest)
            if not decision.repeated:
                self._failures.remember(replace(answer_of(decision, unjudged.tool), answered_at=time()))
            return self._told(decision)
        settled: list[Decision] = []

        def settle(session: Session) -> None:
            given = session.answers.get(call_id)
            if given is None:
                raise LostStateError(key)
            settled[:] = [self._final(given, answer, digest)]
            if not settled[0].repeated:
                session.remember(call_id, replace(answer_of(settled[0], given.tool), answered_at=time()))
            if settled[0].refused:
                session.reserved.pop(call_id, None)

        try:
            line = self._sessions.lineage(key)
            self._sessions.change(line[:1], settle)
            if settled[0].refused:
                self._sessions.change(line[1:], lambda one: _drop(one, key, call_id))
        except Exception as problem:  # noqa: BLE001  # a yes that cannot be stored is no yes
            return self._recorded(
                self._failures.decide(self._policy, key, call_id, digest, problem, perf_counter())
            )
        return self._told(settled[0])

    def _final(self, given: Given, answer: Answer, digest: str) -> Decision:
        """Return the decision after a person answered; the one before if they meant another call."""
        decision, approved = given.decision, answer.approved
        another = digest != decision.digest if digest else given.replaced and bool(approved)
        if not decision.asks or another:
            return replace(decision.stored(), repeated=True)
        outcome = Intervention.ALLOW if approved else Intervention.BLOCK
        if approved is None:
            outcome = self._policy.on_unanswered
        by = answer.by or ("nobody" if approved is None else "a person")
        return after_asking(decision, outcome, approved, by)

    # -- telling ------------------------------------------------------------------------------------------

    def _question(self, call: ToolCall, decision: Decision) -> Question:
        try:
            position, verdict = self.current(decision.key)
            so_far = self.redactor.text(self.monitor.explain(position, verdict))
        except SafetyDriftError as problem:
            so_far = f"not known ({said(problem)})"
        call = plain_call(call)
        effect = decision.explanation or "what it does could not be judged"
        return Question(
            key=decision.key,
            call_id=decision.call_id,
            tool=call.name,
            arguments=Redactor().arguments(call.args, MAX_SHOWN),
            decision=decision,
            trajectory=so_far,
            permits=f"this one call of {call.name}, once ({effect})",
        )

    def _told(self, decision: Decision) -> Decision:
        """Record what a person said; an answer given before was recorded then."""
        return decision if decision.repeated else self._recorded(decision)

    def _recorded(
        self, decision: Decision, call: ToolCall | None = None, position: TrajectoryState | None = None
    ) -> Decision:
        """Record a decision; one that cannot be recorded is not given, unless the policy allows what fails."""
        try:
            self.recorder.decided(decision, call, position, self._policy.name)
        except Exception as problem:  # noqa: BLE001  # a full disk, for one
            if decision.refused or self._policy.on_error is Intervention.ALLOW:
                return decision
            failed = self._failures.decide(
                self._policy, decision.key, decision.call_id, decision.digest, problem, perf_counter()
            )
            self._withdraw(decision, failed)
            return failed
        return decision

    def _withdraw(self, decision: Decision, failed: Decision) -> None:
        """Take back an answer that could not be recorded."""
        key, call_id = decision.key, decision.call_id

        def withdraw(session: Session) -> None:
            _drop(session, key, call_id)
            given = session.answers.get(call_id)
            if session.key == key and given is not None:
                session.remember(call_id, answer_of(failed, given.tool))

        try:
            self._sessions.change(self._sessions.lineage(key), withdraw)
        except Exception:  # noqa: BLE001  # the reservation stays, which is the cautious side
            return


def _name_in(session: Session, key: str, call_id: str) -> str:
    """Return the name under which a call of a run is reserved: in a run that this one is a part of, it says whose."""
    return call_id if session.key == key else f"{key}\x1f{call_id}"


def _drop(session: Session, key: str, call_id: str) -> None:
    session.reserved.pop(_name_in(session, key, call_id), None)
