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
/// Whoever sends the chain's native coin before the proxy is there leaves it at the address: the
/// factory shows it in a log, and can have it paid back. Once the proxy is there, it refuses coin
/// from everybody who does not call `take`, so that a payer's mistake fails instead of staying here.
contract Purse {
    address public immutable factory;

    error OnlyFactory();
    error NotAToken(address token);
    error TransferFailed(address token);
    error CoinRefused(address to);

    /// What a recipient of coin may use: enough for a wallet that is a contract, and not so much
    /// that a hostile one can burn the operator's coin.
    uint256 private constant COIN_GAS = 100_000;

    constructor() {
        factory = msg.sender;
    }

    /// Pay tokens. The factory decides who may request this, and who is paid.
    function pay(address token, address to, uint256 amount) external virtual {
        _onlyFactory();
        _pay(token, to, amount);
    }

    /// Pay the chain's native coin, to anybody or to a purse. As `pay`, the factory decides.
    function payCoin(address to, uint256 amount, bool isPurse) external virtual {
        _onlyFactory();
        _payCoin(to, amount, isPurse);
    }

    /// Take coin from another purse, or from whoever means to give it.
    function take() external payable {}

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

    function _payCoin(address to, uint256 amount, bool isPurse) internal {
        // A purse that is not there yet takes coin with any data.
        bytes memory data = isPurse ? abi.encodeCall(Purse.take, ()) : bytes("");
        bool done;
        assembly {
            // Nothing of the answer is copied: it could be long.
            done := call(COIN_GAS, to, amount, add(data, 32), mload(data), 0, 0)
        }
        if (!done) revert CoinRefused(to);
    }
}
