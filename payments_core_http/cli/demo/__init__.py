"""`payments demo`: the main job over real HTTP, shown step by step."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from payments_core_http.cli.anvil.errors import explain_missing_anvil
from payments_core_http.cli.anvil.process import AnvilUnavailable, find_anvil_program
from payments_core_http.cli.api_client import ApiClient, HttpExchange, NoResponse, shorten_secret
from payments_core_http.cli.child_processes import ChildFailed, ReceiverChild, SandboxChild
from payments_core_http.cli.demo.example import create_example
from payments_core_http.cli.demo.output import DemoOutput, JsonOutput, StepResult, make_text_output
from payments_core_http.cli.demo.scenario import DemoContext, DemoState, DemoStep, StepFailed
from payments_core_http.cli.demo.steps import STEPS
from payments_core_http.cli.interrupts import Interrupts

NEXT_STEPS_TEXT = """\
All {count} steps succeeded, in {seconds:.1f} s. What to try next:

  Your own service, which keeps its data in ./sandbox-data:
    {program} sandbox
  It prints the addresses of a checkout page and of its dashboard, and a command that creates
  further Payments.

  In another terminal, with the app id and secret that it prints:
    curl -u APP_ID:APP_SECRET http://127.0.0.1:8080/v2/partners/config
    curl -u APP_ID:APP_SECRET http://127.0.0.1:8080/v2/accounts \\
      -H 'Content-Type: application/json' \\
      -d '{{"externalUserId": "alice", "subjectType": "individual"}}'
    curl -u APP_ID:APP_SECRET http://127.0.0.1:8080/v2/sandbox

  Its reference, in a browser:
    http://127.0.0.1:8080/docs

  Send no real funds to the addresses of a sandbox, or to those above: they would be lost.

  docs/tutorial leads through a first Payment by hand; `demo --json` shows every answer whole.\
"""


NODE_FACTS = ("chains", "nodeUrl")

START = DemoStep(
    "start",
    "A sandbox on a fresh SQLite file and a webhook receiver, each in its own process",
    lambda context, state: state,
)


@click.command()
@click.option("--anvil", is_flag=True, help="Run the Payment on a real EVM node.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per step.")
def command(anvil: bool, as_json: bool) -> None:
    """See one Payment go from start to end over real HTTP.

    It starts a sandbox with a new database and a webhook receiver, each in its own process, and
    shows every request with its response; secrets are shortened. On a terminal it ends with a
    checkout page and a dashboard to open, and waits for Enter. Nothing is left behind. The exit
    code is 0 only if every step succeeds.
    """
    interrupts = Interrupts()
    interrupts.handle()
    output: DemoOutput = JsonOutput() if as_json else make_text_output()
    if anvil:
        _ensure_anvil()
    is_watched = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    show_more = show_pages if is_watched else None
    options = ("--anvil",) if anvil else ()
    if not run_steps(STEPS, output, *options, interrupts=interrupts, show_more=show_more):
        sys.exit(1)


ShowMore = Callable[[ApiClient, DemoState, Mapping[str, Any]], None]
"""Shows what else the demo's sandbox has, before it ends; gets the sandbox's line of `--json`."""


def show_pages(client: ApiClient, state: DemoState, facts: Mapping[str, Any]) -> None:
    """Offer an open Payment and the dashboard to a person, until Enter is pressed."""
    try:
        checkout_url = create_example(client, state)
    except (StepFailed, NoResponse):
        return  # all steps were shown; this was optional
    operator = facts["operator"]
    click.echo(
        "\nIts sandbox still runs. A checkout page, with buttons that play the payer:\n"
        f"  {checkout_url}\n\n"
        f"Its dashboard; log in as {operator['username']} with {operator['password']}\n"
        f"  {facts['dashboardUrl']}\n\n"
        "Press Enter to end the demo."
    )
    with contextlib.suppress(KeyboardInterrupt, EOFError):
        input()


def run_steps(
    steps: Sequence[DemoStep],
    output: DemoOutput,
    *options: str,
    interrupts: Interrupts,
    show_more: ShowMore | None = None,
) -> bool:
    """Run and print the steps; on the first that fails, stop and return False.

    `options` are the sandbox's. If all steps succeeded, `show_more` runs before it ends.
    """
    began = time.monotonic()
    of = len(steps) + 1
    with contextlib.ExitStack() as cleanup:
        try:
            sandbox, receiver = _start_children(cleanup, options)
        except (ChildFailed, OSError) as error:
            output.print_step(StepResult(START, 1, of, _seconds_since(began), failure=str(error)))
            output.print_end(f"The step `{START.name}` failed.", False)
            return False
        output.print_step(
            StepResult(
                START, 1, of, _seconds_since(began), facts=_render_children(sandbox, receiver)
            )
        )
        exchanges: list[HttpExchange] = []
        context = DemoContext(ApiClient(sandbox.base_url, exchanges.append), receiver)
        state = make_initial_state(sandbox)
        for number, step in enumerate(steps, start=2):
            interrupts.check()
            exchanges.clear()
            step_began = time.monotonic()
            state, failure = _try_step(step, context, state)
            facts = step.facts(context, state) if failure is None else {}
            seconds = _seconds_since(step_began)
            output.print_step(
                StepResult(step, number, of, seconds, tuple(exchanges), facts, failure)
            )
            if failure is not None:
                output.print_end(_describe_failure(step, sandbox), False)
                return False
        interrupts.check()
        output.print_end(_describe_next_steps(of, _seconds_since(began)), True)
        if show_more is not None:
            show_more(context.client, state, sandbox.facts)
        return True


def make_initial_state(sandbox: SandboxChild) -> DemoState:
    """The state before the first step, with a new name for this run."""
    return DemoState(
        run=f"demo-{secrets.token_hex(4)}",
        app_id=sandbox.facts["appId"],
        app_secret=sandbox.facts["appSecret"],
        environment_id=sandbox.facts["environmentId"],
    )


def _ensure_anvil() -> None:
    """Fetch anvil if it is missing: a sandbox that has to fetch it may not be ready in time."""
    try:
        find_anvil_program()
    except AnvilUnavailable as reason:
        raise explain_missing_anvil(reason) from reason


def _start_children(
    cleanup: contextlib.ExitStack, options: Sequence[str]
) -> tuple[SandboxChild, ReceiverChild]:
    """Both children, which end with `cleanup`, and a new folder, which is removed last."""
    folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="payments-demo-"))
    receiver = ReceiverChild()
    cleanup.callback(receiver.end)
    sandbox = SandboxChild(Path(folder) / "sandbox-data", 0, *options)
    cleanup.callback(sandbox.end)
    return sandbox, receiver


def _try_step(
    step: DemoStep, context: DemoContext, state: DemoState
) -> tuple[DemoState, str | None]:
    """The state after the step, or the state before it with the reason why it failed."""
    try:
        return step.run(context, state), None
    except (StepFailed, NoResponse, ChildFailed) as error:
        return state, str(error)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return state, f"a response has an unexpected form: {type(error).__name__}: {error}"


def _render_children(sandbox: SandboxChild, receiver: ReceiverChild) -> dict[str, object]:
    return {
        "sandbox": {
            "baseUrl": sandbox.base_url,
            "appId": sandbox.facts["appId"],
            "appSecret": shorten_secret(sandbox.facts["appSecret"]),
            "pid": sandbox.pid,
            **{name: sandbox.facts[name] for name in NODE_FACTS if name in sandbox.facts},
        },
        "receiver": {"url": receiver.url, "pid": receiver.pid},
    }


def _describe_failure(step: DemoStep, sandbox: SandboxChild) -> str:
    errors = sandbox.read_errors()
    said = f"\nThe sandbox wrote:\n{errors[-2_000:]}" if errors else ""
    return f"The step `{step.name}` failed.{said}"


def _describe_next_steps(count: int, seconds: float) -> str:
    program = "payments" if shutil.which("payments") else sys.argv[0]
    return NEXT_STEPS_TEXT.format(count=count, seconds=seconds, program=program)


def _seconds_since(began: float) -> float:
    return time.monotonic() - began
