// The mistakes of a kernel, collected while it runs. Repetitions of a mistake at the same two
// places are one finding with a count.
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
#include "trace.hpp"

namespace cuda_on_cpu::inspector {

// A thread and the place of its access in the program.
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

    // Counts a finding of this kind at these places. Shown is the first one of the first block:
    // blocks run at the same time, and a report must not depend on which was faster. `complete`
    // fills in message and why.
    void add(std::string kind, const Party& party, const std::optional<Party>& other,
             const std::function<void(RawFinding&)>& complete);
    // All places, so that they can be looked up at once.
    std::vector<Place> places() const;
    // Returns one finding for each kind and pair of lines, in the order of file and line.
    std::vector<Finding> take(const Resolve& resolve);
    bool empty() const;
    // Is there a finding of an access at which the stand-in, and a GPU, stop the kernel?
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

// Adds findings of another launch of the same kernel. A finding at the same places as an earlier
// one increases its count.
void add_findings(std::vector<Finding>& all, std::vector<Finding> more);

// The short explanation of a kind of finding; "" for a kind without one.
std::string why_of(const std::string& kind);

}  // namespace cuda_on_cpu::inspector
