// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A feed of Chainlink's interface `AggregatorV3Interface`, in which anybody reports. Never for a
/// real chain.
///
/// It has no constructor and no immutables, so that its code can be put at a real feed's address on
/// a local node (`anvil_setCode`).
contract TestAggregator {
    struct Round {
        uint80 roundId;
        int256 answer;
        uint256 startedAt;
        uint256 updatedAt;
        uint80 answeredInRound;
    }

    string public constant description = "TEST / USD";
    uint256 public constant version = 4;
    uint8 public decimals;

    Round private _latest;

    function setDecimals(uint8 newDecimals) external {
        decimals = newDecimals;
    }

    /// A round as a sound feed has it: the next one, finished at a time.
    function report(int256 answer, uint256 at) external {
        uint80 next = _latest.roundId + 1;
        _latest = Round(next, answer, at, at, next);
    }

    /// Any round.
    function setRound(Round calldata round) external {
        _latest = round;
    }

    function latestRoundData()
        external
        view
        returns (uint80, int256, uint256, uint256, uint80)
    {
        require(_latest.roundId != 0, "No data present");
        return (
            _latest.roundId,
            _latest.answer,
            _latest.startedAt,
            _latest.updatedAt,
            _latest.answeredInRound
        );
    }
}
