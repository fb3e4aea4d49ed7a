// Counts on this machine's GPU, with scripts/counters.py and Nsight Compute.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "days.hpp"
#include "subprocess.hpp"

namespace course::tool {

// Throws UsageError, which says where Nsight Compute comes from, if it is not in PATH.
void require_profiler();

// The command that profiles a day's program, which must have been built; of all versions if
// `version` is empty. It writes the counters to `output`.
Command count_day(const Checkout& checkout, const Day& day, const std::string& version,
                  const std::filesystem::path& output);

// The same for any program, with its arguments.
Command count_program(const Checkout& checkout, const Command& program, const std::filesystem::path& output);

}  // namespace course::tool
