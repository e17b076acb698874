"""API requests on the dashboard: what is recorded, what never is, and copies that run."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_plus

import attrs
import pytest

from payments_core.errors import Unavailable
from payments_core.tenants.request_log import PAGE_REQUESTS, RequestLogPage
from payments_core_http import request_recorder
from payments_core_http.app import create_app
from payments_core_http.observability.requests import NOOP_OBSERVER
from payments_core_http.request_recorder import RequestRecorder, list_hidden_names
from payments_core_http.server.turns import Turns
from tests.changed_text import change_end
from tests.http.api_harness import ApiHarness
from tests.http.checkout import Checkout
from tests.http.dashboard.operator_browser import SCRIPT, OperatorBrowser, open_browser
from tests.http.pages.browser import serve
from tests.http.pages.test_checkout_page import ATTACKS

LIST = "/dashboard/requests"
ACCOUNT = {"externalUserId": "mine", "subjectType": "individual"}
PAYMENT = {
    "intent": "receive",
    "amount": "4.50",
    "destination": {"type": "wallet", "address": "0x" + "5e" * 20},
    "description": 'it\'s "mine" $HOME `id` \\n é',
    "metadata": {"a": [True, None, 1, [], {}]},
}


def encode_all(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def encode_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "percent": lambda text: text.replace("_", "%5F"),
    "percent, all": encode_all,
    "percent, twice": lambda text: encode_all(text.replace("_", "%5F")),
    "percent, three times": lambda text: text.replace("_", "%25255F"),
    "base64": encode_base64,
    "base64 without its end": lambda text: encode_base64(text).rstrip("="),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 after other letters": lambda text: "x" + encode_base64(text),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "base64 twice": lambda text: encode_base64(encode_base64(text)),
    "base64 of percent": lambda text: encode_base64(encode_all(text)),
    "percent of base64": lambda text: encode_all(encode_base64(text)),
    "Basic": lambda text: "Basic " + encode_base64(text),
    "hex": lambda text: text.encode().hex(),
}


def list_readings(text: str) -> list[str]:
    """A text, and what it is without its percent signs."""
    readings = [text]
    for _ in range(3):
        readings.append(unquote_plus(readings[-1]))
    return readings


@attrs.define
class Recorded:
    """An API whose requests are recorded, and an operator's browser."""

    checkout: Checkout
    api: ApiHarness
    browser: OperatorBrowser
    recorder: RequestRecorder
    app: Any

    def call(self, *given: Any, **more: Any) -> Any:
        self.checkout.system.advance(0.01)
        seen = self.api.call(*given, **more)
        self.recorder.flush()
        return seen

    def read(self) -> Any:
        tenants = self.api.service.tenants
        return self.api.service.parts.request_log.list(tenants.system_authority(self.api.partition))


def read_copies(page: str) -> tuple[str, str]:
    """What stands in the page's last two boxes."""
    *_, curl, test = re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    return unescape(curl), unescape(test)


def record(checkout: Checkout) -> Recorded:
    api = checkout.api
    browser = open_browser(checkout)
    recorder = RequestRecorder.over(api.service, "sandbox", NOOP_OBSERVER)  # type: ignore[arg-type]
    app = create_app(api.service, mode="sandbox", observer=recorder)  # type: ignore[arg-type]
    api.validated = app
    return Recorded(checkout, api, browser, recorder, app)


@pytest.fixture
def recorded(checkout: Checkout) -> Recorded:
    return record(checkout)


class TestWhatIsRecorded:
    def test_a_request_and_how_it_ended(self, recorded: Recorded) -> None:
        seen = recorded.call("POST", "/v2/accounts?x=1", ACCOUNT)
        assert seen.status == 400
        recorded.call("GET", "/v2/accounts?limit=2")
        found, failed = recorded.read()
        assert (failed.id, failed.method, failed.path, failed.query) == (
            seen.headers["x-request-id"], "POST", "/v2/accounts", "x=1",
        )  # fmt: skip
        assert (failed.status, failed.error_code) == (400, "validation_error")
        assert (found.method, found.status, found.error_code) == ("GET", 200, None)
        text = recorded.browser.open(LIST).text
        assert "POST /v2/accounts" in text
        assert "validation_error" in text
        text = recorded.browser.open(f"{LIST}/{failed.id}").text
        assert "Secret key" in text
        assert "x=1" in text

    def test_a_body_that_was_refused_is_shown(self, recorded: Recorded) -> None:
        recorded.call("POST", "/v2/accounts", {"subjectType": "alien"})
        [failed] = recorded.read()
        assert failed.body == '{"subjectType": "alien"}'

    @pytest.mark.parametrize(
        ("sent", "shown"), [("4.5", "4.5"), ("-1e2", "-100.0"), ("0.1234567890123456789", None),
                            ("1e999", None)],
    )  # fmt: skip
    def test_a_number_stays_a_number(
        self, recorded: Recorded, sent: str, shown: str | None
    ) -> None:
        """Or the copy would be accepted where the request was refused."""
        recorded.call("POST", "/v2/payments", raw=f'{{"amount": {sent}}}'.encode(), key="number")
        [failed] = recorded.read()
        assert failed.status == 400
        text = failed.body.removeprefix('{"amount": ').removesuffix("}")
        assert text == (shown or f'"{Decimal(sent)}"')

    def test_pages_and_strangers_are_not_recorded(self, recorded: Recorded) -> None:
        recorded.call("GET", "/v2/accounts", auth="Basic eDp5")
        recorded.call("GET", "/nothing")
        recorded.browser.get(LIST)
        recorded.recorder.flush()
        assert recorded.read() == []

    def test_it_is_found_by_its_id_its_path_and_its_outcome(self, recorded: Recorded) -> None:
        good = recorded.call("GET", "/v2/accounts").headers["x-request-id"]
        bad = recorded.call("GET", "/v2/payments?limit=0").headers["x-request-id"]
        browser = recorded.browser
        assert browser.get(f"{LIST}?search={good}").headers["location"] == f"{LIST}/{good}"
        for query, found in (
            ("outcome=failed", [bad]), ("outcome=succeeded", [good]), ("search=accou", [good]),
            ("search=nothing", []), ("outcome=other", [bad, good]),
        ):  # fmt: skip
            links = [str(one["href"]) for one in browser.open(f"{LIST}?{query}").all("a")]
            assert [one for one in links if "/req_" in one] == [f"{LIST}/{id}" for id in found]

    def test_the_list_has_pages(self, recorded: Recorded) -> None:
        for _ in range(5):
            for _ in range(PAGE_REQUESTS):
                recorded.api.call("GET", "/v2/accounts")
            recorded.recorder.flush()
        following: str | None = ""
        seen: list[str] = []
        while following is not None:
            links = list(recorded.browser.open(LIST + following).all("a"))
            seen += [str(one["href"]) for one in links if "/req_" in str(one["href"])]
            following = next((str(a["href"]) for a in links if a.get("rel") == "next"), None)
        assert len(seen) == len(set(seen)) == 5 * PAGE_REQUESTS

    def test_another_environment_sees_nothing_of_it(self, recorded: Recorded) -> None:
        id = recorded.call("GET", "/v2/accounts").headers["x-request-id"]
        service = recorded.api.service
        other = service.tenants.create_app("Other", "other").environments["sandbox"]
        made = service.operators.create(other, "oscar")
        theirs = OperatorBrowser(recorded.api)
        theirs.log_in("oscar", made.password)
        assert theirs.get(f"{LIST}/{id}").status == 404
        assert id not in theirs.get(LIST).body.decode()


class TestWhatNeverIs:
    def test_no_credential_reaches_the_log(self, recorded: Recorded) -> None:
        api = recorded.api
        key = api.secret
        for path in (f"/v2/payments/{key}", f"/v2/accounts?cursor={key}"):
            recorded.call("GET", path)
        recorded.call("POST", "/v2/accounts", {**ACCOUNT, "email": key})
        recorded.call("POST", "/v2/accounts", {**ACCOUNT, "password": "hunter22"})
        recorded.call("GET", "/v2/accounts", headers={"X-Service-Payment-Secret": "p_secret_abcd"})
        assert len(recorded.read()) == 5
        stored = str(
            api.service.parts.ports.storage.read(
                api.partition, lambda snapshot: snapshot.find(RequestLogPage, "newest")
            )
        )
        for secret in (key, key[3:], "hunter22", "secret_abcd", "Basic"):
            assert secret not in stored

    @pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
    def test_nor_does_one_in_an_encoding(
        self, recorded: Recorded, encode: Callable[[str], str]
    ) -> None:
        api = recorded.api
        pair = f"{api.app_row.id}:{api.secret}"
        for secret in (api.secret, pair, f"whsec_{'aB+/' * 11}=", f"cat_{'aB3-' * 15}"):
            hidden = encode(secret)
            for target in (
                f"/v2/accounts?reference={quote(hidden)}&limit=1",
                f"/v2/accounts?{quote(hidden)}=1",
                f"/v2/payments/{hidden}",
            ):
                recorded.call("GET", target)
            recorded.call("POST", "/v2/accounts", {**ACCOUNT, "metadata": {"a": [hidden]}})
            recorded.call("POST", "/v2/accounts", {**ACCOUNT, "metadata": {hidden: "a"}})
            requests = recorded.read()[:5]
            shown = [part for one in requests for part in (one.path, one.query, str(one.body))]
            page = recorded.browser.get(f"{LIST}/{requests[-1].id}").body.decode()
            for text in (*shown, page):
                for reading in list_readings(text):
                    assert hidden[8:40] not in reading and secret[12:30] not in reading
        assert {request.query for request in requests} == {"", "[redacted]"}

    def test_of_a_query_that_was_refused_for_a_credential_nothing_is_kept(
        self, recorded: Recorded
    ) -> None:
        for query in ("a=ops_short&note=private", "note=private&a=Bearer+x", "note=%FFprivate"):
            recorded.call("GET", f"/v2/accounts?{query}")
            assert recorded.read()[0].query == "[redacted]"
        recorded.call("GET", "/v2/accounts?limit=2&externalUserId=a%40b.example&cursor=%C3%A9")
        assert recorded.read()[0].query == "limit=2&externalUserId=a%40b.example&cursor=%C3%A9"

    def test_account_numbers_are_hidden(self, recorded: Recorded) -> None:
        assert {"accountNumber", "signature"} <= list_hidden_names()
        path = f"/v2/accounts/{recorded.api.account_id}/bank-accounts"
        recorded.call("POST", path, {"accountNumber": "123456789", "a": [{"line1": "Main St"}]})
        [request] = recorded.read()
        assert request.body == '{"accountNumber": "[redacted]", "a": "[redacted]"}'
        recorded.call("POST", "/v2/accounts", {"metadata": {"a": [{"line1": "Main St", "b": 1}]}})
        request = recorded.read()[0]
        assert request.body == '{"metadata": {"a": [{"line1": "[redacted]", "b": 1}]}}'

    @pytest.mark.parametrize("name", ["account_number", "AccountNumber", "acctNo"])
    def test_nor_is_one_shown_under_a_name_that_no_route_knows(
        self, recorded: Recorded, name: str
    ) -> None:
        path = f"/v2/accounts/{recorded.api.account_id}/bank-accounts"
        for body in ({name: "123456789"}, {"address": {name: "123456789", "city": "Rome"}}):
            recorded.call("POST", path, body)
        recorded.call("POST", path, "123456789")
        shown = [request.body for request in reversed(recorded.read())]
        nested = f'{{"address": {{"{name}": "[redacted]", "city": "Rome"}}}}'
        assert shown == [f'{{"{name}": "[redacted]"}}', nested, '"[redacted]"']

    def test_nor_in_a_query(self, recorded: Recorded) -> None:
        recorded.call("GET", "/v2/accounts?limit=1&account%5Fnumber=123456789&line1=Main")
        [request] = recorded.read()
        assert request.query == "limit=1&account%5Fnumber=[redacted]&line1=[redacted]"

    def test_a_secret_that_the_end_would_cut_in_two_is_hidden(self, recorded: Recorded) -> None:
        code = "aB3-" * 12  # of a link: it is recognized by its length
        begin = "." * (request_recorder.MAX_QUERY_CHARACTERS - 40)
        recorded.call("GET", f"/v2/accounts?search={begin}{code}")
        [request] = recorded.read()
        assert code[:8] not in request.query

    def test_a_body_whose_length_nobody_stated_is_kept(self, recorded: Recorded) -> None:
        raw = b'{"externalUserId": "mine", "subjectType": "individual"}'
        environ = {
            "CONTENT_TYPE": "application/json", "HTTP_TRANSFER_ENCODING": "chunked",
            "CONTENT_LENGTH": None,
        }  # fmt: skip
        recorded.call("POST", "/v2/accounts", raw=raw, environ=environ)
        [request] = recorded.read()
        assert (request.status, request.body_bytes) == (201, len(raw))
        assert request.body is not None and json.loads(request.body) == ACCOUNT
        long = raw[:-1] + b" " * request_recorder.MAX_BODY_BYTES + b"}"
        recorded.call("POST", "/v2/accounts", raw=long, environ=environ)
        [request, _] = recorded.read()
        assert (request.body, request.body_bytes) == (None, len(long))

    def test_a_copy_never_takes_a_body_that_was_not_read_for_none(self, recorded: Recorded) -> None:
        environ = {"CONTENT_TYPE": "application/json", "HTTP_TRANSFER_ENCODING": "chunked"}
        payment = "payment_" + "A" * 24
        recorded.call("POST", f"/v2/payments/{payment}/refunds", key="k", environ=environ)
        [request] = recorded.read()
        assert (request.error_code, request.body_bytes) == ("length_required", None)
        page = recorded.browser.get(f"{LIST}/{request.id}").body.decode()
        assert "refused before its body was read" in page
        curl, test = read_copies(page)
        assert "-d @body.json" in curl and "Path('body.json')" in test

    def test_a_long_body_is_not_kept(self, recorded: Recorded) -> None:
        body = {"externalUserId": "é" * 1_500, "subjectType": "individual"}
        recorded.call("POST", "/v2/accounts", body)
        [request] = recorded.read()
        assert request.body is None
        assert request.body_bytes > 2_000
        assert "bytes was not stored" in recorded.browser.open(f"{LIST}/{request.id}").text

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_what_programs_send_appears_as_text(self, recorded: Recorded, attack: str) -> None:
        recorded.call("POST", "/v2/accounts", {"externalUserId": attack, attack: 1})
        [request] = recorded.read()
        for path in (LIST, f"{LIST}/{request.id}"):
            html = recorded.browser.open(path)
            elements = [one for one in html.elements if one != SCRIPT]
            assert not [tag for tag, _ in elements if tag in ("script", "img", "svg")]


class TestCost:
    def test_a_request_commits_nothing_more(
        self, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recorded.api.call("GET", "/v2/accounts")  # which writes that the key is used
        storage = recorded.api.service.parts.ports.storage
        transact, commits = storage.transact, []

        def count(partition: str, work: Any) -> Any:
            commits.append(partition)
            return transact(partition, work)

        monkeypatch.setattr(storage, "transact", count)
        for _ in range(100):
            recorded.api.call("GET", "/v2/accounts")
        assert commits == []
        recorded.recorder.flush()
        assert commits == [recorded.api.partition]
        assert len(recorded.read()) == PAGE_REQUESTS  # the newest of them

    def test_environments_take_turns(
        self, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(request_recorder, "FLUSHED_ENVIRONMENTS", 1)
        service = recorded.api.service
        other = service.tenants.create_app("Other", "other")
        _, secret = service.tenants.create_key(other.environments["sandbox"], "standard", "k")
        for _ in range(30):
            recorded.api.call("GET", "/v2/accounts")
        recorded.api.call("GET", "/v2/accounts", auth=recorded.api.basic(secret, other.id))
        recorded.api.call("GET", "/v2/accounts")
        recorded.recorder.flush()
        assert len(recorded.read()) == PAGE_REQUESTS
        for _ in range(30):
            recorded.api.call("GET", "/v2/accounts")
        recorded.recorder.flush()
        authority = service.tenants.system_authority(other.environments["sandbox"])
        assert len(service.parts.request_log.list(authority)) == 1

    def test_what_waits_is_bounded(
        self, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recorded.recorder, "_waiting", Turns(owners=0))
        recorded.call("GET", "/v2/accounts")
        assert recorded.read() == []

    def test_a_storage_that_refuses_stops_nothing(
        self, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise Unavailable()

        log = recorded.api.service.parts.request_log
        with monkeypatch.context() as patched:
            patched.setattr(log, "append", refuse)
            assert recorded.call("GET", "/v2/accounts").status == 200
        recorded.call("GET", "/v2/accounts")
        assert len(recorded.read()) == 1

    def test_the_thread_writes_what_waits_when_it_ends(self, recorded: Recorded) -> None:
        recorded.recorder.start()
        recorded.api.call("GET", "/v2/accounts")
        recorded.recorder.stop()
        assert len(recorded.read()) == 1


class TestCopies:
    @pytest.fixture
    def url(self, recorded: Recorded) -> Iterator[str]:
        with serve(recorded.app) as url:
            service = recorded.api.service
            service.settings = attrs.evolve(service.settings, public_url=url)
            yield url

    def copies(self, recorded: Recorded) -> tuple[str, str]:
        """The newest request as curl and as pytest."""
        [request, *_] = recorded.read()
        page = recorded.browser.get(f"{LIST}/{request.id}").body.decode()
        assert recorded.api.secret not in page
        curl, test = read_copies(page)
        return curl, test

    def environ(self, recorded: Recorded, url: str) -> dict[str, str]:
        api = recorded.api
        return {
            **os.environ, "PAYMENTS_URL": url, "PAYMENTS_APP_ID": api.app_row.id,
            "PAYMENTS_APP_SECRET": api.secret,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/v2/accounts?limit=2", None),
            ("/v2/accounts/caf%C3%A9", None),
            ("/v2/payments", PAYMENT),
        ],
    )
    def test_they_send_the_same_again(
        self,
        recorded: Recorded,
        url: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        path: str,
        body: Any,
    ) -> None:
        method = "GET" if body is None else "POST"
        first = recorded.call(method, path, body, key=body and "k")
        curl, test = self.copies(recorded)
        environ = self.environ(recorded, url)
        if body is None:
            for name, value in environ.items():
                monkeypatch.setenv(name, value)
            module: dict[str, Any] = {}
            exec(compile(test, "test_copy.py", "exec"), module)
            [run_test] = [made for name, made in module.items() if name.startswith("test_")]
            run_test()
        else:  # once by pytest itself, which takes a while to start
            (tmp_path / "test_copy.py").write_text(test)
            run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_copy.py"]
            reported = subprocess.run(
                run, cwd=tmp_path, env=environ, capture_output=True, text=True
            )
            assert "1 passed" in reported.stdout, reported.stdout
        if shutil.which("curl") is None:
            pytest.skip("needs curl")
        command = f"{curl} -s -o out -w '%{{http_code}}'"
        sent = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environ, capture_output=True, text=True
        )
        assert sent.stdout == str(first.status), (sent, (tmp_path / "out").read_text())
        recorded.recorder.flush()
        mine, _, original = recorded.read()
        assert attrs.evolve(mine, id="", at_ms=0, duration_ms=0, body_bytes=0) == attrs.evolve(
            original, id="", at_ms=0, duration_ms=0, body_bytes=0
        )

    @pytest.mark.parametrize(
        ("credential", "expects"),
        [
            ("bearer_key", "Authorization: Bearer $PAYMENTS_APP_SECRET"),
            ("client_token", "Authorization: Bearer $PAYMENTS_ACCESS_TOKEN"),
            ("session_token", "Authorization: Bearer $PAYMENTS_SESSION_TOKEN"),
        ],
    )
    def test_each_kind_of_credential_has_its_variable(
        self, recorded: Recorded, credential: str, expects: str
    ) -> None:
        recorded.call("GET", "/v2/accounts")
        [request] = recorded.read()
        changed = attrs.evolve(
            request, id=change_end(request.id), credential=credential, has_payment_secret=True,
            method="POST", body_bytes=3_000,
        )  # fmt: skip
        api = recorded.api
        api.service.parts.request_log.append(api.partition, "sandbox", [changed])
        page = recorded.browser.get(f"{LIST}/{changed.id}").body.decode()
        curl, test = read_copies(page)
        assert expects in curl
        assert "X-Service-Payment-Secret: $PAYMENTS_PAYMENT_SECRET" in curl
        assert "@body.json" in curl
        compile(test, "test_copy.py", "exec")
        assert f"os.environ['{expects.rpartition('$')[2]}']" in test
