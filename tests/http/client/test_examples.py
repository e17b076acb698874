"""The examples in the docstrings of the client, and of what receives its webhooks."""

from __future__ import annotations

import asyncio
import doctest
import inspect
from typing import Any

import pytest

from payments_core.webhooks import receiver
from payments_core_http import client
from payments_core_http.client.clients import Checkout
from tests.http.client.shop import Shop

CLASSES = [client.Client, client.AccountClient, client.PublicClient, Checkout, client.AsyncClient]


@pytest.mark.parametrize(
    "kind", [*CLASSES, client.Retries, client.ReceivedEvent], ids=lambda kind: kind.__name__
)
def test_the_example_of_a_class_runs(kind: type[Any], capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop()
    shop.client.accounts.create(external_user_id="bob", subject_type="individual")
    names = {
        **{name: getattr(client, name) for name in client.__all__},
        "read_event": receiver.read_event,
        "asyncio": asyncio,
        "application": shop.app,
        "app": shop.row,
        "secret": shop.secret,
        "client": shop.client,
        "eve_id": shop.payer.account_id,
        "payment": shop.receive(),
    }
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(kind) or "", names, kind.__name__, None, 0
    )
    failed, tried = doctest.DocTestRunner().run(example)
    assert (failed, tried > 0) == (0, True), capsys.readouterr().out
