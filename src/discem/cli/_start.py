"""Ctrl-C while modules are loaded. Imports as little as can be, for it is imported first."""

# not `signal` itself, whose enumerations take as long to load as all that comes before
import _signal as signal  # type: ignore[import-not-found]
import os


class _LeavingAtOnce:
    """Lets Ctrl-C end the process without further ado: for imports.

    There is nothing to keep as yet, and libraries make errors of all kinds of an exception that
    is raised while they are loaded.
    """

    def __enter__(self) -> None:
        try:
            self.before = signal.signal(signal.SIGINT, _leave)
        except ValueError:  # signals are for the main thread
            self.before = None

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)


def _leave(signum: int, _: object) -> None:
    os.write(2, b"discem: interrupted\n")
    os._exit(128 + signum)


leaving_at_once = _LeavingAtOnce()


def ignore_from_now_on() -> None:
    """All is done, and the interpreter needs a moment to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
