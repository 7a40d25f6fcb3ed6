"""The command line: models of text and tables from files, the demo, the experiments.

Only this package uses typer and rich. Modules are imported when a command runs, so that help and
errors come at once. This file imports almost nothing, so that Ctrl-C works from the start.
"""

import sys

from ._start import ignore_from_now_on, leaving_at_once


def main(*words: str) -> None:
    """Run the ``discem`` script, or a script for one of its commands."""
    with leaving_at_once:
        try:
            from ._app import run
        except (ImportError, MemoryError) as error:  # under a limit on memory, for example
            print(f"discem: cannot start: {error or 'out of memory'}", file=sys.stderr)
            raise SystemExit(2) from None
    try:
        run(words)
    except KeyboardInterrupt:  # while commands are made ready: those that run hear it themselves
        print("discem: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        ignore_from_now_on()


def __getattr__(name: str) -> object:
    if name == "app":
        from ._app import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
