"""Compiled grammars without the Python around them.

The packages of tree-sitter hold one extension module each and an ``__init__`` that imports ``importlib.resources`` and
``typing`` for things nobody asks for here. In a process that judges a single command, those imports take longer than
all the rest: 20 ms against less than 1.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from threading import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from tree_sitter import Language, Parser

_LOADING, _QUIET = Lock(), Lock()


@cache
def binding(package: str) -> ModuleType:
    """Return the extension module ``_binding`` of a package, without importing the package.

    A package that is imported already, or keeps its extension elsewhere, is imported as usual.

    Raises
    ------
    ImportError
        If the package is not installed.
    """
    name = f"{package}._binding"
    if package not in sys.modules and (home := PathFinder.find_spec(package)) is not None:
        found = PathFinder.find_spec(name, home.submodule_search_locations)
        if found is not None and found.loader is not None:
            module = found.loader.create_module(found)
            if module is not None:
                found.loader.exec_module(module)
                return module
    return import_module(name)


def parser(package: str) -> Parser:
    """Return a new parser for the grammar of a package; one of several is named behind a colon.

    Raises
    ------
    ImportError
        If the package is not installed, or made for another version of the library.
    """
    # Loaded twice, by two threads, a binding would not take the grammars of its twin for grammars.
    with _LOADING:
        new: Parser = binding("tree_sitter").Parser(_grammar(package))
    return new


@cache
def _grammar(package: str) -> Language:
    name, _, function = package.partition(":")
    try:
        # Some packages still hand their grammar over as a number, which the library warns of.
        language: Language = quietly(
            binding("tree_sitter").Language, getattr(binding(name), function or "language")()
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise ImportError(f"the grammar {package} does not fit: {error}") from error
    return language


def quietly(function: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function gives, without its warnings; the filters belong to the whole process."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)
