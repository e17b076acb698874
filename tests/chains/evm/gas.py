"""What each function of our contracts costs, measured on a fresh anvil.

`python -m tests.chains.evm.gas` prints the rows of the table in docs/explanation/contracts.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import Deployment, Generation, PurseKind
from payments_core.chains.evm.artifacts import load_contract
from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.deployed import ENV, MILLION, Deployed, account
from tests.chains.evm.nodes import ADMIN, MERCHANT, OPERATOR, OWNER, PAYER, STRANGER, Node, hexed
from tests.chains.evm.safes import Safe

AMOUNT = 250_000
TOKEN = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
"""USDC's address on Base, where the test token stands: addresses' zero bytes cost less."""


@attrs.frozen
class Row:
    """What was done, and its gas: when its purses are created on the way, and when they exist."""

    name: str
    first: int | None
    later: int | None

    @property
    def gas(self) -> str:
        """Two columns of the table."""
        return " | ".join(f"{each:,}" if each else "" for each in (self.first, self.later))


def lines() -> Iterator[str]:
    """Every line of the table: the gas of the contracts, and of those of the first generation."""
    before = {row.name: row.gas for row in rows(1)}
    for row in rows(2):
        yield f"| {row.name} | {row.gas} | {before.get(row.name, ' | ')} |"


def rows(generation: Generation) -> Iterator[Row]:
    """What each function of a generation costs."""
    with AnvilProcess() as anvil:
        node = Node(anvil.url)
        deployed = Deployed(node, generation)
        node.ask("anvil_setCode", TOKEN, hexed(load_contract("TestToken").runtime or b""))
        deployed.mint(TOKEN, MERCHANT, MILLION)  # a merchant who was paid before
        deployed.mint(TOKEN, PAYER, MILLION)
        moved = node.do(PAYER, TOKEN, calls.transfer(MERCHANT, AMOUNT)).gas_used
        yield Row("a token's `transfer` alone, for comparison", None, moved)
        factory = deployed.deploy(Deployment(MERCHANT, generation).creation).gas_used
        yield Row("deploying `Factory`", factory, None)
        named = deployed.do(ADMIN, calls.set_operator(ENV, PAYER, allowed=True)).gas_used
        yield Row("`setOperator`", named, None)
        yield from _moving(deployed)
        if generation == 2:
            yield from _coin(deployed)
        yield from _owning(deployed)
        yield from _modules(deployed)
        node.close()


def _moving(deployed: Deployed) -> Iterator[Row]:
    def gas(data: bytes, sender: str = OPERATOR) -> int:
        return deployed.do(sender, data).gas_used

    for owner_id in ("user", "second"):
        deployed.filled("vault", owner_id, TOKEN)
    first = gas(calls.fund(ENV, "user", "payment-1", TOKEN, AMOUNT))
    later = gas(calls.fund(ENV, "user", "payment-2", TOKEN, AMOUNT))
    yield Row("`fund`, of a new Payment's escrow", first, later)
    first = gas(calls.pay(ENV, "payment-1", TOKEN, MERCHANT, AMOUNT // 2))
    later = gas(calls.pay(ENV, "payment-1", TOKEN, MERCHANT, AMOUNT // 2))
    yield Row("`pay`, a part of the escrow first, then its rest", first, later)
    whole = gas(calls.pay(ENV, "payment-2", TOKEN, MERCHANT, AMOUNT))
    yield Row("`pay`, the whole escrow at once", whole, None)
    first = gas(calls.pay_out(ENV, "second", "send-1", TOKEN, MERCHANT, AMOUNT))
    later = gas(calls.pay_out(ENV, "second", "send-2", TOKEN, MERCHANT, AMOUNT))
    yield Row("`payOut`, each through its own escrow", first, later)
    for name in ("sweep", "sweepAll"):
        found = []
        for _ in range(2):
            deployed.filled("deposit", f"user-of-{name}", TOKEN, AMOUNT)
            if name == "sweep":
                data = calls.sweep(ENV, f"user-of-{name}", TOKEN, AMOUNT)
            else:
                data = calls.sweep_all(ENV, f"user-of-{name}", TOKEN)
            found.append(gas(data))
        yield Row(f"`{name}`, the whole deposit", *found)


def _coin(deployed: Deployed) -> Iterator[Row]:
    """Native coin, at an escrow and at a deposit address that do not exist yet."""

    def gas(data: bytes) -> int:
        return deployed.do(OPERATOR, data).gas_used

    def arrives(kind: PurseKind, owner_id: str) -> int:
        deployed.node.do(PAYER, deployed.address(kind, owner_id), value=AMOUNT)
        return gas(calls.report(ENV, kind, owner_id))

    coin = deployed.factory
    first = arrives("escrow", "coin-1")
    deployed.node.do(PAYER, deployed.address("escrow", "coin-1"), value=AMOUNT)
    later = gas(calls.report(ENV, "escrow", "coin-1"))
    yield Row("`report` of native coin, and of more of it", first, later)
    back = gas(calls.pay(ENV, "coin-1", coin, MERCHANT, AMOUNT))
    rest = gas(calls.pay(ENV, "coin-1", coin, MERCHANT, AMOUNT))
    yield Row("`pay` of native coin, a part first, then its rest", back, rest)
    arrives("deposit", "coined")
    yield Row("`sweep` of native coin", gas(calls.sweep(ENV, "coined", coin, AMOUNT)), None)
    out = gas(calls.pay_out(ENV, "coined", "coin-2", coin, MERCHANT, AMOUNT))
    yield Row("`payOut` of native coin", out, None)


def _owning(deployed: Deployed) -> Iterator[Row]:
    first = deployed.do(OPERATOR, calls.set_vault_owner(ENV, "new", OWNER)).gas_used
    later = deployed.do(OPERATOR, calls.set_vault_owner(ENV, "user", OWNER)).gas_used
    yield Row("`setVaultOwner`", first, later)
    vault = deployed.address("vault", "user")
    executed = [
        deployed.executes(vault, TOKEN, calls.transfer(MERCHANT, 5), account(OWNER)).gas_used
        for _ in range(2)
    ]
    yield Row(
        "`execute` of a token's `transfer`, the owner's first signature and the next", *executed
    )
    refused = calls.set_factory_role(allowed=False)
    gas = deployed.executes(vault, vault, refused, account(OWNER)).gas_used
    yield Row("`execute` of `setFactoryRole`", gas, None)


def _modules(deployed: Deployed) -> Iterator[Row]:
    vault, key = deployed.owned_vault("modular", OWNER), account(OWNER)
    safe = Safe(deployed, key)
    for avatar in (vault, safe.address):
        deployed.mint(TOKEN, avatar, MILLION)
    modules = {avatar: deployed.role_module(avatar, TOKEN) for avatar in (vault, safe.address)}
    another = attrs.evolve(modules[vault], avatar=STRANGER)
    gas = deployed.deploy(another.creation).gas_used
    yield Row("deploying a `RoleModule` for one token", gas, None)
    enable = calls.enable_module(modules[vault].address)
    enabled = deployed.executes(vault, vault, enable, key).gas_used
    yield Row("`execute` of `enableModule`", enabled, None)
    safe.executes(safe.address, calls.enable_module(modules[safe.address].address))
    for avatar, name in ((vault, "vault"), (safe.address, "Safe 1.4.1")):
        found = []
        for _ in range(2):
            escrow = deployed.address("escrow", f"of-{name}")
            data = calls.exec_transfer(TOKEN, escrow, AMOUNT, f"of-{name}")
            found.append(deployed.node.do(OPERATOR, modules[avatar].address, data).gas_used)
        yield Row(f"`exec` on a {name}, the escrow's first money and more", *found)


if __name__ == "__main__":
    for line in lines():
        print(line)
