// What `--random N` prints and writes: each problem of a distribution, then how much faster than
// the peer ours is on them: the geometric mean, the 5 % quantile, the lowest, the worst ten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"

namespace course {

// One problem. Times are 0 where nothing was timed: on the CPU, or without a peer.
struct RandomResult {
    std::size_t index = 0;
    std::string kind{};  // of the distribution: "thin with a deep K"
    std::vector<std::size_t> size{};
    std::string problem{};  // with all parameters
    std::string ours{};     // the version that was chosen
    double ours_ms = 0;
    std::string peer{};  // the fastest
    double peer_ms = 0;
    std::string cannot_run{};  // why no version of ours takes the problem
    std::string no_peer{};     // why there is nothing to compare with
    std::string failure{};     // what verification found, of ours or of the peer

    double ratio() const { return ours_ms > 0 && peer_ms > 0 ? peer_ms / ours_ms : 0; }
};

struct RandomRun {
    std::string day;
    std::string distribution;  // its name
    std::string text;          // what it draws
    std::uint64_t seed = 1;
    std::size_t limit = 0;
    std::vector<RandomResult> results{};
};

// The smallest of the values such that at least `percent` % of all are at most as large (the
// nearest rank): of up to 20 values, the 5 % quantile is the lowest. Throws std::invalid_argument
// when there are no values, or for a percentage that is not in (0, 100].
double quantile(std::span<const double> values, std::size_t percent);

// A line for one problem: what is known before it runs, and what after that.
std::string head_of(const RandomResult& result);
std::string text_of(const RandomResult& result);

// The lines below the problems.
std::string summary_of(const RandomRun& run);

// An object in each line, one for each problem.
std::string to_json_lines(const RandomRun& run, const Machine& machine, const std::string& commit,
                          const std::string& date);

}  // namespace course
