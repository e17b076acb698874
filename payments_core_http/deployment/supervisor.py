"""Several processes that serve one port: a parent starts each, and restarts it if it ends.

All accept connections from one queue, that of the socket which the parent opened: if a process
ends, the others accept what waits there, and an idle process accepts what a busy one has not. The
parent serves nothing itself.

A line, which is a pair of sockets, connects each process with the parent. Over it the process
reports that it is ready. When the line closes, the parent knows that the process is gone, and the
process knows that it must stop: the parent was asked to stop, or was killed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import attrs

from payments_core_http.server.shared_queue import SharedQueue

FIRST_DELAY_S = 0.5
"""The delay before an ended process is restarted; it doubles each time."""
MAX_DELAY_S = 30.0
STEADY_S = 60.0
"""A process that ran for this long is restarted with the first delay."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Facts = Mapping[str, Any]
"""What a process reports when it is ready, as JSON."""

_log = logging.getLogger(__name__)


@attrs.frozen
class Member:
    """What one of the processes knows about itself."""

    number: int
    """From 1; a restarted process keeps it."""
    _line: socket.socket = attrs.field(repr=False)

    def announce_ready(self, facts: Facts) -> None:
        """Report to the parent that this process is ready."""
        try:
            self._line.sendall(json.dumps(facts).encode() + b"\n")
        except OSError:
            _log.warning("the parent process has ended")

    def call_at_end(self, stop: Callable[[], object]) -> None:
        """Call `stop` in a thread when the parent requests it, or is gone."""

        def watch() -> None:
            with contextlib.suppress(OSError):  # a killed parent had not read everything
                self._line.recv(1)
            stop()

        threading.Thread(target=watch, name="payments-line", daemon=True).start()


@attrs.define(eq=False)
class _Child:
    """One process, as the parent sees it."""

    number: int
    pid: int = 0
    line: socket.socket | None = None
    """The line to the process; None while it does not run."""
    heard: bytes = b""
    facts: Facts | None = None
    """What the process says of itself; None until it is ready."""
    started_at: float = 0.0
    delay_s: float = FIRST_DELAY_S
    due_at: float = 0.0
    """When it is to be started, if it does not run."""


class CannotStart(Exception):
    """The first process ended before it was ready, and has reported why."""

    def __init__(self, code: int) -> None:
        super().__init__(f"a process ended with {code} before it was ready")
        self.code = code


def become_member(queue: SharedQueue, ready: Callable[[Sequence[Facts]], object]) -> Member | None:
    """Keep the processes of `queue` running until a signal comes: then the parent returns None;
    each of the processes returns at once, with its own description.

    The first starts alone, so that an error that stops all of them is reported once. `ready` is
    called in the parent when all were ready. SIGTERM, SIGINT and SIGHUP stop all, each gracefully,
    and close the parent's socket of `queue`; a second SIGTERM or SIGINT kills them, and the parent.
    Threads do not survive a fork, so call this before any thread is started. Raises CannotStart.
    """
    return _Parent(queue, ready).run()


class _Parent:
    def __init__(self, queue: SharedQueue, ready: Callable[[Sequence[Facts]], object]) -> None:
        self._queue = queue
        self._children = [_Child(number) for number in range(1, queue.processes + 1)]
        self._ready = ready
        self._first_was_ready = False
        self._is_announced = False
        self._is_stopping = False
        self._is_terminated = False
        """Whether SIGTERM or SIGINT came: the next one kills."""
        self._signals, self._signalled = socket.socketpair()
        self._selector = selectors.DefaultSelector()

    def run(self) -> Member | None:
        for end in (self._signals, self._signalled):
            end.setblocking(False)
        signal.set_wakeup_fd(self._signalled.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # SIGHUP, under `nohup`
                signal.signal(number, lambda number, frame: None)  # the wakeup reports it
        self._selector.register(self._signals, selectors.EVENT_READ)
        while True:
            for child in self._find_due():
                member = self._start(child)
                if member is not None:
                    return member
            if self._is_stopping and not any(child.line for child in self._children):
                return None
            self._wait()

    def _find_due(self) -> Sequence[_Child]:
        """The processes to be started now: only the first, until it was ready."""
        if self._is_stopping:
            return ()
        wanted = self._children if self._first_was_ready else self._children[:1]
        now = time.monotonic()
        return [child for child in wanted if child.line is None and child.due_at <= now]

    def _start(self, child: _Child) -> Member | None:
        """Fork. Returns the new process's description, only in that process."""
        ours, theirs = socket.socketpair()
        child.heard, child.facts, child.started_at = b"", None, time.monotonic()
        child.pid = os.fork()
        if child.pid == 0:
            ours.close()
            self._forget()
            return Member(child.number, theirs)
        theirs.close()
        child.line = ours
        self._selector.register(ours, selectors.EVENT_READ, child)
        return None

    def _forget(self) -> None:
        """In a new process: close what is the parent's, or the others would not see its end."""
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        for end in (self._signals, self._signalled, *(child.line for child in self._children)):
            if end is not None:
                end.close()
        os.setpgid(0, 0)  # Ctrl-C and a closed terminal reach only the parent
        os.environ.pop("NOTIFY_SOCKET", None)  # systemd is notified by the parent

    def _wait(self) -> None:
        """Wait for a signal, a message from a process, or the time to start one."""
        due = [child.due_at for child in self._children if child.line is None and child.due_at]
        left = max(0.0, min(due) - time.monotonic()) if due and not self._is_stopping else None
        for key, _ in self._selector.select(left):
            if key.data is None:
                self._handle_signals(self._signals.recv(64))
            else:
                self._hear(key.data)

    def _handle_signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number != signal.SIGHUP:  # it may come together with another signal, or before it
                if self._is_terminated:
                    self._kill_all()
                self._is_terminated = True
            self._stop()

    def _kill_all(self) -> NoReturn:
        for child in self._children:
            if child.line is not None:
                os.kill(child.pid, signal.SIGKILL)
        os._exit(1)

    def _stop(self) -> None:
        """Ask all to stop. A signal would be their second if a terminal or systemd sent one."""
        if self._is_stopping:
            return
        self._is_stopping = True
        _log.info("stopping")
        self._queue.listening.close()  # it closes with the last process that has it
        for child in self._children:
            if child.line is not None:
                with contextlib.suppress(OSError):  # it ends at this moment
                    child.line.shutdown(socket.SHUT_WR)

    def _hear(self, child: _Child) -> None:
        assert child.line is not None
        try:
            said = child.line.recv(4_096)
        except OSError:  # killed, with something unread
            said = b""
        if not said:
            self._bury(child)
            return
        child.heard += said
        if child.facts is None and child.heard.endswith(b"\n"):
            child.facts, self._first_was_ready = json.loads(child.heard), True
            _log.info("process %d is ready", child.number, extra={"process_id": child.pid})
            reported = [one.facts for one in self._children if one.facts is not None]
            if len(reported) == len(self._children) and not self._is_announced:
                self._is_announced = True
                self._ready(reported)

    def _bury(self, child: _Child) -> None:
        """Record that a process has ended, and when to restart it."""
        assert child.line is not None
        self._selector.unregister(child.line)
        child.line.close()
        child.line = None
        _, status = os.waitpid(child.pid, 0)
        self._queue.leave(child.number)
        code = os.waitstatus_to_exitcode(status)
        if self._is_stopping:
            if code != 0:
                _log.warning("process %d ended with %d", child.number, code)
            return
        if not self._first_was_ready:
            raise CannotStart(code)
        child.facts = None
        if time.monotonic() - child.started_at >= STEADY_S:
            child.delay_s = FIRST_DELAY_S
        child.due_at = time.monotonic() + child.delay_s
        _log.error(
            "process %d ended with %d, and is restarted in %.1f s",
            child.number, code, child.delay_s,
        )  # fmt: skip
        child.delay_s = min(2 * child.delay_s, MAX_DELAY_S)
