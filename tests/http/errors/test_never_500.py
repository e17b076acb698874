"""Whatever is sent, the answer is a 4xx or a success, with the headers of every answer."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.http.api_harness import ApiHarness, Seen

API = ApiHarness()

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.sampled_from(["a", "1.5", "account", "wallet", "bank", API.secret])
)
names = st.sampled_from(
    ["name", "amount", "count", "urgent", "note", "parts", "destination", "metadata", "type",
     "address", "label", "accountId", "chainId", "rail", "x"]
) | st.text(st.characters(codec=None), max_size=8)  # fmt: skip
documents = st.recursive(
    scalars,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(names, inside, max_size=6),
    max_leaves=20,
)
relaxed = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def sound(seen: Seen) -> None:
    assert seen.status < 500, seen.body
    assert seen.headers["x-request-id"].startswith("req_")
    assert seen.headers["service-version"] == "2026-09-09"
    if seen.status >= 400:
        assert seen.json["error"]["details"]["requestId"] == seen.headers["x-request-id"]


@relaxed
@given(documents, st.sampled_from(["one", "two", None]))
def test_any_document(document: Any, key: str | None) -> None:
    raw = json.dumps(document).encode()
    sound(API.call("POST", "/v2/things", raw=raw, key=key))


@relaxed
@given(st.dictionaries(names, documents, max_size=8))
def test_any_object_for_a_client_session(document: Any) -> None:
    sound(API.call("POST", "/v2/client-sessions", raw=json.dumps(document).encode(), key="k"))


@relaxed
@given(st.dictionaries(names, documents, max_size=6))
def test_any_metadata_within_a_good_body(metadata: Any) -> None:
    raw = json.dumps({"name": "a", "metadata": metadata}).encode()
    sound(API.call("POST", "/v2/things", raw=raw, key=None))


@relaxed
@given(st.binary(max_size=64))
def test_any_bytes(raw: bytes) -> None:
    sound(API.call("POST", "/v2/things", raw=raw, key="bytes"))


@relaxed
@given(
    path=st.text(st.characters(max_codepoint=255), max_size=20),
    query=st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40),
    method=st.sampled_from(["GET", "HEAD", "POST", "DELETE", "OPTIONS", "BREW"]),
)
def test_any_target(path: str, query: str, method: str) -> None:
    target = f"/v2/things/{path.replace('?', '')}?{query}"
    sound_head(API.call(method, target, valid=False))
    sound_head(API.call(method, f"/v2/things?{query}", valid=False))


def sound_head(seen: Seen) -> None:
    assert seen.status < 500
    assert seen.headers["x-request-id"].startswith("req_")


@relaxed
@given(
    st.dictionaries(
        st.sampled_from(
            ["Authorization", "Idempotency-Key", "Service-Version", "Content-Type",
             "X-Service-Payment-Secret", "Content-Encoding", "Origin"]
        ),
        st.text(st.characters(max_codepoint=255), max_size=40),
    )
)  # fmt: skip
def test_any_headers(headers: dict[str, str]) -> None:
    for path in ("/v2/things", "/v2/client/auth/exchange", "/v2/client/things/payment_x"):
        sound(API.call("POST", path, {"name": "a"}, headers=headers, valid=False))
