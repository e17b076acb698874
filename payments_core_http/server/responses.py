"""What a connection sends: the application's answers, and ours to requests that it did not see."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from waitress.task import ErrorTask, WSGITask
from waitress.utilities import build_http_date

from payments_core_http.server.hosting import HostedApp

_OF_THE_SERVER = frozenset({"content-length", "date"})
"""Headers that an application may set, and that are written here."""


class ResponseTask(WSGITask):  # type: ignore[misc]
    """The application's answer; the connection's last when the server stops."""

    def get_environment(self) -> dict[str, Any]:
        """The WSGI environment, with the path as it was sent: waitress drops slashes before it."""
        environ: dict[str, Any] = super().get_environment()
        environ["PATH_INFO"] = self.request.path
        return environ

    def build_response_header(self) -> bytes:
        """The status line and the headers, as the application wrote them.

        Waitress rewrites each name and sorts them, which takes twice as long, and ends the
        connection after each 204 and 304.
        """
        if self._is_last():
            self.set_close_on_finish()
        elif self.version == "1.0":
            self.response_headers.append(("Connection", "Keep-Alive"))
        headers = [
            (name, value)
            for name, value in self.response_headers
            if name.lower() not in _OF_THE_SERVER
        ]
        if self.has_body and self.content_length is not None:
            headers.append(("Content-Length", str(self.content_length)))
        elif self.has_body and self.version == "1.1":
            self.chunked_response = True
            headers.append(("Transfer-Encoding", "chunked"))
        headers.append(("Date", build_http_date(self.start_time)))
        lines = [f"{name}: {value}" for name, value in headers]
        head = "\r\n".join([f"HTTP/{self.version} {self.status}", *lines])
        return f"{head}\r\n\r\n".encode("latin-1")

    def finish(self) -> None:
        """Called when the whole answer is made: its environment is known from now on."""
        super().finish()
        self.channel.server.hosted.callers.learn(self.request.headers, self.environ)

    def _is_last(self) -> bool:
        """Whether the connection ends with this answer: its client or the server wants that, or
        only the close marks the answer's end."""
        asked = re.split(r"[\t ]*,[\t ]*", self.request.headers.get("CONNECTION", "").lower())
        is_wanted = "close" not in asked and (self.version == "1.1" or "keep-alive" in asked)
        has_end = self.content_length is not None or not self.has_body
        return not (is_wanted and has_end) or self.channel.server.is_stopping


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """Answers what the application has not seen, in its form."""

    def execute(self) -> None:
        """Write the answer, the connection's last."""
        hosted: HostedApp = self.channel.server.hosted
        refusal = hosted.refuse(self.request.error.code)
        self.status = f"{refusal.status} {HTTPStatus(refusal.status).phrase}"
        self.response_headers += refusal.headers
        self.set_close_on_finish()
        self.content_length = len(refusal.body)
        self.write(refusal.body)
