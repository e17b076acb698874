"""Every error has a page, its answers name it, and everything works below a prefix."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urljoin, urlsplit
from wsgiref.util import setup_testing_defaults

import attrs
import pytest

from payments_core.contracts.versions import Versions
from payments_core_http.reference.error_advice import ADVICE
from payments_core_http.reference.error_pages import KINDS
from payments_core_http.reference.routes import build_routes
from tests.http.api_harness import ApiHarness
from tests.http.reference.test_openapi_reference import Page

PREFIX = "/payments/api"


@pytest.fixture(scope="module")
def api() -> ApiHarness:
    return ApiHarness()


def get_below_prefix(api: ApiHarness, path: str) -> tuple[str, str]:
    """The status and text of a path of an application that is mounted at the prefix."""
    environ: dict[str, Any] = {"SCRIPT_NAME": PREFIX, "PATH_INFO": path, "wsgi.input": io.BytesIO()}
    setup_testing_defaults(environ)
    reported: list[str] = []
    body = b"".join(
        api.app(environ, lambda status, headers, exc_info=None: reported.append(status))
    )
    return reported[0].split()[0], body.decode()


def test_every_error_has_advice_and_no_advice_is_left_over() -> None:
    assert ADVICE.keys() == KINDS.keys()
    for advice in ADVICE.values():
        for sentence in (*advice.causes, *advice.remedy):
            assert sentence[:1].isupper() or sentence.startswith("`"), sentence
            assert sentence.endswith("."), sentence


@pytest.mark.parametrize("code", ADVICE)
def test_its_page_gives_causes_and_remedies(api: ApiHarness, code: str) -> None:
    seen = api.call("GET", f"/docs/errors/{code}", auth=None)
    page = Page(seen.body.decode())
    assert seen.status == 200
    assert "script-src 'self'" in seen.headers["content-security-policy"]
    assert not list(page.all("script"))
    advice = ADVICE[code]
    for sentence in (*advice.causes, *advice.remedy):
        assert sentence.replace("`", "") in page.text


def test_an_error_names_its_page(api: ApiHarness) -> None:
    seen = api.call("GET", "/v2/nothing", auth=None)
    url = seen.json["error"]["details"]["docUrl"]
    assert url == f"{api.service.settings.public_url}/docs/errors/route_not_found"
    assert api.call("GET", urlsplit(url).path, auth=None).status == 200


def test_an_operator_can_name_a_documentation_of_its_own(api: ApiHarness) -> None:
    settings = attrs.evolve(api.service.settings, docs_url="https://docs.shop.example/api/")
    assert settings.locate_error_page("conflict") == "https://docs.shop.example/api/errors/conflict"


def test_the_legacy_interface_keeps_its_form(api: ApiHarness) -> None:
    seen = api.call("GET", "/sdk/v1/nothing", auth=None)
    assert set(seen.json) == {"success", "error", "code", "requestId"}


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/errors", "/docs/errors/not_found"])
def test_every_link_stays_below_the_prefix(api: ApiHarness, path: str) -> None:
    status, text = get_below_prefix(api, path)
    assert status == "200"
    page = Page(text)
    links = [str(it["href"]) for tag in ("a", "link") for it in page.all(tag)]
    links += [str(it["src"]) for it in page.all("script")]
    targets = {urljoin(PREFIX + path, link).partition("#")[0] for link in links}
    assert len(targets) > 1
    served = {PREFIX + route.path for route in build_routes((), Versions())}
    served.add(f"{PREFIX}/dashboard")
    assert targets - served == set()
