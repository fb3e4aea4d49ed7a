// What ./course can do: one function, one file each. They return the exit code (errors.hpp).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "checkout.hpp"

namespace course::tool {

int list_days(const Checkout& checkout);

struct NewDayOptions {
    std::string directory;  // "day97_dot_product"
    std::string title;      // empty: made from the topic
    std::string question;   // empty: one that asks for it
};
// A day that compiles, in a directory of its own. Throws UsageError when the name or its number is
// taken.
int new_day(const Checkout& checkout, const NewDayOptions& options);

struct RunOptions {
    std::string day;
    std::string size;     // as the day's program reads it; empty: its own choice
    std::string version;  // empty: all
    std::string json;     // file for the records; empty: none
    std::string program;  // of a day of whole programs; empty: all of them
    bool mine = false;    // the learner's kernels in the place of the lesson's; `day` may name an exercise
    std::vector<std::string> extra;  // handed to the program as they are
};
int run_day(const Checkout& checkout, const RunOptions& options);
// `files`: the program's own sources (own_program.hpp); of the options only `extra` applies: the
// files behind the first, then the program's arguments.
int run_own_program(const Checkout& checkout, const RunOptions& options,
                    const std::vector<std::string>& files);

struct InspectOptions {
    std::string day;
    std::string version;             // empty: all
    std::string size;                // empty: the program's own choice
    std::string html;                // file for the page; empty: none
    std::string json;                // file for the figures, with the sentences about them; empty: none
    std::vector<std::string> extra;  // handed to the program as they are
};
// In a build of its own, build/inspect, whichever build this is. kFailed when there are findings.
int inspect_day(const Checkout& checkout, const InspectOptions& options);

// Of a program of one's own, from its first kernel to its end; of the options `html`, `json` and
// `extra` apply, as in run_own_program. Returns the program's exit code when it has failed, else
// kFailed when there are findings.
int inspect_own_program(const Checkout& checkout, const InspectOptions& options,
                        const std::vector<std::string>& files);

// Of the tests of the whole course: what the lessons compute, once, with threads in ascending order
// (kLessons); what this leaves out (kRest); or both.
enum class TestHalf { kLessons, kRest, kBoth };
struct TestOptions {
    std::optional<std::string> day;      // all of its tests, in both orders
    TestHalf half = TestHalf::kLessons;  // of all tests, where no day is named
};
int test_days(const Checkout& checkout, const TestOptions& options);

struct BenchOptions {
    std::string day;
    bool sweep =
        false;  // --sweep of the day's program instead of --bench; the records have a file of their own
    bool record = false;  // the figures go to docs/measurements/, once the program has succeeded
};
int bench_day(const Checkout& checkout, const BenchOptions& options);

// With `check_only`, no file is written, and a file that would change is a failure.
int update_tables(const Checkout& checkout, bool check_only);

int doctor(const Checkout& checkout);

// --- The learner's exercises. A name is day05, day05/coalesced, or coalesced; none: the first exercise that is not solved. ---

int next_exercise(const Checkout& checkout, const std::optional<std::string>& name);

struct DebugOptions {
    std::optional<std::string> name;
    std::string version;             // empty: the exercise's
    std::string size;                // empty: a small one
    std::vector<std::string> extra;  // handed to the program as they are
};
// gdb in the learner's kernel, in a build of its own, build/cpu-debug.
int debug_exercise(const Checkout& checkout, const DebugOptions& options);
// gdb in the first kernel of a program of one's own; of the options `extra` applies, as in
// run_own_program.
int debug_own_program(const Checkout& checkout, const DebugOptions& options,
                      const std::vector<std::string>& files);

struct CheckCommand {
    std::optional<std::string> name;  // of a day: its exercises, to the first that is not solved or not begun
    bool gpu = false;
    bool inspect = false;            // also count accesses, in a build of its own
    std::string html;                // file for the page of the inspection; empty: none
    std::chrono::seconds limit{60};  // of one test
    std::size_t failures_shown = 2;  // of the test that fails
};
// kFailed when one is not solved.
int check_exercises(const Checkout& checkout, const CheckCommand& command);

struct WatchCommand {
    CheckCommand check;
    bool poll = false;  // without inotify
};
// Checks the exercise now and whenever its file is saved, then the next one; ends when all are
// solved, or at Ctrl-C.
int watch_exercise(const Checkout& checkout, const WatchCommand& command);

// The next of its hints that has not been shown.
int show_hint(const Checkout& checkout, const std::optional<std::string>& name);

// Blank again: the functions of one exercise, or all files of a day. What was there is kept beside
// it.
int reset_exercise(const Checkout& checkout, const std::string& name);

struct ProgressCommand {
    std::optional<std::string> name;  // the day that is shown in full, or one of its exercises
    bool as_json = false;
    bool all = false;
};
// As a table, or as JSON: a list of {"id", "solved", "failures", "hints", "stars", "minutes",
// "needs_inspection", "is_inspected"}: its tests count accesses; a right answer is inspected, too.
int show_progress(const Checkout& checkout, const ProgressCommand& command);

// Removes build/, and says how much that was. The learner's files stay.
int clean(const Checkout& checkout);

struct SolutionCommand {
    std::optional<std::string> name;
    bool force = false;  // also when it has not been tried
    bool paste = false;  // into the learner's file
};
int show_solution(const Checkout& checkout, const SolutionCommand& command);

// For authors: makes the blank files of one day or of all, and throws them away. kFailed, with a
// message for each, when one cannot be made.
int try_exercises(const Checkout& checkout, const std::optional<std::string>& day);

}  // namespace course::tool
