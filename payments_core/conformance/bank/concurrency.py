"""Concurrent calls: one key, one payout."""

from __future__ import annotations

import threading

from payments_core.banks.port import Bank, PayoutOrder
from payments_core.conformance.bank.harness import Harness

THREADS = 8
ROUNDS = 5


class ConcurrencyChecks(Harness):
    """Callers that do not know of each other."""

    def test_threads_with_one_key_make_one_payout(self) -> None:
        for _ in range(ROUNDS):
            order = self.new_order()
            bank = self.open()
            references = self._submit_from_threads([bank] * THREADS, order)
            assert len(references) == 1, f"one key has the payouts {sorted(references)}"
            self.require_one_payout(order.key)

    def test_handles_with_one_key_make_one_payout(self) -> None:
        for _ in range(ROUNDS):
            order = self.new_order()
            handles = [self.open() for _ in range(THREADS)]
            references = self._submit_from_threads(handles, order)
            assert len(references) == 1, f"one key has the payouts {sorted(references)}"
            self.require_one_payout(order.key)

    def _submit_from_threads(self, banks: list[Bank], order: PayoutOrder) -> set[str]:
        """The references that the threads received."""
        barrier = threading.Barrier(len(banks))
        references: set[str] = set()
        faults: list[BaseException] = []

        def run(bank: Bank) -> None:
            try:
                barrier.wait(self.hang_timeout_s)
                references.add(bank.submit(order).reference)
            except Exception as error:
                faults.append(error)

        threads = [threading.Thread(target=run, args=(bank,), daemon=True) for bank in banks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.hang_timeout_s)
        assert not any(thread.is_alive() for thread in threads), "a thread hangs in submit"
        assert not faults, f"submit must answer each thread: {faults[0]!r}"
        return references
