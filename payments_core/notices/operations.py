"""The door for providers: a notice is verified by its adapter, stored once, and gets a job.

Nobody can tell from the result whether a case is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from payments_core.clock import Instant
from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.bringing_forward import bring_forward
from payments_core.engine.ports import Ports
from payments_core.errors import InvalidState, NotFound, ProviderSignatureInvalid, ValidationFailed
from payments_core.evolve import evolve
from payments_core.notices.jobs import route_job
from payments_core.notices.port import (
    MAX_NAME_LENGTH,
    MAX_NOTICES,
    NoticeRefused,
    ProviderNotice,
    ReadsNotices,
)
from payments_core.notices.record import NoticeStatus, ProviderKind, StoredNotice
from payments_core.storage.port import DIRECTORY, Page, Position, Transaction


class ProviderNotices:
    """Receives the notices of a deployment's providers. `readers` has those that report."""

    def __init__(
        self, ports: Ports, readers: Mapping[str, Mapping[ProviderKind, ReadsNotices]]
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._host = ports.host
        self._clock = ports.clock
        self._readers = readers

    def receive(
        self, mode: str, kind: str, name: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Store the notices of a request, each once, and have them routed.

        Raises what `read_new` and `store` raise.
        """
        self.store(mode, self.read_new(mode, kind, name, headers, body))

    def read_new(
        self, mode: str, kind: str, name: str, headers: Mapping[str, str], body: bytes
    ) -> Sequence[StoredNotice]:
        """The notices of a request that are not stored yet, each once.

        `headers` have lower-case names. Raises NotFound without such a provider,
        ProviderSignatureInvalid, ValidationFailed for notices that cannot be stored, Unavailable.
        """
        readers: Mapping[str, tuple[ProviderKind, ReadsNotices]] = {
            f"{its_kind}/{reader.name}": (its_kind, reader)
            for its_kind, reader in self._readers.get(mode, {}).items()
        }
        found = readers.get(f"{kind}/{name}")
        if found is None:
            raise NotFound("provider")
        its_kind, reader = found
        try:
            notices = reader.read_notices(headers, body)
        except NoticeRefused as error:
            raise ProviderSignatureInvalid() from error
        _require_storable(notices)
        now = self._clock.now()
        rows = {
            row.id: row for row in (_make_row(mode, its_kind, name, one, now) for one in notices)
        }
        stored = self._storage.read(
            DIRECTORY, lambda snapshot: snapshot.get_many(StoredNotice, list(rows))
        )
        return [row for id, row in sorted(rows.items()) if id not in stored]

    def store(self, mode: str, notices: Sequence[StoredNotice]) -> None:
        """Store notices that `read_new` returned, and have them routed. Raises Unavailable."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            stored = tx.get_many(StoredNotice, [row.id for row in notices])
            new = [row for row in notices if row.id not in stored]
            jobs = [route_job(row, row.received_at_ms) for row in new]
            return Decision(None, inserts=(*new, *jobs))

        if notices:
            self._committer.commit(WorkerAuthority(DIRECTORY, mode), decide)

    def list(
        self,
        mode: str,
        status: NoticeStatus = "unknown",
        *,
        after: Position | None = None,
        limit: int = 50,
    ) -> Page[StoredNotice]:
        """The notices of a status, the oldest first."""
        return self._storage.read(
            DIRECTORY,
            lambda snapshot: snapshot.find(
                StoredNotice, "by_status", (mode, status), after=after, limit=limit
            ),
        )

    def retry(self, mode: str, id: str) -> StoredNotice:
        """Look for the case of an unknown notice again. Raises NotFound, InvalidState."""
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[StoredNotice]:
            notice = tx.get(StoredNotice, id, for_update=True)
            if notice is None or notice.mode != mode:
                raise NotFound("notice")
            if notice.status != "unknown":
                raise InvalidState("notice", notice.status, "retry")
            again = evolve(notice, status="received", received_at_ms=now, updated_at_ms=now)
            done: Decision[StoredNotice] = Decision(again, replaces=(again,))
            job = bring_forward(tx, route_job(again, now), now)
            return done if job is None else done.merge(job)

        trace = Trace(self._host, "notices.retry", own_id=id)
        return self._committer.commit(WorkerAuthority(DIRECTORY, mode, trace), decide)


def _require_storable(notices: Sequence[ProviderNotice]) -> None:
    if len(notices) > MAX_NOTICES:
        raise ValidationFailed.at("notices", f"must be at most {MAX_NOTICES}")
    for place, notice in enumerate(notices):
        for name, text in (("id", notice.id), ("reference", notice.reference)):
            if not 0 < len(text) <= MAX_NAME_LENGTH:
                raise ValidationFailed.at(
                    f"notices[{place}].{name}", f"must have 1 to {MAX_NAME_LENGTH} characters"
                )
            if not text.isprintable():
                raise ValidationFailed.at(f"notices[{place}].{name}", "must be printable")


def _make_row(
    mode: str, kind: ProviderKind, name: str, notice: ProviderNotice, now: Instant
) -> StoredNotice:
    digest = hashlib.sha256(notice.id.encode()).hexdigest()[:32]
    return StoredNotice(
        id=f"{mode}:{kind}:{name}:{digest}",
        mode=mode,
        kind=kind,
        provider=name,
        notice_id=notice.id,
        reference=notice.reference,
        received_at_ms=now,
        updated_at_ms=now,
    )
