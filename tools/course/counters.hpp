// Stored hardware counters: docs/measurements/<machine>/<day>.counters.jsonl. scripts/counters.py
// measures them with Nsight Compute, derives from them what limits each kernel, and states the
// rule.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measurements.hpp"

namespace course::tool {

// One kernel of one version: of all its launches together.
struct KernelCounters {
    std::string problem;
    std::string version;
    std::string kernel;
    int launches = 0;
    double microseconds = 0;
    std::string limited_by;                              // "memory", "FMA", "latency"...
    std::vector<std::pair<std::string, double>> busy;    // percent of each unit's peak
    std::vector<std::pair<std::string, double>> stalls;  // the largest states of warps, and their shares
    double megahertz = 0;
    double highest_megahertz = 0;
    double occupancy = 0;          // percent, achieved
    double largest_occupancy = 0;  // percent
    std::string occupancy_limit;   // "registers", "shared memory", "blocks", "warps"
    double sectors_per_load = 0;
    double sectors_per_store = 0;
    double lanes = 0;     // active ones of an instruction, on average
    double waves = 0;     // of blocks; 0: not counted, or next to none
    double active = 100;  // percent of the time in which an SM has work, on average
    double dram_bytes_read = 0;
    double dram_bytes_written = 0;
    double shared_wavefronts = 0;
    double bank_conflicts = 0;
    double spills = 0;  // loads and stores of local memory, per warp
    int registers = 0;
};

// Throws std::runtime_error if the file is missing or malformed.
std::vector<KernelCounters> load_counters(const std::filesystem::path& file);

// The kernels of one version on one problem, the longest first.
std::vector<KernelCounters> kernels_of(const std::vector<KernelCounters>& counters, std::string_view problem,
                                       std::string_view version);

// "NVIDIA H200", of the file's header.
std::string counted_device(const std::filesystem::path& file);

// "NVIDIA H200", commit... of the file's header: a sentence.
std::string counters_provenance(const std::filesystem::path& file);

// What limits `version`, which takes so many microseconds: the class of the kernel that takes most
// of them. Empty where it was not profiled, or where the profiler saw less than half of the time:
// the rest may be copies, or a while node, into which it does not see. But "launch" is right then.
std::string limit_of(const std::vector<KernelCounters>& counters, std::string_view problem,
                     std::string_view version, double microseconds);

// Markdown: every kernel of one problem, the longest of a version first.
std::string counters_table(const std::vector<KernelCounters>& counters, std::string_view problem);

}  // namespace course::tool
