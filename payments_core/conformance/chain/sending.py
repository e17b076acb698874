"""Our transactions: signed before they are sent, and sent as often as necessary."""

from __future__ import annotations

from collections.abc import Callable

from payments_core.chains.port import AddressSpec, ChainUnavailable
from payments_core.conformance.chain.harness import AMOUNT, Harness
from payments_core.evolve import evolve

NOT_THE_SENDER = (
    "a transaction of an environment must be counted for its sender, which is"
    ' derive(AddressSpec(environment_id, "operator", "operator"))'
)


class SendingChecks(Harness):
    """Money moves once, even if calls are repeated."""

    def test_signing_sends_nothing(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        self.send_external_transfer(
            self.token, self.vault_contract(chain, environment).address, AMOUNT
        )
        signed = chain.prepare(self.funding_intent(chain, environment, AMOUNT), 0)
        self.make_final()
        assert chain.transaction(signed.hash) is None, "signing must not send the transaction"
        assert signed.raw

    def test_what_is_sent_is_found_by_its_hash_and_moves_the_amount(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        vault = self.vault_contract(chain, environment).address
        self.send_external_transfer(self.token, vault, AMOUNT)
        intent = self.funding_intent(chain, environment, AMOUNT - 1)
        signed = chain.prepare(intent, 0)
        self.send_and_mine(chain, signed)
        view, _ = self.require_in_block(chain, signed.hash)
        assert view.succeeded
        (log,) = [log for log in view.logs if log.recipient == intent.recipient]
        assert (log.token_address, log.amount_atomic) == (self.token, AMOUNT - 1)
        assert self.read_final_balance(chain, intent.recipient) == AMOUNT - 1
        assert self.read_final_balance(chain, vault) == 1

    def test_sent_again_it_moves_nothing_more(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        self.send_external_transfer(
            self.token, self.vault_contract(chain, environment).address, 3 * AMOUNT
        )
        intent = self.funding_intent(chain, environment, AMOUNT)
        signed = chain.prepare(intent, 0)
        self.send_and_mine(chain, signed)
        self.send_and_mine(chain, signed)
        self.send_and_mine(self.open(), signed)  # as another process, from the stored bytes
        assert self.read_final_balance(chain, intent.recipient) == AMOUNT

    def test_a_nonce_is_used_once(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        self.send_external_transfer(
            self.token, self.vault_contract(chain, environment).address, 3 * AMOUNT
        )
        one = self.funding_intent(chain, environment, AMOUNT, "payment_a")
        two = self.funding_intent(chain, environment, AMOUNT, "payment_b")
        self.send_and_mine(chain, chain.prepare(one, 0))
        late = chain.prepare(two, 0)
        self._send_if_accepted(lambda: self.send_and_mine(chain, late))
        assert self.read_final_balance(chain, one.recipient) == AMOUNT
        assert self.read_final_balance(chain, two.recipient) == 0, (
            "two transactions must not use one nonce"
        )

    def test_nonces_are_used_in_order(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        self.send_external_transfer(
            self.token, self.vault_contract(chain, environment).address, 3 * AMOUNT
        )
        one = self.funding_intent(chain, environment, AMOUNT, "payment_a")
        two = self.funding_intent(chain, environment, AMOUNT, "payment_b")
        first, second = chain.prepare(one, 0), chain.prepare(two, 1)
        self._send_if_accepted(lambda: self.send_and_mine(chain, second))
        known = chain.transaction(second.hash)
        assert known is None or known.block is None, (
            "a nonce must not be used before the previous one"
        )
        self.send_and_mine(chain, first)
        self._send_if_accepted(lambda: self.send_and_mine(chain, second))
        self.require_in_block(chain, first.hash)
        self.require_in_block(chain, second.hash)
        assert self.read_final_balance(chain, two.recipient) == AMOUNT

    def test_an_overdraft_fails_on_the_chain_and_uses_its_nonce(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        self.send_external_transfer(
            self.token, self.vault_contract(chain, environment).address, AMOUNT
        )
        intent = self.funding_intent(chain, environment, AMOUNT + 1)
        signed = chain.prepare(intent, 0)
        self.send_and_mine(chain, signed)
        view, _ = self.require_in_block(chain, signed.hash)
        assert not view.succeeded
        less = evolve(intent, id="out_less", amount_atomic=AMOUNT)
        self.send_and_mine(chain, chain.prepare(less, 1))
        assert self.read_final_balance(chain, intent.recipient) == AMOUNT

    def test_a_noop_uses_its_nonce_and_moves_nothing(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        vault = self.vault_contract(chain, environment).address
        self.send_external_transfer(self.token, vault, AMOUNT)
        fill = chain.prepare_noop(environment, 0)
        self.send_and_mine(chain, fill)
        self.require_in_block(chain, fill.hash)
        assert self.read_final_balance(chain, vault) == AMOUNT
        intent = self.funding_intent(chain, environment, AMOUNT)
        self.send_and_mine(chain, chain.prepare(intent, 1))
        assert self.read_final_balance(chain, intent.recipient) == AMOUNT

    def test_final_nonce_counts_what_is_final_and_no_more(self) -> None:
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        sender = chain.derive(AddressSpec(environment, "operator", "operator"))
        assert chain.final_nonce(sender) == 0, "a new environment must have used no nonce"
        signed = chain.prepare_noop(environment, 0)
        self.send_and_mine(chain, signed)
        early, heads = chain.final_nonce(sender), chain.heads()
        _, block = self.require_in_block(chain, signed.hash)
        assert early == 0 or block.number <= heads.final.number, (
            "a nonce must not count as final before its block is"
        )
        self.make_final()
        assert chain.final_nonce(sender) == 1, NOT_THE_SENDER

    def test_pending_nonce_counts_what_is_not_final(self) -> None:
        """A nonce ahead shows a storage that is older than the chain: nothing is paid twice."""
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        sender = chain.derive(AddressSpec(environment, "operator", "operator"))
        assert chain.pending_nonce(sender) == 0
        self.send_and_mine(chain, chain.prepare_noop(environment, 0))
        assert chain.pending_nonce(sender) == 1, NOT_THE_SENDER
        self.make_final()
        assert chain.pending_nonce(sender) == 1

    def test_the_payer_is_the_sender_that_the_logs_show(self) -> None:
        """By its sender, a transfer whose bytes were lost is found again."""
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        vault = self.vault_contract(chain, environment)
        self.send_external_transfer(self.token, vault.address, 2 * AMOUNT)
        fund = self.funding_intent(chain, environment, AMOUNT)
        somebody = chain.derive(AddressSpec(environment, "deposit", "acct_somebody"))
        pay_out = evolve(fund, id="out_paid", recipient=somebody, escrow_of=None)
        for nonce, intent in enumerate((fund, pay_out)):
            signed = chain.prepare(intent, nonce)
            self.send_and_mine(chain, signed)
            view, _ = self.require_in_block(chain, signed.hash)
            [sender] = [log.sender for log in view.logs if log.recipient == intent.recipient]
            assert chain.find_payer(intent) == sender, "find_payer names another sender"

    def test_what_is_not_stuck_may_be_bumped_all_the_same(self) -> None:
        """The bump takes the same slot, or the chain has none."""
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        self.send_external_transfer(
            self.token, self.vault_contract(chain, environment).address, 3 * AMOUNT
        )
        intent = self.funding_intent(chain, environment, AMOUNT)
        signed = chain.prepare(intent, 0)
        bumped = chain.bump(environment, signed)
        if bumped is not None:
            assert bumped.hash != signed.hash
            self.send_and_mine(chain, bumped)
            self._send_if_accepted(lambda: self.send_and_mine(chain, signed))
            assert self.read_final_balance(chain, intent.recipient) == AMOUNT, (
                "a replacement must not pay in addition to the first transaction"
            )

    def _send_if_accepted(self, call: Callable[[], object]) -> None:
        """A chain's answer to bytes proves nothing; the call must only not fail."""
        try:
            call()
        except ChainUnavailable:
            self.mine_blocks(1)
