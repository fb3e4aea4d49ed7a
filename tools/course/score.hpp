// How good a right answer is, in comparison with the lesson's: what inspection counts, and on a GPU
// the time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "common/bench/inspection.hpp"
#include "measurements.hpp"
#include "workbook.hpp"

namespace course::tool {

struct Criterion {
    bool star = false;
    std::string text;
    bool is_finding = false;  // a mistake, not a comparison
};

// What a program has inspected of `version`, the kernels of all its problems together; nothing
// where it has run none.
std::optional<InspectedVersion> all_problems(const InspectionFile& file, const std::string& version);

// Of the learner's inspected version and the lesson's: one criterion for no findings and no more
// bank conflicts, one for no more sectors of global memory. Findings are named, and of the
// learner's lines that the lesson has none like, that with the most to spare.
std::vector<Criterion> criteria_of_inspection(const InspectedVersion& mine, const InspectedVersion& lesson);

// Why an answer to an exercise about traffic is none: what it needs much more of than the lesson's
// version in one of the `memory` ("global", "shared"), and the line that is to blame. "" if it does
// not; also for no `memory`.
std::string objection_to_traffic(const InspectedVersion& mine, const InspectedVersion& lesson,
                                 const std::vector<std::string>& memory);

// Of measured times: a criterion when the learner's version takes no more than 10/9 of the lesson's
// time on the problems that both ran. `version` chooses among the records. Nothing when there is no
// problem of both.
std::optional<Criterion> criterion_of_time(const std::vector<MeasuredRecord>& mine,
                                           const std::vector<MeasuredRecord>& lesson,
                                           const std::string& version);

// Runs the programs of the learner's and the lesson's version of `entry`, which names a version, in
// a build that inspects. The findings also come from a version whose result is wrong. Throws
// std::runtime_error when one writes no figures.
struct InspectionScore {
    std::vector<Criterion> criteria;
    std::string objection;  // to its traffic, where the exercise is about that
    InspectionFile mine;    // of the entry's version only
    InspectionFile lesson;  // likewise
};
InspectionScore score_by_inspection(const WorkbookEntry& entry, const Checkout& inspecting);

// One file for both: of each problem "your tiled_static" and then "the lesson's tiled_static".
InspectionFile side_by_side(const InspectionFile& mine, const InspectionFile& lesson);

// Likewise in a build for a GPU.
std::optional<Criterion> score_by_time(const WorkbookEntry& entry, const Checkout& gpu);

}  // namespace course::tool
