"""One signature of each signer, with the check of it, and the check of the curve library.

    python -m benchmarks.signers

moto's server, which plays AWS KMS, and SoftHSM 2 run on this machine: a network is not in it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from payments_core.chains.evm.signer_checks import require_sound_curve
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.loader import open_signer
from payments_core.chains.rotated_signer import OperatorSigner
from tests.servers.kms import CREDENTIALS, Kms
from tests.servers.softhsm import softhsm_or_skip

ROUNDS = 25
ENVIRONMENT = "env_bench"


def main() -> None:
    """Print milliseconds, the median of rounds."""
    os.environ.update(CREDENTIALS)
    kms = Kms("digests")
    try:
        with tempfile.TemporaryDirectory() as folder:
            kms.create_key(f"payments/{ENVIRONMENT}")
            hsm = softhsm_or_skip(Path(folder))
            hsm.create_token("payments")
            hsm.create_key("payments", f"payments/{ENVIRONMENT}")
            _report("file", _signing(LocalSigner.open(Path(folder) / "key")), 400)
            _report("aws-kms", _signing(open_signer(kms.signer_url("payments"))), 4)
            _report("pkcs11", _signing(open_signer(hsm.signer_url("payments", "payments"))), 100)
            _report("curve check", require_sound_curve, 10)
    finally:
        kms.stop()


def _signing(signer: OperatorSigner) -> Callable[[], object]:
    return lambda: signer.sign(ENVIRONMENT, os.urandom(32))


def _report(name: str, call: Callable[[], object], calls: int) -> None:
    call()  # it loads, connects and logs in
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - begun) / calls * 1_000)
    print(f"{name:12} {statistics.median(rounds):8.3f} ms")


if __name__ == "__main__":
    main()
