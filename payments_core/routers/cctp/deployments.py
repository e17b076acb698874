"""Where Circle's CCTP v2 is: the domain of each chain, and the two contracts that we call.

Source: developers.circle.com/cctp/references/contract-addresses and
developers.circle.com/cctp/concepts/supported-chains-and-domains. The contracts have one address on
all mainnets, and another one on all testnets; testnets have the domains of their mainnets.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class CctpDeployment:
    """CCTP on one chain: its domain, TokenMessengerV2 and MessageTransmitterV2."""

    domain: int
    messenger: str
    transmitter: str

    def reaches(self, other: CctpDeployment) -> bool:
        """Whether a burn here can be minted there: no mainnet reaches a testnet."""
        return self.messenger == other.messenger and self.domain != other.domain


def _mainnet(domain: int) -> CctpDeployment:
    return CctpDeployment(
        domain,
        "0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d",
        "0x81D40F21F12A8F0E3252Bccb954D722d4c464B64",
    )


def _testnet(domain: int) -> CctpDeployment:
    return CctpDeployment(
        domain,
        "0x8FE6B999Dc680CcFDD5Bf7EB0974218be2542DAA",
        "0xE737e5cEBEEBa77EFE34D4aa090756590b1CE275",
    )


DEPLOYMENTS: Mapping[int, CctpDeployment] = {
    1: _mainnet(0),
    10: _mainnet(2),
    42161: _mainnet(3),
    8453: _mainnet(6),
    137: _mainnet(7),
    11155111: _testnet(0),
    11155420: _testnet(2),
    421614: _testnet(3),
    84532: _testnet(6),
    80002: _testnet(7),
}
"""By the chain's number."""
