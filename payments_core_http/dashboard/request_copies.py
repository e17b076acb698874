"""A recorded request as a command of curl, and as a test of pytest.

Credentials are not recorded. In their place are environment variables, as the tables name them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from payments_core.clock import format_iso
from payments_core.tenants.request_log import LoggedRequest

BODY_FILE = "body.json"
"""The file from which a copy reads a body that is not kept."""

_BEARER = {
    "bearer_key": "PAYMENTS_APP_SECRET",
    "client_token": "PAYMENTS_ACCESS_TOKEN",
    "session_token": "PAYMENTS_SESSION_TOKEN",
}
_SECRET = "PAYMENTS_PAYMENT_SECRET"

VARIABLES: Mapping[str, tuple[str, ...]] = {
    "server_key": ("PAYMENTS_APP_ID", "PAYMENTS_APP_SECRET"),
    **{kind: (name,) for kind, name in _BEARER.items()},
}
"""The environment variables of each kind of credential."""


def list_variables(request: LoggedRequest) -> tuple[str, ...]:
    """What must be set before a copy runs."""
    secret = (_SECRET,) if request.has_payment_secret else ()
    return (*VARIABLES.get(request.credential, ()), *secret)


def write_curl(request: LoggedRequest, public_url: str) -> str:
    """The command, for a POSIX shell."""
    options = [f"-X {request.method}" if request.method != "HEAD" else "--head"]
    if request.credential == "server_key":
        options.append('-u "$PAYMENTS_APP_ID:$PAYMENTS_APP_SECRET"')
    elif request.credential in _BEARER:
        options.append(f'-H "Authorization: Bearer ${_BEARER[request.credential]}"')
    if request.has_payment_secret:
        options.append(f'-H "X-Service-Payment-Secret: ${_SECRET}"')
    if request.has_idempotency_key:
        options.append('-H "Idempotency-Key: copy-$(date +%s)-$$"')
    if _has_body(request):
        options.append("-H 'Content-Type: application/json'")
        data = f"@{BODY_FILE}" if request.body is None else shlex.quote(request.body)
        options.append(f"-d {data}")
    return " \\\n  ".join([f"curl {shlex.quote(public_url + _write_target(request))}", *options])


def write_pytest(request: LoggedRequest, public_url: str) -> str:
    """A module with one test, which needs only the standard library."""
    imports = ["import os", *(["import uuid"] if request.has_idempotency_key else [])]
    if request.credential == "server_key":
        imports.append("from base64 import b64encode")
    imports += [
        *(["from pathlib import Path"] if _has_body(request) and request.body is None else []),
        "from urllib.error import HTTPError",
        "from urllib.request import Request, urlopen",
    ]
    if request.body is not None or _names_error(request):
        imports.insert(0, "import json")
    words = f"{request.method} {request.path} was answered {request.status}"
    lines = [
        *imports,
        "",
        f"URL = os.environ.get('PAYMENTS_URL', {public_url!r})",
        *(
            [f"BODY = {_write_literal(json.loads(request.body))}"]
            if request.body is not None
            else []
        ),
        "",
        "",
        f"def test_{_name_test(request)}() -> None:",
        f"    # {ascii(words)[1:-1]} at {format_iso(request.at_ms)}: {request.id}",
        *_write_request(request),
        "    try:",
        "        with urlopen(request, timeout=30) as answer:",
        "            status, body = answer.status, answer.read()",
        "    except HTTPError as refused:",
        "        status, body = refused.code, refused.read()",
        f"    assert status == {request.status}, body",
    ]
    if _names_error(request):
        lines.append(f"    assert json.loads(body)['error']['code'] == {request.error_code!r}")
    return "\n".join(lines) + "\n"


def _write_request(request: LoggedRequest) -> Iterator[str]:
    yield "    request = Request("
    yield f"        URL + {_write_target(request)!r},"
    yield f"        method={request.method!r},"
    yield "        headers={"
    if request.credential == "server_key":
        pair = "{PAYMENTS_APP_ID}:{PAYMENTS_APP_SECRET}"
        yield "            'Authorization': 'Basic '"
        yield f"            + b64encode('{pair}'.format_map(os.environ).encode()).decode(),"
    elif request.credential in _BEARER:
        variable = _BEARER[request.credential]
        yield f"            'Authorization': 'Bearer ' + os.environ['{variable}'],"
    if request.has_payment_secret:
        yield f"            'X-Service-Payment-Secret': os.environ['{_SECRET}'],"
    if request.has_idempotency_key:
        yield "            'Idempotency-Key': str(uuid.uuid4()),"
    if _has_body(request):
        yield "            'Content-Type': 'application/json',"
    yield "        },"
    if request.body is not None:
        yield "        data=json.dumps(BODY).encode(),"
    elif _has_body(request):
        yield f"        data=Path({BODY_FILE!r}).read_bytes(),"
    yield "    )"


def _has_body(request: LoggedRequest) -> bool:
    return request.body is not None or request.body_bytes != 0


def _names_error(request: LoggedRequest) -> bool:
    return request.error_code is not None and request.path.startswith("/v2/")


def _write_target(request: LoggedRequest) -> str:
    path = quote(request.path, safe="/")
    query = quote(request.query, safe="%=&+-._~:,[]")
    return f"{path}?{query}" if query else path


def _write_literal(value: Any, indent: str = "") -> str:
    """A JSON value as a literal of Python, a line for each part."""
    inner = f"{indent}    "
    if isinstance(value, dict) and value:
        parts = [f"{name!r}: {_write_literal(one, inner)}" for name, one in value.items()]
        return "\n".join(["{", *(f"{inner}{part}," for part in parts), f"{indent}}}"])
    if isinstance(value, list) and value:
        parts = [_write_literal(one, inner) for one in value]
        return "\n".join(["[", *(f"{inner}{part}," for part in parts), f"{indent}]"])
    return repr(value)


def _name_test(request: LoggedRequest) -> str:
    """Method and path as words, without characters that a name may not contain."""
    return re.sub(r"[^a-z0-9]+", "_", f"{request.method} {request.path}".lower()).strip("_")[:80]
