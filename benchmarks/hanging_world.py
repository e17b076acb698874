"""`payments`, in a world where some things hang: `python -m benchmarks.hanging_world serve …`.

A name below `.hang.invalid` has a name server that never answers, and with HANG_BALANCES in the
environment no node answers a balance. Each gives up after as long as the real one would. A provider
of KYC reports by webhook at `/providers/kyc/flooded`.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from examples.custom_kyc.adapter import ExampleKyc
from payments_core.accounts.verification.simulated import SimulatedKyc
from payments_core.chains.port import ChainUnavailable, FinalBalances
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core_http.cli import main

NAMES = ".hang.invalid"
NAME_S = 20.0
"""glibc asks two servers twice, for five seconds each."""
NODE_S = 10.0


KYC_SECRET = b"between the provider and us"


class ReportingKyc(ExampleKyc):
    """The example's, without a provider: it reads notices."""

    name = "flooded"


def open_door() -> None:
    """Let the sandbox's provider of KYC report by webhook."""
    reader = ReportingKyc("http://kyc.invalid", "key", KYC_SECRET)
    SimulatedKyc.name = reader.name  # type: ignore[attr-defined]
    SimulatedKyc.read_notices = staticmethod(reader.read_notices)  # type: ignore[attr-defined]


def hang_at_names() -> None:
    """Let look-ups of those names hang."""
    resolve = socket.getaddrinfo

    def hang(host: Any, *args: Any, **more: Any) -> Any:
        if str(host).endswith(NAMES):
            time.sleep(NAME_S)
            raise socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution")
        return resolve(host, *args, **more)

    socket.getaddrinfo = hang


def hang_at_balances() -> None:
    """Let every node hang that is asked for a balance."""

    def hang(
        self: SimulatedChain, token_addresses: Sequence[str], holders: Sequence[str]
    ) -> Mapping[str, FinalBalances]:
        time.sleep(NODE_S)
        raise ChainUnavailable("the request timed out")

    SimulatedChain.token_balances = hang  # type: ignore[method-assign]


if __name__ == "__main__":
    open_door()
    hang_at_names()
    if os.environ.get("HANG_BALANCES"):
        hang_at_balances()
    main()
