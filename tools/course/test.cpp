#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "build.hpp"
#include "commands.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "styles.hpp"
#include "subprocess.hpp"
#include "test_report.hpp"

namespace course::tool {
namespace {

// What a plain `./course test` leaves out.
constexpr const char* kRest =
    "threads and blocks in descending order, streams in other orders, older GPUs; the tests of cuda_on_cpu, "
    "its libraries and tools/";

TestReport read_report(const std::filesystem::path& file, const std::filesystem::path& reports) {
    std::ifstream stream(file);
    return parse_test_report(std::string(std::istreambuf_iterator<char>(stream), {}), reports);
}

// The first few, last of all: what a terminal shows when everything has scrolled past.
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
    fmt::print("\n");
    for (const auto& [reason, number] : report.skip_reasons)
        fmt::print("skipped {}: {}\n", number, reason);
    fmt::print("{}, {}, {}\n", count(report.passed, "passed", kGood), count(report.failed, "failed", kBad),
               count(report.skipped, "skipped", kNotice));
}

}  // namespace

int test_days(const Checkout& checkout, const TestOptions& options) {
    const std::filesystem::path report = checkout.build / "test_report.xml";
    const std::filesystem::path reports = checkout.build / "test_reports";
    // One more than there are cores: some tests wait most of their time for a limit to pass.
    Command command = {"ctest", "--test-dir", checkout.build.string(), "--no-tests=error", "--parallel",
                       fmt::format("{}", std::thread::hardware_concurrency() + 1),
                       // Skipped tests count as passed here; their output holds the reason.
                       "--output-junit", report.string(), "--test-output-size-passed", "65536"};
    if (options.day) {
        const Calendar calendar = load_calendar(checkout.calendar());
        const std::string target = find_day(calendar, *options.day).directory + "_test";
        build_target(checkout, target);
        command.insert(command.end(), {"--tests-regex", "^" + target + "\\."});
    } else {
        if (options.half != TestHalf::kRest) build_target(checkout, "course_tests");
        if (options.half != TestHalf::kLessons) build_target(checkout, "course_tests_thorough");
        if (options.half == TestHalf::kLessons)
            command.insert(command.end(), {"--label-exclude", "^thorough$"});
        if (options.half == TestHalf::kRest) command.insert(command.end(), {"--label-regex", "^thorough$"});
    }
    if (isatty(STDOUT_FILENO) == 1) command.emplace_back("--progress");

    // Tests run side by side, one for each core. So the references of one need no more than two
    // threads, and one that waits for its threads must not burn another's time.
    setenv("OMP_NUM_THREADS", "2", 0);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    std::filesystem::remove(report);
    std::filesystem::remove_all(reports);
    std::filesystem::create_directories(reports);
    const int exit_code = run(command);
    if (std::filesystem::exists(report)) {
        const TestReport result = read_report(report, reports);
        print_failures(result, checkout.build);
        if (!options.day && options.half == TestHalf::kLessons)
            fmt::print("\nNot run: {}. These, too: ./course test --thorough\n", kRest);
        print_summary(result);
    }
    return exit_code == 0 || exit_code > 128 ? exit_code : kFailed;
}

}  // namespace course::tool
