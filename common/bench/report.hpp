// What a run leaves behind: a table for the eye, and records for
// docs/measurements/<machine>/<day>.jsonl.
#pragma once

#include <cstdio>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bench/benchmark.hpp"
#include "common/bench/kernel_resources.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/work.hpp"

namespace course {

// Ours: a version of the lesson. Peer: a library's, to compare with. Limit: what the machine
// allows (a plain copy).
enum class Role { kOurs, kPeer, kLimit };

// "ours", "peer", "limit"
std::string_view name(Role role);

// What a day says of a result beside its time, in the order of its columns: {"relative error",
// 0.012}.
using Figures = std::vector<std::pair<std::string, double>>;

// One version on one problem.
struct Record {
    std::string day;  // directory: "day01_vector_add"
    std::string
        problem;  // the same text for all versions and peers of one piece of work: "softmax 4096x1024"
    std::string version;
    Role role = Role::kOurs;
    std::string dtype;   // "float"
    std::string device;  // where it ran; empty: on the machine's device

    std::string cannot_run;                  // why it was not run; then nothing below counts
    std::optional<Measurement> measurement;  // nothing when the result was wrong before timing
    Work work;
    std::optional<double> percent_of_limit;
    // The measured limits that this work was held against; 0 where there are none.
    double limit_bytes_per_second = 0;
    double limit_flops_per_second = 0;
    std::string violation;         // why the time cannot be true; empty if it can
    std::optional<bool> verified;  // nothing for work that computes no result to check (a copy as the limit)
    double max_error = 0;
    std::string failure;                       // what verification found
    std::optional<KernelResources> resources;  // of its kernel, where it says so
    Figures figures;

    bool failed() const { return verified == false || !violation.empty() || !failure.empty(); }
};

// True for a terminal, unless NO_COLOR is set (no-color.org).
bool use_colour(std::FILE* stream);

// The records of one problem, a line each, explanations of what failed below. What the kernels take
// of a multiprocessor is shown where they say so, and how a time compares with the peer's where
// there is one peer on the device.
std::string table(std::span<const Record> records, bool colour);

// The list of records; "kernel" is in those that have resources, "figures" (pairs of name and
// value) in those that have some. What was not run is left out. `date`: "2026-11-21T10:30:00Z".
nlohmann::ordered_json to_json(std::span<const Record> records, const Machine& machine,
                               const std::string& commit, const std::string& date);

// Now, in UTC, as to_json wants it.
std::string utc_now();

// Writes `text` to `path`, making its directories. The file is either the old or the new one, never
// half of it: written beside and renamed. Throws std::runtime_error naming the path and the reason.
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace course
