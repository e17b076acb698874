"""Whether the output of a command has colors: by `--color`, NO_COLOR, or the kind of output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import click

CHOICES = {"auto": None, "always": True, "never": False}


def with_color_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of the whole command line; all commands inherit its value."""
    return click.option(
        "--color",
        type=click.Choice(list(CHOICES)),
        default="auto",
        show_default=True,
        expose_value=False,
        is_eager=True,
        callback=_choose,
        help="Color the output. `auto` colors a terminal, unless NO_COLOR is set.",
    )(command)


def has_color() -> bool:
    """Whether what is printed now may have colors and styles."""
    context = click.get_current_context(silent=True)
    color = _default() if context is None else context.color
    return sys.stdout.isatty() if color is None else color


def _choose(context: click.Context, _: click.Parameter, choice: str) -> None:
    context.color = _default() if choice == "auto" else CHOICES[choice]


def _default() -> bool | None:
    """No color if NO_COLOR is set to anything (https://no-color.org), or else click's default."""
    return False if os.environ.get("NO_COLOR") else None
