"""A request as it goes over the wire, the same from every transport."""

from __future__ import annotations

from payments_core.webhooks.transports.port import WebhookRequest


def header_lines(request: WebhookRequest) -> list[str]:
    """The headers, with Host first and Content-Length last.

    Raises ValueError for a header that would break a line: it would become a separate header.
    """
    lines = [f"Host: {request.destination.host_header}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    lines.append(f"Content-Length: {len(request.body)}")
    text = "".join(lines)
    if "\r" in text or "\n" in text or "\0" in text:
        raise ValueError("a header of the request has a line break")
    return lines


def encode_request(request: WebhookRequest) -> bytes:
    """The whole request. Raises ValueError, as `header_lines` does."""
    head = "\r\n".join(
        [f"POST {request.destination.path} HTTP/1.1", *header_lines(request), "", ""]
    )
    return head.encode("ascii") + request.body
