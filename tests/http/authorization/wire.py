"""A process of one mode behind plain WSGI, without the checks that slow `ApiHarness` down."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from payments_core.service import PaymentsService
from payments_core_http.app import create_app
from tests.http.api_harness import Seen


class Wire:
    """Calls a service in its mode."""

    def __init__(self, service: PaymentsService, mode: str) -> None:
        self.service = service
        self.mode = mode
        self._app = create_app(service, mode=mode)

    def call(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Any = None,
        form: Mapping[str, str] | None = None,
    ) -> Seen:
        path, _, query = target.partition("?")
        sent = b"" if body is None else json.dumps(body).encode()
        if form is not None:
            sent = urlencode(form).encode()
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SCRIPT_NAME": "",
            "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(sent), "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
            "REMOTE_ADDR": "127.0.0.1",
        }  # fmt: skip
        if sent:
            environ["CONTENT_TYPE"] = (
                "application/json" if form is None else "application/x-www-form-urlencoded"
            )
            environ["CONTENT_LENGTH"] = str(len(sent))
        for name, value in headers.items():
            environ["HTTP_" + name.upper().replace("-", "_")] = value
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, given: list[tuple[str, str]], *_: Any) -> Any:
            started.append((status, given))

        answered = b"".join(self._app(environ, start))
        [(status, given)] = started
        return Seen(int(status[:3]), {name.lower(): value for name, value in given}, answered)
