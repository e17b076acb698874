"""Where secrets belong: the directory's rows by digest, whatever master key made the digest.

A secret is known only by its digest, so nothing can make that anew but the secret itself. When one
comes whose digest rests on an older master key, a row under the current key is added beside it; the
older row stays, for processes that know it and nothing else.
"""

from __future__ import annotations

from functools import partial

import attrs

from payments_core.clock import Instant
from payments_core.credentials.secrets import DIGEST_PURPOSE
from payments_core.engine.decision import Decision, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.storage.port import DIRECTORY, Snapshot, Transaction
from payments_core.tenants.record import Environment, Key, SecretAddress

_CACHED = 10_000
_MOST_DIGESTS = 100
"""So many master keys a server key may have outlived."""

_SCOPE = Scope(DIRECTORY, "directory")


class SecretAddresses:
    """Finds and keeps them. Where a secret belongs never changes, so it is remembered."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._key_ring = ports.key_ring
        self._known: dict[tuple[str | None, str], SecretAddress] = {}

    def list_key(self, environment: Environment, key: Key) -> None:
        """Let a key that was just made be found."""
        address = SecretAddress(
            id=key.digest,
            app_id=environment.app_id,
            environment_id=environment.id,
            key_id=key.id,
            expires_at=key.expires_at,
            master_key=self._key_ring.current_id,
        )
        self._ledger.commit(_SCOPE, lambda tx, draw: Decision(None, inserts=(address,)))

    def find(self, secret: str, app_id: str | None, now: Instant) -> SecretAddress | None:
        """Where a secret belongs, if it may open that; rights are not remembered."""
        for digest in self._key_ring.digests(DIGEST_PURPOSE, secret):
            look = partial(_address, digest)
            found = self._known.get((app_id, digest)) or self._storage.read(DIRECTORY, look)
            if found is None or not found.may_open(app_id, now):
                self._known.pop((app_id, digest), None)
            else:
                if len(self._known) >= _CACHED:
                    self._known.clear()
                self._known[app_id, digest] = found
                return found
        return None

    def forget(self, app_id: str | None, address: SecretAddress) -> None:
        """Look it up again the next time."""
        self._known.pop((app_id, address.id), None)

    def renew(self, secret: str, address: SecretAddress) -> None:
        """Let a secret that has just opened its key be found under the current master key too.

        Where that cannot be written now, its next use tries again.
        """
        digest = self._key_ring.digest(DIGEST_PURPOSE, secret)
        if digest == address.id:
            return
        fresh = attrs.evolve(
            address,
            id=digest,
            version=0,
            master_key=self._key_ring.current_id,
            key_digest=address.proves,
        )

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            there = tx.get(SecretAddress, digest, for_update=True)
            return Decision(None, inserts=() if there is not None else (fresh,))

        try:
            self._ledger.commit(_SCOPE, decide)
        except Unavailable:
            return

    def unlist(self, key: Key) -> None:
        """Take a revoked key out of the directory: its secret is then looked for, and not found,
        as one that never was."""
        rows = self._storage.read(
            DIRECTORY,
            lambda snapshot: (
                snapshot.find(SecretAddress, "by_key", (key.id,), limit=_MOST_DIGESTS).records
            ),
        )
        ids = sorted({key.digest, *(row.id for row in rows)})

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            found = [tx.get(SecretAddress, id, for_update=True) for id in ids]
            return Decision(None, deletes=tuple(row for row in found if row is not None))

        self._ledger.commit(_SCOPE, decide)


def _address(digest: str, snapshot: Snapshot) -> SecretAddress | None:
    return snapshot.get(SecretAddress, digest)
