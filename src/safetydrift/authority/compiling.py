"""Makes one data file of the reviewed lexicon.

``python -m safetydrift.authority.compiling`` writes it again after the lexicon has been edited. The tables of each language
hold forms of words: ``delet*`` is a stem, ``turn ... off`` has a gap, ``borra!`` counts at the head of a clause alone, and
``borra+`` may have one of the language's clitics at its end.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from safetydrift.authority.text import fold
from safetydrift.authority.vocabulary import (
    DATA,
    GERUND,
    GOAL,
    IMPERATIVE,
    KIND,
    LEXICON_FORMAT,
    MARK,
    MARK_BITS,
    MARKS,
    MONTH,
    NOUN,
    NUMBER,
    PARTICIPLE,
    PHRASE,
    REFUSED,
    SCOPE,
    SCOPES,
    THIRD,
    VERB,
    VERB_BITS,
    packed,
)
from safetydrift.errors import ConfigError

COMMON = "common"
_SECTIONS = {"nouns": NOUN, "refused": REFUSED, "goals": GOAL, "kinds": KIND, "scope": SCOPE, "marks": MARK}
_PLAIN = ("kinds", "suffixes", "places", "programs", "derived", "groups", "means")
_SETTINGS = {"language", "strict", "compounds", "prefixes", "clitics", "verbs", "inflected", "numbers", "months"}
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa"})


class Compiler:
    """Gathers the entries of all languages.

    Parameters
    ----------
    common
        What holds in every language.
    """

    def __init__(self, common: dict[str, Any]) -> None:
        self.common = common
        self.languages: list[str] = []
        self.strict: list[int] = []
        self.compounds: list[int] = []
        self.prefixes = ""
        self.words: dict[str, set[int]] = {}
        self.stems: dict[str, set[int]] = {}
        self.phrases: list[tuple[list[str], int]] = []
        self.numbers: list[float] = []
        goals = [name for name in common["means"] if name not in VERB_BITS]
        self.items = {
            VERB: {name: bit.bit_length() - 1 for name, bit in VERB_BITS.items()},
            GOAL: {name: index for index, name in enumerate(goals)},
            KIND: {name: index for index, name in enumerate(common["kinds"])},
            SCOPE: {name: index for index, name in enumerate(SCOPES)},
            MARK: {name: index for index, name in enumerate(MARKS)},
        }
        for kind in (NOUN, REFUSED):
            self.items[kind] = self.items[VERB]

    def language(self, table: dict[str, Any]) -> None:
        """Add a language.

        Raises
        ------
        ConfigError
            If a table holds something that nobody reads.
        """
        name, index = table["language"], len(self.languages)
        if unread := set(table) - _SETTINGS - set(_SECTIONS):
            raise ConfigError(f"{name}.toml: nobody reads {', '.join(sorted(unread))}")
        self.languages.append(name)
        self.strict += [index] if table.get("strict") else []
        self.compounds += [index] if table.get("compounds") else []
        self.prefixes += "".join(sorted(set(table.get("prefixes", "")) - set(self.prefixes)))
        clitics = table.get("clitics", [])
        for section, kind in _SECTIONS.items():
            for item, forms in table.get(section, {}).items():
                self._forms(index, kind, self._item(kind, item, f"{name}.toml: {section}"), forms, clitics)
        for item, forms in table.get("verbs", {}).items():
            number = self._item(VERB, item, f"{name}.toml: verbs")
            self._forms(index, IMPERATIVE if table.get("strict") else VERB, number, forms, clitics)
            self._inflections(index, number, forms if "inflected" in table else [], table.get("inflected", {}))
        for word, value in table.get("numbers", {}).items():
            if value not in self.numbers:
                self.numbers.append(value)
            self._forms(index, NUMBER, self.numbers.index(value), [word, f"{word}*"], [])
        for month, names in enumerate(table.get("months", {}).get("names", []), 1):
            self._forms(index, MONTH, month, names.split(), [])

    def command_words(self) -> None:
        """Add the words of command lines and the scopes of names, which mean the same in every language."""
        self.languages.append("any")
        index = len(self.languages) - 1
        for action, forms in self.common["shell"].items():
            self._forms(index, VERB, self.items[VERB][action], forms, [])
        for scope, forms in self.common["scope"].items():
            self._forms(index, SCOPE, self.items[SCOPE][scope], forms, [])

    def _item(self, kind: int, name: str, where: str) -> int:
        try:
            return self.items[kind][name]
        except KeyError:
            raise ConfigError(f"{where}: there is no {name!r}") from None

    def _forms(self, language: int, kind: int, item: int, forms: list[str], clitics: list[str]) -> None:
        for form in forms:
            bare = form.rstrip("!+*")
            flags = form[len(bare) :]
            said = IMPERATIVE if "!" in flags and kind == VERB else kind
            variants = [bare + clitic for clitic in ("", *clitics)] if "+" in flags else [bare]
            for variant in variants:
                spellings = {fold(variant), fold(variant.translate(_UMLAUTS))}
                for spelling in sorted(spellings):
                    self._entry(spelling + ("*" if "*" in flags else ""), packed(language, said, item))

    def _entry(self, form: str, code: int) -> None:
        form, *rest = form.replace("-", " ").split()
        if rest:
            self.phrases.append((rest, code))
            code = packed(code & 63, PHRASE, len(self.phrases) - 1)
        table = self.stems if form.endswith("*") else self.words
        table.setdefault(form.rstrip("*"), set()).add(code)

    def _inflections(self, language: int, item: int, forms: list[str], irregular: dict[str, list[str]]) -> None:
        """Add the other forms of English verbs: third person, -ing, and participle."""
        for form in forms:
            first, blank, rest = form.partition(" ")
            kinds = (THIRD, GERUND, PARTICIPLE, PARTICIPLE, PARTICIPLE)
            for kind, inflected in zip(kinds, irregular.get(first, _regular(first)), strict=False):
                kind = PARTICIPLE if inflected.endswith("ed") else GERUND if inflected.endswith("ing") else kind  # noqa: PLW2901
                if kind == THIRD and rest:
                    continue
                self._forms(language, kind, item, [inflected + blank + rest], [])

    def result(self) -> dict[str, Any]:
        """Return the data of the file."""
        return {
            "format": LEXICON_FORMAT,
            "languages": self.languages,
            "strict": self.strict,
            "compounds": self.compounds,
            "prefixes": self.prefixes,
            "words": {word: sorted(codes) for word, codes in sorted(self.words.items())},
            "stems": {word: sorted(codes) for word, codes in sorted(self.stems.items())},
            "phrases": self.phrases,
            "numbers": self.numbers,
            "goals": list(self.items[GOAL]),
            **{name: self.common[name] for name in _PLAIN},
        }


def _regular(verb: str) -> list[str]:
    """Return the regular forms of an English verb: third person, -ing, past.

    >>> _regular("copy"), _regular("push"), _regular("delete")
    (['copies', 'copying', 'copied'], ['pushes', 'pushing', 'pushed'], ['deletes', 'deleting', 'deleted'])
    """
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return [verb[:-1] + "ies", verb + "ing", verb[:-1] + "ied"]
    if verb.endswith("e"):
        return [verb + "s", verb[:-1] + "ing", verb + "d"]
    third = verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")
    return [third, verb + "ing", verb + "ed"]


def compiled_lexicon() -> bytes:
    """Return the data file that the lexicon makes."""
    folder = Path(DATA).parent
    tables = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.toml"))}
    compiler = Compiler(tables.pop(COMMON))
    for table in tables.values():
        compiler.language(table)
    compiler.command_words()
    return json.dumps(compiler.result(), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    Path(DATA).write_bytes(compiled_lexicon())
