"""Bodies: strict JSON, no coercion, and every fault at once with its path."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import pytest

from payments_core.validation.readers import JSON
from payments_core_http.wire import json_text
from tests.http.api_harness import ApiHarness, MakeThing


def faults(api: ApiHarness, body: Any) -> dict[str, str]:
    seen = api.make(body)
    assert (seen.status, seen.code) == (400, "validation_error"), seen.body
    assert api.service.things.all(api.partition) == []
    return seen.faults


def test_five_faults_name_five_paths_in_the_order_of_the_class(api: ApiHarness) -> None:
    body = {
        "surprise": 1,
        "parts": [{"address": "a"}, {"address": ""}],
        "destination": {"type": "wallet"},
        "count": "2",
        "name": "A",
    }
    assert list(faults(api, body).items()) == [
        ("name", "must be letters a to z"),
        ("count", "must be an integer within ±(2^53−1)"),
        ("parts[1].address", "must have 1 to 64 characters"),
        ("destination.address", "is required"),
        ("surprise", "is not a known field"),
    ]


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("name", 7, "name"),
        ("name", None, "name"),
        ("name", ["a"], "name"),
        ("name", "a\n", "name"),
        ("name", "a" * 21, "name"),
        ("name", "é", "name"),
        ("amount", 12, "amount"),
        ("amount", 12.5, "amount"),
        ("amount", True, "amount"),
        ("amount", "１", "amount"),
        ("amount", "1e5", "amount"),
        ("count", "12", "count"),
        ("count", 1.0, "count"),
        ("count", True, "count"),
        ("count", 0, "count"),
        ("count", 11, "count"),
        ("count", 10**30, "count"),
        ("urgent", 1, "urgent"),
        ("urgent", "true", "urgent"),
        ("note", 1, "note"),
        ("note", "\ud800", "note"),
        ("note", "\0", "note"),
        ("parts", {}, "parts"),
        ("parts", "ab", "parts"),
        ("parts", [{"address": "a"}] * 4, "parts"),
        ("parts", [[]], "parts[0]"),
        ("parts", [{}], "parts[0].address"),
        ("parts", [{"address": "a"}, {"address": "a", "x": 1}], "parts[1].x"),
        ("destination", [], "destination"),
        ("destination", "account", "destination"),
        ("destination", {}, "destination.type"),
        ("destination", {"type": "moon"}, "destination.type"),
        ("destination", {"type": None}, "destination.type"),
        ("destination", {"type": ["account"]}, "destination.type"),
        ("destination", {"type": "account"}, "destination.accountId"),
        ("destination", {"type": "account", "accountId": 1}, "destination.accountId"),
        ("destination", {"type": "account", "accountId": "a", "rail": "ach"}, "destination.rail"),
        ("destination", {"type": "bank", "rail": "sepa"}, "destination.rail"),
        ("destination", {"type": "wallet", "address": "a", "chainId": 0}, "destination.chainId"),
        ("metadata", [], "metadata"),
        ("", 1, ""),
        ("a.b", 1, "a.b"),
        ("\ud800", 1, "\\ud800"),
        ("x" * 500, 1, "x" * 100 + "…"),
    ],
)
def test_a_wrong_value_names_its_path(api: ApiHarness, field: str, value: Any, path: str) -> None:
    assert list(faults(api, {"name": "a", field: value})) == [path]


@pytest.mark.parametrize(
    "body",
    [
        {"note": None},
        {"destination": None, "metadata": None},
        {"parts": []},
        {"count": 10, "urgent": True, "amount": "12.50", "note": "Grüße 💶"},
        {"destination": {"type": "bank_account"}},
        {"destination": {"type": "wallet", "address": "a", "chainId": None}},
        {"parts": [{"address": "a", "label": None}]},
        {"metadata": {}},
    ],
)
def test_a_right_body_is_taken(api: ApiHarness, body: dict[str, Any]) -> None:
    assert api.make({"name": "a", **body}).status == 201


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"",
        b" ",
        b"{} {}",
        b'{"name": "a",}',
        b"{'name': 1}",
        b'{"name": "a", "name": "a"}',
        b'{"name": "a", "n\\u0061me": "b"}',
        b'{"metadata": {"a": 1, "a": 1}, "name": "a"}',
        b'{"name": NaN}',
        b'{"name": -Infinity}',
        b'{"name": "\xff"}',
        b'{"name": "\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"name": "a"}',
        '{"name": "a"}'.encode("utf-16"),
        b'{"name": "a\nb"}',
        b'{"count": 01}',
        b'{"count": 1' + b"0" * 5_000 + b"}",
        b'{"count": 1.' + b"0" * 5_000 + b"}",
        b'{"count": 1e99999999999999999999}',
        b"[" * 33 + b"]" * 33,
        b"[" * 60_000,
        b'{"a":' * 33 + b"1" + b"}" * 33,
        b"nul",
    ],
)
def test_what_is_not_json_is_invalid_json(api: ApiHarness, raw: bytes) -> None:
    seen = api.call("POST", "/v2/things", raw=raw, key="k")
    assert (seen.status, seen.code) == (400, "invalid_json")
    assert api.service.things.all(api.partition) == []


@pytest.mark.parametrize("raw", [b"[]", b'"a"', b"1", b"null", b"true", b"[" * 32 + b"]" * 32])
def test_a_body_that_is_not_an_object_is_a_fault_at_the_top(api: ApiHarness, raw: bytes) -> None:
    seen = api.call("POST", "/v2/things", raw=raw, key="k")
    assert (seen.code, seen.faults) == ("validation_error", {"": "must be an object"})


def test_the_faults_of_one_answer_are_bounded(api: ApiHarness) -> None:
    body = {"name": "a", **{f"x{number}": 1 for number in range(1_000)}}
    assert len(faults(api, body)) == 100


def test_65_kib_are_too_many(api: ApiHarness) -> None:
    seen = api.make({"name": "a", "note": "x" * 65 * 1024})
    assert (seen.status, seen.code) == (413, "payload_too_large")
    assert seen.json["error"]["details"]["limitBytes"] == 65_536


def test_64_kib_are_not(api: ApiHarness) -> None:
    body = json.dumps({"name": "a", "note": ""})
    body = body[:-2] + "x" * (65_536 - len(body)) + body[-2:]
    assert api.call("POST", "/v2/things", raw=body.encode(), key="k").status == 201


def test_a_body_without_a_length_is_read_only_to_the_limit(api: ApiHarness) -> None:
    stream = io.BytesIO(b" " * 10_000_000)
    seen = api.call(
        "POST", "/v2/things", key="k", valid=False,
        environ={
            "CONTENT_TYPE": "application/json", "HTTP_TRANSFER_ENCODING": "chunked",
            "wsgi.input": stream,
        },
    )  # fmt: skip
    assert seen.status == 413
    assert stream.tell() <= 65_536 + 1


def test_a_chunked_body_is_read(api: ApiHarness) -> None:
    environ = {
        "CONTENT_TYPE": "application/json", "wsgi.input_terminated": True,
        "wsgi.input": io.BytesIO(b'{"name": "a"}'),
    }  # fmt: skip
    seen = api.call("POST", "/v2/things", key="k", environ=environ, valid=False)
    assert seen.status == 201


def test_a_body_shorter_than_its_length_is_invalid(api: ApiHarness) -> None:
    environ = {"CONTENT_LENGTH": "60"}
    seen = api.call(
        "POST", "/v2/things", key="k", raw=b'{"name": "a"}', environ=environ, valid=False
    )
    assert seen.code == "invalid_json"


@pytest.mark.parametrize("length", ["-1", "x", "1" * 30, "１"])
def test_a_length_that_is_not_a_number_is_refused(api: ApiHarness, length: str) -> None:
    environ = {"CONTENT_LENGTH": length}
    seen = api.call("POST", "/v2/things", key="k", raw=b"{}", environ=environ, valid=False)
    assert (seen.status, seen.code) == (400, "validation_error")


@pytest.mark.parametrize(
    "media_type",
    [
        None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
        "application/json; charset=latin-1", "application/jsonp", "application/json; q=1",
        "application/merge-patch+json", "text/json",
    ],
)  # fmt: skip
def test_another_content_type_is_415(api: ApiHarness, media_type: str | None) -> None:
    seen = api.make(environ={"CONTENT_TYPE": media_type}, valid=False)
    assert (seen.status, seen.code) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json", "Application/JSON", "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
    ],
)  # fmt: skip
def test_json_may_say_its_charset(api: ApiHarness, media_type: str) -> None:
    assert api.make(environ={"CONTENT_TYPE": media_type}).status == 201


def test_an_encoded_body_is_415(api: ApiHarness) -> None:
    assert api.make(headers={"Content-Encoding": "gzip"}).status == 415


class TestACallWithoutABody:
    """Close takes none."""

    def close(self, api: ApiHarness, **more: Any) -> Any:
        id = api.make().json["id"]
        return api.call("POST", f"/v2/things/{id}/close", **more)

    def test_needs_no_content_type(self, api: ApiHarness) -> None:
        assert self.close(api, environ={"CONTENT_TYPE": "", "CONTENT_LENGTH": ""}).status == 200

    def test_may_say_its_length_is_nothing(self, api: ApiHarness) -> None:
        environ = {"CONTENT_TYPE": "text/plain", "CONTENT_LENGTH": "0"}
        assert self.close(api, environ=environ).status == 200

    def test_may_have_an_empty_object(self, api: ApiHarness) -> None:
        assert self.close(api, body={}).status == 200

    def test_refuses_a_field(self, api: ApiHarness) -> None:
        assert self.close(api, body={"force": True}).faults == {"force": "is not a known field"}

    def test_refuses_another_content_type(self, api: ApiHarness) -> None:
        environ = {"CONTENT_TYPE": "text/plain"}
        assert self.close(api, raw=b"{}", environ=environ).status == 415

    def test_a_get_does_not_read_what_it_is_sent(self, api: ApiHarness) -> None:
        assert api.call("GET", "/v2/things", raw=b"{").status == 200


def test_a_secret_key_in_a_body_is_refused_and_not_repeated(api: ApiHarness) -> None:
    seen = api.make({"name": "a", "metadata": {"a": [api.secret]}})
    assert list(seen.faults) == ["metadata.a[0]"]
    assert api.secret.encode() not in seen.body
    named = api.make({"name": "a", "metadata": {"a": {api.secret: 1}}})
    assert list(named.faults) == ["metadata.a"] and api.secret.encode() not in named.body


def test_what_only_resembles_a_secret_is_text(api: ApiHarness) -> None:
    note = "A secret begins with sk_sandbox_ and a client token with cst_ or cat_."
    assert api.make({"name": "a", "note": note}).status == 201


class TestMetadata:
    """Interface "Authorize" and contract §1."""

    @pytest.mark.parametrize(
        ("metadata", "path"),
        [
            ({"a": {"b": {"c": {}}}}, "metadata.a.b.c"),
            ({"a": {"b": [[]]}}, "metadata.a.b[0]"),
            ({f"k{n}": 1 for n in range(26)}, "metadata"),
            ({"a": {f"k{n}": 1 for n in range(26)}}, "metadata.a"),
            ({"a": "x" * 513}, "metadata.a"),
            ({"x" * 513: 1}, "metadata." + "x" * 100 + "…"),
            ({"a": [1] * 51}, "metadata.a"),
            ({"a": 2**53}, "metadata.a"),
            ({"a": -(2**53)}, "metadata.a"),
            ({"a": "\ud800"}, "metadata.a"),
            ({"\udfff": 1}, "metadata.\\udfff"),
            ({"a": "\0"}, "metadata.a"),
            ({"a": {"\0": 1}}, "metadata.a.\0"),
            ({f"k{n}": "é" * 250 for n in range(9)}, "metadata"),
        ],
    )
    def test_beyond_a_limit_names_its_path(
        self, api: ApiHarness, metadata: dict[str, Any], path: str
    ) -> None:
        assert list(faults(api, {"name": "a", "metadata": metadata})) == [path]

    @pytest.mark.parametrize("number", ["1e400", "-1e400", "1e-400", "0.1000000000000000055511"])
    def test_a_number_that_would_change_is_refused(self, api: ApiHarness, number: str) -> None:
        raw = f'{{"name": "a", "metadata": {{"a": {number}}}}}'.encode()
        seen = api.call("POST", "/v2/things", raw=raw, key="k")
        assert list(seen.faults) == ["metadata.a"]

    def test_all_faults_at_once(self, api: ApiHarness) -> None:
        metadata = {"a": 2**53, "b": ["ok", "x" * 600], "c": {"d": {"e": []}}}
        found = faults(api, {"metadata": metadata})
        assert list(found) == ["name", "metadata.a", "metadata.b[1]", "metadata.c.d.e"]

    def test_at_every_limit_is_kept_as_it_was(self) -> None:
        text = (
            '{"name": "a", "metadata": {"deep": {"er": {"x": null}}, "list": ['
            + ", ".join(["1"] * 50)
            + '], "long": "' + "x" * 512 + '", "big": 9007199254740991, "f": 0.1, "e": 1e21}}'
        )  # fmt: skip
        thing = JSON.read(json_text.parse(text.encode()), MakeThing)
        kept = json.loads(msgspec.json.encode(thing.metadata))
        assert kept == json.loads(text)["metadata"]

    def test_twenty_five_keys_and_4096_bytes_fit(self, api: ApiHarness) -> None:
        metadata = {f"k{n:02}": "x" * 100 for n in range(25)}
        size = len(msgspec.json.encode(metadata))
        metadata["k00"] += "y" * min(512 - 100, 4096 - size)
        metadata["k01"] += "y" * min(412, 4096 - len(msgspec.json.encode(metadata)))
        metadata["k02"] += "y" * min(412, 4096 - len(msgspec.json.encode(metadata)))
        metadata["k03"] += "y" * min(412, 4096 - len(msgspec.json.encode(metadata)))
        assert len(msgspec.json.encode(metadata)) == 4096
        assert api.make({"name": "a", "metadata": metadata}).status == 201
        metadata["k24"] += "y"
        assert list(faults_after(api, metadata)) == ["metadata"]


def faults_after(api: ApiHarness, metadata: dict[str, Any]) -> dict[str, str]:
    return api.make({"name": "a", "metadata": metadata}, key="k-2").faults
