#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "build.hpp"
#include "commands.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/random_options.hpp"
#include "common/bench/record_file.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "measure_counters.hpp"
#include "measured_tables.hpp"
#include "measurements.hpp"
#include "styles.hpp"
#include "subprocess.hpp"
#include "text_file.hpp"

namespace course::tool {

namespace {

void print_sweep(const std::filesystem::path& file) {
    try {
        fmt::print("\n{}", sweep_table(load_records(file)));
    } catch (const std::runtime_error& error) {
        fmt::print("\nNothing to compare: {}\n", error.what());
    }
}

void require_counters() {
    if (is_cpu_stand_in())
        throw UsageError(
            "--counters needs a GPU: this build runs every thread on the CPU. What can be counted there: "
            "./course inspect");
    require_profiler();
}

// The numbers of --random, or nothing without it.
std::optional<RandomChoice> random_of(const BenchOptions& options) {
    std::optional<RandomChoice> choice;
    try {
        choice = random_choice(options.random);
    } catch (const std::invalid_argument& error) {
        throw UsageError(error.what());
    }
    if (!choice) {
        if (!options.json.empty())
            throw UsageError(fmt::format("--json {}: expected with --random N", options.json));
        return choice;
    }
    for (const auto& [other, given] : {std::pair("--sweep", options.sweep),
                                       {"--plot", options.plot},
                                       {"--counters", options.counters},
                                       {"--cpu-times", options.cpu_times},
                                       {"--record", options.record}})
        if (given) throw UsageError(fmt::format("--random {}: expected without {}", choice->count, other));
    return choice;
}

// Runs the day's program on problems that its distributions draw.
int bench_random(const Checkout& checkout, const Day& day, const BenchOptions& options,
                 const RandomChoice& choice) {
    build_target(checkout, day.program_target());
    const std::filesystem::path file =
        options.json.empty()
            ? checkout.build / "measurements" / this_machine().slug / (day.directory + "_random.jsonl")
            : std::filesystem::absolute(options.json);
    Command command = {checkout.program(day.directory),
                       "--random",
                       std::to_string(choice.count),
                       "--seed",
                       std::to_string(choice.seed),
                       "--json",
                       file};
    if (choice.limit) {
        command.emplace_back("--random-limit");
        command.push_back(std::to_string(*choice.limit));
    }
    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    return run(command);
}

}  // namespace

int bench_day(const Checkout& checkout, const BenchOptions& options) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const Day& day = find_day_with_versions(calendar, options.day, "measure");
    if (const std::optional<RandomChoice> choice = random_of(options))
        return bench_random(checkout, day, options, *choice);
    if (options.record && calendar.build_type != "Release") {
        throw UsageError(fmt::format("--record needs a Release build; {} is {}", checkout.build.string(),
                                     calendar.build_type));
    }
    if (options.counters) {
        require_something_to_count(day);
        require_counters();
    }
    build_target(checkout, day.program_target());

    const std::string list = options.plot       ? "plot"
                             : options.sweep    ? "sweep"
                             : options.counters ? "counters"
                                                : "bench";
    const std::string suffix = options.plot       ? "_plot"
                               : options.sweep    ? "_sweep"
                               : options.counters ? ".counters"
                                                  : "";
    const std::filesystem::path file =
        std::filesystem::path(this_machine().slug) / (day.directory + suffix + ".jsonl");
    const std::filesystem::path measured =
        checkout.build / "measurements" / (options.cpu_times ? "cpu_times" : "") / file;
    std::filesystem::create_directories(measured.parent_path());
    Command command = options.counters
                          ? count_day(checkout, day, "", measured)
                          : Command{checkout.program(day.directory), "--" + list, "--json", measured};
    if (options.cpu_times) command.emplace_back("--cpu-times");
    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    if (const int exit_code = run(command); exit_code != kSuccess) return exit_code;
    if (options.sweep) print_sweep(measured);
    if (!options.record) {
        fmt::print("\nRecords: {}. To keep them in docs/measurements: ./course bench {}{} --record\n",
                   measured.string(), options.day,
                   options.cpu_times ? " --cpu-times"
                   : suffix.empty()  ? ""
                                     : " --" + list);
        return kSuccess;
    }

    const std::filesystem::path recorded = checkout.measurements() / file;
    std::filesystem::create_directories(recorded.parent_path());
    if (options.cpu_times) {
        const std::string before = std::filesystem::exists(recorded) ? read_text_file(recorded) : "";
        replace_file(recorded, with_records_of_host(before, from_json_lines(read_text_file(measured))));
    } else {
        std::filesystem::copy_file(measured, recorded, std::filesystem::copy_options::overwrite_existing);
    }
    fmt::print("\nRecorded: {}. The tables: ./course tables\n", recorded.string());
    return kSuccess;
}

}  // namespace course::tool
