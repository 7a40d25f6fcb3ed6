"""What all tests rely on."""

import signal

import exponential  # noqa: F401  a family that the package does not know: all laws hold for it, too

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so shells start jobs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
