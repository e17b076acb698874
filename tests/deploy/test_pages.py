"""The pages for operators: their commands exist, their files are there, no alert is left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from payments_core_http.cli import payments
from tests.deploy.proxies import DEPLOY

ROOT = DEPLOY.parent
PAGES = [ROOT / "docs/how-to" / f"{name}.md" for name in ("deploy", "runbook")]
FENCE = re.compile(r"^ *```(?:console|sh)\n(.*?)^ *```$", re.M | re.S)
INLINE = re.compile(r"`(payments (?:[a-z-]+)[^`\n]*)`")
OURS = re.compile(r"^(?:\S*/)?payments$")


def typed_commands(page: Path) -> Iterator[list[str]]:
    """What the page says to type, word by word; of a pipe each part."""
    text = page.read_text()
    lines = [line.strip().removeprefix("$ ") for block in FENCE.findall(text)
             for line in block.splitlines()]  # fmt: skip
    for line in [*lines, *INLINE.findall(text)]:
        lexer = shlex.shlex(line, punctuation_chars="|>&;", posix=True)
        lexer.whitespace_split = True
        part: list[str] = []
        for word in [*lexer, "|"]:
            if set(word) <= set("|>&;"):
                yield part
                part = []
            else:
                part.append(word)


def commands() -> list[tuple[str, list[str]]]:
    return [
        (page.stem, part[1:])
        for page in PAGES
        for part in typed_commands(page)
        if part and OURS.match(part[0])
    ]


@pytest.mark.parametrize(("page", "words"), commands(), ids=lambda one: str(one))
def test_a_command_on_a_page_is_one_with_those_options(page: str, words: list[str]) -> None:
    command: click.Command = payments
    context = click.Context(command, info_name="payments")
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        assert found is not None, f"there is no {' '.join(words)}"
        command, rest = found, rest[1:]
        context = click.Context(command, info_name=words[0], parent=context)
    if isinstance(command, click.Group):
        assert not rest, f"{' '.join(words)} takes more than that"
        return
    # As far as the parser goes: what is typed is understood, and nothing of it is done. A command
    # that is only named, as in a sentence, stands without its arguments.
    parser = command.make_parser(context)
    _, left, _ = parser.parse_args(rest)
    assert not [word for word in left if word.startswith("-")]
    if rest:
        command.make_context(words[0], rest, parent=context.parent)


def test_the_pages_name_many_commands() -> None:
    assert len(commands()) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_file_of_deploy_that_a_page_names_is_there(page: Path) -> None:
    named = set(re.findall(r"deploy/([\w@.-]+(?:/[\w.-]+)?)", page.read_text()))
    assert [name for name in named if not (DEPLOY / name).exists()] == []


def test_the_page_installs_every_file_that_a_deployment_needs() -> None:
    text = PAGES[0].read_text()
    files = [path.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("*") if path.is_file()]
    files = [name for name in files if not name.startswith("container/")]  # test_containers.py
    elsewhere = {"prometheus-alerts.yml", "grafana-dashboard.json"}  # docs/how-to/observe.md
    assert [name for name in files if f"deploy/{name}" not in text and name not in elsewhere] == []
