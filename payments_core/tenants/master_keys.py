"""Whether a key ring is the one with which a storage was created.

A ring with other keys would find no secret and open nothing, and its seals would be useless to
the right one. So the storage keeps a mark of each master key that it has seen: a keyed digest, by
the key's name, which reveals nothing of the key.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.credentials.keyring import KeyRing, WeakKeyRing
from payments_core.engine.audit import Trace
from payments_core.engine.committer import Committer
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.storage.port import DIRECTORY, Storage, Transaction
from payments_core.tenants.record import MasterKeyMark

_PURPOSE = "master key's mark"
_MARK_INPUT = "payments-core"
_MAX_KEYS = 200


class UnknownKeyRing(WeakKeyRing):
    """The storage was created with other master keys."""


def verify_or_register(storage: Storage, committer: Committer, key_ring: KeyRing) -> None:
    """Return if the ring is the storage's own, and mark those of its keys that are new there.

    A new key goes in front of the others, so a ring must share one with those that were marked.
    Raises UnknownKeyRing, StorageUnavailable, Unavailable.
    """
    known = load_marks(storage)
    marks = marks_of(key_ring)
    _require_matching_marks(known, marks)
    new = tuple(
        MasterKeyMark(id=name, mark=mark) for name, mark in marks.items() if name not in known
    )
    if new:

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            found = [tx.get(MasterKeyMark, one.id, for_update=True) for one in new]
            _require_matching_marks({one.id: one.mark for one in found if one is not None}, marks)
            absent = (one for one, there in zip(new, found, strict=True) if there is None)
            return Decision(None, inserts=tuple(absent))

        committer.commit(WorkerAuthority(DIRECTORY, "directory"), decide)


def require_registered(storage: Storage, key_ring: KeyRing) -> None:
    """Verify the key ring, and register no key.

    Raises UnknownKeyRing, StorageUnavailable.
    """
    _require_matching_marks(load_marks(storage), marks_of(key_ring))


def find_missing_keys(storage: Storage, key_ring: KeyRing) -> list[str]:
    """The names of keys that sealed parts of this storage, were not forgotten, and are not in the
    ring. Raises StorageUnavailable."""
    return sorted(load_marks(storage).keys() - set(key_ring.names))


def forget_key(ports: Ports, name: str) -> bool:
    """Forget a key that was taken out of the ring; whether it was expected.

    Only if nothing depends on it any more, or that is given up. Raises Unavailable.
    """

    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
        mark = tx.get(MasterKeyMark, name, for_update=True)
        return Decision(mark is not None, deletes=() if mark is None else (mark,))

    trace = Trace(ports.host, "key_ring.forget", own_id=name)
    return ports.committer.commit(WorkerAuthority(DIRECTORY, "directory", trace), decide)


def _require_matching_marks(known: Mapping[str, str], marks: Mapping[str, str]) -> None:
    for name, mark in marks.items():
        if known.get(name, mark) != mark:
            raise UnknownKeyRing(
                f"its key {name} is not the {name} that this storage was sealed by"
            )
    if known and not known.keys() & marks.keys():
        names = ", ".join(sorted(known))
        raise UnknownKeyRing(f"the key ring has no key that this storage was sealed with: {names}")


def load_marks(storage: Storage) -> dict[str, str]:
    """The marks that the storage has, by the keys' names."""
    page = storage.read(
        DIRECTORY, lambda snapshot: snapshot.find(MasterKeyMark, "all", limit=_MAX_KEYS)
    )
    return {record.id: record.mark for record in page.records}


def marks_of(key_ring: KeyRing) -> dict[str, str]:
    """The mark of each of the ring's keys, by its name."""
    return dict(zip(key_ring.names, key_ring.digests(_PURPOSE, _MARK_INPUT), strict=True))
