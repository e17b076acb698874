"""Key ring, secrets and tokens: what opens, and all that does not."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.credentials.keyring import KeyRing, MasterKey, SealBroken, WeakKeyRing
from payments_core.credentials.secrets import PREFIXES, looks_like_secret, new_secret
from payments_core.credentials.tokens import (
    ACCESS_PREFIX,
    CLIENT_SESSION_PREFIX,
    Claims,
    TokenInvalid,
    Tokens,
)
from payments_core.entropy import system_entropy

OLD = KeyRing.generate(name="old")
NEW = KeyRing.generate(name="new")
RING = KeyRing.parse(OLD)
CLAIMS = Claims("env_1", "payment_abc", "2026-09-09", 1_790_000_000_000)

# The key ring


@settings(deadline=None)  # the first call loads libsodium
@given(st.binary(max_size=200), st.text(max_size=20), st.text(max_size=20))
def test_what_is_sealed_opens_for_its_purpose_and_context_alone(
    plain: bytes, purpose: str, context: str
) -> None:
    for sealed in (
        RING.seal(purpose, context, plain),
        RING.seal_repeatably(purpose, context, plain),
    ):
        assert RING.open(purpose, context, sealed) == plain
        for other in ((purpose + "x", context), (purpose, context + "x"), (context, purpose)):
            if other != (purpose, context):
                with pytest.raises(SealBroken):
                    RING.open(*other, sealed)


@given(st.text(max_size=9), st.binary(max_size=9), st.text(max_size=9), st.binary(max_size=9))
def test_the_repeatable_seal_repeats_for_the_same_input_alone(
    context: str, plain: bytes, other: str, more: bytes
) -> None:
    sealed = RING.seal_repeatably("p", context, plain)
    assert sealed == RING.seal_repeatably("p", context, plain)
    nonce = slice(len("old:"), len("old:") + 24)
    if (context, plain) != (other, more):
        assert sealed[nonce] != RING.seal_repeatably("p", other, more)[nonce]
    assert RING.seal("p", context, plain) != RING.seal("p", context, plain)


def test_every_changed_byte_breaks_a_seal() -> None:
    sealed = RING.seal("p", "c", b"plain")
    for place in range(len(sealed)):
        for bit in (1, 0x80):
            changed = bytearray(sealed)
            changed[place] ^= bit
            with pytest.raises(SealBroken):
                RING.open("p", "c", bytes(changed))
    for cut in range(len(sealed)):
        with pytest.raises(SealBroken):
            RING.open("p", "c", sealed[:cut])
    with pytest.raises(SealBroken):
        RING.open("p", "c", sealed + b"\0")


def test_a_rotated_ring_opens_the_old_and_seals_with_the_new() -> None:
    rotated = KeyRing.parse(f"{NEW}\n{OLD}")
    assert (rotated.current_id, RING.current_id) == ("new", "old")
    assert rotated.open("p", "c", RING.seal("p", "c", b"x")) == b"x"
    with pytest.raises(SealBroken):
        RING.open("p", "c", rotated.seal("p", "c", b"x"))
    assert RING.digest("p", "v") in rotated.digests("p", "v")
    assert rotated.digests("p", "v")[0] == rotated.digest("p", "v") != RING.digest("p", "v")
    assert rotated.tag_matches("p", b"m", RING.tag("p", b"m"))
    assert not RING.tag_matches("p", b"m", rotated.tag("p", b"m"))
    assert not RING.tag_matches("q", b"m", RING.tag("p", b"m"))
    assert not RING.tag_matches("p", b"n", RING.tag("p", b"m"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " , ",
        OLD.partition(":")[2],
        "k1",
        "k1:",
        "k1:not base64",
        "k1:%%%%",
        "k1:" + base64.b64encode(bytes(32)).decode(),
        "k1:" + base64.b64encode(b"\x01\x02" * 16).decode(),
        "k1:" + base64.b64encode(bytes(range(31))).decode(),
        "k1:" + base64.b64encode(bytes(range(33))).decode(),
        "K1:" + base64.b64encode(bytes(range(32))).decode(),
        "k-1:" + base64.b64encode(bytes(range(32))).decode(),
        "k" * 17 + ":" + base64.b64encode(bytes(range(32))).decode(),
        f"{OLD} {OLD}",
    ],
)
def test_a_weak_key_ring_is_refused(text: str) -> None:
    with pytest.raises(WeakKeyRing):
        KeyRing.parse(text)


def test_a_mistyped_key_ring_does_not_print_its_key() -> None:
    encoded = OLD.partition(":")[2]
    for text in (encoded, encoded + ":%", "k1:" + encoded[:-2], encoded.replace("=", ":%")):
        with pytest.raises(WeakKeyRing) as caught:
            KeyRing.parse(text)
        assert encoded[:8] not in str(caught.value)


def test_no_representation_shows_a_key() -> None:
    secret = base64.b64decode(OLD.partition(":")[2])
    for shown in (repr(RING), str(RING), repr(MasterKey("k1", secret))):
        assert repr(secret)[2:10] not in shown
        assert OLD.partition(":")[2][:8] not in shown
    assert repr(RING) == "KeyRing(['old'])"


# Secrets


@pytest.mark.parametrize("kind", PREFIXES)
@pytest.mark.parametrize("mode", ["sandbox", "production"])
def test_a_secret_says_its_kind_and_mode_and_holds_256_random_bits(kind: str, mode: str) -> None:
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return system_entropy(count)

    secret = new_secret(kind, mode, entropy)  # type: ignore[arg-type]
    assert secret.startswith(f"{PREFIXES[kind]}_{mode}_")  # type: ignore[index]
    assert asked == [32]
    assert looks_like_secret(secret)
    assert secret != new_secret(kind, mode, entropy)  # type: ignore[arg-type]


def test_every_mistyped_character_of_a_secret_is_seen_without_a_look_up() -> None:
    secret = new_secret("standard", "sandbox", system_entropy)
    for place in range(len(secret)):
        for character in "Zz9-_é\n":
            if secret[place] != character:
                assert not looks_like_secret(secret[:place] + character + secret[place + 1 :])
    assert not looks_like_secret(secret + "\n")
    assert not looks_like_secret("")


# Tokens


def each_kind(tokens: Tokens) -> dict[str, str]:
    return {
        CLIENT_SESSION_PREFIX: tokens.mint(CLIENT_SESSION_PREFIX, CLAIMS),
        ACCESS_PREFIX: tokens.mint(ACCESS_PREFIX, CLAIMS),
        "payment": tokens.payment_secret(CLAIMS),
    }


def read(tokens: Tokens, kind: str, token: str) -> Claims:
    if kind == "payment":
        return tokens.read_payment_secret(token)
    return tokens.read(kind, token)


@pytest.mark.parametrize("kind", [CLIENT_SESSION_PREFIX, ACCESS_PREFIX, "payment"])
def test_a_token_reads_back_and_no_kind_passes_for_another(kind: str) -> None:
    tokens = Tokens(RING)
    minted = each_kind(tokens)
    assert read(tokens, kind, minted[kind]) == CLAIMS
    bodies = [
        minted[CLIENT_SESSION_PREFIX][4:],
        minted[ACCESS_PREFIX][4:],
        minted["payment"].split("_")[-1],
    ]
    heads = {
        CLIENT_SESSION_PREFIX: CLIENT_SESSION_PREFIX,
        ACCESS_PREFIX: ACCESS_PREFIX,
        "payment": "payment_abc_secret_",
    }
    for other, token in minted.items():
        if other != kind:
            with pytest.raises(TokenInvalid):
                read(tokens, kind, token)
    for body in bodies:
        if not minted[kind].endswith(body):
            with pytest.raises(TokenInvalid):
                read(tokens, kind, heads[kind] + body)


@pytest.mark.parametrize("kind", [CLIENT_SESSION_PREFIX, ACCESS_PREFIX, "payment"])
def test_every_changed_character_of_a_token_is_refused(kind: str) -> None:
    tokens = Tokens(RING)
    token = each_kind(tokens)[kind]
    for place in range(len(token)):
        for character in ("A", "z", "_", "=", "é", " ", "\ud800"):
            if token[place] != character:
                with pytest.raises(TokenInvalid):
                    read(tokens, kind, token[:place] + character + token[place + 1 :])
        with pytest.raises(TokenInvalid):
            read(tokens, kind, token[:place])
    for more in ("A", "=", "==", "\n", " ", "\x00"):
        with pytest.raises(TokenInvalid):
            read(tokens, kind, token + more)


@given(st.text(max_size=60))
def test_no_text_at_all_breaks_the_reading_of_tokens(text: str) -> None:
    tokens = Tokens(RING)
    for kind in (CLIENT_SESSION_PREFIX, ACCESS_PREFIX, "payment"):
        for token in (text, kind + text, "payment_abc_secret_" + text):
            with pytest.raises(TokenInvalid):
                read(tokens, kind, token)


def test_a_stranger_with_a_lone_surrogate_is_refused_too() -> None:
    body = RING.seal("token", ACCESS_PREFIX, b"[]")
    text = base64.urlsafe_b64encode(body).decode().rstrip("=")
    with pytest.raises(TokenInvalid):
        Tokens(RING).read_payment_secret("\ud800_secret_" + text)


def test_a_sealed_text_that_is_not_a_claim_is_refused() -> None:
    for plain in (b"", b"null", b"[]", b'["a","b","c","d"]', b'["a","b","c",1,2]', b"\xff"):
        sealed = (
            base64.urlsafe_b64encode(RING.seal("token", ACCESS_PREFIX, plain)).decode().rstrip("=")
        )
        with pytest.raises(TokenInvalid):
            Tokens(RING).read(ACCESS_PREFIX, ACCESS_PREFIX + sealed)


def test_a_payment_secret_is_its_own_payments_and_always_the_same() -> None:
    tokens = Tokens(RING)
    secret = tokens.payment_secret(CLAIMS)
    assert secret == tokens.payment_secret(CLAIMS)
    assert secret.startswith("payment_abc_secret_")
    with pytest.raises(TokenInvalid):
        tokens.read_payment_secret(secret.replace("payment_abc", "payment_abd"))
    assert CLAIMS.environment_id not in secret


def test_tokens_survive_a_rotation_until_their_key_is_taken_out() -> None:
    before = each_kind(Tokens(RING))
    rotated, without = Tokens(KeyRing.parse(f"{NEW} {OLD}")), Tokens(KeyRing.parse(NEW))
    for kind, token in before.items():
        assert read(rotated, kind, token) == CLAIMS
        with pytest.raises(TokenInvalid):
            read(without, kind, token)
        assert read(without, kind, each_kind(rotated)[kind]) == CLAIMS
