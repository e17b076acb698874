"""The legacy interface can be removed: without its folder and its import the rest serves on.

What is printed from the routes is printed anew by whoever does it: the pages of the reference, the
committed document, and the room's row in `docs/rooms.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LEFT_OUT = ("payments_core_http/v1", "tests/http/v1", "tests/vectors/v1")
"""The legacy interface, and what is about it alone. So are the example `legacy_quote.py` with its
tests, and the page on serving its clients."""
REST = (
    "tests/http/app/test_pipeline.py",
    "tests/http/authorization/test_matrix.py::test_the_model_has_every_route_and_no_other",
    "tests/http/v2/wallets",
    "tests/core/legacy",
    "tests/service/legacy/settlements/test_settlement_messages.py::test_domain_types_and_message_are_compared",
    "tests/http/openapi/test_openapi.py::TestTheDocument",
)
"""The pipeline, the table of routes, the document, and one resource for all: the others import
nothing of v1 either, which the search below shows."""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_rest_stands_without_it(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("payments_core", "payments_core_http", "tests", "docs"):
        # With what is compiled, except what other processes are just writing.
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name in LEFT_OUT:
        shutil.rmtree(copy / name)
    routes = copy / "payments_core_http" / "routes.py"
    text = routes.read_text("utf-8")
    for line, left in (
        ("from payments_core_http.v1 import routes as v1\n", ""),
        ("GENERATIONS = (v2, v1)", "GENERATIONS = (v2,)"),
    ):
        assert text.count(line) == 1
        text = text.replace(line, left)
    routes.write_text(text, "utf-8")
    found = subprocess.run(
        ["grep", "-rlI", "payments_core_http[.]v1", "payments_core", "payments_core_http"],
        cwd=copy, capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout == "", "imported somewhere else"
    found = subprocess.run(
        ["grep", "-rlIE", r"^\s*(from|import) payments_core_http[.]v1", "tests", "docs"],
        cwd=copy, capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout == "", "imported by what is left of the tests"
    options = ("-q", "-p", "no:cacheprovider", "-k", "not committed")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *REST],
        cwd=copy, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]
