"""Funds that a recipient sends back to the paying address, shown on the Payment.

A send, or a refund from a vault, reaches its recipient from its own address. The `deposits`
room watches that address and brings arrivals to the vault; here the Payment is updated.
"""

from __future__ import annotations

from payments_core.chains.outbox.record import load_transfer
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.payments import lifecycle
from payments_core.payments.details import lock_payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import ClaimedJob, Transaction


class ReturnJobs:
    """Runs the jobs that deposits add for Payments."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    def note(self, claimed: ClaimedJob) -> None:
        """Count returned funds, or the reorg of a return, on the Payment.

        In another asset than the Payment's, it is only a deposit to the account.
        """
        authority = WorkerAuthority.of(claimed)
        outgoing = load_transfer(self._storage, authority.partition, claimed.job.subject)
        arguments = claimed.job.arguments
        amount, asset = int(arguments["amount"]), (arguments["chainId"], arguments["assetSymbol"])

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            payment_id = outgoing.owner_id
            if outgoing.owner_purpose == "deposit_return":  # no Payment is concerned
                return Decision(None)
            if outgoing.purpose == "refund":
                refund = tx.get(Refund, outgoing.owner_id)
                assert refund is not None
                payment_id = refund.payment_id
            payment = lock_payment(tx, payment_id)
            if asset != (str(payment.chain_id), payment.asset_symbol):
                return Decision(None)
            return lifecycle.note_return(payment, amount, now=self._clock.now()).as_decision()

        self._committer.commit(authority, decide, claimed=claimed)
