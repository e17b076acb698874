"""What a sandbox keeps on disk, and its first start: key ring, database, app, keys.

The order makes a first start safe to kill anywhere. Each step is whole or absent, and each next
start does what is missing: lock, key ring, database, app, key, and `sandbox.json` last. A key
whose secret never reached `sandbox.json` is known to nobody; the next start revokes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from payments_core.credentials.keyring import KeyRing, WeakKeyRing
from payments_core.credentials.secrets import SecretKind
from payments_core.errors import ResourceConflict, Unauthorized
from payments_core.evolve import evolve
from payments_core.service import PaymentsService
from payments_core.storage.port import DIRECTORY
from payments_core.tenants.record import Environment, PartnerName, operator_id

MODE: Final = "sandbox"
PARTNER_ID = "sandbox"
KEY_NAME = "payments sandbox"
API_KEY_NAME = "sandbox page"
OPERATOR = "operator"
"""The name with which one logs in to a sandbox's dashboard."""

FOLDER_MODE = 0o700
FILE_MODE = 0o600


class FolderRefused(Exception):
    """The data folder cannot be used; the text says why, and what to do."""


@attrs.frozen(kw_only=True)
class SandboxKeys:
    """The app and the keys of a sandbox: the content of `sandbox.json`.

    `api_key` is publishable, for `x-sdk-key`; a sandbox of an earlier release has none yet.
    """

    app_id: str
    partner_id: str
    environment_id: str
    app_secret: str = attrs.field(repr=False)
    operator_password: str = attrs.field(repr=False)
    api_key: str | None = None

    def render_document(self) -> dict[str, Any]:
        """The keys by their names on the wire. Keys that this release lacks are null."""
        return {
            "appId": self.app_id,
            "partnerId": self.partner_id,
            "environmentId": self.environment_id,
            "appSecret": self.app_secret,
            "restrictedKeys": {},
            "apiKey": self.api_key,
            "operator": (
                {"username": OPERATOR, "password": self.operator_password}
                if self.operator_password
                else None
            ),
        }


@attrs.frozen
class DataFolder:
    """The folder of one sandbox. Use it under `lock`."""

    path: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "payments.db"

    @property
    def key_file(self) -> Path:
        """The master key ring, which seals what the database holds."""
        return self.path / "key-ring"

    @property
    def keys_file(self) -> Path:
        """The app's id and secret."""
        return self.path / "sandbox.json"

    @property
    def operator_key(self) -> Path:
        """The secret of the operators on a real node; it exists only with `--anvil`."""
        return self.path / "operator.key"

    @property
    def chain_state(self) -> Path:
        """The chain of a real node, as anvil writes and reads it."""
        return self.path / "anvil-state.json"

    def require_kind(self, *, anvil: bool) -> None:
        """Raise FolderRefused if the folder's records refer to the other kind of chains."""
        if not anvil and self.operator_key.exists():
            raise FolderRefused(
                f"{self.path} was created with --anvil, and its records refer to that "
                "chain. Start it with --anvil, or start over in another folder with --data."
            )
        if not anvil or not self.database.exists():
            return
        if not self.operator_key.exists() and not self.chain_state.exists():
            raise FolderRefused(
                f"{self.path} was created without --anvil, and its records refer to simulated "
                "chains. Start it without --anvil, or start over in another folder with --data."
            )
        if not self.operator_key.exists():
            raise FolderRefused(
                f"{self.operator_key} is missing, and without it nothing in {self.database.name} "
                "can be paid out. Restore it, or start over in another folder with --data."
            )

    def save_chain(self, state: bytes) -> None:
        """Replace the file of the chain, which is complete at any time. Raises OSError."""
        _write_private_file(self.chain_state, state)

    @contextmanager
    def lock(self) -> Iterator[DataFolder]:
        """Create the folder if needed, and be its only sandbox. Raises FolderRefused.

        Two would put different addresses in their links, and only one of them would answer. The
        lock ends with the process, however it ends.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=FOLDER_MODE, exist_ok=True)
            if self.path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise FolderRefused(
                    f"Other users can write to {self.path}, and could replace the keys in it. "
                    f"Change that with: chmod 700 {self.path}"
                )
            lock = os.open(self.path / "sandbox.lock", os.O_RDWR | os.O_CREAT, FILE_MODE)
        except OSError as error:
            raise FolderRefused(f"{self.path} cannot be used: {error.strerror}.") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderRefused(
                    f"Another sandbox is running in {self.path}. Stop it, or choose another "
                    "folder with --data."
                ) from None
            yield self
        finally:
            os.close(lock)

    def open_key_ring(self) -> KeyRing:
        """The master keys, made at the first start. Raises FolderRefused."""
        if not self.key_file.exists():
            if self.database.exists():
                raise FolderRefused(
                    f"{self.key_file} is missing, and without it {self.database.name} cannot be "
                    "read. Restore it, or start over in another folder with --data."
                )
            _write_private_file(self.key_file, f"{KeyRing.generate()}\n".encode())
        try:
            return KeyRing.parse(self.key_file.read_text(encoding="ascii"))
        except (OSError, UnicodeDecodeError, WeakKeyRing) as error:
            raise FolderRefused(f"{self.key_file} cannot be read: {error}.") from error

    def open_keys(self, service: PaymentsService) -> SandboxKeys:
        """The app and its key, from `sandbox.json`, or created now. Raises FolderRefused."""
        known = self._read_keys()
        if known is not None and _is_accepted(service, known):
            made = known
            if known.api_key is None:
                environment = service.tenants.get_environment(known.environment_id)
                key = _replace_key(service, environment, "publishable", API_KEY_NAME)
                made = evolve(made, api_key=key)
            if not known.operator_password or not _has_operator(service):
                made = evolve(made, operator_password=_make_operator(service, known))
            if made == known:
                return known
        else:
            made = _make_keys(service)
        _write_private_file(
            self.keys_file, f"{json.dumps(made.render_document(), indent=2)}\n".encode()
        )
        return made

    def _read_keys(self) -> SandboxKeys | None:
        try:
            document = json.loads(self.keys_file.read_text(encoding="utf-8"))
            return SandboxKeys(
                app_id=document["appId"],
                partner_id=document["partnerId"],
                environment_id=document["environmentId"],
                app_secret=document["appSecret"],
                api_key=document.get("apiKey"),
                operator_password=(document.get("operator") or {}).get("password", ""),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FolderRefused(
                f"{self.keys_file} cannot be read. Delete it to get a new key; the old key "
                "then stops working."
            ) from error


def _is_accepted(service: PaymentsService, keys: SandboxKeys) -> bool:
    try:
        service.tenants.authenticate(keys.app_id, keys.app_secret, mode=MODE)
    except Unauthorized:
        return False
    return True


def _make_keys(service: PaymentsService) -> SandboxKeys:
    """A new key of the folder's one app, which is created if needed, and a password."""
    name = service.parts.ports.storage.read(
        DIRECTORY, lambda snapshot: snapshot.get(PartnerName, PARTNER_ID)
    )
    if name is None:
        app = service.tenants.create_app("Sandbox", PARTNER_ID, modes=(MODE,))
    else:
        app = service.tenants.get_app(name.app_id)
    environment = service.tenants.get_environment(app.environments[MODE])
    secret = _replace_key(service, environment, "standard", KEY_NAME)
    keys = SandboxKeys(
        app_id=app.id,
        partner_id=app.partner_id,
        environment_id=environment.id,
        app_secret=secret,
        api_key=_replace_key(service, environment, "publishable", API_KEY_NAME),
        operator_password="",
    )
    return evolve(keys, operator_password=_make_operator(service, keys))


def _has_operator(service: PaymentsService) -> bool:
    return service.operators.find(operator_id(MODE, OPERATOR)) is not None


def _make_operator(service: PaymentsService, keys: SandboxKeys) -> str:
    """A new password of the sandbox's operator; empty if somebody created another operator."""
    if _has_operator(service):
        return service.operators.reset_password(OPERATOR, mode=MODE).password
    try:
        return service.operators.create(keys.environment_id, OPERATOR).password
    except ResourceConflict:
        return ""


def _replace_key(
    service: PaymentsService, environment: Environment, kind: SecretKind, name: str
) -> str:
    """A new key in place of keys of that name that a start has created and lost."""
    for lost in environment.keys:
        if lost.name == name and lost.revoked_at_ms is None:
            service.tenants.revoke_key(environment.id, lost.id)
    _, secret = service.tenants.create_key(environment.id, kind, name)
    return secret


def _write_private_file(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; after a crash it is complete or absent."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
