"""Addresses: one for each purpose, permanently."""

from __future__ import annotations

from itertools import product

from payments_core.addresses import normalize_address
from payments_core.chains.port import AddressKind, AddressSpec, ChainUnavailable
from payments_core.conformance.chain.harness import AMOUNT, Harness

ADDRESS_KINDS: tuple[AddressKind, ...] = ("vault", "escrow", "deposit")
NAMES = ("a", "b", "ab", "a/b", "", "A", "a ", "vault", "acct_-P23J5k", "x" * 200)


class AddressChecks(Harness):
    """Two purposes with one address would pay for one another."""

    def test_no_two_purposes_share_an_address(self) -> None:
        self.require_capability("can_send")
        chain = self.open()
        specs = [AddressSpec(*parts) for parts in product(NAMES, ADDRESS_KINDS, NAMES)]
        found = [chain.derive(spec) for spec in specs]
        assert len(set(found)) == len(specs), "two purposes must not share an address"

    def test_an_address_never_changes(self) -> None:
        self.require_capability("can_send")
        for kind in ADDRESS_KINDS:
            spec = AddressSpec("env_a", kind, "acct_a")
            before = self.open().derive(spec)
            self.mine_blocks(1)
            assert self.open().derive(spec) == before

    def test_an_address_needs_no_node(self) -> None:
        self.require_capability("can_send")
        self.require_capability("can_fail")
        chain = self.open()
        vault = self.vault_contract(chain, "env_a")
        self.fail()
        try:
            assert self.vault_contract(chain, "env_a") == vault
            assert chain.find_payer(self.funding_intent(chain, "env_a", AMOUNT))
        except ChainUnavailable:
            raise AssertionError("derive and find_payer must ask no node") from None
        finally:
            self.restore()

    def test_it_is_written_in_the_canonical_form(self) -> None:
        self.require_capability("can_send")
        chain = self.open()
        for kind in ADDRESS_KINDS:
            address = chain.derive(AddressSpec("env_a", kind, "acct_a"))
            assert normalize_address(chain.chain_type, address) == address

    def test_environments_have_senders_of_their_own(self) -> None:
        self.require_capability("can_send")
        chain = self.open()
        one, two = (
            chain.derive(AddressSpec(environment, "operator", "operator"))
            for environment in ("env_a", "env_b")
        )
        assert one != two
