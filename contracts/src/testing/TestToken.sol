// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A token with 6 decimals that anybody may mint. Never for a real chain.
///
/// It has no constructor and no immutables, so that its code can be put at a real token's address
/// on a local node (`anvil_setCode`).
contract TestToken {
    string public constant name = "Test token";
    string public constant symbol = "TEST";
    uint8 public constant decimals = 6;

    uint256 public totalSupply;
    mapping(address holder => uint256) public balanceOf;
    mapping(address holder => mapping(address spender => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error TooLittle();
    error Blocked(address holder);

    function mint(address to, uint256 amount) external {
        totalSupply += amount;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    /// A transfer by anybody from anybody: a sandbox has no keys of the strangers in it.
    function moveFrom(address from, address to, uint256 amount) external {
        _move(from, to, amount);
    }

    function transfer(address to, uint256 amount) external virtual returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(
        address from,
        address to,
        uint256 amount
    ) external virtual returns (bool) {
        if (allowance[from][msg.sender] < amount) revert TooLittle();
        allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function _move(address from, address to, uint256 amount) internal virtual {
        if (balanceOf[from] < amount) revert TooLittle();
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }
}
