// What `./course tables` makes from the records in docs/measurements: docs/measured/<day>.md with
// all records, and in other Markdown files the text between these markers, each on a line of its
// own:
//
//     <!-- measurements: h200/day15_reduction, sum 268435456 -->   at most ten rows of that problem; without one, of the main problem
//     <!-- ladder: h200/gemm_ladder, sgemm 4096x4096x4096 -->      steps and the peer, at most ten rows
//     <!-- sweep: h200/gemm_ladder_sweep -->                       one sentence about many shapes
//     <!-- days: h200 -->                                          one row for each day (the front page)
//     ...
//     <!-- end of measurements -->                                 ends each of them
//
// and within a sentence one figure, on one line:
//
//     about <!-- figure: h200/gemm_ladder, sgemm 4096x4096x4096, 07_double_buffering, TFLOP/s -->46.6<!-- /figure --> TFLOP/s
//
// Where the file of records is missing, the text is "Not measured yet." Lines inside ``` fences are
// text, not markers.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "days.hpp"

namespace course::tool {

struct TableSources {
    std::filesystem::path root;          // the checkout
    std::filesystem::path measurements;  // docs/measurements
    std::vector<Day> days;
};

// `text`, the contents of `file` under the root, with all text between markers regenerated. Throws
// std::runtime_error, with the line number, for malformed markers, and for markers that request
// data that the records do not have.
std::string with_fresh_tables(std::string_view text, const std::filesystem::path& file,
                              const TableSources& sources);

// The Markdown files that may have markers, sorted: all under `root` except docs/measured, the
// learner's directory, build directories and hidden ones.
std::vector<std::filesystem::path> find_markdown(const std::filesystem::path& root);

// {"day15_reduction.md": its text}, for every day that has records on some machine.
std::map<std::string, std::string> measured_pages(const TableSources& sources);

// Ladder steps say "Measured:   about 46 TFLOP/s" in their head. What is wrong with it: the record of the version that the file is
// named after, at 4096 x 4096 x 4096, differs by more than one in its last digit. Empty when all is
// well, or nothing is measured.
std::string wrong_measured_line(std::string_view source, const std::string& version,
                                const TableSources& sources);

}  // namespace course::tool
