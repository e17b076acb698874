"""A program that runs an anvil for as long as a process holds our standard input open.

`process.py` starts it. It is a separate process for two reasons. However the process that started
it ends, kill -9 too, that pipe closes, so that no anvil is left behind. And anvil writes a line for
every request, which must be read, or it would block once the pipe is full.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

READY = b"Listening on "
STOP_TIMEOUT_S = 10
HANDLER_TIMEOUT_S = 1.0
"""How long anvil may take to handle SIGTERM after it listens: a millisecond, if cores are free."""


def run_while_stdin_open(command: list[str]) -> int:
    """Run a command until it ends or standard input does; its exit status.

    Standard output gets the process's id, and its output up to the line that it listens.
    """
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert child.stdout is not None
    try:
        os.write(1, b"%d\n" % child.pid)
        _relay_output(child.stdout.fileno())
    except BrokenPipeError:
        pass  # the process that started us is gone
    finally:
        _wait_for_handler(child)
        child.terminate()  # anvil writes its state to a file, if it has one, and ends
        try:
            status = child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            status = child.wait()
    return status


def _wait_for_handler(child: subprocess.Popen[bytes]) -> None:
    """Wait until it handles SIGTERM, which would end it without writing its state before that.

    Only Linux says so.
    """
    until = time.monotonic() + HANDLER_TIMEOUT_S
    while child.poll() is None and time.monotonic() < until:
        try:
            with open(f"/proc/{child.pid}/status") as status:
                handled = int(status.read().partition("SigCgt:")[2].split()[0], 16)
        except (OSError, IndexError):
            return
        if handled >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


def _relay_output(output: int) -> None:
    said = b""
    listens = False
    while True:
        readable, _, _ = select.select([0, output], [], [])
        if 0 in readable and not os.read(0, 4_096):
            return
        if output not in readable:
            continue
        chunk = os.read(output, 65_536)
        if not chunk:
            return
        if not listens:
            said += chunk
            os.write(1, chunk)
            listens = b"\n" in said.partition(READY)[2]
            if listens:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)  # with 2 the last ends of the pipe: our parent sees its end
                os.dup2(nowhere, 2)


if __name__ == "__main__":
    sys.exit(abs(run_while_stdin_open(sys.argv[1:])))
