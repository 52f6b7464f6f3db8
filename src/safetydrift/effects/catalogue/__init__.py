"""Reviewed data that says what tools, programs, files, tables and texts mean for safety."""

from safetydrift.effects.catalogue.catalogue import CATALOGUE_FORMAT, Catalogue

__all__ = ["CATALOGUE_FORMAT", "Catalogue"]
