"""All commands together, and how they end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Annotated, Any

from .. import __version__
from ..exceptions import DiscemError

try:
    import rich  # noqa: F401
    import typer
    from typer.core import TyperCommand, TyperGroup
except ModuleNotFoundError:
    print(
        "discem: the command line needs more packages: pip install 'discem[cli]'", file=sys.stderr
    )
    raise SystemExit(2) from None

from ._demo import demo
from ._evaluate import evaluate
from ._explain import explain
from ._fit import fit
from ._impute import impute
from ._inspect import inspect
from ._interrupts import Interrupts, Stopped
from ._outliers import outliers
from ._predict import predict
from ._reproduce import reproduce
from ._sample import sample
from ._screen import escaped

UsageError: Any = typer.BadParameter.__base__  # of the click that this typer brings or needs


@contextmanager
def _ending_in_one_line() -> Iterator[None]:
    """End with one line on stderr after any error."""
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise  # not errors; typer handles them
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the user wants help
            raise
        path = error.ctx.command_path if error.ctx else "discem"
        message = error.format_message().rstrip(".").replace("Value error, ", "")
        _end(2, f"{message}; see {path} --help", error)
    except DiscemError as error:
        _end(2, str(error), error)
    except Stopped as stopped:
        _end(stopped.exit_code, str(stopped), stopped)
    except KeyboardInterrupt as error:
        _end(130, "interrupted", error)
    except MemoryError as error:
        _end(2, "out of memory", error)
    except OSError as error:
        _forget_output()
        name = error.filename or "standard output"  # which alone is written to without a name
        _end(2, f"{name}: {error.strerror or error}", error)
    except ImportError as error:  # a library that is installed, but cannot be loaded
        root: BaseException = error
        while root.__cause__:  # NumPy wraps the cause in a page of advice
            root = root.__cause__
        _end(2, f"cannot load what this needs: {root}", error)
    except Exception as error:
        if os.environ.get("DISCEM_TRACEBACK"):
            raise
        message = f"{type(error).__name__}: {error}"
        _end(1, f"a mistake of discem itself, {message} (DISCEM_TRACEBACK=1 shows where)", error)


def _end(code: int, message: str, error: BaseException) -> None:
    with suppress(OSError):  # if stderr is full, too, the exit code must be enough
        typer.echo(f"discem: {escaped(message)}", err=True)
    raise typer.Exit(code) from error


def _forget_output() -> None:
    """Discard pending output that the standard output cannot take, to avoid another error."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  the interpreter closes it


class _Commands(TyperGroup):
    """Report errors in one line, also for the options of ``discem`` itself."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        with _ending_in_one_line():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        with _ending_in_one_line(), Interrupts():  # so that files are complete, or absent
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        return _plain(super().get_params(ctx))


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> Any:
        return _plain(super().get_params(ctx))


def _plain(params: list[Any]) -> list[Any]:
    """Remove types of flags from the help."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""
    return params


app = typer.Typer(
    name="discem",
    cls=_Commands,
    help="Classify, and predict numbers, from tables with missing cells, and from text.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
COMMANDS = (fit, predict, evaluate, explain, inspect, impute, sample, outliers, demo, reproduce)
for command in COMMANDS:
    app.command(cls=_Command)(command)


def run(words: tuple[str, ...]) -> None:
    """Run the command with these words and the arguments of the script; does not return."""
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
    if isinstance(sys.stdout, TextIOWrapper):  # a label may hold what no file or terminal can
        sys.stdout.reconfigure(errors="backslashreplace")
