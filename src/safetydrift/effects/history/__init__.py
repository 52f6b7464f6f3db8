"""What a run has shown so far: who said what, what was sensitive, and what came from outside."""

from safetydrift.effects.history.history import History

__all__ = ["History"]
