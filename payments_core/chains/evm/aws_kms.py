"""Signs with keys in AWS KMS: `aws-kms://eu-west-1/payments`. See docs/how-to/keys.md.

The key of an environment is the one that the alias `alias/payments/ENVIRONMENT` names. boto3 finds
the credentials as in any other program of AWS: nothing secret is in the URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from payments_core.chains.evm.key_urls import key_name, split_pins
from payments_core.chains.evm.signers import RemoteSigner, from_der
from payments_core.chains.port import ChainUnavailable, SignerRefused

KEY_SPEC = "ECC_SECG_P256K1"
ATTEMPTS = 3
"""Of a call that is throttled or not answered; botocore waits up to 1 and 2 s between them."""
CONNECT_S = 1
ANSWER_S = 3
MAX_CONNECTIONS = 32

_EXPECTED = "expected aws-kms://REGION/PREFIX, such as aws-kms://eu-west-1/payments"
_REGION = re.compile("[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}")
_PREFIX = re.compile("[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")

_SPKI = bytes.fromhex("3056301006072a8648ce3d020106052b8104000a034200")
"""Before the 65 bytes of a public key of secp256k1, in the form of RFC 5480."""

_ASK_AGAIN = frozenset({
    "DependencyTimeoutException", "InternalFailure", "KeyUnavailableException",
    "KMSInternalException", "RequestTimeout", "RequestTimeoutException", "ServiceUnavailable",
    "Throttling", "ThrottlingException", "TooManyRequestsException",
})  # fmt: skip
"""Codes of errors that pass by themselves."""

T = TypeVar("T")


def open_url(url: str) -> RemoteSigner:
    """The signer of `aws-kms://REGION/PREFIX`; no call to KMS is made yet.

    Parameters: `endpoint`, the URL of an endpoint of your own, such as that of a VPC; and
    `env_…=0x…`, the address of an environment's operator, which is then not asked for.
    Raises ValueError, and ImportError without the packages of the extra `aws-kms`.
    """
    parts = urlsplit(url)
    region, prefix = parts.netloc, parts.path.removeprefix("/")
    if parts.fragment or not _REGION.fullmatch(region) or not _PREFIX.fullmatch(prefix):
        raise ValueError(_EXPECTED)
    if prefix.startswith("aws/"):
        raise ValueError("the prefix aws/ belongs to AWS itself")
    given, pins = split_pins(parse_qsl(parts.query, keep_blank_values=True), ("endpoint",))
    return RemoteSigner(KmsKeys(_connect(region, given), prefix), pins)


class KmsKeys:
    """The keys of one region whose aliases begin with a prefix. Has PublicKeys."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """See KeyService."""

        def ask(alias: str) -> Any:
            return self._client.sign(
                KeyId=alias,
                Message=digest,
                MessageType="DIGEST",  # or it would be hashed once more
                SigningAlgorithm="ECDSA_SHA_256",
            )

        return from_der(self._call(environment_id, ask)["Signature"])

    def public_key(self, environment_id: str) -> bytes:
        """See PublicKeys."""
        found = self._call(environment_id, lambda alias: self._client.get_public_key(KeyId=alias))
        form = bytes(found["PublicKey"])
        if len(form) != len(_SPKI) + 65 or not form.startswith(_SPKI):
            alias = f"alias/{key_name(self._prefix, environment_id)}"
            raise SignerRefused(f"the key {alias} is not an {KEY_SPEC} key")
        return form[len(_SPKI) :]

    def _call(self, environment_id: str, ask: Callable[[str], T]) -> T:
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            PartialCredentialsError,
        )

        alias = f"alias/{key_name(self._prefix, environment_id)}"
        try:
            return ask(alias)
        except ClientError as error:  # it answered
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in _ASK_AGAIN or status >= 500:
                raise ChainUnavailable(f"AWS KMS cannot use {alias} now: {code}") from error
            raise SignerRefused(f"AWS KMS refuses {alias}: {code}") from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise SignerRefused("there are no AWS credentials for KMS") from error
        except BotoCoreError as error:  # it did not answer
            raise ChainUnavailable(f"AWS KMS does not answer: {type(error).__name__}") from error


def _connect(region: str, given: Mapping[str, str]) -> Any:
    """A client, which threads may share."""
    import boto3
    from botocore.config import Config

    endpoint = given.get("endpoint")
    if endpoint is not None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ValueError("endpoint must be an http:// or https:// URL without a password")
    config = Config(
        connect_timeout=CONNECT_S,
        read_timeout=ANSWER_S,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=MAX_CONNECTIONS,
    )
    return boto3.session.Session().client(
        "kms", region_name=region, endpoint_url=endpoint, config=config
    )
