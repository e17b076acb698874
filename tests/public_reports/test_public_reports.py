"""What users of other projects reported, played on this one: programs from a folder beside this.

A program exits with 0 where the product does what its user needs, with 1 where the fault shows,
and with 2 where something that it needs is missing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    f"{path.parent.name}/{path.stem}": path
    for path in sorted(ROOT.parent.glob("*/findings/public_reports/*/*"))
    if path.suffix in (".py", ".sh")
}
SHELLS = {".py": sys.executable, ".sh": "bash"}
AT_A_TIME = 2
TIME_LIMIT_S = 100
TRIES = 2
TRIES_OF_NOT_YET = 5
"""Some wait for servers of others, which do not always end on a busy machine."""

# Each takes more than ten seconds; `17` builds an old SQLite.
SLOW = {
    "money/01_dropped_wallet_transfer_page_stays_locked",
    "http/03_body_without_length",
    "http/04_chunked_under_uwsgi",
    "http/09_client_gone_in_body",
    "http/17_old_sqlite",
}

# What a program says, up to now, of what the product cannot do yet. A row whose program succeeds
# goes.
NOT_YET: Mapping[str, str] = {
    # No function of the present contracts moves ether.
    "money/06_ether_sent_to_an_escrow": "ETH at the escrow after the release: 0.01",
}

SETTINGS = "settings=__import__('payments_core').Settings('https://pay.example')"

# Names that the programs use and that have moved since they were written: a pattern, and what is
# there now. The question of a program stays as it is.
MOVED = {
    r"\brefunds\.operations import\b": "refunding.operations import",
    r"\bcheckout\.door\b": "checkout.api",
    r"\bworld\.service\.refunds\.create\(world\.server, ": "world.resources.payments.refund(",
    r"\bworld\.service\.refunds\.list\(world\.server, ": "world.resources.payments.list_refunds(",
    r"\b(s|service)\.vaults\.balances\(me, ": r"\1.acting_as(me).accounts.read_balances(",
    r"\b(s|service)\.wallets\.challenge\(me, ": r"\1.acting_as(me).wallets.create_challenge(",
    r"\b(s|service)\.payments\.create\(me, ": r"\1.acting_as(me).payments.receive(",
    r"\b(s|service)\.payments\.get\(me, ": r"\1.acting_as(me).payments.read(",
    r"\b(s|service)\.(accounts|wallets|webhooks)\.(\w+)\(me, ": r"\1.acting_as(me).\2.\3(",
    r"\bs\.on_event\(me, ": "s.acting_as(me).on_event(",
    r"\bs\.sandbox\(\)\.transfer\(me, ": "s.acting_as(me).sandbox.transfer(",
    r'"25\.00", recipient=': '"25.00", to=',
    r"\bs\.sandbox\(\)\.advance\(me, ": "s.acting_as(me).sandbox.advance_clock(",
    r"\bimport httpx\b": "import httpx2 as httpx",
    # A service that makes payment links must know its public URL.
    r"(PaymentsService\(storage, KeyRing\.parse\(ring\))\)": rf"\1, {SETTINGS})",
    r'(KeyRing\.parse\(open\(os\.environ\["RING"\]\)\.read\(\)\))\)': rf"\1, {SETTINGS})",
    r"\bpayment\.expires_at\b": "payment.expires_at_ms",
    r"\bdone\.received\b": "done.received_atomic",
    r"\bp\.amount\b": "p.amount_atomic",
}

# What the programs use without a look whether it is there. CI installs it.
USED = {"chromium": "/usr/bin/chromium", "anvil": "npm", "curl": "curl", "psql": "psql"}

Outcome = tuple[int, str]


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[Outcome]]]:
    """What becomes of each program that is asked for; some at a time, because they mostly wait."""
    folder = tmp_path_factory.mktemp("reports")
    params = (getattr(item, "callspec", None) for item in request.session.items)
    wanted = [one.params["name"] for one in params if one and "name" in one.params]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {
            name: pool.submit(run, PROGRAMS[name], folder) for name in wanted if name in PROGRAMS
        }


@pytest.mark.skipif(not PROGRAMS, reason="no folder findings/public_reports beside the checkout")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PROGRAMS],
)
def test_what_others_reported_does_not_happen_here(
    name: str, outcomes: Mapping[str, Future[Outcome]], tmp_path: Path
) -> None:
    text = PROGRAMS[name].read_text()
    missing = [word for word, used in USED.items() if word in text and shutil.which(used) is None]
    code, said = outcomes[name].result()
    if code and (code == 2 or missing):
        pytest.skip(f"a part is missing {missing}: {said[-200:]}")
    if name in NOT_YET:
        for _ in range(TRIES_OF_NOT_YET):
            if NOT_YET[name] not in said:  # it may ask a busy node for a receipt too early
                code, said = run(PROGRAMS[name], tmp_path)
        assert code == 1, f"{name} succeeds: its row goes"
        assert NOT_YET[name] in said, said
    else:
        assert code == 0, said


def run(program: Path, folder: Path) -> Outcome:
    """Its exit code and its words. One that does not end is tried again."""
    for _ in range(TRIES):
        found = try_once(program, folder)
        if found is not None:
            return found
    return 1, f"{TRIES} times it took longer than {TIME_LIMIT_S} s"


def try_once(program: Path, folder: Path) -> Outcome | None:
    """Its exit code and its words, or None if it does not end; whatever it started is ended."""
    said = folder / f"{program.parent.name}-{program.name}.txt"
    text = program.read_text()
    for pattern, now in MOVED.items():
        text = re.sub(pattern, now, text)
    played = folder / f"{program.parent.name}-{program.name}"
    played.write_text(text)
    environment = os.environ | {
        "CLONE": str(ROOT),
        "VENV": sys.prefix,
        "OLDSQLITE": str(ROOT / "build" / "old-sqlite"),
    }
    with said.open("w") as out:
        process = subprocess.Popen(
            [SHELLS[program.suffix], str(played)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            code = process.wait(TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code, said.read_text()
