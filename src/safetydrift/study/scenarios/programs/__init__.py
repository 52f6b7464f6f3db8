"""The programs of the sandbox's shell: those that people look at and move files with, in the parts that they use."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from safetydrift.study.scenarios.programs import changing, host, looking, small, texts
from safetydrift.study.scenarios.shell import Out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.study.scenarios.shell import Program


def _said(text: str) -> Program:
    return lambda _shell, _args, _stdin: Out(text)


PROGRAMS: Mapping[str, Program] = {
    **{
        program.__name__: program
        for program in (
            looking.ls,
            looking.cat,
            looking.head,
            looking.tail,
            looking.grep,
            looking.find,
            texts.wc,
            texts.sort,
            texts.uniq,
            texts.cut,
            texts.tr,
            texts.sed,
            texts.diff,
            changing.cp,
            changing.mv,
            changing.rm,
            changing.mkdir,
            changing.touch,
            changing.tee,
            changing.chmod,
            host.chown,
            host.sudo,
            host.cd,
            host.systemctl,
            host.curl,
            small.echo,
            small.printf,
            small.test,
            small.du,
            small.shuf,
            small.xargs,
            small.which,
        )
    },
    "pwd": lambda shell, _args, _stdin: Out(shell.environment.cwd + "\n"),
    "whoami": lambda shell, _args, _stdin: Out(shell.environment.user + "\n"),
    "hostname": _said("sandbox\n"),
    "date": lambda shell, _args, _stdin: Out(shell.environment.now + "\n"),
    "basename": lambda _shell, args, _stdin: Out(posixpath.basename(args[0] if args else "") + "\n"),
    "dirname": lambda _shell, args, _stdin: Out(posixpath.dirname(args[0] if args else "") + "\n"),
    "true": _said(""),
    "false": lambda _shell, _args, _stdin: Out(code=1),
    ":": _said(""),
}
"""Every program, by its name."""
