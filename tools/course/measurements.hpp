// Measured records: docs/measurements/<machine>/<day>.jsonl (common/bench/record_file.hpp), and
// <day>_sweep.jsonl and <day>_plot.jsonl.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace course::tool {

// The resources that a kernel takes of a multiprocessor.
struct MeasuredKernel {
    int registers = 0;        // of a thread
    double shared_bytes = 0;  // of a block
    double occupancy = 0;
    std::string limited_by;
};

// One version, or its peer, on one problem: the data that tables show of a record.
struct MeasuredRecord {
    std::string day;
    std::string problem;
    std::string dtype;
    std::string version;
    std::string role;  // "ours", "peer" or "limit"
    std::string l2;    // "warm" or "flushed": what the cache held
    double median_ms = 0;
    double spread_ms = 0;
    double bytes = 0;
    double flops = 0;
    std::optional<double> percent_of_limit;
    double limit_bytes_per_second = 0;     // memory, for this mix of reads and writes; 0: not known
    double limit_flops_per_second = 0;     // FP32 multiply-adds, measured in the same run; 0: not known
    std::optional<MeasuredKernel> kernel;  // if the version has it
    std::string limited_by;                // of its stored counters (counters.hpp); "" where there are none
    // The day's figures besides times; empty for a figure that is not finite.
    std::vector<std::pair<std::string, std::optional<double>>> figures;
    std::optional<bool> verified;  // empty for work without a result to check
    std::string device;
    std::string driver;
    std::string cuda;
    std::string commit;
    std::string date;
};

// Throws std::runtime_error if the file is missing, malformed or empty.
std::vector<MeasuredRecord> load_records(const std::filesystem::path& file);

// The problems, each once, in the order of the records.
std::vector<std::string> problems_of(const std::vector<MeasuredRecord>& records);

// The records of one problem. Throws std::runtime_error if there are none.
std::vector<MeasuredRecord> records_about(const std::vector<MeasuredRecord>& records,
                                          const std::string& problem);

// Throws std::runtime_error for a record whose result was wrong.
void require_verified(const MeasuredRecord& record);

}  // namespace course::tool
