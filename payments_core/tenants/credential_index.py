"""The owners of secrets: the directory's rows by digest, under any master key.

A secret is known only by its digest, so only the secret itself can produce a new digest. When a
secret comes whose digest was made with an older master key, a row under the current key is added;
the older row stays, for processes that know only the older key.
"""

from __future__ import annotations

from functools import partial

from payments_core.clock import Instant
from payments_core.credentials.secrets import DIGEST_PURPOSE
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.evolve import evolve
from payments_core.storage.port import DIRECTORY, Snapshot, Transaction
from payments_core.tenants.record import CredentialIndexEntry, Environment, Key

_MAX_CACHED = 10_000
_MAX_DIGESTS = 100
"""The number of master keys that a server key may outlive."""

_AUTHORITY = WorkerAuthority(DIRECTORY, "directory")


class CredentialIndex:
    """Finds and stores the rows. The owner of a secret never changes, so it is cached."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._key_ring = ports.key_ring
        self._known: dict[tuple[str | None, str], CredentialIndexEntry] = {}

    def add_key(self, environment: Environment, key: Key) -> None:
        """Make a new key findable."""
        address = CredentialIndexEntry(
            id=key.digest,
            app_id=environment.app_id,
            environment_id=environment.id,
            key_id=key.id,
            expires_at_ms=key.expires_at_ms,
            master_key=self._key_ring.current_id,
        )
        self._committer.commit(
            _AUTHORITY, lambda tx, id_sequence: Decision(None, inserts=(address,))
        )

    def find(self, secret: str, app_id: str | None, now: Instant) -> CredentialIndexEntry | None:
        """The owner of a secret, if it may open that; rights are not cached."""
        for digest in self._key_ring.digests(DIGEST_PURPOSE, secret):
            load = partial(_load_entry, digest)
            found = self._known.get((app_id, digest)) or self._storage.read(DIRECTORY, load)
            if found is None or not found.may_open(app_id, now):
                self._known.pop((app_id, digest), None)
            else:
                if len(self._known) >= _MAX_CACHED:
                    self._known.clear()
                self._known[app_id, digest] = found
                return found
        return None

    def evict(self, app_id: str | None, address: CredentialIndexEntry) -> None:
        """Look it up again the next time."""
        self._known.pop((app_id, address.id), None)

    def add_current_digest(self, secret: str, address: CredentialIndexEntry) -> None:
        """Make a secret that has just opened its key findable under the current master key too.

        If that cannot be written now, its next use tries again.
        """
        if address.master_key == self._key_ring.current_id:
            return
        digest = self._key_ring.digest(DIGEST_PURPOSE, secret)
        if digest == address.id:
            return
        fresh = evolve(
            address,
            id=digest,
            version=0,
            master_key=self._key_ring.current_id,
            key_digest=address.proven_digest,
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            there = tx.get(CredentialIndexEntry, digest, for_update=True)
            return Decision(None, inserts=() if there is not None else (fresh,))

        try:
            self._committer.commit(_AUTHORITY, decide)
        except Unavailable:
            return

    def remove_key(self, key: Key) -> None:
        """Take a revoked key out of the directory: its secret is then searched and not found,
        like an unknown secret."""
        rows = self._storage.read(
            DIRECTORY,
            lambda snapshot: (
                snapshot.find(CredentialIndexEntry, "by_key", (key.id,), limit=_MAX_DIGESTS).records
            ),
        )
        ids = sorted({key.digest, *(row.id for row in rows)})

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            found = [tx.get(CredentialIndexEntry, id, for_update=True) for id in ids]
            return Decision(None, deletes=tuple(row for row in found if row is not None))

        self._committer.commit(_AUTHORITY, decide)


def _load_entry(digest: str, snapshot: Snapshot) -> CredentialIndexEntry | None:
    return snapshot.get(CredentialIndexEntry, digest)
