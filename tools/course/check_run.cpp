#include "check_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "build.hpp"
#include "check_text.hpp"
#include "device_side.hpp"
#include "errors.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

struct Schedule {
    const char* order;   // CUDA_ON_CPU_ORDER
    const char* stores;  // CUDA_ON_CPU_STORES
    const char* words;   // of a failure
};

constexpr Schedule kFirstToLast = {"ascending", "prompt", ""};
constexpr Schedule kLastToFirst = {"descending", "prompt", " when the last thread of a block runs first"};
constexpr Schedule kLateStores = {"ascending", "late",
                                  " when each thread reads early and writes late, as it may: a barrier or an "
                                  "atomic is missing, or comes too early"};

std::vector<Schedule> schedules(const WorkbookEntry& entry, const Calendar& calendar) {
    if (calendar.backend == "gpu" || entry.exercise->needs_inspection) return {kFirstToLast};
    if (!calendar.late_stores) return {kFirstToLast, kLastToFirst};
    return {kFirstToLast, kLastToFirst, kLateStores};
}

// Variables of the environment of what is run, while this lives; none of them may be set already.
class ProgramSettings {
  public:
    explicit ProgramSettings(const Schedule& schedule) {
        set("CUDA_ON_CPU_ORDER", schedule.order);
        set("CUDA_ON_CPU_STORES", schedule.stores);
        set("CUDA_ON_CPU_PRINTF", "threads");
        set("CUDA_ON_CPU_NOTICE", kNoticeAfter);
    }
    ~ProgramSettings() {
        for (const char* const name : names_)
            unsetenv(name);
    }
    ProgramSettings(const ProgramSettings&) = delete;
    ProgramSettings& operator=(const ProgramSettings&) = delete;

  private:
    void set(const char* name, const char* value) {
        setenv(name, value, 1);
        names_.push_back(name);
    }

    static constexpr const char* kNoticeAfter = "10";  // seconds
    std::vector<const char*> names_;
};

// "cuda_on_cpu: kernel add: still running after 10 s, in /root/add.cu:46, block 0, thread 0",
// perhaps after what the kernel printed: what comes after "in "; of other lines nothing.
std::string place_of_slow_kernel(std::string_view line, const std::string& root) {
    constexpr std::string_view kBeforePlace = " s, in ";
    const auto notice = line.find(": still running after ");
    if (line.find("cuda_on_cpu: kernel ") >= notice) return "";
    const auto place = line.find(kBeforePlace, notice);
    if (place == line.npos) return "";
    std::string_view text = line.substr(place + kBeforePlace.size());
    if (text.starts_with(root + "/")) text.remove_prefix(root.size() + 1);
    return std::string(text);
}

// A kernel that is only slow is no failure: the learner sees where it is, and may wait or press
// Ctrl-C.
void tell_of_slow_kernel(const std::string& place) {
    fmt::print(stderr, "{}{}\n", isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "",
               styled(fmt::format(
                          "course: still in {}. A loop that never ends, or does each thread do all the work?",
                          place),
                      kNotice, stderr));
}

CheckResult run_tests(const std::filesystem::path& program, const WorkbookEntry& entry,
                      const Schedule& schedule, const CheckOptions& options, const std::string& root) {
    setenv("OMP_WAIT_POLICY", "passive", 0);
    const bool on_terminal = isatty(STDERR_FILENO) == 1;
    if (on_terminal) fmt::print(stderr, "running the tests...");
    std::string slow_place;
    const auto look_for_slow_kernel = [&](std::string_view line) {
        if (line.starts_with("[ RUN ")) slow_place.clear();
        const std::string place = place_of_slow_kernel(line, root);
        if (place.empty()) return;
        tell_of_slow_kernel(place);
        slow_place = place;
    };
    const Captured run = [&] {
        const ProgramSettings settings(schedule);
        return capture(
            {program, "--gtest_color=no", "--gtest_fail_fast", "--gtest_filter=" + entry.exercise->tests},
            look_for_slow_kernel, options.limit);
    }();
    if (on_terminal) fmt::print(stderr, "\r\033[K");
    const GtestOutput output = parse_gtest_output(run.output);
    if (run.exit_code == kInterrupted) throw Interrupted();
    const bool ended_early =
        run.timed_out || run.flooded || run.exit_code > 128 || !output.unfinished.empty();
    if (!ended_early) {
        if (output.ran_none()) {
            throw ExerciseError(fmt::format("{}: the filter '{}' matches no test in {}{}", entry.id,
                                            entry.exercise->tests, program.filename().string(),
                                            run.exit_code == 0 ? "" : ":\n" + run.output));
        }
        if (output.passed == 0 && output.failed.empty())
            return {Verdict::kCannotRun, fmt::format("cannot be checked here: {}\n", output.skip_reason)};
        if (output.failed.empty() && run.exit_code == kSuccess)
            return {Verdict::kPassed, "", output.passed, 1};
    }
    const std::string before = output.passed == 0 ? ""
                               : output.passed == 1
                                   ? "1 of its tests passes, then "
                                   : fmt::format("{} of its tests pass, then ", output.passed);
    std::string text = fmt::format("{}this one fails{}:\n", before, schedule.words);
    text += text_of_failures(output, options.failures_shown, root);
    if (ended_early)
        text += text_of_end(output, run, {options.limit, slow_place, options.failures_shown}, root);
    const bool was_refused = !output.failed.empty() && !output.failed.front().report.empty();
    return {.verdict = Verdict::kFailed,
            .text = std::move(text),
            .timed_out = run.timed_out,
            .died = ended_early || was_refused};
}

std::string target_of(const WorkbookEntry& entry) {
    return entry.chapter->directory +
           (entry.exercise->needs_inspection ? "_inspection_exercise" : "_exercise");
}

}  // namespace

std::string build_mine(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                       const MyTarget& target) {
    set_cache_path(build, "COURSE_MY", book.my_directory());
    announce_first_build(build, target.name,
                         fmt::format("the first {} of {} builds its {}, too", target.command,
                                     entry.chapter->name, target.parts));
    const std::string messages = try_to_build(build, target.name);
    const std::string errors = text_of_errors(messages, build.root.string());
    return errors.empty() ? messages : errors;
}

CheckResult check_exercise(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                           const CheckOptions& options) {
    book.copy_blank_files(*entry.chapter);
    const std::string target = target_of(entry);
    if (const std::string errors = build_mine(book, entry, build, {target, "check", "lesson and tests"});
        !errors.empty())
        return {Verdict::kDoesNotCompile, "does not compile:\n\n" + errors};

    CheckResult result;
    for (const Schedule& schedule : schedules(entry, load_calendar(build.calendar()))) {
        const int before = result.schedules;
        result = run_tests(build.program(target), entry, schedule, options, build.root.string());
        result.schedules += before;
        if (result.verdict == Verdict::kPassed) continue;
        // A host function that is called from a kernel may do anything on the CPU, end the program
        // for instance.
        if (result.died) {
            if (const std::string uses = host_code_in_kernels(book, entry, build.root); !uses.empty())
                result.text += "\n  nvcc does not compile it:\n" + uses;
        }
        return result;
    }
    if (const std::string uses = host_code_in_kernels(book, entry, build.root); !uses.empty()) {
        return {
            Verdict::kDoesNotCompile,
            "its tests pass on the CPU, but nvcc does not compile it:\n\n" + uses +
                "\n  A kernel can only use what is declared __device__ (or __constant__, or constexpr), and "
                "CUDA's own functions.\n"};
    }
    return result;
}

}  // namespace course::tool
