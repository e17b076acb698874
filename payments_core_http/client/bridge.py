"""The asynchronous client in process: a WSGI application called in threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio.to_thread
import httpx2


class AsyncWSGITransport(httpx2.AsyncBaseTransport):
    """Calls a WSGI application, each request in a thread, so that the event loop continues."""

    def __init__(self, app: Any) -> None:
        self._wsgi = httpx2.WSGITransport(app=app)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The application's response, read whole."""
        content = await request.aread()
        return await anyio.to_thread.run_sync(partial(self._call, request, content))

    def _call(self, request: httpx2.Request, content: bytes) -> httpx2.Response:
        whole = httpx2.Request(
            request.method, request.url, headers=request.headers, content=content
        )
        response = self._wsgi.handle_request(whole)
        try:
            content = response.read()
        finally:
            response.close()
        return httpx2.Response(response.status_code, headers=response.headers, content=content)
