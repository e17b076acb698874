"""The page of the Python API, printed from signatures, fields and docstrings.

It shows all of `payments_core.__all__`, in its order, and the resources of the service.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

import payments_core
from docs.markdown import code, table
from payments_core import PaymentsError, PaymentsService
from payments_core.resources import Resources, Shown
from payments_core.validation import metadata
from payments_core.validation.metadata import Metadata

GROUPS = {
    "PaymentsService": "The service",
    "NewAccount": "What operations take",
    "AccountDetails": "What operations return",
    "PaymentsError": "Errors",
}
"""The first name of each part of `__all__`, and the title of the part."""

NOT_FOR_CALLERS = {
    "KeyRing.digest": "the library's own use of the keys",
    "KeyRing.digests": "the library's own use of the keys",
    "KeyRing.open": "the library's own use of the keys",
    "KeyRing.seal": "the library's own use of the keys",
    "KeyRing.seal_repeatably": "the library's own use of the keys",
    "KeyRing.tag": "the library's own use of the keys",
    "KeyRing.tag_matches": "the library's own use of the keys",
}
"""Methods of public classes that this page leaves out, and why."""

OF_THE_SERVICE = ("tenants", "operators", "operator_sessions", "client_tokens", "checkout")
"""The resources that the service has besides those of its environments."""

OF_STORAGES = ("collection", "version", "schema")
"""Attributes of records that storages and upgrades read."""

METADATA_RULE = (
    f"a JSON object of at most {metadata.MAX_BYTES} bytes, {metadata.MAX_KEYS} keys "
    f"and {metadata.MAX_DEPTH} levels"
)

SHOP = """\
>>> from payments_core import *
>>> storage = open_storage("memory:")
>>> storage.migrate()
>>> settings = Settings(public_url="https://pay.example")
>>> service = PaymentsService(storage, KeyRing.parse(KeyRing.generate()), settings=settings)
>>> app = service.tenants.create_app("Shop", "shop")
>>> shop = service.environment(app.environments["sandbox"])  # as the program itself
>>> new = NewAccount(external_user_id="bob", subject_type="individual", username="bob")
>>> bob = shop.accounts.create(new).account
>>> new = NewAccount(external_user_id="eve", subject_type="individual")
>>> eve = shop.accounts.create(new).account
>>> vault = shop.vaults.provision(eve.id, 8453).vault
>>> funded = shop.sandbox.fund(eve.id, 8453, "USDC", "100.00")
>>> decided = shop.sandbox.decide_kyc(bob.id, "approved")
>>> activated = shop.bank_accounts.activate(bob.id, "us_bank_payout")
>>> order = NewPayment(amount="25.00", destination=ToAccount(external_user_id="bob"))
>>> payment = shop.payments.receive(order).payment  # nobody has paid it
>>> paid = shop.payments.receive(order).payment
>>> sent = shop.sandbox.transfer(8453, "USDC", "25.00", to=paid.escrow_address)
>>> advanced = shop.sandbox.advance_clock(61)  # so that it reaches bob
>>> key, secret = service.tenants.create_key(shop.authority.partition, "standard", "web")
>>> environment, key = service.tenants.authenticate(app.id, secret, mode="sandbox")
>>> rights = {"environment": environment, "api_version": environment.api_version}
>>> requirement = Requirement("server")
>>> server = service.acting_as(Authority(requirement=requirement, key=key, **rights))
>>> token = server.client_sessions.create(
...     external_user_id="eve", permissions=("payments:write", "vault_payments:write")
... ).token
>>> access = service.client_tokens.exchange(token, mode="sandbox").access_token
>>> environment, session = service.client_tokens.authenticate(access, mode="sandbox")
>>> requirement = Requirement("client", permissions=("vault_payments:write",))
>>> browser = service.acting_as(Authority(requirement=requirement, session=session, **rights))
>>> code = shop.payments.build_url(payment).rpartition("/")[2]
>>> link = service.checkout.exchange_link(code, mode="sandbox")
>>> requirement = Requirement("payer")
>>> visitor = service.acting_as(
...     Authority(requirement=requirement, payment_id=link.payment_id, **rights)
... )
"""
"""The shop of the examples in docstrings, which run in the order of the page."""

LONG = 80
_IDENTIFIER = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_UNREPEATABLE = re.compile(r" at 0x|<built-in|<function")


def page() -> str:
    """The whole page."""
    return "\n\n".join(_parts())


def _parts() -> Iterator[str]:
    yield "# Python API"
    yield (
        "You import these names from `payments_core`; each is loaded when it is first used.\n"
        "[Embed the library](../how-to/embed-the-library.md) shows how to use them; receivers of"
        " webhooks need only [`payments_core.webhooks`](../how-to/receive-webhooks.md)."
    )
    yield (
        "- An `Instant` is an integer: milliseconds since 1970, in UTC. A record has"
        " `created_at_ms`, and shows it as `created_at`, an aware datetime; times that callers give"
        " are aware datetimes. Other names in `_ms` and `_s` are durations in milliseconds and in"
        " seconds, those in `_bps` hundredths of a percent.\n"
        '- Amounts that callers give are decimal text, such as `"25.00"`. In records they end in'
        " `_atomic`: integers that count the asset's smallest unit. `amount` without the unit is"
        " the decimal text.\n"
        "- While the storage is unavailable, operations that write raise `Unavailable`, and those"
        " that read `StorageUnavailable`. An operation raises"
        " `InsufficientPermissions` or `EntitlementRequired` if the authority does not allow it."
        " Its description lists its other errors.\n"
        "- An `authority` says on whose behalf an operation runs."
        " `service.tenants.system_authority` makes one for a program that is trusted with a whole"
        " environment.\n"
        "- An operation with an `idempotency_key` runs once for it, and returns the same"
        " result again, for 30 days unless the settings say otherwise. The same key with other"
        " arguments raises `IdempotencyConflict`.\n"
        "- A list returns a `Page`: `after` takes the `next` of the previous page.\n"
        "- Each class that an operation takes or returns has an example, which `help` shows too."
        " The examples share this shop, in memory and on simulated chains:"
    )
    yield f"```pycon\n{SHOP}```"
    for name in payments_core.__all__:
        if name in GROUPS:
            yield f"## {GROUPS[name]}"
        yield f"### {name}"
        value = getattr(payments_core, name)
        yield from _described(name, value)
        if value is PaymentsService:
            yield from _resources()


def _described(name: str, value: Any) -> Iterator[str]:
    """What a public name is: its text, its signature, its fields, its methods."""
    yield _text(value)
    if not inspect.isclass(value):
        yield _block(name, value)
        return
    if issubclass(value, PaymentsError):
        yield from _error_facts(value)
    elif issubclass(value, Exception):
        yield "Not a [`PaymentsError`](#paymentserror): it is not caused by a request."
        return
    elif not attrs.has(value):
        yield _block(name, value)
    if value is PaymentsError or not issubclass(value, PaymentsError) or "code" in vars(value):
        yield from _fields(value)
    if value is PaymentsError or not issubclass(value, PaymentsError):
        yield from _properties(value)
        yield from _methods(value)


def _error_facts(kind: type[PaymentsError]) -> Iterator[str]:
    if kind is not PaymentsError:
        yield f"A kind of [{code(_public(kind.__bases__[0]))}](#{_anchor(kind.__bases__[0])})."
    if "code" in vars(kind):
        sentence = vars(kind).get("sentence")
        yield f"Code: {code(kind.code)}." + (f"\nMessage: {code(sentence)}" if sentence else "")


def list_resources() -> dict[str, Mapping[str, type]]:
    """The classes of resources by their attribute, those of the service and of an environment."""
    hints = typing.get_type_hints(PaymentsService)
    shown = vars(Resources).items()
    return {
        "Its own resources:": {f"service.{name}": hints[name] for name in OF_THE_SERVICE},
        "The resources of `shop = service.environment(id)`:": {
            f"shop.{name}": one.kind for name, one in shown if isinstance(one, Shown)
        },
    }


def _resources() -> Iterator[str]:
    """The resources of the service and of an environment, each with its methods."""
    listed = list_resources()
    for sentence, found in listed.items():
        yield sentence
        yield table(
            ("Attribute", "What it is for"),
            (
                (f"[{code(name)}](#{name.replace('.', '')})", _text(kind, with_example=False))
                for name, kind in found.items()
            ),
        )
    for found in listed.values():
        for name, kind in found.items():
            yield f"### {name}"
            yield _text(kind)
            yield from _methods(kind)


def _fields(kind: type) -> Iterator[str]:
    """The fields of an attrs class, those of classes above it first."""
    if not attrs.has(kind):
        return
    rules = _rules(kind)
    rows = [
        (
            code(field.name),
            code(_type(field.type, kind)),
            _default(field),
            rules.get(field.name, ""),
        )
        for field in attrs.fields(kind)
        if field.name not in OF_STORAGES and not field.name.startswith("_")
    ]
    if rules:
        yield table(("Field", "Type", "Default", "Rule"), rows)
    elif rows:
        yield table(("Field", "Type", "Default"), [row[:3] for row in rows])


def _rules(kind: type) -> dict[str, str]:
    """The rules of `the readers` for the fields of an input class."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = {field.name: _rule(hints.get(field.name)) for field in attrs.fields(kind)}
    return {name: rule for name, rule in found.items() if rule}


def _rule(annotation: Any) -> str:
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is not typing.Annotated:
        return next(filter(None, map(_rule, parts)), "")
    if Metadata in parts[1:]:
        return METADATA_RULE
    meta, said = parts[1], []
    if "rule" in (meta.extra or {}):
        said.append(meta.extra["rule"])
    elif meta.max_length is not None:
        unit = "characters" if parts[0] is str else "items"
        said.append(f"{meta.min_length or 0} to {meta.max_length} {unit}")
    if meta.ge is not None:
        said.append(f"{meta.ge} to {meta.le}" if meta.le is not None else f"at least {meta.ge}")
    return ", ".join(said)


def _properties(kind: type) -> Iterator[str]:
    rows = [
        (code(name), code(_type(value.fget.__annotations__["return"], value.fget)), _text(value))
        for name, value in _members(kind)
        if isinstance(value, property)
    ]
    if rows:
        yield table(("Property", "Type", "What it is"), rows)


def _methods(kind: type) -> Iterator[str]:
    """Each public method as an item: its signature, and below it its text."""
    items = []
    for name, value in _members(kind):
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not inspect.isfunction(function):
            continue
        prefix = "" if function is value else f"{_public(kind)}."
        text = _text(function).replace("\n\n", "\n\n  ")
        items.append(f"- {code(prefix + _signature(name, function))}\n\n  {text}")
    if items:
        yield "\n".join(items)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members that the class and those above it define, in order."""
    seen: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("payments_core"):
            seen.update(vars(one))
    for name, value in seen.items():
        if not name.startswith("_") and f"{_public(kind)}.{name}" not in NOT_FOR_CALLERS:
            yield name, value


def _block(name: str, value: Any) -> str:
    return f"```text\n{_signature(name, value)}\n```"


def _signature(name: str, value: Any) -> str:
    """The name with its parameters, over several lines if it is long and a class or function."""
    whole = inspect.signature(value)
    source = value.__init__ if inspect.isclass(value) else inspect.unwrap(value)
    parts, is_keyword = [], False
    for parameter in whole.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            parts.append("*")
            is_keyword = True
        text = f"{parameter.name}: {_type(parameter.annotation, source)}"
        if parameter.default is not parameter.empty:
            text += f" = {_shown(parameter.default)}"
        parts.append(text)
    returned = "" if inspect.isclass(value) else f" -> {_type(whole.return_annotation, source)}"
    line = f"{name}({', '.join(parts)}){returned}"
    is_method = "." in getattr(value, "__qualname__", "")
    if len(line) <= LONG or is_method:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def _type(annotation: Any, where: Any) -> str:
    """An annotation with the public names of what it names."""
    if annotation is None:
        return "None"
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__name__", str(annotation))
    names: Mapping[str, Any] = getattr(where, "__globals__", None) or _names_around(where)

    def public(match: re.Match[str]) -> str:
        named = names.get(match[0])
        if typing.get_origin(named) is typing.Annotated:
            return _unqualified(typing.get_args(named)[0])
        if typing.get_origin(named) is typing.Literal:
            return " | ".join(map(repr, typing.get_args(named)))
        if typing.get_origin(named) in (typing.Union, types.UnionType):
            parts = map(_without_rules, typing.get_args(named))
            return " | ".join(map(_public, parts))
        if inspect.isclass(named) and named.__module__ != "builtins":
            return _public(named)
        return match[0]

    return _IDENTIFIER.sub(public, annotation)


def _unqualified(annotation: Any) -> str:
    """A type without the modules of its names, and without rules."""
    annotation = _without_rules(annotation)
    if inspect.isclass(annotation) and typing.get_origin(annotation) is None:
        return annotation.__name__
    return re.sub(r"(?:\w+\.)+(?=\w)", "", str(annotation))


def _without_rules(annotation: Any) -> Any:
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _without_rules(parts[0])
    return origin[tuple(map(_without_rules, parts))] if origin else annotation


def _names_around(kind: type) -> Mapping[str, Any]:
    names: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        names.update(vars(sys.modules[one.__module__]))
    return names


def _public(kind: type) -> str:
    """The name by which `payments_core` exports a class, else its own."""
    return _PUBLIC_NAMES.get(kind, kind.__name__)


_PUBLIC_NAMES: dict[Any, str] = {
    getattr(payments_core, name): name for name in payments_core.__all__
}
_ERROR_NAMES = {
    kind.__name__: name
    for kind, name in _PUBLIC_NAMES.items()
    if inspect.isclass(kind) and issubclass(kind, PaymentsError)
}


def _anchor(kind: type) -> str:
    return _public(kind).lower()


def _default(field: attrs.Attribute[Any]) -> str:
    default: Any = field.default
    if default is attrs.NOTHING:
        return ""
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        made = default.factory
        return code(f"{_public(made)}()") if inspect.isclass(made) else "…"
    return code(_shown(default))


def _shown(value: Any) -> str:
    kind = type(value)
    if attrs.has(kind) and all(
        field.default == getattr(value, field.name) for field in attrs.fields(kind)
    ):
        return f"{_public(kind)}()"
    text = repr(value)
    return "…" if _UNREPEATABLE.search(text) else text


def _text(value: Any, *, with_example: bool = True) -> str:
    """A docstring: a line for each paragraph, and its example as a block."""
    text, prompt, example = (inspect.getdoc(value) or "").partition("\n\n>>> ")
    text = _IDENTIFIER.sub(lambda match: _ERROR_NAMES.get(match[0], match[0]), text)
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    if prompt and with_example:
        paragraphs.append(f"```pycon\n>>> {example}\n```")
    return "\n\n".join(paragraphs)
