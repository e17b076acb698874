"""The examples of those who build on the service: each is run, and shows what its page says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from examples import (
    fastapi_bridge,
    flask_shop,
    marketplace,
    mobile_backend,
    subscription,
    webhook_receiver,
)
from tests.servers import fresh_database, postgres_or_skip

ROOT = Path(__file__).resolve().parents[2]

SHOWN: dict[Callable[[], None], str] = {
    flask_shop.main: """\
order 1 waits for its payment
send 4500000 of USDC's smallest unit on 8453
order 1 shipped
a forged event is answered 400
""",
    marketplace.main: """\
paid ['succeeded', 'succeeded']
  ann     57.50
  honey   30.00
  tea     12.50
refunded partially_refunded
  ann     67.50
  honey   20.00
  tea     12.50
""",
    subscription.main: """\
mandate active 9.00 per week
fee succeeded
fee succeeded
fee succeeded
an extra dollar is refused by amountPerPeriod
collected 4 {'succeeded'}
""",
    mobile_backend.main: """\
order-1 authorized
order-1 succeeded
the token has expired: log in again
order-2 authorized
the token may not: payments:write
""",
    webhook_receiver.main: """\
the Payment is succeeded after 8 events
and still succeeded after 16 deliveries
""",
    fastapi_bridge.main: """\
created 201 True
orders [{'number': 'order-1', 'status': 'awaiting_payment'}]
refused 400 ['amount must be a decimal string such as 25.00, with no sign or exponent']
behind the bridge 200 sandbox
the checkout page 200 http://localhost/payments
its style 200
""",
}


@pytest.mark.parametrize("main", SHOWN, ids=lambda main: main.__module__.rpartition(".")[2])
def test_it_runs_and_shows_this(
    main: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    main()
    assert capsys.readouterr().out == SHOWN[main]


@pytest.mark.postgres
@pytest.mark.timeout(240)
def test_django_embeds_the_service_on_its_own_postgresql() -> None:
    """With the worker's command as a process, which ends at SIGTERM."""
    with fresh_database(postgres_or_skip()) as url:
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / "django_shop" / "play.py"), url],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        found = "SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_name = %s"
        with psycopg.connect(url) as connection:
            schemas = {
                table: connection.execute(found, (table,)).fetchall()
                for table in ("shop_order", "payments")
            }
    assert done.returncode == 0, done.stderr
    assert (
        re.sub("is in .*/key-ring", "is in key-ring", done.stdout)
        == """\
The tables are up to date.
The key ring is in key-ring. Keep it with your secrets, out of the repository.
The app Shop has the partner id django.
Events are kept for ship.
the checkout page 200 /payments/pay
Handlers: ship
Working
order 1 shipped
the worker ended with 0
"""
    )
    assert schemas == {"shop_order": [("public",)], "payments": [("payments_core",)]}
