#include "common/bench/program.hpp"

#include <cuda_profiler_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "common/bench/benchmark.hpp"
#include "common/bench/build_info.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/inspection.hpp"
#include "common/bench/machine_limits.hpp"
#include "common/bench/memory_need.hpp"
#include "common/bench/nvtx_range.hpp"
#include "common/bench/random_options.hpp"
#include "common/bench/random_summary.hpp"
#include "common/bench/record_file.hpp"
#include "common/bench/sweep_text.hpp"
#include "common/bench/unknown_argument.hpp"
#include "common/check/check.hpp"
#include "common/check/nearest.hpp"

namespace course {
namespace {

constexpr int kFailed = 1;
constexpr int kBadArguments = 2;

class BadArguments : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::string size;
    std::string version;
    std::string json;
    std::string inspect;
    RandomOptions random;
    std::vector<std::string> profile;
    bool bench = false;
    bool sweep = false;
    bool plot = false;
    bool cpu_times = false;
    bool trace = false;
};

void add_options(CLI::App& app, const Program& program, Options& options) {
    app.footer(fmt::format("Example: {} --size {} --json result.jsonl", program.day,
                           fmt::join(program.default_size, "x")));
    CLI::Option* size = app.add_option("--size", options.size, "problem size, for example 4096 or 4096x1024");
    app.add_option("--only", options.version, "run this version alone");
    CLI::Option* bench = app.add_flag("--bench", options.bench, "run the full list of sizes")->excludes(size);
    CLI::Option* cpu_times = app.add_flag("--cpu-times", options.cpu_times,
                                          "run only what runs on the host's CPU, plain loops included");
    if (!program.sweep_sizes.empty()) {
        app.add_flag("--sweep", options.sweep, "run the long list of sizes, with few versions")
            ->excludes(size)
            ->excludes(bench)
            ->excludes(cpu_times);
    }
    if (!program.plot_sizes.empty()) {
        CLI::Option* plot =
            app.add_flag("--plot", options.plot, "run the sizes of the day's plots, with few versions")
                ->excludes(size)
                ->excludes(bench)
                ->excludes(cpu_times);
        if (CLI::Option* sweep = app.get_option_no_throw("--sweep")) plot->excludes(sweep);
    }
    CLI::Option* json =
        app.add_option("--json", options.json, "write the records to this file, as JSON Lines");
    CLI::Option* inspect =
        app.add_option("--inspect", options.inspect,
                       "watch each version run once, untimed, and write what its accesses do to this file")
            ->excludes(bench)
            ->excludes(json)
            ->excludes(cpu_times);
    app.add_flag("--trace", options.trace,
                 "with --inspect: also write what one warp of each kernel does, step by step")
        ->needs(inspect);
    app.add_option("--profile", options.profile,
                   "the name of a problem (may be repeated): launch each version on it once more between "
                   "cudaProfilerStart and cudaProfilerStop, for a profiler; nothing is timed")
        ->allow_extra_args(false)
        ->excludes(json)
        ->excludes(cpu_times);
    const std::string group = program.distributions.empty() ? "" : "RANDOM PROBLEMS";  // "": not in --help
    app.add_option("--random", options.random.count,
                   "draw so many problems and run ours, verified, beside the fastest peer")
        ->group(group);
    app.add_option("--seed", options.random.seed, "with --random: another seed, other problems")
        ->default_str("1")
        ->group(group);
    app.add_option("--random-limit", options.random.limit, "with --random: the most work of a problem")
        ->default_str("the distribution's")
        ->group(group);
}

// The code of the days throws std::invalid_argument; BadArguments is private to this file.
void as_bad_arguments(const std::function<void()>& action) {
    try {
        action();
    } catch (const std::invalid_argument& error) {
        throw BadArguments(error.what());
    }
}

// What --random asks for. Throws BadArguments for what does not go with it.
std::optional<RandomChoice> chosen_random(const CLI::App& app, const Program& program,
                                          const Options& options) {
    std::optional<RandomChoice> choice;
    as_bad_arguments([&] { choice = random_choice(options.random); });
    if (!choice) return choice;
    for (const char* const other :
         {"--size", "--bench", "--sweep", "--plot", "--cpu-times", "--inspect", "--profile"})
        if (app.get_option_no_throw(other) != nullptr && app.count(other) != 0)
            throw BadArguments(fmt::format("--random {}: expected without {}", choice->count, other));
    if (program.distributions.empty())
        throw BadArguments(
            fmt::format("--random {}: {} has no distribution of random problems; expected a "
                        "program with one",
                        choice->count, program.day));
    return choice;
}

// Debug builds are for checking results; their times must not be mistaken for measurements.
void require_release(const Options& options) {
    if (is_release_build()) return;
    if (options.bench || options.sweep || options.plot || options.random.count || !options.json.empty()) {
        throw BadArguments(
            "--bench, --sweep, --plot, --random and --json need a Release build (cmake -D "
            "CMAKE_BUILD_TYPE=Release): "
            "the times of this one mean nothing");
    }
    fmt::print(stderr, "WARNING: not a Release build: the times below mean nothing\n");
}

std::vector<Dims> sizes_to_run(const Program& program, const Options& options) {
    if (!options.size.empty()) {
        try {
            return {parse_dims(options.size)};
        } catch (const std::invalid_argument& error) {
            throw BadArguments(fmt::format("--size: {}", error.what()));
        }
    }
    if (!options.bench && !options.sweep && !options.plot) return {program.default_size};

    std::vector<Dims> sizes;
    for (const Dims& dims : options.plot    ? program.plot_sizes
                            : options.sweep ? program.sweep_sizes
                                            : program.bench_sizes) {
        const std::size_t product =
            std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>());
        if (is_cpu_stand_in() && product > program.stand_in_limit) {
            fmt::print("left out on the CPU: size {}\n", fmt::join(dims, "x"));
        } else {
            sizes.push_back(dims);
        }
    }
    if (sizes.empty()) sizes.push_back(program.default_size);
    return sizes;
}

void print_head(const Program& program, const Machine& machine, const std::optional<MachineLimits>& limits,
                bool cpu_times) {
    fmt::print("{}: {}\n{}, driver {}, CUDA {}\n", program.day, program.title, machine.device, machine.driver,
               machine.cuda);
    if (limits) {
        fmt::print("measured limits:");
        for (const StreamRate& rate : limits->streams) {
            fmt::print(" {} {:.0f} GB/s,", rate.pattern, rate.bytes_per_second * 1e-9);
        }
        fmt::print(" FP32 {:.1f} TFLOP/s\n", limits->flops_per_second * 1e-12);
    }
    if (is_cpu_stand_in() && !cpu_times) {
        fmt::print(
            "No GPU is used: every CUDA thread runs on the CPU. The results count; "
            "the times are those of the CPU stand-in and say nothing about a GPU.\n"
            "On the CPU a barrier costs more than a load, so even the ranking of the versions can differ.\n");
    }
}

void show_progress(const std::string& text) {
    if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[K{}", text);
}

// The requested contestants, or none if the case has no contestant of that name. Adds all names of
// the case to `known`. Without a name: plain loops, which take seconds, only where they are wanted.
std::vector<Contestant> chosen(const Case& problem, const Options& options, std::vector<std::string>& known) {
    const bool with_plain_loops = options.cpu_times || (options.bench && !is_cpu_stand_in());
    std::vector<Contestant> found;
    for (const Contestant& contestant : problem.contestants) {
        const bool on_cpu = contestant.on_host && !contestant.drives_device;
        const bool wanted = options.version.empty() ? with_plain_loops || contestant.plain_loop_repeats == 0
                                                    : contestant.name == options.version;
        if (wanted && (on_cpu || !options.cpu_times)) found.push_back(contestant);
        if (std::ranges::find(known, contestant.name) == known.end()) known.push_back(contestant.name);
    }
    return found;
}

// Reports the memory that all arrays need together or, if that is not known, `what`: the error of
// the first array that did not fit.
BadArguments too_large(const std::function<Case(const Dims&)>& make, const Dims& size,
                       const std::string& what) {
    static_cast<void>(cudaGetLastError());
    const std::string missing = text_of_missing_memory(memory_need(make, size));
    return BadArguments(fmt::format("size {}: {}", fmt::join(size, "x"), missing.empty() ? what : missing));
}

Case make_case(const std::function<Case(const Dims&)>& make, const Dims& size) {
    try {
        return make(size);
    } catch (const std::invalid_argument& error) {
        throw BadArguments(fmt::format("size {}: {}", fmt::join(size, "x"), error.what()));
    } catch (const std::bad_alloc& error) {
        throw too_large(make, size,
                        fmt::format("does not fit into the memory of the host: {}", error.what()));
    } catch (const std::length_error& error) {
        throw too_large(make, size, fmt::format("is more than any memory holds: {}", error.what()));
    } catch (const CudaError& error) {
        if (error.code() != cudaErrorMemoryAllocation) throw;
        throw too_large(make, size, error.what());
    }
}

// Calls contestant.prepare if it is set. A contestant that does not fit into memory, or whose
// arguments are refused, cannot run; other exceptions propagate.
void prepare(Contestant& contestant) {
    if (!contestant.cannot_run.empty() || !contestant.prepare) return;
    try {
        contestant.prepare(contestant);
    } catch (const std::bad_alloc&) {
        contestant.cannot_run = "the host has not enough memory for it";
    } catch (const std::invalid_argument& error) {
        contestant.cannot_run = error.what();
    } catch (const std::length_error& error) {
        contestant.cannot_run = error.what();
    } catch (const CudaError& error) {
        if (error.code() != cudaErrorMemoryAllocation) throw;
        contestant.cannot_run = error.what();
    }
}

// The function that verifies the contestant's result: its own or that of its case. Empty for a
// limit without one. Throws std::logic_error if any other contestant lacks one, because an
// unchecked result must not count as right.
std::function<VerifyResult()> verify_of(const Case& problem, const Contestant& contestant) {
    if (contestant.verify || contestant.role == Role::kLimit) return contestant.verify;
    if (!problem.verify)
        throw std::logic_error(
            fmt::format("{} has no verify, and neither has its case; expected one of them", contestant.name));
    return problem.verify;
}

// Launches a version once under inspection. The return value includes failures of its kernels and
// wrong results.
InspectedVersion inspect_contestant(const Case& problem, Contestant contestant,
                                    const InspectionOptions& options) {
    InspectedVersion seen{.problem = problem.problem, .version = contestant.name};
    try {
        prepare(contestant);
        seen.cannot_run = contestant.cannot_run;
        if (!seen.cannot_run.empty()) return seen;
        const std::function<VerifyResult()> verify = verify_of(problem, contestant);
        seen.flops = contestant.work.flops;
        if (problem.spoil) problem.spoil();
        Inspection inspection = inspect(
            [&] {
                const auto begin = std::chrono::steady_clock::now();
                contestant.launch(nullptr);
                CUDA_CHECK(cudaDeviceSynchronize());
                seen.seconds =
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            },
            options);
        seen.kernels = std::move(inspection.kernels);
        seen.awaited_copies = inspection.awaited_copies;
        seen.awaited_copy_bytes = inspection.awaited_copy_bytes;
        const VerifyResult result = verify();
        seen.verified = result.ok();
        if (!result.ok()) seen.failure = result.message();
    } catch (const std::exception& error) {
        seen.failure = error.what();
    }
    return seen;
}

std::string summary(const InspectedVersion& seen) {
    if (!seen.cannot_run.empty()) return "cannot run: " + seen.cannot_run;
    if (!seen.verified) return "FAILED: " + seen.failure;
    std::size_t lines = 0;
    std::size_t findings = 0;
    for (const KernelInspection& kernel : seen.kernels) {
        lines += kernel.lines.size();
        findings += kernel.findings.size();
    }
    return fmt::format("verified; {} kernel(s), {} line(s) with accesses, {} finding(s)", seen.kernels.size(),
                       lines, findings);
}

// Inspects all versions of the lesson, or the requested one. Peers are library code and not
// inspected.
int run_inspection(const Program& program, const Options& options) {
    if (const std::string reason = why_no_inspection(); !reason.empty())
        throw BadArguments("--inspect: " + reason);
    InspectionFile file{.day = program.day, .commit = commit(), .results = {}};
    // A page has to hold the trace, and a reader to step through it: of a loop the first
    // iterations.
    constexpr unsigned kTraceSteps = 200;
    constexpr unsigned kTraceAlike = 8;
    const InspectionOptions inspection{.trace_steps = options.trace ? kTraceSteps : 0,
                                       .trace_alike = kTraceAlike};
    std::vector<std::string> known;
    for (const Dims& size : sizes_to_run(program, options)) {
        for (const auto& make : program.make_cases) {
            Case problem = make_case(make, size);
            std::erase_if(problem.contestants, [](const Contestant& contestant) {
                return contestant.role != Role::kOurs || contestant.on_host;
            });
            for (const Contestant& contestant : chosen(problem, options, known)) {
                show_progress(fmt::format("{}: {}", problem.problem, contestant.name));
                file.results.push_back(inspect_contestant(problem, contestant, inspection));
                show_progress("");
                fmt::print("{}, {}: {}\n", problem.problem, contestant.name, summary(file.results.back()));
            }
        }
    }
    if (file.results.empty()) {
        throw BadArguments(known.empty()
                               ? "--inspect: no version of the lesson is left to watch"
                               : fmt::format("--only: {}", unknown_name("version", options.version, known)));
    }
    write_file(options.inspect, to_json(file).dump(2) + "\n");
    fmt::print("written: {}\n", options.inspect);
    return std::ranges::all_of(file.results,
                               [](const auto& seen) { return seen.verified || !seen.cannot_run.empty(); })
               ? 0
               : kFailed;
}

// Launches a version twice: once so that its code is loaded and the caches hold what it leaves
// there, and once for the profiler, in a range with the names of problem and version.
void profile_contestant(const Case& problem, Contestant contestant) {
    const std::string name = fmt::format("{} / {}", problem.problem, contestant.name);
    prepare(contestant);
    if (!contestant.cannot_run.empty()) {
        fmt::print("{}: cannot run: {}\n", name, contestant.cannot_run);
        return;
    }
    if (!contestant.not_profiled.empty()) {
        fmt::print("{}: not profiled: {}\n", name, contestant.not_profiled);
        return;
    }
    if (problem.spoil) problem.spoil();
    contestant.launch(nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    {
        const NvtxRange range(name);
        CUDA_CHECK(cudaProfilerStart());
        contestant.launch(nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        CUDA_CHECK(cudaProfilerStop());
    }
    const VerifyResult result = verify_of(problem, contestant)();
    if (!result.ok()) throw std::runtime_error(fmt::format("{}: {}", name, result.message()));
    fmt::print("profiled: {}\n", name);
    std::cout.flush();
}

// Launches the versions of the lesson, or the requested one, on the problems of --profile.
int run_profile(const Program& program, const Options& options) {
    std::vector<std::string> problems;
    std::vector<std::string> missing = options.profile;
    std::vector<std::string> known;
    bool found = false;
    for (const Dims& size : sizes_to_run(program, options)) {
        for (const auto& make : program.make_cases) {
            Case problem = make_case(make, size);
            problems.push_back(problem.problem);
            if (std::erase(missing, problem.problem) == 0) continue;
            if (problem.profiled_instead) problem = problem.profiled_instead();
            for (const Contestant& contestant : chosen(problem, options, known)) {
                if (contestant.role != Role::kOurs || contestant.on_host) continue;
                profile_contestant(problem, contestant);
                found = true;
            }
        }
    }
    if (!missing.empty())
        throw BadArguments(fmt::format("--profile: {}", unknown_name("problem", missing.front(), problems)));
    if (!found && !known.empty())
        throw BadArguments(fmt::format("--only: {}", unknown_name("version", options.version, known)));
    return 0;
}

// The first of `names` that can run, or the first that there is; null if the case has none of them.
const Contestant* ours_of(const Case& problem, const std::vector<std::string>& names) {
    const Contestant* found = nullptr;
    for (const std::string& name : names) {
        const auto one = std::ranges::find(problem.contestants, name, &Contestant::name);
        if (one == problem.contestants.end()) continue;
        if (one->cannot_run.empty()) return &*one;
        if (found == nullptr) found = &*one;
    }
    return found;
}

// Launches it once, and returns its record, without a time.
Record run_untimed(const Case& problem, Contestant contestant) {
    Record record;
    try {
        prepare(contestant);
        record.cannot_run = contestant.cannot_run;
        if (!record.cannot_run.empty()) return record;
        const std::function<VerifyResult()> verify = verify_of(problem, contestant);
        if (problem.spoil) problem.spoil();
        contestant.launch(nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        if (const VerifyResult result = verify(); !result.ok()) record.failure = result.message();
    } catch (const std::exception& error) {
        record.failure = error.what();
    }
    return record;
}

std::string failure_of(const Record& record) {
    return record.failure.empty() ? record.violation : record.failure;
}

// Runs ours on one problem, and on a GPU what it is compared with.
void run_random_problem(const Program& program, const Distribution& distribution, const Case& problem,
                        const Contestant& ours, RandomResult& result) {
    const auto run_one = [&](const Contestant& contestant) {
        show_progress(fmt::format("{}: {}", problem.problem, contestant.name));
        const Record record =
            is_cpu_stand_in()
                ? run_untimed(problem, contestant)
                : run_contestant(program.day, problem, contestant, nullptr, kSweepRepeats).back();
        show_progress("");
        return record;
    };
    const Record record = run_one(ours);
    result.cannot_run = record.cannot_run;
    result.failure = failure_of(record);
    if (record.measurement) result.ours_ms = record.measurement->ms.median;
    if (is_cpu_stand_in()) {
        result.no_peer = "no peer on the CPU";
        return;
    }
    if (!result.failure.empty() || !result.cannot_run.empty()) return;
    result.no_peer = "the program has none";
    for (const Contestant& contestant : problem.contestants) {
        if (contestant.role != distribution.beside || (contestant.on_host && !contestant.drives_device))
            continue;
        const Record peer = run_one(contestant);
        if (!peer.cannot_run.empty()) result.no_peer = peer.cannot_run;
        if (peer.failed()) result.failure = contestant.name + ": " + failure_of(peer);
        if (!peer.measurement || !peer.cannot_run.empty()) continue;
        const double ms = peer.measurement->ms.median;
        if (result.peer_ms == 0 || ms < result.peer_ms) {
            result.peer = contestant.name;
            result.peer_ms = ms;
        }
    }
    if (result.peer_ms > 0) result.no_peer.clear();
}

// Draws problems and runs ours on them. Everything that failed is in the JSON file, too.
int run_random(const Program& program, const Options& options, const RandomChoice& choice) {
    if (!is_cpu_stand_in()) require_release(options);
    const Machine machine = this_machine();
    print_head(program, machine, is_cpu_stand_in() ? std::nullopt : std::optional(machine_limits()), false);
    std::string json;
    bool failed = false;
    bool lost = false;
    bool found = false;
    std::vector<std::string> known;
    for (const Distribution& distribution : program.distributions) {
        const std::vector<std::string> names =
            options.version.empty() ? distribution.ours : std::vector{options.version};
        RandomRun run{
            .day = program.day,
            .distribution = distribution.name,
            .text = distribution.text,
            .seed = choice.seed,
            .limit = choice.limit.value_or(is_cpu_stand_in() ? distribution.most_on_cpu : distribution.most)};
        fmt::print("\n{}: {}; at most {}\n", distribution.name, distribution.text, run.limit);
        for (std::size_t i = 0; i < choice.count && !lost; ++i) {
            Draw draw(choice.seed, i, run.limit);
            const RandomProblem drawn = distribution.draw(draw);
            std::optional<Case> made;
            try {
                made = make_case([&](const Dims&) { return drawn.make(); }, drawn.size);
            } catch (const BadArguments& error) {
                // Too large for this machine's memory: others may fit.
                found = true;
                run.results.push_back({.index = i,
                                       .kind = drawn.kind,
                                       .size = drawn.size,
                                       .problem = fmt::format("{}", fmt::join(drawn.size, "x")),
                                       .cannot_run = error.what()});
                fmt::print("{}{}", head_of(run.results.back()), text_of(run.results.back()));
                continue;
            }
            const Case& problem = *made;
            for (const Contestant& contestant : problem.contestants)
                if (std::ranges::find(known, contestant.name) == known.end())
                    known.push_back(contestant.name);
            const Contestant* const ours = ours_of(problem, names);
            if (ours == nullptr && options.version.empty())
                throw std::logic_error(fmt::format("{}: {} has none of the versions {}", distribution.name,
                                                   problem.problem, fmt::join(names, ", ")));
            if (ours == nullptr) continue;
            found = true;
            RandomResult result{.index = i,
                                .kind = drawn.kind,
                                .size = drawn.size,
                                .problem = problem.problem,
                                .ours = ours->name};
            fmt::print("{}", head_of(result));
            std::cout.flush();
            run_random_problem(program, distribution, problem, *ours, result);
            fmt::print("{}", text_of(result));
            std::cout.flush();
            failed = failed || !result.failure.empty();
            run.results.push_back(result);
            // An error inside a kernel makes the device unusable for the rest of the process.
            lost = cudaDeviceSynchronize() != cudaSuccess;
        }
        if (!run.results.empty()) fmt::print("{}", summary_of(run));
        const bool any_ran = std::ranges::any_of(
            run.results, [](const RandomResult& it) { return it.failure.empty() && it.cannot_run.empty(); });
        if (!any_ran && !run.results.empty() && options.version.empty()) {
            fmt::print(stderr, "FAILED: {}: no problem was solved\n", distribution.name);
            failed = true;
        }
        json += to_json_lines(run, machine, commit(), utc_now());
    }
    if (!found)
        throw BadArguments(fmt::format("--only: {}", unknown_name("version", options.version, known)));
    if (!options.json.empty()) {
        write_file(options.json, json);
        fmt::print("\nwritten: {}\n", options.json);
    }
    if (lost)
        fmt::print(stderr, "FAILED: the device is unusable after the last problem\n");
    else if (failed)
        fmt::print(stderr, "FAILED: see the problems above\n");
    return failed || lost ? kFailed : 0;
}

int run(const Program& program, const Options& options) {
    if (!options.inspect.empty()) return run_inspection(program, options);
    if (!options.profile.empty()) return run_profile(program, options);
    require_release(options);
    const std::vector<Dims> sizes = sizes_to_run(program, options);
    const Machine machine = this_machine();
    std::optional<MachineLimits> limits;
    if (!options.cpu_times) {
        show_progress("measuring the machine's limits");
        limits = machine_limits();
        show_progress("");
    }
    print_head(program, machine, limits, options.cpu_times);

    std::optional<L2Flush> flush;
    RepeatLimits repeats = options.plot    ? kSweepRepeats
                           : options.sweep ? program.sweep_repeats
                                           : RepeatLimits{};
    if (is_cpu_stand_in()) {
        repeats = {.min_repeats = 3, .max_repeats = 10, .max_seconds = 0.2};
    } else if (!options.cpu_times) {
        flush.emplace();
    }

    std::vector<Record> all;
    std::vector<std::string> known;
    std::string lost;
    // Left by a run that is cut short, with what it has measured.
    const std::string part = options.json + ".part";
    if (!options.json.empty()) std::filesystem::remove(part);
    const auto write_records = [&, of = commit()](const std::string& path) {
        write_file(path, to_json_lines(to_json(all, machine, of, utc_now())));
    };
    for (const Dims& size : sizes) {
        for (const auto& make : program.make_cases) {
            if (!lost.empty()) break;
            const Case problem = make_case(make, size);
            const std::vector<Contestant> contestants = chosen(problem, options, known);
            if (contestants.empty()) continue;
            std::vector<Record> records;
            for (Contestant contestant : contestants) {
                contestant.cannot_run = lost.empty() ? contestant.cannot_run : lost;
                show_progress(fmt::format("{}: {}", problem.problem, contestant.name));
                const std::vector<Record> more =
                    run_contestant(program.day, problem, contestant, flush ? &*flush : nullptr, repeats);
                records.insert(records.end(), more.begin(), more.end());
                // An error inside a kernel makes the device unusable for the rest of the process.
                if (lost.empty() && cudaDeviceSynchronize() != cudaSuccess)
                    lost = fmt::format("the device is unusable after the error in {}", contestant.name);
            }
            show_progress("");
            if (problem.derive_figures && !options.cpu_times) problem.derive_figures(records);
            fmt::print("\n{}, {}\n{}", problem.problem, problem.dtype, table(records, use_colour(stdout)));
            if (problem.comment && !options.cpu_times) fmt::print("{}", problem.comment(records));
            std::cout.flush();
            all.insert(all.end(), records.begin(), records.end());
            if (!options.json.empty()) write_records(part);
        }
    }

    if (all.empty() && !options.version.empty())
        throw BadArguments(fmt::format("--only: {}", unknown_name("version", options.version, known)));
    if (all.empty() && options.cpu_times)
        throw BadArguments("--cpu-times: nothing of this day runs on the host's CPU");
    if (std::any_of(all.begin(), all.end(), [](const Record& record) { return record.failed(); })) {
        fmt::print(stderr, "FAILED: see the table{}\n",
                   options.json.empty() ? "" : "; nothing was written to " + options.json);
        if (!options.json.empty()) std::filesystem::remove(part);
        return kFailed;
    }
    if (options.sweep) fmt::print("{}", text_of_sweep(all));
    if (!options.json.empty()) {
        write_records(options.json);
        std::filesystem::remove(part);
        fmt::print("\nwritten: {}\n", options.json);
    }
    return 0;
}

}  // namespace

Dims parse_dims(const std::string& text) {
    constexpr double kMostNumbers = 0x1p60;  // an array of so many could not be addressed
    Dims dims;
    double product = 1;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
        std::size_t value = 0;
        const auto [rest, error] = std::from_chars(at, end, value);
        const bool overflows = error == std::errc::result_out_of_range;
        if ((error != std::errc() && !overflows) || (value == 0 && !overflows) ||
            (rest != end && *rest != 'x'))
            break;
        product *= overflows ? kMostNumbers * 2 : static_cast<double>(value);
        dims.push_back(value);
        if (rest != end) {
            at = rest + 1;
            continue;
        }
        if (product <= kMostNumbers) return dims;
        throw std::invalid_argument(
            fmt::format("'{}' is too large: expected numbers whose product is at most 2^60", text));
    }
    throw std::invalid_argument(
        fmt::format("'{}' is no size: expected numbers > 0 such as 4096 or 4096x1024", text));
}

std::vector<Record> run_contestant(const std::string& day, const Case& problem, const Contestant& given,
                                   L2Flush* flush, const RepeatLimits& limits) {
    Contestant contestant = given;
    Record record;
    record.day = day;
    record.problem = problem.problem;
    record.version = contestant.name;
    record.role = contestant.role;
    record.dtype = problem.dtype;
    if (contestant.on_host && !contestant.drives_device) record.device = kHostDevice;
    std::function<VerifyResult()> verify;
    try {
        prepare(contestant);
        if (contestant.cannot_run.empty()) verify = verify_of(problem, contestant);
    } catch (const std::exception& error) {
        record.failure = error.what();
        return {record};
    }
    record.work = contestant.work;
    record.cannot_run = contestant.cannot_run;
    if (!record.cannot_run.empty()) return {record};

    // Waits for all queued work and verifies the result. Returns false if it is wrong.
    const auto check = [&](Record& checked) {
        CUDA_CHECK(cudaDeviceSynchronize());
        if (!verify) return true;
        const VerifyResult result = verify();
        checked.verified = result.ok();
        checked.max_error = result.max_error;
        if (!result.ok()) checked.failure = result.message();
        return result.ok();
    };
    const auto spoil = [&] {
        if (problem.spoil) problem.spoil();
    };
    const auto measure = [&](L2State l2) {
        spoil();
        if (contestant.on_host)
            return measure_on_host([&] { contestant.launch(nullptr); },
                                   contestant.plain_loop_repeats == 0
                                       ? limits
                                       : RepeatLimits{.min_repeats = contestant.plain_loop_repeats,
                                                      .max_repeats = 100,
                                                      .max_seconds = 0.5},
                                   contestant.plain_loop_repeats == 0);
        if (l2 == L2State::kWarm) return measure_warm(contestant.name, contestant.launch, limits);
        return measure_flushed(contestant.name, contestant.launch, *flush, limits);
    };

    std::vector<L2State> states = {L2State::kWarm};
    if (flush != nullptr && !contestant.on_host) states.push_back(L2State::kFlushed);

    std::vector<Record> records;
    try {
        spoil();
        contestant.launch(nullptr);
        if (!check(record)) return {record};
        if (contestant.resources) record.resources = contestant.resources();
        if (contestant.figures) record.figures = contestant.figures();
        for (const L2State l2 : states) {
            Record timed = record;
            timed.measurement = measure(l2);
            check(timed);
            if (!contestant.on_host) {
                const LimitCheck limit =
                    check_against_limits(timed.work, timed.measurement->ms.median, l2, machine_limits());
                timed.percent_of_limit = limit.percent;
                timed.violation = limit.violation;
                timed.limit_bytes_per_second = limit.bytes_per_second;
                timed.limit_flops_per_second = limit.flops_per_second;
            }
            records.push_back(timed);
        }
    } catch (const std::exception& error) {
        record.failure = error.what();
        records.push_back(record);
    }
    return records;
}

int run_program(const Program& given, int argc, const char* const* argv) {
    Program program = given;  // its own options may change it
    CLI::App app(program.title, program.day);
    Options options;
    try {
        add_options(app, program, options);
        as_bad_arguments([&] {
            if (program.add_options) given.add_options(app, program);
            app.parse(argc, argv);
        });
        if (options.sweep && !program.sweep_cases.empty()) program.make_cases = program.sweep_cases;
        if (options.plot && !program.plot_cases.empty()) program.make_cases = program.plot_cases;
        const std::optional<RandomChoice> random = chosen_random(app, program, options);
        if (random) return run_random(program, options, *random);
        const int code = run(program, options);
        if (code == 0 && program.finish && !options.cpu_times) as_bad_arguments(program.finish);
        return code;
    } catch (const CLI::ExtrasError&) {
        fmt::print(stderr, "{}: {}\n", program.day, unknown_argument(app));
        return kBadArguments;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kBadArguments;
    } catch (const BadArguments& error) {
        fmt::print(stderr, "{}: {}\n", program.day, error.what());
        return kBadArguments;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", program.day, error.what());
        return kFailed;
    }
}

}  // namespace course
