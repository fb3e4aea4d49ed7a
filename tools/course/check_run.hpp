// Builds one exercise with the learner's files and runs its tests.
#pragma once

#include <chrono>
#include <string>

#include "checkout.hpp"
#include "gtest_output.hpp"
#include "workbook.hpp"

namespace course::tool {

enum class Verdict { kPassed, kFailed, kDoesNotCompile, kCannotRun };

struct CheckResult {
    Verdict verdict = Verdict::kFailed;
    std::string text;         // what the learner reads: why not, the first mismatches; empty when it passed
    int tests = 0;            // that passed, in each schedule
    std::string schedules{};  // it passed, "in both orders of threads" for instance; empty after one run
    bool timed_out = false;   // the run that failed
    bool died = false;        // the run that failed: it ended early, or the stand-in stopped a kernel
};

struct CheckOptions {
    std::chrono::milliseconds limit{60'000};  // of one test
    std::size_t failures_shown = 2;           // of the test that fails
};

// A program with the learner's files in it, and the words for what the first build of it takes.
struct MyTarget {
    std::string name;
    const char* command;  // "check"
    const char* parts;    // "lesson and tests"
};

// Builds it. Returns what the compiler or the linker said of the learner's files; empty: it is
// built.
std::string build_mine(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                       const MyTarget& target);

// `build` is the configured build to do it in. The blank files of the entry's day are copied first,
// if need be. Throws BuildError for what is not the learner's (no compiler, a lesson that does not
// build).
CheckResult run_exercise_tests(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                               const CheckOptions& options);

}  // namespace course::tool
