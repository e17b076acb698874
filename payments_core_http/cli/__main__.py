"""`python -m payments_core_http.cli` is `payments`, also if the script is not on the path."""

from __future__ import annotations

from payments_core_http.cli import main

if __name__ == "__main__":
    main()
