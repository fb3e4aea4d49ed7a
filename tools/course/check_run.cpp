#include "check_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "build.hpp"
#include "device_side.hpp"
#include "errors.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

constexpr std::size_t kLinesShown = 12;  // of each message

std::string indented(std::string_view text, std::size_t lines, const std::string& root) {
    std::string result;
    std::size_t shown = 0;
    while (!text.empty()) {
        std::string line(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (shown++ == lines) return result + "    ...\n";
        for (auto at = line.find(root + "/"); at != std::string::npos; at = line.find(root + "/"))
            line.erase(at, root.size() + 1);
        result += line.empty() ? "\n" : "    " + line + "\n";
    }
    return result;
}

// The end of what a program said: where it tells why it died.
std::string_view last_lines(std::string_view text, std::size_t count) {
    while (text.ends_with('\n'))
        text.remove_suffix(1);
    std::size_t begin = text.size();
    while (count-- > 0 && begin != std::string_view::npos && begin > 0)
        begin = text.rfind('\n', begin - 1);
    return begin == std::string_view::npos ? text : text.substr(begin);
}

// The tests end with the first that fails.
std::string text_of_failures(const GtestOutput& output, std::size_t shown, const std::string& root) {
    if (output.failed.empty()) return "";
    const FailedTest& test = output.failed.front();
    std::string text = fmt::format("\n  {}\n", styled(test.name, kBad, stdout));
    if (!test.printed.empty()) text += "    it printed:\n" + indented(test.printed, kLinesShown, root);
    text += indented(test.report, kLinesShown, root);
    for (std::size_t i = 0; i < std::min(shown, test.messages.size()); ++i)
        text += indented(test.messages[i], kLinesShown, root);
    if (test.messages.size() > shown)
        text += fmt::format("    ... and {} more of its checks\n", test.messages.size() - shown);
    return text;
}

std::string text_of_end(const GtestOutput& output, const Captured& run, std::chrono::milliseconds limit,
                        const std::string& slow_place, const std::string& root) {
    const std::string test = output.unfinished.empty() ? "the tests" : output.unfinished;
    std::string what;
    if (run.timed_out) {
        what = fmt::format(
            "{}: not done after {} s, ended{}. A loop that never ends, a thread that waits for ever, or does "
            "each thread do all the work? --limit S gives it more time.",
            test, limit.count() / 1000, slow_place.empty() ? "" : "; it was in " + slow_place);
    } else if (run.flooded) {
        what = fmt::format("{}: printed more than {} MB, ended. A printf in a loop that never ends?", test,
                           kMostOutput >> 20);
    } else if (run.exit_code > 128) {
        what = fmt::format("{}: the program ended by signal {}.", test, run.exit_code - 128);
    } else {
        what =
            fmt::format("{}: the program ended in the middle of it, with exit code {}.", test, run.exit_code);
    }
    return fmt::format(
        "\n  {}\n{}", styled(what, kBad, stdout),
        indented(last_lines(output.unfinished.empty() ? run.output : output.last_words, kLinesShown),
                 kLinesShown, root));
}

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

// "cuda_on_cpu: kernel add: still running after 10 s, in /root/add.cu:46, block 0, thread 0", perhaps after what the kernel printed: what
// comes after "in "; of other lines nothing.
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

// A kernel that is only slow is no failure: the learner sees where it is, and may wait or press Ctrl-C.
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
    if (ended_early) text += text_of_end(output, run, options.limit, slow_place, root);
    return {.verdict = Verdict::kFailed, .text = std::move(text), .timed_out = run.timed_out};
}

// What the compiler or the linker said, less the build's own lines and the command, which follows `FAILED:`.
std::string text_of_errors(std::string_view messages, const std::string& root) {
    constexpr std::size_t kErrorLines = 30;
    std::string errors;
    bool is_command = false;
    while (!messages.empty()) {
        const std::string_view line = messages.substr(0, messages.find('\n'));
        messages.remove_prefix(std::min(line.size() + 1, messages.size()));
        const bool is_head = line.starts_with("FAILED: ");
        // g++ tells of a flag that only clang++ has, but only where it has something else to tell, too.
        const bool is_about_flags = line.find("unrecognized command-line option") != std::string_view::npos ||
                                    line.ends_with("At global scope:");
        // On the CPU a kernel's body is a lambda.
        const bool is_about_translation = line.ends_with("In lambda function:");
        if (!is_head && !is_command && !is_about_flags && !is_about_translation &&
            !line.starts_with("ninja: "))
            errors += std::string(line) + "\n";
        is_command = is_head;
    }
    return indented(errors, kErrorLines, root);
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
        if (result.verdict != Verdict::kPassed) return result;
    }
    if (const std::string uses = host_code_in_kernels(book, entry, build.root); !uses.empty()) {
        return {Verdict::kDoesNotCompile,
                "its tests pass on the CPU, but nvcc does not compile it:\n\n" + uses +
                    "\n  A kernel can only call what is declared __device__, and CUDA's own functions.\n"};
    }
    return result;
}

}  // namespace course::tool
