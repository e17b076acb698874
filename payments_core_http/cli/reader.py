"""Who reads a command's output, such as `head` in a pipe: a command that prints on ends with it."""

from __future__ import annotations

import os
import select
import sys

_STDOUT = 1


def is_reader_gone(within_s: float) -> bool:
    """Wait for the end of the reader of standard output, also while nothing is printed.

    A file and a terminal that is open have no reader that ends.
    """
    poll = select.poll()
    if sys.stdout is not None:  # else the command was started without one
        poll.register(_STDOUT, 0)
    return bool(poll.poll(within_s * 1000))


def forget_gone_reader() -> None:
    """If the reader is gone, print the rest nowhere: Python would report at exit that it cannot."""
    if is_reader_gone(0):
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
