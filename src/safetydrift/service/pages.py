"""The pages: what people see, and what they do there by links and forms."""

from __future__ import annotations

import asyncio
import difflib
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import sha256
from itertools import islice
from math import sqrt
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from safetydrift.errors import SafetyDriftError
from safetydrift.service import access, approvals, audit, backtest, charts, erasing, policies, queries, view
from safetydrift.service.access import ADMIN, APPROVER, READER, DeniedError, Principal
from safetydrift.service.api import answer_question
from safetydrift.service.runtime import organisation_names
from safetydrift.service.serving import (
    COOKIE,
    TooMuchError,
    body_of,
    failed,
    require,
    require_same_site,
    visitor_of,
)
from safetydrift.service.settings import DAY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from sqlalchemy import Connection
    from starlette.requests import Request

    from safetydrift.service.runtime import Runtime

MAX_FORM = 2 << 20
LIVE = 600.0
"""Seconds without a call after which a run is not called live."""
NAV = (
    ("runs", "Runs"),
    ("approvals", "Questions"),
    ("decisions", "Decisions"),
    ("policies", "Policies"),
    ("agents", "Agents"),
    ("health", "Health"),
    ("tokens", "Tokens"),
)
ICONS = {
    "runs": '<path d="M3 17c4 0 4-9 9-9s5 5 9 5"/><circle cx="21" cy="13" r="1"/>',
    "approvals": '<path d="M4 5h16v11H9l-5 4z"/><path d="M9.5 9.5h5M9.5 12.5h3"/>',
    "decisions": '<path d="M4 6h10M4 12h7M4 18h6"/><circle cx="16" cy="14" r="4"/><path d="m19 17 3 3"/>',
    "policies": '<path d="M12 3 5 6v5c0 5 3 8 7 10 4-2 7-5 7-10V6z"/><path d="m9 12 2 2 4-4"/>',
    "agents": '<rect x="5" y="8" width="14" height="11" rx="3"/><path d="M12 8V4M9 13h.01M15 13h.01"/>',
    "health": '<path d="M3 12h4l3-7 4 14 3-7h4"/>',
    "tokens": '<circle cx="8" cy="15" r="4"/><path d="m11 12 8-8m-3 3 3 3"/>',
}
SHOWS = (("all", "All"), ("live", "Open"), ("waiting", "Waiting"), ("refused", "Refused"))
_STATIC = Path(__file__).with_name("static")


@lru_cache(maxsize=16)
def asset(name: str) -> str:
    """Return the address of a file of ours, with its digest, so that browsers may keep it for ever."""
    return f"/static/{name}?{sha256((_STATIC / name).read_bytes()).hexdigest()[:12]}"


def rate(number: int | None, total: int | None) -> str:
    """Return a share with its 95 % interval (Wilson 1927, eq. 6).

    Examples
    --------
    >>> rate(1, 100), rate(0, 0)
    ('1 % (0 to 5)', '-')
    """
    if not total:
        return "-"
    share, z = (number or 0) / total, 1.96
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return f"{100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def environment() -> Environment:
    """Return the templates; everything that is put into one is escaped."""
    made = Environment(
        loader=PackageLoader("safetydrift.service"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "iso": lambda at: datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
        "clock": lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "percent": view.percent,
        "level": view.level,
        "points": view.points,
        "spark": view.spark,
        "counts": view.counts,
        "outcome": view.outcome_words,
        "pairs": view.ordered,
        "first_items": lambda items: list(islice(items, 64)),
        "rate": rate,
    }
    made.globals |= {
        "asset": asset,
        "nav": NAV,
        "icons": ICONS,
        "outcome_words": view.WORDS,
        "first": view.FIRST,
    }
    return made


class Asked:
    """A request for a page by somebody who is signed in."""

    def __init__(self, request: Request, runtime: Runtime, who: Principal, form: Mapping[str, Any]) -> None:
        self.request, self.runtime, self.who, self.form = request, runtime, who, form
        self.org, self.query = who.org, request.query_params

    async def read(self, ask: Callable[[Connection], Any]) -> Any:
        """Return what a question to the database yields."""
        return await asyncio.to_thread(self.runtime.read, ask)

    async def change(self, work: Callable[[Any], Any]) -> Any:
        """Return what some work yields that changes something."""
        return await self.runtime.lanes.of(self.org, "").run(work)


class Pages:
    """The pages of a worker.

    Parameters
    ----------
    runtime
        The worker.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._templates = environment()
        self._space = runtime.book.model.space

    def routes(self) -> list[Route | Mount]:
        """Return where they are."""
        shown: list[tuple[str, str, Callable[[Asked], Awaitable[Response]]]] = [
            ("/runs", READER, self.runs),
            ("/runs/rows", READER, self.run_rows),
            ("/runs/{number:int}", READER, self.run),
            ("/approvals", READER, self.approvals),
            ("/approvals/{which}", READER, self.approval),
            ("/decisions", READER, self.decisions),
            ("/policies", READER, self.policies),
            ("/policies/{number:int}", READER, self.policy),
            ("/agents", READER, self.agents),
            ("/health", READER, self.health),
            ("/tokens", ADMIN, self.tokens),
        ]
        done: list[tuple[str, str, Callable[[Asked], Awaitable[Response]]]] = [
            ("/runs/{number:int}/erase", ADMIN, self.erase),
            ("/approvals/{which}", APPROVER, self.answer),
            ("/policies", ADMIN, self.put_up),
            ("/policies/{number:int}", ADMIN, self.decide),
            ("/tokens", ADMIN, self.make_token),
            ("/tokens/{number:int}", ADMIN, self.revoke_token),
            ("/sign-out", READER, self.sign_out),
        ]
        routes: list[Route | Mount] = [Route(path, self._page(right, show)) for path, right, show in shown]
        routes += [Route(path, self._page(right, do), methods=["POST"]) for path, right, do in done]
        return [
            *routes,
            Route("/", lambda _: RedirectResponse("/runs", 303)),
            Route("/sign-in", self.sign_in_page),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Mount("/static", _Forever(directory=_STATIC)),
        ]

    # -- runs ---------------------------------------------------------------------------------------------

    async def runs(self, asked: Asked) -> Response:
        """Show runs, the latest first."""
        if asked.query.get("key"):
            row = await asked.read(lambda c: queries.run_of(c, asked.org, asked.query["key"]))
            if row is None:
                raise LookupError("there is no such run")
            return RedirectResponse(f"/runs/{row['id']}", 303)
        found, known, figures = await asyncio.gather(
            asked.read(partial(_listed, asked=asked)),
            asked.read(lambda c: queries.known_names(c, asked.org)),
            asked.read(lambda c: queries.figures(c, asked.org, LIVE)),
        )
        kept = {name: value for name, value in asked.query.items() if name != "before" and value}
        most = _most(asked)
        older = (
            urlencode(kept | {"before": f"{found[-1]['last']}-{found[-1]['id']}"})
            if len(found) == most
            else ""
        )
        return await self._shown(
            asked,
            "runs",
            "runs",
            runs=found,
            known=known,
            figures=figures,
            shows=SHOWS,
            show=asked.query.get("show", "all"),
            chosen={name: asked.query.get(name, "") for name in queries.RUN_FILTERS},
            filtered=bool(kept),
            older=f"/runs?{older}" if older else "",
            query=urlencode(dict(asked.query)),
        )

    async def run_rows(self, asked: Asked) -> Response:
        """Show the rows of the list of runs alone."""
        found = await asked.read(partial(_listed, asked=asked))
        return HTMLResponse(self._templates.get_template("run_rows.html.jinja").render(runs=found))

    async def run(self, asked: Asked) -> Response:
        """Show a run with its calls."""
        number = int(asked.request.path_params["number"])
        said = asked.query.get("before", "")
        before = int(said) if said else None

        def ask(connection: Connection) -> dict[str, Any] | None:
            row = queries.run(connection, asked.org, number)
            if row is None:
                return None
            return {
                "run": row,
                "calls": queries.run_calls(connection, asked.org, number, before),
                "messages": queries.run_messages(connection, asked.org, number),
                "parts": queries.parts(connection, asked.org, row["key"]),
                "questions": queries.approval_list(connection, asked.org, run=number),
            }

        found = await asked.read(ask)
        if found is None:
            raise LookupError("there is no such run")
        made = [call | {"levels": view.levels(self._space, call["state"])} for call in found["calls"]]
        first = made[-1]["number"] if made else 1
        more = {
            "calls": made,
            "chart": charts.risk(made[::-1]),
            "drift": view.levels(self._space, found["run"]["state"]),
            "questions": [_card(row) for row in found["questions"]],
            "older": f"/runs/{number}?before={first}" if first > 1 else "",
        }
        return await self._shown(asked, "runs", "run", **(found | more))

    async def erase(self, asked: Asked) -> Response:
        """Erase what was said in a run."""
        number = int(asked.request.path_params["number"])
        await asked.change(lambda lane: erasing.erase_run(lane, asked.org, number, asked.who.name))
        return RedirectResponse(f"/runs/{number}", 303)

    # -- questions ----------------------------------------------------------------------------------------

    async def approvals(self, asked: Asked) -> Response:
        """Show questions that wait, and what became of the others."""
        waiting = await asked.read(lambda c: queries.approval_list(c, asked.org))
        over = (
            approvals.ALLOWED,
            approvals.CONSUMED,
            approvals.DENIED,
            approvals.EXPIRED,
            approvals.CANCELLED,
        )
        past = await asked.read(lambda c: queries.approval_list(c, asked.org, over, 20))
        cards = [_card(row) for row in waiting]
        return await self._shown(
            asked,
            "approvals",
            "approvals",
            questions=cards,
            past=[_card(row) for row in past],
            bulk=len(cards) > 1,
        )

    async def approval(self, asked: Asked) -> Response:
        """Show one question."""
        which = asked.request.path_params["which"]
        row = await asked.read(lambda c: queries.approval(c, asked.org, which))
        if row is None:
            raise LookupError("there is no such question")
        return await self._shown(asked, "approvals", "approval", question=_card(row))

    async def answer(self, asked: Asked) -> Response:
        """Answer a question, and go back to those that wait."""
        said = {
            "approved": asked.form.get("approved") == "yes",
            "presented": asked.form.get("presented", ""),
            "reason": asked.form.get("reason", ""),
        }
        which = asked.request.path_params["which"]
        await answer_question(self._runtime, asked.org, which, said, asked.who.name)
        return RedirectResponse("/approvals", 303)

    # -- decisions, agents, health ------------------------------------------------------------------------

    async def decisions(self, asked: Asked) -> Response:
        """Search decisions."""
        query = asked.query
        done = [query["intervention"]] if query.get("intervention") else []
        before = int(query["before"]) if query.get("before") else None
        ask = partial(queries.search, org=asked.org, words=query.get("q", ""), interventions=done)
        found = await asked.read(lambda c: ask(c, tool=query.get("tool", ""), before=before))
        kept = {name: query[name] for name in ("q", "tool", "intervention") if query.get(name)}
        older = urlencode(kept | {"before": found[-1]["id"]}) if len(found) == queries.PAGE else ""
        said = {name: query.get(name, "") for name in ("q", "tool", "intervention")}
        return await self._shown(
            asked, "decisions", "decisions", calls=found, older=f"/decisions?{older}" if older else "", **said
        )

    async def agents(self, asked: Asked) -> Response:
        """Show agents with their rates and their drift alarm."""
        days = int(asked.query.get("days") or 7)
        found = await asked.read(lambda c: queries.agents(c, asked.org, time() - days * DAY))
        alarms = await asked.read(lambda c: queries.agent_alarms(c, asked.org))
        return await self._shown(asked, "agents", "agents", agents=found, alarms=alarms, days=days)

    async def health(self, asked: Asked) -> Response:
        """Show how the service does."""
        found = await asked.read(lambda c: audit.verify(c, asked.org))
        workers = await asked.read(queries.worker_list)
        reports = await asked.read(lambda c: queries.report_list(c, asked.org))
        return await self._shown(
            asked, "health", "health", audit=found, workers=workers, reports=reports, now=time()
        )

    # -- policies -----------------------------------------------------------------------------------------

    async def policies(self, asked: Asked) -> Response:
        """Show versions of the policy."""
        found = await asked.read(lambda c: queries.policy_list(c, asked.org))
        live = next((one for one in found if one["status"] == policies.LIVE), None)
        text = live["text"] if live else 'format = "safetydrift.policy/1"\nname = "ours"\n'
        return await self._shown(
            asked,
            "policies",
            "policies",
            policies=found,
            live=live,
            text=text,
            four_eyes=self._runtime.settings.four_eyes,
        )

    async def policy(self, asked: Asked) -> Response:
        """Show a version of the policy, what it changes, and how it does."""
        number = int(asked.request.path_params["number"])

        def ask(connection: Connection) -> dict[str, Any] | None:
            row = queries.policy(connection, asked.org, number)
            if row is None:
                return None
            every = queries.policy_list(connection, asked.org)
            live = next((one for one in every if one["status"] == policies.LIVE), None)
            beside = row["status"] in {policies.OBSERVED, policies.LIVE}
            return {
                "policy": row,
                "backtests": queries.backtest_list(connection, asked.org, number),
                "differences": queries.differences(connection, asked.org, time() - 7 * DAY) if beside else [],
                "diff": _diff(live["text"], row["text"]) if live and live["number"] != number else [],
            }

        found = await asked.read(ask)
        if found is None:
            raise LookupError("there is no such version")
        row = found["policy"]
        alone = self._runtime.settings.four_eyes and row["loosens"] and row["created_by"] == asked.who.name
        return await self._shown(asked, "policies", "policy", alone=alone, **found)

    async def put_up(self, asked: Asked) -> Response:
        """Put up a version of the policy."""
        text, note = (
            str(asked.form.get("text", "")).replace("\r\n", "\n"),
            str(asked.form.get("note", ""))[:2000],
        )
        book = self._runtime.book
        row = await asked.change(
            lambda lane: policies.put_up(lane, asked.org, book, text, asked.who.name, note=note)
        )
        return RedirectResponse(f"/policies/{row['number']}", 303)

    async def decide(self, asked: Asked) -> Response:
        """Put a version in force, beside the one in force, on trial, or turn it down."""
        number, action = int(asked.request.path_params["number"]), str(asked.form.get("action", ""))
        if action == "backtest":
            await backtest.start(self._runtime, asked.org, number, asked.who.name)
        elif action in {"enforce", "observe", "reject"}:
            eyes, by = self._runtime.settings.four_eyes, asked.who.name
            await asked.change(
                lambda lane: policies.decide(lane, asked.org, number, action, by, four_eyes=eyes)
            )
            self._runtime.book.look_again()
        return RedirectResponse(f"/policies/{number}", 303)

    # -- tokens, signing in and out -----------------------------------------------------------------------

    async def tokens(self, asked: Asked, fresh: str = "") -> Response:
        """Show tokens, and the audit log."""
        found = await asked.read(lambda c: queries.token_list(c, asked.org))
        entries = await asked.read(lambda c: queries.audit_list(c, asked.org))
        return await self._shown(asked, "tokens", "tokens", tokens=found, entries=entries, fresh=fresh)

    async def make_token(self, asked: Asked) -> Response:
        """Make a token, and show it this once."""
        name = str(asked.form.get("name", "")).strip()[:128]
        scopes = [one for one in asked.form.get("scopes", []) if one in access.IMPLIED]
        days = float(asked.form.get("days") or 0) or None
        if not name or not scopes or (days is not None and not 0 < days <= 3650):  # noqa: PLR2004
            raise ValueError("a token has a name, something it may do, and at most ten years")
        by = asked.who.name
        _, secret = await asked.change(
            lambda lane: access.new_token(lane, asked.org, name, scopes, by, days=days)
        )
        return await self.tokens(asked, secret)

    async def revoke_token(self, asked: Asked) -> Response:
        """Take a token back."""
        number = int(asked.request.path_params["number"])
        await asked.change(lambda lane: access.revoke(lane, asked.org, number, asked.who.name))
        self._runtime.tokens.forget()
        return RedirectResponse("/tokens", 303)

    async def sign_in_page(self, request: Request, problem: str = "", status: int = 200) -> Response:
        """Show the form with which people sign in."""
        said = {"next": _here(request.query_params.get("next", "")), "problem": problem, "page": "sign-in"}
        page = self._templates.get_template("sign_in.html.jinja").render(who=None, **said)
        return HTMLResponse(page, status)

    async def sign_in(self, request: Request) -> Response:
        """Begin a visit with a token."""
        runtime = self._runtime
        form: dict[str, Any] = {}
        try:
            form = await _form(request)
            found = await self._known(request, str(form.get("token", "")))
            org, roles = found.org, found.may
            cookie, _ = await runtime.lanes.of(org, "").run(
                lambda lane: access.sign_in(lane, org, found.name, roles, found.token)
            )
        except (DeniedError, TooMuchError) as error:
            return await self.sign_in_page(request, str(error), error.status)
        return self.welcome(cookie, str(form.get("next", "")))

    async def _known(self, request: Request, secret: str) -> Principal:
        wait = self._runtime.limiter.sign_ins.take(request.client.host if request.client else "")
        if wait:
            raise TooMuchError(429, f"too many attempts; try again in {round(wait)} s", wait)
        found = await asyncio.to_thread(self._runtime.tokens.look_up, secret)
        if READER not in found.may:
            raise DeniedError(403, "this token is for agents; the page wants one that may read")
        return found

    def welcome(self, cookie: str, where: str) -> Response:
        """Return the way to a page, with the cookie of a visit."""
        response = RedirectResponse(_here(where), 303)
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=int(access.VISIT),
            httponly=True,
            secure=self._runtime.settings.secure,
            samesite="lax",
        )
        return response

    async def sign_out(self, asked: Asked) -> Response:
        """End a visit."""
        cookie = asked.request.cookies.get(COOKIE, "")
        await asked.change(lambda lane: access.sign_out(lane, asked.org, cookie))
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(COOKIE)
        return response

    # -- inside -------------------------------------------------------------------------------------------

    def _page(self, right: str, show: Callable[[Asked], Awaitable[Response]]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                who = await visitor_of(request, self._runtime)
            except DeniedError:
                return RedirectResponse(f"/sign-in?{urlencode({'next': request.url.path})}", 303)
            try:
                require(who, right)
                form = await _form(request) if request.method == "POST" else {}
                if request.method == "POST":
                    require_same_site(request, who, str(form.get("csrf", "")))
                return await show(Asked(request, self._runtime, who, form))
            except Exception as error:  # noqa: BLE001  # whatever it is, it is answered
                return self._problem(request, who, error)

        return answer

    def _problem(self, request: Request, who: Principal, error: Exception) -> Response:
        status = failed(self._runtime, error).status_code
        said = isinstance(error, (SafetyDriftError, ValueError, LookupError, PermissionError, TooMuchError))
        detail = str(error.args[0]) if said and error.args else "It has been written down."
        title = {403: "Not allowed", 404: "Not found", 409: "Too late"}.get(status, "This did not work")
        page = self._templates.get_template("problem.html.jinja").render(
            self._common(request, who, "", 0, ""), title=title, detail=detail
        )
        return HTMLResponse(page, status)

    async def _shown(self, asked: Asked, page: str, template: str, **more: Any) -> Response:
        pending = await asked.read(lambda c: queries.pending(c, asked.org))
        names = await asked.read(organisation_names)
        common = self._common(asked.request, asked.who, page, pending, names.get(asked.org, ""))
        text = await asyncio.to_thread(
            self._templates.get_template(f"{template}.html.jinja").render, common | more
        )
        return HTMLResponse(text, headers={"cache-control": "no-store"})

    def _common(
        self, request: Request, who: Principal, page: str, pending: int, org_name: str
    ) -> dict[str, Any]:
        field = Markup('<input type="hidden" name="csrf" value="{}">').format(who.csrf)
        return {
            "who": who,
            "csrf": lambda: field,
            "page": page,
            "pending": pending,
            "org_name": org_name,
            "last": self._runtime.hub.last,
            "demo": self._runtime.settings.demo,
            "url": self._runtime.settings.url,
            "path": request.url.path,
        }


class _Forever(StaticFiles):
    """Files of ours; their addresses change with them."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        """Return a file that need not be asked for again."""
        response = super().file_response(*given, **named)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


def _most(asked: Asked) -> int:
    said = asked.query.get("most", "")
    return min(int(said), queries.MAX_PAGE) if said.isdigit() and int(said) else queries.PAGE


def _listed(connection: Connection, *, asked: Asked) -> list[dict[str, Any]]:
    """Return the runs that a page asks for."""
    words = tuple([(name, asked.query[name]) for name in queries.RUN_FILTERS if asked.query.get(name)])
    at, _, number = asked.query.get("before", "").partition("-")
    before = (float(at), int(number)) if number else None
    wanted = queries.RunFilter(words, asked.query.get("show", "all"))
    return queries.run_list(connection, asked.org, wanted, before, _most(asked))


def _card(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question as it is shown; those of a group may be allowed together."""
    card = approvals.shown(row)
    if not card["question"]:
        card["question"] = {
            "run": {"agent": "", "key": "erased", "host": "", "person": "", "task": ""},
            "details": {},
        }
    question = card["question"]
    return card | {"group": f"{question['run'].get('agent')}\x1f{card['tool']}\x1f{question.get('rule')}"}


def _diff(old: str, new: str) -> list[tuple[str, str]]:
    kinds = {"+": "added", "-": "removed", " ": "same"}
    lines = difflib.ndiff(old.splitlines()[:2000], new.splitlines()[:2000])
    return [(kinds[line[0]], line) for line in lines if line[0] in kinds]


def _here(where: str) -> str:
    """Return a place on our own site, whatever was asked for."""
    inside = where.startswith("/") and not where.startswith(("//", "/\\")) and "\\" not in where
    return where if inside and where.isprintable() else "/runs"


async def _form(request: Request) -> dict[str, Any]:
    """Return what was sent with a form; ``scopes`` may be said several times."""
    from urllib.parse import parse_qs  # noqa: PLC0415  # forms are seldom

    said = parse_qs((await body_of(request, MAX_FORM)).decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values if name == "scopes" else values[-1] for name, values in said.items()}
