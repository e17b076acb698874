"""Runs every ```python block of the pages, and follows the links between files.

A page's blocks run in order and share their names, so that a block may continue the one
before it. ```python postgresql runs only where there is a PostgreSQL, ```python file=... is a file
of the repository as it stands, the blocks ```python part=... make up a file together, and
```python no-run is skipped, and must stay rare. ```pycon is a
session, which must go as it stands; its `...` stands for any text.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import drop_schema, fresh_schema, postgres_or_skip

ROOT = Path(__file__).resolve().parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES = sorted([*TOP, *(ROOT / "docs").rglob("*.md")])
NO_RUN_AT_MOST = 3
FILE = re.compile(r"(?:python|ts) file=")
PART = "python part="
EMBEDDING = ROOT / "docs" / "how-to" / "embed-the-library.md"

FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.M | re.S)
ANCHOR = re.compile(r"\]\((?!\w+:)(?P<target>[^)#\s]*)#(?P<anchor>[^)\s]+)")
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.M)
LINK = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)#\s]+)")


def blocks(page: Path, *infos: str) -> list[tuple[int, str]]:
    """The line where each block's body starts, and the body."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start("body")), found["body"])
        for found in FENCE.finditer(text)
        if found["info"].strip() in infos
    ]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_the_code_on_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, "python")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "pycon")], ids=name)
def test_the_session_on_the_page_goes_as_it_stands(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(body for _, body in blocks(page, "pycon"))
    session = doctest.DocTestParser().get_doctest(text, {}, name(page), str(page), 0)
    options = doctest.ELLIPSIS
    failed, tried = doctest.DocTestRunner(optionflags=options).run(session)
    assert (failed, tried > 0) == (0, True), capsys.readouterr().out


def run(page: Path, *infos: str) -> None:
    names: dict[str, object] = {"__name__": "__page__"}
    for line, body in blocks(page, *infos):
        # Blank lines before the body make a traceback name the page's own line.
        exec(compile("\n" * line + body, str(page), "exec"), names)


@pytest.fixture(scope="module")
def embedding_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the page for embedders runs: its key ring is that of its database."""
    url = fresh_schema(postgres_or_skip())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAYMENTS_DATABASE_URL", url)
        yield tmp_path_factory.mktemp("embedding")
    drop_schema(url)


@pytest.mark.postgres
def test_the_page_for_embedders_runs_on_postgresql(
    embedding_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(embedding_folder)
    run(EMBEDDING, "python", "python postgresql")


FORKS = """
import os
import traceback

from payments_core import StorageUnavailable


def serve(number):
    try:
        try:
            shop.payments.list()
        except StorageUnavailable:
            resources().payments.receive(order, idempotency_key=f"fork-{number}")
            payments().close()
            os._exit(0)
        print("the parent's service works in the child")
    except BaseException:
        traceback.print_exc()
    os._exit(1)


before = len(shop.payments.list().records)
for number in range(2):
    if not (child := os.fork()):
        serve(number)
    assert os.waitpid(child, 0)[1] == 0
assert len(shop.payments.list().records) == before + 2
service.close()
"""


@pytest.mark.postgres
def test_forked_processes_open_the_service_as_the_page_for_embedders_says(
    embedding_folder: Path,
) -> None:
    """The parent has a service too: the page says what happens to that in a child."""
    text = EMBEDDING.read_text(encoding="utf-8")
    opened, forked = (
        text.count("\n", 0, text.index(f"\n## {heading}\n"))
        for heading in ("Call it once", "Run under a server that forks")
    )
    found = blocks(EMBEDDING, "python", "python postgresql")
    parts = [body for line, body in found if line < opened]
    parts.append(next(body for line, body in found if line > forked))
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*parts, FORKS])],
        cwd=embedding_folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("page", "info", "body"),
    [
        pytest.param(page, info, found["body"], id=FILE.sub("", info))
        for page in PAGES
        for found in FENCE.finditer(page.read_text(encoding="utf-8"))
        if (info := found["info"].strip()) and FILE.match(info)
    ],
)
def test_a_file_on_a_page_is_the_file(page: Path, info: str, body: str) -> None:
    assert (ROOT / FILE.sub("", info)).read_text(encoding="utf-8") == body


@pytest.mark.parametrize(
    ("page", "info"),
    sorted(
        {
            (page, info)
            for page in PAGES
            for found in FENCE.finditer(page.read_text(encoding="utf-8"))
            if (info := found["info"].strip()).startswith(PART)
        }
    ),
)
def test_the_parts_of_a_file_on_a_page_are_the_whole_file(page: Path, info: str) -> None:
    """A reader who appends each to the one before has the file, but for its blank lines."""
    appended = [line for _, body in blocks(page, info) for line in body.splitlines() if line]
    text = (ROOT / info.removeprefix(PART)).read_text(encoding="utf-8")
    assert appended == [line for line in text.splitlines() if line]


def test_code_that_does_not_run_is_rare() -> None:
    skipped = [
        f"{name(page)}:{line}" for page in PAGES for line, _ in blocks(page, "python no-run")
    ]
    assert len(skipped) <= NO_RUN_AT_MOST, skipped


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_on_the_page_lead_to_files(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [found["target"] for found in LINK.finditer(text)]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", found["text"].lower()).strip().replace(" ", "-")
        for found in HEADING.finditer(text)
    }


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_on_the_page_lead_to_headings(page: Path) -> None:
    """Sphinx follows those between its own pages; these are followed on code hosts too."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    wrong = [
        found[0]
        for found in ANCHOR.finditer(text)
        if (aim := page.parent / found["target"] if found["target"] else page).suffix == ".md"
        and found["anchor"] not in anchors(aim)
    ]
    assert wrong == []
