"""One node over JSON-RPC: what it may do, and what becomes of it."""

from __future__ import annotations

import json
import logging
import socket
import time
import traceback
from collections.abc import Iterator

import pytest

from payments_core.chains.evm import rpc
from payments_core.chains.evm.rpc import Node, NodeRefused, Refusal, RpcCall
from payments_core.chains.http.client import HttpClient, RequestLimits
from payments_core.chains.port import ChainUnavailable
from payments_core.conformance.transport.certificates import NAME, OTHER_NAME, certificates
from tests.chains.evm.fake_node import TOKEN, TRANSFER, FakeChain, FakeNode, Refuse, transfer_log

LIMITS = RequestLimits(connect_timeout_s=0.3, total_timeout_s=0.5, max_response_bytes=1 << 20)
SECRET = "k3y-0f-the-operator"


@pytest.fixture
def fake() -> Iterator[FakeNode]:
    node = FakeNode(FakeChain())
    yield node
    node.close()


@pytest.fixture
def node(fake: FakeNode) -> Iterator[Node]:
    node = Node(fake.url, limits=LIMITS)
    yield node
    node.close()


def block_calls(count: int) -> list[RpcCall]:
    return [RpcCall("eth_getBlockByNumber", (hex(number), False)) for number in range(count)]


def numbers(results: list[object]) -> list[int]:
    return [int(json.loads(bytes(result))["number"], 16) for result in results]  # type: ignore[call-overload]


def test_a_call_answers_the_result_as_it_is_written(node: Node) -> None:
    assert bytes(node.call("eth_chainId")) == b'"0x2105"'


def test_a_batch_is_divided_by_size_and_answered_in_its_order(fake: FakeNode) -> None:
    node = Node(fake.url, limits=LIMITS, batch=4)
    assert numbers(node.batch(block_calls(10))) == list(range(10))
    assert [len(request) for request in fake.requests] == [4, 4, 2]


def test_answers_in_any_order_find_their_questions(fake: FakeNode, node: Node) -> None:
    fake.fault = "backwards"
    assert numbers(node.batch(block_calls(7))) == list(range(7))


def test_a_batch_of_nothing_asks_nothing(fake: FakeNode, node: Node) -> None:
    assert node.batch([]) == []
    assert fake.requests == []


@pytest.mark.parametrize("fault", ["no batches", "no batches 400"])
def test_a_node_that_refuses_batches_is_asked_one_by_one_from_then_on(
    fake: FakeNode, node: Node, fault: str
) -> None:
    fake.fault = fault
    assert numbers(node.batch(block_calls(8))) == list(range(8))
    fake.requests.clear()
    assert numbers(node.batch(block_calls(8))) == list(range(8))
    assert [type(request) for request in fake.requests] == 8 * [dict]


def test_a_node_that_refused_a_batch_once_gets_batches_again(
    fake: FakeNode, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some nodes answer so when they are asked too often."""
    fake.fault = "no batches"
    assert numbers(node.batch(block_calls(8))) == list(range(8))
    fake.fault = None
    monkeypatch.setattr(rpc, "BATCH_MEMORY_S", 0.0)
    fake.requests.clear()
    assert numbers(node.batch(block_calls(8))) == list(range(8))
    assert [type(request) for request in fake.requests] == [list]


def test_a_refusal_in_a_batch_takes_one_place_only(fake: FakeNode, node: Node) -> None:
    def lie(params: object, result: dict[str, object] | None) -> object:
        if result is None or result["number"] == "0x1":
            raise Refuse("no")
        return result

    fake.lies["eth_getBlockByNumber"] = lie
    results = node.batch(block_calls(3))
    assert isinstance(results[1], Refusal)
    assert numbers([results[0], results[2]]) == [0, 2]
    with pytest.raises(NodeRefused, match=r'refused eth_getBlockByNumber, saying "no"$'):
        node.call_all(block_calls(3))


def test_what_a_contract_says_when_it_reverts_is_never_repeated(fake: FakeNode, node: Node) -> None:
    def lie(params: object, result: object) -> object:
        raise Refuse("execution reverted: pay me at evil.example")

    fake.lies["eth_chainId"] = lie
    with pytest.raises(NodeRefused) as refused:
        node.call("eth_chainId")
    assert "evil" not in "".join(traceback.format_exception(refused.value))
    assert 'saying "execution reverted"' in str(refused.value)


KEY = "s3cr3tkey0123456789"


@pytest.mark.parametrize(
    "address", [f"/v2/{KEY}", f"/?apikey={KEY}", f"/{KEY[:9]}%2F{KEY[10:]}?x={KEY}"]
)
@pytest.mark.parametrize("status", [200, 400, 403, 429, 500])
def test_a_nodes_own_words_are_kept_without_the_secrets_of_its_address(
    fake: FakeNode, address: str, status: int
) -> None:
    words = f"missing trie node 00ab\n({KEY.upper()} at {address}): {'long ' * 100}"
    error = {"code": -32000, "message": words}
    fake.says = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
    fake.says_status = status
    node = Node(fake.url + address)
    with pytest.raises(ChainUnavailable) as raised:
        node.call("eth_call")
    said = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
    assert "missing trie node 00ab ([redacted] at " in said
    assert KEY.lower() not in said.lower() and len(str(raised.value)) < 350
    node.close()


@pytest.mark.parametrize(
    "fault",
    [
        "wrong ids", "same ids", "one missing", "garbage", "empty", "truncated", "cut", "huge",
        "endless", "redirect", "deep", "status 500", "status 429", "status 403", "status 204",
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_right_is_not_a_result(
    fake: FakeNode, node: Node, fault: str
) -> None:
    fake.fault = fault
    begun = time.monotonic()
    with pytest.raises(ChainUnavailable) as raised:
        node.call_all(block_calls(3))
    assert time.monotonic() - begun < 3
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))
    fake.fault = None  # and nothing of it is left for the next
    assert numbers(node.batch(block_calls(3))) == [0, 1, 2]


@pytest.mark.parametrize("fault", ["hang", "drip", "drip headers"])
def test_a_node_that_hangs_or_drips_does_not_outlive_the_whole_time(
    fake: FakeNode, node: Node, fault: str
) -> None:
    fake.fault = fault
    begun = time.monotonic()
    with pytest.raises(ChainUnavailable, match="the request timed out"):
        node.call_all(block_calls(3))
    assert time.monotonic() - begun < 10  # it drips for ever


@pytest.mark.parametrize(
    "said",
    [
        {"id": None, "result": "0x1"}, {"result": "0x1"}, {"id": "1", "result": "0x1"},
        {"id": 1}, {"id": 1.5, "result": "0x1"}, {"id": 1, "result": "0x1", "jsonrpc": "1.0"},
        {"id": 1, "jsonrpc": None, "result": "0x1"}, {"id": 1, "error": None}, [], [{"id": 1}],
        "0x1", None,
    ],
)  # fmt: skip
def test_what_is_not_an_answer_of_json_rpc_2_is_not_a_result(
    fake: FakeNode, node: Node, said: object
) -> None:
    whole = {"jsonrpc": "2.0", **said} if isinstance(said, dict) else said
    fake.says = json.dumps(whole).encode()
    with pytest.raises(ChainUnavailable) as raised:
        node.call("eth_chainId")
    assert not isinstance(raised.value, NodeRefused)


@pytest.mark.parametrize("error", [{"code": -32700}, {}, "no", 3, False])
@pytest.mark.parametrize("id", [None, 1])
def test_an_error_of_any_form_is_a_refusal(
    fake: FakeNode, node: Node, error: object, id: int | None
) -> None:
    fake.says = json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()
    with pytest.raises(NodeRefused):
        node.call("eth_chainId")


def test_a_null_besides_a_result_is_not_an_error(fake: FakeNode, node: Node) -> None:
    fake.says = b'{"jsonrpc": "2.0", "id": 1, "error": null, "result": null}'
    assert bytes(node.call("eth_getTransactionByHash", "0x1")) == b"null"


def test_over_tls_only_a_node_that_is_vouched_for_is_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = certificates()
    caplog.set_level(logging.DEBUG)
    resolved = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest: resolved("127.0.0.1", *rest))
    for name, certificate, authority in (
        (NAME, made.good, made.ca_file),
        (NAME, made.good, made.self_signed),
        (OTHER_NAME, made.good, made.ca_file),
        (NAME, made.expired, made.ca_file),
        (NAME, made.self_signed, made.ca_file),
    ):
        fake = FakeNode(FakeChain(), certificate=certificate)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        node = Node(f"https://{name}:{fake.port}/{SECRET}", limits=LIMITS)
        try:
            if (name, certificate, authority) == (NAME, made.good, made.ca_file):
                assert bytes(node.call("eth_chainId")) == b'"0x2105"'
                assert fake.targets == [f"/{SECRET}"]
            else:
                with pytest.raises(ChainUnavailable, match="SSLError"):
                    node.call("eth_chainId")
                assert fake.requests == []
        finally:
            fake.close()
    assert SECRET not in caplog.text


def test_a_question_ends_when_its_time_does(fake: FakeNode) -> None:
    node = Node(fake.url, limits=RequestLimits(total_timeout_s=30))
    fake.fault = "hang"
    begun = time.monotonic()
    with pytest.raises(ChainUnavailable):
        node.call("eth_chainId", until=begun + 0.1)
    assert time.monotonic() - begun < 10
    with pytest.raises(ChainUnavailable, match="the deadline has passed"):
        node.call("eth_chainId", until=begun)


def test_a_node_that_is_not_there_is_unavailable(fake: FakeNode) -> None:
    node = Node(fake.url, limits=LIMITS)
    fake.close()
    with pytest.raises(ChainUnavailable):
        node.call("eth_chainId")


def test_connections_are_kept(fake: FakeNode, node: Node) -> None:
    node.call("eth_chainId")
    waiting = tuple(node._client._idle._since)
    assert len(waiting) == 1
    for _ in range(5):
        node.call("eth_chainId")
        assert tuple(node._client._idle._since) == waiting


def test_a_connection_that_was_closed_meanwhile_costs_one_more_try(fake: FakeNode) -> None:
    node = Node(fake.url, limits=LIMITS)
    node.call("eth_chainId")
    fake.close()
    again = FakeNode(fake.chain, port=fake.port)
    try:
        assert bytes(node.call("eth_chainId")) == b'"0x2105"'
    finally:
        again.close()


def test_the_address_of_a_node_keeps_its_secrets(
    fake: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    host = fake.url.removeprefix("http://")
    node = Node(f"http://user:{SECRET}@{host}/v3/{SECRET}?key={SECRET}", limits=LIMITS)
    reported = [repr(node), node.name, repr(node._client)]
    for fault in (None, "garbage", "hang", "cut", "status 500", "redirect", "endless"):
        fake.fault = fault
        try:
            node.call("eth_chainId")
        except ChainUnavailable as error:
            reported.append("".join(traceback.format_exception(error)))
    assert fake.targets[0] == f"/v3/{SECRET}?key={SECRET}"  # and the node itself gets it
    assert not [text for text in (*reported, caplog.text) if SECRET in text]
    assert "POST /" in caplog.text  # what is logged was looked at


@pytest.mark.parametrize("url", [f"ftp://host/{SECRET}", SECRET, f"http:///{SECRET}", "", f"http://h:x/{SECRET}",
                                 f"http://h/{SECRET} \r\nX: y"])  # fmt: skip
def test_an_invalid_address_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError) as refused:
        Node(url)
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_path_goes_behind_that_of_the_address(fake: FakeNode) -> None:
    wire = HttpClient(fake.url + "/v1/?key=k", LIMITS)
    until = time.monotonic() + 5
    ask = b'{"method": "eth_chainId", "params": [], "id": 1}'
    for path in ("/", "/accounts/0x1", "/view?a=b"):
        assert wire.send("POST", until, path, ask)[0] == 200
    assert fake.targets == ["/v1/?key=k", "/v1/accounts/0x1?key=k", "/v1/view?a=b&key=k"]


def test_logs_that_are_refused_are_asked_for_by_halves(fake: FakeNode, node: Node) -> None:
    for amount in range(9):
        fake.chain.include(transfer_log(amount=amount), name=amount)

    def lie(params: list[dict[str, str]], result: list[object]) -> object:
        if len(result) > 2:
            raise Refuse("query returned more than 2 results")
        return result

    fake.lies["eth_getLogs"] = lie
    query = {"address": [TOKEN], "topics": [TRANSFER]}
    pieces = node.read_logs(query, 0, fake.height)
    found = [int(log["data"], 16) for piece in pieces for log in json.loads(bytes(piece))]
    assert found == list(range(9))


def test_logs_of_one_block_that_are_refused_are_unavailable(fake: FakeNode, node: Node) -> None:
    def lie(params: object, result: object) -> object:
        raise Refuse("too large")

    fake.lies["eth_getLogs"] = lie
    with pytest.raises(NodeRefused, match="logs of block 0"):
        node.read_logs({"address": [TOKEN], "topics": [TRANSFER]}, 0, 1 << 40)
    assert len(fake.asked) <= 42


def test_logs_that_are_too_much_to_be_read_are_asked_for_by_halves(fake: FakeNode) -> None:
    for block in range(8):
        logs = [transfer_log(amount=amount) for amount in range(10)]
        fake.chain.include(*logs, name=block)
    node = Node(fake.url, limits=RequestLimits(max_response_bytes=20_000))
    pieces = node.read_logs({"address": [TOKEN], "topics": [TRANSFER]}, 0, fake.height)
    assert len(pieces) > 1
    assert sum(len(json.loads(bytes(piece))) for piece in pieces) == 80
