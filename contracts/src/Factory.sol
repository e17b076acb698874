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
///
/// For the chain's native coin the factory stands where a token's address is given: it has the
/// event and the `balanceOf` of one, and no function with which a holder could move anything. Coin
/// arrives at an address without a log; `report` makes one of it, and only coin of which a log
/// tells is in `balanceOf`, and can leave a purse again.
contract Factory {
    address public admin;
    /// To whom the admin offered the role; it is theirs once they accept it.
    address public nextAdmin;
    mapping(bytes32 environment => mapping(address operator => bool)) public isOperator;

    /// How much native coin the logs say that a purse has. Never more than an escrow or a deposit
    /// address has; a vault's owner may have spent it without a log.
    mapping(address purse => uint256) public balanceOf;

    address public immutable vaultImplementation;
    address public immutable purseImplementation;

    event Created(address indexed purse, bytes32 indexed environment, Kind kind, bytes32 owner);
    event OperatorSet(bytes32 indexed environment, address indexed operator, bool allowed);
    event AdminOffered(address indexed nextAdmin);
    event AdminTaken(address indexed admin);
    /// Native coin: from zero if it is seen for the first time.
    event Transfer(address indexed from, address indexed to, uint256 value);

    error NoAdmin();
    error OnlyAdmin();
    error OnlyNextAdmin();
    error OnlyOperator();
    error CreationFailed();
    error NothingToReport();
    error NotReported();

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
        _pay(_created(environment, Kind.Vault, vaultOwner), token, escrow, amount, true);
    }

    /// Escrow to anyone: a release, or a refund.
    function pay(
        bytes32 environment,
        bytes32 escrowOwner,
        address token,
        address to,
        uint256 amount
    ) external onlyOperator(environment) {
        _pay(_created(environment, Kind.Escrow, escrowOwner), token, to, amount, false);
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
        _pay(_created(environment, Kind.Vault, vaultOwner), token, address(escrow), amount, true);
        // What arrived, since a token may keep a fee; never what was there before; and never more
        // than was requested, even if the token reports more.
        uint256 arrived = IToken(token).balanceOf(address(escrow)) - before;
        _pay(escrow, token, to, arrived < amount ? arrived : amount, false);
    }

    /// Deposit to the vault of the same owner, exactly this amount.
    function sweep(
        bytes32 environment,
        bytes32 owner,
        address token,
        uint256 amount
    ) external onlyOperator(environment) {
        address vault = addressOf(environment, Kind.Vault, owner);
        _pay(_created(environment, Kind.Deposit, owner), token, vault, amount, true);
    }

    /// Deposit to the vault of the same owner, the whole balance. Anyone may call it: the money can
    /// go nowhere else.
    function sweepAll(bytes32 environment, bytes32 owner, address token) external {
        address vault = addressOf(environment, Kind.Vault, owner);
        Purse deposit = _created(environment, Kind.Deposit, owner);
        if (token == address(this)) _report(address(deposit));
        _pay(deposit, token, vault, IToken(token).balanceOf(address(deposit)), true);
    }

    function _pay(Purse from, address token, address to, uint256 amount, bool toPurse) private {
        if (token != address(this)) return from.pay(token, to, amount);
        // All of it before the call, since a recipient may call back.
        uint256 known = balanceOf[address(from)];
        if (amount > known) revert NotReported();
        balanceOf[address(from)] = known - amount;
        if (toPurse) balanceOf[to] += amount;
        emit Transfer(address(from), to, amount);
        from.payCoin(to, amount, toPurse);
    }

    // --- Native coin -----------------------------------------------------------------------------

    /// Make a log of the coin that has come to a purse since the last one. Anyone may call it: the
    /// coin stays where it is, and the purse need not exist.
    function report(bytes32 environment, Kind kind, bytes32 owner) external {
        if (_report(addressOf(environment, kind, owner)) == 0) revert NothingToReport();
    }

    /// How much native coin has come to an address, and has no log.
    function unreported(address purse) public view returns (uint256) {
        uint256 known = balanceOf[purse];
        uint256 held = purse.balance;
        return held > known ? held - known : 0;
    }

    function _report(address purse) private returns (uint256 found) {
        found = unreported(purse);
        if (found != 0) {
            balanceOf[purse] += found;
            emit Transfer(address(0), purse, found);
        }
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
