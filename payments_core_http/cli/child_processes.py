"""The demo's child processes: a sandbox and a webhook receiver, each a real one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

READY_TIMEOUT_S = 60.0
"""How long a child may take until it is ready: usually a second, longer on a busy machine."""

STOP_TIMEOUT_S = 10.0


class ChildFailed(Exception):
    """A child process ended, or did not become ready in time."""


class ChildProcess:
    """A Python process of ours that reports facts as JSON lines on its standard output."""

    def __init__(self, name: str, module: str, arguments: Sequence[str] = ()) -> None:
        """Start it. What it writes to standard error is kept for `read_errors`."""
        self.name = name
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._changed = threading.Condition()
        self._messages: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C reaches only the demo, which then ends its children
            text=True,
        )
        self._reader = threading.Thread(
            target=self._read_messages, name=f"{name}-output", daemon=True
        )
        self._reader.start()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def read_messages(self) -> list[dict[str, Any]]:
        """The messages that it has sent so far."""
        with self._changed:
            return list(self._messages)

    def wait_for(
        self, seen: Callable[[list[dict[str, Any]]], bool], timeout_s: float = READY_TIMEOUT_S
    ) -> bool:
        """Wait until `seen` is true of its messages. False if it ended before, or time ran out."""
        with self._changed:
            self._changed.wait_for(
                lambda: seen(self._messages) or not self._reader.is_alive(), timeout_s
            )
            return seen(self._messages)

    def wait_until_ready(self) -> Mapping[str, Any]:
        """Wait for the child's first message; without one it is ended. Raises ChildFailed."""
        try:
            ready = self.wait_for(bool)
        except BaseException:  # Ctrl-C, while nobody else knows of it yet
            self.end()
            raise
        if not ready:
            self.end()
            raise ChildFailed(f"the {self.name} did not start.\n{self.read_errors()}".rstrip())
        return self.read_messages()[0]

    def send(self, **facts: Any) -> None:
        """Send it a JSON line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(facts) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ChildFailed(f"the {self.name} has ended") from error

    def read_errors(self) -> str:
        """Read the child's standard error output; empty once it was ended."""
        if self._errors.closed:
            return self._last_errors
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """End it at once, as a power cut would (SIGKILL)."""
        self._process.kill()
        self._reap()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it gracefully, or by force if it takes too long. Returns its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._reap()

    def _reap(self) -> int:
        code = self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was not read any more
                    continue
        self._last_errors = self.read_errors()
        self._errors.close()
        return code

    def _read_messages(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                facts = json.loads(line)
            except ValueError:  # a line that was cut off by a kill
                continue
            with self._changed:
                self._messages.append(facts)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


class SandboxChild:
    """A `payments sandbox` process, which may be killed and started again on its data."""

    def __init__(self, data: Path, port: int = 0, *options: str) -> None:
        """Start it and wait until it is ready. Raises ChildFailed."""
        self.data = data
        started = time.monotonic()
        self._child = ChildProcess(
            "sandbox",
            "payments_core_http.cli",
            ["sandbox", "--json", "--port", str(port), "--data", str(data), *options],
        )
        self.facts: Mapping[str, Any] = self._child.wait_until_ready()
        self.ready_s: float = time.monotonic() - started
        """How long it took to become ready."""

    @property
    def base_url(self) -> str:
        """The URL of the service."""
        return str(self.facts["baseUrl"])

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.base_url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._child.pid

    def read_errors(self) -> str:
        """Read the service's standard error output."""
        return self._child.read_errors()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._child.kill()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it gracefully. Returns its exit code."""
        return self._child.end(number)


class ReceiverChild:
    """A webhook receiver in its own process."""

    def __init__(self) -> None:
        """Start it and wait until it listens. Raises ChildFailed."""
        self._child = ChildProcess("webhook receiver", "payments_core_http.cli.receiver")
        self.url: str = f"http://127.0.0.1:{self._child.wait_until_ready()['port']}"

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._child.pid

    def expect(self, path: str, secret: str) -> None:
        """Send it the signing secret of a path. Raises ChildFailed."""
        self._child.send(path=path, secret=secret)
        if not self._child.wait_for(lambda sent: {"secretFor": path} in sent):
            raise ChildFailed("the webhook receiver did not take the signing secret")

    def read_deliveries(self) -> list[dict[str, Any]]:
        """The deliveries that it has received so far, in order, refused or verified."""
        return [facts for facts in self._child.read_messages() if "verified" in facts]

    def wait_for(self, seen: Callable[[list[dict[str, Any]]], bool], timeout_s: float) -> bool:
        """Wait until `seen` is true of the deliveries; False if time runs out first."""
        return self._child.wait_for(
            lambda sent: seen([facts for facts in sent if "verified" in facts]), timeout_s
        )

    def end(self) -> int:
        """End it. Returns its exit code."""
        return self._child.end()
