"""A Payment on a chain of your own, with the library. Run it::

.venv/bin/python -m examples.custom_chain.play
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from payments_core import (
    KeyRing,
    NewPayment,
    PaymentsService,
    Settings,
    ToWallet,
    open_storage,
    shipped_networks,
)
from payments_core.chains.evm.signers import LocalSigner
from payments_core.clock import FixedClock

from .adapter import LedgerChain
from .network import NETWORK
from .node import CHAIN_ID, Ledger


def main() -> None:
    """A Payment to a wallet: paid by a stranger's transfer, accepted, released."""
    clock = FixedClock()
    with TemporaryDirectory() as folder:
        node = Ledger(Path(folder, "ledger.db"), clock)
        node.create()
        networks = shipped_networks().merge(NETWORK)
        signer = LocalSigner.open(Path(folder, "operator.key"))
        service = PaymentsService(
            open_storage("memory:"),
            KeyRing.parse(KeyRing.generate()),
            chains={CHAIN_ID: LedgerChain(node, networks[CHAIN_ID], signer)},
            networks=networks,
            settings=Settings(public_url="https://pay.example"),
            clock=clock,
        )
        app = service.tenants.create_app("Shop", "shop")
        shop = service.environment(app.environments["sandbox"])
        wallet = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"
        order = NewPayment(
            amount="25.00",
            chain_id=CHAIN_ID,
            asset_symbol="USDC",
            destination=ToWallet(address=wallet),
        )
        payment = shop.payments.receive(order).payment
        print(payment.status)
        node.pay(payment.asset.address, str(payment.escrow_address), 25_000_000)
        worker = service.worker("sandbox")
        for _ in range(4):
            clock.advance(60)
            worker.run_until_idle()
            print(shop.payments.read(payment.id).payment.status)
            node.mine(2)
        print("the wallet has", node.balance(payment.asset.address, wallet, node.height()))
        service.close()


if __name__ == "__main__":
    main()
