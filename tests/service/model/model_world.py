"""The world: one app with its accounts, two processes, two chains, and a clock for all of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from payments_core.accounts.operations import NewAccount
from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import PolicyTerms, Vault
from payments_core.chains.port import AddressSpec, Chain
from payments_core.chains.simulated.blocks import CONFIRMATIONS
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.chains.simulated.failure_records import ArmedFailures
from payments_core.chains.simulated.failures import Failures
from payments_core.clock import DAY, SECOND, Clock, FixedClock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.idempotency.record import AlreadyResponded, IdempotentRequest
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import PaymentsError
from payments_core.networks import Asset
from payments_core.onramps.fields import NewOnrampAccount, NewOnrampDestination
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.record import Payment
from payments_core.sandbox.clock import SandboxClock
from payments_core.sandbox.operations import Sandbox
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import SIMULATED
from payments_core.storage.records import R
from payments_core.tenants.authorization import Authority, Requirement
from tests.service.faults import Crashed, FaultyChain
from tests.service.model.acceptance import choose_networks
from tests.service.model.bank import ACCOUNT_NUMBERS, NEW_ACCOUNT, BankLine, ModelBank
from tests.service.model.mirror import Commit, Gate, Mirror
from tests.service.world import PAYER_PERMISSIONS, RING, NoTransport, authority_of, once, write
from tests.shipped import asset_of, token_of

BASE, ETHEREUM = 8453, 1
ASSETS = (asset_of(BASE, "USDC"), asset_of(ETHEREUM, "USDC"), asset_of(ETHEREUM, "USDT"))
WATCHED = (token_of(BASE, "USDbC"), token_of(BASE, "USDT"))
"""Tokens that count nowhere, of as many decimals as the others."""

NOBODY = ("0x" + 40 * "0", ASSETS[0].address, WATCHED[0].address)
"""Senders that a chain names and that nobody holds."""

WALLETS = tuple(f"0x00000000000000000000000000000000000E{place:04X}" for place in range(1, 4))
"""Strangers outside, with tokens of their own on both chains."""

KEYS = KeyRing.parse(RING)

_OURS = ("dependency_failed", "unavailable", "internal_error")
"""Errors that are nobody's fault but the service's, or of what it depends on."""


SETTINGS = Settings(public_url="https://pay.example", events_retention_ms=100 * 365 * DAY)
"""Events are kept, so that at the end all that happened can be compared with them."""


class Skewed:
    """A machine's clock, which others do not agree with."""

    def __init__(self, true: Clock) -> None:
        self._true = true
        self.ahead_ms = 0

    def now(self) -> Instant:
        return self._true.now() + self.ahead_ms

    def real_now(self) -> Instant:
        return self.now()


class Line(FaultyChain):
    """A chain as one process reaches it: a crash can come between any two calls."""

    def __init__(self, inner: Chain, gate: Gate) -> None:
        super().__init__(inner, 0, lambda call: call())
        self._gate = gate

    def _through(self, call: Callable[[], Any]) -> Any:
        return self._gate.through(call, "chain")


class Process:
    """One process of the deployment: its own clock, and nothing shared but the storage."""

    def __init__(self, world: ModelWorld) -> None:
        self._world = world
        self.system = Skewed(world.true)
        self.gate = Gate(world.storage, world.mirror)
        self.start()

    def start(self) -> None:
        """Begin anew, with nothing in memory."""
        self.clock = SandboxClock(self.gate, self.system)
        self.clock.refresh()
        self.service = PaymentsService(
            self.gate,
            KEYS,
            chains={id: Line(chain, self.gate) for id, chain in self._world.chains.items()},
            clock=self.clock,
            entropy=self._world.entropy.randbytes,
            settings=SETTINGS,
            transport=NoTransport(),
            bank=BankLine(self._world.bank, self.gate),
            networks=self._world.networks,
        )
        self.worker = self.service.worker("sandbox")

    def advance(self, seconds: int) -> None:
        """Move the sandbox's clock, and do what falls due on the way."""
        self.service.refresh()
        self.worker.run_through(self.clock.now() + seconds * SECOND, self._move)

    def _move(self, instant: Instant) -> None:
        self.clock.advance_to(instant)
        self._world.chain_clock.refresh()


class ModelWorld:
    """All that a rule may touch."""

    def __init__(self, seed: int, watched: Callable[[ModelWorld, Commit], None]) -> None:
        """`watched` gets every commit, from the first."""
        self.seed = seed
        self.tally: Counter[str] = Counter()
        id_sequence = random.Random(f"stage/{seed}")
        self.is_weak = id_sequence.random() < 0.4
        self.may_reorg_deeply = id_sequence.random() < 0.4
        self.has_limit = id_sequence.random() < 0.5
        self.networks = choose_networks(id_sequence, (BASE, ETHEREUM))
        self.is_forgetful = self.networks is not None and id_sequence.random() < 0.5
        # What was final is undone only where scans notice it.
        self.may_reorg_deeply = self.may_reorg_deeply and not self.is_forgetful
        self.storage = MemoryStorage(Weakness(seed=seed) if self.is_weak else None)
        self.mirror = Mirror()
        self.mirror.on_commit.append(partial(watched, self))
        self.entropy = random.Random(f"entropy/{seed}")
        self.true = FixedClock()
        self.outside = Gate(self.storage, self.mirror)
        self.chain_clock = SandboxClock(self.outside, self.true)
        self.ports = Ports.over(
            self.outside, KEYS, self.chain_clock, entropy=self.entropy.randbytes
        )
        self.committer = self.ports.committer
        self.chains = {id: SimulatedChain(id, self.ports) for id in (BASE, ETHEREUM)}
        self.bank = ModelBank(self.ports, self.chains)
        self.bank_accounts: list[tuple[Account, str]] = []
        self.onramp_ids: list[str] = []
        self._ordered = 0
        self._failures = Failures(self.ports)
        self.options: list[tuple[int, Any]] = []
        self.deposit_addresses: list[str] = []
        self.reorged: set[int] = set()
        self.reorged_deeply: set[int] = set()
        self.faults: list[tuple[str, str]] = []
        self.alarms: list[str] = []
        self.furthest_skew_s = 0
        self.has_trouble = False
        self.cuts_off = False
        self.is_disturbed = False
        self.processes = [Process(self), Process(self)]
        self._names = 0
        self.environment_id = ""
        self._open()

    def _open(self) -> None:
        service = self.processes[0].service
        app = service.tenants.create_app("Acme", "acme", modes=("sandbox",))
        self.environment_id = app.environments["sandbox"]
        _, secret = service.tenants.create_key(self.environment_id, "standard", "main")
        environment, key = service.tenants.authenticate(app.id, secret, mode="sandbox")
        self.server = authority_of(environment, key)
        self.accounts = [self._account(name) for name in ("merchant", "payer", "other")]
        self.clients = [self._client(account) for account in self.accounts]
        for asset in (*ASSETS, *WATCHED):
            for wallet in (*WALLETS, *NOBODY):
                self.mint(asset, wallet, 500)
        for account in self.accounts[1:]:
            self.mint(ASSETS[0], self.vault_address(account), 150)
            issued = service.acting_as(self.server).deposits.issue_address(account.id, BASE)
            self.deposit_addresses.append(issued.address.address)
            vault = self.vault(account, BASE)
            standing = NewMandate(vault_id=vault.id, amount_per_period="30", period="day")
            service.acting_as(self.server).mandates.create(account.id, standing)
        self.processes[0].worker.run_until_idle()  # the first scan: what comes is found from here
        self._open_bank()
        if self.has_limit:
            vault = self.vault(self.accounts[1], BASE)
            terms = PolicyTerms(daily_limit="20")
            service.acting_as(self.server).vaults.replace_policy(vault.account_id, vault.id, terms)

    def _account(self, name: str) -> Account:
        new = NewAccount(
            external_user_id=name,
            subject_type="individual",
            username=name if name == "merchant" else None,
        )
        return self.processes[0].service.acting_as(self.server).accounts.create(new).account

    def _open_bank(self) -> None:
        """Bank accounts and on-ramps of the payers, which the bank has approved."""
        service = self.processes[0].service
        payers = self.accounts[1:]
        for account in payers:
            service.parts.verifications.simulate_decision(self.server, account.id, "approved")
            for capability in ("us_bank_payout", "us_bank_funding"):
                service.acting_as(self.server).bank_accounts.activate(account.id, capability)
        self._wait_for_bank()
        for account in payers:
            for number in ACCOUNT_NUMBERS[: 3 if account is payers[0] else 1]:
                new = attrs.evolve(NEW_ACCOUNT, account_number=number)
                made = service.acting_as(self.server).bank_accounts.add(account.id, new)
                self.bank_accounts.append((account, made.id))
        for account, destination in zip(
            (payers[0], *payers),
            (
                NewOnrampDestination(type="vault", chain_id=BASE, asset_symbol="USDC"),
                NewOnrampDestination(type="vault", chain_id=ETHEREUM, asset_symbol="USDC"),
                NewOnrampDestination(
                    type="wallet", chain_id=BASE, asset_symbol="USDC", address=WALLETS[0]
                ),
            ),
            strict=True,
        ):
            onramp = NewOnrampAccount(currency="usd", destination=destination)
            self.onramp_ids.append(
                service.acting_as(self.server).onramps.add(account.id, onramp).id
            )
        self._wait_for_bank()

    def _wait_for_bank(self) -> None:
        self.processes[0].worker.run_until_idle()
        self.true.advance(60)
        self.processes[0].worker.run_until_idle()

    def renew_clients(self) -> None:
        """Sessions that have not expired, of the accounts that can have one."""
        for place, account in enumerate(self.accounts):
            if self.all(Account)[account.id].status != "closed":
                self.clients[place] = self._client(account)

    def _client(self, account: Account) -> Authority:
        created = (
            self.processes[0]
            .service.acting_as(self.server)
            .client_sessions.create(
                account_id=account.id, expires_in_s=86_400, permissions=PAYER_PERMISSIONS
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

    # Calls.

    def service(self, rng: random.Random) -> PaymentsService:
        """One of the processes, as a request reaches it."""
        process = rng.choice(self.processes)
        process.service.refresh()
        return process.service

    def sandbox(self) -> Sandbox:
        """The sandbox's operations; they use the chains' own clock."""
        self.chain_clock.refresh()
        process = self.processes[0]
        wake = process.service.parts.scanner("sandbox").wake
        verifications, calls = process.service.parts.verifications, RemoteCalls(1)
        return Sandbox(
            self.ports, self.chains, process.worker, verifications, calls, wake, testnets={}
        )

    def tried(
        self, rng: random.Random, name: str, call: Callable[[Any, IdempotentRequest | None], Any]
    ) -> Any:
        """What the operation answers, or None where it was refused; some are asked for twice.

        A refusal stores nothing, and so does a replay. A caller who was cut off asks again.
        """
        key = once(self.name("key"), name) if self.cuts_off or rng.random() < 0.15 else None
        try:
            done = self._refusable(name, lambda: call(self.service(rng), key))
        except Crashed:
            self.tally["caller cut off"] += 1
            self.restart()
            try:
                return self._refusable(name, lambda: call(self.service(rng), key))
            except AlreadyResponded:
                return None
        if done is not None and key is not None:
            before = self.mirror.commits
            try:
                call(self.service(rng), key)
            except AlreadyResponded:
                if self.mirror.commits != before and not self.is_disturbed:
                    self.report("a replay stores nothing", name)
            else:
                self.report("a retry does nothing more", name)
        return done

    def _refusable(self, name: str, call: Callable[[], Any]) -> Any:
        before = self.mirror.commits
        armed, ordered = bool(self._failures.list_armed()), self._ordered
        try:
            done = call()
        except PaymentsError as error:
            self.tally[f"error {error.code}"] += 1
            stored = self.mirror.commits - before
            if stored and not armed and not self.is_disturbed:
                self.report("a refusal stores nothing", f"{name}: {error.code}")
            is_ordered = armed or self._ordered != ordered  # maybe by what came in between
            expected = ("dependency_failed", "unavailable") if is_ordered else ()
            if error.code in _OURS and error.code not in expected:
                self.report("the service can answer", f"{name}: {error.code}")
            return None
        self.tally[f"done {name}"] += 1
        return done

    def restart(self) -> None:
        """Both processes die, and begin anew."""
        for process in self.processes:
            process.gate.disarm()
            process.start()

    def reorg(self, chain_id: int, depth: int, *, reinclude: bool) -> None:
        """The last blocks of a chain replaced."""
        self.reorged.add(chain_id)
        if depth > CONFIRMATIONS:
            self.reorged_deeply.add(chain_id)
        self.tally[f"reorg {'deep' if depth > CONFIRMATIONS else 'shallow'}"] += 1
        self.sandbox().reorg_chain(self.server, chain_id, depth, reinclude=reinclude)

    def is_shaken(self, payment: Payment) -> bool:
        """Whether a reorg may have undone what counted for a Payment."""
        is_early = payment.early_acceptance is not None
        return payment.chain_id in (self.reorged if is_early else self.reorged_deeply)

    def order_failures(self, operation: str, times: int, chain_id: int | None) -> None:
        """Let the next uses of a chain fail, or of all of them."""
        self._ordered += 1
        self._failures.arm("chain", operation, times, chain_id)

    def order_bank_failures(self, call: str, times: int) -> None:
        """Let the next calls to the bank fail."""
        self._failures.arm("bank", call, times)

    def disarm(self) -> None:
        """Nothing is ordered to fail any more; the sandbox has no operation for that."""

        def work(tx: Any) -> None:
            row = tx.get(ArmedFailures, "failures", for_update=True)
            if row is not None and row.armed:
                tx.replace(attrs.evolve(row, armed=()))

        write(self.outside, SIMULATED, work)

    def report(self, invariant: str, detail: str) -> None:
        """Something is wrong; the step that is under way will fail."""
        self.faults.append((invariant, detail))

    def name(self, what: str) -> str:
        """A name that was never used before."""
        self._names += 1
        return f"{what}-{self._names}"

    # Looking.

    def all(self, kind: type[R]) -> dict[str, R]:
        """Every record of a kind in the environment."""
        return self.mirror.all(self.environment_id, kind)

    def payment(self, rng: random.Random, *statuses: str) -> Payment | None:
        """A Payment, rather a new one, and rather in one of these states."""
        payments = list(self.all(Payment).values())
        if statuses and rng.random() < 0.9:
            payments = [payment for payment in payments if payment.status in statuses]
        if not payments:
            return None
        return rng.choice(payments[-3:] if rng.random() < 0.6 else payments)

    def bank_now(self) -> Instant:
        """The bank's time, and the chains'."""
        return self.chain_clock.now()

    def vault_address(self, account: Account) -> str:
        """Where an account's vaults are, on all chains."""
        spec = AddressSpec(self.environment_id, "vault", account.id)
        return self.chains[BASE].derive(spec)

    def vault(self, account: Account, chain_id: int) -> Vault:
        """An account's vault on a chain."""
        vaults = self.all(Vault).values()
        return next(v for v in vaults if (v.account_id, v.chain_id) == (account.id, chain_id))

    def vaults(self) -> dict[str, str]:
        """The addresses of all vaults by their ids."""
        return {vault.id: vault.address for vault in self.all(Vault).values()}

    def mint(self, asset: Asset, address: str, tokens: int) -> None:
        """New tokens, final at once."""
        self.chains[asset.chain_id].mint(
            asset.address, address, tokens * 10**asset.decimals, self.name("mint")
        )
