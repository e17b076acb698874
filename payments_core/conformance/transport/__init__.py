"""The transport suite: the checks before signed webhooks are sent to strangers' servers.

With pytest, a few lines make it run::

    class TestMyTransport(TransportConformance):
        def open(self, authority):
            return MyTransport(trusted=authority)

Any other runner calls `setup_method`, a `test_...` method and `teardown_method` on an instance.
The servers are real ones on loopback; their certificates are made by the command `openssl`, and
a check that needs something missing on the machine raises `unittest.SkipTest`.
"""

from payments_core.conformance.transport.addresses import AddressChecks
from payments_core.conformance.transport.harness import Harness
from payments_core.conformance.transport.limits import LimitChecks
from payments_core.conformance.transport.responses import ResponseChecks
from payments_core.conformance.transport.reuse import ReuseChecks
from payments_core.conformance.transport.tls import TlsChecks

__all__ = ["TransportConformance", "Harness"]


class TransportConformance(ResponseChecks, AddressChecks, LimitChecks, ReuseChecks, TlsChecks):
    """Every check of the transport port; override `open`."""
