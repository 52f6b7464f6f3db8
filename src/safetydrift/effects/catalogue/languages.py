"""The languages that entries of a catalogue may name; `safetydrift.effects.languages` has the reader of each."""

LANGUAGES = frozenset(
    (
        "shell",
        "python",
        "javascript",
        "perl",
        "ruby",
        "php",
        "lua",
        "awk",
        "r",
        "tcl",
        "groovy",
        "powershell",
        "encoded",
        "sql",
    )
)
