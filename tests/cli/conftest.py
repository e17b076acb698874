"""What the tests of the command line need of their own process."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_not_ignored() -> None:
    """A shell's background job ignores Ctrl-C, and so would every process that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
