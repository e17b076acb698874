"""Signatures of contract wallets, deployed or not yet (ERC-1271, ERC-6492)."""

from __future__ import annotations

import hashlib

from payments_core.conformance.chain.harness import Harness

DIGEST = hashlib.sha256(b"a message").digest()
OTHER_DIGEST = hashlib.sha256(b"another message").digest()


class SignatureChecks(Harness):
    """A contract decides about its own signatures, and its absence is no answer."""

    def test_a_contract_accepts_its_signature_of_that_digest_alone(self) -> None:
        self.require_capability("can_hold_contracts")
        chain, wallet = self.open(), self.new_contract_wallet()
        wallet.deploy()
        signature = wallet.sign(DIGEST)
        assert chain.check_contract_signature(wallet.address, DIGEST, signature) is True
        for digest, other in ((OTHER_DIGEST, signature), (DIGEST, bytes(len(signature)))):
            answer = chain.check_contract_signature(wallet.address, digest, other)
            assert answer is False, "a contract must refuse what it did not sign"

    def test_an_address_without_a_contract_does_not_answer(self) -> None:
        self.require_capability("can_hold_contracts")
        chain, wallet = self.open(), self.new_contract_wallet()
        answer = chain.check_contract_signature(wallet.address, DIGEST, wallet.sign(DIGEST))
        assert answer is None, "where no contract is, nobody says yes or no"

    def test_a_wrapped_signature_is_answered_before_the_contract_is_deployed(self) -> None:
        self.require_capability("can_hold_contracts")
        chain, wallet = self.open(), self.new_contract_wallet()
        signature = wallet.sign(DIGEST)
        wrapped = wallet.wrap(signature)
        assert chain.check_contract_signature(wallet.address, DIGEST, wrapped) is True
        refused = chain.check_contract_signature(wallet.address, OTHER_DIGEST, wrapped)
        assert refused is False, "the contract that would be deployed must decide"
        after = chain.check_contract_signature(wallet.address, DIGEST, signature)
        assert after is None, "a query must deploy nothing"

    def test_a_wrapped_signature_is_answered_by_a_deployed_contract(self) -> None:
        self.require_capability("can_hold_contracts")
        chain, wallet = self.open(), self.new_contract_wallet()
        wrapped = wallet.wrap(wallet.sign(DIGEST))
        wallet.deploy()
        assert chain.check_contract_signature(wallet.address, DIGEST, wrapped) is True
        assert chain.check_contract_signature(wallet.address, OTHER_DIGEST, wrapped) is False

    def test_the_deployment_of_another_contract_proves_nothing(self) -> None:
        self.require_capability("can_hold_contracts")
        chain, wallet, other = self.open(), self.new_contract_wallet(), self.new_contract_wallet()
        wrapped = other.wrap(other.sign(DIGEST))
        answer = chain.check_contract_signature(wallet.address, DIGEST, wrapped)
        assert answer is None, "only the contract at the address may answer"
        wallet.deploy()
        answer = chain.check_contract_signature(wallet.address, DIGEST, wrapped)
        assert answer is False, "only the contract at the address may answer"
