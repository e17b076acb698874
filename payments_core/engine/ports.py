"""The ports that operations and job handlers are made over, as one value."""

from __future__ import annotations

import attrs

from payments_core.clock import Clock
from payments_core.contracts.versions import Versions
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.tokens import Tokens
from payments_core.engine.audit import PROGRAM, Actor
from payments_core.engine.committer import Committer
from payments_core.engine.idempotency.record import RETENTION_MS
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import Entropy, system_entropy
from payments_core.networks import Networks, shipped_networks
from payments_core.storage.port import Storage
from payments_core.telemetry import NOOP_TELEMETRY, Telemetry


@attrs.frozen
class Ports:
    """The ports that every operation may need, and the values built directly on them.

    `storage` is read from; only `committer` writes business records. `clock` and `entropy` give
    time and randomness. `guarded_clock` is the same clock, for writers and for claims of jobs: it
    raises StorageUnavailable while the machine's clock is wrong. `identifiers` issues ids,
    `key_ring` seals secrets and `tokens` seals what browsers carry. `telemetry` receives reports.
    `versions` are the dated contracts, and `networks` the registry.
    `host` is who runs the program, for the audit trail.
    Chains are not among them: an operation that reads or moves funds takes them as a separate
    argument.
    """

    storage: Storage
    committer: Committer
    clock: Clock
    guarded_clock: Clock
    identifiers: Identifiers
    entropy: Entropy
    key_ring: KeyRing
    tokens: Tokens
    telemetry: Telemetry
    versions: Versions
    networks: Networks
    host: Actor

    @classmethod
    def over(
        cls,
        storage: Storage,
        key_ring: KeyRing,
        clock: Clock,
        *,
        entropy: Entropy = system_entropy,
        telemetry: Telemetry = NOOP_TELEMETRY,
        response_retention_ms: int = RETENTION_MS,
        guarded_clock: Clock | None = None,
        versions: Versions | None = None,
        networks: Networks | None = None,
        host: Actor = PROGRAM,
    ) -> Ports:
        """The ports over a storage, with their own committer.

        Unless given, `guarded_clock` is `clock`, and `networks` are the shipped mainnets.
        """
        guarded_clock = guarded_clock or clock
        identifiers = Identifiers(clock, entropy)
        return cls(
            storage=storage,
            committer=Committer(
                storage,
                guarded_clock,
                identifiers,
                key_ring,
                telemetry,
                response_retention_ms,
            ),
            clock=clock,
            guarded_clock=guarded_clock,
            identifiers=identifiers,
            entropy=entropy,
            key_ring=key_ring,
            tokens=Tokens(key_ring),
            telemetry=telemetry,
            versions=versions or Versions(),
            networks=shipped_networks().keep_served(()) if networks is None else networks,
            host=host,
        )
