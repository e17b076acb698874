"""What a request may contain at most (contract §3)."""

from __future__ import annotations

MAX_BODY_BYTES = 64 * 1024
"""Of a JSON body."""

MAX_DEPTH = 32
"""Of a JSON document: an object or a list in another one is a level."""

MAX_DIGITS = 1_000
"""Of a number in a JSON document."""

MAX_FORM_BYTES = 16 * 1024
"""Of a form of a page."""

MAX_FORM_FIELDS = 50

MAX_QUERY_PARAMETERS = 50
