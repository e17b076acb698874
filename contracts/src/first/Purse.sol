// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// What we use of ERC-20.
interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
    function balanceOf(address holder) external view returns (uint256);
}

/// Holds tokens, and pays them only as the factory says: an escrow or a deposit address.
///
/// Every purse is a minimal proxy (EIP-1167) in front of one implementation. It has no state and
/// no initializer: the factory's address is part of the implementation's code, so there is nothing
/// that somebody else could set first, or set again.
///
/// It has no function for ether. Once the proxy is there it refuses ether, since it has no receive
/// function; before, its address is empty and takes ether like any other, and nothing here can
/// ever move it.
contract Purse {
    address public immutable factory;

    error OnlyFactory();
    error NotAToken(address token);
    error TransferFailed(address token);

    constructor() {
        factory = msg.sender;
    }

    /// Pay tokens. The factory decides who may request this, and who is paid.
    function pay(address token, address to, uint256 amount) external virtual {
        _onlyFactory();
        _pay(token, to, amount);
    }

    function _onlyFactory() internal view {
        if (msg.sender != factory) revert OnlyFactory();
    }

    function _pay(address token, address to, uint256 amount) internal {
        // A call to an address without code succeeds, and moves nothing.
        if (token.code.length == 0) revert NotAToken(token);
        (bool done, bytes memory answer) = token.call(
            abi.encodeCall(IToken.transfer, (to, amount))
        );
        // USDT answers nothing, which is accepted. Any answer must be a whole word that says true:
        // old tokens answer false instead of reverting.
        bool agreed = answer.length == 0 ||
            (answer.length >= 32 && abi.decode(answer, (uint256)) == 1);
        if (!done || !agreed) revert TransferFailed(token);
    }
}
