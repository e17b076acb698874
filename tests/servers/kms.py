"""AWS KMS for tests: moto's server as a real process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3

ROOT = Path(__file__).resolve().parents[2]
REGION = "eu-west-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST", "AWS_SECRET_ACCESS_KEY": "kms-secret"}


class Kms:
    """A running server. Without `digests` it hashes digests once more, as moto does."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.kms_child", *arguments],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{self._process.stdout.readline().strip()}"
        self.client: Any = boto3.session.Session(
            CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
        ).client("kms", region_name=REGION, endpoint_url=self.url)

    def signer_url(self, prefix: str, *more: str) -> str:
        return "&".join([f"aws-kms://{REGION}/{prefix}?endpoint={self.url}", *more])

    def create_key(self, alias: str, spec: str = "ECC_SECG_P256K1") -> str:
        """A new key with an alias; its id."""
        made = self.client.create_key(KeySpec=spec, KeyUsage="SIGN_VERIFY")
        id: str = made["KeyMetadata"]["KeyId"]
        self.client.create_alias(AliasName=f"alias/{alias}", TargetKeyId=id)
        return id

    def set_fault(self, **fault: Any) -> int:
        """Let calls fail from now on; the number of calls since the last time."""
        request = Request(f"{self.url}/faults", json.dumps(fault).encode())
        with urlopen(request, timeout=10) as answer:
            return int(answer.read())

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()
