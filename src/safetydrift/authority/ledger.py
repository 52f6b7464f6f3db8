"""The ledger of a run: what the user asked for, what came in and from whom, what was made, and what was done.

A small immutable value of bounded size. Texts stand in it as they are while the run stays in this process; what a store
keeps (`Ledger.kept`) are keyed digests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from safetydrift.authority.files import Files, KnownFile
from safetydrift.authority.request import Request
from safetydrift.authority.texts import MAX_KEPT, Place, SourceText, better, forms_of_line, needles_of
from safetydrift.effects.operations import ACTIONS
from safetydrift.states.bounded import Count

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TEXTS = 64
"""Texts that are remembered; of more, those that vouch for least are forgotten first."""
MAX_CHARACTERS = 512 * 1024
"""Characters of all of them."""

ACTION_NAMES = tuple(ACTIONS)
_NOTHING_DONE = (0,) * len(ACTION_NAMES)


class Ledger(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a run has shown so far of who asked for what.

    Parameters
    ----------
    request
        What the user asked for.
    texts
        What came back from tools, the newest last.
    files
        What is known of files.
    done
        How often each action has been done, in the order of `safetydrift.effects.operations.ACTIONS`.
    calls
        Calls whose results have come back.
    exposure
        0 while nothing from outside was read, 1 after that, 2 once something of it has spoken to the agent.
    """

    request: Request
    texts: Annotated[tuple[SourceText, ...], Meta(max_length=MAX_TEXTS)] = ()
    files: Files = Files()
    done: Annotated[tuple[Count, ...], Meta(min_length=len(ACTION_NAMES), max_length=len(ACTION_NAMES))] = (
        _NOTHING_DONE
    )
    calls: Count = 0
    exposure: Count = 0

    @property
    def key(self) -> bytes:
        """The key of the digests."""
        return self.request.salt

    def hears(self, text: str) -> Ledger:
        """Return the ledger after the user has said something."""
        return replace(self, request=self.request.hear(text, follow_up=self.request.turns > 0))

    def sees(self, text: SourceText) -> Ledger:
        """Return the ledger after a text has come in."""
        texts = (*self.texts, text)
        while len(texts) > MAX_TEXTS or (len(texts) > 1 and sum(len(one.text) for one in texts) > MAX_CHARACTERS):
            least = min(range(len(texts) - 1), key=lambda at: (texts[at].worth, at))
            texts = texts[:least] + texts[least + 1 :]
        return replace(self, texts=texts)

    def does(self, actions: Iterable[str]) -> Ledger:
        """Return the ledger after some actions have been done."""
        done = list(self.done)
        for action in actions:
            done[ACTION_NAMES.index(action)] += 1
        return replace(self, done=tuple(done))

    def times(self, action: str) -> int:
        """Return how often an action has been done."""
        return self.done[ACTION_NAMES.index(action)]

    def places(self, value: str) -> list[Place]:
        """Return where a value stands in what came in, at most one place per text, the newest text first."""
        needles = needles_of(value)
        found = [text.find(needles, self.request.shares, self.key) for text in reversed(self.texts)]
        return [place for place in found if place is not None]

    def best(self, value: str) -> Place | None:
        """Return the place that speaks most for a value."""
        best: Place | None = None
        for place in self.places(value):
            best = place if best is None or better(place, best) else best
        return best

    def file(self, path: str) -> KnownFile | None:
        """Return what is known of a file, or of the nearest folder above it that is known."""
        return self.files.find(path, self.key)

    def kept(self) -> Ledger:
        """Return the ledger as a store keeps it, without any text."""
        texts = tuple([text.kept(self.request.shares, self.key, forms_of_line) for text in self.texts])
        return replace(self, texts=texts, files=self.files.kept())


def cut(text: str) -> str:
    """Return what is kept of a text: of a longer one, its beginning and its end."""
    return text if len(text) <= MAX_KEPT else f"{text[: MAX_KEPT // 2]}\n{text[-MAX_KEPT // 2 :]}"
