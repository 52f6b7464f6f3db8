"""What a tool call really does: a reviewed catalogue, the readers of what agents write, and the labeler."""

from safetydrift.effects.catalogue import CATALOGUE_FORMAT, Catalogue
from safetydrift.effects.labeler import Labeler

__all__ = ["CATALOGUE_FORMAT", "Catalogue", "Labeler"]
