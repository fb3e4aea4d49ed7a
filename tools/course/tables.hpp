// Keeps the measured tables in READMEs equal to the measurement files. A block looks so:
//
//     <!-- measurements: h200/day01_vector_add problem=add 2^28 -->
//     ...made from docs/measurements/h200/day01_vector_add.json, of that problem only...
//     <!-- end measurements -->
//
// Without `problem=` all problems of the file are shown. The best of ours beside the best peer, a line a problem, of one file
// or of all files of a machine:
//
//     <!-- comparison: h200/day20_softmax -->        <!-- comparison: h200 -->
//     <!-- end measurements -->                      <!-- end measurements -->
//
// The steps of a ladder on one problem, with what their kernels take; and one version beside one peer over many problems:
//
//     <!-- ladder: h200/gemm_ladder problem=sgemm 4096x4096x4096 -->      <!-- sweep: h200/gemm_ladder_sweep -->
//     <!-- end measurements -->                                          <!-- end measurements -->
//
// Files named ..._sweep are left out where all files of a machine are compared.
// Lines inside ``` fences are text, not blocks.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// `text` with every block's content made anew from the files under `measurements`.
// Throws std::runtime_error, with the line number, for a block that is not closed or a file that cannot be used.
std::string with_fresh_tables(std::string_view text, const std::filesystem::path& measurements);

// All README.md under `root`, sorted; build directories and hidden ones are left out.
std::vector<std::filesystem::path> find_readmes(const std::filesystem::path& root);

}  // namespace course::tool
