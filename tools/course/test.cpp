#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "build.hpp"
#include "commands.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "styles.hpp"
#include "subprocess.hpp"
#include "test_report.hpp"

namespace course::tool {
namespace {

// The names of the tests that `ctest` would start.
std::vector<std::string> parts_of(Command ctest) {
    ctest.emplace_back("--show-only=json-v1");
    const Captured listed = capture(ctest);
    const auto json = nlohmann::json::parse(listed.output, nullptr, false);
    if (listed.exit_code != 0 || json.is_discarded())
        throw BuildError(fmt::format("cannot list the tests: {}", listed.output));
    std::vector<std::string> parts;
    for (const auto& test : json.at("tests"))
        parts.push_back(test.at("name"));
    return parts;
}

// Prints the first few failures at the very end, where a terminal still shows them after
// everything else has scrolled past.
void print_failures(const TestReport& report, const std::filesystem::path& build) {
    constexpr std::size_t kShown = 8;
    const std::size_t shown = std::min(kShown, report.failures.size());
    for (std::size_t i = 0; i < shown; ++i) {
        const TestFailure& failure = report.failures[i];
        fmt::print("\n{}\n{}", styled(failure.name, kBad, stdout), failure.message);
    }
    if (shown == 0) return;
    if (report.failures.size() > shown) fmt::print("\n... and {} more\n", report.failures.size() - shown);
    fmt::print("\nAll they printed is in {}\nThe first of them alone, in {}:\n  {}\n",
               (build / "Testing/Temporary/LastTest.log").string(), (build / "bin").string(),
               report.failures.front().command());
}

void print_summary(const TestReport& report) {
    const auto count = [](int number, const char* what, const fmt::text_style& style) {
        return styled(fmt::format("{} {}", number, what), number > 0 ? style : fmt::text_style(), stdout);
    };
    fmt::print("\n{}", lines_about(report.skipped_tests));
    fmt::print("{}, {}, {}\n", count(report.passed, "passed", kGood), count(report.failed, "failed", kBad),
               count(report.skipped, "skipped", kNotice));
}

}  // namespace

std::string lines_about_tests_not_run(TestHalf half, bool on_cpu) {
    // Only kernels that run on the CPU have other orders.
    if (half == TestHalf::kLessons)
        return fmt::format(
            "Not run: {}single instructions; the command lines of days 10, 35 and the ladder; the tests of "
            "cuda_on_cpu and of tools/. These alone: ./course test --rest\n",
            on_cpu ? "threads and blocks in descending order, streams in other orders, older GPUs; " : "");
    return std::string(half == TestHalf::kRest
                           ? "Not run: the results of the lessons, once. These alone: ./course test\n"
                           : "") +
           "Not run: inspections of the lessons (CONTRIBUTING.md has the commands); exercises as a learner "
           "does them: scripts/play_learner.py\n";
}

int test_days(const Checkout& checkout, const TestOptions& options) {
    const std::filesystem::path reports = checkout.build / "test_reports";
    Command command = {"ctest", "--test-dir", checkout.build.string(), "--no-tests=error"};
    if (options.day) {
        const Calendar calendar = load_calendar(checkout.calendar());
        const std::string& day = find_day(calendar, *options.day).directory;
        build_target(checkout, day);
        command.insert(command.end(), {"--label-regex", "^" + day + "$"});
    } else {
        if (options.half != TestHalf::kRest) build_target(checkout, "course_tests");
        if (options.half != TestHalf::kLessons) build_target(checkout, "course_tests_thorough");
        if (options.half == TestHalf::kLessons)
            command.insert(command.end(), {"--label-exclude", "^thorough$"});
        if (options.half == TestHalf::kRest) command.insert(command.end(), {"--label-regex", "^thorough$"});
        // For .ci/run, which takes days by turns: no tests with a label that this regular
        // expression matches.
        const char* without = std::getenv("COURSE_TEST_WITHOUT");
        if (options.half == TestHalf::kRest && without != nullptr) {
            fmt::print("Not run: tests with a label that '{}' matches (COURSE_TEST_WITHOUT)\n", without);
            command.insert(command.end(), {"--label-exclude", without});
        }
    }
    const std::vector<std::string> parts = parts_of(command);
    // Two more than the number of cores: a test computes for 0.6 of its time, and else waits for a
    // time limit, a thread or a process.
    command.insert(command.end(), {"--parallel", fmt::format("{}", std::thread::hardware_concurrency() + 2)});
    if (isatty(STDOUT_FILENO) == 1) command.emplace_back("--progress");

    // Tests run concurrently, one per core. So the reference of a test needs at most two threads,
    // and a test that waits for its threads must not spin on a core that another test uses.
    setenv("OMP_NUM_THREADS", "2", 0);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    std::filesystem::remove_all(reports);
    std::filesystem::create_directories(reports);
    const int exit_code = run(command);
    if (exit_code > 128) return exit_code;  // Ctrl-C: most tests have not run
    const TestReport result = parse_test_reports(parts, reports);
    print_failures(result, checkout.build);
    if (!options.day) {
        const bool on_cpu = load_calendar(checkout.calendar()).backend == "cpu";
        fmt::print("\n{}", lines_about_tests_not_run(options.half, on_cpu));
    }
    print_summary(result);
    return exit_code == 0 && result.failed == 0 ? kSuccess : kFailed;
}

}  // namespace course::tool
