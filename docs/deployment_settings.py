"""The page of a deployment's settings, from the classes that read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import attrs
import msgspec

from docs.markdown import code, table
from payments_core.credentials.secrets import Mode
from payments_core_http.deployment import startup_rules as weaknesses
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import Setting, list_settings, strip_constraints


def page() -> str:
    """All settings by their table, and what is refused."""
    parts = [
        "# Settings",
        "`payments serve`, `worker`, `admin` and `doctor` read these settings.\n"
        "`--config FILE`, or the variable `PAYMENTS_CONFIG`, names a TOML file.\n"
        "Each setting can also be an environment variable, which overrides the file.\n"
        "A variable that ends in `_FILE` names a file that contains the value, such as"
        " `PAYMENTS_STORAGE_URL_FILE`.\n"
        "In a variable, commas separate the items of an array, and spaces and newlines around the"
        " value do not count.\n"
        "Variables that Kubernetes sets for a service, such as `PAYMENTS_HTTP_PORT=tcp://10.0.0.1:80`"
        " for `payments-http`, are no settings.\n"
        "The commands refuse a TOML file that contains secrets and that all users can read, and any"
        " file that all users can write.\n"
        "[Deploy](../how-to/deploy.md) has an example.",
    ]
    for name, rows in groupby(list_settings(), key=lambda one: one.path[0] if one.path[1:] else ""):
        listed = list(rows)
        parts += [f"## {code(f'[{name}]') if name else 'Top level'}", *_about(name), _rows(listed)]
    parts += [
        "## What is refused",
        "`payments serve` and `payments worker` do not start with these faults in the named mode.\n"
        "They also check some services when they open them, such as"
        " [PostgreSQL](../how-to/deploy.md#postgresql), and do not start if a service is unsafe.",
        table(("Setting", "In the mode", "Fault"), _rules(weaknesses.REFUSAL_RULES)),
        "## Warnings",
        "The log and `payments doctor` report these warnings.",
        table(("Setting", "In the mode", "Warning"), _rules(weaknesses.WARNING_RULES)),
    ]
    return "\n\n".join(parts)


def _about(name: str) -> Iterable[str]:
    """The purpose of a table, if it has its own class."""
    kind = strip_constraints(get_type_hints(Configuration).get(name, object))
    kind = get_args(kind)[1] if get_origin(kind) is Mapping else kind
    return [" ".join((kind.__doc__ or "").split())] if attrs.has(kind) else []


def _rows(listed: Iterable[Setting]) -> str:
    return table(
        ("Setting", "Variable", "Values", "Default", "Purpose"),
        (
            (code(one.name), code(one.variable), _allowed(one), _default(one.default), one.about)
            for one in listed
        ),
    )


def _default(default: Any) -> str:
    if default is attrs.NOTHING:
        return "required"
    if default is None or default == () or isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return "–"
    return code(str(default).lower() if isinstance(default, bool) else str(default))


def _allowed(one: Setting) -> str:
    kind = strip_constraints(one.kind)
    if get_origin(kind) is Literal:
        return ", ".join(code(str(value)) for value in get_args(kind))
    if get_origin(kind) is tuple:
        has_fields = attrs.has(strip_constraints(get_args(kind)[0]))
        return "array of tables" if has_fields else "array of strings"
    if get_origin(kind) is Mapping:
        kind = strip_constraints(get_args(kind)[1])
    bounds = _bounds(one.kind)
    name = {int: "number", bool: "`true`, `false`", str: "string"}[kind]
    return f"{name} {bounds}".rstrip()


def _bounds(kind: Any) -> str:
    metas = [meta for meta in _metas(kind) if meta.ge is not None]
    for meta in metas:
        return f"{meta.ge} to {meta.le}" if meta.le is not None else f"from {meta.ge}"
    return ""


def _metas(kind: Any) -> Iterable[msgspec.Meta]:
    if get_origin(kind) is Annotated:
        yield from (meta for meta in get_args(kind)[1:] if isinstance(meta, msgspec.Meta))
    for inner in get_args(kind):
        yield from _metas(inner)


def _rules(rules: Iterable[weaknesses.StartupRule]) -> Iterable[tuple[str, str, str]]:
    return ((code(rule.path), _modes(rule), rule.message) for rule in rules)


def _modes(rule: weaknesses.StartupRule) -> str:
    """The modes in which it applies. In other modes it reads only the mode."""
    held = [mode for mode in get_args(Mode) if _looks_further(rule, mode)]
    return "both" if len(held) == len(get_args(Mode)) else ", ".join(map(code, held))


def _looks_further(rule: weaknesses.StartupRule, mode: str) -> bool:
    try:
        rule.is_broken(cast(Configuration, _ModeAlone(mode)))
    except AttributeError:
        return True
    return False


@attrs.frozen
class _ModeAlone:
    """A configuration of which only the mode is known."""

    mode: str
