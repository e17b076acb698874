"""Operators: who may log in to an environment's dashboard (contract §2).

One login for each environment, created and changed by the deployment's operator. A password is made
here and shown once; only its Argon2id hash is stored.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Sequence

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    NotFound,
    ResourceConflict,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.storage.port import DIRECTORY, Position, Transaction
from payments_core.tenants.record import Environment, Operator, operator_id
from payments_core.validation.fields import Credential

PASSWORD_BYTES = 18
"""144 random bits, in 24 characters: nobody can guess it, at any cost of the hash."""

MAX_PASSWORD_CHARACTERS = 256
"""No password is longer; longer texts are not hashed."""

MAX_VERIFICATIONS = 2
"""The maximum number of passwords hashed at the same time: each needs the memory of a hash."""

_USERNAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{1,62}[a-z0-9]")


@attrs.frozen
class HashCost:
    """The cost of a hash: the number of passes, and the bytes of memory for each log-in.

    The default is libsodium's for interactive use: 64 MiB, about a tenth of a second.
    """

    passes: int = 2
    memory_bytes: int = 64 * 2**20


@attrs.frozen
class NewPassword:
    """An operator with the password, which is shown only here.

    >>> renewed = service.operators.reset_password("ann", mode="sandbox")
    >>> service.operators.verify("ann", renewed.password, mode="sandbox").username
    'ann'
    """

    __repr__ = brief_repr

    operator: Operator
    password: str = attrs.field(repr=False)


class Operators:
    """Creates operators, and authenticates them.

    >>> ann = service.operators.create(app.environments["sandbox"], "ann")
    >>> service.operators.verify("ann", ann.password, mode="sandbox").username
    'ann'
    """

    def __init__(self, ports: Ports, cost: HashCost | None = None) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._entropy = ports.entropy
        self._host = ports.host
        self._cost = cost or HashCost()
        self._nobodys_hash: str | None = None
        self._verifying = threading.BoundedSemaphore(MAX_VERIFICATIONS)

    def create(self, environment_id: str, username: str) -> NewPassword:
        """The one operator of an environment, and the password.

        Names are of a-z, 0-9 and . _ @ + -, and each mode has its own. Raises NotFound,
        ValidationFailed, and ResourceConflict if the name is taken or there is already an operator.
        """
        if not _USERNAME.fullmatch(username):
            raise ValidationFailed.at("username", "must be 3 to 64 of a-z, 0-9 and . _ @ + -")
        environment = self._storage.read(
            environment_id, lambda snapshot: snapshot.get(Environment, environment_id)
        )
        if environment is None:
            raise NotFound("environment")
        if (known := self._find_operator_of(environment_id)) is not None:
            raise _has_operator(f", {known.username}")
        password, now = self._new_password(), self._clock.now()
        operator = Operator(
            id=operator_id(environment.mode, username),
            username=username,
            mode=environment.mode,
            environment_id=environment_id,
            password_hash=self._hash(password),
            password_set_at_ms=now,
            created_at_ms=now,
        )
        self._committer.commit(
            self._acting("operators.create", environment_id),
            lambda tx, id_sequence: Decision(
                None,
                inserts=(operator,),
                refusals={
                    "id": ResourceConflict(f"The operator's name {username} is taken."),
                    "environment": _has_operator(),
                },
            ),
        )
        return NewPassword(operator, password)

    def list(self) -> Sequence[Operator]:
        """All operators, in the order in which they were made.

        An operator that cannot be read is skipped with an alarm.
        """
        found: list[Operator] = []
        after: Position | None = None
        while True:
            page = self._storage.read(
                DIRECTORY,
                lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                    Operator, "by_created", after=after, limit=100, skip_damaged=True
                ),
            )
            found += page.records
            after = page.next
            if after is None:
                return tuple(found)

    def reset_password(self, username: str, *, mode: str) -> NewPassword:
        """Replace the password; the previous one is no longer valid. Raises NotFound."""
        known = self._require_operator(username, mode)
        password = self._new_password()
        hashed, now = self._hash(password), self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Operator]:
            stored = tx.get(Operator, known.id, for_update=True)
            if stored is None or stored.environment_id != known.environment_id:
                raise NotFound("operator")
            changed = evolve(stored, password_hash=hashed, password_set_at_ms=now)
            return Decision(changed, replaces=(changed,))

        acting = self._acting("operators.reset", known.environment_id)
        return NewPassword(self._committer.commit(acting, decide), password)

    def remove(self, username: str, *, mode: str) -> Operator:
        """Delete an operator, and return the deleted record. Raises NotFound."""
        known = self._require_operator(username, mode)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            stored = tx.get(Operator, known.id, for_update=True)
            return Decision(None, deletes=() if stored is None else (stored,))

        self._committer.commit(self._acting("operators.remove", known.environment_id), decide)
        return known

    def verify(self, username: Credential, password: Credential, *, mode: str) -> Operator:
        """The operator with this name and password.

        An unknown name takes as long as a wrong password. Raises Unauthorized, and
        Unavailable while MAX_VERIFICATIONS others are in progress.
        """
        if not self._verifying.acquire(blocking=False):
            raise Unavailable()
        try:
            return self._verify(username, password, mode)
        finally:
            self._verifying.release()

    def find(self, id: str) -> Operator | None:
        """The operator of that id, or None."""
        return self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(Operator, id))

    def _verify(self, username: str, password: str, mode: str) -> Operator:
        nobodys = self._decoy_hash()
        fits = 0 < len(password) <= MAX_PASSWORD_CHARACTERS
        operator = self.find_by_name(username, mode=mode)
        stored = operator.password_hash if operator and fits else nobodys
        right = _password_matches(stored, password if fits else "-")
        if operator is None or not right or not fits:
            raise Unauthorized()
        return operator

    def find_by_name(self, username: Credential, *, mode: str) -> Operator | None:
        """The operator of that name, or None."""
        return self.find(operator_id(mode, username)) if _USERNAME.fullmatch(username) else None

    def _require_operator(self, username: str, mode: str) -> Operator:
        operator = self.find_by_name(username, mode=mode)
        if operator is None:
            raise NotFound("operator")
        return operator

    def _acting(self, operation: str, environment_id: str) -> WorkerAuthority:
        """The authority of a change in the directory, whose audit entry is the environment's."""
        trace = Trace(self._host, operation, (environment_id,), environment_id=environment_id)
        return WorkerAuthority(DIRECTORY, "directory", trace)

    def _find_operator_of(self, environment_id: str) -> Operator | None:
        return next((one for one in self.list() if one.environment_id == environment_id), None)

    def _decoy_hash(self) -> str:
        """The hash of a password that nobody knows, made once."""
        if self._nobodys_hash is None:
            self._nobodys_hash = self._hash(self._new_password())
        return self._nobodys_hash

    def _new_password(self) -> str:
        return base64.urlsafe_b64encode(self._entropy(PASSWORD_BYTES)).decode()

    def _hash(self, password: str) -> str:
        from nacl.pwhash import argon2id

        hashed: bytes = argon2id.str(
            password.encode(), opslimit=self._cost.passes, memlimit=self._cost.memory_bytes
        )
        return hashed.decode()


def _has_operator(which: str = "") -> ResourceConflict:
    return ResourceConflict(
        f"The environment already has an operator{which}. Reset the password, or remove the"
        " operator first."
    )


def _password_matches(stored: str, password: str) -> bool:
    from nacl.exceptions import InvalidkeyError
    from nacl.pwhash import argon2id

    try:
        return bool(argon2id.verify(stored.encode(), password.encode("utf-8", "replace")))
    except InvalidkeyError:
        return False
