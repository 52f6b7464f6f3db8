"""The tables. Every one that holds something of an organisation's has its number in ``org``, and is asked with it.

Times are seconds since the epoch. Texts that came from agents are stored as the redactor leaves them.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""What SQLite gives out by itself has to be called INTEGER."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> Column[int]:
    return Column("id", NUMBER, primary_key=True, autoincrement=True)


def _org() -> Column[int]:
    return Column("org", NUMBER, ForeignKey("organisations.id", ondelete="CASCADE"), nullable=False)


def _words(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="")


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default="0")


organisations = Table(
    "organisations",
    metadata,
    _id(),
    Column("name", String(128), nullable=False, unique=True),
    Column("created", Float, nullable=False),
    # The head of the audit chain: whoever adds an entry holds this row.
    _count("audit_number"),
    Column("audit_digest", String(64), nullable=False, server_default=""),
    # Decisions up to this call are sealed into the chain.
    Column("sealed_to", NUMBER, nullable=False, server_default="0"),
    # Calls up to this one have lost their contents to retention.
    Column("emptied_to", NUMBER, nullable=False, server_default="0"),
)

tokens = Table(
    "tokens",
    metadata,
    _id(),
    _org(),
    Column("name", String(128), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    _words("scopes"),
    Column("created", Float, nullable=False),
    _words("created_by"),
    Column("expires", Float),
    Column("revoked", Float),
    Column("used", Float),
    Index(None, "org"),
)

visits = Table(
    "visits",
    metadata,
    Column("digest", String(64), primary_key=True),
    _org(),
    _words("who"),
    _words("roles"),
    Column("token_id", NUMBER),
    Column("csrf", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
)
"""Who is signed in on the page."""

run_states = Table(
    "run_states",
    metadata,
    Column("org", NUMBER, primary_key=True),
    Column("key", String(512), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("touched", Float, nullable=False, index=True),
    Column("state", LargeBinary, nullable=False),
)
"""What the guard keeps of each run."""

runs = Table(
    "runs",
    metadata,
    _id(),
    _org(),
    Column("key", String(512), nullable=False),
    Column("parent", String(512), nullable=False, server_default=""),
    _words("agent"),
    _words("host"),
    _words("person"),
    _words("framework"),
    _words("category"),
    _words("pipeline"),
    _words("task"),
    Column("origin", String(16), nullable=False, server_default="guarded"),
    Column("opened", Float, nullable=False),
    Column("last", Float, nullable=False),
    Column("ended", Float),
    _count("calls"),
    _count("warned"),
    _count("asked"),
    _count("refused"),
    _count("failed"),
    _count("waiting"),
    Column("probability", Float),
    Column("highest", Float, nullable=False, server_default="0"),
    Column("state", Integer),
    Column("risk", String(32), nullable=False, server_default=""),
    # Two hexadecimal digits per call: the probability in 255ths, ".." where it is not known.
    _words("course"),
    _words("last_tool"),
    _words("last_intervention"),
    _words("last_message"),
    UniqueConstraint("org", "key"),
    Index(None, "org", "last"),
    Index(None, "org", "agent", "last"),
    Index(None, "org", "person", "last"),
)

calls = Table(
    "calls",
    metadata,
    _id(),
    _org(),
    Column("run_id", NUMBER, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("call_id", String(256), nullable=False),
    Column("tool", String(300), nullable=False),
    _words("arguments"),
    Column("at", Float, nullable=False),
    # What was decided first, for ever; the next column is what it came to once a person had answered.
    Column("decided", String(16), nullable=False),
    Column("intervention", String(16), nullable=False),
    Column("would_be", String(16), nullable=False, server_default=""),
    # What the candidate policy would have done, where one runs beside the policy in force.
    Column("candidate", String(16), nullable=False, server_default=""),
    _words("rule"),
    Column("probability", Float),
    Column("low", Float),
    Column("high", Float),
    Column("threshold", Float),
    Column("state", Integer),
    Column("risk", String(32), nullable=False, server_default=""),
    _words("message"),
    _words("details"),
    _words("error"),
    _count("policy"),
    Column("latency", Float, nullable=False, server_default="0"),
    _words("answered_by"),
    Column("status", String(16), nullable=False, server_default="open"),
    _words("result"),
    Column("settled", Float),
    Index(None, "run_id", "number"),
    Index(None, "run_id", "call_id"),
    Index(None, "org", "at"),
    Index(None, "org", "intervention", "at"),
    Index(None, "org", "tool", "at"),
)

messages = Table(
    "messages",
    metadata,
    _id(),
    _org(),
    Column("run_id", NUMBER, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("message_id", String(128), nullable=False),
    Column("at", Float, nullable=False),
    _words("text"),
    UniqueConstraint("run_id", "message_id"),
)
"""What the user said during runs."""

approvals = Table(
    "approvals",
    metadata,
    Column("id", String(40), primary_key=True),
    _org(),
    Column("run_id", NUMBER, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("call_row", NUMBER, nullable=False),
    Column("call_id", String(256), nullable=False),
    Column("tool", String(300), nullable=False),
    Column("action_digest", String(64), nullable=False),
    Column("presented_digest", String(64), nullable=False),
    _count("policy"),
    _words("question"),
    Column("status", String(16), nullable=False, server_default="pending"),
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("escalated", Float),
    Column("answered", Float),
    Column("valid_until", Float),
    Column("consumed", Float),
    Column("nonce", String(64), nullable=False, server_default=""),
    _words("answered_by"),
    _words("reason"),
    Index(None, "org", "status", "created"),
    Index(None, "run_id", "call_id"),
)

events = Table(
    "events",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=True),
    Column("org", NUMBER, nullable=False),
    Column("at", Float, nullable=False, index=True),
    Column("kind", String(24), nullable=False),
    Column("run_id", NUMBER, nullable=False, server_default="0"),
    _words("subject"),
    sqlite_autoincrement=True,  # a number is never given out twice, or a reader would miss what has it
)
"""What has happened, in order, for whoever watches; kept for a day."""

audit = Table(
    "audit",
    metadata,
    Column("org", NUMBER, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    _words("actor"),
    Column("action", String(64), nullable=False),
    _words("subject"),
    _words("detail"),
    Column("previous", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
)

policies = Table(
    "policies",
    metadata,
    _id(),
    _org(),
    Column("number", Integer, nullable=False),
    _words("name"),
    _words("text"),
    Column("status", String(16), nullable=False),
    # Why it may let through what the policy in force does not; empty if it is plain that it does not.
    _words("loosens"),
    _words("note"),
    _words("created_by"),
    Column("created", Float, nullable=False),
    _words("decided_by"),
    Column("decided", Float),
    UniqueConstraint("org", "number"),
)

backtests = Table(
    "backtests",
    metadata,
    _id(),
    _org(),
    Column("policy", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    _words("asked_by"),
    Column("started", Float, nullable=False),
    Column("finished", Float),
    _words("result"),
    Index(None, "org", "policy"),
)

outbox = Table(
    "outbox",
    metadata,
    _id(),
    _org(),
    Column("channel", String(24), nullable=False),
    Column("subject", String(64), nullable=False),
    _words("payload"),
    Column("due", Float, nullable=False),
    _count("attempts"),
    Column("delivered", Float),
    _words("error"),
    _words("receipt"),
    Index(None, "delivered", "due"),
)
"""What is to be told to others, written in the transaction in which it happened."""

reports = Table(
    "reports",
    metadata,
    _id(),
    _org(),
    Column("at", Float, nullable=False),
    _words("agent"),
    _words("host"),
    Column("outcome", String(16), nullable=False),
    _words("detail"),
    Index(None, "org", "at"),
)
"""Calls that agents decided by themselves because they could not reach the service."""

workers = Table(
    "workers",
    metadata,
    Column("id", String(64), primary_key=True),
    _words("host"),
    Column("pid", Integer, nullable=False),
    _words("version"),
    Column("started", Float, nullable=False),
    Column("seen", Float, nullable=False),
    _words("figures"),
)

positions = Table(
    "positions",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("at", NUMBER, nullable=False),
)
"""How far each receiver of decisions has come."""

leases = Table(
    "leases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("until", Float, nullable=False),
)

alarms = Table(
    "alarms",
    metadata,
    _id(),
    _org(),
    _words("agent"),
    Column("at", Float, nullable=False),
    Column("taken_to", NUMBER, nullable=False, server_default="0"),
    Column("alarmed", Boolean, nullable=False, server_default="0"),
    _words("state"),
    UniqueConstraint("org", "agent"),
)
"""The drift alarm of each agent."""
