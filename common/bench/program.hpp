// The main loop of a day's program. The day says what there is to run; this runs it: verify, time,
// verify again, table, JSON.
//
//     day01_vector_add [--size N] [--only NAME] [--bench] [--json FILE]        gemm_ladder --sweep
//     day01_vector_add --inspect FILE        in a build with the preset `inspect` (inspection.hpp)
//
// Exit code 0: all right; 1: a result was wrong, a time impossible, or CUDA failed; 2: bad
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
    bool on_host = false;      // runs on the host, inside launch(): timed by the host's clock
    bool drives_device =
        false;  // on_host, and what launch() waits for is the device's work: its records are the device's
    std::function<VerifyResult()> verify{};        // instead of the case's; only a limit may have neither
    std::function<KernelResources()> resources{};  // of its kernel; asked once it has run
    std::function<Figures()> figures{};            // of its result; asked once, when it is verified
    // Fills in what is costly to make, `launch` and what that owns, when it is this one's turn;
    // freed when its turn is over. May set `cannot_run`. So does what it throws for lack of memory,
    // and std::invalid_argument.
    std::function<void(Contestant&)> prepare{};
};

// One problem with its data, ready to run. The functions own the data.
struct Case {
    std::string problem;  // "vector_add 1048576"
    std::string dtype;
    std::vector<Contestant> contestants{};   // none: there is nothing to run for this size
    std::function<void()> spoil{};           // makes sure that an old result cannot pass for a new one
    std::function<VerifyResult()> verify{};  // of the last launch; not called for Role::kLimit
    // Adds figures that come from several records' times. Called once, when all contestants have
    // run.
    std::function<void(std::span<Record>)> derive_figures{};
    // What there is to say about the results, printed below their table.
    std::function<std::string(std::span<const Record>)> comment{};
};

// A problem of a sweep is measured a few times.
inline constexpr RepeatLimits kSweepRepeats = {.min_repeats = 5, .max_repeats = 40, .max_seconds = 0.04};

struct Program {
    std::string day;                  // directory: "day01_vector_add"
    std::string title;                // a line for --help and the head of the output
    Dims default_size;                // without --bench and --size: modest
    std::vector<Dims> bench_sizes{};  // with --bench
    std::vector<Dims> sweep_sizes{};  // with --sweep, an option of those that have them
    std::vector<std::function<Case(const Dims&)>>
        make_cases;  // each is called for each size; without contestants: not for that size
    std::vector<std::function<Case(const Dims&)>>
        sweep_cases{};             // with --sweep instead of those, where not empty
    RepeatLimits sweep_repeats{};  // with --sweep
    std::size_t stand_in_limit =
        std::size_t{1} << 22;  // on the CPU, --bench and --sweep leave out sizes with a larger product

    // For options of the day's own: declares them. A callback of theirs (CLI::App::callback) may
    // change the program it is given, and says what is wrong with a value by std::invalid_argument:
    // exit code 2.
    std::function<void(CLI::App&, Program&)> add_options{};
    // Called at the end when all went right, to print or write what there is beside times;
    // std::invalid_argument again is exit code 2.
    std::function<void()> finish{};
};

// Runs what the command line asks for, prints to stdout, progress and errors to stderr. Catches all
// exceptions.
int run_program(const Program& program, int argc, const char* const* argv);

// Verifies and times one contestant: warm, and on a GPU with the cache flushed too; a record for
// each. `flush` may be null: then warm only.
std::vector<Record> run_contestant(const std::string& day, const Case& problem, const Contestant& contestant,
                                   L2Flush* flush, const RepeatLimits& limits);

}  // namespace course
