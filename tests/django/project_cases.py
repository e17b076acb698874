"""Cases of the Django application; `test_page.py` runs them in a fresh project."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx2
import pytest
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIRequest
from django.core.management import CommandError, call_command
from django.core.wsgi import get_wsgi_application
from django.db import connection, connections
from django.test import AsyncClient, Client, RequestFactory
from django.views.debug import SafeExceptionReporterFilter, technical_500_response

import payments_core_http.django as kit
from payments_core import KeyRing, StorageUnavailable
from payments_core_http.django import events, get_resources, get_service, on_event, views
from payments_core_http.django.configuration import read_configuration
from payments_core_http.django.databases import build_url
from payments_core_http.django.views import serve
from shop.models import Order
from shop.payments import request_payment

MOUNT = "/payments"
PASSWORD = "p@ss:w/rd"
POSTGRES = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "site", "USER": "ann", "PASSWORD": PASSWORD, "HOST": "db.example", "PORT": 5433,
    "OPTIONS": {"sslmode": "verify-full", "options": "-c jit=off", "pool": True},
}  # fmt: skip


@pytest.fixture
def key(payments_django: Any) -> dict[str, str]:
    """The headers of a server key."""
    service = get_service()
    app = service.tenants.find_app_by_partner("django")
    assert app is not None
    _, secret = service.tenants.create_key(app.environments["sandbox"], "standard", "cases")
    return {"Authorization": "Basic " + base64.b64encode(f"{app.id}:{secret}".encode()).decode()}


def found(*, deploy: bool = False) -> dict[str, str]:
    issues = run_checks(tags=["payments"], include_deployment_checks=deploy)
    return {str(one.id): f"{one.msg} {one.hint or ''}".strip() for one in issues}


def paid(resources: Any, clock: Any) -> Order:
    order = Order.objects.create(amount="25.00")
    request_payment(order)
    order.refresh_from_db()
    escrow = resources.payments.read(order.payment_id).payment.escrow_address
    resources.sandbox.transfer(8453, "USDC", "25.00", to=escrow)
    clock.advance(60)
    return order


# Settings.


def test_the_settings_of_the_page_are_without_fault() -> None:
    assert found() == {}
    assert found(deploy=True).keys() == {"payments.W002"}


def test_each_fault_has_the_name_of_its_setting(settings: Any) -> None:
    settings.PAYMENTS_MODE = "life"
    settings.PAYMENTS_PUBLIC_ULR = "http://x.example"
    del settings.PAYMENTS_LIMITER_URL
    issues = run_checks(tags=["payments"])
    texts = [one.msg for one in issues if one.id == "payments.E001"]
    assert [text.partition(" ")[0] for text in texts] == ["PAYMENTS_MODE", "PAYMENTS_LIMITER_URL"]
    unknown = found()["payments.E002"]
    assert unknown == "PAYMENTS_PUBLIC_ULR is no setting. Did you mean PAYMENTS_PUBLIC_URL?"


def test_a_setting_of_no_kind_is_a_fault(settings: Any) -> None:
    settings.PAYMENTS_HTTP_THREADS = {"a": 1}
    assert found()["payments.E001"].startswith("PAYMENTS_HTTP_THREADS must be a text")


def test_an_unsafe_setting_is_a_fault_as_at_the_start_of_a_deployment(settings: Any) -> None:
    settings.PAYMENTS_STORAGE_URL = "memory:"
    assert "must not be memory" in found()["payments.E001"]


def test_values_of_python_and_the_environment_count(settings: Any, monkeypatch: Any) -> None:
    settings.PAYMENTS_HTTP_THREADS = 3
    settings.PAYMENTS_HTTP_TRUSTED_PROXIES = ["10.0.0.0/8", "unix"]
    monkeypatch.setenv("PAYMENTS_HTTP_THREADS", "5")
    http = read_configuration().http
    assert (http.threads, http.trusted_proxies) == (5, ("10.0.0.0/8", "unix"))


def test_a_secret_that_the_debug_page_shows_is_a_fault(settings: Any) -> None:
    settings.PAYMENTS_LIMITER_URL = "redis://:secret@cache.example/0"
    fault = found()["payments.E003"]
    assert "PAYMENTS_LIMITER_URL_FILE" in fault
    assert "secret@" not in fault
    settings.PAYMENTS_KEYS_RING = "k1:secret"  # which it hides
    shown = SafeExceptionReporterFilter().get_safe_settings()
    assert "secret" not in str(shown["PAYMENTS_KEYS_RING"])
    hidden = [one.msg for one in run_checks(tags=["payments"]) if one.id == "payments.E003"]
    assert [text.partition(" ")[0] for text in hidden] == ["PAYMENTS_LIMITER_URL"]


def test_the_debug_page_shows_no_password(settings: Any, monkeypatch: Any) -> None:
    """Of a database that does not answer, with the variables of every function on the way."""
    settings.DEBUG = True
    url = "postgresql://ann:{}@127.0.0.1:1/site".format
    monkeypatch.setenv("PAYMENTS_STORAGE_URL", url(quote(PASSWORD, safe="")))
    request = RequestFactory().get(f"{MOUNT}/")
    with pytest.raises(StorageUnavailable) as raised:
        get_service()
    page = technical_500_response(request, raised.type, raised.value, raised.tb).content.decode()
    assert "StorageUnavailable" in page
    assert "PAYMENTS_MODE" in page
    assert quote(PASSWORD, safe="") not in page
    assert PASSWORD not in page


def test_a_key_ring_that_there_is_not_yet_names_the_command_that_creates_it(settings: Any) -> None:
    settings.PAYMENTS_KEYS_RING_FILE = "nowhere/key-ring"
    with pytest.raises(ImproperlyConfigured, match=r"PAYMENTS_KEYS_RING_FILE points to.*_migrate`"):
        get_service()


def test_a_public_url_of_another_path_is_a_warning(settings: Any) -> None:
    settings.PAYMENTS_PUBLIC_URL = "https://shop.example/pay-here"
    assert "/pay-here/" in found()["payments.W001"]
    settings.PAYMENTS_PUBLIC_URL = "https://shop.example/prefix/payments"  # as of SCRIPT_NAME
    assert "payments.W001" not in found()


@pytest.fixture
def setitem(monkeypatch: pytest.MonkeyPatch) -> Any:
    return monkeypatch.setitem


def test_the_service_takes_its_address_from_djangos_databases(settings: Any, setitem: Any) -> None:
    setitem(settings.DATABASES, "payments", POSTGRES)
    settings.PAYMENTS_DATABASE = "payments"
    assert "is set twice" in found()["payments.E001"]
    del settings.PAYMENTS_STORAGE_URL
    assert found() == {}
    psycopg = pytest.importorskip("psycopg")
    read = psycopg.conninfo.conninfo_to_dict(read_configuration().storage.url)
    assert read == {
        "user": "ann", "password": PASSWORD, "host": "db.example", "port": "5433",
        "dbname": "site", "sslmode": "verify-full",
        "options": "-c jit=off -csearch_path=payments_core",
    }  # fmt: skip
    assert PASSWORD not in repr(read_configuration())


@pytest.mark.parametrize(
    ("alias", "change", "says"),
    [
        ("nowhere", {}, "must be one of DATABASES: default"),
        ("default", {}, "must be a PostgreSQL database; with SQLite"),
        ("other", {"OPTIONS": {"assume_role": "bob"}}, "with assume_role in its OPTIONS"),
    ],
)
def test_a_database_that_cannot_be_shared_is_a_fault(
    alias: str, change: dict[str, Any], says: str, settings: Any, setitem: Any
) -> None:
    setitem(settings.DATABASES, "other", {**POSTGRES, **change})
    settings.PAYMENTS_DATABASE = alias
    del settings.PAYMENTS_STORAGE_URL
    assert says in found()["payments.E001"]


def test_postgis_and_a_service_file_are_postgresql(settings: Any, setitem: Any) -> None:
    database = {"ENGINE": "django.contrib.gis.db.backends.postgis", "OPTIONS": {"service": "site"}}
    setitem(settings.DATABASES, "map", database)
    assert build_url("map") == ("postgresql:///?service=site&options=-csearch_path%3Dpayments_core")


# The service of the process.


@pytest.fixture
def own_storage(settings: Any, tmp_path: Any) -> None:
    settings.PAYMENTS_STORAGE_URL = f"sqlite:///{tmp_path / 'own.sqlite3'}"
    settings.PAYMENTS_KEYS_RING_FILE = tmp_path / "own.key-ring"


def test_nothing_is_migrated_implicitly(own_storage: Any, settings: Any, capsys: Any) -> None:
    settings.PAYMENTS_KEYS_RING_FILE.touch(0o600)
    settings.PAYMENTS_KEYS_RING_FILE.write_text(KeyRing.generate())
    for command in (partial(call_command, "payments_migrate", "--check"), get_service):
        with pytest.raises((CommandError, ImproperlyConfigured), match="payments_migrate"):
            command()
    with pytest.raises(CommandError, match=r"lacks .* payments_migrate"):
        call_command("payments_worker")
    call_command("payments_migrate")
    call_command("payments_migrate", "--check")
    assert "key ring is" not in capsys.readouterr().out  # it was there


def test_the_command_payments_has_the_settings_of_the_project(
    own_storage: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    call_command("payments_migrate")
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        call_command("payments", "admin", "apps", "list", "--json")
    assert ended.value.code == 0
    assert [app["partnerId"] for app in json.loads(capsys.readouterr().out)] == ["django"]


def test_a_key_ring_that_is_lost_is_not_replaced(own_storage: Any, settings: Any) -> None:
    call_command("payments_migrate")
    settings.PAYMENTS_KEYS_RING_FILE.unlink()
    with pytest.raises(
        CommandError, match="PAYMENTS_KEYS_RING_FILE points to a file that does not exist"
    ):
        call_command("payments_migrate")
    assert not settings.PAYMENTS_KEYS_RING_FILE.exists()


def test_a_child_of_a_fork_opens_its_own(own_storage: Any) -> None:
    call_command("payments_migrate")
    before = get_service()
    assert before is get_service()
    if not (child := os.fork()):
        try:
            own = get_service()
            get_resources().payments.list()
            os._exit(0 if own is not before else 2)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    get_resources().payments.list()
    before.close()
    from payments_core_http.django import process

    process._process._opened = None


def test_two_first_calls_open_one_service(own_storage: Any) -> None:
    from payments_core_http.django import process

    call_command("payments_migrate")
    opened: list[Any] = []
    threads = [threading.Thread(target=lambda: opened.append(get_service())) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(map(id, opened))) == 1
    opened[0].close()
    process._process._opened = None


def test_the_kit_has_these_names_and_no_others() -> None:
    assert [callable(getattr(kit, name)) for name in kit.__all__] == [True] * 4
    with pytest.raises(AttributeError, match="no attribute 'service'"):
        _ = kit.service


# The view.


def test_the_api_answers_at_its_path(client: Client, key: Any) -> None:
    answer = client.get(f"{MOUNT}/v2/partners/config", headers=key)
    assert (answer.status_code, answer.json()["mode"]) == (200, "sandbox")
    assert answer.headers["Cache-Control"] == "no-store, private"
    assert client.get(f"{MOUNT}/v2/partners/config").json()["error"]["code"] == "unauthorized"
    assert client.get(f"{MOUNT}/nothing").json()["error"]["code"] == "route_not_found"
    assert client.get(f"{MOUNT}/").status_code == 200
    assert client.get(MOUNT).headers["Location"] == f"{MOUNT}/"


def test_no_code_of_a_payment_link_is_logged(
    client: Client, payments_django: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get(f"{MOUNT}/pay/not-a-code").status_code == 404
    assert "not-a-code" not in caplog.text


def test_an_operator_logs_in_through_djangos_middleware(
    client: Client, payments_django: Any
) -> None:
    made = get_service().operators.create(payments_django.authority.partition, "olivia")
    page = client.get(f"{MOUNT}/dashboard/login").content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
    answer = client.post(
        f"{MOUNT}/dashboard/login",
        urlencode({**fields, "username": "olivia", "password": made.password}),
        content_type="application/x-www-form-urlencoded",
        headers={"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"},
    )
    assert answer.status_code == 303, answer.content
    assert client.get(f"{MOUNT}/dashboard/payments").status_code == 200


def test_every_cookie_and_header_of_an_answer_arrives_whole() -> None:
    lines = [
        "a+8000~payments=1; HttpOnly; Max-Age=60; Path=/payments; SameSite=Strict; Secure",
        "b=; Max-Age=0; Path=/",
    ]
    answer = views._Answer()
    write = answer.start("207 Many Things", [("X-One", "1"), *(("Set-Cookie", it) for it in lines)])
    write(b"written")
    response = answer.make_response()
    assert (response.status_code, response.reason_phrase) == (207, "Many Things")
    assert dict(response.headers) == {"X-One": "1"}
    assert response.content == b"written"
    sent = [
        set(one.OutputString().replace('""', "").split("; ")) for one in response.cookies.values()
    ]
    assert sent == [set(line.split("; ")) for line in lines]


def served(path: str, body: bytes, **more: Any) -> Any:
    """An answer to a request that has no length, as a server passes on chunks."""
    environ = RequestFactory().generic("POST", path, body).environ
    del environ["CONTENT_LENGTH"]
    environ |= {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_TYPE": "application/json", **more}
    statuses: list[str] = []
    chunks = get_wsgi_application()(environ, lambda status, _: statuses.append(status))
    return statuses[0], json.loads(b"".join(chunks))


BOB = {"externalUserId": "bob", "subjectType": "individual"}


def test_a_body_arrives_that_comes_in_chunks(key: Any) -> None:
    """Django itself sees none here; an empty refund would refund everything."""
    headers = {"HTTP_AUTHORIZATION": key["Authorization"], "HTTP_IDEMPOTENCY_KEY": "bob"}
    status, made = served(f"{MOUNT}/v2/accounts", json.dumps(BOB).encode(), **headers)
    assert (status[:3], made["externalUserId"]) == ("201", "bob")


def test_a_body_that_a_middleware_has_read_arrives(key: Any) -> None:
    request = RequestFactory().post(
        f"{MOUNT}/v2/accounts", {"externalUserId": "bob", "subjectType": "individual"},
        content_type="application/json", headers={**key, "Idempotency-Key": "bob"},
    )  # fmt: skip
    assert request.body
    assert serve(request, "v2/accounts").status_code == 201


def test_a_body_that_a_middleware_has_taken_away_is_refused(key: Any) -> None:
    request = RequestFactory().post(
        f"{MOUNT}/v2/accounts", {"externalUserId": "bob"}, headers={**key, "Idempotency-Key": "bob"}
    )
    assert request.POST
    answer = serve(request, "v2/accounts")
    assert answer.status_code == 415  # it is a form


@pytest.mark.parametrize("has_length", [True, False])
def test_a_body_that_a_middleware_has_read_itself_is_refused(key: Any, has_length: bool) -> None:
    """By ASGI, a body in chunks has no length: without the body it would be an empty one."""
    path, body = f"{MOUNT}/v2/payments/{'payment_' + 'a' * 24}/refunds", b'{"amount": "1.00"}'
    sent = {**key, "Idempotency-Key": "once", "Content-Type": "application/json"}
    if has_length:
        sent["Content-Length"] = str(len(body))
    headers = [(name.lower().encode(), text.encode()) for name, text in sent.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": headers,
    }
    request = ASGIRequest(scope, io.BytesIO(body))
    assert request.read() == body
    answer = serve(request, path.removeprefix(f"{MOUNT}/"))
    assert answer.status_code == 400, answer.content
    assert json.loads(answer.content)["error"]["code"] == "invalid_json"


def test_a_prefix_of_the_server_is_kept() -> None:
    request = RequestFactory().get(f"{MOUNT}/v2/partners/config", SCRIPT_NAME="/site")
    environ = views._make_environ(request, "v2/partners/config")
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == (
        f"/site{MOUNT}", "/v2/partners/config",
    )  # fmt: skip
    at_the_root = RequestFactory().get("/v2/caf%C3%A9")
    environ = views._make_environ(at_the_root, "v2/café")
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"].encode("latin-1").decode()) == (
        "", "/v2/café",
    )  # fmt: skip


def test_asgi_serves_it_too(key: Any) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"externalUserId": "bob", '
        yield b'"subjectType": "individual"}'

    async def visit() -> tuple[httpx2.Response, ...]:
        transport = httpx2.ASGITransport(app=get_asgi_application())
        host = {"transport": transport, "base_url": "http://testserver", "headers": key}
        async with httpx2.AsyncClient(**host) as client:
            path, named = f"{MOUNT}/v2/accounts", {"Idempotency-Key": "bob"}
            chunked = {"Content-Type": "application/json", **named}
            return (
                await client.get(f"{MOUNT}/v2/partners/config"),
                await client.post(path, content=pieces(), headers=chunked),
                await client.post(path, json=BOB, headers=named),
                await client.get(f"{MOUNT}/v2%2Fpartners/config"),
            )

    config, made, again, slash = asyncio.run(visit())
    assert config.json()["mode"] == "sandbox"
    assert (made.status_code, made.json()["externalUserId"]) == (201, "bob")
    assert again.json() == made.json()
    assert slash.status_code == 404


def test_the_cache_of_a_whole_site_keeps_no_answer(key: Any, settings: Any) -> None:
    cached = "django.middleware.cache.{}CacheMiddleware".format
    settings.MIDDLEWARE = [cached("Update"), *settings.MIDDLEWARE, cached("FetchFrom")]
    client = Client()
    assert client.get(f"{MOUNT}/v2/partners/config", headers=key).status_code == 200
    assert client.get(f"{MOUNT}/v2/partners/config").status_code == 401


def test_the_view_asks_for_no_log_in_of_django(key: Any, settings: Any) -> None:
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, required]
    assert Client().get(f"{MOUNT}/v2/partners/config", headers=key).status_code == 200


# Views of the project, and the admin.


def test_a_payment_is_requested_after_the_commit(
    client: Client, payments_django: Any, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/place")
        assert Order.objects.get().payment_id is None
    assert Order.objects.get().payment_id is not None


@pytest.mark.django_db(transaction=True)
def test_an_asynchronous_view_requests_a_payment(payments_django: Any) -> None:
    link = asyncio.run(AsyncClient().post("/later")).headers["Location"]
    assert link.startswith(settings.PAYMENTS_PUBLIC_URL)


def test_the_admin_leads_to_the_dashboard(admin_client: Client, payments_django: Any) -> None:
    paid_later, _ = (Order.objects.create(amount=amount) for amount in ("25.00", "1.00"))
    request_payment(paid_later)
    paid_later.refresh_from_db()
    page = admin_client.get("/admin/shop/order/").content.decode()
    url = f"{settings.PAYMENTS_PUBLIC_URL}/dashboard/payments/{paid_later.payment_id}"
    assert f'<a href="{url}">{paid_later.payment_id}</a>' in page
    assert page.count("/dashboard/payments/") == 1
    assert "Log in" in admin_client.get(urlsplit(url).path).content.decode()  # its own


# Events.


@pytest.fixture
def handlers(monkeypatch: Any) -> None:
    monkeypatch.setattr(events, "HANDLERS", dict(events.HANDLERS))


def test_handlers_of_every_kind_are_called(handlers: Any, request: pytest.FixtureRequest) -> None:
    seen: list[str] = []

    @on_event("payment.succeeded", name="in-a-loop")
    async def handle(event: Any) -> None:
        seen.append(str(await Order.objects.acount()))

    @on_event()
    def all_of_them(event: Any) -> None:
        seen.append(event.name)

    resources = request.getfixturevalue("payments_django")
    order = paid(resources, request.getfixturevalue("payments_clock"))
    order.refresh_from_db()
    assert order.shipped_at is not None
    assert "1" in seen
    assert {"payment.created", "payment.succeeded"} <= set(seen)
    assert connection.is_usable()


def test_a_handler_that_raises_gets_its_event_again(
    handlers: Any, request: pytest.FixtureRequest, payments_clock: Any
) -> None:
    tried: list[str] = []

    @on_event("payment.created")
    def refuse_once(event: Any) -> None:
        tried.append(event.id)
        if len(tried) == 1:
            raise LookupError

    request.getfixturevalue("payments_django")
    request_payment(Order.objects.create(amount="25.00"))
    payments_clock.advance(60)
    assert len(tried) == 2
    assert len(set(tried)) == 1


def test_on_event_refuses_what_would_never_run(handlers: Any) -> None:
    with pytest.raises(TypeError, match="write @on_event"):
        on_event(len)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plain function"):
        on_event()(lambda event: (yield))
    with pytest.raises(ValueError, match="cannot name a handler"):
        on_event()(lambda event: None)
    with pytest.raises(ValueError, match="two handlers have the name 'ship'"):
        on_event(name="ship")(len)


def test_an_unknown_event_is_a_fault(handlers: Any) -> None:
    on_event("payment.succeded", name="typo")(lambda event: None)
    assert found()["payments.E004"] == (
        "The handler typo names the event payment.succeded, which there is not."
        " Did you mean payment.succeeded?"
    )


@pytest.mark.django_db(transaction=True)
def test_a_handler_of_a_worker_closes_its_connections() -> None:
    closed: list[bool] = []

    class Own:
        def close(self) -> None:
            closed.append(True)

    def use(event: Any) -> None:
        connections["default"] = Own()

    thread = threading.Thread(target=events._as_plain(use), args=[None])
    thread.start()
    thread.join()
    assert closed == [True]


def test_nothing_heavy_is_loaded_at_the_start() -> None:
    script = "import django, sys; django.setup(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"falcon", "jinja2", "payments_core.service", "payments_core_http.app"} & set(loaded)
