"""The bank that receives transfers for accounts: the given bank, or a simulated one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from payments_core.banks.incoming import DeliveryOrder, FundingBank
from payments_core.banks.port import Bank
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.simulated.failures import Failures
from payments_core.credentials.secrets import MODES
from payments_core.engine.ports import Ports
from payments_core.sandbox.chains import SandboxChain

_POLLED_CALLS = ("list_notices", "list_incoming_notices", "acknowledge")
"""The reader of notices makes these calls constantly, so they fail only by their own name."""


@attrs.frozen(kw_only=True)
class FundingBanks:
    """The banks that receive transfers for accounts, by mode; and the simulated one, if any."""

    by_mode: Mapping[str, FundingBank]
    simulated: SimulatedFundingBank | None = None


def choose_funding_banks(
    bank: Bank | None, ports: Ports, sandbox_chains: Mapping[int, SandboxChain]
) -> FundingBanks:
    """The given bank for both modes, if it receives transfers; or a simulated one in the sandbox.

    The simulated one delivers new tokens of the sandbox's chains, so it needs those.
    """
    if bank is not None:
        given: dict[str, FundingBank] = {}
        if isinstance(bank, FundingBank):
            for mode in MODES:
                given[mode] = bank
        return FundingBanks(by_mode=given)
    if not sandbox_chains:
        return FundingBanks(by_mode={})

    def send_tokens(order: DeliveryOrder) -> str:
        chain = sandbox_chains.get(order.chain_id)
        if chain is None:
            raise ChainUnavailable("the sandbox has no such chain")
        name = f"bank/{order.key}"
        return chain.transfer(order.token_address, None, order.address, order.amount_atomic, name)

    simulated = SimulatedFundingBank(ports, send_tokens, ordered_bank_failures(ports))
    return FundingBanks(by_mode={"sandbox": simulated}, simulated=simulated)


def ordered_bank_failures(ports: Ports) -> Callable[[str], bool]:
    """Whether a call of the simulated bank was ordered to fail."""
    failures = Failures(ports)

    def fails(call: str) -> bool:
        if call in _POLLED_CALLS:
            return failures.is_armed("bank", call) and failures.take("bank", (call,))
        return failures.consume("bank", call)

    return fails
