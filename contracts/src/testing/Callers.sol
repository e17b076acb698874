// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Makes several calls in one transaction, as itself; all of them, or none.
contract Batch {
    struct Call {
        address to;
        bytes data;
    }

    function run(Call[] calldata calls) external {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done, bytes memory answer) = calls[i].to.call(calls[i].data);
            if (!done) {
                assembly {
                    revert(add(answer, 32), mload(answer))
                }
            }
        }
    }
}

/// A wallet that accepts one configured signature (ERC-1271), for one digest.
contract ContractWallet {
    bytes32 public accepted;
    bytes public answer;
    bool public isReverting;

    /// `answer_` is what `isValidSignature` says to that digest and signature; to others zero.
    function accept(bytes32 digest, bytes calldata signature, bytes calldata answer_) external {
        accepted = keccak256(abi.encode(digest, signature));
        answer = answer_;
    }

    /// Make it revert with its answer, instead of answering.
    function setReverting(bool reverting) external {
        isReverting = reverting;
    }

    function isValidSignature(
        bytes32 digest,
        bytes calldata signature
    ) external view returns (bytes4) {
        if (keccak256(abi.encode(digest, signature)) != accepted) return bytes4(0);
        bytes memory said = answer;
        bool reverting = isReverting;
        assembly {
            if reverting {
                revert(add(said, 32), mload(said))
            }
            return(add(said, 32), mload(said))
        }
    }
}
