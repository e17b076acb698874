"""Fills the templates of the dashboard: pages, errors, and redirects after a form."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import jinja2
import markupsafe
import msgspec

from payments_core.clock import SECOND, Instant, format_iso
from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.errors import Missing, PaymentsError, Unauthenticated
from payments_core.evolve import evolve
from payments_core.explorers import Explorer
from payments_core.inbox import Kind
from payments_core.money import format_amount
from payments_core.networks import Asset, Networks
from payments_core_http.browser_sessions import build_done_cookie, make_form_token
from payments_core_http.calls import PageCall
from payments_core_http.dashboard import charts
from payments_core_http.dashboard.code_words import name_choice, write_words
from payments_core_http.dashboard.navigation import GROUPS, list_groups
from payments_core_http.dashboard.words import DONE, LABEL_WORDS, STATUS_WORDS, find_error_words
from payments_core_http.errors import status_of
from payments_core_http.formats import KEY_FIELD, TOKEN_FIELD
from payments_core_http.mounting import lead_to_root
from payments_core_http.page_headers import PRIVATE_PAGE_HEADERS

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Only our own styles, scripts and forms, and nothing inline."""

PAGE_HEADERS: Mapping[str, str] = {
    **PRIVATE_PAGE_HEADERS,
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
}
"""The headers of every page, including errors and redirects."""

HOME = "/dashboard/inbox"
LOGIN = "/dashboard/login"
_KEY_BYTES = 18
_DONE_QUERY = "?done="
_OWN_PATH = re.compile(r"/dashboard(?:/[A-Za-z0-9_-]+)*", re.ASCII)
_PARENT = re.compile(
    r"(/dashboard/(?:(?:payments|accounts|webhooks|events)/[A-Za-z0-9_-]+|security))/.+", re.ASCII
)


def render_page(
    call: PageCall,
    template: str,
    *,
    status: int = 200,
    counts: Mapping[Kind, int] | None = None,
    sought: str = "",
    **values: Any,
) -> Response:
    """A page, for the logged-in operator or before the log-in.

    It says what the form before it has done, and has the browser forget that. Its navigation has
    `counts`, by default those of now; `sought` is in the search of its head.
    """
    if counts is None:
        counts = _count_waiting(call)
    environment = call.caller.environment
    html = _render(
        template,
        root=lead_to_root(call.route.path),
        groups={} if call.proven is None else list_groups(call.proven),
        counts=counts,
        sought=sought,
        form=_make_form_writer(call),
        environment=environment,
        operator=call.caller.operator,
        mode=call.mode,
        networks=call.service.networks,
        choose_explorer=call.service.choose_explorer,
        done=DONE.get(call.cookies.done or ""),
        **values,
    )
    forget = build_done_cookie("", call.service.settings.public_url)
    headers = {} if call.cookies.done is None else {"Set-Cookie": forget}
    return Response(status, html, call.caller.api_version, headers)


def _count_waiting(call: PageCall) -> Mapping[Kind, int]:
    """What the navigation counts. The page of a form may be made in the form's transaction, in
    which nothing else may be read, and is stored: it counts nothing."""
    if call.proven is None or call.route.method != "GET":
        return {}
    return call.resources.inbox.count()


def show_error(error: PaymentsError, request_id: str, environ: Mapping[str, Any]) -> Response:
    """The page of an error; without a session it leads to the log-in, and back from there.

    With a session it has the sections: an operator who may not see one of them can open another.
    """
    path = str(environ.get("PATH_INFO", ""))
    root = lead_to_root(path)
    is_read = environ.get("REQUEST_METHOD") in ("GET", "HEAD")
    parent = _PARENT.fullmatch(path)
    is_logged_out = isinstance(error, Unauthenticated)
    html = _render(
        "error.html",
        root=root,
        error=error,
        words=find_error_words(error, status_of(type(error))),
        request_id=request_id,
        login=root + build_login_path(path if is_read else "")[1:] if is_logged_out else None,
        groups={} if is_logged_out or path == LOGIN else GROUPS,
        section=None,
        counts={},
        back=root + (parent[1] if parent and not isinstance(error, Missing) else HOME)[1:],
        environment=None,
        operator=None,
        mode=None,
        networks=None,
        choose_explorer=None,
        done=None,
    )
    return Response(status_of(type(error)), html, "", PAGE_HEADERS)


def complete(answer: Response, path: str, public_url: str) -> Response:
    """The answer of the page at `path` with its headers; the body of a 303 has its target, and what
    was done.

    They are in the body because the body is what is stored with an idempotency key.
    """
    if answer.status != 303:
        return evolve(answer, headers={**PAGE_HEADERS, **answer.headers})
    location, _, done = answer.body.decode().partition(_DONE_QUERY)
    headers = {**PAGE_HEADERS, **answer.headers, "Location": lead_to_root(path) + location[1:]}
    if done:
        headers = add_cookie(headers, build_done_cookie(done, public_url))
    return evolve(answer, body=b"", headers=headers)


def redirect(call: PageCall, path: str, done: str | None = None, **headers: str) -> Response:
    """The redirect; `done` names the sentence with which the next page begins."""
    target = path if done is None else f"{path}{_DONE_QUERY}{done}"
    return Response(303, target.encode(), call.caller.api_version, headers)


def add_cookie(headers: Mapping[str, str], cookie: str) -> dict[str, str]:
    """The headers with one `Set-Cookie` more: each is a line of its own."""
    lines = [headers[name] for name in ("Set-Cookie",) if name in headers]
    return {**headers, "Set-Cookie": "\n".join([*lines, cookie])}


def run_form(
    call: PageCall,
    operation: Callable[[IdempotentRequest | None], Any],
    answer: Callable[[Any], Response],
) -> Response:
    """Run the operation of a form, once, and answer with the stored result."""
    assert call.idempotent is not None, "a form that changes something has a key"
    idempotent = evolve(call.idempotent, render=answer)
    result = operation(idempotent)
    return idempotent.response or answer(result)


def build_login_path(wanted: str) -> str:
    """The log-in, and the page to open after it, if that is one of ours."""
    return f"{LOGIN}?next={quote(wanted, safe='')}" if is_own_path(wanted) else LOGIN


def is_own_path(path: str) -> bool:
    """Whether a path is one of the dashboard's, and of no other site."""
    return _OWN_PATH.fullmatch(path) is not None and path not in ("/dashboard", LOGIN)


def _make_form_writer(call: PageCall) -> Callable[..., markupsafe.Markup]:
    """A function that writes a form's hidden fields: its token and, by default, its key."""
    ports = call.service.parts.ports

    def write(
        action: str, *, cookie: str | None = None, with_key: bool = True
    ) -> markupsafe.Markup:
        token = make_form_token(ports.key_ring, cookie or call.cookies.session or "", action)
        fields = {TOKEN_FIELD: token}
        if with_key:
            fields[KEY_FIELD] = base64.urlsafe_b64encode(ports.entropy(_KEY_BYTES)).decode()
        return markupsafe.Markup("").join(
            markupsafe.Markup('<input type="hidden" name="{}" value="{}">').format(name, value)
            for name, value in fields.items()
        )

    return write


def format_money(amount_atomic: int, asset: Asset) -> str:
    """An amount with the name of its token."""
    return f"{format_amount(amount_atomic, asset.decimals)} {asset.symbol}"


def format_time(instant: Instant) -> markupsafe.Markup:
    """An instant in UTC to the second, for people and for programs."""
    exact = format_iso(instant)
    shown = format_iso(instant - instant % SECOND).replace("T", " ").replace(".000Z", " UTC")
    return markupsafe.Markup('<time datetime="{}">{}</time>').format(exact, shown)


def format_json(value: Any) -> str:
    """A value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def indent_json(text: str) -> str:
    """A text, indented if it is JSON."""
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except msgspec.MsgspecError:
        return text


@jinja2.pass_context
def _name_chain(context: jinja2.runtime.Context, chain_id: int) -> str:
    networks: Networks = context["networks"]
    return networks.name_network(chain_id)


@jinja2.pass_context
def _link_transaction(
    context: jinja2.runtime.Context, hash: str, chain_id: int
) -> markupsafe.Markup:
    """A transaction's hash, which leads to the explorer of its chain, if there is one."""
    explorer: Explorer = context["choose_explorer"](chain_id)
    return write_copied(hash, explorer.link_transaction(hash))


@jinja2.pass_context
def _link_address(
    context: jinja2.runtime.Context, address: str, chain_id: int
) -> markupsafe.Markup:
    """An address, which leads to the explorer of its chain, if there is one."""
    explorer: Explorer = context["choose_explorer"](chain_id)
    return write_copied(address, explorer.link_address(address))


def write_copied(text: str, url: str | None = None) -> markupsafe.Markup:
    """An exact value with a button that copies it, which leads to `url`."""
    shown = markupsafe.Markup('<code translate="no">{}</code>').format(text)
    if url is not None:
        shown = markupsafe.Markup(
            '<a class="explorer" href="{}" rel="noreferrer noopener">{}</a>'
        ).format(url, shown)
    return markupsafe.Markup(
        '<span class="copied"><span>{}</span> '
        '<button type="button" class="plain script" aria-label="Copy {}">Copy</button></span>'
    ).format(shown, text)


def _make_templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("payments_core_http.dashboard"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters |= {
        "money": format_money,
        "time": format_time,
        "pretty": format_json,
        "indented": indent_json,
        "chain": _name_chain,
        "copied": write_copied,
        "transaction": _link_transaction,
        "address": _link_address,
        "words": write_words,
        "choice": name_choice,
    }
    templates.globals |= {
        "statuses": STATUS_WORDS,
        "labels": LABEL_WORDS,
        "chart_width": charts.WIDTH,
        "chart_height": charts.HEIGHT,
    }
    return templates


_TEMPLATES = _make_templates()


def _render(template: str, **values: Any) -> bytes:
    return _TEMPLATES.get_template(template).render(**values).encode()
