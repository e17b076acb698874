"""Where a transport connects: to the vetted addresses, and to nothing else."""

from __future__ import annotations

from payments_core.conformance.transport.servers import BESIDE, HERE
from payments_core.conformance.transport.setting import Setting, require_answer, require_failure


class AddressChecks(Setting):
    """A name's addresses were judged before; the transport has them and asks nobody again."""

    def test_the_name_is_not_resolved_again(self) -> None:
        vetted = self.server(address=BESIDE)
        named = self.server(address=HERE, port=vetted.port)
        outcome = self.post(self.transport(), vetted, name="localhost", addresses=(BESIDE,))
        require_answer(outcome)
        assert len(vetted.requests) == 1
        assert named.connections == 0, "the name was resolved, and not the vetted address used"

    def test_a_host_that_looks_like_an_address_leads_to_the_vetted_one(self) -> None:
        transport, vetted = self.transport(), self.server(address=BESIDE)
        other = self.server(address=HERE, port=vetted.port)
        for name in ("127.0.0.1", "0x7f.1", "2130706433", "127.1", "::1"):
            require_answer(self.post(transport, vetted, name=name, addresses=(BESIDE,)))
        assert other.connections == 0, "the host was connected to, and not the vetted address"

    def test_a_name_among_the_addresses_is_not_looked_up(self) -> None:
        server = self.server()
        require_failure(self.post(self.transport(), server, addresses=("localhost",)))
        assert server.connections == 0

    def test_without_an_address_nothing_is_sent(self) -> None:
        server = self.server()
        require_failure(self.post(self.transport(), server, name="localhost", addresses=()))
        assert server.connections == 0

    def test_the_next_address_is_tried_where_one_refuses(self) -> None:
        server = self.server()
        require_answer(self.post(self.transport(), server, addresses=("::1", BESIDE, HERE)))

    def test_only_the_first_address_that_accepts_gets_the_request(self) -> None:
        first = self.server(lambda connection, request: False, address=BESIDE)
        second = self.server(address=HERE, port=first.port)
        require_failure(self.post(self.transport(), first, addresses=(BESIDE, HERE)))
        assert len(first.requests) == 1
        assert second.connections == 0, "a request that was sent went to another address as well"

    def test_a_deadline_that_has_passed_connects_to_nothing(self) -> None:
        server = self.server()
        require_failure(self.post(self.transport(), server, timeout_s=0))
        # Connections are accepted in order: with this one, an earlier one would be counted.
        require_answer(self.post(self.transport(), server))
        assert server.connections == 1, "it connected after the deadline"
