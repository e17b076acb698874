"""Every route that is served, of both generations of the interface.

The legacy one is imported here and nowhere else: without its folder and these two lines about it
the rest works unchanged.
"""

from __future__ import annotations

from payments_core_http.routing import Route
from payments_core_http.v1 import routes as v1
from payments_core_http.v2 import routes as v2

GENERATIONS = (v2, v1)

ROUTES: tuple[Route, ...] = tuple(row for generation in GENERATIONS for row in generation.ROUTES)
