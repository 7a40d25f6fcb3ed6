"""Ctrl-C and SIGTERM while modules are loaded. Imports next to nothing, for it comes first."""

# not `signal` itself, whose enumerations take as long to load as all that comes before
import _signal as signal  # type: ignore[import-not-found]
import os


class _LeavingAtOnce:
    """Lets Ctrl-C and SIGTERM end the process without further ado: for imports.

    There is nothing to keep as yet, and libraries make errors of all kinds of an exception that
    is raised while they are loaded.
    """

    def __enter__(self) -> None:
        self.before = []
        try:
            for signum in (signal.SIGINT, signal.SIGTERM):
                self.before.append((signum, signal.signal(signum, _leave)))
        except ValueError:  # signals are for the main thread
            pass

    def __exit__(self, *_: object) -> None:
        for signum, handler in self.before:
            signal.signal(signum, handler)


def _leave(signum: int, _: object) -> None:
    os.write(2, b"discem: interrupted\n")
    os._exit(128 + signum)


leaving_at_once = _LeavingAtOnce()


def ignore_from_now_on() -> None:
    """All is done, and the interpreter needs a moment to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
