"""Makes one data file of the reviewed lexicon: ``python -m safetydrift.authority.compiling`` writes it again.

The tables of each language hold forms of words: ``delet*`` is a stem, ``turn ... off`` has a gap, ``borra!`` counts
at the head of a clause alone. Words of languages with clitics are found with them at their end, too: ``borralo``.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from safetydrift.authority.text import fold
from safetydrift.authority.vocabulary import DATA, LEXICON_FORMAT, MARKS, SCOPES, SENSES, VERB_BITS, packed
from safetydrift.errors import ConfigError

_COPIED = ("kinds", "suffixes", "places", "programs", "derived", "groups", "means")
_TABLES = {"verbs", "nouns", "refused", "goals", "kinds", "scope", "marks"}
_SETTINGS = {"language", "strict", "compounds", "prefixes", "clitics", "inflected", "numbers", "months"}
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
        self.tables: list[dict[str, Any]] = []
        self.languages: list[str] = []
        self.known: dict[str, int] = {}
        self.known_stems: dict[str, int] = {}
        self.numbers: list[float] = []
        self.goals = [name for name in common["means"] if name not in VERB_BITS]
        verbs = list(VERB_BITS)
        lists = dict.fromkeys(("verbs", "nouns", "refused"), verbs)
        lists |= {
            "goals": self.goals,
            "kinds": list(common["kinds"]),
            "scope": list(SCOPES),
            "marks": list(MARKS),
        }
        self.items = {
            section: {name: at for at, name in enumerate(listed)} for section, listed in lists.items()
        }

    def language(self, table: dict[str, Any]) -> None:
        """Add a language.

        Raises
        ------
        ConfigError
            If a table holds something that nobody reads.
        """
        name = table["language"]
        if unread := set(table) - _SETTINGS - _TABLES:
            raise ConfigError(f"{name}.toml: nobody reads {', '.join(sorted(unread))}")
        self._open(name)
        for section in sorted(_TABLES & set(table)):
            kind = "imperatives" if section == "verbs" and table.get("strict") else section
            for item, forms in table[section].items():
                self._forms(kind, self._item(section, item), forms)
                if section == "verbs" and "inflected" in table:
                    self._inflections(self._item(section, item), forms, table["inflected"])
        for word, value in table.get("numbers", {}).items():
            self.numbers += [value] if value not in self.numbers else []
            runs_on = table.get("compounds") or name == "it"
            self._forms("number", self.numbers.index(value), [word, f"{word}*"] if runs_on else [word])
        for month, forms in enumerate(table.get("months", {}).get("names", []), 1):
            self._forms("month", month, forms.split())

    def command_words(self) -> None:
        """Add the words of command lines and the scopes of names, which mean the same in every language."""
        self._open("any")
        for section, table in (("verbs", self.common["shell"]), ("scope", self.common["scope"])):
            for item, forms in table.items():
                self._forms(section, self._item(section, item), forms)

    def _open(self, name: str) -> None:
        self.languages.append(name)
        self.tables.append({"words": {}, "stems": {}, "phrases": []})

    def _item(self, section: str, name: str) -> int:
        if name not in self.items[section]:
            raise ConfigError(f"{self.languages[-1]}.toml: {section} have no {name!r}")
        return self.items[section][name]

    def _forms(self, kind: str, item: int, forms: list[str]) -> None:
        for form in forms:
            bare = form.rstrip("!*")
            said = "imperatives" if "!" in form and kind == "verbs" else kind
            for spelling in sorted({fold(bare), fold(bare.translate(_UMLAUTS))}):
                self._entry(spelling + "*" * form.endswith("*"), said, item)

    def _entry(self, form: str, kind: str, item: int) -> None:
        table = self.tables[-1]
        form, *rest = form.replace("-", " ").split()
        code = packed(SENSES.index(kind), item)
        if rest:
            table["phrases"].append((" ".join(rest), code))
            code = packed(SENSES.index("phrases"), len(table["phrases"]) - 1)
        is_stem = form.endswith("*")
        form = form.rstrip("*")
        table["stems" if is_stem else "words"].setdefault(form, set()).add(code)
        known = self.known_stems if is_stem else self.known
        is_evidence = kind != "number" or not is_stem
        known[form] = known.get(form, 0) | (1 << len(self.tables) - 1 if is_evidence else 0)

    def _inflections(self, item: int, forms: list[str], irregular: dict[str, list[str]]) -> None:
        """Add the other forms of English verbs: third person, -ing, past and participle."""
        for form in forms:
            first, blank, rest = form.partition(" ")
            for at, inflected in enumerate(irregular.get(first, _regular(first))):
                kind = "gerunds" if inflected.endswith("ing") else "participles" if at else "thirds"
                if kind != "thirds" or not rest:
                    self._forms(kind, item, [inflected + blank + rest])

    def result(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the data of the file."""
        for table in self.tables:
            for name in ("words", "stems"):
                table[name] = {word: sorted(codes) for word, codes in table[name].items()}
        own: dict[str, Any] = {
            "format": LEXICON_FORMAT,
            "goals": self.goals,
            "languages": self.languages,
            "numbers": self.numbers,
        }
        own |= {"known": self.known, "known_stems": self.known_stems, "tables": self.tables}
        return own | settings | {name: self.common[name] for name in _COPIED}


def _regular(verb: str) -> list[str]:
    """Return the regular forms of an English verb: third person, -ing, past.

    >>> _regular("copy"), _regular("push"), _regular("delete")
    (['copies', 'copying', 'copied'], ['pushes', 'pushing', 'pushed'], ['deletes', 'deleting', 'deleted'])
    """
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return [verb[:-1] + "ies", verb + "ing", verb[:-1] + "ied"]
    if verb.endswith("e"):
        return [verb + "s", verb[:-1] + "ing", verb + "d"]
    return [
        verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s"),
        verb + "ing",
        verb + "ed",
    ]


def compiled_lexicon() -> bytes:
    """Return the data file that the lexicon makes."""
    files = sorted(Path(DATA).parent.glob("*.toml"))
    tables = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in files}
    compiler = Compiler(tables.pop("common"))
    for table in tables.values():
        compiler.language(table)
    compiler.command_words()
    found = {
        name: [at for at, table in enumerate(tables.values()) if table.get(name)]
        for name in ("strict", "compounds")
    }
    clitics = {clitic for table in tables.values() for clitic in table.get("clitics", [])}
    prefixes = sorted({sign for table in tables.values() for sign in table.get("prefixes", "")})
    settings = {
        **found,
        "clitics": sorted(clitics, key=lambda clitic: (-len(clitic), clitic)),
        "prefixes": "".join(prefixes),
    }
    return json.dumps(compiler.result(settings), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    Path(DATA).write_bytes(compiled_lexicon())
