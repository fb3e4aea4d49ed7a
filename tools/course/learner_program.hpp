// The programs that run the learner's kernels outside of a test: ./course run --mine and ./course
// debug.
#pragma once

#include <string>
#include <vector>

#include "checkout.hpp"
#include "workbook.hpp"

namespace course::tool {

// Throws UsageError if the learner has no file of any of these exercises yet.
void require_my_file(const Workbook& book, const std::vector<WorkbookEntry>& exercises);

// Builds `target`, a program of the entry's day, with the learner's files. Throws BuildError after
// showing the compiler's messages.
void build_my_program(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                      const std::string& target);

}  // namespace course::tool
