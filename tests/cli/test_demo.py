"""`payments demo`: every step is seen or the exit code says otherwise, and nothing stays behind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import attrs
import pytest

from payments_core_http.cli.api_client import ApiClient, shorten_secrets
from payments_core_http.cli.child_processes import ReceiverChild
from payments_core_http.cli.demo import START, run_steps
from payments_core_http.cli.demo.output import StepResult, TextOutput, format_json
from payments_core_http.cli.demo.scenario import DemoContext, DemoState, DemoStep, StepFailed
from payments_core_http.cli.demo.steps import EVENTS, STEPS
from payments_core_http.cli.interrupts import Interrupts

DEMO = [sys.executable, "-m", "payments_core_http.cli", "demo"]
NAMES = [START.name, *(step.name for step in STEPS)]
WHOLE_SECRET = re.compile(r"(sk_sandbox_|whsec_|cst_|cat_)[A-Za-z0-9+/_-]{12,}|_secret_")
DEMO_S = 15
NONE = Interrupts()
"""Those of a demo that no signal reaches."""


@attrs.define
class Listener:
    """A teller that remembers."""

    seen: list[StepResult] = attrs.field(factory=list)
    ending: tuple[str, bool] | None = None

    def print_step(self, seen: StepResult) -> None:
        self.seen.append(seen)

    def print_end(self, text: str, ok: bool) -> None:
        self.ending = (text, ok)


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *arguments], capture_output=True, text=True, timeout=60,
        env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def running() -> Iterator[bytes]:
    """The arguments of every process."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield file.read_bytes()


def test_the_demo_sees_every_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run("--json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    reported: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["step"] for document in reported] == NAMES
    assert all(document["ok"] for document in reported)
    assert sum(document["seconds"] for document in reported) < DEMO_S
    between = reported[1:-1]
    assert all(document["exchanges"] for document in between)
    assert set(reported[-1]["verified"]) == EVENTS
    assert not WHOLE_SECRET.search(done.stdout)
    assert ended(reported[0]["sandbox"]["pid"])
    assert ended(reported[0]["receiver"]["pid"])
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_the_demo_prints_plain_text(tmp_path: Path) -> None:
    done = run(folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for number, step in enumerate((START, *STEPS), start=1):
        assert f"{number}/{len(NAMES)}  {step.shows}" in done.stdout
    assert "Idempotent-Replayed: true" in done.stdout
    assert f"All {len(NAMES)} steps succeeded" in done.stdout
    assert "What to try next" in done.stdout
    assert "\x1b[" not in done.stdout
    assert not WHOLE_SECRET.search(done.stdout)


def test_a_step_that_fails_is_named_and_is_the_last() -> None:
    def unseen(stage: DemoContext, known: DemoState) -> DemoState:
        raise StepFailed("nothing was seen")

    broken = DemoStep("broken", "What never happens", unseen)
    listener = Listener()
    assert run_steps((STEPS[0], broken, STEPS[1]), listener, interrupts=NONE) is False
    assert [seen.step.name for seen in listener.seen] == [START.name, STEPS[0].name, "broken"]
    assert listener.seen[-1].failure == "nothing was seen"
    assert listener.ending == ("The step `broken` failed.", False)


def test_an_answer_of_another_shape_fails_its_step() -> None:
    def misread(stage: DemoContext, known: DemoState) -> DemoState:
        return attrs.evolve(known, bob_id={}["accountId"])

    listener = Listener()
    steps = (DemoStep("misread", "An answer", misread),)
    assert run_steps(steps, listener, interrupts=NONE) is False
    assert "KeyError" in str(listener.seen[-1].failure)


def test_every_step_that_calls_the_service_fails_when_it_is_refused() -> None:
    refusals: dict[str, str] = {}

    def strange(stage: DemoContext, known: DemoState) -> DemoState:
        stranger = attrs.evolve(
            known, app_secret="sk_sandbox_none", access_token="cat_none", client_secret="none"
        )
        for step in STEPS:
            with pytest.raises(StepFailed) as refused:
                step.run(stage, stranger)
            refusals[step.name] = str(refused.value)
        return known

    steps = (DemoStep("strange", "Refusals", strange),)
    assert run_steps(steps, Listener(), interrupts=NONE)
    assert [name for name, text in refusals.items() if "401" not in text] == []
    assert len(refusals) == len(STEPS)


def test_the_demo_exits_1_when_its_sandbox_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen([*DEMO, "--json"], stdout=subprocess.PIPE, text=True, env=environment)
    assert demo.stdout is not None
    first = json.loads(demo.stdout.readline())
    os.kill(first["sandbox"]["pid"], signal.SIGKILL)
    rest = [json.loads(line) for line in demo.stdout]
    assert demo.wait(30) == 1
    demo.stdout.close()
    assert [document["ok"] for document in rest[:-1]] == [True] * (len(rest) - 1)
    assert rest[-1]["ok"] is False
    assert rest[-1]["failure"]
    assert ended(first["receiver"]["pid"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_and_its_children(tmp_path: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen(
        [*DEMO, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    assert demo.stdout is not None
    first = json.loads(demo.stdout.readline())
    demo.send_signal(number)
    _, errors = demo.communicate(timeout=30)
    assert demo.returncode == 1
    assert "Traceback" not in errors
    assert ended(first["sandbox"]["pid"])
    assert ended(first["receiver"]["pid"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")
def test_a_signal_while_the_children_start_ends_them_too(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen(
        [*DEMO, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        # These tests may themselves run where the signal is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    while not list(tmp_path.glob("*/sandbox-data")):
        assert demo.poll() is None
    demo.send_signal(signal.SIGHUP)
    demo.communicate(timeout=30)
    assert demo.returncode == 1
    assert not any(str(tmp_path).encode() in arguments for arguments in running())
    assert list(tmp_path.iterdir()) == []


def test_the_receiver_answers_nothing_good_to_what_it_cannot_verify() -> None:
    receiver = ReceiverChild()
    try:
        client = ApiClient(receiver.url)
        assert client.call("POST", "/hooks/x", {}, authorization="none").status == 503
        receiver.expect("/hooks/x", "whsec_" + "A" * 43 + "=")
        below = ApiClient(f"{receiver.url}/hooks/")
        assert below.call("POST", "/x", {}, authorization="none").status == 400
        assert receiver.wait_for(lambda got: len(got) == 1, 10)
        [refusal] = receiver.read_deliveries()
        assert refusal == {"path": "/hooks/x", "verified": False, "refused": "signature_missing"}
    finally:
        assert receiver.end() == 0


def test_text_shows_a_failure_and_long_answers_divided() -> None:
    said: list[str] = []
    teller = TextOutput(lambda text, style: said.append(text))
    teller.print_step(StepResult(STEPS[0], 2, 16, 0.1, failure="it was dark"))
    teller.print_end("over", False)
    assert said == [f"\n2/16  {STEPS[0].shows}", "  Failed: it was dark", "\nover"]
    wide = {"name": "x" * 60, "list": ["y" * 30, "z" * 30], "empty": []}
    text = format_json(wide)
    assert json.loads(text) == wide
    assert max(map(len, text.splitlines())) <= 96


def test_secrets_are_shortened_wherever_they_stand() -> None:
    shown = shorten_secrets({"data": [{"signingSecret": "whsec_" + "a" * 44, "id": "b" * 44}]})
    assert shown == {"data": [{"signingSecret": "whsec_aaaaaa…", "id": "b" * 44}]}


def test_on_a_terminal_the_demo_ends_with_a_page_to_open_until_enter(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        DEMO, stdin=its, stdout=its, stderr=its, start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "TERM": "dumb"},
    )  # fmt: skip
    os.close(its)
    try:
        reported = _read_until(ours, b"Press Enter")
        dashboard = re.search(rb"log in as operator with \S+\s+(http://\S+/dashboard)", reported)
        assert dashboard is not None, reported
        with urlopen(dashboard[1].decode() + "/login", timeout=30) as answer:
            assert b"Log in" in answer.read()
        found = re.search(
            rb"play the payer:\s+(http://127\.0\.0\.1:[0-9]+/pay/[\w-]{48})", reported
        )
        assert found is not None
        with urlopen(found[1].decode(), timeout=30) as answer:
            page = answer.read()
        assert b"An order to pay in your browser" in page
        os.write(ours, b"\n")
        _read_until(ours, b"no such text")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert list(tmp_path.iterdir()) == []


def _read_until(terminal: int, text: bytes) -> bytes:
    """What the terminal shows, until it shows the text or ends."""
    reported = b""
    while text not in reported:
        try:
            reported += os.read(terminal, 65_536)
        except OSError:  # the other side is closed
            break
    return reported
