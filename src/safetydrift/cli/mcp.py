"""``safetydrift mcp``."""

from __future__ import annotations

from typing import Any

import click

from safetydrift.cli.output import notes, shown

_FILE = click.Path(exists=True, dir_okay=False)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--upstream", metavar="URL", help="Guard a server that is reached over streamable HTTP.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="With --upstream: listen here [default: any]."
)
@click.option(
    "--name", metavar="NAME", help="What the server is called in catalogue, configuration and policy."
)
@click.option(
    "--session", metavar="KEY", help="Go on with this run, and keep it; without, a new one in memory."
)
@click.option("--task", metavar="TEXT", help="What the user asked for, in their words.")
@click.option(
    "--ask", metavar="URL", help="Post questions to this address, and wait for the answer of a person."
)
@click.option(
    "--service",
    envvar="SAFETYDRIFT_URL",
    metavar="URL",
    help="Ask a team's guard (`safetydrift serve`) instead; SAFETYDRIFT_TOKEN holds the token.",
)
@click.option("--policy", type=_FILE, metavar="FILE", help="Policy file; followed while the proxy runs.")
@click.option("--model", type=_FILE, metavar="FILE", help="Model file.")
@click.option(
    "--config",
    type=_FILE,
    envvar="SAFETYDRIFT_CONFIG",
    metavar="FILE",
    help="What is inside your organisation, and which servers are trusted.",
)
@click.option(
    "--state", type=click.Path(file_okay=False), metavar="FOLDER", help="Where the log and sessions are kept."
)
@click.option("--category", metavar="NAME", help="What kind of task the run is.")
@click.option("--pipeline", metavar="NAME", help="Which model acts.")
@click.option(
    "--on-change",
    type=click.Choice(["warn", "refuse"]),
    default="warn",
    show_default=True,
    help="What is done about a tool whose definition is not the one that was seen first.",
)
@click.option(
    "--confirm-definitions",
    is_flag=True,
    help="Take the definitions as they were seen last for the right ones.",
)
@click.pass_context
def mcp(
    context: click.Context,
    /,
    command: tuple[str, ...],
    upstream: str | None,
    port: int,
    on_change: str,
    confirm_definitions: bool,
    **told: Any,
) -> None:
    """Guard an MCP server: stand between it and its client, and judge every tool call.

    Give the server's own command after "--", or its address with --upstream. A call that is refused is answered
    with a tool error that tells the model why; nothing of it reaches the server.

    \b
    Exit codes:
      0    the client has ended the connection, or the proxy was stopped
      127  the server could not be started
      128+ a signal ended the proxy or the server
      else the server's own; 1 if it ended with 0 by itself, or if the connection had to be closed
    \b
    Example:
      safetydrift mcp --name files -- npx -y @modelcontextprotocol/server-filesystem /data
      safetydrift mcp --upstream http://127.0.0.1:8000/mcp --port 8765
    """
    from safetydrift.integrations.mcp.opening import Settings, say

    if confirm_definitions:
        settings = Settings(command, upstream=upstream or "", **_given(told))
        _confirm(settings.definitions)
        return
    if bool(command) == bool(upstream):
        raise click.UsageError('say what is to be guarded: a command after "--", or --upstream')
    settings = Settings(
        command, upstream=upstream or "", refuse_changed=on_change == "refuse", **_given(told)
    )
    guarding, run = settings.opened()
    try:
        if upstream:
            from safetydrift.integrations.mcp.http import HttpProxy, listening, serve

            proxy = HttpProxy(guarding, upstream, run, settings.about)
            with listening(port) as listener:
                say(f"guarding {upstream} at http://127.0.0.1:{listener.getsockname()[1]}{proxy.path}")
                code = serve(proxy, listener)
        else:
            from safetydrift.integrations.mcp.exchange import Exchange
            from safetydrift.integrations.mcp.stdio import StdioProxy

            code = StdioProxy(Exchange(guarding, run), command).run()
    finally:
        guarding.guard.close()
    context.exit(code)


def _given(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}


def _confirm(path: str) -> None:
    from safetydrift.integrations.mcp.definitions import Definitions

    changed = Definitions(path).confirm()
    notes.print(shown(f"confirmed: {', '.join(changed)}" if changed else "nothing had changed"), markup=False)
