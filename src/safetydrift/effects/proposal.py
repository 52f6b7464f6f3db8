"""What is read of a proposed call: one value, without the arguments themselves.

Whatever later steps of a run ask of a call is said here once, so that its result can be read where nothing else of the
call is left: in another process, hours later.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from safetydrift.states.bounded import Count, Digest
from safetydrift.states.effect import Effect


class Proposal(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A proposed call, as it is read before it is made.

    Parameters
    ----------
    tool
        The tool's name; empty if it is no text.
    effect
        What the call does if it is made.
    sources
        Where the words of its arguments come from, once injected instructions have been read
        (`safetydrift.effects.history.sources`); 0 before.
    partial
        Whether a failure leaves half of it done: text in a language runs as far as it comes.
    own
        Whether what it brings back was written by nobody outside.
    searched
        Whether what it brings back may hold injected instructions.
    task_files
        Digests of the files that it shows and does nothing else, of those in which the task stands by the user's words.
    """

    tool: str
    effect: Effect
    sources: Count = 0
    partial: bool = False
    own: bool = False
    searched: bool = True
    task_files: tuple[Digest, ...] = ()

    def stored(self) -> Proposal:
        """Return what is stored until the result comes: nothing that is written in the arguments."""
        return replace(self, effect=replace(self.effect, reasons=(), destinations=()))
