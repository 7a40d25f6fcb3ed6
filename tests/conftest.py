"""What all tests rely on."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so shells start jobs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
