"""The console script `payments`, also as `python -m payments_core_http`."""

from __future__ import annotations

import sys

from payments_core.extras import ExtraMissing


def main() -> None:
    """Run the command line; if its packages are not installed, say in a sentence how to."""
    try:
        from payments_core_http.cli import main as run
    except ExtraMissing as missing:
        sys.stderr.write(f"Error: {missing}\n")
        sys.exit(1)
    run()


if __name__ == "__main__":
    main()
