"""Shell commands: parsed by a grammar of bash, then every program in them looked up."""

from safetydrift.effects.languages.shell.commands import read_shell

__all__ = ["read_shell"]
