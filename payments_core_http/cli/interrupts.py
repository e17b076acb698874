"""Signals that end a command as Ctrl-C does, so that it cleans up behind itself."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Makes each signal of STOP_SIGNALS a KeyboardInterrupt that is not lost.

    Python drops what a handler raises while a destructor or the callback of a weak reference runs.
    `check` raises it again.
    """

    def __init__(self) -> None:
        self._came = False

    def handle(self) -> None:
        """Handle the signals from now on, except those that are ignored (SIGHUP, under `nohup`)."""
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal came."""
        if self._came:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """Ignore the signals from now on: the command ends already."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _interrupt(self, *_: object) -> None:
        self._came = True
        self.check()
