"""Everything SafetyDrift raises on purpose.

Each error also subclasses the built-in a caller already catches, keeps the offending value as an attribute
where there is one, and says the repair in its message.
"""

from __future__ import annotations


class SafetyDriftError(Exception):
    """The base of every error raised by this package."""


class SpaceError(SafetyDriftError, ValueError):
    """A state space that is not well formed, or a level that it does not have."""


class SpaceMismatchError(SafetyDriftError, ValueError):
    """Two things were built on different state spaces and cannot be used together."""


class CallFormatError(SafetyDriftError, ValueError):
    """A line that is no tool call."""


class ConfigError(SafetyDriftError, ValueError):
    """A configuration file that cannot be read, or that says something nobody reads."""


class CatalogueError(SafetyDriftError, ValueError):
    """A tool catalogue that is not well formed, or does not cover the state space."""


class CatalogueWarning(UserWarning):
    """A model was fitted with another version of the catalogue than the one in use."""


class ChainError(SafetyDriftError, ValueError):
    """Counts or a matrix that do not describe an absorbing Markov chain."""


class NotAbsorbingError(ChainError):
    """Some transient states can never reach an absorbing class.

    Attributes
    ----------
    states
        The states that cannot, in ascending order.
    """

    def __init__(self, states: tuple[int, ...], names: tuple[str, ...] = ()) -> None:
        self.states = states
        shown = ", ".join((names or tuple(map(str, states)))[:8])
        more = f" and {len(states) - 8} more" if len(states) > 8 else ""  # noqa: PLR2004
        super().__init__(
            f"no absorbing class can be reached from {shown}{more}; "
            "give these states a way out, or declare them absorbing"
        )


class TraceFormatError(SafetyDriftError, ValueError):
    """A record that cannot be read as a trace.

    Attributes
    ----------
    path, line, reason
        Where the record stands (line 1 is the first; None for a file as a whole), and what is wrong with it.
    """

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        self.path, self.line, self.reason = path, line, reason
        super().__init__(f"{path}: {reason}" if line is None else f"{path}:{line}: {reason}")


class NoRunsError(SafetyDriftError, ValueError):
    """The paths that were named hold no run at all.

    Attributes
    ----------
    paths
        The paths.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = paths
        super().__init__(f"no run was read from {', '.join(paths)}")


class CalibrationError(SafetyDriftError, ValueError):
    """A threshold that cannot be chosen as asked from the runs given."""


class ModelFileError(SafetyDriftError, ValueError):
    """A model file that is damaged, of an unknown version, or not a model at all."""


class ReviewError(SafetyDriftError, ValueError):
    """A review sheet or sample that is not well formed, or does not belong to what it is compared with."""


class PredictionFileError(SafetyDriftError, ValueError):
    """A file of predictions, or of a judge's opinions, that cannot be read or believed.

    Attributes
    ----------
    path, line, reason
        Where it went wrong (line 1 is the first; None for the file as a whole), and what is wrong.
    """

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        self.path, self.line, self.reason = path, line, reason
        super().__init__(f"{path}: {reason}" if line is None else f"{path}:{line}: {reason}")


class LeakageError(SafetyDriftError, ValueError):
    """What a predictor was fitted on overlaps with what it is tried on.

    Attributes
    ----------
    what
        What must be kept apart: ``"task"``, ``"model"``, ``"source"`` or ``"suite"``.
    shared
        What stands on both sides, in order.
    """

    def __init__(self, what: str, shared: tuple[object, ...], who: str = "the training runs") -> None:
        self.what, self.shared = what, shared
        more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
        super().__init__(
            f"{who} and the runs tried share the {what} {shared[0]!r}{more}; "
            f"fit without every {what} that is tried, or try others"
        )


class SplitError(SafetyDriftError, ValueError):
    """Runs that cannot be split as asked: nothing would be left to fit on, or nothing to try."""


class ScoresError(SafetyDriftError, ValueError):
    """Scores that do not fit the runs they are for."""


class UnknownAnalysisError(SafetyDriftError, LookupError):
    """A name that no analysis has.

    Attributes
    ----------
    name
        The name.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        super().__init__(f"there is no analysis {name!r}; there are {', '.join(known)}")


class SnapshotError(SafetyDriftError, ValueError):
    """Bytes that are no state of a guarded run: damaged, foreign, too large, or of another model or version."""


class StoreError(SafetyDriftError, RuntimeError):
    """A store that cannot keep or give back the state of a guarded run."""


class LostStateError(SafetyDriftError, LookupError):
    """A call was proposed for a run whose state is not there.

    Attributes
    ----------
    key
        The run's key.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"nothing is known of the run {key[:80]!r}: open it with session() first")


class PolicyFileError(SafetyDriftError, ValueError):
    """A guard's policy that cannot be read, or that says something nobody reads."""


class DecisionLogError(SafetyDriftError, RuntimeError):
    """A decision log that cannot be written or continued."""


class CallRefusedError(SafetyDriftError, PermissionError):
    """A guarded tool was not executed; the message is fit for the model that asked for it.

    Attributes
    ----------
    decision
        The decision that refused it.
    """

    def __init__(self, decision: object) -> None:
        self.decision = decision
        super().__init__(str(getattr(decision, "reason", decision)))


class MessageError(SafetyDriftError, ValueError):
    """A message of a protocol cannot be read, or others would read something else in it."""


class ServiceError(SafetyDriftError, RuntimeError):
    """A team's guard that cannot be reached, or that refuses what is asked of it."""


class DatabaseError(ServiceError):
    """The database of a team's guard cannot be used."""


class HorizonError(SafetyDriftError, ValueError):
    """A horizon outside the table that was built."""


class ScenarioError(SafetyDriftError, ValueError):
    """A scenario that cannot be read, or whose data do not fit together."""


class JudgeError(SafetyDriftError, RuntimeError):
    """A model that was asked about a call gave no answer that can be used."""


class JudgeBudgetError(JudgeError):
    """A further question would go beyond what a judge may spend."""


class JudgeSettingsError(SafetyDriftError, ValueError):
    """A judge that cannot work as it is set up: an unknown kind of model, a missing key, an address of no use."""


class JudgeFileError(SafetyDriftError, ValueError):
    """A file of recorded answers that cannot be read or believed."""


class UnknownAnswerError(SafetyDriftError, LookupError):
    """Recorded answers that hold none for a call.

    Attributes
    ----------
    digest
        The digest of the question.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__(
            f"no answer to question {digest[:12]} is recorded; record it, or take None for an answer"
        )


EXTRA_OF = {
    "agentdojo": "agentdojo",
    "agents": "openai-agents",
    "alembic": "serve",
    "authlib": "serve",
    "claude_agent_sdk": "claude-sdk",
    "inspect_ai": "study",
    "httpx2": "mcp",
    "jinja2": "report",
    "langchain": "langchain",
    "langgraph": "langchain",
    "litellm": "litellm",
    "matplotlib": "report",
    "numpy": "fit",
    "prometheus_client": "serve",
    "psycopg": "postgres",
    "rfc8785": "serve",
    "sqlalchemy": "serve",
    "starlette": "serve",
    "opentelemetry": "otel",
    "pydantic_ai": "study",
    "redis": "redis",
    "scipy": "fit",
    "sklearn": "fit",
    "threadpoolctl": "fit",
    "uvicorn": "mcp",
}
"""The extra that installs a package some part of SafetyDrift needs."""


class MissingExtraError(SafetyDriftError, ImportError):
    """A part of SafetyDrift needs a package that an extra installs."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(f"{purpose} needs {package}; install it with: pip install 'safetydrift[{extra}]'")

    @classmethod
    def of(cls, error: ModuleNotFoundError) -> MissingExtraError | None:
        """Return the error that names the extra, or None if the missing module is none of an extra's."""
        package = (error.name or "").partition(".")[0]
        return cls(package, EXTRA_OF[package], "this part of SafetyDrift") if package in EXTRA_OF else None
