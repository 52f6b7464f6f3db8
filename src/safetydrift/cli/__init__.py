"""The ``safetydrift`` command: one module per verb."""

EXIT_REFUSED = 3


def main() -> None:
    """Run the command line; our own errors end here, as a message and an exit code."""
    import os
    import sys

    import click

    from safetydrift.cli.app import app
    from safetydrift.errors import MissingExtraError, SafetyDriftError

    def refuse(error: SafetyDriftError) -> None:
        from safetydrift.cli.output import shown

        click.secho(shown(f"error: {error}"), fg="red", err=True)
        sys.exit(EXIT_REFUSED)

    try:
        app()
    except SafetyDriftError as error:
        refuse(error)
    except ModuleNotFoundError as error:
        missing = MissingExtraError.of(error)
        if missing is None:
            raise
        refuse(missing)
    except BrokenPipeError:
        # The reader of our output went away; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
