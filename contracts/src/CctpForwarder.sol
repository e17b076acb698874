// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Purse} from "./Purse.sol";

interface IApprovable {
    function approve(address spender, uint256 amount) external returns (bool);
}

/// What we use of Circle's TokenMessengerV2 (CCTP v2).
interface ITokenMessenger {
    function depositForBurn(
        uint256 amount,
        uint32 destinationDomain,
        bytes32 mintRecipient,
        address burnToken,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external;
}

/// Holds what is paid for one route, and can do two things with it: burn it to the route's
/// recipient, or give it back. `CctpForwarders`, which creates it, decides which.
contract CctpForwarder is Purse {
    error BurnFailed();

    /// Burn tokens, so that the recipient gets them on the destination chain. Anybody may bring the
    /// attested message there: a caller that only one key could be would lose it with the key.
    function burn(
        address token,
        address messenger,
        uint256 amount,
        uint32 destinationDomain,
        bytes32 recipient,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external {
        _onlyFactory();
        // A call to an address without code succeeds, and burns nothing.
        if (messenger.code.length == 0) revert BurnFailed();
        if (!IApprovable(token).approve(messenger, amount)) revert BurnFailed();
        ITokenMessenger(messenger).depositForBurn(
            amount,
            destinationDomain,
            recipient,
            token,
            bytes32(0),
            maxFee,
            minFinalityThreshold
        );
    }
}
