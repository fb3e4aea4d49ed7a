// Builds one exercise with the learner's files and runs its tests.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "checkout.hpp"
#include "workbook.hpp"

namespace course::tool {

enum class Verdict { kPassed, kFailed, kDoesNotCompile, kCannotRun };

struct CheckResult {
    Verdict verdict = Verdict::kFailed;
    std::string text;  // for the learner: the reason of the failure, the first mismatches; empty if it passed
    int tests = 0;     // passed tests, in each schedule
    std::string schedules{};  // in which it passed: "in both orders of threads"; empty after one run
    bool timed_out = false;   // about the run that failed
    bool died = false;        // about the run that failed: it ended early, or the stand-in stopped a kernel
    std::string first_failure{};  // of the test that failed
    std::string note{};           // for an answer that passed: possible problems, or what was not checked
};

struct CheckOptions {
    std::chrono::milliseconds limit{60'000};  // of one test
    std::size_t failures_shown = 2;           // of the test that fails
    // The learner's files that do not compile, to which more are added. An exercise of another file
    // is judged as if these were blank. Null: one file that does not compile fails them all.
    std::set<std::filesystem::path>* broken = nullptr;
};

// A program that contains the learner's files, and the words that announce its first build.
struct MyTarget {
    std::string name;
    const char* command;  // "check"
    const char* parts;    // "lesson and tests"
};

// Builds the program. Returns the messages of the compiler or the linker about the learner's
// files; empty on success.
std::string build_mine(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                       const MyTarget& target);

// The same of the entry's tests. An answer in prose may leave all functions blank.
std::string errors_of_exercise(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                               std::set<std::filesystem::path>* broken);

// `build` is the configured build to use, `calendar` its description. The blank files of the
// entry's day are copied first if necessary. Throws BuildError for errors outside of the learner's
// files (no compiler, a lesson that does not build).
CheckResult run_exercise_tests(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                               const Calendar& calendar, const CheckOptions& options);

}  // namespace course::tool
