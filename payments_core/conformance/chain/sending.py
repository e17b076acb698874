"""Transactions of ours: signed before they are sent, and sent as often as need be."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from payments_core.chains.port import AddressSpec, ChainUnavailable
from payments_core.conformance.chain.setting import AMOUNT, Setting


class SendingChecks(Setting):
    """Whatever is done again, money moves once."""

    def test_signing_sends_nothing(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        self.give(self.token, self.vault(chain, environment).address, AMOUNT)
        signed = chain.prepare(self.funding(chain, environment, AMOUNT), 0)
        self.make_final()
        assert chain.transaction(signed.hash) is None, "what was signed was sent"
        assert signed.raw

    def test_what_is_sent_is_found_by_its_hash_and_moves_the_amount(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        vault = self.vault(chain, environment).address
        self.give(self.token, vault, AMOUNT)
        intent = self.funding(chain, environment, AMOUNT - 1)
        signed = chain.prepare(intent, 0)
        self.send(chain, signed)
        view, _ = self.in_block(chain, signed.hash)
        assert view.succeeded
        (log,) = [log for log in view.logs if log.recipient == intent.recipient]
        assert (log.token_address, log.amount_atomic) == (self.token, AMOUNT - 1)
        assert self.newest(chain, intent.recipient) == AMOUNT - 1
        assert self.newest(chain, vault) == 1

    def test_sent_again_it_moves_nothing_more(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        self.give(self.token, self.vault(chain, environment).address, 3 * AMOUNT)
        intent = self.funding(chain, environment, AMOUNT)
        signed = chain.prepare(intent, 0)
        self.send(chain, signed)
        self.send(chain, signed)
        self.send(self.open(), signed)  # as another process, from the stored bytes
        assert self.newest(chain, intent.recipient) == AMOUNT

    def test_a_slot_is_taken_once(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        self.give(self.token, self.vault(chain, environment).address, 3 * AMOUNT)
        one = self.funding(chain, environment, AMOUNT, "payment_a")
        two = self.funding(chain, environment, AMOUNT, "payment_b")
        self.send(chain, chain.prepare(one, 0))
        late = chain.prepare(two, 0)
        self._try(lambda: self.send(chain, late))
        assert self.newest(chain, one.recipient) == AMOUNT
        assert self.newest(chain, two.recipient) == 0, "two transactions took one slot"

    def test_slots_are_taken_in_their_order(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        self.give(self.token, self.vault(chain, environment).address, 3 * AMOUNT)
        one = self.funding(chain, environment, AMOUNT, "payment_a")
        two = self.funding(chain, environment, AMOUNT, "payment_b")
        first, second = chain.prepare(one, 0), chain.prepare(two, 1)
        self._try(lambda: self.send(chain, second))
        known = chain.transaction(second.hash)
        assert known is None or known.block is None, "a slot was taken before the one before it"
        self.send(chain, first)
        self._try(lambda: self.send(chain, second))
        self.in_block(chain, first.hash)
        self.in_block(chain, second.hash)
        assert self.newest(chain, two.recipient) == AMOUNT

    def test_more_than_there_is_fails_on_the_chain_and_takes_its_slot(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        self.give(self.token, self.vault(chain, environment).address, AMOUNT)
        intent = self.funding(chain, environment, AMOUNT + 1)
        signed = chain.prepare(intent, 0)
        self.send(chain, signed)
        view, _ = self.in_block(chain, signed.hash)
        assert not view.succeeded
        less = attrs.evolve(intent, id="out_less", amount_atomic=AMOUNT)
        self.send(chain, chain.prepare(less, 1))
        assert self.newest(chain, intent.recipient) == AMOUNT

    def test_a_fill_takes_its_slot_and_moves_nothing(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        vault = self.vault(chain, environment).address
        self.give(self.token, vault, AMOUNT)
        fill = chain.fill(environment, 0)
        self.send(chain, fill)
        self.in_block(chain, fill.hash)
        assert self.newest(chain, vault) == AMOUNT
        intent = self.funding(chain, environment, AMOUNT)
        self.send(chain, chain.prepare(intent, 1))
        assert self.newest(chain, intent.recipient) == AMOUNT

    def test_slots_used_counts_what_is_final_and_no_more(self) -> None:
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        sender = chain.derive(AddressSpec(environment, "operator", "operator"))
        assert chain.slots_used(sender) == 0
        self.send(chain, chain.fill(environment, 0))
        assert chain.slots_used(sender) <= 1
        self.make_final()
        assert chain.slots_used(sender) <= 1

    def test_what_is_not_stuck_may_be_bumped_all_the_same(self) -> None:
        """The bump takes the same slot, or the chain has none."""
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        self.give(self.token, self.vault(chain, environment).address, 3 * AMOUNT)
        intent = self.funding(chain, environment, AMOUNT)
        signed = chain.prepare(intent, 0)
        bumped = chain.bump(environment, signed)
        if bumped is not None:
            assert bumped.hash != signed.hash
            self.send(chain, bumped)
            self._try(lambda: self.send(chain, signed))
            assert self.newest(chain, intent.recipient) == AMOUNT, "a bump paid beside the first"

    def _try(self, call: Callable[[], object]) -> None:
        """What a chain says to bytes proves nothing; only that it did not break is asked."""
        try:
            call()
        except ChainUnavailable:
            self.grow(1)
