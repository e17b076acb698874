// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {TestToken} from "./TestToken.sol";

/// Keeps 1 % of every transfer: less arrives than was sent.
contract FeeToken is TestToken {
    function _move(address from, address to, uint256 amount) internal override {
        uint256 fee = amount / 100;
        super._move(from, to, amount - fee);
        super._move(from, address(0xfee), fee);
    }
}

/// Refuses blocked addresses, on both sides. Anyone may block anyone.
contract BlacklistToken is TestToken {
    mapping(address holder => bool) public isBlocked;

    function setBlocked(address holder, bool blocked) external {
        isBlocked[holder] = blocked;
    }

    function _move(address from, address to, uint256 amount) internal override {
        if (isBlocked[from]) revert Blocked(from);
        if (isBlocked[to]) revert Blocked(to);
        super._move(from, to, amount);
    }
}

/// Answers nothing, as USDT on Ethereum does.
contract SilentToken is TestToken {
    function transfer(address to, uint256 amount) external override returns (bool) {
        _move(msg.sender, to, amount);
        assembly {
            return(0, 0)
        }
    }
}

/// Logs transfers that it never makes, in anybody's name.
contract SpoofToken is TestToken {
    function transfer(address to, uint256 amount) external override returns (bool) {
        emit Transfer(msg.sender, to, amount);
        return true;
    }

    function transferFrom(
        address from,
        address to,
        uint256 amount
    ) external override returns (bool) {
        emit Transfer(from, to, amount);
        return true;
    }
}

/// Moves the tokens, then makes a configured call, and gives a configured answer.
contract HostileToken is TestToken {
    address public target;
    bytes public data;
    bytes public answer = hex"";
    bool public called;
    bool public succeeded;

    function attack(address target_, bytes calldata data_, bytes calldata answer_) external {
        (target, data, answer) = (target_, data_, answer_);
    }

    function transfer(address to, uint256 amount) external override returns (bool) {
        _move(msg.sender, to, amount);
        if (target != address(0)) {
            called = true;
            (succeeded, ) = target.call(data);
        }
        bytes memory said = answer;
        assembly {
            return(add(said, 32), mload(said))
        }
    }
}
