"""An HSM for tests: tokens of SoftHSM 2 in a folder of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pkcs11
import pytest
from pkcs11 import Attribute, KeyType
from pkcs11.util.ec import encode_named_curve_parameters

PLACES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/opt/homebrew/lib/softhsm/libsofthsm2.so",
)
PIN = "pin-of-user-1234"
SO_PIN = "pin-of-officer-5678"


class SoftHsm:
    """The module reads its configuration once in a process: there is one folder of tokens."""

    def __init__(self, folder: Path, module: Path) -> None:
        self.folder = folder
        self.module = module
        self.pin_file = folder / "pin"
        self.pin_file.write_text(f"{PIN}\n")
        self.pin_file.chmod(0o600)

    def create_token(self, label: str) -> None:
        subprocess.run(
            ["softhsm2-util", "--init-token", "--free", "--label", label,
             "--pin", PIN, "--so-pin", SO_PIN],
            check=True, capture_output=True,
        )  # fmt: skip
        # A module that is loaded does not see it yet.
        pkcs11.lib(str(self.module)).reinitialize()

    def create_key(self, token: str, label: str, curve: str = "secp256k1") -> None:
        """A new pair of keys, by a session of its own, without a login that lasts."""
        subprocess.run(
            [sys.executable, "-m", "tests.servers.softhsm", str(self.module), token, label,
             curve],
            check=True, capture_output=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def signer_url(self, token: str, prefix: str, *more: str) -> str:
        place = f"pkcs11:token={token};object={prefix}?module-path={self.module}"
        return "&".join([place, f"pin-source=file:{self.pin_file}", *more])


def softhsm_or_skip(folder: Path) -> SoftHsm:
    """The HSM; skips the test where SoftHSM 2 is not installed, which CI never accepts."""
    module = next((Path(one) for one in PLACES if Path(one).exists()), None)
    if module is None or shutil.which("softhsm2-util") is None:
        if os.environ.get("CI") and os.geteuid() == 0:
            pytest.fail("SoftHSM 2 is missing: .ci/run installs it")
        pytest.skip("SoftHSM 2 is not installed: apt-get install softhsm2")
    tokens = folder / "tokens"
    tokens.mkdir()
    settings = folder / "softhsm2.conf"
    settings.write_text(
        f"directories.tokendir = {tokens}\nobjectstore.backend = file\nlog.level = ERROR\n"
    )
    os.environ["SOFTHSM2_CONF"] = str(settings)
    return SoftHsm(folder, module)


def make_pair(token: Any, label: str, curve: str) -> None:
    """Generate a key in the token."""
    with token.open(rw=True, user_pin=PIN) as session:
        named = {Attribute.EC_PARAMS: encode_named_curve_parameters(curve)}
        domain = session.create_domain_parameters(KeyType.EC, named, local=True)
        domain.generate_keypair(label=label, store=True)


if __name__ == "__main__":
    given_module, given_token, given_label, given_curve = sys.argv[1:]
    found = pkcs11.lib(given_module).get_token(token_label=given_token)
    make_pair(found, given_label, given_curve)
