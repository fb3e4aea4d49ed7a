// Markdown made from measured records: everything for docs/measured/<day>.md, a few rows for a
// day's README, one figure for a sentence. All of them throw std::runtime_error when a record that
// they show is not verified.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measurements.hpp"

namespace course::tool {

// --- For docs/measured: all records ---

// Every record of one problem, warm and flushed, with what its kernel takes of an SM and the
// figures beside times.
std::string full_table(const std::vector<MeasuredRecord>& of_one_problem);

// For each problem the fastest of ours and, where there is one, the fastest peer on the same
// device, both warm, and how many times faster ours is. Empty when there is no record of ours.
std::string comparison_table(const std::vector<MeasuredRecord>& records);

// Our one version beside the fastest peer of each problem (beside the limit, if no record is a
// peer's): times, how many times faster ours is, warm and flushed, with the geometric mean and the
// lowest of these. Throws where a problem lacks one of the two, or ours is more than one version.
std::string sweep_table(const std::vector<MeasuredRecord>& records);

// "Measured on NVIDIA H200, driver 580.65.06, CUDA 13.0, commit 1a2b3c4d5e6f, 2026-11-21."
std::string provenance(const std::vector<MeasuredRecord>& records);

// --- For READMEs: one problem, warm ---

// The problem with the most versions of ours; of several such, the one that moves the most bytes.
std::string main_problem(const std::vector<MeasuredRecord>& records);

// A table and a line below it. `link` leads to the rest.
//
// Rows: our versions, the fastest peer on the same device, and the machine's limit, no more than
// ten. Of more versions than fit these stay, in their order: the first one, the fastest one, and
// those that gained the most over the fastest before them.
// Columns: time, speed-up over the first version, speed beside the peer's, % of limit, and the
// figures beside times, where there are such.
std::string summary_table(const std::vector<MeasuredRecord>& records, const std::string& problem,
                          std::string_view link);

// Steps of the ladder beside the one peer, no more than ten rows: of the first version of each
// number (01_, 02_...) those that stay in a summary_table. Steps on other units than FP32
// multiply-adds, such as tensor cores, are left out.
std::string ladder_table(const std::vector<MeasuredRecord>& records, const std::string& problem,
                         std::string_view link);

// A sweep in one sentence: how many problems; geometric mean, lowest, and how many are won, warm
// and flushed.
std::string sweep_summary(const std::vector<MeasuredRecord>& records, std::string_view link);

// Grids on one GPU and on several: problems named "25-point NXxNYxNZxSTEPS on N GPUs", of which
// `one_gpu` is a version and `no_exchange` may be a limit. Strong scaling: the same cube on all
// GPUs.
// Weak scaling: N cubes on N GPUs, beside one on one. Times are of a step. Throws where there is no
// cube.
std::string scaling_table(const std::vector<MeasuredRecord>& records, std::string_view link);

// Of `version`, or of the fastest where that is empty: "1.02× cub"; empty without a peer.
std::string best_result(const std::vector<MeasuredRecord>& records, const std::string& problem,
                        const std::string& version);

// One figure of one version, warm, as text: "time", "GB/s", "GFLOP/s", "TFLOP/s", "% of limit", "%
// of peer" (the fastest on the same device), "speed-up" (over the first version), "registers",
// "occupancy".
std::string one_figure(const std::vector<MeasuredRecord>& records, const std::string& problem,
                       const std::string& version, std::string_view quantity);

// 0.0123 -> "12.3 µs", 1.5 -> "1.50 ms".
std::string format_time(double milliseconds);

}  // namespace course::tool
