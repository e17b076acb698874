"""What a command's result looks like: styled on a terminal, plain in a file."""

from __future__ import annotations

import re
from typing import Any

import click
import pytest
from click.testing import CliRunner

from payments_core_http.cli.documents import MAX_INNER_ROWS, print_document
from payments_core_http.cli.following import EntryPrinter, print_list
from payments_core_http.cli.progress import LINE_EVERY, show_progress

APPS = [
    {"appId": "app_" + "a" * 100, "name": "Shop", "mode": None},
    {"appId": "app_b", "name": "[bold]\x1b[2J", "mode": "sandbox"},
]


def shown(document: Any, *, styled: bool) -> str:
    @click.command()
    @click.pass_context
    def command(context: click.Context) -> None:
        context.color = styled
        print_document(document)

    result = CliRunner().invoke(command, color=True, catch_exceptions=False)
    return result.stdout


def test_a_table_in_a_file_is_aligned_and_plain() -> None:
    lines = shown(APPS, styled=False).splitlines()
    assert [line.split()[0] for line in lines] == ["appId", APPS[0]["appId"], "app_b"]
    assert (
        len({line.index(word) for line, word in zip(lines, ("name", "Shop", "["), strict=True)})
        == 1
    )
    assert "\x1b" not in "".join(lines)


def test_a_table_on_a_terminal_has_a_head_and_whole_ids() -> None:
    text = shown(APPS, styled=True)
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert text != plain, "it has no style"
    head, rule, *rows = plain.splitlines()
    assert head.split() == ["appId", "name", "mode"]
    assert set(rule.strip()) == {"─"}
    assert [row.split()[0] for row in rows] == [app["appId"] for app in APPS], "an id was cut"
    assert "[bold]" in rows[1], "a name was taken for markup"
    assert "\x1b" not in plain


@pytest.mark.parametrize("styled", [False, True])
def test_a_list_within_an_object_is_a_table_of_some_rows(styled: bool) -> None:
    document = {"rows": [{"id": f"row_{n}"} for n in range(MAX_INNER_ROWS + 1)], "free": 5}
    text = shown(document, styled=styled)
    assert f"rows  {MAX_INNER_ROWS + 1}" in text
    assert f"row_{MAX_INNER_ROWS - 1}" in text
    assert f"row_{MAX_INNER_ROWS}" not in text
    assert "--json shows all" in text
    assert "free  5" in text


REQUESTS = [
    {"status": 200, "path": "/v2/accounts", "id": "req_1", "body": "not shown"},
    {"status": 404, "path": "/v2", "id": "req_2\x1b[2J", "body": "not shown"},
]


@pytest.mark.parametrize("styled", [False, True])
def test_entries_that_come_later_stand_in_the_same_columns(
    styled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_core_http.cli.following.POLL_S", 0)
    pages = iter([REQUESTS[:1], REQUESTS])

    def list_page(cursor: str | None, limit: int) -> dict[str, Any]:
        try:
            return {"data": next(pages)[::-1], "nextCursor": None}
        except StopIteration:
            raise KeyboardInterrupt from None  # as Ctrl-C does

    @click.command()
    @click.pass_context
    def command(context: click.Context) -> None:
        context.color = styled
        colors = {"status": lambda cell: "green" if cell == "200" else "red"}
        printer = EntryPrinter(("status", "path", "id"), False, colors)
        print_list(list_page, printer, limit=5, is_followed=True, empty="None yet.")

    text = CliRunner().invoke(command, color=True, catch_exceptions=False).stdout
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert (text != plain) is styled
    assert ("\x1b[31m404" in text) is styled
    lines = [line for line in plain.splitlines() if "─" not in line]
    assert [line.split() for line in lines] == [
        ["status", "path", "id"],
        ["200", "/v2/accounts", "req_1"],
        ["404", "/v2", "req_2\ufffd[2J"],
    ]
    ids = zip(lines, ("id", "req_1", "req_2"), strict=True)
    assert len({line.index(id) for line, id in ids}) == 1


def test_an_empty_result_says_so() -> None:
    assert shown([], styled=True) == "No results.\n"


def test_progress_in_a_file_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("Purging") as progress:
        for count in (1, LINE_EVERY - 1, LINE_EVERY, LINE_EVERY + 1, 2 * LINE_EVERY + 7):
            progress("events", count)
        progress("sessions", 3)
    assert capsys.readouterr().err.splitlines() == [
        "Purging: events, 100,000 records",
        "Purging: events, 200,007 records",
    ]
