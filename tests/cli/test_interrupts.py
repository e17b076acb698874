"""Signals that end a command, also when Python drops what their handler raises."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from payments_core_http.cli.demo import run_steps
from payments_core_http.cli.demo.output import StepResult
from payments_core_http.cli.demo.scenario import DemoContext, DemoState, DemoStep
from payments_core_http.cli.forwarding import ForwardingServer
from payments_core_http.cli.interrupts import STOP_SIGNALS, Interrupts


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Interrupts:
    """Those of this process, in which Python reports nothing of what it drops."""
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: None)
    handled = Interrupts()
    handled.handle()
    return handled


class Signaller:
    """Gets a signal in the one place where nothing that is raised is seen: a destructor."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


class Silent:
    """Prints nothing, and counts."""

    steps = 0

    def print_step(self, result: StepResult) -> None:
        self.steps += 1

    def print_end(self, text: str, ok: bool) -> None:
        raise AssertionError(text)


def test_nothing_is_raised_before_a_signal(interrupts: Interrupts) -> None:
    interrupts.check()


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_within_a_destructor_is_raised_at_the_next_check(
    interrupts: Interrupts, number: signal.Signals
) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the signal is ignored where the tests were started")
    Signaller(number)
    with pytest.raises(KeyboardInterrupt):
        interrupts.check()


def test_the_demo_ends_after_the_step_in_which_a_signal_was_dropped(
    interrupts: Interrupts,
) -> None:
    def signalled(context: DemoContext, state: DemoState) -> DemoState:
        Signaller(signal.SIGTERM)
        return state

    output = Silent()
    step = DemoStep("signalled", "A signal", signalled)
    with pytest.raises(KeyboardInterrupt):
        run_steps((step, step), output, interrupts=interrupts)
    assert output.steps == 2  # the start and the first


def test_a_listener_ends_soon_after_a_signal_was_dropped(interrupts: Interrupts) -> None:
    with ForwardingServer(None, lambda delivery: None, interrupts) as listener:
        Signaller(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            listener.serve()
