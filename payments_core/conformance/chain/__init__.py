"""The chain suite: the checks for an adapter before money depends on it.

`docs/how-to/write-a-chain-adapter.md` says what each method promises, and how a chain that passes
is registered: its `Network` in `networks`, or a table `[networks.N]` in the configuration.

With pytest, a few lines make it run::

    class TestMyChain(ChainConformance):
        token = "0x..."
        finality_blocks = 9  # what the network of `open` asks for
        can_choose_policy = True  # `open_with` works; other capabilities are in `Harness`

        @pytest.fixture(autouse=True)
        def _place(self, my_node):
            self.node = my_node  # each check may begin with whatever the last one left

        def open(self):
            return MyChain(self.node.url, network=MY_NETWORK, signer=MY_SIGNER)

        def open_with(self, acceptance):
            network = attrs.evolve(MY_NETWORK, acceptance=acceptance)
            return MyChain(self.node.url, network=network, signer=MY_SIGNER)

        def new_address(self):
            return self.node.make_wallet()

        def send_external_transfer(self, token, recipient, amount_atomic):
            return self.node.transfer(token, recipient, amount_atomic)

        def send_failed_transaction(self, token, recipient):
            return self.node.transfer(token, recipient, self.node.more_than_it_has)

        def mine_blocks(self, count):
            self.node.mine(count)

The sender of an environment is `derive(AddressSpec(environment_id, "operator", "operator"))`: the
checks of nonces read it there. What a chain cannot do, such as signatures of contracts, raises
`UnsupportedByChain`. Until an adapter can send, `can_send = False` skips the checks of that.

Any other runner calls `setup_method`, a `test_...` method and `teardown_method` on an instance;
a check of what the adapter does not declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.chain.addresses import AddressChecks
from payments_core.conformance.chain.harness import Harness
from payments_core.conformance.chain.reading import ReadingChecks
from payments_core.conformance.chain.reorgs import ReorgChecks
from payments_core.conformance.chain.scanning import ScanChecks
from payments_core.conformance.chain.sending import SendingChecks
from payments_core.conformance.chain.signatures import SignatureChecks

__all__ = ["ChainConformance", "Harness"]


class ChainConformance(
    ReadingChecks, ScanChecks, AddressChecks, SignatureChecks, SendingChecks, ReorgChecks
):
    """Every check of the chain port; override the hooks and declare what the adapter can do."""
