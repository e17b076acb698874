"""What a caller sees of the API, over WSGI or a socket: a response, read as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class Seen:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error, in either generation's form, also where it is a page."""
        if self.headers["content-type"].startswith("text/html"):
            return self.body.decode().partition('data-code="')[2].partition('"')[0]
        error = self.json["error"]
        return str(error["code"] if isinstance(error, dict) else self.json["code"])

    @property
    def faults(self) -> dict[str, str]:
        fields = self.json["error"]["details"]["fields"]
        assert len({field["path"] for field in fields}) == len(fields)
        return {field["path"]: field["message"] for field in fields}
