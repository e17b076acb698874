"""Where the application is mounted: below which path, and how its pages lead to one another.

A page leads to its neighbours by relative paths. These hold at the root of a host, in a server that
mounts the application (`SCRIPT_NAME`, PEP 3333), and behind a proxy that passes the path of
`public_url` on or takes it away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import falcon


def lead_to_root(path: str) -> str:
    """What leads from the page at `path` to the application's root: `../` from `/pay/CODE`."""
    return "../" * (path.count("/") - 1) or "./"


def lead_to_slash(environ: Mapping[str, Any]) -> str | None:
    """What leads from the path of the application, without its slash, to its root: `payments/` from
    `/payments`. None for every other path.

    The links of the page at the root are relative, so that its path needs the slash.
    """
    mounted: str = environ.get("SCRIPT_NAME", "")
    if not mounted or environ["PATH_INFO"]:
        return None
    return f"{mounted.rpartition('/')[2]}/"


@attrs.frozen
class PassedOnPath:
    """Falcon's middleware for a proxy that passes the path of `public_url` on: routes begin behind
    it. A server that mounts the application has taken the path away."""

    _path: str

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Move the path from `PATH_INFO` to `SCRIPT_NAME` (PEP 3333), before the route is found."""
        environ = req.env
        info: str = environ["PATH_INFO"]
        if environ.get("SCRIPT_NAME") or not f"{info}/".startswith(f"{self._path}/"):
            return
        environ["SCRIPT_NAME"] = self._path
        environ["PATH_INFO"] = info[len(self._path) :]
        req.path = (environ["PATH_INFO"] and req.path[len(self._path) :]) or "/"
