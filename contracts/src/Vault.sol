// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Purse} from "./Purse.sol";

/// ERC-1271: how a contract that owns a vault approves a digest.
interface IContractWallet {
    function isValidSignature(
        bytes32 digest,
        bytes calldata signature
    ) external view returns (bytes4);
}

/// A purse that may have an owner: the owner can do anything with it, by signatures.
///
/// Three may move its tokens: the factory, until the owner removes that role; the owner; and the
/// modules that the owner enabled, by the functions that a Safe has for them.
contract Vault is Purse {
    /// The only operation there is. A DELEGATECALL would run another's code as this vault: it could
    /// write a new owner into it.
    uint8 private constant CALL = 0;

    bytes32 private constant DOMAIN_TYPE = keccak256(
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
    );
    bytes32 private constant EXECUTE_TYPE = keccak256(
        "Execute(address to,uint256 value,bytes data,uint8 operation,uint256 nonce)"
    );
    bytes32 private constant NAME = keccak256("payments-core vault");
    bytes32 private constant VERSION = keccak256("1");

    /// Half the order of secp256k1: of signatures (r, s) and (r, n - s) only the low one counts.
    uint256 private constant HIGHEST_S =
        0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    /// Zero until `setOwner`.
    address public owner;
    /// How many of the owner's signatures were used; the next one is over this number.
    uint256 public nonce;
    /// Whether the owner removed the factory's role. (Negated so that zero is the initial state.)
    bool public isFactoryRefused;
    mapping(address module => bool) public isModuleEnabled;

    event OwnerSet(address indexed owner);
    event Executed(uint256 indexed nonce, address indexed to);
    event FactoryRoleSet(bool allowed);
    event EnabledModule(address indexed module);
    event DisabledModule(address indexed module);
    event ExecutionFromModuleSuccess(address indexed module);
    event ExecutionFromModuleFailure(address indexed module);

    error FactoryRefused();
    error OwnerIsSet();
    error NoOwner();
    error OnlyItself();
    error OnlyModules();
    error NotItself();
    error OnlyCalls();
    error WrongSignature();

    /// Only the vault itself, which means: its owner, through `execute`.
    modifier onlyItself() {
        if (msg.sender != address(this)) revert OnlyItself();
        _;
    }

    // --- The factory -----------------------------------------------------------------------------

    /// Pay tokens, as the factory says, which allows only an escrow as the recipient.
    function pay(address token, address to, uint256 amount) external override {
        _onlyFactory();
        if (isFactoryRefused) revert FactoryRefused();
        _pay(token, to, amount);
    }

    /// Pay coin that was swept from the deposit address, as the factory says.
    function payCoin(address to, uint256 amount, bool isPurse) external override {
        _onlyFactory();
        if (isFactoryRefused) revert FactoryRefused();
        _payCoin(to, amount, isPurse);
    }

    /// Name the owner, once: afterwards nobody can take the vault from them, not even the factory.
    function setOwner(address wallet) external {
        _onlyFactory();
        if (owner != address(0)) revert OwnerIsSet();
        if (wallet == address(0)) revert NoOwner();
        owner = wallet;
        emit OwnerSet(wallet);
    }

    // --- The owner -------------------------------------------------------------------------------

    /// Do what the owner signed. Anyone may submit the signature; it works once, only here.
    function execute(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation,
        bytes calldata signature
    ) external returns (bytes memory answer) {
        if (operation != CALL) revert OnlyCalls();
        uint256 used = nonce;
        bytes32 digest = executeDigest(to, value, data, operation, used);
        if (!_isSignedByOwner(digest, signature)) revert WrongSignature();
        nonce = used + 1; // before the call, which may reenter
        bool done;
        (done, answer) = to.call{value: value}(data);
        if (!done) {
            // The owner's call failed for its own reason: pass it on unchanged.
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
        emit Executed(used, to);
    }

    /// What the owner signs (EIP-712): chain and vault by the domain, all fields, and one nonce.
    function executeDigest(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation,
        uint256 nonce_
    ) public view returns (bytes32) {
        // Computed each time: all vaults share this code, and a chain can fork.
        bytes32 domain = keccak256(
            abi.encode(DOMAIN_TYPE, NAME, VERSION, block.chainid, address(this))
        );
        bytes32 message = keccak256(
            abi.encode(EXECUTE_TYPE, to, value, keccak256(data), operation, nonce_)
        );
        return keccak256(abi.encodePacked(hex"1901", domain, message));
    }

    /// Let the factory pay from this vault, as it may from the start, or no longer.
    function setFactoryRole(bool allowed) external onlyItself {
        isFactoryRefused = !allowed;
        emit FactoryRoleSet(allowed);
    }

    // --- Modules, as a Safe has them -------------------------------------------------------------

    function enableModule(address module) external onlyItself {
        isModuleEnabled[module] = true;
        emit EnabledModule(module);
    }

    /// A Safe keeps a list, and needs the previous entry; here it is ignored.
    function disableModule(address, address module) external onlyItself {
        isModuleEnabled[module] = false;
        emit DisabledModule(module);
    }

    /// Do what an enabled module says. As in a Safe, a call that fails is answered with false.
    function execTransactionFromModule(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation
    ) external returns (bool done) {
        if (!isModuleEnabled[msg.sender]) revert OnlyModules();
        if (operation != CALL) revert OnlyCalls();
        // A call to itself could enable more modules: only the owner decides who may act here.
        if (to == address(this)) revert NotItself();
        (done, ) = to.call{value: value}(data);
        if (done) emit ExecutionFromModuleSuccess(msg.sender);
        else emit ExecutionFromModuleFailure(msg.sender);
    }

    // --- Signatures ------------------------------------------------------------------------------

    function _isSignedByOwner(
        bytes32 digest,
        bytes calldata signature
    ) private view returns (bool) {
        address expected = owner;
        // `ecrecover` answers zero for an invalid signature: this must never match an absent owner.
        if (expected == address(0)) return false;
        // First as a key's signature, since accounts with a key can have code too (EIP-7702).
        if (_recovered(digest, signature) == expected) return true;
        (bool done, bytes memory answer) = expected.staticcall(
            abi.encodeCall(IContractWallet.isValidSignature, (digest, signature))
        );
        // The whole word must be right: an account without code answers with nothing, and some
        // contracts answer anything with something.
        return
            done &&
            answer.length == 32 &&
            bytes32(answer) == bytes32(IContractWallet.isValidSignature.selector);
    }

    function _recovered(bytes32 digest, bytes calldata signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > HIGHEST_S) return address(0);
        return ecrecover(digest, uint8(signature[64]), r, s); // zero unless v is 27 or 28
    }
}
