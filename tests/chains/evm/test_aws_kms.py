"""Keys in AWS KMS, which moto's server plays: as a process, over HTTP, by the real client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_core.chains.evm.aws_kms import ATTEMPTS
from payments_core.chains.evm.signers import RemoteSigner
from payments_core.chains.loader import open_signer
from payments_core.chains.port import ChainUnavailable, SignerRefused, WrongSignature
from payments_core.chains.rotated_signer import OperatorSigner, RotatedSigner, find_signer
from payments_core.chains.signatures import HALF_ORDER, recover_signer_from_bytes
from payments_core.conformance.signer import SignerConformance
from tests.servers.kms import CREDENTIALS, Kms

ENV, OTHER = "env_-P23J5k-D8QQDDBxu8rHlL0O", "env_two"
DIGEST = bytes(range(32))


@pytest.fixture(scope="module")
def kms() -> Iterator[Kms]:
    server = Kms("digests")
    for name in (ENV, OTHER):
        server.create_key(f"payments/{name}")
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, kms: Kms) -> Iterator[None]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    kms.set_fault()
    yield
    kms.set_fault()


class TestAwsKms(SignerConformance):
    environment_ids = (ENV, OTHER)
    secrets = tuple(CREDENTIALS.values())
    can_fail = True

    @pytest.fixture(autouse=True)
    def _place(self, kms: Kms) -> None:
        self.kms = kms

    def open(self) -> OperatorSigner:
        return opened(self.kms)

    def fail(self) -> None:
        self.kms.set_fault(code="KMSInternalException", status=500, times=100)

    def restore(self) -> None:
        self.kms.set_fault()


def opened(kms: Kms, prefix: str = "payments", *more: str) -> RemoteSigner:
    signer = open_signer(kms.signer_url(prefix, *more))
    assert isinstance(signer, RemoteSigner)
    return signer


def test_kms_makes_high_s_too_and_each_is_lowered(kms: Kms) -> None:
    signer = opened(kms)
    pairs = [signer.keys.sign(ENV, DIGEST) for _ in range(24)]
    high = [int.from_bytes(pair[32:], "big") > HALF_ORDER for pair in pairs]
    assert any(high) and not all(high)
    for _ in range(24):
        found = recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST))
        assert found == signer.address(ENV)


def test_the_address_is_asked_for_once_and_a_pinned_one_never(kms: Kms) -> None:
    signer = opened(kms)
    kms.set_fault()
    address = signer.address(ENV)
    assert signer.address(ENV) == address
    assert kms.set_fault() == 1
    pinned = opened(kms, "payments", f"{ENV}={address.lower()}")
    assert pinned.address(ENV) == address
    assert kms.set_fault() == 0
    assert recover_signer_from_bytes(DIGEST, pinned.sign(ENV, DIGEST)) == address


def test_throttled_calls_are_repeated_a_few_times(kms: Kms) -> None:
    signer = opened(kms)
    address = signer.address(ENV)
    kms.set_fault(code="ThrottlingException", status=400, times=ATTEMPTS - 1)
    assert recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST)) == address
    assert kms.set_fault(code="ThrottlingException", status=400, times=100) == ATTEMPTS
    with pytest.raises(ChainUnavailable, match=f"alias/payments/{ENV} now: ThrottlingException"):
        signer.sign(ENV, DIGEST)
    assert kms.set_fault() == ATTEMPTS


def test_a_key_that_kms_does_not_let_us_use_is_refused_at_once(kms: Kms) -> None:
    signer = opened(kms)
    signer.address(ENV)
    for code in ("AccessDeniedException", "DisabledException", "KMSInvalidStateException"):
        kms.set_fault(code=code, status=400, times=1)
        with pytest.raises(SignerRefused, match=f"AWS KMS refuses alias/payments/{ENV}: {code}"):
            signer.sign(ENV, DIGEST)
        assert kms.set_fault() == 1


def test_a_service_that_is_gone_is_unavailable() -> None:
    other = Kms("digests")
    other.create_key(f"payments/{ENV}")
    signer = opened(other)
    signer.address(ENV)
    other.stop()
    with pytest.raises(ChainUnavailable, match="does not answer: EndpointConnectionError"):
        signer.sign(ENV, DIGEST)


def test_a_key_of_another_curve_is_refused(kms: Kms) -> None:
    kms.create_key("curves/env_a", "ECC_NIST_P256")
    with pytest.raises(SignerRefused, match="alias/curves/env_a is not an ECC_SECG_P256K1 key"):
        opened(kms, "curves").address("env_a")


def test_an_alias_that_was_given_to_another_key_signs_nothing(kms: Kms) -> None:
    kms.create_key("moved/env_a")
    signer = opened(kms, "moved")
    address = signer.address("env_a")
    new = kms.create_key("elsewhere/env_a")
    kms.client.update_alias(AliasName="alias/moved/env_a", TargetKeyId=new)
    with pytest.raises(WrongSignature, match="signed with another key or signed other data"):
        signer.sign("env_a", DIGEST)
    with pytest.raises(WrongSignature):
        opened(kms, "moved", f"env_a={address}").sign("env_a", DIGEST)


def test_a_service_that_hashes_the_digest_is_found() -> None:
    hashing = Kms()  # moto as it is
    try:
        hashing.create_key(f"payments/{ENV}")
        signer = opened(hashing)
        with pytest.raises(WrongSignature, match="signed other data"):
            signer.sign(ENV, DIGEST)
    finally:
        hashing.stop()


def test_without_credentials_it_is_refused(kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(SignerRefused, match="there are no AWS credentials for KMS"):
        opened(kms).sign(ENV, DIGEST)


def test_a_former_prefix_finishes_what_it_signed(kms: Kms) -> None:
    kms.create_key(f"payments-2027/{ENV}")
    old, new = opened(kms), opened(kms, "payments-2027")
    rotated = RotatedSigner(new, (old,))
    assert rotated.address(ENV) == new.address(ENV) != old.address(ENV)
    found = find_signer(rotated, ENV, old.address(ENV))
    assert recover_signer_from_bytes(DIGEST, found.sign(ENV, DIGEST)) == old.address(ENV)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("aws-kms:payments", "expected aws-kms://REGION/PREFIX"),
        ("aws-kms://eu-west-1", "expected aws-kms://REGION/PREFIX"),
        ("aws-kms://eu-west-1/a/", "expected aws-kms://REGION/PREFIX"),
        ("aws-kms://key:secret@eu-west-1/a", "expected aws-kms://REGION/PREFIX"),
        ("aws-kms://eu-west-1/aws/a", "belongs to AWS"),
        ("aws-kms://eu-west-1/a?endpoint=http://u:secret@h", "without a password"),
        ("aws-kms://eu-west-1/a?endpoint=secret", "without a password"),
        ("aws-kms://eu-west-1/a?secret=1", "unknown parameter"),
        ("aws-kms://eu-west-1/a?env_a=secret", "the address of env_a"),
        ("aws-kms://eu-west-1/a?endpoint=http://h&endpoint=http://h", "given twice"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_secret(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        open_signer(url)
    assert "secret" not in str(refused.value)
