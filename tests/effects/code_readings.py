"""What the tests of the readers of code share: reading a text, with other languages only noted down."""

from functools import cache
from typing import Any

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.reading import Reading
from safetydrift.formats.catalogue_file import load_catalogue

SAFE = ("none", "code_exec", "fully_reversible")
ANYTHING = ("internal", "network", "irreversible")


class Noting(dict[str, Any]):
    """Readers of which some read, while the others note what they are handed."""

    def __init__(self, *languages):
        super().__init__({language: READERS[language] for language in languages})
        self.noted = []

    def __missing__(self, language):
        return lambda _reading, text: self.noted.append((language, text))


@cache
def catalogue():
    return load_catalogue()


def read(language, text, boundary=None):
    """Return the reading of a text; `noted` are the texts in other languages within it."""
    readers = Noting(language)
    reading = Reading(catalogue(), boundary or Boundary(), readers)
    READERS[language](reading, text)
    return reading, readers.noted


def levels(language, text, boundary=None):
    reading, _ = read(language, text, boundary)
    return ranked(reading)


def ranked(reading):
    scales = reading.catalogue.scales
    return tuple(scales.level(reading.ranks, name) for name in ("data", "tool", "reversibility"))


def kinds(language, text):
    return set(read(language, text)[0].effect().kinds)


def shell_within(language, text):
    return [inner for spoken, inner in read(language, text)[1] if spoken == "shell"]
