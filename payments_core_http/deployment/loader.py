"""The configuration from a TOML file and from environment variables, with every fault by its path.

A variable's name is the setting's path: `storage.url` is `PAYMENTS_STORAGE_URL`, and it overrides
the file. `PAYMENTS_STORAGE_URL_FILE` names a file with the value, as container platforms provide
secrets. An array is written with commas.
"""

from __future__ import annotations

import logging
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs

from payments_core.errors import FieldError, ValidationFailed
from payments_core.evolve import evolve
from payments_core.validation.readers import JSON
from payments_core_http.deployment.configuration import Configuration

PREFIX = "PAYMENTS_"
FILE_VARIABLE = "PAYMENTS_CONFIG"
_WILDCARDS = {"<name>": "((?!.*_FILE$).+)", "<number>": "([0-9]+)"}
"""The parts of a path that the operator chooses, and their form in a variable's name."""
MIN_KEY_CHARACTERS = 12
"""A word of this length in the path of a node's URL may be a provider's key."""
_SERVICE_LINK = re.compile(r"(?:tcp|udp|sctp)://")
_OTHER_VARIABLES = ("PAYMENTS_TEST_", "PAYMENTS_COPY_TO", FILE_VARIABLE)

_log = logging.getLogger(__name__)


class ConfigurationRefused(Exception):
    """The configuration cannot be used; `faults` says why by the path of each setting."""

    def __init__(self, source: str, faults: tuple[FieldError, ...]) -> None:
        lines = [f"  {fault.path or 'the file'} {fault.message}" for fault in faults]
        super().__init__("\n".join([f"The configuration ({source}) cannot be used:", *lines]))
        self.faults = faults


@attrs.frozen
class Setting:
    """One setting: the names of its tables and its own, its type, its description."""

    path: tuple[str, ...]
    kind: Any
    about: str
    default: Any
    is_secret: bool

    @property
    def name(self) -> str:
        """`storage.url`; a part that an operator names is in angle brackets."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """`PAYMENTS_STORAGE_URL`."""
        parts = (part if part in _WILDCARDS else part.upper() for part in self.path)
        return PREFIX + "_".join(parts)

    @property
    def pattern(self) -> str:
        """An expression for the variable's name, with a group for each chosen part."""
        return PREFIX + "_".join(_WILDCARDS.get(part, part.upper()) for part in self.path)


def list_settings(kind: Any = Configuration, above: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every setting, in the order of the classes."""
    hints = get_type_hints(kind, include_extras=True)
    for field in attrs.fields(kind):
        path, inner = (*above, field.name), strip_constraints(hints[field.name])
        if attrs.has(inner):
            yield from list_settings(inner, path)
        elif get_origin(inner) is Mapping and attrs.has(get_args(inner)[1]):
            yield from list_settings(get_args(inner)[1], (*path, "<number>"))
        else:
            many = (*path, "<name>") if get_origin(inner) is Mapping else path
            about = field.metadata["about"]
            yield Setting(many, hints[field.name], about, field.default, not field.repr)


def load_configuration(path: Path | None, environ: Mapping[str, str]) -> Configuration:
    """The configuration. `path` is the file; by default the one that PAYMENTS_CONFIG names, and
    none if that is not set either.

    Raises ConfigurationRefused.
    """
    if path is None and FILE_VARIABLE in environ:
        path = Path(environ[FILE_VARIABLE].strip())
    source = (
        "environment variables only; use --config or PAYMENTS_CONFIG to give a file"
        if path is None
        else f"{path} and environment variables"
    )
    document = {} if path is None else _load_toml(path)
    if path is not None:
        _require_private_file(path, document)
    given, faults = _read_environment(environ)
    for setting, names, text in given:
        _put_value(document, names, _parse_value(setting, text))
    for name, kind in get_type_hints(Configuration).items():
        if attrs.has(kind):  # so that a fault names the setting, and not its table
            document.setdefault(name, {})
    try:
        configuration: Configuration = JSON.read(document, Configuration)
    except ValidationFailed as failure:
        raise ConfigurationRefused(source, (*faults, *map(_advise, failure.fields))) from None
    if faults:
        raise ConfigurationRefused(source, faults)
    return configuration


def _advise(fault: FieldError) -> FieldError:
    """The fault; that of a missing setting with its variable, and what it is for."""
    missing = next((one for one in list_settings() if one.name == fault.path), None)
    if missing is None or not fault.message.startswith("is required"):
        return fault
    return evolve(fault, message=f"{fault.message} ({missing.variable}). {missing.about}")


def is_setting(variable: str) -> bool:
    """Whether a variable of this name is a setting, names a file with one, or names the file."""
    known = list(list_settings())
    names = (variable, variable.removesuffix("_FILE"))
    return variable == FILE_VARIABLE or any(_find_setting(known, name) for name in names)


def is_secret(variable: str, text: str) -> bool:
    """Whether a variable of this name is a setting whose text holds a secret."""
    found = _find_setting(list(list_settings()), variable)
    return (
        found is not None and found[0].is_secret and any(map(may_be_secret, find_texts(text, ())))
    )


def strip_constraints(kind: Any) -> Any:
    """A type without its constraints, and without None."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
        return strip_constraints(kind)
    return kind


def _load_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "is not UTF-8"
    except (ValueError, RecursionError) as error:
        place = re.search(r"\(at (?:line \d+, column \d+|end of document)\)$", str(error))
        reason = f"is not TOML {place[0]}" if place else "is not TOML"  # the rest may quote it
    raise ConfigurationRefused(str(path), (FieldError("", reason),))


SettingValue = tuple[Setting, tuple[str, ...], str]
"""A setting, the names under which it is in the document, and its text."""


def _read_environment(
    environ: Mapping[str, str],
) -> tuple[list[SettingValue], tuple[FieldError, ...]]:
    """The settings of the variables, and a fault for each setting that two of them name: which one
    applies must not depend on their order."""
    said: dict[tuple[str, ...], str] = {}
    given: list[SettingValue] = []
    faults: list[FieldError] = []
    for variable, one in _find_variables(environ):
        earlier = said.setdefault(one[1], variable)
        if earlier == variable:
            given.append(one)
        else:
            first, second = sorted((earlier, variable))
            fault = f"is set twice: in {first} and in {second}"
            faults.append(FieldError(".".join(one[1]), fault))
    return given, tuple(faults)


def _find_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, SettingValue]]:
    """The variables that are settings, with their values."""
    known = list(list_settings())
    services = _find_services(environ)
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable.startswith(_OTHER_VARIABLES):
            continue
        if any(re.match(service, variable) for service in services):
            _log.warning("environment variable %s is of a service, and no setting", variable)
        elif found := _find_setting(known, variable):
            yield variable, (*found, text.strip())  # a newline, if it comes from a file
        elif variable.endswith("_FILE") and (
            found := _find_setting(known, variable[: -len("_FILE")])
        ):
            yield variable, (*found, _read_value_file(variable, text.strip()))
        else:
            _log.warning("unknown setting in environment variable %s", variable)


def _find_services(environ: Mapping[str, str]) -> list[str]:
    """Expressions for the variables by which a cluster names its services to every container.

    Of a service `payments-http`, Kubernetes sets PAYMENTS_HTTP_PORT=tcp://10.0.0.1:80, and others
    beside it.
    """
    return [
        re.escape(variable.removesuffix("_PORT")) + r"_(?:PORT|SERVICE_HOST|SERVICE_PORT)(?:_|$)"
        for variable, text in environ.items()
        if variable.startswith(PREFIX) and variable.endswith("_PORT") and _SERVICE_LINK.match(text)
    ]


def _find_setting(known: list[Setting], variable: str) -> tuple[Setting, tuple[str, ...]] | None:
    """The setting of a variable, and the names under which it is in the document."""
    for setting in known:
        chosen = re.fullmatch(setting.pattern, variable)
        if chosen:
            own = iter(chosen.groups())
            return setting, tuple(
                next(own).lower() if part in _WILDCARDS else part for part in setting.path
            )
    return None


def _read_value_file(variable: str, name: str) -> str:
    try:
        if Path(name).stat().st_mode & stat.S_IWOTH:
            fault = FieldError(variable, "points to a file that all users can write: chmod o-w it")
            raise ConfigurationRefused(variable, (fault,))
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationRefused(
            variable, (FieldError(variable, f"points to a file that cannot be read: {reason}"),)
        ) from None


def _parse_value(setting: Setting, text: str) -> Any:
    """The text as TOML would read it; a text that is not a number or a boolean is refused later."""
    kind = strip_constraints(setting.kind)
    if get_origin(kind) is Mapping:
        kind = strip_constraints(get_args(kind)[1])
    if get_origin(kind) is tuple:
        return [item.strip() for item in text.split(",") if item.strip()]
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind is int and text.isascii() and text.isdecimal() and len(text) < 17:
        return int(text)
    return text


def _put_value(document: dict[str, Any], names: tuple[str, ...], value: Any) -> None:
    for name in names[:-1]:
        inner = document.setdefault(name, {})
        if not isinstance(inner, dict):
            return  # it is refused where the file has it
        document = inner
    document[names[-1]] = value


def _require_private_file(path: Path, held: Mapping[str, Any]) -> None:
    """Refuse a file that everybody may write, or that has secrets and everybody may read."""
    mode = path.stat().st_mode
    if mode & stat.S_IWOTH:
        fault = "can be written by all users, who could then change the signer: chmod o-w it"
        raise ConfigurationRefused(str(path), (FieldError("", fault),))
    if not mode & stat.S_IROTH:
        return
    secrets = [
        one.name
        for one in list_settings()
        if one.is_secret and any(map(may_be_secret, find_texts(held, one.path)))
    ]
    if secrets:
        fault = f"contains {', '.join(secrets)}, and all users can read it: chmod o-r it"
        raise ConfigurationRefused(str(path), (FieldError("", fault),))


def may_be_secret(text: str) -> bool:
    """Whether a value may hold a password, or a provider's key in its path or query."""
    scheme, mark, rest = text.partition("://")
    if not mark or "@" in rest or "?" in rest:
        return True
    words = rest.split("/")[1:] if scheme.endswith(("http", "https")) else ()
    return any(len(word) >= MIN_KEY_CHARACTERS for word in words)


def find_texts(held: Any, path: tuple[str, ...]) -> Iterator[str]:
    """A document's value of a setting, except for names such as `memory:`."""
    if not path:
        several = held if isinstance(held, list | tuple) else [held]
        yield from (str(text) for text in several if not str(text).endswith(":"))
    elif isinstance(held, dict):
        below = held.values() if path[0] in _WILDCARDS else [held.get(path[0])]
        for inner in below:
            if inner is not None:
                yield from find_texts(inner, path[1:])
