// The main loop of a day's program. The day describes the cases; run_program() verifies them,
// times them, verifies them again, and writes the table and the JSON file.
//
//     day01_vector_add [--size N] [--only NAME] [--bench] [--json FILE]        gemm_ladder --sweep
//     day46_reduce_in_matmul --plot --json FILE        the sizes of the day's plots (scripts/draw_sizes.py)
//     day01_vector_add --inspect FILE        in a build with the preset `inspect` (inspection.hpp)
//     day05_matmul_tiled [--bench] --cpu-times        what runs on the host's CPU alone (plain_loop.hpp)
//     day15_reduction --random 200 --seed 7        problems drawn from the day's distributions (draw.hpp)
//     day01_vector_add --bench --profile "vector_add 268435456"        for `./course bench --counters`
//
// Exit code 0: success; 1: a result was wrong, a time impossible, or CUDA failed; 2: bad
// arguments.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/bench/report.hpp"
#include "common/bench/work.hpp"
#include "common/check/verify.hpp"

namespace CLI {
class App;
}

namespace course {

class Draw;

using Dims = std::vector<std::size_t>;

// "4096x1024" -> {4096, 1024}. Throws std::invalid_argument for anything but numbers > 0 with x
// between them, whose product is at most 2^60.
Dims parse_dims(const std::string& text);

// One way to do the work of a case.
struct Contestant {
    std::string name;
    Role role = Role::kOurs;
    std::function<void(cudaStream_t)> launch{};  // queues the work; can be repeated
    Work work{};
    std::string cannot_run{};  // why not for this problem, or ""
    // Why a profiler, which repeats each launch many times, does not see it, or "".
    std::string not_profiled{};
    bool on_host = false;  // runs on the host, inside launch(): timed by the host's clock
    // Set with on_host if launch() waits for work on the device: then its records are the device's.
    bool drives_device = false;
    int plain_loop_repeats = 0;  // of a plain loop (plain_loop.hpp), how often it is timed, at least
    std::function<VerifyResult()> verify{};        // instead of the case's; a limit needs neither
    std::function<KernelResources()> resources{};  // of its kernel; called after it has run
    std::function<Figures()> figures{};            // of its result; called once, when it is verified
    // Creates what is expensive (`launch` and the data that it owns) just before this contestant
    // runs; the data is freed right after. It may set `cannot_run`. Exceptions for lack of memory
    // and std::invalid_argument set it, too.
    std::function<void(Contestant&)> prepare{};
};

// One problem with its data, ready to run. The functions own the data.
struct Case {
    std::string problem;  // "vector_add 1048576"
    std::string dtype;
    std::vector<Contestant> contestants{};  // empty: nothing to run for this size
    std::function<void()> spoil{};  // overwrites the output, so that an old result cannot pass for a new one
    std::function<VerifyResult()> verify{};  // of the last launch; not called for Role::kLimit
    // Adds figures that come from several records' times. Called once, when all contestants have
    // run.
    std::function<void(std::span<Record>)> derive_figures{};
    // Remarks about the results, printed below their table.
    std::function<std::string(std::span<const Record>)> comment{};
    // A smaller case, which a profiler sees in place of this one. Null: it sees this one.
    std::function<Case()> profiled_instead{};
};

// A problem that a distribution drew.
struct RandomProblem {
    std::string kind;  // of which part of the distribution: "thin with a deep K"
    Dims size;
    std::function<Case()> make;
};

// Problems to draw with --random, for one family of versions.
struct Distribution {
    std::string name;               // "sums"
    std::string text;               // what is drawn
    std::size_t most;               // the most work of a problem, in the units of `draw`
    std::size_t most_on_cpu;        // the same where threads run on the CPU
    std::vector<std::string> ours;  // the versions to take: the first that can run
    std::function<RandomProblem(Draw&)> draw;
    Role beside = Role::kPeer;  // what ours is compared with: the fastest peer, or the limit
};

// A problem of a sweep is measured a few times.
inline constexpr RepeatLimits kSweepRepeats = {.min_repeats = 5, .max_repeats = 40, .max_seconds = 0.04};

struct Program {
    std::string day;                  // directory: "day01_vector_add"
    std::string title;                // a line for --help and the head of the output
    Dims default_size;                // without --bench and --size: modest
    std::vector<Dims> bench_sizes{};  // with --bench
    std::vector<Dims> sweep_sizes{};  // with --sweep, an option of those that have them
    std::vector<Dims> plot_sizes{};   // with --plot, an option of those that have them
    // Each is called for each size. A case without contestants is skipped.
    std::vector<std::function<Case(const Dims&)>> make_cases;
    // Used with --sweep instead of make_cases if not empty.
    std::vector<std::function<Case(const Dims&)>> sweep_cases{};
    RepeatLimits sweep_repeats{};  // with --sweep
    // Used with --plot instead of make_cases. Repeated as a problem of a sweep (kSweepRepeats).
    std::vector<std::function<Case(const Dims&)>> plot_cases{};
    // With --random, an option of those that have them.
    std::vector<Distribution> distributions{};
    // On the CPU, --bench, --sweep and --plot skip sizes whose extents have a larger product.
    std::size_t stand_in_limit = std::size_t{1} << 22;

    // Declares the day's own options. Their callbacks (CLI::App::callback) may change the program,
    // and report a bad value with std::invalid_argument, which leads to exit code 2.
    std::function<void(CLI::App&, Program&)> add_options{};
    // Called at the end after success, to print or write results other than times.
    // std::invalid_argument leads to exit code 2 here, too.
    std::function<void()> finish{};
};

// Runs what the command line requests. Prints results to stdout, progress and errors to stderr.
// Catches all exceptions.
int run_program(const Program& program, int argc, const char* const* argv);

// Verifies and times one contestant: with a warm cache and, on a GPU, with a flushed cache, too.
// Returns a record for each. If `flush` is null, only the warm cache is timed.
std::vector<Record> run_contestant(const std::string& day, const Case& problem, const Contestant& contestant,
                                   L2Flush* flush, const RepeatLimits& limits);

}  // namespace course
