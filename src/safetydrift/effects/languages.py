"""The languages in which an argument may be written, and the function that reads each.

A reader takes the catalogue and the argument, and returns the effect of running it; it never raises.
"""

from __future__ import annotations

from safetydrift.effects.shell import read_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.states.effect import Effect

READERS: dict[str, Callable[[Catalogue, object], Effect]] = {"shell": read_shell}
