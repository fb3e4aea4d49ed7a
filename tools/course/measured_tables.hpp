// Markdown made from measured records: everything for docs/measured/<day>.md, a few rows for a
// day's README, one figure for a sentence. All functions throw std::runtime_error if a record that
// they show is not verified.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measurements.hpp"

namespace course::tool {

// --- For docs/measured: all records ---

// Every record of one problem, warm and flushed, with the resources of its kernel and the figures
// besides times.
std::string full_table(const std::vector<MeasuredRecord>& of_one_problem);

// For each problem, our fastest version and, if there is one, the fastest peer on the same device,
// both warm, with the speed-up. Empty if there is no record of ours.
std::string comparison_table(const std::vector<MeasuredRecord>& records);

// Compares our only version with the fastest peer on each problem (with the limit, if there is no
// peer): times and speed-ups, warm and flushed, with their geometric mean and minimum. Throws if a
// problem lacks one of the two, or if there is more than one version of ours.
std::string sweep_table(const std::vector<MeasuredRecord>& records);

// "Measured on NVIDIA H200, driver 580.65.06, CUDA 13.0, commit 1a2b3c4d5e6f, 2026-11-21."
std::string provenance(const std::vector<MeasuredRecord>& records);

// --- For READMEs: one problem, warm ---

// The problem with the most versions of ours; in a tie, the one that moves the most bytes.
std::string main_problem(const std::vector<MeasuredRecord>& records);

// A table and a line below it. `link` leads to all records.
//
// Rows: our versions, the fastest peer on the same device, and the machine's limit, no more than
// ten. If there are more versions, these are kept, in their order: the first one, the fastest one,
// and those with the largest gain over the fastest version before them; or, if `versions` names
// some, these. Throws std::runtime_error if one of them has no warm record of this problem, or if
// they are too many.
// Columns: time, speed-up over the first version, speed beside the peer's, % of limit, what limits
// it (where its counters are stored), and the figures beside times, where there are such.
std::string summary_table(const std::vector<MeasuredRecord>& records, const std::string& problem,
                          std::string_view link, const std::vector<std::string>& versions = {});

// Steps of the ladder and the only peer, at most ten rows. Takes the first version of each number
// (01_, 02_...), and selects rows as in a summary_table. Steps on other units than FP32
// multiply-adds, such as tensor cores, are left out.
std::string ladder_table(const std::vector<MeasuredRecord>& records, const std::string& problem,
                         std::string_view link);

// A sweep in one sentence: the number of problems; geometric mean, minimum, and number of wins,
// warm and flushed.
std::string sweep_summary(const std::vector<MeasuredRecord>& records, std::string_view link);

// Grids on one GPU and on several: problems named "25-point NXxNYxNZxSTEPS on N GPUs", of which
// `one_gpu` is a version and `no_exchange` may be a limit. Strong scaling: the same cube on all
// GPUs.
// Weak scaling: N cubes on N GPUs, beside one on one. Times are of a step. Throws if there is no
// cube.
std::string scaling_table(const std::vector<MeasuredRecord>& records, std::string_view link);

// The result of `version`, or of the fastest version if `version` is empty: "1.02× cub". Empty
// without a peer.
std::string best_result(const std::vector<MeasuredRecord>& records, const std::string& problem,
                        const std::string& version);

// One figure of one version, warm, as text: "time", "GB/s", "GFLOP/s", "TFLOP/s", "% of limit", "%
// of peer" (the fastest on the same device), "speed-up" (over the first version), "registers",
// "occupancy".
std::string one_figure(const std::vector<MeasuredRecord>& records, const std::string& problem,
                       const std::string& version, std::string_view quantity);

// Does the version run on other units than FP32 multiply-adds, such as tensor cores, whose limit is
// not measured?
bool on_other_units(const MeasuredRecord& record);

// 0.0123 -> "12.3 µs", 1.5 -> "1.50 ms".
std::string format_time(double milliseconds);

}  // namespace course::tool
