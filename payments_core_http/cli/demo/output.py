"""How the demo tells what it sees: coloured on a terminal, plain elsewhere, or as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import click

from payments_core_http.cli.client import Exchange
from payments_core_http.cli.demo.stage import Step

Say = Callable[[str, str], None]
"""Prints a text in a style of rich's, such as `bold`."""

WIDTH = 96


@attrs.frozen
class Seen:
    """A step that was tried: what it sent and got, and what went wrong, if anything did."""

    step: Step
    number: int
    of: int
    seconds: float
    exchanges: Sequence[Exchange] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    failure: str | None = None


class Teller(Protocol):
    """Tells one step after the other, and then how it ended."""

    def step(self, seen: Seen) -> None:
        """Tell a step."""

    def end(self, text: str, ok: bool) -> None:
        """Say how it ended."""


class JsonTeller:
    """One JSON object for each step, and nothing else."""

    def step(self, seen: Seen) -> None:
        """Print the step's object."""
        document: dict[str, Any] = {
            "step": seen.step.name,
            "shows": seen.step.shows,
            "ok": seen.failure is None,
            "seconds": round(seen.seconds, 3),
            **seen.facts,
            "exchanges": [exchange.shown(whole=True) for exchange in seen.exchanges],
        }
        if seen.failure is not None:
            document["failure"] = seen.failure
        click.echo(json.dumps(document, ensure_ascii=False))

    def end(self, text: str, ok: bool) -> None:
        """The steps have said it."""


class TextTeller:
    """Text for a person; answers are told in brief where they are long."""

    def __init__(self, say: Say) -> None:
        self.say = say

    def step(self, seen: Seen) -> None:
        """Print the step with its requests and answers."""
        self.say(f"\n{seen.number}/{seen.of}  {seen.step.shows}", "bold cyan")
        for name, value in seen.facts.items():
            self.say(_indented(f"{name}: {laid_out(value)}", "  "), "")
        for exchange in seen.exchanges:
            self._exchange(exchange.shown(whole=False))
        if seen.failure is not None:
            self.say(f"  Failed: {seen.failure}", "bold red")

    def end(self, text: str, ok: bool) -> None:
        """Print it."""
        self.say("\n" + text, "" if ok else "bold red")

    def _exchange(self, shown: Mapping[str, Any]) -> None:
        request, answer = shown["request"], shown["answer"]
        self.say(f"  {request['method']} {request['path']}", "bold")
        for name, value in request["headers"].items():
            self.say(f"    {name}: {value}", "dim")
        if request["body"] is not None:
            self.say(_indented(laid_out(request["body"]), "    "), "")
        replayed = "  Idempotent-Replayed: true" if "idempotentReplayed" in answer else ""
        self.say(f"  {answer['status']}{replayed}", "bold")
        if answer["body"] is not None:
            self.say(_indented(laid_out(answer["body"]), "    "), "")


def text_teller() -> TextTeller:
    """Through rich on a terminal, else plain."""
    if not sys.stdout.isatty():
        return TextTeller(lambda text, style: click.echo(text))
    from rich.console import Console  # an eighth of a second, spent only where it is seen

    console = Console(soft_wrap=True)
    return TextTeller(
        lambda text, style: console.print(text, style=style or None, markup=False, emoji=False)
    )


def laid_out(value: Any, width: int = WIDTH) -> str:
    """JSON for reading: what fits stands on one line, the rest is divided."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= width or not isinstance(value, dict | list) or not value:
        return line
    if isinstance(value, dict):
        start, end = "{", "}"
        items = [
            f"{json.dumps(name)}: " + laid_out(item, width - 4 - len(name))
            for name, item in value.items()
        ]
    else:
        start, end = "[", "]"
        items = [laid_out(item, width - 2) for item in value]
    return "\n".join([start, _indented(",\n".join(items), "  "), end])


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.splitlines())
