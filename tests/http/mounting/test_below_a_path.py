"""Below a path: every page leads to its neighbours, whoever took the path away, or nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import attrs
import pytest

from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.payments.links import Links
from payments_core.public_url import ROUTE_ROOTS, begins_as_a_route
from payments_core_http.app import create_app
from payments_core_http.browser_sessions import build_session_cookie
from payments_core_http.client import AccountDestination, Client, PublicClient
from payments_core_http.mounting import lead_to_root
from payments_core_http.routing import PathRouter
from tests.http.api_harness import ApiHarness, Seen
from tests.http.dashboard.operator_browser import OperatorBrowser
from tests.http.dashboard.served_dashboard import ServedDashboard, serve_dashboard
from tests.http.mounting.places import PLACES, PREFIX, PUBLIC_URL, place
from tests.http.pages.browser import serve
from tests.http.pages.html import LINKS, Html

PACKAGES = ("pages", "dashboard", "reference")
FROM_THE_ROOT = re.compile(
    r"""(?:href|src|action|formaction|poster|content|url)\s*[=(:]\s*["'`]?(?:\d+;\s*url=)?/"""
    rf"""|["'`(]/(?:{"|".join(ROUTE_ROOTS)})\b"""
)
"""A path from the root in an attribute, a string or a `url()`."""
TOKENS = re.compile(r"""form\(\s*"/[^)]*\)|\{% set path = "/[^%]*%\}""")
"""The token of a form names its path within the application: it is no link."""


@attrs.frozen
class Office:
    """The dashboard below the prefix, and an operator's browser."""

    dashboard: ServedDashboard
    api: ApiHarness
    browser: OperatorBrowser

    def open(self, path: str) -> Html:
        return self.browser.open(PREFIX + path)


@pytest.fixture(scope="module", params=PLACES)
def office(request: pytest.FixtureRequest) -> Iterator[Office]:
    with serve_dashboard() as dashboard:
        api = dashboard.console.api
        api.app = api.validated = place(api, request.param)
        browser = OperatorBrowser(api)
        login = f"{PREFIX}/dashboard/login"
        seen = browser.submit(login, login, username="olivia", password=dashboard.password)
        assert (seen.status, seen.headers["location"]) == (303, f"{PREFIX}/dashboard/inbox")
        yield Office(dashboard, api, browser)


def find_links(html: Html) -> Iterator[tuple[str, str]]:
    """Where a page leads on its own site: the elements and the paths."""
    for tag, given in html.elements:
        for name in LINKS:
            target = given.get(name)
            if target and not urlsplit(target).netloc and target[0] not in "?#":
                yield tag, target


def require_inside(office: Office, tag: str, target: str) -> Seen:
    """What a link or a form leads to is there."""
    assert target.startswith(f"{PREFIX}/"), (tag, target)
    if tag == "form":
        action = target.partition("?")[0]
        # Without its fields a form is refused for itself, which shows that its route is there.
        method = "GET" if office.browser.get(action).status == 200 else "POST"
        return office.browser.send(method, action, b"x=1" if method == "POST" else b"")
    return office.browser.get(target)


class TestThePages:
    def test_of_the_dashboard_lead_to_one_another(self, office: Office) -> None:
        seen: set[tuple[str, str]] = set()
        for path in office.dashboard.pages.values():
            seen |= set(find_links(office.open(path)))
        assert len(seen) > 30
        for tag, target in sorted(seen):
            if target.endswith("/logout"):
                continue
            found = require_inside(office, tag, target)
            assert found.status in ((200, 303) if tag != "form" else (200, 303, 400, 403)), target

    def test_of_a_payer_have_their_style_and_their_scripts(self, office: Office) -> None:
        id = office.dashboard.waiting.rpartition("/")[2]
        payment = office.api.call("GET", f"{PREFIX}/v2/payments/{id}").json
        path = PREFIX + urlsplit(payment["paymentUrl"]).path
        html = office.open(path.removeprefix(PREFIX))
        loaded = [target for tag, target in find_links(html) if tag in ("link", "script")]
        assert len(loaded) == 3
        for target in loaded:
            assert require_inside(office, "link", target).status == 200
        wrong = office.api.call("GET", f"{PREFIX}/pay/{'A' * 48}", auth=None)
        assert wrong.status == 404
        assert set(loaded) <= {target for _, target in find_links(Html(wrong.body, path))}

    def test_of_the_reference_lead_to_one_another(self, office: Office) -> None:
        pages = ("/", "/docs", "/docs/errors", "/docs/errors/not_found")
        links = {one for page in pages for one in find_links(office.open(page))}
        assert len(links) > 10
        for tag, target in sorted({(tag, target.partition("#")[0]) for tag, target in links}):
            wants = 303 if target == f"{PREFIX}/dashboard" else 200
            assert require_inside(office, tag, target).status == wants, target

    def test_the_document_names_the_public_url(self, office: Office) -> None:
        for name in ("openapi.json", f"openapi-{CURRENT_VERSION}.json"):
            document = office.api.call("GET", f"{PREFIX}/{name}", auth=None).json
            assert [one["url"] for one in document["servers"]] == [PUBLIC_URL]


class TestTheDashboard:
    def test_leads_a_visitor_to_the_log_in_and_back(self, office: Office) -> None:
        visitor = OperatorBrowser(office.api)
        seen = visitor.get(f"{PREFIX}/dashboard/keys")
        assert seen.status == 401
        [link] = [
            target
            for _, target in find_links(Html(seen.body, f"{PREFIX}/dashboard/keys"))
            if "login" in target
        ]
        assert b'content="0; url=../dashboard/login?next=%2Fdashboard%2Fkeys"' in seen.body
        password = office.dashboard.password
        login = f"{PREFIX}/dashboard/login"
        done = visitor.submit(link, login, username="olivia", password=password)
        assert (done.status, done.headers["location"]) == (303, f"{PREFIX}/dashboard/keys")
        out = visitor.submit(f"{PREFIX}/dashboard/keys", f"{PREFIX}/dashboard/logout")
        assert (out.status, out.headers["location"]) == (303, login)

    def test_a_form_is_carried_out_and_leads_to_its_subject(self, office: Office) -> None:
        endpoint = PREFIX + office.dashboard.endpoint
        seen = office.browser.submit(endpoint, f"{endpoint}/test")
        assert seen.status == 303, seen.body
        assert seen.headers["location"].startswith(f"{endpoint}/deliveries/delivery_")
        assert office.browser.get(seen.headers["location"]).status == 200

    def test_an_error_leads_back(self, office: Office) -> None:
        path = f"{PREFIX}{office.dashboard.endpoint}/deliveries/delivery_{'A' * 24}"
        seen = office.browser.get(path)
        assert seen.status == 404
        links = dict(find_links(Html(seen.body, path)))
        assert links["link"] == f"{PREFIX}/assets/style.css"
        assert links["a"] == f"{PREFIX}/dashboard/inbox"


class TestTheApi:
    def test_the_client_takes_a_url_with_a_path(self, office: Office) -> None:
        with (
            serve(office.api.app) as url,
            closing(Client(url + PREFIX, office.api.app_row.id, office.api.secret)) as client,
        ):
            payment = client.payments.receive(
                amount="1.00", destination=AccountDestination(account_id=office.api.account_id)
            )
            assert client.payments.read(payment.id).id == payment.id
            link = str(payment.payment_url).replace("http://127.0.0.1:8080", url)
            with closing(PublicClient(url + PREFIX)) as public:
                assert public.open_link(link).payment_id == payment.id

    def test_answers_and_refuses_below_the_path(self, office: Office) -> None:
        seen = office.api.call("GET", f"{PREFIX}/v2/partners/config")
        assert seen.status == 200
        seen = office.api.call("GET", f"{PREFIX}/v2/nothing")
        assert (seen.status, seen.code) == (404, "route_not_found")
        [docs] = [seen.json["error"]["details"]["docUrl"]]
        assert docs == f"{PUBLIC_URL}/docs/errors/route_not_found"
        assert office.browser.get(docs.removeprefix("http://127.0.0.1:8080")).status == 200
        legacy = office.api.call("GET", f"{PREFIX}/sdk/v1/nothing")
        assert legacy.json["success"] is False

    def test_two_slashes_before_a_path_are_no_path(self, office: Office) -> None:
        assert office.api.call("GET", f"{PREFIX}//v2/partners/config").status == 404


def test_a_public_url_of_the_path_is_in_the_links_and_in_nothing_that_is_mounted() -> None:
    api = ApiHarness()
    api.app = api.validated = place(api, "mount")
    links = Links(api.service.parts.ports.key_ring, lambda count: b"a" * count, PUBLIC_URL)
    url = links.mint(api.partition, "payment_1", "sandbox").url
    assert url.startswith(f"{PUBLIC_URL}/pay/")
    # Behind a server that mounts it, the path is part of no route.
    seen = api.call("GET", f"{PREFIX}{PREFIX}/v2/partners/config")
    assert seen.status == 404


@pytest.mark.parametrize("name", ["mount", "pass_on"])
def test_the_path_itself_leads_to_the_page_whose_links_are_relative(name: str) -> None:
    api = ApiHarness()
    api.app = api.validated = place(api, name)
    seen = api.call("GET", PREFIX, auth=None)
    assert seen.status == 308
    assert urljoin(f"https://shop.example{PREFIX}", seen.headers["location"]) == (
        f"https://shop.example{PREFIX}/"
    )
    assert api.call("GET", f"{PREFIX}/", auth=None).status == 200
    assert api.call("POST", PREFIX, auth=None).status == 405


@pytest.mark.parametrize(
    ("path", "leads"),
    [("/docs", "./"), ("/pay/x", "../"), ("/dashboard/payments/x", "../../"), ("", "./")],
)
def test_what_leads_to_the_root_is_relative(path: str, leads: str) -> None:
    assert lead_to_root(path) == leads
    assert urljoin(f"https://shop.example{PREFIX}{path}", leads) in (
        f"https://shop.example{PREFIX}/",
        "https://shop.example/shop/",  # of the prefix itself, which is no page
    )


def test_every_route_begins_with_a_name_that_no_public_url_may_have() -> None:
    app = create_app(ApiHarness().service, mode="sandbox")  # type: ignore[arg-type]
    assert isinstance(app._router, PathRouter)
    paths = [str(path) for path in app._router._responders]
    assert len(paths) > 100
    paths.remove("/")
    for path in paths:
        assert begins_as_a_route(f"https://shop.example{path.partition('{')[0].rstrip('/')}"), path


@pytest.mark.parametrize("package", PACKAGES)
def test_no_template_and_no_script_names_a_path_from_the_root(package: str) -> None:
    folder = Path(str(files(f"payments_core_http.{package}")))
    texts = [one for one in folder.rglob("*") if one.suffix in (".html", ".js", ".css")]
    assert len(texts) > 4
    for one in texts:
        for line in TOKENS.sub("", one.read_text()).splitlines():
            assert not FROM_THE_ROOT.search(line), (one.name, line.strip()[:160])


@pytest.mark.parametrize(
    "text",
    [
        '<a href="/dashboard/keys">', "<form action=/x>", "fetch(`/v2/public/x`)", "url(/a.png)",
        'fetch("/pay/x")', '<meta content="0; url=/dashboard/login">', "<img src='/x'>",
    ],
)  # fmt: skip
def test_a_path_from_the_root_is_found(text: str) -> None:
    assert FROM_THE_ROOT.search(TOKENS.sub("", text))


def test_deployments_on_one_host_have_cookies_of_their_own() -> None:
    urls = (
        "https://shop.example", "https://shop.example/8443", "https://shop.example:8443",
        "https://shop.example/a/b", "https://shop.example/a", "https://shop.example/b",
        "http://127.0.0.1:8080", "http://127.0.0.1:8081", "http://127.0.0.1:8080/a",
    )  # fmt: skip
    names = {build_session_cookie("token", url).partition("=")[0] for url in urls}
    assert len(names) == len(urls)
    token = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 6265, "cookie-name"
    assert all(token.fullmatch(name) for name in names)
