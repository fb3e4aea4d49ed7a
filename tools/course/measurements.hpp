// Measured records (docs/measurements/<machine>/<directory>.json) and the Markdown table made from them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace course::tool {

// What a kernel takes of a multiprocessor.
struct MeasuredKernel {
    int registers = 0;        // of a thread
    double shared_bytes = 0;  // of a block
    double occupancy = 0;
    std::string limited_by;
};

// One version, or its peer, on one problem: what a table shows of a record.
struct MeasuredRecord {
    std::string day;
    std::string problem;
    std::string dtype;
    std::string variant;
    std::string role;  // "ours", "peer" or "limit"
    std::string l2;    // "warm" or "flushed": what the cache held
    double median_ms = 0;
    double spread_ms = 0;
    double bytes = 0;
    double flops = 0;
    std::optional<double> percent_of_limit;
    double limit_flops_per_second = 0;     // FP32 multiply-adds, measured in the same run; 0: not known
    std::optional<MeasuredKernel> kernel;  // where the version says so
    // What the day says of its result beside times; nothing for a figure that is not finite.
    std::vector<std::pair<std::string, std::optional<double>>> figures;
    std::optional<bool> verified;  // nothing for work without a result to check
    std::string device;
    std::string driver;
    std::string cuda;
    std::string commit;
    std::string date;
};

// Throws std::runtime_error when the file is missing, malformed or empty.
std::vector<MeasuredRecord> load_records(const std::filesystem::path& file);

// The table of one problem, or, without one, of all problems, in the order of the file; then a line that says where and
// when it was measured. Figures that records have beside times are the last columns. Columns that nobody fills are left out. Throws std::runtime_error when no record is about `problem`, or one shown is not verified.
std::string markdown_table(const std::vector<MeasuredRecord>& records,
                           const std::optional<std::string>& problem);

// For each problem the fastest of ours and, where there is one, the fastest peer on the same device, both warm, and how many
// times faster ours is. Throws std::runtime_error when a record is not verified.
std::string comparison_table(const std::vector<MeasuredRecord>& records);

// The versions on one problem as a ladder: time, rate, % of the peer's (warm and flushed) and of the FP32 limit, and what each
// kernel takes of a multiprocessor. Throws std::runtime_error when no record is about `problem`, there is not exactly one
// peer, or a record is not verified.
std::string ladder_table(const std::vector<MeasuredRecord>& records, const std::string& problem);

// Our one version beside the one peer on every problem: times, how many times faster ours is, warm and flushed, with the
// geometric mean and the lowest of these. Throws std::runtime_error when there is not exactly one of each on every problem,
// or a record is not verified.
std::string sweep_table(const std::vector<MeasuredRecord>& records);

// 0.0123 -> "12.3 µs", 1.5 -> "1.50 ms".
std::string format_time(double milliseconds);

}  // namespace course::tool
