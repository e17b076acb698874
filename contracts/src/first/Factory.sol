// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IToken, Purse} from "./Purse.sol";
import {Vault} from "./Vault.sol";

/// What a purse is for. A vault is somebody's balance, an escrow holds one Payment's money, and
/// money for a vault may be sent to its deposit address.
enum Kind {
    Vault,
    Escrow,
    Deposit
}

/// Creates all purses when they are first needed, and has them pay.
///
/// An environment's operators may do this, and only in their own environment: vault to escrow
/// (`fund`), escrow to anyone (`pay`), both in one transaction (`payOut`), deposit to its own
/// vault (`sweep`). A purse is named by environment, kind and owner, and its address follows from
/// that alone, so that no call can mean another's purse, and money can arrive before it exists.
contract Factory {
    address public admin;
    /// To whom the admin offered the role; it is theirs once they accept it.
    address public nextAdmin;
    mapping(bytes32 environment => mapping(address operator => bool)) public isOperator;

    address public immutable vaultImplementation;
    address public immutable purseImplementation;

    event Created(address indexed purse, bytes32 indexed environment, Kind kind, bytes32 owner);
    event OperatorSet(bytes32 indexed environment, address indexed operator, bool allowed);
    event AdminOffered(address indexed nextAdmin);
    event AdminTaken(address indexed admin);

    error NoAdmin();
    error OnlyAdmin();
    error OnlyNextAdmin();
    error OnlyOperator();
    error CreationFailed();

    /// An environment's operators are separate from every other's: a lost one affects only its own.
    modifier onlyOperator(bytes32 environment) {
        if (!isOperator[environment][msg.sender]) revert OnlyOperator();
        _;
    }

    modifier onlyAdmin() {
        if (msg.sender != admin) revert OnlyAdmin();
        _;
    }

    /// The admin is an argument, and so part of what the address is made from: anyone who deploys
    /// this first, on any chain, gets the same factory with the same admin.
    constructor(address admin_) {
        // Without an admin nobody could ever name an operator, and the address would be used up.
        if (admin_ == address(0)) revert NoAdmin();
        admin = admin_;
        vaultImplementation = address(new Vault());
        purseImplementation = address(new Purse());
        emit AdminTaken(admin_);
    }

    // --- Who may ---------------------------------------------------------------------------------

    function setOperator(bytes32 environment, address operator, bool allowed) external onlyAdmin {
        isOperator[environment][operator] = allowed;
        emit OperatorSet(environment, operator, allowed);
    }

    /// In two steps, so that a mistyped address does not lose the role.
    function offerAdmin(address next) external onlyAdmin {
        nextAdmin = next;
        emit AdminOffered(next);
    }

    function takeAdmin() external {
        if (msg.sender != nextAdmin) revert OnlyNextAdmin();
        admin = nextAdmin;
        nextAdmin = address(0);
        emit AdminTaken(msg.sender);
    }

    /// Give a vault its owner. Only once, so no operator can ever take an owned vault.
    function setVaultOwner(
        bytes32 environment,
        bytes32 owner,
        address wallet
    ) external onlyOperator(environment) {
        Vault(address(_created(environment, Kind.Vault, owner))).setOwner(wallet);
    }

    // --- Moving money ----------------------------------------------------------------------------

    /// Vault to escrow, the operator's whole role over vaults: it can pay nothing else from one.
    function fund(
        bytes32 environment,
        bytes32 vaultOwner,
        bytes32 escrowOwner,
        address token,
        uint256 amount
    ) external onlyOperator(environment) {
        address escrow = addressOf(environment, Kind.Escrow, escrowOwner);
        _created(environment, Kind.Vault, vaultOwner).pay(token, escrow, amount);
    }

    /// Escrow to anyone: a release, or a refund.
    function pay(
        bytes32 environment,
        bytes32 escrowOwner,
        address token,
        address to,
        uint256 amount
    ) external onlyOperator(environment) {
        _created(environment, Kind.Escrow, escrowOwner).pay(token, to, amount);
    }

    /// Vault to the escrow `transit` and on to anyone, in one transaction.
    function payOut(
        bytes32 environment,
        bytes32 vaultOwner,
        bytes32 transit,
        address token,
        address to,
        uint256 amount
    ) external onlyOperator(environment) {
        Purse escrow = _created(environment, Kind.Escrow, transit);
        uint256 before = IToken(token).balanceOf(address(escrow));
        _created(environment, Kind.Vault, vaultOwner).pay(token, address(escrow), amount);
        // What arrived, since a token may keep a fee; never what was there before; and never more
        // than was requested, even if the token reports more.
        uint256 arrived = IToken(token).balanceOf(address(escrow)) - before;
        escrow.pay(token, to, arrived < amount ? arrived : amount);
    }

    /// Deposit to the vault of the same owner, exactly this amount.
    function sweep(
        bytes32 environment,
        bytes32 owner,
        address token,
        uint256 amount
    ) external onlyOperator(environment) {
        address vault = addressOf(environment, Kind.Vault, owner);
        _created(environment, Kind.Deposit, owner).pay(token, vault, amount);
    }

    /// Deposit to the vault of the same owner, the whole balance. Anyone may call it: the money can
    /// go nowhere else.
    function sweepAll(bytes32 environment, bytes32 owner, address token) external {
        address vault = addressOf(environment, Kind.Vault, owner);
        Purse deposit = _created(environment, Kind.Deposit, owner);
        deposit.pay(token, vault, IToken(token).balanceOf(address(deposit)));
    }

    // --- Addresses -------------------------------------------------------------------------------

    /// The address of a purse, existing or future.
    function addressOf(
        bytes32 environment,
        Kind kind,
        bytes32 owner
    ) public view returns (address) {
        bytes32 hash = keccak256(
            abi.encodePacked(
                hex"ff",
                address(this),
                _salt(environment, kind, owner),
                keccak256(_proxyCode(kind))
            )
        );
        return address(uint160(uint256(hash)));
    }

    /// The purse, which is created if this is its first use.
    function _created(bytes32 environment, Kind kind, bytes32 owner) private returns (Purse) {
        address purse = addressOf(environment, kind, owner);
        if (purse.code.length == 0) {
            bytes memory code = _proxyCode(kind);
            bytes32 salt = _salt(environment, kind, owner);
            address made;
            assembly {
                made := create2(0, add(code, 32), mload(code), salt)
            }
            // Zero if it failed. Another address would mean that `addressOf` is wrong, and that
            // money was sent to an address where no purse can ever be.
            if (made != purse) revert CreationFailed();
            emit Created(purse, environment, kind, owner);
        }
        return Purse(purse);
    }

    /// `abi.encode`, not packed: no two names can have the same bytes.
    function _salt(bytes32 environment, Kind kind, bytes32 owner) private pure returns (bytes32) {
        return keccak256(abi.encode(environment, kind, owner));
    }

    /// EIP-1167: code that returns a proxy, which passes every call to the implementation.
    function _proxyCode(Kind kind) private view returns (bytes memory) {
        return
            abi.encodePacked(
                hex"3d602d80600a3d3981f3363d3d373d3d3d363d73",
                kind == Kind.Vault ? vaultImplementation : purseImplementation,
                hex"5af43d82803e903d91602b57fd5bf3"
            );
    }
}
