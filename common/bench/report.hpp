// The output of a run: a table to read, and records for docs/measurements/<machine>/<day>.jsonl.
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

// Ours: a version of the lesson. Peer: the same work by a library or the CPU reference, as a
// baseline. Limit: what the machine allows (a plain copy).
enum class Role { kOurs, kPeer, kLimit };

// "ours", "peer", "limit"
std::string_view name(Role role);

// Figures that a day reports for a result besides its time, in the order of the columns:
// {"relative error", 0.012}.
using Figures = std::vector<std::pair<std::string, double>>;

// One version on one problem.
struct Record {
    std::string day;  // directory: "day01_vector_add"
    // The same text for all versions and peers of one problem: "softmax 4096x1024".
    std::string problem;
    std::string version;
    Role role = Role::kOurs;
    std::string dtype;   // "float"
    std::string device;  // where it ran; empty: on the machine's device

    std::string cannot_run;                  // why it was not run; the members below are then unused
    std::optional<Measurement> measurement;  // empty if the result was already wrong before timing
    Work work;
    std::optional<double> percent_of_limit;
    // The measured limits that this work was compared with; 0 where there are none.
    double limit_bytes_per_second = 0;
    double limit_flops_per_second = 0;
    std::string violation;         // why the time cannot be true; empty if it can
    std::optional<bool> verified;  // empty for work without a result to check (a copy as the limit)
    double max_error = 0;
    std::string failure;                       // what verification found
    std::optional<KernelResources> resources;  // of its kernel, if known
    Figures figures;

    bool failed() const { return verified == false || !violation.empty() || !failure.empty(); }
};

// True for a terminal, unless NO_COLOR is set (no-color.org).
bool use_colour(std::FILE* stream);

// The records of one problem, one per line, with explanations of failures below. The table has the
// resources of the kernels if they are known, and the speed relative to the peer if exactly one
// peer ran on the device.
std::string table(std::span<const Record> records, bool colour);

// The list of records. A record has "kernel" if its resources are known, and "figures" (pairs of
// name and value) if there are any. Versions that were not run are left out. `date`:
// "2026-11-21T10:30:00Z".
nlohmann::ordered_json to_json(std::span<const Record> records, const Machine& machine,
                               const std::string& commit, const std::string& date);

// The current time in UTC, in the format of to_json().
std::string utc_now();

// Writes `text` to `path` and creates its directories. It writes a temporary file and renames it,
// so the file at `path` is never incomplete. Throws std::runtime_error with the path and the
// reason.
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace course
