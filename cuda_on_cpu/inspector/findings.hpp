// What is wrong with a kernel, gathered while it runs: the same mistake at the same two places is
// one finding with a count.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuda_on_cpu/inspection.h"
#include "event.hpp"

namespace cuda_on_cpu::inspector {

// Who did something, and where.
struct Party {
    Place place = 0;
    std::array<unsigned, 3> block{};
    std::array<unsigned, 3> thread{};
};

struct RawFinding {
    std::string kind;
    Party party;
    std::optional<Party> other;
    std::string message;
    std::string why;
    std::uint64_t count = 1;
};

class Findings {
  public:
    using Resolve = std::function<SourceLine(Place)>;

    // Counts it if there is one of the kind at these places; `complete` adds message and why only
    // when it is the first.
    void add(std::string kind, const Party& party, const std::optional<Party>& other,
             const std::function<void(RawFinding&)>& complete);
    // For whoever looks them up all at once.
    std::vector<Place> places() const;
    // One for each kind and pair of lines, in the order of file and line.
    std::vector<Finding> take(const Resolve& resolve);
    bool empty() const;
    // Is there one of an access that the stand-in, or a GPU, stops at?
    bool has_bad_access() const;

  private:
    struct Key {
        std::string kind;
        Place place = 0;
        Place other = 0;
        auto operator<=>(const Key&) const = default;
    };

    mutable std::mutex mutex_;
    std::map<Key, RawFinding> found_;
};

// Adds findings of another launch of the same kernel, those at the same places to the count of the
// first.
void add_findings(std::vector<Finding>& all, std::vector<Finding> more);

// The short explanation that goes with a kind of finding; "" for a kind without one.
std::string why_of(const std::string& kind);

}  // namespace cuda_on_cpu::inspector
