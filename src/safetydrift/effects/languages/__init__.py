"""The languages in which agents write what they do, and the reader of each."""

from safetydrift.effects.languages.registry import READERS

__all__ = ["READERS"]
