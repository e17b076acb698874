"""The demo's output: colored on a terminal, plain elsewhere, or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import click

from payments_core_http.cli.api_client import HttpExchange
from payments_core_http.cli.colors import has_color
from payments_core_http.cli.demo.scenario import DemoStep

PrintStyled = Callable[[str, str], None]
"""Prints a text in a style of rich's, such as `bold`."""

LINE_WIDTH = 96


@attrs.frozen
class StepResult:
    """The result of a step: its requests and answers, and its failure if there was one."""

    step: DemoStep
    number: int
    total: int
    seconds: float
    exchanges: Sequence[HttpExchange] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    failure: str | None = None


class DemoOutput(Protocol):
    """Prints one step after the other, and then the end."""

    def print_step(self, result: StepResult) -> None:
        """Print a step."""

    def print_end(self, text: str, ok: bool) -> None:
        """Print how the demo ended."""


class JsonOutput:
    """One JSON object for each step, and nothing else."""

    def print_step(self, result: StepResult) -> None:
        """Print the step's object."""
        document: dict[str, Any] = {
            "step": result.step.name,
            "shows": result.step.shows,
            "ok": result.failure is None,
            "seconds": round(result.seconds, 3),
            **result.facts,
            "exchanges": [exchange.render(whole=True) for exchange in result.exchanges],
        }
        if result.failure is not None:
            document["failure"] = result.failure
        click.echo(json.dumps(document, ensure_ascii=False))

    def print_end(self, text: str, ok: bool) -> None:
        """Print nothing: the steps contain it."""


class TextOutput:
    """Text for a person; long answers are shown in brief."""

    def __init__(self, say: PrintStyled) -> None:
        self.say = say

    def print_step(self, result: StepResult) -> None:
        """Print the step with its requests and answers."""
        self.say(f"\n{result.number}/{result.total}  {result.step.shows}", "bold cyan")
        for name, value in result.facts.items():
            self.say(_indent(f"{name}: {format_json(value)}", "  "), "")
        for exchange in result.exchanges:
            self._print_exchange(exchange.render(whole=False))
        if result.failure is not None:
            self.say(f"  Failed: {result.failure}", "bold red")

    def print_end(self, text: str, ok: bool) -> None:
        """Print it."""
        self.say("\n" + text, "" if ok else "bold red")

    def _print_exchange(self, shown: Mapping[str, Any]) -> None:
        request, answer = shown["request"], shown["answer"]
        self.say(f"  {request['method']} {request['path']}", "bold")
        for name, value in request["headers"].items():
            self.say(f"    {name}: {value}", "dim")
        if request["body"] is not None:
            self.say(_indent(format_json(request["body"]), "    "), "")
        replayed = "  Idempotent-Replayed: true" if "idempotentReplayed" in answer else ""
        self.say(f"  {answer['status']}{replayed}", "bold")
        if answer["body"] is not None:
            self.say(_indent(format_json(answer["body"]), "    "), "")


def make_text_output() -> TextOutput:
    """Through rich if there may be colors, or else plain."""
    if not has_color():
        return TextOutput(lambda text, style: click.echo(text))
    from rich.console import Console  # takes an eighth of a second: only if it is used

    console = Console(soft_wrap=True, force_terminal=True, no_color=False)
    return TextOutput(
        lambda text, style: console.print(text, style=style or None, markup=False, emoji=False)
    )


def format_json(value: Any, width: int = LINE_WIDTH) -> str:
    """JSON for people: a value that fits is on one line, others are split."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= width or not isinstance(value, dict | list) or not value:
        return line
    if isinstance(value, dict):
        start, end = "{", "}"
        items = [
            f"{json.dumps(name)}: " + format_json(item, width - 4 - len(name))
            for name, item in value.items()
        ]
    else:
        start, end = "[", "]"
        items = [format_json(item, width - 2) for item in value]
    return "\n".join([start, _indent(",\n".join(items), "  "), end])


def _indent(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.splitlines())
