"""Colors of the command line: on a terminal, and where nobody has said no."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping

import pytest

ESCAPE = "\x1b["
SCRIPT = """
import click
from payments_core_http.cli import payments
from payments_core_http.cli.demo.output import make_text_output

@payments.command("show", hidden=True)
def show():
    click.echo(click.style("styled", fg="red"))
    make_text_output().say("through rich", "bold red")

payments.get_command = lambda ctx, name: show
payments()
"""


def show(
    *options: str, variables: Mapping[str, str] | None = None, on_terminal: bool = True
) -> str:
    """The styles of a command, as they are printed."""
    ours, theirs = pty.openpty()
    variables = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", **(variables or {})}
    command = [sys.executable, "-c", SCRIPT, *options, "show"]
    if not on_terminal:
        return subprocess.check_output(command, env=variables, text=True)
    with subprocess.Popen(command, stdout=theirs, env=variables) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                text += os.read(ours, 4_096) or b""
            except OSError:  # the other end is closed: all was read
                break
        assert process.wait() == 0
    os.close(ours)
    return text.decode()


@pytest.mark.parametrize(
    ("options", "variables", "on_terminal", "lines"),
    [
        ((), {}, True, 2),
        ((), {"NO_COLOR": ""}, True, 2),  # an empty value says nothing
        ((), {}, False, 0),
        ((), {"NO_COLOR": "1"}, True, 0),
        (("--color", "never"), {}, True, 0),
        (("--color", "always"), {}, False, 2),
        (("--color", "always"), {"NO_COLOR": "1"}, True, 2),  # the option is the nearer word
    ],
)
def test_lines_have_colors_where_they_may(
    options: tuple[str, ...], variables: dict[str, str], on_terminal: bool, lines: int
) -> None:
    text = show(*options, variables=variables, on_terminal=on_terminal)
    assert [ESCAPE in line for line in text.split("\n")[:2]] == [bool(lines)] * 2
    assert "styled" in text
    assert "through rich" in text
