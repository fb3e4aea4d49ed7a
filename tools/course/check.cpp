#include <fmt/format.h>

#include "build.hpp"
#include "check_run.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "file_lock.hpp"
#include "learner.hpp"
#include "score.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

// What is checked runs on the CPU, which says more about a mistake, unless a GPU is asked for.
Checkout build_for(const Checkout& checkout, const WorkbookEntry& entry, const CheckCommand& command) {
    if (entry.exercise->needs_inspection) return build_of_preset(checkout, "inspect");
    const bool is_gpu = load_calendar(checkout.calendar()).backend == "gpu";
    return command.gpu == is_gpu ? checkout : build_of_preset(checkout, command.gpu ? "gpu" : "cpu");
}

// Inspection takes a build of its own: where it is asked for, and afterwards for that day always.
bool inspects(const Checkout& checkout, const WorkbookEntry& entry, const CheckCommand& command) {
    if (entry.exercise->variant.empty() || entry.exercise->needs_inspection) return false;
    return command.inspect ||
           std::filesystem::exists(
               preset_checkout(checkout, "inspect").program(entry.chapter->directory + "_exercise_program"));
}

std::vector<Merit> merits(const Desk& desk, const WorkbookEntry& entry, const Checkout& checkout,
                          const CheckCommand& command) {
    std::vector<Merit> all;
    if (inspects(checkout, entry, command)) {
        const Checkout inspecting = build_of_preset(checkout, "inspect");
        set_cache_path(inspecting, "COURSE_MY", desk.book.my_directory());
        all = score_by_inspection(entry, inspecting);
    }
    if (command.gpu && !entry.exercise->variant.empty()) {
        if (const auto merit = score_by_time(entry, build_of_preset(checkout, "gpu"))) all.push_back(*merit);
    }
    return all;
}

int print_score(const CheckResult& result, const std::vector<Merit>& all) {
    int count = 1;
    fmt::print("  {} correct: {} test{}{}\n", styled("*", kGood, stdout), result.tests,
               result.tests == 1 ? " passes" : "s pass",
               result.schedules > 2   ? ", in both orders of threads and with late stores"
               : result.schedules > 1 ? ", in both orders of threads"
                                      : "");
    for (const Merit& merit : all) {
        fmt::print("  {} {}\n", merit.star ? styled("*", kGood, stdout) : styled("-", kNotice, stdout),
                   merit.text);
        count += merit.star;
    }
    return count;
}

// The merits of a right answer. That they are not to be had is told, and changes nothing.
std::vector<Merit> merits_if_any(const Desk& desk, const WorkbookEntry& entry, const Checkout& checkout,
                                 const CheckCommand& command) {
    try {
        return merits(desk, entry, checkout, command);
    } catch (const Interrupted&) {
        throw;
    } catch (const std::runtime_error& error) {
        return {{.star = false, .text = fmt::format("not compared with the lesson's: {}", error.what())}};
    }
}

// What inspection has found in a wrong answer; how it compares with the lesson's is no news then.
void print_findings(const Desk& desk, const WorkbookEntry& entry, const Checkout& checkout,
                    const CheckCommand& command) {
    if (!inspects(checkout, entry, command)) return;
    for (const Merit& merit : merits_if_any(desk, entry, checkout, {.name = {}, .inspect = true})) {
        if (merit.is_finding) fmt::print("  {}\n", merit.text);
    }
}

void print_what_was_not_looked_at(const Checkout& checkout, const WorkbookEntry& entry,
                                  const CheckCommand& command) {
    if (entry.exercise->variant.empty() || entry.exercise->needs_inspection ||
        inspects(checkout, entry, command))
        return;
    fmt::print("{}\n",
               styled(fmt::format("  ? as good as the lesson's? ./course check {} --inspect", entry.id),
                      kQuiet, stdout));
}

}  // namespace

bool check_one(Desk& desk, const WorkbookEntry& entry, const Checkout& checkout,
               const CheckCommand& command) {
    // Two at once would build each other's answers: the learners' files may be others, the programs are the same.
    const FileLock lock(checkout.root / "build" / "check.lock", "course: waiting for another check");
    const CheckResult result =
        check_exercise(desk.book, entry, build_for(checkout, entry, command), {.limit = command.limit});
    const bool passed = result.verdict == Verdict::kPassed;
    desk.logbook.update(entry.id, [&](ExerciseRecord& record) {
        record.solved = record.solved || passed;
        record.failures += result.verdict == Verdict::kFailed || result.verdict == Verdict::kDoesNotCompile;
    });
    if (passed) {
        fmt::print("{} {}\n", styled("solved", kGood, stdout), entry.id);
        const int count = print_score(result, merits_if_any(desk, entry, checkout, command));
        print_what_was_not_looked_at(checkout, entry, command);
        desk.logbook.update(
            entry.id, [count](ExerciseRecord& record) { record.stars = std::max(record.stars, count); });
    } else {
        fmt::print("{} {}: {}\n", styled("not yet", kBad, stdout), entry.id, result.text);
        // What does not end would not end when it is watched.
        if (result.verdict == Verdict::kFailed && !result.timed_out)
            print_findings(desk, entry, checkout, command);
        fmt::print("  {}\n  A hint: ./course hint {}\n", describe(desk.book, entry), entry.id);
    }
    return passed;
}

int check_exercises(const Checkout& checkout, const CheckCommand& command) {
    Desk desk(checkout);
    std::vector<WorkbookEntry> entries = {desk.choose(command.name)};
    if (command.name) {
        if (const auto meant = desk.book.find(*command.name); meant.size() > 1) entries = meant;
    }
    for (const WorkbookEntry& entry : entries) {
        if (!check_one(desk, entry, checkout, command)) return kFailed;
    }
    auto next = desk.first_unsolved(entries.back().chapter);
    if (!next) next = desk.first_unsolved();
    fmt::print("{}\n", next ? fmt::format("  Next: {} (./course next)", next->id)
                            : "  That was the last of all exercises.");
    return kSuccess;
}

}  // namespace course::tool
