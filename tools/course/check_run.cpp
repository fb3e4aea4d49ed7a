#include "check_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "build.hpp"
#include "check_text.hpp"
#include "device_side.hpp"
#include "errors.hpp"
#include "exercise_sources.hpp"
#include "functions.hpp"
#include "linked_names.hpp"
#include "sandbox.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

struct Schedule {
    const char* order;              // CUDA_ON_CPU_ORDER
    const char* stores;             // CUDA_ON_CPU_STORES
    const char* streams;            // CUDA_ON_CPU_STREAMS
    const char* praise;             // for an answer that is right in this schedule, too
    const char* words;              // for a failure in this schedule
    const char* children = "late";  // CUDA_ON_CPU_CHILDREN
};

constexpr Schedule kFirstToLast = {"ascending", "prompt", "issue", "", ""};
constexpr Schedule kLastToFirst = {"descending", "prompt", "issue", "in both orders of threads",
                                   " when the last thread of a block runs first"};
constexpr const char* kOrderMatters =
    "the result depends on the order of threads. Is a barrier or an atomic missing, or do two threads write "
    "the same element?";
constexpr const char* kNotYetWritten =
    "\n  Never written, or not yet when it was read: does the host wait for the stream that the work is in, "
    "and does each stream wait for the event that it needs?\n";
constexpr const char* kTimeMatters =
    "Runs in the same order of threads differ, too: the result depends on what other blocks have done so "
    "far. Does a block use what another one has not stored yet, or has already changed?";
constexpr Schedule kLateStores = {"ascending", "late", "issue", "with late stores",
                                  " when each thread reads early and writes late, as it may: a barrier or an "
                                  "atomic is missing, or comes too early"};
constexpr Schedule kLateStreams = {"ascending", "prompt", "late", "with late streams",
                                   " when work in streams runs as late as it may: an event or a "
                                   "synchronisation is missing"};
constexpr Schedule kRandomStreams = {"ascending", "prompt", "random:1", "with streams in a random order",
                                     " when work in streams runs in another order, as it may: an event or a "
                                     "synchronisation is missing"};

constexpr Schedule kEarlyChildren = {
    "ascending",
    "prompt",
    "issue",
    "with early children",
    " when grids that a kernel launches run before it goes on, as they may: a barrier before the launch is "
    "missing, or a thread writes too late what the child reads",
    "early"};

std::vector<Schedule> schedules(const WorkbookEntry& entry, const Calendar& calendar) {
    if (calendar.backend == "gpu" || entry.exercise->needs_inspection) return {kFirstToLast};
    std::vector<Schedule> all = {kFirstToLast, kLastToFirst};
    if (calendar.late_stores) all.push_back(kLateStores);
    for (const std::string& order : entry.exercise->streams)
        all.push_back(order == "late" ? kLateStreams : kRandomStreams);
    if (entry.exercise->early_children) all.push_back(kEarlyChildren);
    return all;
}

// "in both orders of threads, with late stores and with late streams".
std::string praise_of(const std::vector<Schedule>& all) {
    std::string praise;
    for (std::size_t i = 1; i < all.size(); ++i) {
        const char* const before = i == 1 ? "" : i + 1 == all.size() ? " and " : ", ";
        praise += before + std::string(all[i].praise);
    }
    return praise;
}

constexpr const char* kNoticeAfter = "10";  // seconds

// Without it, what a learner's code prints could be taken for a test that has passed.
std::string make_key() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
}

Job run_of(const std::filesystem::path& program, const WorkbookEntry& entry, const Schedule& schedule,
           const std::string& key) {
    using namespace std::string_literals;
    return {running({program, "--gtest_fail_fast", "--gtest_filter=" + entry.exercise->tests}),
            {"CUDA_ON_CPU_ORDER="s + schedule.order, "CUDA_ON_CPU_STORES="s + schedule.stores,
             "CUDA_ON_CPU_STREAMS="s + schedule.streams, "CUDA_ON_CPU_CHILDREN="s + schedule.children,
             "CUDA_ON_CPU_PRINTF=threads", "CUDA_ON_CPU_SHUFFLES=tell", "CUDA_ON_CPU_NOTICE="s + kNoticeAfter,
             "COURSE_TEST_REPORT=-", "COURSE_TEST_KEY=" + key}};
}

// "cuda_on_cpu: kernel add: still running after 10 s, in /root/add.cu:46, block 0, thread 0",
// perhaps after output of the kernel. Returns the text after "in "; empty for other lines.
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

// A slow kernel is not a failure: the learner sees where it is, and may wait or press Ctrl-C.
void tell_of_slow_kernel(const std::string& place) {
    fmt::print(stderr, "{}{}\n", isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "",
               styled(fmt::format(
                          "course: still in {}. A loop that never ends, or does each thread do all the work?",
                          place),
                      kNotice, stderr));
}

CheckResult result_of(const Captured& run, const std::string& slow_place,
                      const std::filesystem::path& program, const WorkbookEntry& entry,
                      const Schedule& schedule, const CheckOptions& options, const std::string& root,
                      const std::string& key) {
    const TestOutput output = parse_test_output(run.output, key);
    const bool ended_early = run.timed_out || run.flooded || run.exit_code > 128 || !output.finished;
    if (!ended_early) {
        if (output.ran_none()) {
            throw ExerciseError(fmt::format("{}: the filter '{}' matches no test in {}{}", entry.id,
                                            entry.exercise->tests, program.filename().string(),
                                            run.exit_code == 0 ? "" : ":\n" + output.printed));
        }
        if (output.passed == 0 && output.failed.empty())
            return {Verdict::kCannotRun, fmt::format("cannot be checked here: {}\n", output.skip_reason)};
        if (output.failed.empty() && run.exit_code == kSuccess) return {Verdict::kPassed, "", output.passed};
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
    if (std::string_view(schedule.order) == kLastToFirst.order && !ended_early && !was_refused)
        text += fmt::format("\n  When the first thread runs first, the tests pass: {}\n", kOrderMatters);
    return {.verdict = Verdict::kFailed,
            .text = std::move(text),
            .timed_out = run.timed_out,
            .died = ended_early || was_refused,
            .first_failure = output.failed.empty() || output.failed.front().messages.empty()
                                 ? ""
                                 : output.failed.front().messages.front()};
}

// Addresses and times differ from run to run, whatever the order of threads.
std::string without_addresses_and_times(const std::string& failure) {
    static const std::regex what(R"(0x[0-9a-f]+|[0-9.]+ ms\b)");
    return std::regex_replace(failure, what, "");
}

// Only the first failure is compared: it is the test's smallest case, with the fewest blocks. It
// names the cause itself when the stand-in has stopped a kernel, also that of a program which the
// test runs.
bool has_other_values(const CheckResult& failed, const CheckResult& other) {
    return !other.died && !other.timed_out &&
           failed.first_failure.find("cuda_on_cpu: kernel ") == std::string::npos &&
           without_addresses_and_times(other.first_failure) !=
               without_addresses_and_times(failed.first_failure);
}

// Values that are wrong in another way when threads run in another order come from a race: a cause
// that the values themselves do not show. Where they are steady in one order, that is; blocks run
// in another order each time.
std::string effect_of_order(const CheckResult& last_to_first, bool is_steady) {
    const char* const what =
        last_to_first.verdict == Verdict::kPassed ? "the tests pass" : "the test fails with other values";
    return is_steady
               ? fmt::format("\n  When the last thread of a block runs first, {}: {}\n", what, kOrderMatters)
               : fmt::format("\n  {}\n", kTimeMatters);
}

// Shows a notice on a terminal during its lifetime.
class RunningNotice {
  public:
    RunningNotice() {
        if (on_terminal_) fmt::print(stderr, "running the tests...");
    }
    ~RunningNotice() {
        if (on_terminal_) fmt::print(stderr, "\r\033[K");
    }
    RunningNotice(const RunningNotice&) = delete;
    RunningNotice& operator=(const RunningNotice&) = delete;

  private:
    bool on_terminal_ = isatty(STDERR_FILENO) == 1;
};

bool is_begin_of_test(std::string_view line, std::string_view key) {
    const auto event = event_in_output(line, key);
    return event && event->kind == "started";
}

// Records where the slow kernels are while the tests run in several schedules at once. Only those
// of the run that is waited for are printed.
class SlowKernels {
  public:
    SlowKernels(std::size_t runs, const std::string& root, const std::string& key)
        : places_(runs), root_(root), key_(key) {}

    const std::string& place(std::size_t run) const { return places_[run]; }

    // Processes a line of output. Returns whether a test has begun.
    bool look_at(std::size_t run, std::string_view line) {
        const bool is_begin = is_begin_of_test(line, key_);
        if (is_begin) places_[run].clear();
        const std::string place = place_of_slow_kernel(line, root_);
        if (place.empty()) return is_begin;
        places_[run] = place;
        if (run == awaited_) tell_of_slow_kernel(place);
        return is_begin;
    }
    void wait_for(std::size_t run) {
        awaited_ = run;
        if (run < places_.size() && !places_[run].empty()) tell_of_slow_kernel(places_[run]);
    }

  private:
    std::vector<std::string> places_;
    const std::string& root_;
    const std::string& key_;
    std::size_t awaited_ = 0;
};

// A failure does not wait longer to be compared with that of the other order.
constexpr std::chrono::milliseconds kPatienceWithOtherOrder = std::chrono::seconds(5);

// Runs the tests in all schedules at once, because most tests leave cores idle. Reports the
// failure of the first schedule in which they fail.
CheckResult run_tests(const std::filesystem::path& program, const WorkbookEntry& entry,
                      const std::vector<Schedule>& schedules, const CheckOptions& options,
                      const std::string& root) {
    setenv("OMP_WAIT_POLICY", "passive", 0);
    const RunningNotice notice;
    const std::string key = make_key();
    std::vector<Job> runs;
    for (const Schedule& schedule : schedules)
        runs.push_back(run_of(program, entry, schedule, key));
    SlowKernels slow(runs.size(), root, key);
    CheckResult result;
    std::optional<CheckResult> other_order;  // has other values than the first run
    bool is_compared = false;
    const auto on_end = [&](std::size_t i, const Captured& run) {
        if (is_interrupted(run.exit_code)) throw Interrupted();
        const CheckResult ended =
            result_of(run, slow.place(i), program, entry, schedules[i], options, root, key);
        slow.wait_for(i + 1);
        if (result.verdict == Verdict::kFailed && i == 1) {  // the first run has failed
            if (has_other_values(result, ended)) other_order = ended;
            return false;
        }
        result = ended;
        // Where work waits for other work, values may differ from run to run without a race.
        const bool has_streams = !entry.exercise->streams.empty();
        if (i == 0 && has_streams && result.first_failure.find("never written") != std::string::npos)
            result.text += kNotYetWritten;
        is_compared = i == 0 && !has_streams && result.verdict == Verdict::kFailed && !result.died &&
                      !result.timed_out && schedules.size() > 1;
        return result.verdict == Verdict::kPassed || is_compared;
    };
    capture_together(
        runs,
        {.on_line = [&](std::size_t i, std::string_view line) { return slow.look_at(i, line); },
         .on_end = on_end,
         .patience = [&] { return is_compared ? kPatienceWithOtherOrder : std::chrono::milliseconds{}; }},
        options.limit);
    if (other_order) {
        // Blocks that wait for one another may find another state in each run.
        bool is_steady = true;
        const auto compare = [&](std::size_t, const Captured& run) {
            if (is_interrupted(run.exit_code)) throw Interrupted();
            is_steady = !has_other_values(
                result, result_of(run, "", program, entry, schedules.front(), options, root, key));
            return false;
        };
        capture_together({runs.front()}, {.on_end = compare}, kPatienceWithOtherOrder);
        result.text += effect_of_order(*other_order, is_steady);
    }
    result.schedules = praise_of(schedules);
    return result;
}

std::string target_of(const WorkbookEntry& entry) {
    return entry.chapter->directory +
           (entry.exercise->needs_inspection ? "_inspection_exercise" : "_exercise");
}

// The lesson's files of the chapter that its compiled exercises have read, by an #include of any
// spelling: they hold the solutions.
std::string lessons_files_read(const Workbook& book, const Chapter& chapter, const Checkout& build,
                               const std::string& target) {
    std::vector<std::filesystem::path> lessons;
    for (const std::filesystem::path& mine : book.files_of(chapter))
        lessons.push_back(build.root / chapter.directory /
                          mine.lexically_relative(book.my_directory() / chapter.directory));
    const Command ninja = {"ninja", "-C", build.build.string(), "-t"};
    Command inputs = ninja, dependencies = ninja;
    inputs.insert(inputs.end(), {"inputs", target});
    dependencies.emplace_back("deps");
    capture(inputs, [&](std::string_view line) {
        if (line.ends_with(".o") && line.find("/exercises/" + chapter.directory + "/") != line.npos)
            dependencies.emplace_back(line);
    });
    std::set<std::string> found;
    capture(dependencies, [&](std::string_view line) {
        const auto begin = line.find_first_not_of(' ');
        if (begin == 0 || begin == line.npos) return;  // "FILE.o: #deps 334, ..."
        const std::filesystem::path file = build.build / line.substr(begin);
        for (const std::filesystem::path& lesson : lessons) {
            std::error_code missing;
            if (std::filesystem::equivalent(file, lesson, missing))
                found.insert(lesson.lexically_relative(build.root).string());
        }
    });
    std::string text;
    for (const std::string& lesson : found)
        text += "    " + lesson + "\n";
    return text;
}

// The learner's files of the chapter in which the compiler found errors. An open brace has its
// error elsewhere, so it is looked for first.
std::set<std::filesystem::path> files_with_errors(const Workbook& book, const Chapter& chapter,
                                                  const std::string& errors, const std::string& root) {
    std::set<std::filesystem::path> open, named;
    for (const std::filesystem::path& file : book.files_of(chapter)) {
        if (!std::filesystem::exists(file)) continue;
        try {
            find_functions(read_text_file(file), "any");
        } catch (const ExerciseError&) {
            open.insert(file);
        }
        std::string shown = file.string();
        if (shown.starts_with(root + "/")) shown.erase(0, root.size() + 1);
        std::istringstream lines(errors);
        for (std::string line; std::getline(lines, line);) {
            if (line.find(" " + shown + ":") != line.npos && line.find("error: ") != line.npos)
                named.insert(file);
        }
    }
    return open.empty() ? named : open;
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

std::string errors_of_exercise(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                               std::set<std::filesystem::path>* broken) {
    std::set<std::filesystem::path> others = broken == nullptr ? std::set<std::filesystem::path>{} : *broken;
    const std::filesystem::path own = book.mine(entry);
    others.erase(own);
    while (true) {
        set_aside(others);
        const std::string errors =
            build_mine(book, entry, build, {target_of(entry), "check", "lesson and tests"});
        if (errors.empty() || broken == nullptr) return errors;
        const auto named = files_with_errors(book, *entry.chapter, errors, build.root.string());
        broken->insert(named.begin(), named.end());
        const std::size_t before = others.size();
        others.insert(named.begin(), named.end());
        others.erase(own);
        if (others.size() == before) return errors;
    }
}

CheckResult run_exercise_tests(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                               const Calendar& calendar, const CheckOptions& options) {
    book.copy_blank_files(*entry.chapter);
    if (const std::string errors = errors_of_exercise(book, entry, build, options.broken); !errors.empty())
        return {Verdict::kDoesNotCompile, "does not compile:\n\n" + errors};
    const std::string target = target_of(entry);
    if (const std::string read = lessons_files_read(book, *entry.chapter, build, target); !read.empty())
        return {Verdict::kDoesNotCompile, "it includes the lesson's file, which holds the solution:\n\n" +
                                              read + "\n  Write the solution in your own file.\n"};

    CheckResult result =
        run_tests(build.program(target), entry, schedules(entry, calendar), options, build.root.string());
    const bool passed = result.verdict == Verdict::kPassed;
    // nvcc's objects define and call what it has made itself.
    if (passed && calendar.backend != "gpu") {
        if (const std::string reasons = tampering_of(*entry.chapter, build, target); !reasons.empty())
            return {Verdict::kDoesNotCompile,
                    "its tests pass, but it reaches into the program that tests it, which no answer "
                    "needs:\n\n" +
                        reasons};
    }
    // On the CPU, a kernel can call any host function, even one that ends the program, and write to
    // the host's arrays instead of its output. In a GPU build, nvcc has already rejected both.
    if (result.timed_out || calendar.backend == "gpu") return result;
    const HostCode uses = host_code_in_kernels(book, entry, build.root);
    if (!passed) {
        if (!uses.named.empty() || !uses.by_clang.empty())
            result.text += "\n  nvcc does not compile it:\n" + uses.named + uses.by_clang;
        return result;
    }
    if (!uses.named.empty()) {
        return {Verdict::kDoesNotCompile,
                "its tests pass on the CPU, but nvcc does not compile it:\n\n" + uses.named + uses.by_clang +
                    "\n  A kernel can only use what is declared __device__ (or __constant__, or constexpr), "
                    "and CUDA's own functions.\n"};
    }
    // The verdict must not depend on whether clang++ is installed.
    if (!uses.by_clang.empty())
        result.note = "  ! nvcc may refuse it, says clang++:\n" + uses.by_clang;
    else if (!uses.not_looked_at.empty())
        result.note = "  ? not looked at: calls of host functions in kernels (" + uses.not_looked_at + ")\n";
    if (result.note.ends_with('\n')) result.note.pop_back();
    return result;
}

}  // namespace course::tool
