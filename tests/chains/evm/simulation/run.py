"""A random run on an EVM chain: pools, fees that spike, reorgs, nodes that lag and lie, and two
processes with one signer, which crash, lose commits and overtake each other; then calm.

A seed makes one run, the same every time. `callers.py` and `happenings.py` say what may come,
`audit.py` what must hold at the end.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from payments_core.accounts.operations import NewAccount
from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import Vault
from payments_core.chains.evm.addresses import hash_id
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.rotated_signer import RotatedSigner
from payments_core.clock import FixedClock
from payments_core.engine.idempotency.record import AlreadyResponded, IdempotentRequest
from payments_core.errors import PaymentsError
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.record import Payment
from payments_core.service import PaymentsService
from payments_core.storage.maintenance import scan_all
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import DIRECTORY
from payments_core.storage.records import R
from payments_core.tenants.authorization import Authority, Requirement
from tests.chains.evm.fake_node import hashed
from tests.chains.evm.simulation import audit, callers, happenings
from tests.chains.evm.simulation.network import (
    CHAIN,
    GWEI,
    OTHER_TOKEN,
    QUIET_FEE,
    SECRETS,
    TOKEN,
    WALLETS,
    Move,
    Network,
    StrangersTransaction,
)
from tests.chains.evm.simulation.pool_node import PoolNode, nodes_answer_in_turn
from tests.chains.evm.simulation.processes import Crashed, Interference, Process, Shop
from tests.service.world import PAYER_PERMISSIONS, authority_of, once

MUCH_GAS_MONEY = 10**20
MAX_ROUNDS = 120
"""So many half minutes, at the most, a run has to come to its end once it is calm."""


@attrs.frozen
class Kind:
    """What sort of run it is: whether the operator's key changes, and the base fee at the end."""

    rotates: bool = False
    calm_fee: int = QUIET_FEE


KINDS = (Kind(), Kind(rotates=True, calm_fee=GWEI), Kind(calm_fee=GWEI))
"""Each run takes one of these in turn. Where keys change, the base fee at the end is above most
earlier ones: former keys must raise the fees of what they have signed (docs/how-to/keys.md)."""


class Run:
    """The run of a seed."""

    def __init__(self, seed: int, kind: Kind) -> None:
        self.seed = seed
        self.kind = kind
        self.rng = random.Random(f"life {seed}")
        self.clock = FixedClock()
        self.tally: Counter[str] = Counter()
        self.faults: list[str] = []
        self.current: Process | None = None
        self._names = 0
        weakness = Weakness(seed=seed) if self.rng.random() < 0.3 else None
        self.storage = MemoryStorage(weakness)
        self.interference = Interference(self.rng)
        self.shop = Shop(self.rng)
        nodes = self.rng.choice((1, 1, 3))
        self.network = Network(
            self.rng, self.clock, final_depth=self.rng.choice((3, 8)), nodes=nodes
        )
        self.nodes = [
            PoolNode(self.network, number, lambda: self.interference.count_call(self.current))
            for number in range(nodes)
        ]
        self.secrets = [SECRETS[0]]
        entropy = random.Random(f"entropy {seed}").randbytes
        self.processes = [
            Process(
                network=self.network,
                nodes=self.nodes,
                storage=self.storage,
                signer=self.make_signer(),
                true_clock=self.clock,
                entropy=entropy,
                shop=self.shop,
                interference=self.interference,
            )
            for _ in range(2)
        ]
        self._open()

    # What there is.

    def name(self, what: str) -> str:
        """A name that nothing else has."""
        self._names += 1
        return f"{what}{self._names}"

    def all(self, kind: type[R]) -> list[R]:
        """All records of a kind."""
        partitions = (self.environment_id, DIRECTORY)
        found = scan_all(self.storage, kind)
        return [one.record for one in found if one.partition in partitions]

    def pick_payment(self, *statuses: str) -> Payment | None:
        """A Payment, most often one of the newest, of some statuses or of any."""
        found = [one for one in self.all(Payment) if not statuses or one.status in statuses]
        if not found:
            return None
        return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)

    def vault(self, account: Account) -> str:
        """The address of an account's vault."""
        return self.network.purse(self.environment_id, "vault", account.id)

    def make_signer(self) -> RotatedSigner:
        """A signer with the newest of the operator's keys, and with all former ones."""
        current, *former = map(LocalSigner, self.secrets)
        return RotatedSigner(current, tuple(former))

    def add_operator(self, address: str) -> None:
        """Let an address call the factory, and give it gas money."""
        self.network.operators.add((hash_id(self.environment_id), address))
        self.network.tip.state.gas_money.setdefault(address, MUCH_GAS_MONEY)

    # What callers, strangers and chance do.

    def attempt(self, what: str, call: Callable[[PaymentsService, IdempotentRequest], Any]) -> Any:
        """A public operation with a key, asked again after a crash; None where it was refused."""
        process = self.rng.choice(self.processes)
        before, key = self.current, self.name("key")
        for _ in range(4):
            process.service.refresh()
            self.current = process
            try:
                done = call(process.service, once(key, what))
            except AlreadyResponded:
                self.tally[f"answered {what}"] += 1
                return None
            except PaymentsError as error:
                self.tally[f"{what}: {error.code}"] += 1
                if error.code == "internal_error":
                    self.faults.append(f"{what}: {error}")
                return None
            except Crashed:
                process.start()
                self.interference.disarm()
            else:
                self.tally[f"done {what}"] += 1
                return done
            finally:
                self.current = before
        return None

    def send_as_stranger(self, moves: list[Move], *, reverts: bool = False) -> str:
        """A stranger's transaction, to be mined; its hash."""
        hash = hashed("stranger", self.seed, self.name("tx"))
        self.network.strangers.append(StrangersTransaction(hash, moves, reverts=reverts))
        self.tally["stranger"] += 1
        return hash

    def step(self) -> None:
        """One thing that a caller does, that happens, or that a worker does."""
        chance = self.rng.random()
        if chance < 0.22:
            self._act_as_caller()
        elif chance < 0.5:
            self.rng.choice(happenings.HAPPENINGS)(self)
        else:
            self._pass_time()
            self.interference.lost_commits = self.rng.choice((0, 0, 0, 0, 0.05))
            self._run_worker(self.rng.choice(self.processes), self.rng.choice((None, 5, 20)))
            self.interference.lost_commits = 0.0

    def finish(self) -> None:
        """Let the chain, the nodes and the clocks be well, and all come to its end."""
        self._calm()
        process = self.current = self.processes[0]
        for number in range(MAX_ROUNDS):
            for _ in range(6):
                self.clock.advance(5)
                self.network.mine()
                self.network.gossip()
                process.worker.run_until_idle()
            waiting = [p.expires_at_ms for p in self.all(Payment) if p.status == "awaiting_payment"]
            if waiting:
                # A chain that was not read for long is asked every five minutes.
                self.clock.advance(max(300, (max(waiting) - self.clock.now()) // 1_000))
            if number > 6 and not list(audit.find_unfinished(self)):
                break
        for _ in range(14):  # the longest pauses of the webhooks
            self.clock.advance(3_700)
            process.worker.run_until_idle()
            self.network.mine()
            process.worker.run_until_idle()

    def _open(self) -> None:
        service = self.processes[0].service
        app = service.tenants.create_app("Acme", "acme", modes=("sandbox",))
        self.environment_id = app.environments["sandbox"]
        self.network.learn(self.environment_id)
        _, secret = service.tenants.create_key(self.environment_id, "standard", "main")
        self.server = authority_of(*service.tenants.authenticate(app.id, secret, mode="sandbox"))
        self.accounts = [
            service.acting_as(self.server)
            .accounts.create(NewAccount(external_user_id=name, subject_type="individual"))
            .account
            for name in ("merchant", "payer", "other")
        ]
        self.clients = [self._open_session(account) for account in self.accounts]
        self.add_operator(self.processes[0].signer.address(self.environment_id))
        tokens = self.network.tip.state.tokens
        for wallet in WALLETS:
            tokens[TOKEN, wallet] = tokens[OTHER_TOKEN, wallet] = 10**12
        for account in self.accounts:
            tokens[TOKEN, self.vault(account)] = 200 * 10**6
        self.initial = dict(tokens)
        for block in self.network.blocks[:-1]:  # reorgs reach no further back than this
            block.state.tokens.update(tokens)
            block.state.gas_money.update(self.network.tip.state.gas_money)
        for _ in range(10):
            self.network.mine()
        self.deposit_addresses = [
            service.acting_as(self.server).deposits.issue_address(account.id, CHAIN).address.address
            for account in self.accounts
        ]
        service.acting_as(self.server).webhooks.create(url="https://shop.example/hooks")
        self.mandates = [self._open_mandate(account) for account in self.accounts]
        self.options: list[tuple[int, Any]] = []
        self.processes[0].worker.run_until_idle()

    def _open_session(self, account: Account) -> Authority:
        created = (
            self.processes[0]
            .service.acting_as(self.server)
            .client_sessions.create(
                account_id=account.id,
                expires_in_s=86_400,
                permissions=PAYER_PERMISSIONS,
            )
        )
        access = (
            self.processes[0]
            .service.client_tokens.exchange(created.token, mode="sandbox")
            .access_token
        )
        environment, session = self.processes[0].service.client_tokens.authenticate(
            access, mode="sandbox"
        )
        return Authority(
            requirement=Requirement("client", permissions=("vault_payments:write",)),
            environment=environment,
            session=session,
            api_version=session.api_version,
        )

    def _open_mandate(self, account: Account) -> Any:
        vault = next(
            one for one in self.all(Vault) if one.account_id == account.id and one.chain_id == CHAIN
        )
        new = NewMandate(vault_id=vault.id, amount_per_period="60", period="day")
        mandates = self.processes[0].service.acting_as(self.server).mandates
        return mandates.create(account.id, new).mandate

    def _act_as_caller(self) -> None:
        if self.rng.random() < 0.25:
            self._arm()
        try:
            self.rng.choice(callers.CALLERS)(self)
        finally:
            self.interference.disarm()

    def _pass_time(self) -> None:
        self.clock.advance(self.rng.choice((1, 1, 2, 5, 12, 31, 120)))
        if self.rng.random() < 0.02:
            self.clock.advance(self.rng.choice((3_600, 40_000)))
        for _ in range(self.rng.randint(0, 4)):
            self.network.mine()

    def _run_worker(self, process: Process, most: int | None) -> None:
        if self.rng.random() < 0.35:
            self._arm()
        self.current = process
        try:
            if most is None:
                process.worker.run_until_idle()
            else:
                process.worker.run_due(most)
        except Crashed:
            process.start()
        finally:
            self.interference.disarm()

    def _arm(self) -> None:
        """Choose what happens amid the next calls."""

        def crash(process: Process | None) -> None:
            self.tally["crash"] += 1
            raise Crashed

        def let_other_work(process: Process | None) -> None:
            self.tally["other process meanwhile"] += 1
            self.clock.advance(self.rng.choice((0, 0, 1, 61, 200)))
            for _ in range(self.rng.randint(0, 2)):
                self.network.mine()
            other = self.processes[1 if process is self.processes[0] else 0]
            other.worker.run_due(self.rng.randint(1, 12))

        def let_world_turn(process: Process | None) -> None:
            self.tally["world meanwhile"] += 1
            self.rng.choice(happenings.HAPPENINGS)(self)

        def let_caller_act(process: Process | None) -> None:
            self.tally["caller meanwhile"] += 1
            self.rng.choice(callers.CALLERS)(self)

        acts = (crash, crash, let_other_work, let_other_work, let_world_turn, let_caller_act)
        self.interference.arm(self.rng.choice(acts))

    def _calm(self) -> None:
        self.interference.disarm()
        self.interference.lost_commits = 0.0
        self.shop.failing = 0.0
        self.network.is_mining = True
        self.network.base_fee = self.kind.calm_fee
        self.network.blacklist = frozenset()
        for _, address in self.network.operators:
            self.network.tip.state.gas_money[address] = MUCH_GAS_MONEY
        for node in self.nodes:
            node.recover()
        for process in self.processes:
            process.clock.ahead_ms = 0
            process.signer = self.make_signer()  # no process is left with a former key alone
            process.start()
        self.network.gossip()


@attrs.frozen
class Outcome:
    """What came of a seed: its violations, and how often what happened."""

    seed: int
    violations: tuple[str, ...]
    tally: Counter[str]


def simulate(seed: int, steps: int) -> Outcome:
    """One run: so many steps, then calm, then the audit."""
    order = random.Random(f"order {seed}")
    with nodes_answer_in_turn(order.shuffle), _watched_log() as said:
        run = Run(seed, KINDS[seed % len(KINDS)])
        for _ in range(steps):
            run.step()
        run.finish()
        violations = list(audit.find_violations(run))
    return Outcome(seed, tuple(violations + run.faults + said), run.tally)


@contextmanager
def _watched_log() -> Iterator[list[str]]:
    """The log lines that report a fault of our own."""
    said: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if "job" in text and ("failed" in text or "without a result" in text):
                said.append(f"log: {text[:500]}")

    log, handler = logging.getLogger("payments_core"), Handler(logging.WARNING)
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.WARNING)
    log.propagate = False
    try:
        yield said
    finally:
        log.removeHandler(handler)
        log.level, log.propagate = before
