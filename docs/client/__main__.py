"""Writes the generated modules of `payments_core_http/client`.

python -m docs.client            write them
python -m docs.client --check    fail, and name them, if they differ from the code
"""

from __future__ import annotations

import sys

from docs.client.modules import CLIENT, build_modules
from payments_core_http.openapi.document import build_document


def main(arguments: list[str]) -> int:
    """Write or compare; 0 or 1."""
    modules = build_modules(build_document())
    if arguments == ["--check"]:
        stale = [
            name
            for name, source in modules.items()
            if not (CLIENT / name).exists() or (CLIENT / name).read_text("utf-8") != source
        ]
        if stale:
            print(f"Differs from the code: {', '.join(stale)}. Run `make client`.", file=sys.stderr)
        return 1 if stale else 0
    for name, source in modules.items():
        (CLIENT / name).write_text(source, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
