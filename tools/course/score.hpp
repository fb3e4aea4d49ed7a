// Compares a correct answer with the lesson's version: by the counters of an inspection and, on a
// GPU, by time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "build.hpp"
#include "checkout.hpp"
#include "common/bench/inspection.hpp"
#include "exercise_sheet.hpp"
#include "measurements.hpp"
#include "workbook.hpp"

namespace course::tool {

struct Criterion {
    bool star = false;
    std::string text;
    bool is_finding = false;  // a mistake, not a comparison
};

// The inspection of `version`, with the kernels of all its problems together; nothing if the
// program ran none of them.
std::optional<InspectedVersion> all_problems(const InspectionFile& file, const std::string& version);

// Leaves what the answer to `exercise` accounts for. A version may run kernels of several
// exercises, and those that are not begun write nothing. Taken out of both files are the problems
// in which the lesson runs no kernel of this exercise, and the kernels of the sheet's other
// exercises; where there were such kernels, a wrong result is no fault of this answer. Nothing
// changes if the lesson runs no kernel that the exercise names.
void keep_own_part(InspectionFile& mine, InspectionFile& lesson, const Exercise& exercise,
                   const ExerciseSheet& sheet);

// Compares the inspections of the learner's and the lesson's version. One criterion is no findings
// and no more bank conflicts, the other no more sectors of global memory. The text names findings,
// and the learner's most wasteful line that the lesson does not have as well.
std::vector<Criterion> criteria_of_inspection(const InspectedVersion& mine, const InspectedVersion& lesson);

// For an exercise about memory traffic: why the answer is rejected. It names the traffic that is
// much higher than the lesson's: to one kind of `memory` ("global", "shared"), the "atomics" in
// global memory, or the "accesses" to it that are not atomic; and the line that causes it. "" if
// there is no objection, or no `memory`.
std::string objection_to_traffic(const InspectedVersion& mine, const InspectedVersion& lesson,
                                 const std::vector<std::string>& memory);

// Why an answer is rejected whose tests pass: the findings of a kind that the inspection of the
// lesson's version does not have. "" if there are none.
std::string objection_to_findings(const InspectedVersion& mine, const InspectedVersion& lesson);

// From measured times: the criterion is met if the learner's version takes at most 10/9 of the
// lesson's time on the problems that both ran. `version` selects the records. Nothing if they have
// no problem in common.
std::optional<Criterion> criterion_of_time(const std::vector<MeasuredRecord>& mine,
                                           const std::vector<MeasuredRecord>& lesson,
                                           const std::string& version);

// Runs the learner's and the lesson's program of `entry`, which must name a version, in a build
// that inspects, the learner's on `small_size`, too ("": no such size), where only findings count.
// Findings are reported even if the result is wrong. Throws std::runtime_error if a
// program writes no inspection.
struct InspectionScore {
    std::vector<Criterion> criteria;
    std::string of_findings;  // the objection to them
    std::string of_traffic;   // the objection to it, if the exercise is about traffic
    InspectionFile mine;      // only the entry's version
    InspectionFile lesson;    // likewise
};
InspectionScore score_by_inspection(const WorkbookEntry& entry, const VariantBuild& inspecting,
                                    const std::string& small_size);

// Both in one file: for each problem "your tiled_static" and then "the lesson's tiled_static".
InspectionFile side_by_side(const InspectionFile& mine, const InspectionFile& lesson);

// Compares the times of both in a build for a GPU.
std::optional<Criterion> score_by_time(const WorkbookEntry& entry, const Checkout& gpu);

}  // namespace course::tool
