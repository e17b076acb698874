"""Certificates for the servers of the suite, made by the `openssl` command.

None of them is in the package: they would expire there, and their keys would be public.
"""

from __future__ import annotations

import atexit
import os
import shutil
import ssl
import subprocess
import tempfile
import unittest
from functools import cache
from pathlib import Path

import attrs

NAME = "partner.example"
OTHER_NAME = "other.example"
FOLDER_PREFIX = "payments-certificates-"

_CONFIGURATION = """
[req]
distinguished_name = subject
x509_extensions = authority
[subject]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
[ca]
default_ca = here
[here]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = anything
unique_subject = no
[anything]
commonName = supplied
[server]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:{name}
"""


@attrs.frozen
class Certificates:
    """An authority, and servers' certificates with their keys, each in one file."""

    ca_file: Path
    """The authority that a transport must trust."""

    good: Path
    """For NAME."""

    expired: Path
    """For NAME, by the same authority, expired yesterday."""

    self_signed: Path
    """For NAME, self-signed."""


@cache
def certificates() -> Certificates:
    """Made once per process. Raises unittest.SkipTest without `openssl`."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise unittest.SkipTest("the suite needs the command `openssl` to make certificates")
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "ca.cnf").write_text(_CONFIGURATION.format(name=NAME))
    (folder / "index.txt").touch()
    maker = _CertificateIssuer(openssl, folder)
    maker.issue_ca("authority")
    return Certificates(
        ca_file=folder / "authority.crt",
        good=maker.issue_server("good", "20200101000000Z", "20991231000000Z"),
        expired=maker.issue_server("expired", "20200101000000Z", "20210101000000Z"),
        self_signed=maker.issue_self_signed("self-signed"),
    )


def server_context(certificate: Path) -> ssl.SSLContext:
    """The TLS context of a server with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@attrs.frozen
class _CertificateIssuer:
    openssl: str
    folder: Path

    def issue_ca(self, name: str) -> None:
        self._generate_key(name)
        self._run_openssl(
            "req", "-x509", "-new", "-key", f"{name}.key", "-subj", "/CN=Suite",
            "-days", "3650", "-config", "ca.cnf", "-out", f"{name}.crt",
        )  # fmt: skip

    def issue_server(self, name: str, begins: str, ends: str) -> Path:
        self._generate_key(name)
        self._run_openssl(
            "req", "-new", "-key", f"{name}.key", "-subj", f"/CN={NAME}",
            "-config", "ca.cnf", "-out", f"{name}.csr",
        )  # fmt: skip
        self._run_openssl(
            "ca", "-batch", "-notext", "-config", "ca.cnf", "-extensions", "server",
            "-cert", "authority.crt", "-keyfile", "authority.key", "-in", f"{name}.csr",
            "-startdate", begins, "-enddate", ends, "-out", f"{name}.crt",
        )  # fmt: skip
        return self._bundle(name)

    def issue_self_signed(self, name: str) -> Path:
        self._generate_key(name)
        self._run_openssl(
            "req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN={NAME}",
            "-addext", f"subjectAltName=DNS:{NAME}", "-days", "3650", "-out", f"{name}.crt",
        )  # fmt: skip
        return self._bundle(name)

    def _generate_key(self, name: str) -> None:
        curve = "ec_paramgen_curve:prime256v1"
        self._run_openssl("genpkey", "-algorithm", "EC", "-pkeyopt", curve, "-out", f"{name}.key")

    def _bundle(self, name: str) -> Path:
        both = self.folder / f"{name}.pem"
        parts = (self.folder / f"{name}.{kind}" for kind in ("key", "crt"))
        both.write_text("".join(part.read_text() for part in parts))
        return both

    def _run_openssl(self, *arguments: str) -> None:
        done = subprocess.run(
            [self.openssl, *arguments],
            cwd=self.folder,
            env={**os.environ, "OPENSSL_CONF": str(self.folder / "ca.cnf")},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr}")
