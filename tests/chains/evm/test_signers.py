"""Signers: the key file and what may be wrong with it, and key services that are not believed."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import attrs
import pytest
from btclib_libsecp256k1 import dsa, keys
from Crypto.Hash import SHA256
from Crypto.Protocol.KDF import HKDF
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.evm import signers
from payments_core.chains.evm.signers import LocalSigner, RemoteSigner, Signer, from_der
from payments_core.chains.port import ChainUnavailable, SignerRefused
from payments_core.chains.signatures import HALF_ORDER, ORDER, recover_signer_from_bytes
from payments_core.conformance.signer import SignerConformance
from tests.signers import sign_digest

ENV, OTHER_ENV = "env_one", "env_two"
SECRET = bytes(range(1, 33))
DIGESTS = st.binary(min_size=32, max_size=32)
DIGEST = bytes(range(32))
LOCAL = LocalSigner(SECRET)
ENVIRONMENTS = st.text(st.characters(exclude_categories=["Cs"]))


def key_of(environment_id: str, secret: bytes = SECRET) -> bytes:
    """The key, by another library's HKDF and as the page on keys describes it."""
    info = b"payments-core/operator key/" + environment_id.encode()
    expanded = HKDF(secret, 48, b"", SHA256, context=info)
    assert isinstance(expanded, bytes)
    return (int.from_bytes(expanded, "big") % (ORDER - 1) + 1).to_bytes(32, "big")


def written(path: Path, content: bytes = SECRET, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


class TestKeyFile(SignerConformance):
    unknown_id = None  # it derives a key for every environment
    secrets = (SECRET.hex(), repr(SECRET))

    def open(self) -> Signer:
        return LocalSigner(SECRET)


# --- Any signer -----------------------------------------------------------------------------------


@given(ENVIRONMENTS, DIGESTS)
def test_a_local_signature_is_low_and_by_the_address(environment_id: str, digest: bytes) -> None:
    signature = LOCAL.sign(environment_id, digest)
    assert len(signature) == 65
    assert signature[64] in (0, 1)
    assert int.from_bytes(signature[32:64], "big") <= HALF_ORDER
    assert recover_signer_from_bytes(digest, signature) == LOCAL.address(environment_id)
    assert LOCAL.sign(environment_id, digest) == signature


@given(ENVIRONMENTS)
def test_an_environments_key_is_what_another_library_derives(environment_id: str) -> None:
    key = key_of(environment_id)
    assert LOCAL.address(environment_id) == Account.from_key(key).address


@given(ENVIRONMENTS, ENVIRONMENTS)
def test_environments_have_keys_of_their_own(first: str, second: str) -> None:
    assert (LOCAL.address(first) == LOCAL.address(second)) == (first == second)


@pytest.mark.parametrize("digest", [b"", bytes(31), bytes(33), bytes(64)])
def test_only_digests_are_signed(digest: bytes) -> None:
    remote = RemoteSigner(Service(key_of(ENV)), {ENV: LOCAL.address(ENV)})
    for signer in (LOCAL, remote):
        with pytest.raises(SignerRefused, match="32 bytes"):
            signer.sign(ENV, digest)


@pytest.mark.parametrize("secret", [b"", SECRET[:31], SECRET + b"!"])
def test_a_secret_of_another_length_is_refused(secret: bytes) -> None:
    with pytest.raises(SignerRefused, match="32 bytes"):
        LocalSigner(secret)


# --- The key file ---------------------------------------------------------------------------------


def test_a_key_file_is_made_for_its_owner_alone_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "operator.key"
    made = LocalSigner.open(path)
    found = path.stat()
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_size == 32
    assert LocalSigner.open(path).address(ENV) == made.address(ENV)
    assert [each.name for each in tmp_path.iterdir()] == ["operator.key"]


def test_its_bytes_are_the_systems_randomness(tmp_path: Path) -> None:
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return SECRET[:count]

    path = tmp_path / "operator.key"
    assert LocalSigner.open(path, entropy=entropy).address(ENV) == LOCAL.address(ENV)
    assert path.read_bytes() == SECRET
    assert asked[0] == 32
    other = LocalSigner.open(tmp_path / "other.key")
    assert other.address(ENV) != LOCAL.address(ENV)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o601, 0o644, 0o777])
def test_a_file_that_others_have_any_right_to_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "operator.key", mode=mode)
    with pytest.raises(SignerRefused, match="chmod 600"):
        LocalSigner.open(path)


@pytest.mark.parametrize("content", [b"", SECRET[:31], SECRET + b"\n", SECRET.hex().encode()])
def test_a_file_that_holds_no_secret_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = written(tmp_path / "operator.key", content)
    with pytest.raises(SignerRefused, match="must contain 32 bytes"):
        LocalSigner.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_not_a_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "operator.key"
    make(path)
    with pytest.raises(SignerRefused, match="is not a file"):
        LocalSigner.open(path)


def test_a_file_of_somebody_elses_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "operator.key")
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12_345, -1)
    with pytest.raises(SignerRefused, match="belongs to another user"):
        LocalSigner.open(path)


def test_a_folder_that_is_not_there_is_a_refusal_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(SignerRefused, match="No such file"):
        LocalSigner.open(tmp_path / "nowhere" / "operator.key")


def test_of_many_that_make_it_at_once_all_have_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "operator.key"
    addresses: list[str] = []
    begin = threading.Barrier(8)

    def open_it() -> None:
        begin.wait()
        addresses.append(LocalSigner.open(path).address(ENV))

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert addresses == [LocalSigner.open(path).address(ENV)] * 8
    assert [each.name for each in tmp_path.iterdir()] == ["operator.key"]


def test_nothing_reveals_the_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = written(tmp_path / "operator.key")
    signer = LocalSigner.open(path)
    signer.sign(ENV, DIGEST)
    reported = [repr(signer), str(signer), f"{signer}", caplog.text]
    with pytest.raises(SignerRefused) as refused:
        signer.sign(ENV, b"")
    reported.append(repr(refused.value))
    with pytest.raises(SignerRefused) as refused:
        LocalSigner.open(written(tmp_path / "long.key", SECRET + b"!"))
    reported.append(f"{refused.value!r} {refused.value.__cause__!r}")
    for secret in (SECRET, key_of(ENV)):
        for form in (secret.hex(), repr(secret), str(int.from_bytes(secret, "big"))):
            assert not any(form in text for text in reported)


# --- A key service --------------------------------------------------------------------------------


@attrs.define
class Service:
    """A key service that anybody on its network may ask for signatures; `corrupt` changes them."""

    key: bytes
    corrupt: Callable[[bytes], bytes] = lambda pair: pair
    asked: list[tuple[str, bytes]] = attrs.field(factory=list)

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        self.asked.append((environment_id, digest))
        return self.corrupt(sign_digest(self.key, digest)[:64])


def remote(corrupt: Callable[[bytes], bytes] = lambda pair: pair) -> RemoteSigner:
    return RemoteSigner(Service(key_of(ENV), corrupt), {ENV: LOCAL.address(ENV).lower()})


def with_high_s(pair: bytes) -> bytes:
    return pair[:32] + (ORDER - int.from_bytes(pair[32:], "big")).to_bytes(32, "big")


@given(DIGESTS, st.booleans())
def test_a_services_signature_is_completed_whichever_s_it_made(digest: bytes, high: bool) -> None:
    signer = remote(with_high_s if high else lambda pair: pair)
    assert signer.sign(ENV, digest) == LOCAL.sign(ENV, digest)


@given(DIGESTS, st.booleans())
def test_a_signature_in_der_is_the_same(digest: bytes, high: bool) -> None:
    def through_der(pair: bytes) -> bytes:
        made = with_high_s(pair) if high else pair
        return from_der(dsa.to_der(made))

    assert remote(through_der).sign(ENV, digest) == LOCAL.sign(ENV, digest)


@pytest.mark.parametrize("der", [b"", b"\x30\x00", bytes(70), b"\x30\x06\x02\x01\x01\x02\x01"])
def test_what_is_not_der_is_refused(der: bytes) -> None:
    with pytest.raises(SignerRefused, match="DER"):
        from_der(der)


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda pair: sign_digest(key_of(OTHER_ENV), DIGEST)[:64],
        lambda pair: sign_digest(key_of(ENV), bytes(32))[:64],
        lambda pair: sign_digest(key_of(ENV), sha256(DIGEST).digest())[:64],  # hashed once more
        lambda pair: pair[32:] + pair[:32],
        lambda pair: bytes(64),
        lambda pair: b"\xff" * 64,
        lambda pair: pair[:32] + bytes(32),
        lambda pair: pair[:32] + ORDER.to_bytes(32, "big"),
        lambda pair: pair + b"\0",
        lambda pair: pair[:63],
        lambda pair: b"",
    ],
)
def test_whatever_is_not_the_operators_signature_of_the_digest_is_refused(
    corrupt: Callable[[bytes], bytes],
) -> None:
    with pytest.raises(SignerRefused, match="key service"):
        remote(corrupt).sign(ENV, DIGEST)


def test_a_service_is_asked_about_configured_environments_alone() -> None:
    service = Service(key_of(OTHER_ENV))
    signer = RemoteSigner(service, {ENV: LOCAL.address(ENV)})
    for ask in (signer.address, lambda environment_id: signer.sign(environment_id, DIGEST)):
        with pytest.raises(SignerRefused, match="configured"):
            ask(OTHER_ENV)
    assert not service.asked


def test_a_service_that_does_not_answer_is_trouble_to_wait_for() -> None:
    def silent(pair: bytes) -> bytes:
        raise ChainUnavailable("the key service does not answer")

    with pytest.raises(ChainUnavailable):
        remote(silent).sign(ENV, DIGEST)


class Naming:
    """A key service that is asked for its public keys, and may be away."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_away = False

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        return sign_digest(key_of(environment_id), digest)[:64]

    def public_key(self, environment_id: str) -> bytes:
        self.asked += 1
        if self.is_away:
            raise ChainUnavailable("away")
        return keys.pubkey_from_prvkey(key_of(environment_id), compressed=False)


def test_a_service_names_the_addresses_that_are_not_configured() -> None:
    service = Naming()
    signer = RemoteSigner(service, {ENV: LOCAL.address(ENV)})
    assert signer.address(ENV) == LOCAL.address(ENV)
    assert not service.asked
    for _ in range(2):
        assert signer.address(OTHER_ENV) == LOCAL.address(OTHER_ENV)
        assert signer.sign(OTHER_ENV, DIGEST) == LOCAL.sign(OTHER_ENV, DIGEST)
    assert service.asked == 1


def test_requests_do_not_wait_one_after_the_other_for_a_service_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Naming()
    service.is_away = True
    signer = RemoteSigner(service, {})
    for _ in range(3):
        with pytest.raises(ChainUnavailable):
            signer.address(ENV)
    assert service.asked == 1
    service.is_away = False
    monkeypatch.setattr(signers.time, "monotonic", lambda: signer._asked.silent_until_s)
    assert signer.address(ENV) == LOCAL.address(ENV)


def test_a_services_client_is_in_no_repr() -> None:
    assert "Service" not in repr(remote())


@pytest.mark.parametrize("signer", [LOCAL, remote()])
def test_both_are_signers(signer: Signer) -> None:
    assert signer.address(ENV) == LOCAL.address(ENV)
    assert recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST)) == LOCAL.address(ENV)
