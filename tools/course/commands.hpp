// The commands of ./course: one function and one file for each. They return the exit code
// (errors.hpp).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "common/bench/random_options.hpp"

namespace course::tool {

int list_days(const Checkout& checkout);

struct NewDayOptions {
    std::string directory;  // "day97_dot_product"
    std::string title;      // empty: made from the topic
    std::string question;   // empty: a placeholder
};
// Creates a day that compiles, in a directory of its own. Throws UsageError if the name or its
// number is taken.
int new_day(const Checkout& checkout, const NewDayOptions& options);

struct RunOptions {
    std::string day;
    std::string size;            // in the format of the day's program; empty: its default
    std::string version;         // empty: all
    std::string json;            // file for the records; empty: none
    std::string program;         // for a day of whole programs; empty: all of them
    bool whole_program = false;  // --program was given: of a day with versions, program.cu
    bool mine = false;           // the learner's kernels instead of the lesson's; `day` may name an exercise
    bool rdc = false;            // --rdc: of the user's own program (ProgramBuild)
    std::vector<std::string> extra;  // handed to the program as they are
};
int run_day(const Checkout& checkout, const RunOptions& options);
// `files`: the sources of the user's own program (own_program.hpp). Only the options
// `rdc` and `extra` apply; the latter are the files after the first one, then the program's
// arguments.
int run_own_program(const Checkout& checkout, const RunOptions& options,
                    const std::vector<std::string>& files);

struct InspectOptions {
    std::string day;
    std::string version;             // empty: all
    std::string size;                // empty: the program's own choice
    std::string html;                // file for the page; empty: none
    std::string json;                // file for the figures, with the sentences about them; empty: none
    std::string trace;               // file for the steps of a warp of each kernel; empty: none
    bool rdc = false;                // as in RunOptions
    std::vector<std::string> extra;  // handed to the program as they are
};
// Uses the inspected programs of the build for the CPU, whatever the current build is. Returns
// kFailed if there are findings.
int inspect_day(const Checkout& checkout, const InspectOptions& options);

// Inspects the user's own program, from its first kernel to its end. The options `html`, `json`,
// `rdc` and `extra` apply, as in run_own_program. Returns the program's exit code if it has failed,
// else kFailed if there are findings.
int inspect_own_program(const Checkout& checkout, const InspectOptions& options,
                        const std::vector<std::string>& files);

// The part of the course's tests to run: the results of the lessons, once, with threads in
// ascending order (kLessons); all other tests (kRest); or both.
enum class TestHalf { kLessons, kRest, kBoth };
struct TestOptions {
    std::optional<std::string> day;      // runs all of its tests, in both orders
    TestHalf half = TestHalf::kLessons;  // applies if no day is given
};
int test_days(const Checkout& checkout, const TestOptions& options);
// What a run of `half` leaves out, and how to run it.
std::string lines_about_tests_not_run(TestHalf half, bool on_cpu);

// Measures the tiles of the ladder's dispatcher and of day 41 on this GPU, and writes their tables
// into the build directory, where the programs of that build find them
// (gemm_ladder/beyond/cost_table.hpp, day41_hopper_matmul/beyond/tile_table.hpp).
int tune_tiles(const Checkout& checkout);

struct BenchOptions {
    std::string day;
    // Runs the day's program with --sweep instead of --bench; the records go to a separate file.
    bool sweep = false;
    // The same with --plot, the sizes of the day's plots.
    bool plot = false;
    // Instead of timing: hardware counters of each version on the problems that the day's README
    // shows, by Nsight Compute (scripts/counters.py).
    bool counters = false;
    // Only what runs on the host's CPU. --record then replaces the records of the host alone.
    bool cpu_times = false;
    // Instead of the list: problems of the day's distributions, which have no place in the records.
    RandomOptions random{};
    std::string json;     // with --random, the file of the problems; empty: one in the build directory
    bool record = false;  // write the records to docs/measurements/ after the program has succeeded
};
int bench_day(const Checkout& checkout, const BenchOptions& options);

struct ProfileOptions {
    std::string day;
    std::string version;               // empty: all
    std::vector<std::string> compare;  // two versions; empty: none
    std::string gpu;                   // whose stored counters; empty: of the first that has some
    std::string html;                  // file for the page; empty: none
    bool inspect = false;              // build the inspection if it has not been built yet
    bool rdc = false;                  // as in RunOptions
    std::vector<std::string> files{};  // of the user's own program, instead of a day
    std::vector<std::string> extra{};  // as in run_own_program
};
// Shows what limits each version, or each kernel of the user's own program: a GPU's counters beside
// what an inspection counts on this machine. A build for the GPU measures now, unless a GPU is
// named; a build for the CPU shows stored counters, and of the user's own program the inspection.
int show_profile(const Checkout& checkout, const ProfileOptions& options);

// With `check_only`, no file is written, and a file that would change counts as a failure.
int update_tables(const Checkout& checkout, bool check_only);

int doctor(const Checkout& checkout);

struct OccupancyOptions {
    int threads = 0;               // of a block
    std::optional<int> registers;  // of a thread; none: they are not counted
    long long shared = 0;          // bytes of a block, static and dynamic
    std::string capability;        // "9.0"; empty: the device's, or 9.0 if there is none
};
// Throws UsageError for a block that no GPU runs, and for an unknown capability.
std::string occupancy_text(const OccupancyOptions& options);
// How many blocks are resident on a multiprocessor, what limits them, and at which numbers of
// registers, bytes and threads that changes.
int show_occupancy(const OccupancyOptions& options);

// --- The learner's exercises. A name is day05, day05/coalesced, or coalesced; no name: the first exercise that is not solved. ---

struct NextCommand {
    std::optional<std::string> name;
    bool beyond = false;  // the next of those that are not of the core
};
int next_exercise(const Checkout& checkout, const NextCommand& command);

// Asks the questions of the section "Predict" of the day's README, on the terminal, and records
// which were answered right.
int quiz(const Checkout& checkout, const std::string& day);

struct DebugOptions {
    std::optional<std::string> name;
    std::string version;             // empty: the exercise's
    std::string size;                // empty: a small one
    bool rdc = false;                // as in RunOptions
    std::vector<std::string> extra;  // handed to the program as they are
};
// Starts gdb in the learner's kernel, which is compiled for it without optimisation.
int debug_exercise(const Checkout& checkout, const DebugOptions& options);
// Starts gdb in the first kernel of the user's own program. The options `rdc` and `extra`
// apply, as in run_own_program.
int debug_own_program(const Checkout& checkout, const DebugOptions& options,
                      const std::vector<std::string>& files);

struct CheckCommand {
    std::optional<std::string> name;  // a day: its exercises
    bool all = false;                 // every exercise of the course
    bool keep_going = false;          // past one that is not solved
    std::string json;                 // file for the verdicts; empty: none
    bool gpu = false;
    bool inspect = false;            // also count accesses, in a separate build
    std::string html;                // file for the page of the inspection; empty: none
    std::chrono::seconds limit{60};  // of one test
    std::size_t failures_shown = 2;  // of the test that fails
};
// Of several exercises, those that are blank are named and not checked. Returns kFailed if one
// that was asked about is not solved.
int check_exercises(const Checkout& checkout, const CheckCommand& command);

struct WatchCommand {
    CheckCommand check;
    bool poll = false;  // without inotify
};
// Checks the exercise now and whenever its file is saved, then the next one. Ends when all are
// solved, or on Ctrl-C.
int watch_exercise(const Checkout& checkout, const WatchCommand& command);

// Prints the next hint that has not been shown.
int show_hint(const Checkout& checkout, const std::optional<std::string>& name);

// Makes the functions of one exercise, or all files of a day, blank again. The old files are kept
// next to the new ones.
int reset_exercise(const Checkout& checkout, const std::string& name);

struct ProgressCommand {
    std::optional<std::string> name;  // the day that is shown in full, or one of its exercises
    bool as_json = false;
    bool all = false;
};
// Prints a table, or JSON: a list of {"id", "solved", "failures", "hints", "stars", "minutes",
// "beyond", "needs_inspection", "is_inspected"}. needs_inspection: the tests count accesses;
// is_inspected: a right answer is inspected, too.
int show_progress(const Checkout& checkout, const ProgressCommand& command);

struct SolutionCommand {
    std::optional<std::string> name;
    bool force = false;  // even if the exercise has not been tried
    bool paste = false;  // paste it into the learner's file
};
int show_solution(const Checkout& checkout, const SolutionCommand& command);

// For authors: creates the blank files of one day or of all days, and discards them. Returns
// kFailed, with a message for each error, if one cannot be created.
int try_exercises(const Checkout& checkout, const std::optional<std::string>& day);

}  // namespace course::tool
