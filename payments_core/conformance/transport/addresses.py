"""The addresses of a transport: it connects only to the vetted ones."""

from __future__ import annotations

from payments_core.conformance.transport.harness import Harness, require_failure, require_response
from payments_core.conformance.transport.servers import LOOPBACK_ADDRESS, OTHER_LOOPBACK_ADDRESS


class AddressChecks(Harness):
    """A name's addresses were vetted before; the transport uses them and resolves nothing."""

    def test_the_name_is_not_resolved_again(self) -> None:
        vetted, named = self.start_pair()
        outcome = self.post(
            self.open_transport(), vetted, name="localhost", addresses=(OTHER_LOOPBACK_ADDRESS,)
        )
        require_response(outcome)
        assert len(vetted.requests) == 1
        assert named.connections == 0, (
            "the transport resolved the name; it must use the vetted address"
        )

    def test_a_host_that_looks_like_an_address_leads_to_the_vetted_one(self) -> None:
        transport, (vetted, other) = self.open_transport(), self.start_pair()
        for name in ("127.0.0.1", "0x7f.1", "2130706433", "127.1", "::1"):
            require_response(
                self.post(transport, vetted, name=name, addresses=(OTHER_LOOPBACK_ADDRESS,))
            )
        assert other.connections == 0, (
            "the transport connected to the host; it must use the vetted address"
        )

    def test_a_name_among_the_addresses_is_not_looked_up(self) -> None:
        server = self.start_server()
        require_failure(self.post(self.open_transport(), server, addresses=("localhost",)))
        assert server.connections == 0

    def test_without_an_address_nothing_is_sent(self) -> None:
        server = self.start_server()
        require_failure(self.post(self.open_transport(), server, name="localhost", addresses=()))
        assert server.connections == 0

    def test_the_next_address_is_tried_where_one_refuses(self) -> None:
        server = self.start_server()
        require_response(
            self.post(
                self.open_transport(),
                server,
                addresses=("::1", OTHER_LOOPBACK_ADDRESS, LOOPBACK_ADDRESS),
            )
        )

    def test_only_the_first_address_that_accepts_gets_the_request(self) -> None:
        first, second = self.start_pair(lambda connection, request: False)
        require_failure(
            self.post(
                self.open_transport(), first, addresses=(OTHER_LOOPBACK_ADDRESS, LOOPBACK_ADDRESS)
            )
        )
        assert len(first.requests) == 1
        assert second.connections == 0, (
            "a request that was sent must not be sent to a second address"
        )

    def test_a_deadline_that_has_passed_connects_to_nothing(self) -> None:
        server = self.start_server()
        require_failure(self.post(self.open_transport(), server, timeout_s=0))
        # Connections are accepted in order: with this one, an earlier one would be counted.
        require_response(self.post(self.open_transport(), server))
        assert server.connections == 1, "the transport must not connect after the deadline"
