"""The promises of every signer: one address for each environment, and signatures by it alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from payments_core.addresses import normalize_address
from payments_core.chains.rotated_signer import OperatorSigner
from payments_core.chains.signatures import (
    HALF_ORDER,
    SignatureError,
    recover_signer_from_bytes,
)
from payments_core.conformance.signer.harness import (
    Harness,
    require_refused,
    require_unavailable,
)

DIGESTS = 16
"""Half of the signatures of most key services have a high s, before it is lowered."""
THREADS = 8


class SignerChecks(Harness):
    """A signature is by the address, of the digest itself, in the one form that chains accept."""

    def test_an_address_has_its_checksum(self) -> None:
        address = self.open().address(self.environment_ids[0])
        found = normalize_address("evm", address)
        assert address == found, f"the address must have its checksum, but is {address}"

    def test_an_address_is_always_the_same(self) -> None:
        opened, environment_id = self.open(), self.environment_ids[0]
        found = {one.address(environment_id) for one in (opened, opened, self.open())}
        assert len(found) == 1, f"an environment has one address, not {sorted(found)}"

    def test_each_environment_has_its_own_address(self) -> None:
        opened = self.open()
        first, second = (opened.address(one) for one in self.environment_ids)
        assert first != second, "a key must not serve two environments"

    def test_a_signature_has_65_bytes_and_a_low_s(self) -> None:
        opened = self.open()
        for _ in range(DIGESTS):
            signature = opened.sign(self.environment_ids[0], self.new_digest())
            assert len(signature) == 65, f"65 bytes are expected, not {len(signature)}"
            assert signature[64] in (0, 1), f"the last byte must be 0 or 1, not {signature[64]}"
            s = int.from_bytes(signature[32:64], "big")
            assert s <= HALF_ORDER, "s must be low: chains refuse the other (EIP-2)"

    def test_a_signature_is_by_the_address(self) -> None:
        opened = self.open()
        for _ in range(DIGESTS):
            require_signed(opened, self.environment_ids[0], self.new_digest())

    def test_the_digests_of_extreme_values_are_signed(self) -> None:
        opened = self.open()
        for digest in (b"\0" * 31 + b"\1", b"\xff" * 32):
            require_signed(opened, self.environment_ids[0], digest)

    def test_each_environment_signs_with_its_own_key(self) -> None:
        opened = self.open()
        for environment_id in (*self.environment_ids, *self.environment_ids):
            require_signed(opened, environment_id, self.new_digest())

    def test_only_a_digest_of_32_bytes_is_signed(self) -> None:
        opened = self.open()
        for length in (0, 31, 33, 64):
            text = bytes(length)
            require_refused(
                lambda text=text: opened.sign(self.environment_ids[0], text),  # type: ignore[misc]
                f"the signature of {length} bytes",
            )

    def test_an_environment_without_a_key_is_refused(self) -> None:
        self.require_capability("unknown_id")
        opened, unknown = self.open(), str(self.unknown_id)
        require_refused(lambda: opened.address(unknown), "the address of no key")
        require_refused(lambda: opened.sign(unknown, self.new_digest()), "a signature by no key")

    def test_threads_get_the_signatures_of_their_digests(self) -> None:
        opened = self.open()

        def sign(number: int) -> None:
            environment_id = self.environment_ids[number % 2]
            require_signed(opened, environment_id, self.new_digest())

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(sign, range(4 * THREADS)))

    def test_a_signer_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        opened, (known, other) = self.open(), self.environment_ids
        address = opened.address(known)
        self.fail()
        require_unavailable(lambda: opened.sign(known, self.new_digest()), "a signature")
        assert opened.address(known) == address, "a known address must need no service"
        self.restore()
        for environment_id in (known, other):
            require_signed(opened, environment_id, self.new_digest())

    def test_nothing_shows_a_secret(self) -> None:
        self.require_capability("secrets")
        opened, environment_id = self.open(), self.environment_ids[0]
        texts = [repr(opened), str(opened)]
        refusal = require_refused(lambda: opened.sign(environment_id, b""), "no digest")
        texts += [str(refusal), repr(refusal)]
        if self.unknown_id is not None:
            unknown = self.unknown_id
            refusal = require_refused(lambda: opened.sign(unknown, self.new_digest()), "no key")
            texts += [str(refusal), repr(refusal)]
        if self.can_fail:
            self.fail()
            failure = require_unavailable(
                lambda: opened.sign(environment_id, self.new_digest()), "a signature"
            )
            self.restore()
            texts += [str(failure), repr(failure)]
        shown = [text for text in texts if any(secret in text for secret in self.secrets)]
        assert not shown, f"{len(shown)} of {len(texts)} texts contain a secret"


def require_signed(opened: OperatorSigner, environment_id: str, digest: bytes) -> None:
    """Require a signature of the digest by the environment's address."""
    expected = opened.address(environment_id)
    signature = opened.sign(environment_id, digest)
    try:
        found = recover_signer_from_bytes(digest, signature)
    except SignatureError as error:
        raise AssertionError(f"the signature {error}") from error
    assert found == expected, f"{expected} must have signed this digest, but {found} did"
