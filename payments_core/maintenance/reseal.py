"""Reseals records under the current master key that were sealed under older ones.

After a new key was put in front of the ring, the service continues without changes: every
key of the ring opens. This goes through all sealed records, so that an old key can be dropped, and
reports which records need which key. Records changed meanwhile are read again; after a kill, run it
again.

Values that only others hold cannot be resealed: tokens, client secrets, and secrets of server keys,
of which only digests are stored. Digests are renewed one by one as they are used (`tenants/`).
"""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Generic

import attrs

from payments_core.accounts.bank_accounts.record import NUMBER_SEAL, BankAccount
from payments_core.clock import Instant
from payments_core.credentials.keyring import SealBroken
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.idempotency.record import SEAL_PURPOSE, StoredResponse
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.maintenance.announcing import announce
from payments_core.onramps.record import ONRAMP_NUMBER_SEAL, OnrampAccount
from payments_core.payments.links import LINK_DIGEST, LINK_SEAL
from payments_core.payments.record import Payment, PaymentLink
from payments_core.storage.maintenance import Progress, scan_all
from payments_core.storage.port import LocatedRecord, Transaction
from payments_core.storage.records import R
from payments_core.tenants.authorization import key_is_live
from payments_core.tenants.record import CredentialIndexEntry, Environment, KeyUse
from payments_core.tenants.second_factor import SECOND_FACTOR_SEAL, SecondFactor
from payments_core.webhooks.dispatch.attempt import SECRET_PURPOSE
from payments_core.webhooks.record import Endpoint

MAX_BROKEN = 100


@attrs.frozen
class SealedField(Generic[R]):
    """The sealed fields of a kind of record, each sealed to the record's id."""

    kind: type[R]
    purpose: str
    texts: Callable[[R], Sequence[str]]
    with_texts: Callable[[R, Sequence[str]], R]


def _endpoint_texts(endpoint: Endpoint) -> Sequence[str]:
    return (endpoint.sealed_secret, *(older.sealed for older in endpoint.older_secrets))


def _replace_endpoint_texts(endpoint: Endpoint, texts: Sequence[str]) -> Endpoint:
    older = tuple(
        evolve(secret, sealed=text)
        for secret, text in zip(endpoint.older_secrets, texts[1:], strict=True)
    )
    return evolve(endpoint, sealed_secret=texts[0], older_secrets=older)


SEALED_FIELDS: tuple[SealedField[Any], ...] = (
    SealedField(Endpoint, SECRET_PURPOSE, _endpoint_texts, _replace_endpoint_texts),
    SealedField(
        Payment,
        LINK_SEAL,
        lambda payment: () if payment.link_code is None else (payment.link_code,),
        lambda payment, texts: evolve(payment, link_code=texts[0]),
    ),
    SealedField(
        BankAccount,
        NUMBER_SEAL,
        lambda bank_account: (bank_account.sealed_number,),
        lambda bank_account, texts: evolve(bank_account, sealed_number=texts[0]),
    ),
    SealedField(
        OnrampAccount,
        ONRAMP_NUMBER_SEAL,
        lambda onramp: () if onramp.instructions is None else (onramp.instructions.sealed_number,),
        lambda onramp, texts: evolve(
            onramp, instructions=evolve(onramp.instructions, sealed_number=texts[0])
        ),
    ),
    SealedField(
        SecondFactor,
        SECOND_FACTOR_SEAL,
        lambda factor: (factor.sealed_secret,),
        lambda factor, texts: evolve(factor, sealed_secret=texts[0]),
    ),
    SealedField(
        StoredResponse,
        SEAL_PURPOSE,
        lambda answer: (answer.sealed_body,),
        lambda answer, texts: evolve(answer, sealed_body=texts[0]),
    ),
)
"""All sealed fields of a record. A link's digest is renewed with its Payment."""


@attrs.frozen
class BrokenSeal:
    """A record with a sealed text that no key of the ring opens."""

    collection: str
    partition: str
    id: str


@attrs.frozen
class KeyOnOldDigest:
    """A live server key whose secret is known only by a digest under an older master key.

    `master_key` is its name, None for digests older than this field.
    """

    environment_id: str
    key_id: str
    name: str
    kind: str
    master_key: str | None
    created_at_ms: Instant
    last_used_at_ms: Instant | None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    last_used_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("last_used_at_ms")


@attrs.frozen
class MasterKeyUsage:
    """The records that need each master key: counts by the key's name, then by collection.

    `broken` are the first of `broken_count`.
    """

    current: str
    counts: Mapping[str, Mapping[str, int]]
    keys: tuple[KeyOnOldDigest, ...]
    broken_count: int
    broken: tuple[BrokenSeal, ...]

    @property
    def needed_old_keys(self) -> frozenset[str]:
        """The older master keys that sealed records still need."""
        return frozenset(self.counts) - {self.current}

    def is_needed(self, name: str) -> bool:
        """Whether anything needs that master key, or may need it, since its need is unrecorded."""
        return name in self.counts or any(key.master_key in (name, None) for key in self.keys)


@attrs.frozen
class ResealResult:
    """How many records a run changed, by collection, and the state after it."""

    changed: Mapping[str, int]
    usage: MasterKeyUsage


class Resealer:
    """Goes through all sealed records."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._key_ring = ports.key_ring
        self._clock = ports.clock
        self._ports = ports

    def run(self, *, progress: Progress | None = None) -> ResealResult:
        """Reseal everything that an older key sealed, one record per transaction; then report.

        Only if every process has the current key in its ring. Values that no key opens are left as
        they are, and reported. Raises NoMaintenanceAccess, StorageUnavailable, Unavailable.
        """
        announce(self._ports, "key_ring.reseal")
        changed: Counter[str] = Counter()
        for sealed in SEALED_FIELDS:
            name = sealed.kind.collection.name
            for found in scan_all(self._storage, sealed.kind, progress=progress):
                if self._is_stale(sealed, found.record) and self._reseal(sealed, found):
                    changed[name] += 1
        return ResealResult(dict(changed), self.report())

    def report(self, *, progress: Progress | None = None) -> MasterKeyUsage:
        """The records that need each key. Raises NoMaintenanceAccess, StorageUnavailable."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        broken: list[BrokenSeal] = []
        for sealed in SEALED_FIELDS:
            name = sealed.kind.collection.name
            for found in scan_all(self._storage, sealed.kind, progress=progress):
                texts = sealed.texts(found.record)
                if self._open_texts(sealed, found.record) is None:
                    broken.append(BrokenSeal(name, found.partition, found.record.id))
                for key_id in {_key_id(text) for text in texts}:
                    counts[key_id][name] += 1
        return MasterKeyUsage(
            self._key_ring.current_id,
            {key_id: dict(of) for key_id, of in sorted(counts.items())},
            self._find_keys_on_old_digest(),
            len(broken),
            tuple(broken[:MAX_BROKEN]),
        )

    def _is_stale(self, sealed: SealedField[R], record: R) -> bool:
        current = self._key_ring.current_id
        return any(_key_id(text) != current for text in sealed.texts(record))

    def _open_texts(self, sealed: SealedField[R], record: R) -> list[bytes] | None:
        """The content of the sealed texts of a record; None if one does not open."""
        try:
            return [
                self._key_ring.open(sealed.purpose, record.id, base64.b64decode(text))
                for text in sealed.texts(record)
            ]
        except (SealBroken, ValueError):
            return None

    def _reseal(self, sealed: SealedField[R], found: LocatedRecord[R]) -> bool:
        """Reseal a record's texts, freshly read; return whether there was anything to do."""
        done = False

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            nonlocal done
            record = tx.get(sealed.kind, found.record.id, for_update=True)
            if record is None or not self._is_stale(sealed, record):
                return Decision(None)
            plain = self._open_texts(sealed, record)
            if plain is None:
                return Decision(None)
            done = True
            fresh = [
                base64.b64encode(self._key_ring.seal(sealed.purpose, record.id, text)).decode()
                for text in plain
            ]
            decision = Decision(None, replaces=(sealed.with_texts(record, fresh),))
            if isinstance(record, Payment):
                return decision.merge(self._rewrite_link_digest(tx, record, plain[0].decode()))
            return decision

        self._committer.commit(WorkerAuthority(found.partition, "upkeep"), decide)
        return done

    def _rewrite_link_digest(self, tx: Transaction, payment: Payment, code: str) -> Decision[None]:
        """The row that finds a link's Payment, under the current key."""
        current, *older = self._key_ring.digests(LINK_DIGEST, code)
        rows = [tx.get(PaymentLink, digest, for_update=True) for digest in older]
        old = tuple(row for row in rows if row is not None)
        if not old or tx.get(PaymentLink, current, for_update=True) is not None:
            return Decision(None, deletes=old)
        fresh = PaymentLink(id=current, payment_id=payment.id, mode=old[0].mode)
        return Decision(None, inserts=(fresh,), deletes=old)

    def _find_keys_on_old_digest(self) -> tuple[KeyOnOldDigest, ...]:
        current, now = self._key_ring.current_id, self._clock.now()
        masters: dict[str, set[str | None]] = defaultdict(set)
        for address in scan_all(self._storage, CredentialIndexEntry):
            masters[address.record.key_id].add(address.record.master_key)
        uses = {
            use.record.id: use.record.last_used_at_ms for use in scan_all(self._storage, KeyUse)
        }
        found = []
        for place in scan_all(self._storage, Environment):
            for key in place.record.keys:
                known = masters.get(key.id, set())
                if key_is_live(key, now) and current not in known:
                    master = max((name for name in known if name is not None), default=None)
                    found.append(
                        KeyOnOldDigest(
                            place.partition,
                            key.id,
                            key.name,
                            key.kind,
                            master,
                            key.created_at_ms,
                            uses.get(key.id),
                        )
                    )
        return tuple(found)


def _key_id(text: str) -> str:
    """The name of the master key that sealed a text; it is a plain-text prefix."""
    try:
        head = base64.b64decode(text[:32] + "=" * (-len(text[:32]) % 4))
    except ValueError:
        return "?"
    name, found, _ = head.partition(b":")
    return name.decode("ascii", "replace") if found else "?"
