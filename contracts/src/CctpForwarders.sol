// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IToken} from "./Purse.sol";
import {CctpForwarder} from "./CctpForwarder.sol";

/// The terms of one route. All of them are in its forwarder's address: other terms are another
/// address.
///
/// With an `amount` it is an offer: exactly that is burned, once. Without one it is a send: each of
/// its payments is burned, or given back, as the operator says.
struct Route {
    bytes32 key;
    address operator;
    address token;
    address messenger;
    uint32 destinationDomain;
    bytes32 recipient;
    address refundTo;
    uint256 amount;
    uint32 maxFeePpm;
    uint32 minFinalityThreshold;
    uint64 returnableFrom;
}

/// Creates the forwarders of routes over Circle's CCTP v2 when they are first needed, and has them
/// burn or give back.
///
/// It has no admin and no settings, so it is the same contract at the same address on every chain.
/// Only a route's operator burns: nobody else chooses when, in which parts, or from which origin
/// (the messenger refuses denylisted ones). A failed burn reverts, and never becomes a return.
/// Anybody returns, but only what no burn may need: after `returnableFrom`, what is left of an offer
/// that was burned, and all other tokens and coin.
contract CctpForwarders {
    address public immutable implementation;

    /// Which payments of a forwarder were burned or given back. An offer has one, named zero.
    mapping(address forwarder => mapping(bytes32 payment => bool)) public isSpent;

    event Burned(address indexed forwarder, bytes32 indexed payment, uint256 amount);
    event Returned(
        address indexed forwarder,
        bytes32 indexed payment,
        address indexed token,
        uint256 amount
    );

    error OnlyOperator();
    error NotTheOffer();
    error FeeTooHigh();
    error AlreadySpent();
    error NotReturnable();
    error NothingToReturn();
    error CreationFailed();

    uint256 private constant MILLION = 1_000_000;

    constructor() {
        implementation = address(new CctpForwarder());
    }

    /// Burn a payment to the route's recipient, once. `payment` is the transaction that paid.
    function burn(
        Route calldata route,
        bytes32 payment,
        uint256 amount,
        uint256 maxFee
    ) external {
        _onlyOperator(route);
        bool isOffer = route.amount != 0;
        if (isOffer && (payment != 0 || amount != route.amount)) revert NotTheOffer();
        if (maxFee * MILLION > amount * route.maxFeePpm) revert FeeTooHigh();
        CctpForwarder forwarder = _created(route);
        _spend(address(forwarder), payment);
        emit Burned(address(forwarder), payment, amount);
        forwarder.burn(
            route.token,
            route.messenger,
            amount,
            route.destinationDomain,
            route.recipient,
            maxFee,
            route.minFinalityThreshold
        );
    }

    /// Give back a payment of a send instead of burning it.
    function giveBack(Route calldata route, bytes32 payment, uint256 amount) external {
        _onlyOperator(route);
        if (route.amount != 0) revert NotReturnable();
        CctpForwarder forwarder = _created(route);
        _spend(address(forwarder), payment);
        _return(forwarder, route, payment, route.token, amount);
    }

    /// Give back all that a forwarder has of a token; address zero is the chain's coin. Anybody may
    /// call it: it can go nowhere else.
    function sweep(Route calldata route, address token) external {
        CctpForwarder forwarder = _created(route);
        bool isRest = route.amount != 0 && isSpent[address(forwarder)][0];
        bool isDue = block.timestamp >= route.returnableFrom || isRest;
        if (token == route.token && !isDue) revert NotReturnable();
        uint256 amount = token == address(0)
            ? address(forwarder).balance
            : IToken(token).balanceOf(address(forwarder));
        if (amount == 0) revert NothingToReturn();
        _return(forwarder, route, 0, token, amount);
    }

    /// The address of a route's forwarder, existing or future.
    function addressOf(Route calldata route) public view returns (address) {
        bytes32 hash = keccak256(
            abi.encodePacked(hex"ff", address(this), _salt(route), keccak256(_proxyCode()))
        );
        return address(uint160(uint256(hash)));
    }

    function _onlyOperator(Route calldata route) private view {
        if (msg.sender != route.operator) revert OnlyOperator();
    }

    function _spend(address forwarder, bytes32 payment) private {
        if (isSpent[forwarder][payment]) revert AlreadySpent();
        isSpent[forwarder][payment] = true;
    }

    function _return(
        CctpForwarder forwarder,
        Route calldata route,
        bytes32 payment,
        address token,
        uint256 amount
    ) private {
        emit Returned(address(forwarder), payment, token, amount);
        if (token == address(0)) forwarder.payCoin(route.refundTo, amount, false);
        else forwarder.pay(token, route.refundTo, amount);
    }

    /// The forwarder, which is created if this is its first use.
    function _created(Route calldata route) private returns (CctpForwarder) {
        address forwarder = addressOf(route);
        if (forwarder.code.length == 0) {
            bytes memory code = _proxyCode();
            bytes32 salt = _salt(route);
            address made;
            assembly {
                made := create2(0, add(code, 32), mload(code), salt)
            }
            if (made != forwarder) revert CreationFailed();
        }
        return CctpForwarder(forwarder);
    }

    function _salt(Route calldata route) private pure returns (bytes32) {
        return keccak256(abi.encode(route));
    }

    /// EIP-1167: code that returns a proxy, which passes every call to the implementation.
    function _proxyCode() private view returns (bytes memory) {
        return
            abi.encodePacked(
                hex"3d602d80600a3d3981f3363d3d373d3d3d363d73",
                implementation,
                hex"5af43d82803e903d91602b57fd5bf3"
            );
    }
}
