"""What a request may contain at most (contract §3)."""

from __future__ import annotations

MAX_BODY_BYTES = 64 * 1024
"""Of a JSON body."""

MAX_DEPTH = 32
"""Of a JSON document: an object or a list in another one is a level."""

MAX_DIGITS = 1_000
"""Of a number in a JSON document."""

MAX_FORM_BYTES = MAX_BODY_BYTES
"""Of a form of a page: some are documents of the API."""

MAX_FORM_FIELDS = 100
"""A form that subscribes an endpoint has a box for each event."""

MAX_QUERY_PARAMETERS = 50
