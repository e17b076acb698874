"""What a rehearsal remembers in its file, so that the next run goes on where one has ended.

What the wallet signs is saved before it is sent: whenever a run is killed, the file has every
transaction that may be on the chain. It has no key, and no secret of the service.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from payments_core.clock import Instant


class SignedCall(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A transaction of the wallet: its hash, its bytes in hex, and its nonce."""

    hash: str
    raw: str
    nonce: int


class StepRun(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How a step went; `was_paused` if it took more than one run.

    `wei` is what its transactions cost; None if a node did not say it.
    """

    began_at_ms: Instant
    ended_at_ms: Instant | None = None
    was_paused: bool = False
    hashes: list[str] = []
    gas: int = 0
    wei: int | None = 0


class Rehearsal(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """One rehearsal. `run` is its name in idempotency keys, and of its account."""

    network: int
    app: str
    wallet: str
    asset: str
    amount: str
    run: str
    account_id: str = ""
    payment_id: str = ""
    vault: str = ""
    escrow: str = ""
    deposit_address: str = ""
    send_id: str = ""
    is_done: bool = False
    signed: dict[str, SignedCall] = {}
    steps: dict[str, StepRun] = {}

    @property
    def has_begun(self) -> bool:
        """Whether anything was created or sent for it, as far as is known."""
        return bool(self.signed) or "create" in self.steps

    def list_places(self) -> dict[str, str]:
        """The addresses where its funds may be, by what they are."""
        places = {
            "the wallet": self.wallet,
            "the escrow": self.escrow,
            "the vault": self.vault,
            "the deposit address": self.deposit_address,
        }
        return {what: address for what, address in places.items() if address}


class FileRefused(Exception):
    """Why a file is not that of a rehearsal."""


def load(path: Path) -> Rehearsal | None:
    """The rehearsal of a file; None if there is none. Raises FileRefused."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Rehearsal)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise FileRefused(f"{path} is not a file of a rehearsal: {error}") from error


def save(path: Path, rehearsal: Rehearsal) -> None:
    """Replace the file; after a crash it is the old one or the new one, as a whole."""
    unfinished = path.with_name(f".{path.name}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(rehearsal), indent=2) + b"\n")
        file.flush()
        os.fsync(descriptor)
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
