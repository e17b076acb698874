"""`payments demo`: the main job over real HTTP, told step by step."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from payments_core_http.cli.anvil.missing import no_anvil
from payments_core_http.cli.anvil.process import NoAnvil, anvil_program
from payments_core_http.cli.children import ChildFailed, ReceiverChild, SandboxChild
from payments_core_http.cli.client import Client, Exchange, NotAnswered, shortened
from payments_core_http.cli.demo.output import JsonTeller, Seen, Teller, text_teller
from payments_core_http.cli.demo.stage import Known, Stage, Step, StepFailed
from payments_core_http.cli.demo.steps import STEPS

NEXT = """\
All {count} steps were seen, in {seconds:.1f} s. What to try next:

  A service of your own, which keeps its data in ./sandbox-data:
    {program} sandbox

  In another terminal, with the app id and secret that it prints:
    curl -u APP_ID:APP_SECRET http://127.0.0.1:8080/v2/partners/config
    curl -u APP_ID:APP_SECRET http://127.0.0.1:8080/v2/accounts \\
      -H 'Content-Type: application/json' \\
      -d '{{"externalUserId": "alice", "subjectType": "individual"}}'
    curl -u APP_ID:APP_SECRET http://127.0.0.1:8080/v2/sandbox

  docs/tutorial leads through a first Payment by hand; `demo --json` shows every answer whole.\
"""


NODE_FACTS = ("chains", "nodeUrl")

START = Step(
    "start",
    "A sandbox on a fresh SQLite file and a webhook receiver, each in a process of its own",
    lambda stage, known: known,
)


@click.command()
@click.option("--anvil", is_flag=True, help="Have the Payment on a real EVM node.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each step.")
def command(anvil: bool, as_json: bool) -> None:
    """See one Payment go from start to end over real HTTP.

    It starts a sandbox on a fresh database and a webhook receiver, each in a process of its own,
    and shows every request with its answer, secrets shortened. Nothing is left behind. The exit
    code is 0 only if every step was seen.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    teller: Teller = JsonTeller() if as_json else text_teller()
    if anvil:
        _have_anvil()
    if not show(STEPS, teller, *(("--anvil",) if anvil else ())):
        sys.exit(1)


def show(steps: Sequence[Step], teller: Teller, *options: str) -> bool:
    """Run the steps and tell them; False, and no further step, once one did not happen.

    `options` are the sandbox's.
    """
    began = time.monotonic()
    of = len(steps) + 1
    with contextlib.ExitStack() as cleanup:
        try:
            sandbox, receiver = _started(cleanup, options)
        except (ChildFailed, OSError) as error:
            teller.step(Seen(START, 1, of, _since(began), failure=str(error)))
            teller.end(f"The step `{START.name}` did not happen.", False)
            return False
        teller.step(Seen(START, 1, of, _since(began), facts=_facts(sandbox, receiver)))
        exchanges: list[Exchange] = []
        stage = Stage(Client(sandbox.base_url, exchanges.append), receiver)
        known = known_of(sandbox)
        for number, step in enumerate(steps, start=2):
            exchanges.clear()
            step_began = time.monotonic()
            known, failure = _tried(step, stage, known)
            facts = step.facts(stage, known) if failure is None else {}
            seconds = _since(step_began)
            teller.step(Seen(step, number, of, seconds, tuple(exchanges), facts, failure))
            if failure is not None:
                teller.end(_regret(step, sandbox), False)
                return False
        teller.end(_next(of, _since(began)), True)
        return True


def known_of(sandbox: SandboxChild) -> Known:
    """What is known before the first step, and a new name for this run."""
    return Known(
        run=f"demo-{secrets.token_hex(4)}",
        app_id=sandbox.facts["appId"],
        app_secret=sandbox.facts["appSecret"],
        environment_id=sandbox.facts["environmentId"],
    )


def _have_anvil() -> None:
    """Fetch anvil, where it is not there yet: a sandbox that does it may not be ready in time."""
    try:
        anvil_program()
    except NoAnvil as reason:
        raise no_anvil(reason) from reason


def _started(
    cleanup: contextlib.ExitStack, options: Sequence[str]
) -> tuple[SandboxChild, ReceiverChild]:
    """Both children, which end with `cleanup`, and a fresh folder, which goes last."""
    folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="payments-demo-"))
    receiver = ReceiverChild()
    cleanup.callback(receiver.end)
    sandbox = SandboxChild(Path(folder) / "sandbox-data", 0, *options)
    cleanup.callback(sandbox.end)
    return sandbox, receiver


def _tried(step: Step, stage: Stage, known: Known) -> tuple[Known, str | None]:
    """What is known after the step, or before it with the reason why it did not happen."""
    try:
        return step.run(stage, known), None
    except (StepFailed, NotAnswered, ChildFailed) as error:
        return known, str(error)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return known, f"an answer has another shape: {type(error).__name__}: {error}"


def _facts(sandbox: SandboxChild, receiver: ReceiverChild) -> dict[str, object]:
    return {
        "sandbox": {
            "baseUrl": sandbox.base_url,
            "appId": sandbox.facts["appId"],
            "appSecret": shortened(sandbox.facts["appSecret"]),
            "pid": sandbox.pid,
            **{name: sandbox.facts[name] for name in NODE_FACTS if name in sandbox.facts},
        },
        "receiver": {"url": receiver.url, "pid": receiver.pid},
    }


def _regret(step: Step, sandbox: SandboxChild) -> str:
    errors = sandbox.errors()
    said = f"\nThe sandbox wrote:\n{errors[-2_000:]}" if errors else ""
    return f"The step `{step.name}` did not happen.{said}"


def _next(count: int, seconds: float) -> str:
    program = "payments" if shutil.which("payments") else sys.argv[0]
    return NEXT.format(count=count, seconds=seconds, program=program)


def _since(began: float) -> float:
    return time.monotonic() - began


def _end(*_: object) -> NoReturn:
    """SIGTERM and a closed terminal end it as Ctrl-C does: the children first."""
    raise KeyboardInterrupt
