"""Makes one data file of the reviewed lexicon.

``python -m safetydrift.authority.compiling`` writes it again after the lexicon has been edited. The tables of each language
hold forms of words: ``delet*`` is a stem, ``turn ... off`` has a gap, ``borra!`` counts at the head of a clause alone. Words
of languages with clitics are found with them at their end, too: ``borralo``.
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
        self.clitics: set[str] = set()
        self.tables: list[dict[str, Any]] = []
        self.known: dict[str, int] = {}
        self.known_stems: dict[str, int] = {}
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
        self._open(name)
        self.strict += [index] if table.get("strict") else []
        self.compounds += [index] if table.get("compounds") else []
        self.prefixes += "".join(sorted(set(table.get("prefixes", "")) - set(self.prefixes)))
        self.clitics.update(table.get("clitics", []))
        for section, kind in _SECTIONS.items():
            for item, forms in table.get(section, {}).items():
                self._forms(index, kind, self._item(kind, item, f"{name}.toml: {section}"), forms)
        for item, forms in table.get("verbs", {}).items():
            number = self._item(VERB, item, f"{name}.toml: verbs")
            self._forms(index, IMPERATIVE if table.get("strict") else VERB, number, forms)
            self._inflections(index, number, forms if "inflected" in table else [], table.get("inflected", {}))
        for word, value in table.get("numbers", {}).items():
            if value not in self.numbers:
                self.numbers.append(value)
            number_forms = [word, f"{word}*"] if table.get("compounds") or name == "it" else [word]
            self._forms(index, NUMBER, self.numbers.index(value), number_forms)
        for month, names in enumerate(table.get("months", {}).get("names", []), 1):
            self._forms(index, MONTH, month, names.split())

    def command_words(self) -> None:
        """Add the words of command lines and the scopes of names, which mean the same in every language."""
        self._open("any")
        index = len(self.languages) - 1
        for action, forms in self.common["shell"].items():
            self._forms(index, VERB, self.items[VERB][action], forms)
        for scope, forms in self.common["scope"].items():
            self._forms(index, SCOPE, self.items[SCOPE][scope], forms)

    def _open(self, name: str) -> None:
        self.languages.append(name)
        self.tables.append({"words": {}, "stems": {}, "phrases": []})

    def _item(self, kind: int, name: str, where: str) -> int:
        try:
            return self.items[kind][name]
        except KeyError:
            raise ConfigError(f"{where}: there is no {name!r}") from None

    def _forms(self, language: int, kind: int, item: int, forms: list[str]) -> None:
        for form in forms:
            bare = form.rstrip("!*")
            flags = form[len(bare) :]
            said = IMPERATIVE if "!" in flags and kind == VERB else kind
            for spelling in sorted({fold(bare), fold(bare.translate(_UMLAUTS))}):
                self._entry(language, spelling + ("*" if "*" in flags else ""), said, item)

    def _entry(self, language: int, form: str, kind: int, item: int) -> None:
        table = self.tables[language]
        form, *rest = form.replace("-", " ").split()
        code = packed(kind, item)
        if rest:
            table["phrases"].append((" ".join(rest), code))
            code = packed(PHRASE, len(table["phrases"]) - 1)
        is_stem = form.endswith("*")
        form = form.rstrip("*")
        table["stems" if is_stem else "words"].setdefault(form, set()).add(code)
        known = self.known_stems if is_stem else self.known
        known[form] = known.get(form, 0) | (1 << language if kind != NUMBER or not is_stem else 0)

    def _inflections(self, language: int, item: int, forms: list[str], irregular: dict[str, list[str]]) -> None:
        """Add the other forms of English verbs: third person, -ing, and participle."""
        for form in forms:
            first, blank, rest = form.partition(" ")
            kinds = (THIRD, GERUND, PARTICIPLE, PARTICIPLE, PARTICIPLE)
            for kind, inflected in zip(kinds, irregular.get(first, _regular(first)), strict=False):
                kind = PARTICIPLE if inflected.endswith("ed") else GERUND if inflected.endswith("ing") else kind  # noqa: PLW2901
                if kind == THIRD and rest:
                    continue
                self._forms(language, kind, item, [inflected + blank + rest])

    def result(self) -> dict[str, Any]:
        """Return the data of the file."""
        return {
            "format": LEXICON_FORMAT,
            "languages": self.languages,
            "strict": self.strict,
            "compounds": self.compounds,
            "prefixes": self.prefixes,
            "clitics": sorted(self.clitics, key=lambda clitic: (-len(clitic), clitic)),
            "known": self.known,
            "known_stems": self.known_stems,
            "tables": [
                {
                    "words": {word: sorted(codes) for word, codes in table["words"].items()},
                    "stems": {word: sorted(codes) for word, codes in table["stems"].items()},
                    "phrases": table["phrases"],
                }
                for table in self.tables
            ],
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
