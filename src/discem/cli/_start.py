"""Handle Ctrl-C and SIGTERM while modules load. Imports almost nothing, as it comes first."""

# not `signal` itself, whose enumerations take as long to load as all that comes before
import _signal as signal  # type: ignore[import-not-found]
import os


class _LeavingAtOnce:
    """End the process at once on Ctrl-C and SIGTERM, during imports.

    There is nothing to save yet, and libraries turn exceptions raised during their import into
    other errors.
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
    """Ignore signals while the interpreter ends: all work is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
