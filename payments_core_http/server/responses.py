"""What leaves on a connection: the application's answers, and our own where it has seen nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waitress.task import ErrorTask, WSGITask
from waitress.utilities import BadRequest

from payments_core_http.errors import InternalError, encode_error, status_of

if TYPE_CHECKING:
    from payments_core_http.server.connection import ConnectionServer


class RequestTimeout(BadRequest):  # type: ignore[misc]
    """The request did not arrive in time."""

    code = 408
    reason = "Request Timeout"


class ResponseTask(WSGITask):  # type: ignore[misc]
    """The application's answer; the connection's last when the server ends."""

    def get_environment(self) -> dict[str, Any]:
        """The WSGI environment, with the path as it was sent: waitress drops slashes before it."""
        environ: dict[str, Any] = super().get_environment()
        environ["PATH_INFO"] = self.request.path
        return environ

    def build_response_header(self) -> bytes:
        """The status line and the headers."""
        if self.channel.server.is_stopping:
            self.set_close_on_finish()
        return bytes(super().build_response_header())

    def finish(self) -> None:
        """All of it is made: from now on the client is waited for."""
        super().finish()
        self.channel.mark_waiting()


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """Answers in our own shape what no application has seen."""

    def execute(self) -> None:
        """Write the answer, the connection's last."""
        server: ConnectionServer = self.channel.server
        error = server.refusals.get(self.request.error.code, InternalError())
        request_id = server.identifiers.new("req")
        body = encode_error(error, request_id)
        self.status = f"{status_of(type(error))} {self.request.error.reason}"
        self.response_headers += [
            ("Content-Type", "application/json"),
            ("X-Request-Id", request_id),
            ("Service-Version", server.api_version),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)
