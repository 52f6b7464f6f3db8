"""What the user asked for: the acts, objects and values of their own words, kept as keyed digests.

A `Request` hears the task and the follow-up messages. It keeps no text: words and values are digests of 8 bytes,
keyed with a salt of the session. That hides them from whoever reads a store; who has the salt as well can test
words that they guess.
"""

from __future__ import annotations

from safetydrift.authority.clauses import clauses_of
from safetydrift.authority.delegation import delegations_of
from safetydrift.authority.grading import Asked, View
from safetydrift.authority.keeping import Keeper
from safetydrift.authority.kept import Delegation, Kept
from safetydrift.authority.reading import read_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_MEMO = 4096
"""Answers that are remembered by one request."""


class Request(Kept, frozen=True, dict=True):
    """What the user has asked for so far; hearing more makes a new one.

    Examples
    --------
    >>> request = Request.empty(b"salt").hear("Delete the old logs and send Bob the summary. Don't touch backup.log.")
    >>> request.asks("send", ["bob@example.com"]).name, request.asks("send", ["eve@example.com"]).name
    ('asked', 'action')
    >>> request.asks("delete", ["logs/app.log"]).name, request.asks("delete", ["logs/backup.log"]).name
    ('asked', 'forbidden')
    >>> request.said("BACKUP.log"), request.overlap("bob.miller@example.com")
    (False, 1)
    """

    @classmethod
    def empty(cls, salt: bytes) -> Request:
        """Return the request of a session in which nothing was said yet."""
        return cls(salt)

    def hear(self, text: str, *, follow_up: bool = False) -> Request:
        """Return the request after the user has said something.

        Parameters
        ----------
        text
            The user's own words; of a longer text the first and last 32 Ki characters are read.
        follow_up
            Whether it answers the agent: then agreement lifts what was forbidden for now, and a bare refusal forbids
            everything that changes anything.
        """
        message = read_message(text)
        heard = clauses_of(message)
        keeper = Keeper(self)
        if not (follow_up and keeper.answered(message)):
            keeper.hear(heard, delegations_of(heard))
        keeper.keep_values([key for value in message.values for key in value.keys])
        keeper.keep_values([key for clause in heard for key in (*clause.keys, *clause.places)])
        return Request(self.salt, *keeper.parts())

    def said(self, value: str) -> bool:
        """Return whether the user wrote a value, in whatever form.

        A host counts as a whole, or with a path below one that was written; a path by its tail where that is
        unambiguous; a name by all its words in one clause.
        """
        return self._view().said(value)

    def overlap(self, value: str) -> int:
        """Return how much of a value was said: 0 nothing, 1 a part, 2 all that tells it apart, 3 the value."""
        return self._view().overlap(value)

    @property
    def forbids(self) -> bool:
        """Whether the user said of anything not to do it."""
        return bool(self.refused_beyond) or any(clause.refused for clause in self.clauses)

    def shares(self, text: str) -> int:
        """Return how many words of more than three letters a folded text shares with the user's, at most 4."""
        return self._view().shares(text)

    def asks(self, action: str, targets: Sequence[str] = (), words: Sequence[str] = ()) -> Asked:
        """Return the authority that the user's words give for an act.

        Parameters
        ----------
        action
            One of `safetydrift.effects.operations.ACTIONS`.
        targets
            What the act is on, as written; each of them must be covered.
        words
            What else describes the object: kinds (``"file"``), titles, options (``"force"``).

        Raises
        ------
        KeyError
            If there is no such action.
        """
        view = self._view()
        question = (action, tuple(targets), tuple(words))
        answer = view.memo.get(question)
        if answer is None:
            if len(view.memo) >= MAX_MEMO:
                view.memo.clear()
            answer = view.memo[question] = view.asks(*question)
        return answer

    def amounts(
        self, actions: Sequence[str], described: Sequence[str], texts: Sequence[str] = (), kind: str = ""
    ) -> Asked:
        """Return the authority for what is known by a description rather than by a value: `ASKED` or `NONE`.

        It was asked for if a clause asks for one of the actions, the description speaks of the kind of its objects or
        shares a name with it, and whatever the clause names is found again in the call.

        Parameters
        ----------
        actions
            What it amounts to, of `safetydrift.effects.operations.ACTIONS`.
        described
            What describes it; the last as it is written in the call.
        texts
            The values of the call's arguments.
        kind
            The kind of object of which the clause must speak in any case, if any.
        """
        return self._view().amounts(tuple(actions), tuple(described), tuple(texts), kind)

    def reaches(self, clause: int, detail: str) -> bool:
        """Return whether a detail of an act asks for no more than a clause speaks of: force, production, the public."""
        return self._view().reaches(clause, detail)

    def designated(self, source: str, words: Iterable[str] = ()) -> tuple[Delegation, ...]:
        """Return the delegations that point to a source.

        Parameters
        ----------
        source
            What the source is known by: its path, URL, sender or name.
        words
            What else describes it: its kind (``"email"``), its sender, its subject.
        """
        return tuple([self.delegations[index] for index in self._view().designated(source, tuple(words))])

    def _view(self) -> View:
        view: View | None = self.__dict__.get("_made")
        if view is None:
            view = self.__dict__["_made"] = View(self)
        return view
