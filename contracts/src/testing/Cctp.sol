// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {TestToken} from "./TestToken.sol";

/// Stand-ins for Circle's CCTP v2, with its public functions, events, checks and message format
/// (developers.circle.com/cctp, "Contract interfaces" and "Message format"). Never for a real chain.
///
/// They have no constructor and no immutables, so that their code can be put at the real addresses
/// on a local node (`anvil_setCode`). Anybody may configure them. The token is a `TestToken`.
contract TestMessageTransmitter {
    uint32 public constant version = 1;

    uint32 public localDomain;
    bool public paused;
    uint256 public signatureThreshold;
    mapping(address attester => bool) public isEnabledAttester;
    mapping(bytes32 nonce => uint256) public usedNonces;

    event MessageSent(bytes message);
    event MessageReceived(
        address indexed caller,
        uint32 sourceDomain,
        bytes32 indexed nonce,
        bytes32 sender,
        uint32 indexed finalityThresholdExecuted,
        bytes messageBody
    );

    function configure(uint32 domain, address[] calldata attesters, uint256 threshold) external {
        localDomain = domain;
        signatureThreshold = threshold;
        for (uint256 i = 0; i < attesters.length; i++) isEnabledAttester[attesters[i]] = true;
        usedNonces[0] = 1;
    }

    function setPaused(bool paused_) external {
        paused = paused_;
    }

    function sendMessage(
        uint32 destinationDomain,
        bytes32 recipient,
        bytes32 destinationCaller,
        uint32 minFinalityThreshold,
        bytes calldata messageBody
    ) external {
        require(!paused, "Pausable: paused");
        require(destinationDomain != localDomain, "Domain is local domain");
        emit MessageSent(
            abi.encodePacked(
                version,
                localDomain,
                destinationDomain,
                bytes32(0), // the nonce, which the attestation service fills in
                bytes32(uint256(uint160(msg.sender))),
                recipient,
                destinationCaller,
                minFinalityThreshold,
                uint32(0), // the finality at which it is attested, likewise
                messageBody
            )
        );
    }

    function receiveMessage(
        bytes calldata message,
        bytes calldata attestation
    ) external returns (bool) {
        require(!paused, "Pausable: paused");
        _requireAttested(message, attestation);
        require(message.length >= 148, "Invalid message: too short");
        require(uint32(bytes4(message[0:4])) == version, "Invalid message version");
        require(uint32(bytes4(message[8:12])) == localDomain, "Invalid destination domain");
        bytes32 caller = bytes32(message[108:140]);
        require(
            caller == 0 || caller == bytes32(uint256(uint160(msg.sender))),
            "Invalid caller for message"
        );
        bytes32 nonce = bytes32(message[12:44]);
        require(usedNonces[nonce] == 0, "Nonce already used");
        usedNonces[nonce] = 1;
        uint32 domain = uint32(bytes4(message[4:8]));
        bytes32 sender = bytes32(message[44:76]);
        uint32 finality = uint32(bytes4(message[144:148]));
        _handle(message, domain, sender, finality);
        emit MessageReceived(msg.sender, domain, nonce, sender, finality, message[148:]);
        return true;
    }

    function _handle(
        bytes calldata message,
        uint32 domain,
        bytes32 sender,
        uint32 finality
    ) private {
        TestTokenMessenger handler = TestTokenMessenger(
            address(uint160(uint256(bytes32(message[76:108]))))
        );
        bool done = finality < 2000
            ? handler.handleReceiveUnfinalizedMessage(domain, sender, finality, message[148:])
            : handler.handleReceiveFinalizedMessage(domain, sender, finality, message[148:]);
        require(done, "handling failed");
    }

    /// Signatures of 65 bytes over the whole message, by attesters in rising order.
    function _requireAttested(bytes calldata message, bytes calldata attestation) private view {
        require(attestation.length == 65 * signatureThreshold, "Invalid attestation length");
        bytes32 digest = keccak256(message);
        address last = address(0);
        for (uint256 i = 0; i < signatureThreshold; i++) {
            bytes calldata one = attestation[65 * i:65 * i + 65];
            address signer = ecrecover(
                digest,
                uint8(one[64]),
                bytes32(one[0:32]),
                bytes32(one[32:64])
            );
            require(signer > last, "Invalid signature order or dupe");
            require(isEnabledAttester[signer], "Invalid signature: not attester");
            last = signer;
        }
    }
}

/// See TestMessageTransmitter. It is the minter too.
contract TestTokenMessenger {
    uint32 public constant messageBodyVersion = 1;
    uint256 public constant MIN_FEE_MULTIPLIER = 10_000_000;

    TestMessageTransmitter public localMessageTransmitter;
    TestToken public token;
    uint256 public minFee;
    uint256 public burnLimit;
    mapping(uint32 domain => bytes32) public remoteTokenMessengers;
    mapping(uint32 domain => bytes32) public remoteTokens;
    mapping(address account => bool) public isDenylisted;
    address public constant feeRecipient = address(0xfee);

    event DepositForBurn(
        address indexed burnToken,
        uint256 amount,
        address indexed depositor,
        bytes32 mintRecipient,
        uint32 destinationDomain,
        bytes32 destinationTokenMessenger,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 indexed minFinalityThreshold,
        bytes hookData
    );
    event MintAndWithdraw(
        address indexed mintRecipient,
        uint256 amount,
        address indexed mintToken,
        uint256 feeCollected
    );

    function configure(TestMessageTransmitter transmitter, TestToken token_) external {
        localMessageTransmitter = transmitter;
        token = token_;
        burnLimit = 10_000_000e6;
    }

    function addRemote(uint32 domain, bytes32 messenger, bytes32 remoteToken) external {
        remoteTokenMessengers[domain] = messenger;
        remoteTokens[domain] = remoteToken;
    }

    /// In 1/1000 of a basis point.
    function setMinFee(uint256 fee) external {
        minFee = fee;
    }

    function setDenylisted(address account, bool denylisted) external {
        isDenylisted[account] = denylisted;
    }

    function getMinFeeAmount(uint256 amount) public view returns (uint256) {
        if (minFee == 0) return 0;
        require(amount > 1, "Amount too low");
        uint256 fee = (amount * minFee) / MIN_FEE_MULTIPLIER;
        return fee == 0 ? 1 : fee;
    }

    function depositForBurn(
        uint256 amount,
        uint32 destinationDomain,
        bytes32 mintRecipient,
        address burnToken,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external {
        require(!isDenylisted[msg.sender] && !isDenylisted[tx.origin], "Denylistable: denylisted");
        require(amount > 0, "Amount must be nonzero");
        require(mintRecipient != 0, "Mint recipient must be nonzero");
        require(maxFee < amount, "Max fee must be less than amount");
        require(maxFee >= getMinFeeAmount(amount), "Insufficient max fee");
        require(burnToken == address(token), "Burn token not supported");
        require(amount <= burnLimit, "Burn amount exceeds per tx limit");
        bytes32 remote = remoteTokenMessengers[destinationDomain];
        require(remote != 0, "No TokenMessenger for domain");
        require(token.transferFrom(msg.sender, address(this), amount), "Transfer operation failed");
        token.moveFrom(address(this), address(0), amount);
        localMessageTransmitter.sendMessage(
            destinationDomain,
            remote,
            destinationCaller,
            minFinalityThreshold,
            _body(amount, mintRecipient, maxFee)
        );
        emit DepositForBurn(
            burnToken,
            amount,
            msg.sender,
            mintRecipient,
            destinationDomain,
            remote,
            destinationCaller,
            maxFee,
            minFinalityThreshold,
            ""
        );
    }

    function _body(
        uint256 amount,
        bytes32 mintRecipient,
        uint256 maxFee
    ) private view returns (bytes memory) {
        return
            abi.encodePacked(
                messageBodyVersion,
                bytes32(uint256(uint160(address(token)))),
                mintRecipient,
                amount,
                bytes32(uint256(uint160(msg.sender))),
                maxFee,
                uint256(0), // the fee that is taken, which the attestation service fills in
                uint256(0) // the block at which it expires, likewise
            );
    }

    function handleReceiveFinalizedMessage(
        uint32 domain,
        bytes32 sender,
        uint32,
        bytes calldata body
    ) external returns (bool) {
        return _mint(domain, sender, body);
    }

    function handleReceiveUnfinalizedMessage(
        uint32 domain,
        bytes32 sender,
        uint32 finalityThresholdExecuted,
        bytes calldata body
    ) external returns (bool) {
        require(finalityThresholdExecuted >= 500, "Unsupported finality threshold");
        return _mint(domain, sender, body);
    }

    function _mint(
        uint32 domain,
        bytes32 sender,
        bytes calldata body
    ) private returns (bool) {
        require(msg.sender == address(localMessageTransmitter), "Invalid message transmitter");
        require(
            sender != 0 && sender == remoteTokenMessengers[domain],
            "Remote TokenMessenger unsupported"
        );
        require(body.length >= 228, "Invalid burn message: too short");
        require(uint32(bytes4(body[0:4])) == messageBodyVersion, "Invalid message body version");
        require(bytes32(body[4:36]) == remoteTokens[domain], "Mint token not supported");
        address recipient = address(uint160(uint256(bytes32(body[36:68]))));
        uint256 amount = uint256(bytes32(body[68:100]));
        uint256 maxFee = uint256(bytes32(body[132:164]));
        uint256 fee = uint256(bytes32(body[164:196]));
        uint256 expiration = uint256(bytes32(body[196:228]));
        require(
            expiration == 0 || expiration > block.number,
            "Message expired and must be re-signed"
        );
        require(fee == 0 || fee < amount, "Fee equals or exceeds amount");
        require(fee <= maxFee, "Fee exceeds max fee");
        token.mint(recipient, amount - fee);
        if (fee > 0) token.mint(feeRecipient, fee);
        emit MintAndWithdraw(recipient, amount - fee, address(token), fee);
        return true;
    }
}
