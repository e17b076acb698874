"""The next transfer of a busy sender: its nonce is reserved in the commit that stores its bytes."""

from __future__ import annotations

import attrs
import pytest

from payments_core.chains.outbox import signing
from payments_core.chains.outbox.inclusion import encode_signed
from payments_core.chains.outbox.nonces import get_sender_id
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import OutboundTransfer, Sender
from payments_core.chains.port import ChainUnavailable, SignerRefused
from payments_core.storage.port import Storage, Transaction
from tests.service.chain_harness import BASE, ChainHarness
from tests.service.chains.outbox.test_signed_bytes import SCOPE, Signing, intend, stored
from tests.service.world import write


@pytest.fixture
def chain_harness(storage: Storage) -> ChainHarness:
    chain_harness = ChainHarness(storage)
    chain_harness.give(chain_harness.vault, 1_000, "gift")
    return chain_harness


@pytest.fixture
def chain(chain_harness: ChainHarness) -> Signing:
    return Signing(chain_harness)


@pytest.fixture
def outbox(chain_harness: ChainHarness, chain: Signing) -> Outbox:
    """An outbox that has stored the bytes of the sender's last transfer, `out_1`, itself."""
    intend(chain_harness, "out_1", "out_2", "out_3")
    outbox = Outbox(chain_harness.ports, {BASE: chain})
    assert outbox.ensure_signed(SCOPE, BASE, "out_1") is not None
    return outbox


def change(chain_harness: ChainHarness, id: str, **fields: object) -> None:
    def work(tx: Transaction) -> None:
        outgoing = tx.get(OutboundTransfer, id, for_update=True)
        assert outgoing is not None
        tx.replace(attrs.evolve(outgoing, **fields))

    write(chain_harness.storage, "env_a", work)


def slots(chain_harness: ChainHarness) -> list[tuple[str, int | None, str | None]]:
    found = [stored(chain_harness, id) for id in ("out_1", "out_2", "out_3")]
    return [(one.status, one.slot, one.previous_id) for one in found]


def test_nothing_is_reserved_while_it_is_signed(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    seen: list[tuple[str, int | None]] = []

    def look() -> None:
        now = stored(chain_harness, "out_2")
        seen.append((now.status, now.slot))

    chain.before = look
    signed = outbox.ensure_signed(SCOPE, BASE, "out_2")
    assert signed is not None
    assert seen == [("queued", None)]
    after = stored(chain_harness, "out_2")
    assert (after.status, after.slot, after.previous_id) == ("signed", 1, "out_1")
    assert (after.transaction_hash, after.raw) == (signed.hash, encode_signed(signed))
    assert chain.signed == ["out_1", "out_2"]


def test_a_process_remembers_a_bounded_number_of_senders(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "MAX_REMEMBERED_SENDERS", 1)
    seen: list[str] = []
    for id in ("out_2", "out_3"):
        chain.before = lambda id=id: seen.append(stored(chain_harness, id).status)  # type: ignore[misc]
        assert outbox.ensure_signed(SCOPE, BASE, id) is not None
    assert seen == ["queued", "queued"], "the last one it does remember"


def test_another_process_reserves_the_nonce_first(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    """It cannot know whether the last transfer has its bytes."""
    seen: list[str] = []
    chain.before = lambda: seen.append(stored(chain_harness, "out_2").status)
    other = Outbox(chain_harness.ports, {BASE: chain})
    assert other.ensure_signed(SCOPE, BASE, "out_2") is not None
    assert seen == ["reserved"]


def test_what_is_withdrawn_while_it_is_signed_is_not_stored(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    chain.before = lambda: change(chain_harness, "out_2", status="withdrawn")
    assert outbox.ensure_signed(SCOPE, BASE, "out_2") is None
    assert slots(chain_harness)[1] == ("withdrawn", None, None)
    assert stored(chain_harness, "out_2").raw is None
    assert outbox.ensure_signed(SCOPE, BASE, "out_3") is not None
    assert slots(chain_harness)[2] == ("signed", 1, "out_1"), "the nonce was free"


def test_it_is_signed_again_where_another_worker_took_the_nonce_meanwhile(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    other = Outbox(chain_harness.ports, {BASE: chain})
    chain.before = lambda: other.ensure_signed(SCOPE, BASE, "out_3") and None  # type: ignore[assignment,return-value]
    mine = outbox.ensure_signed(SCOPE, BASE, "out_2")
    assert chain.signed == ["out_1", "out_3", "out_2", "out_2"]
    assert slots(chain_harness) == [
        ("signed", 0, None), ("signed", 2, "out_3"), ("signed", 1, "out_1")
    ]  # fmt: skip
    assert mine is not None
    assert stored(chain_harness, "out_2").transaction_hash == mine.hash


def test_it_gives_way_to_another_worker_that_is_about_to_sign(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    """What that one has reserved and not signed has no bytes, and its nonce is taken over."""
    other = Outbox(chain_harness.ports, {BASE: chain})

    def begin() -> None:
        chain.before = die
        with pytest.raises(ChainUnavailable):
            other.ensure_signed(SCOPE, BASE, "out_3")

    def die() -> None:
        raise SignerRefused("the process died here")

    chain.before = begin
    assert outbox.ensure_signed(SCOPE, BASE, "out_2") is not None
    assert slots(chain_harness) == [
        ("signed", 0, None),
        ("signed", 1, "out_1"),
        ("queued", None, None),
    ]


def test_a_refusal_keeps_the_nonce_reserved(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    def refuse() -> None:
        chain.before = refuse
        raise SignerRefused("too much")

    chain.before = refuse
    with pytest.raises(ChainUnavailable):
        outbox.ensure_signed(SCOPE, BASE, "out_2")
    assert slots(chain_harness)[1] == ("reserved", 1, "out_1")


def test_a_silent_chain_leaves_it_without_a_nonce(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    def fall_silent() -> None:
        raise ChainUnavailable("no answer")

    chain.before = fall_silent
    with pytest.raises(ChainUnavailable):
        outbox.ensure_signed(SCOPE, BASE, "out_2")
    assert slots(chain_harness)[1] == ("queued", None, None)
    assert outbox.ensure_signed(SCOPE, BASE, "out_2") is not None


@pytest.mark.parametrize("when", ["before", "while"])
def test_nothing_is_stored_where_transactions_of_the_sender_are_lost(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox, when: str
) -> None:
    """The chain has shown more of its nonces than the storage knows: they are found out first."""

    def lose() -> None:
        def work(tx: Transaction) -> None:
            sender = tx.get(Sender, get_sender_id(SCOPE, chain), for_update=True)
            assert sender is not None
            tx.replace(attrs.evolve(sender, seen_nonce=5))

        write(chain_harness.storage, "env_a", work)

    if when == "before":
        lose()
    else:
        chain.before = lose
    with pytest.raises(ChainUnavailable):
        outbox.ensure_signed(SCOPE, BASE, "out_2")
    assert stored(chain_harness, "out_2").raw is None
    assert chain.signed == ["out_1", *(["out_2"] if when == "while" else [])]


def sign_all(outbox: Outbox) -> list[str]:
    return [one.id for one in outbox.sign_next(SCOPE, BASE, ["out_2", "out_3"])]


def test_several_are_signed_for_successive_nonces_and_stored_together(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    seen: list[str] = []
    chain.before = lambda: seen.append(stored(chain_harness, "out_3").status)
    signed = outbox.sign_next(SCOPE, BASE, ["out_2", "out_3"])
    assert seen == ["queued"]
    assert [one.slot for one in signed] == [1, 2]
    assert [one.raw for one in signed] == [
        stored(chain_harness, id).raw for id in ("out_2", "out_3")
    ]
    assert signed[0].raw != signed[1].raw
    assert slots(chain_harness)[1:] == [("signed", 1, "out_1"), ("signed", 2, "out_2")]
    intend(chain_harness, "out_4")
    assert outbox.sign_next(SCOPE, BASE, ["out_4"])[0].previous_id == "out_3"


def test_the_first_decides_whether_they_are_signed_together(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    other = Outbox(chain_harness.ports, {BASE: chain})
    assert sign_all(other) == [], "another process does not know that the last one has its bytes"
    change(chain_harness, "out_2", status="withdrawn")
    assert sign_all(outbox) == []
    assert chain.signed == ["out_1"]


@pytest.mark.parametrize(
    "change_of_it", [{"status": "withdrawn"}, {"funded_by": "out_1"}], ids=lambda it: next(iter(it))
)
def test_another_that_cannot_be_signed_now_takes_no_nonce(
    chain_harness: ChainHarness, outbox: Outbox, change_of_it: dict[str, str]
) -> None:
    intend(chain_harness, "out_4")
    change(chain_harness, "out_3", **change_of_it)
    signed = outbox.sign_next(SCOPE, BASE, ["out_2", "out_3", "out_4"])
    assert [(one.id, one.slot) for one in signed] == [("out_2", 1), ("out_4", 2)]
    assert stored(chain_harness, "out_3").slot is None


@pytest.mark.parametrize("changed", ["out_2", "out_3"])
def test_none_is_stored_if_one_of_them_changes_meanwhile(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox, changed: str
) -> None:
    chain.before = lambda: change(chain_harness, changed, status="withdrawn")
    assert sign_all(outbox) == []
    assert [
        one.raw for one in (stored(chain_harness, "out_2"), stored(chain_harness, "out_3"))
    ] == [None, None]
    assert outbox.sign(SCOPE, BASE, "out_2" if changed == "out_3" else "out_3") is not None


def test_none_is_stored_if_another_worker_takes_the_nonce_meanwhile(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    intend(chain_harness, "out_4")
    other = Outbox(chain_harness.ports, {BASE: chain})
    chain.before = lambda: other.ensure_signed(SCOPE, BASE, "out_4") and None  # type: ignore[assignment,return-value]
    assert sign_all(outbox) == []
    assert stored(chain_harness, "out_4").slot == 1
    assert slots(chain_harness)[1:] == [("queued", None, None), ("queued", None, None)]


@pytest.mark.parametrize("error", [SignerRefused, ChainUnavailable, ValueError])
def test_those_before_one_that_cannot_be_signed_are_stored(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox, error: type[Exception]
) -> None:
    def refuse() -> None:
        raise error("not this one")

    def refuse_next() -> None:
        chain.before = refuse

    chain.before = refuse_next
    assert sign_all(outbox) == ["out_2"]
    assert slots(chain_harness)[1:] == [("signed", 1, "out_1"), ("queued", None, None)]


def test_signing_that_takes_long_stores_what_is_done(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "MAX_TOGETHER_S", 0.0)
    assert sign_all(outbox) == ["out_2"]
    assert sign_all(outbox) == [], "it has its bytes"
    assert outbox.sign(SCOPE, BASE, "out_3") is not None


def test_one_of_another_chain_is_not_signed_with_them(
    chain_harness: ChainHarness, chain: Signing, outbox: Outbox
) -> None:
    change(chain_harness, "out_3", chain_id=1)
    assert sign_all(outbox) == ["out_2"]
