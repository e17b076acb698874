// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IToken} from "./Purse.sol";
import {Factory, Kind} from "./Factory.sol";

/// What a Safe and a Vault offer to the modules that their owners enabled.
interface IAvatar {
    function execTransactionFromModule(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation
    ) external returns (bool);
}

/// Lets one operator move listed tokens from a user's own Safe or Vault, into escrows and nowhere
/// else.
///
/// Everything is fixed when it is deployed, through the deterministic deployer, and so part of its
/// address: an owner who enables that address knows what it can ever do.
contract RoleModule {
    address public immutable avatar;
    address public immutable operator;
    Factory public immutable factory;
    bytes32 public immutable environment;
    mapping(address token => bool) public isAllowed;

    uint8 private constant CALL = 0;

    error OnlyOperator();
    error TokenNotAllowed(address token);
    error NotATransfer();
    error NotToTheEscrow();
    error TransferFailed(address token);

    constructor(
        address avatar_,
        address operator_,
        Factory factory_,
        bytes32 environment_,
        address[] memory tokens
    ) {
        avatar = avatar_;
        operator = operator_;
        factory = factory_;
        environment = environment_;
        for (uint256 i = 0; i < tokens.length; i++) isAllowed[tokens[i]] = true;
    }

    /// Have the avatar call `token` with `data`, which must be a transfer to that owner's escrow.
    function exec(address token, bytes calldata data, bytes32 escrowOwner) external {
        if (msg.sender != operator) revert OnlyOperator();
        // The avatar itself is never on the list, nor is a contract where these bytes mean
        // something else than a transfer.
        if (!isAllowed[token]) revert TokenNotAllowed(token);
        // A call to an address without code succeeds, and moves nothing.
        if (token.code.length == 0) revert TransferFailed(token);
        // Exactly a selector and two words: nothing missing, nothing appended.
        if (data.length != 68 || bytes4(data[0:4]) != IToken.transfer.selector) {
            revert NotATransfer();
        }
        // The whole word is compared, so that no bytes hide in front of the address.
        address escrow = factory.addressOf(environment, Kind.Escrow, escrowOwner);
        if (bytes32(data[4:36]) != bytes32(uint256(uint160(escrow)))) revert NotToTheEscrow();
        bool done = IAvatar(avatar).execTransactionFromModule(token, 0, data, CALL);
        // An avatar does not revert with the token, it answers false.
        if (!done) revert TransferFailed(token);
    }
}
