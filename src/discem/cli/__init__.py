"""The command line: classifiers of text from files, the demo, the paper's experiments.

The only package that knows typer and rich. Work is imported when a command runs, so that help and
mistakes answer at once.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from .. import __version__
from ..exceptions import DiscemError

try:
    import rich  # noqa: F401
    import typer
    from typer.core import TyperGroup
except ImportError:
    print(
        "discem: the command line needs more packages: pip install 'discem[cli]'", file=sys.stderr
    )
    raise SystemExit(2) from None

from ._evaluate import evaluate
from ._explain import explain
from ._fit import fit
from ._interrupts import Stopped
from ._predict import predict
from ._reports import demo, reproduce

UsageError: Any = typer.BadParameter.__base__  # of the click that this typer brings or needs


class _Commands(TyperGroup):
    """Ends on our own errors and on misuse with one line, and on Ctrl-C with a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DiscemError as error:
            typer.echo(f"discem: {error}", err=True)
            raise typer.Exit(2) from error
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # no mistake, but a wish for help
                raise
            path = (error.ctx or ctx).command_path
            message = error.format_message().rstrip(".")
            typer.echo(f"discem: {message}; see {path} --help", err=True)
            raise typer.Exit(2) from error
        except Stopped as stopped:
            typer.echo(f"discem: {stopped}", err=True)
            raise typer.Exit(stopped.exit_code) from None
        except KeyboardInterrupt:
            typer.echo("discem: interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="discem",
    cls=_Commands,
    help="Generative classifiers trained discriminatively.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (fit, predict, evaluate, explain, demo, reproduce):
    app.command()(command)


def main(*words: str) -> None:
    """The entry point of the ``discem`` script, and of scripts that are one of its commands."""
    app([*words, *sys.argv[1:]], prog_name="discem")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discem {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass
