"""The entries of refused attempts to prove who somebody is: passwords and codes that are wrong."""

from __future__ import annotations

import hashlib
from contextlib import suppress

from payments_core.clock import MINUTE
from payments_core.engine.audit import Actor, CallSource, Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.ports import Ports
from payments_core.errors import ResourceConflict
from payments_core.storage.port import DIRECTORY
from payments_core.tenants.record import Operator


def record_refusal(
    ports: Ports, operation: str, operator: Operator | None, *, mode: str, source: CallSource
) -> None:
    """Write a refused attempt into the directory, whoever's the name is: an attempt with a name
    that nobody has takes as long. Such a name is not stored, since it may be a password.

    The attempts of one minute from one address are one entry, so that guesses cannot fill the
    storage. Raises Unavailable.
    """
    owner = None if operator is None else operator.environment_id
    minute = ports.clock.real_now() // MINUTE
    told = f"{operation}\n{owner}\n{source.address}\n{minute}"
    trace = Trace(
        Actor("operator", None if operator is None else operator.username),
        operation,
        (),
        source,
        environment_id=owner,
        outcome="refused",
        entry_id=f"audit_{hashlib.sha256(told.encode()).hexdigest()[:24]}",
    )
    with suppress(ResourceConflict):
        ports.committer.commit(
            WorkerAuthority(DIRECTORY, mode, trace),
            lambda tx, id_sequence: Decision(
                None, refusals={"id": ResourceConflict("It is recorded.")}
            ),
        )
