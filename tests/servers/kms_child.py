"""moto's server, which plays AWS KMS, as a process of its own: prints its port, and serves.

moto 5.2 hashes what it signs, also if it is a digest already; the argument `digests` repairs that
as KMS does it. A test makes calls fail by `POST /faults` with `code`, `status` and `times`, or
`delay_s`; the answer is the number of calls since the last one.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from moto.kms.responses import KmsResponse
from moto.kms.utils import ECDSAPrivateKey
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

_call = threading.local()


def sign_digests() -> None:
    """Let `MessageType=DIGEST` be honoured."""
    answer, hash_and_sign = KmsResponse.sign, ECDSAPrivateKey.sign

    def answer_noting_type(self: Any) -> str:
        _call.is_digest = self._get_param("MessageType") == "DIGEST"
        return answer(self)

    def sign(self: Any, message: bytes, signing_algorithm: str) -> bytes:
        if not _call.is_digest:
            return hash_and_sign(self, message, signing_algorithm)
        prehashed = ec.ECDSA(utils.Prehashed(hashes.SHA256()))
        return bytes(self.private_key.sign(message, prehashed))

    KmsResponse.sign = answer_noting_type  # type: ignore[method-assign]
    ECDSAPrivateKey.sign = sign  # type: ignore[method-assign]


class Faulty:
    """The application; its next calls fail as a test has asked for."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self.app = app
        self.fault: dict[str, Any] = {}
        self.calls = 0

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/faults":
            text = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            self.fault, before, self.calls = json.loads(text), self.calls, 0
            start("200 OK", [("Content-Type", "application/json")])
            return [str(before).encode()]
        self.calls += 1
        time.sleep(self.fault.get("delay_s", 0))
        if self.fault.get("times", 0) <= 0:
            return self.app(environ, start)
        self.fault["times"] -= 1
        body = json.dumps({"__type": self.fault["code"], "message": "as a test has asked for"})
        start(f"{self.fault['status']} Fault", [("Content-Type", "application/x-amz-json-1.1")])
        return [body.encode()]


if __name__ == "__main__":
    if sys.argv[1:] == ["digests"]:
        sign_digests()
    app = Faulty(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.port, flush=True)
    server.serve_forever()
