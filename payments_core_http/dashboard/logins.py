"""Log in and log out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.errors import Unauthorized
from payments_core.evolve import evolve
from payments_core_http.browser_sessions import (
    build_login_cookie,
    build_session_cookie,
    choose_login_number,
    keeps_sessions,
)
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.rendering import (
    HOME,
    LOGIN,
    add_cookie,
    is_own_path,
    redirect,
    render_page,
)
from payments_core_http.formats import read_username

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def show_home(service: PaymentsService, call: PageCall) -> Response:
    """The dashboard begins with the inbox."""
    return redirect(call, HOME)


def show_login(service: PaymentsService, call: PageCall) -> Response:
    """The form of the log-in, with a cookie from which its token is made.

    A link on another site sends no cookie, and leads here although there is a session; a link on
    our own page sends it.
    """
    wanted = call.query.get("next", "")
    try:
        service.operator_sessions.authenticate(call.cookies.session or "", mode=call.mode)
    except Unauthorized:
        return _render_login(service, call, wanted, "", is_wrong=False)
    return redirect(call, wanted if is_own_path(wanted) else HOME)


def log_in(service: PaymentsService, call: PageCall) -> Response:
    """A new session with a new cookie, in place of any that the browser had."""
    fields = call.body
    username, wanted = read_username(fields), fields.get("next", "")
    try:
        begun = service.operator_sessions.begin(
            username,
            fields.get("password", ""),
            mode=call.mode,
            code=fields.get("code", ""),
            replaced=call.cookies.session,
            source=call.source,
        )
    except Unauthorized:
        return _render_login(service, call, wanted, username, is_wrong=True)
    cookie = build_session_cookie(begun.token, service.settings.public_url)
    return redirect(call, wanted if is_own_path(wanted) else HOME, **{"Set-Cookie": cookie})


def log_out(service: PaymentsService, call: PageCall) -> Response:
    """The session is over on the server, and the browser forgets its cookie."""
    service.operator_sessions.end(call.authority)
    cookie = build_session_cookie("", service.settings.public_url)
    return redirect(call, LOGIN, "logout", **{"Set-Cookie": cookie})


def _render_login(
    service: PaymentsService, call: PageCall, wanted: str, username: str, *, is_wrong: bool
) -> Response:
    number = choose_login_number(call.cookies.login, service.parts.ports.entropy)
    page = render_page(
        call,
        "login.html",
        status=401 if is_wrong else 200,
        cookie=number,
        wanted=wanted if is_own_path(wanted) else "",
        username=username[:64],
        is_wrong=is_wrong,
        keeps_sessions=keeps_sessions(service.settings.public_url),
    )
    cookie = build_login_cookie(number, service.settings.public_url)
    return evolve(page, headers=add_cookie(page.headers, cookie))
