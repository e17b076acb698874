"""The view that serves the API and its pages below the path where the project mounts `urls`.

It passes a request of Django on to the WSGI application as the server sent it, under WSGI and under
ASGI. A body that Django would not see, in chunks, arrives too: an empty refund would refund
everything.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.core.exceptions import RequestDataTooBig
from django.db import connections
from django.http import HttpResponse
from django.http.request import RawPostDataException, UnreadablePostError
from django.utils.cache import patch_cache_control
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt

from payments_core_http.django.process import get_application

if TYPE_CHECKING:
    from django.http import HttpRequest


_GONE = 1
"""The length of a body that is gone, if it came without one: what is shorter than it says is
refused."""


@csrf_exempt
@xframe_options_exempt
def serve(request: HttpRequest, path: str) -> HttpResponse:
    """The application's answer. Its own rules take the place of Django's tokens and frames."""
    environ = _make_environ(request, path)
    answer = _Answer()
    chunks = get_application()(environ, answer.start)
    try:
        answer.pieces += chunks
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    return answer.make_response()


serve.login_required = False
serve._non_atomic_requests = set(connections)
"""The service has its own transactions; with ATOMIC_REQUESTS one of Django would only wait."""


class _Answer:
    """What the application answers (PEP 3333)."""

    def __init__(self) -> None:
        self._status = ""
        self._headers: list[tuple[str, str]] = []
        self.pieces: list[bytes] = []

    def start(
        self, status: str, headers: list[tuple[str, str]], _: Any = None, /
    ) -> Callable[[bytes], object]:
        self._status, self._headers = status, headers
        return self.pieces.append

    def make_response(self) -> HttpResponse:
        code, _, reason = self._status.partition(" ")
        response = HttpResponse(b"".join(self.pieces), status=int(code), reason=reason)
        # Django would log the path of a refusal, which may be the code of a payment link. The
        # application has its own log.
        response._has_been_logged = True
        del response.headers["Content-Type"]
        for name, value in self._headers:
            if name.lower() == "set-cookie":
                response.cookies.load(value)
            else:
                response.headers[name] = value
        if "no-store" in response.headers.get("Cache-Control", ""):
            # Django's cache of whole sites looks at this word only, and not at Authorization.
            patch_cache_control(response, private=True)
        return response


def _make_environ(request: HttpRequest, path: str) -> dict[str, Any]:
    """The request as WSGI has it, mounted where Django found this view."""
    environ = _copy_environ(request) if hasattr(request, "environ") else _translate_asgi(request)
    mounted_at = request.path_info.removesuffix(path).rstrip("/")
    before = request.path.removesuffix(request.path_info)  # a server's own, or FORCE_SCRIPT_NAME
    environ["SCRIPT_NAME"] = _as_wsgi(before + mounted_at)
    environ["PATH_INFO"] = _as_wsgi(request.path_info.removeprefix(mounted_at))
    return environ


def _as_wsgi(path: str) -> str:
    """WSGI has bytes in texts; Django has decoded them, in the environ too."""
    return path.encode().decode("latin-1")


def _copy_environ(request: HttpRequest) -> dict[str, Any]:
    """The environ of the server. A middleware may have read the body, but none without a length:
    Django does not see that."""
    environ = dict(request.environ)
    if environ.get("CONTENT_LENGTH"):
        with contextlib.suppress(RequestDataTooBig):  # nothing was read, and the input is whole
            environ["wsgi.input"] = io.BytesIO(_read_body(request) or b"")
    return environ


def _translate_asgi(request: Any) -> dict[str, Any]:
    """The environ of a request that came by ASGI. Django has received the whole body."""
    scope: dict[str, Any] = request.scope
    environ = {name: value for name, value in request.META.items() if isinstance(value, str)}
    body: bytes | None = b""
    with contextlib.suppress(RequestDataTooBig):  # the application refuses its length
        body = _read_body(request)
    length = _GONE if body is None else len(body)
    target = scope.get("raw_path") or request.path.encode()  # with its `%2F`, as it was sent
    return {
        "REMOTE_ADDR": "",
        "CONTENT_LENGTH": str(length),
        **environ,
        "REQUEST_URI": target.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope.get('http_version', '1.1')}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": request.scheme,
        "wsgi.input": io.BytesIO(body or b""),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def _read_body(request: Any) -> bytes | None:
    """None if a middleware has taken it away. Raises RequestDataTooBig."""
    try:
        body: bytes = request.body
    except (RawPostDataException, UnreadablePostError):
        return None
    return body
