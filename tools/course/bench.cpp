#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "build.hpp"
#include "commands.hpp"
#include "common/bench/machine.hpp"
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

}  // namespace

int bench_day(const Checkout& checkout, const BenchOptions& options) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const Day& day = find_day_with_versions(calendar, options.day, "measure");
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
