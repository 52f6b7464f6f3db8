"""The ``safetydrift`` command: one module per verb."""

EXIT_REFUSED = 3
EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; everything that can go wrong ends here, as a message and an exit code."""
    import os
    import sys

    _answer_hooks(sys.argv[1:])

    import click

    from safetydrift.cli.app import app
    from safetydrift.cli.output import shown
    from safetydrift.errors import MissingExtraError, SafetyDriftError

    def stop(message: str, code: int) -> None:
        click.secho(shown(message), fg="red", err=True)
        sys.exit(code)

    if sys.stdout is None:  # closed by the caller: results have nowhere to go, remarks still do
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    try:
        code = app.main(prog_name="safetydrift", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        stop("interrupted", EXIT_INTERRUPTED)
    except SafetyDriftError as error:
        stop(f"error: {error}", EXIT_REFUSED)
    except ModuleNotFoundError as error:
        missing = MissingExtraError.of(error)
        if missing is None:
            raise
        stop(f"error: {missing}", EXIT_REFUSED)
    except BrokenPipeError:
        # The reader of our output went away; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = f"{error.filename}: " if error.filename else ""
        stop(f"error: {where}{error.strerror or error}", EXIT_REFUSED)


def _answer_hooks(words: list[str]) -> None:
    """Answer a hook, and exit, without importing what people's commands need; return for all else."""
    if words[:1] != ["hook"] or {"-h", "--help"} & set(words):
        return
    if words[1:2] == ["claude-code"]:
        import gc

        # The process answers one event and ends: looking for garbage would only go through the model again and again.
        gc.disable()
        try:
            from safetydrift.integrations.claude_code import main as answer

            raise SystemExit(answer(words[2:]))
        finally:
            gc.enable()
    if words[1:2] and words[1] in {"codex", "cursor", "gemini-cli", "copilot"}:
        from safetydrift.integrations.coding_agents import main as answer_as

        raise SystemExit(answer_as(words[1], words[2:]))
    if words[1:2] == ["serve"] and len(words) > 2:  # noqa: PLR2004
        from safetydrift.integrations.resident import serve

        raise SystemExit(serve(words[2], words[3:]))
