"""`payments sandbox --anvil` as a process: its node, its restarts, and what its chain may lose."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core_http.cli.anvil.node import SAVE_INTERVAL_S
from payments_core_http.cli.api_client import ApiClient, basic_authorization
from payments_core_http.cli.child_processes import ChildFailed, ReceiverChild, SandboxChild
from payments_core_http.cli.demo import make_initial_state
from payments_core_http.cli.demo.scenario import DemoContext, DemoState
from payments_core_http.cli.demo.steps import STEPS
from tests.cli.nodes import all_end, anvil_of, processes_of, require_anvil

CHAIN_ID = 8453
PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/run-on-a-real-node.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
STEP_NAMES = [step.name for step in STEPS]


@pytest.fixture(autouse=True)
def _anvil() -> None:
    require_anvil()


@attrs.define
class Running:
    """A sandbox on a real node, which may be ended in several ways and started again."""

    child: SandboxChild
    key: int = 0

    @classmethod
    def on(cls, data: Path) -> Running:
        return cls(SandboxChild(data, 0, "--anvil"))

    def again(self) -> None:
        self.child = SandboxChild(self.child.data, self.child.port, "--anvil")

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        facts, self.key = self.child.facts, self.key + 1
        answer = ApiClient(self.child.base_url).call(
            method, path, body, key=f"key-{self.key}",
            authorization=basic_authorization(facts["appId"], facts["appSecret"]),
        )  # fmt: skip
        return answer.status, answer.document

    def account(self) -> str:
        body = {"externalUserId": "alice", "subjectType": "individual"}
        return str(self.call("POST", "/v2/accounts", body)[1]["accountId"])

    def fund(self, account_id: str, chain_id: int = CHAIN_ID) -> tuple[int, Any]:
        body = {"chainId": chain_id, "assetSymbol": "USDC", "amount": "100.00"}
        return self.call("POST", f"/v2/sandbox/accounts/{account_id}/fund", body)

    def total(self, account_id: str) -> str:
        status, document = self.call("GET", f"/v2/accounts/{account_id}/balances")
        assert status == 200
        [balance] = document["balances"]
        return str(balance["totalAtomic"])

    def height(self) -> int:
        status, document = self.call("GET", "/v2/sandbox")
        assert status == 200
        [chain] = document["chains"]
        return int(chain["latest"]["number"])

    def until_copied(self) -> None:
        """Wait until the file has the chain as it is now."""
        state = self.child.data / "anvil-state.json"
        before = state.stat().st_mtime_ns if state.exists() else 0
        until = time.monotonic() + 3 * SAVE_INTERVAL_S
        while not state.exists() or state.stat().st_mtime_ns == before:
            assert time.monotonic() < until
            time.sleep(0.05)

    def kill_anvil(self) -> None:
        os.kill(anvil_of(self.child.data), signal.SIGKILL)
        assert all_end(self.child.data)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "sandbox-data"


@pytest.fixture(scope="module")
def started_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a sandbox that was started once and has ended: a first start takes longer."""
    require_anvil()
    data = tmp_path_factory.mktemp("started") / "sandbox-data"
    Running.on(data).child.end()
    return data


@pytest.fixture
def sandbox(data: Path, started_data: Path) -> Iterator[Running]:
    shutil.copytree(started_data, data)
    running = Running.on(data)
    yield running
    running.child.end()


@pytest.fixture
def receiver() -> Iterator[ReceiverChild]:
    child = ReceiverChild()
    yield child
    child.end()


def through(
    running: Running, stage: DemoContext, known: DemoState, first: str, last: str
) -> DemoState:
    """The steps of the demo from the first to the last of these."""
    for step in STEPS[STEP_NAMES.index(first) : STEP_NAMES.index(last) + 1]:
        known = step.run(stage, known)
    return known


def refused(data: Path, *options: str) -> str:
    with pytest.raises(ChildFailed) as failed:
        SandboxChild(data, 0, *options)
    assert "Traceback" not in str(failed.value)
    return str(failed.value)


def test_it_serves_base_alone_on_a_node_that_anybody_here_can_ask(sandbox: Running) -> None:
    facts = sandbox.child.facts
    assert facts["chains"] == [CHAIN_ID]
    ask = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
    answer = ApiClient(facts["nodeUrl"]).call("POST", "/", ask, authorization="none")
    assert int(answer.document["result"], 16) == CHAIN_ID
    account_id = sandbox.account()
    assert sandbox.fund(account_id)[0] == 200
    assert sandbox.total(account_id) == "100000000"
    payment = {
        "intent": "receive", "amount": "5.00", "chainId": 1, "assetSymbol": "USDC",
        "destination": {"type": "account", "accountId": account_id},
    }  # fmt: skip
    for status, document in (
        sandbox.fund(account_id, 1),
        sandbox.call("POST", "/v2/payments", payment),
        sandbox.call("POST", "/v2/sandbox/blocks", {"chainId": 10, "count": 1}),
    ):
        assert (status, document["error"]["code"]) == (422, "unsupported_chain")


def test_the_banner_says_which_chain_and_where_its_node_is(data: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "payments_core_http.cli", "sandbox", "--anvil", "--port", "0",
         "--data", str(data)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    banner = ""
    for line in process.stdout:
        banner += line
        if "Ctrl-C" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"only chain {CHAIN_ID} (Base)" in banner
    assert "anvil at\n  http://127.0.0.1:" in banner
    assert "simulated" not in banner


def test_only_the_owner_reads_its_files(data: Path) -> None:
    before = os.umask(0)
    try:
        sandbox = Running.on(data)
    finally:
        os.umask(before)
    sandbox.child.end()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()}
    assert {"operator.key", "anvil-state.json"} <= modes.keys()
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_no_anvil_is_left(sandbox: Running, number: signal.Signals) -> None:
    data = sandbox.child.data
    assert len(processes_of(data)) == 2
    assert sandbox.child.end(number) == (-9 if number == signal.SIGKILL else 0)
    assert all_end(data)
    sandbox.again()


def test_a_second_signal_leaves_no_anvil_either(sandbox: Running) -> None:
    os.kill(sandbox.child.pid, signal.SIGINT)
    sandbox.child.end(signal.SIGINT)
    assert all_end(sandbox.child.data)


def test_an_end_in_the_middle_of_a_start_leaves_no_anvil(data: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen(
            [sys.executable, "-m", "payments_core_http.cli", "sandbox", "--anvil", "--json",
             "--port", "0", "--data", str(data)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while not processes_of(data):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        process.wait(30)
        assert all_end(data)
    Running.on(data).child.end()


def test_kill_9_between_the_steps_of_a_payment_loses_nothing(
    sandbox: Running, receiver: ReceiverChild
) -> None:
    stage = DemoContext(ApiClient(sandbox.child.base_url), receiver)
    known = through(sandbox, stage, make_initial_state(sandbox.child), "config", "balances-before")
    for first, last in (
        ("webhook", "option"),
        ("authorize", "authorize"),
        ("watch", "read-payment"),
        ("balances-after", "webhooks"),
    ):
        sandbox.child.kill()
        sandbox.again()  # which waits for the old anvil to write its chain
        known = through(sandbox, stage, known, first, last)


def test_the_clock_route_moves_the_chain(sandbox: Running) -> None:
    before = sandbox.height()
    assert sandbox.call("POST", "/v2/sandbox/clock", {"advanceSeconds": 30})[0] == 200
    assert sandbox.height() >= before + 30


def test_a_chain_goes_on_after_a_transaction_until_it_is_final_and_then_rests(
    sandbox: Running,
) -> None:
    account_id = sandbox.account()
    body = {"chainId": CHAIN_ID, "assetSymbol": "USDC", "amount": "1.00",
            "to": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}  # fmt: skip
    resting = sandbox.height()
    time.sleep(2.5)
    assert sandbox.height() == resting
    assert sandbox.call("POST", "/v2/sandbox/transfers", body)[0] == 200
    moved = sandbox.height()
    time.sleep(2.5)
    assert sandbox.height() > moved
    assert sandbox.total(account_id) == "0"


def test_while_its_node_is_gone_it_says_so_and_a_new_start_goes_on(sandbox: Running) -> None:
    account_id = sandbox.account()
    sandbox.fund(account_id)
    sandbox.until_copied()
    sandbox.kill_anvil()
    for status, document in (
        sandbox.fund(account_id),
        sandbox.call("GET", f"/v2/accounts/{account_id}/balances"),
        sandbox.call("GET", "/v2/sandbox"),
    ):
        assert (status, document["error"]["code"]) == (424, "dependency_failed")
    assert sandbox.call("GET", f"/v2/accounts/{account_id}")[0] == 200
    time.sleep(2)
    assert "anvil has stopped" in sandbox.child.read_errors()
    assert sandbox.child.end() == 0
    sandbox.again()
    assert sandbox.total(account_id) == "100000000"


def test_a_payment_whose_transfer_went_down_with_its_node_succeeds_after_a_new_start(
    sandbox: Running, receiver: ReceiverChild
) -> None:
    stage = DemoContext(ApiClient(sandbox.child.base_url), receiver)
    known = through(sandbox, stage, make_initial_state(sandbox.child), "config", "option")
    sandbox.until_copied()
    known = through(sandbox, stage, known, "authorize", "authorize")
    assert sandbox.call("POST", "/v2/sandbox/run")[0] == 200
    sandbox.kill_anvil()
    sandbox.child.end()
    sandbox.again()
    through(sandbox, stage, known, "watch", "webhooks")


def test_a_chain_that_lost_what_was_final_is_refused(sandbox: Running) -> None:
    sandbox.until_copied()
    state = sandbox.child.data / "anvil-state.json"
    before = state.read_bytes()
    sandbox.call("POST", "/v2/sandbox/blocks", {"chainId": CHAIN_ID, "count": 20})
    sandbox.call("POST", "/v2/sandbox/run")
    sandbox.child.end()
    whole = state.read_bytes()
    state.write_bytes(before)
    assert "ends at block" in refused(sandbox.child.data, "--anvil")
    state.write_bytes(whole[: len(whole) // 2])
    assert "is incomplete: anvil was stopped while writing it" in refused(
        sandbox.child.data, "--anvil"
    )
    state.unlink()
    assert "so final payments are missing from it" in refused(sandbox.child.data, "--anvil")
    state.write_bytes(whole)
    sandbox.again()


def test_a_chain_of_another_folder_is_refused(sandbox: Running, tmp_path: Path) -> None:
    other = Running.on(tmp_path / "other")
    other.call("POST", "/v2/sandbox/blocks", {"chainId": CHAIN_ID, "count": 200})
    sandbox.call("POST", "/v2/sandbox/run")
    other.child.end()
    sandbox.child.end()
    state = sandbox.child.data / "anvil-state.json"
    state.write_bytes((tmp_path / "other" / state.name).read_bytes())
    reported = refused(sandbox.child.data, "--anvil")
    assert "does not have the blocks that the database refers to" in reported


def test_a_folder_keeps_to_its_kind_of_chain(sandbox: Running, tmp_path: Path) -> None:
    data = sandbox.child.data
    sandbox.child.end()
    assert "was created with --anvil" in refused(data)
    SandboxChild(tmp_path / "simulated").end()
    assert "was created without --anvil" in refused(tmp_path / "simulated", "--anvil")
    (data / "operator.key").unlink()
    assert "operator.key is missing" in refused(data, "--anvil")


def test_without_anvil_it_says_what_to_install(tmp_path: Path) -> None:
    for name, environment in (
        ("named", {"PAYMENTS_ANVIL": str(tmp_path / "none")}),
        ("no npm", {"PATH": "", "PAYMENTS_ANVIL": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "payments_core_http.cli", "sandbox", "--anvil", "--port", "0",
             "--data", str(tmp_path / name)],
            capture_output=True, text=True, timeout=30, env={**os.environ, **environment},
        )  # fmt: skip
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "install npm" in done.stderr
        assert "PAYMENTS_ANVIL" in done.stderr


def test_its_line_has_the_simulated_ones_fields_and_two_more(sandbox: Running) -> None:
    keys = json.loads((sandbox.child.data / "sandbox.json").read_text())
    assert set(sandbox.child.facts) == {
        "baseUrl", "sdkBaseUrl", "publicUrl", "dashboardUrl", "chains", "nodeUrl", *keys,
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_the_lines_of_the_page_work(sandbox: Running) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    script = "\necho\n".join(blocks)
    script = script.replace("http://127.0.0.1:8080", sandbox.child.base_url)
    script = script.replace("http://127.0.0.1:8545", sandbox.child.facts["nodeUrl"])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=sandbox.child.data.parent, capture_output=True, text=True, timeout=60,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"error"' not in done.stdout, done.stdout
    assert "0x1\n" in done.stdout
    assert done.stdout.endswith(f"{CHAIN_ID}\n")


def test_a_deep_reorg_right_after_a_new_start_leaves_a_sandbox_that_pays(
    sandbox: Running, receiver: ReceiverChild
) -> None:
    sandbox.child.end()
    sandbox.again()
    reorg = {"chainId": CHAIN_ID, "depth": 50}
    assert sandbox.call("POST", "/v2/sandbox/reorgs", reorg)[0] == 200
    stage = DemoContext(ApiClient(sandbox.child.base_url), receiver)
    through(sandbox, stage, make_initial_state(sandbox.child), "config", "webhooks")
