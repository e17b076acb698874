"""Answers that are stored whole, however large, and shown to no log."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import attrs
import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import (
    AlreadyResponded,
    IdempotentRequest,
    Response,
    StoredResponse,
)
from payments_core.errors import IdempotencyConflict
from payments_core.storage.documents import MAX_BODY_BYTES
from tests.service.world import RING, World, answer_of, write


def asked(body: bytes) -> IdempotentRequest:
    return IdempotentRequest("large-1", "f", lambda result: Response(201, body, "2026-09-09"))


def answer_with(world: World, body: bytes) -> None:
    authority, decision = world.server, Decision[Any](None)
    world.service.parts.ports.committer.commit(
        authority, lambda tx, id_sequence: decision, idempotent=asked(body)
    )


def stored(world: World) -> StoredResponse:
    return world.get(StoredResponse, "large-1")


def unsealed(world: World) -> bytes:
    """What is under the seal: nobody but the key's holder can read it."""
    sealed = base64.b64decode(stored(world).sealed_body)
    return KeyRing.parse(RING).open("idempotent answer", "large-1", sealed)


def large_json() -> bytes:
    """Ten options with metadata that hardly compresses: the largest answers there are."""
    chance = random.Random(1)
    texts = (base64.b64encode(chance.randbytes(5_700)).decode() for _ in range(10))
    return json.dumps({"options": [{"metadata": {"note": text}} for text in texts]}).encode()


def test_an_answer_of_75_kilobytes_is_replayed_byte_for_byte(memory_world: World) -> None:
    body = large_json()
    assert len(body) > 75_000
    assert len(base64.b64encode(body)) > MAX_BODY_BYTES  # as it is, it would not fit
    answer_with(memory_world, body)
    replayed = answer_of(lambda: answer_with(memory_world, b"another"))
    assert replayed == Response(201, body, "2026-09-09")


@pytest.mark.parametrize("size", [0, 1, 4_095])
def test_a_small_answer_is_stored_as_it_is(memory_world: World, size: int) -> None:
    body = b"x" * size
    answer_with(memory_world, body)
    assert unsealed(memory_world).endswith(body)
    assert len(unsealed(memory_world)) - size < 10  # with the fingerprint of one letter
    replayed = answer_of(lambda: answer_with(memory_world, b""))
    assert replayed is not None
    assert replayed.body == body


@pytest.mark.parametrize("size", [4_096, 75_000])
def test_a_large_answer_is_stored_small(memory_world: World, size: int) -> None:
    body = b"x" * size
    answer_with(memory_world, body)
    assert len(unsealed(memory_world)) < 1_000
    replayed = answer_of(lambda: answer_with(memory_world, b""))
    assert replayed is not None
    assert replayed.body == body


def test_no_answer_shows_its_body_when_it_is_logged(memory_world: World) -> None:
    """Bodies hold signing secrets and client tokens."""
    body = b'{"signingSecret":"whsec_dont_show_me"}'
    idempotent = asked(body)
    memory_world.service.parts.ports.committer.commit(
        memory_world.server, lambda tx, id_sequence: Decision(None), idempotent=idempotent
    )
    assert idempotent.response == Response(201, body, "2026-09-09")
    with pytest.raises(AlreadyResponded) as earlier:
        answer_with(memory_world, body)
    for shown in (idempotent, idempotent.response, earlier.value.response, stored(memory_world)):
        assert "dont_show_me" not in repr(shown)


def test_the_fingerprint_is_under_the_seal_and_compared(memory_world: World) -> None:
    answer_with(memory_world, b"answer")
    assert stored(memory_world).fingerprint == "sealed"
    other = attrs.evolve(asked(b""), fingerprint="another")
    with pytest.raises(IdempotencyConflict):
        memory_world.service.parts.ports.committer.replay(memory_world.server, other)


def test_an_answer_of_an_earlier_release_has_its_fingerprint_beside_it(memory_world: World) -> None:
    answer_with(memory_world, b"answer")
    sealed = KeyRing.parse(RING).seal("idempotent answer", "large-1", b"-before")
    text = base64.b64encode(sealed).decode()
    before = attrs.evolve(stored(memory_world), fingerprint="f", sealed_body=text)
    write(memory_world.storage, memory_world.environment_id, lambda tx: tx.replace(before))
    replayed = answer_of(lambda: answer_with(memory_world, b"another"))
    assert replayed is not None
    assert replayed.body == b"before"
    other = attrs.evolve(asked(b""), fingerprint="another")
    with pytest.raises(IdempotencyConflict):
        memory_world.service.parts.ports.committer.replay(memory_world.server, other)
