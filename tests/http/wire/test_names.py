"""The paths of the library, as the caller over HTTP has written them."""

from __future__ import annotations

import pytest

from payments_core_http.wire.names import name_on_wire


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("", ""),
        ("amount", "amount"),
        ("destination.account_id", "destination.accountId"),
        ("expires_in_s", "expiresInSeconds"),
        ("wallets[0].chain_type", "wallets[0].chainType"),
        ("allowed_methods[1]", "allowedMethods[1]"),
        ("tolerance_bps", "underpaymentToleranceBps"),
        ("tx_data.safe_tx_gas", "txData.safeTxGas"),
        ("types.domain", "types.EIP712Domain"),
        ("metadata", "metadata"),
        ("metadata.my_key.in_s", "metadata.my_key.in_s"),
        ("Idempotency-Key", "Idempotency-Key"),
        ("destination.accountId", "destination.accountId"),
    ],
)
def test_a_path_has_the_names_of_the_wire(path: str, named: str) -> None:
    assert name_on_wire(path) == named
