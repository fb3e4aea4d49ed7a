#include <fmt/format.h>

#include "build.hpp"
#include "check_run.hpp"
#include "commands.hpp"
#include "errors.hpp"
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
    fmt::print("  {} correct: {} test{} pass{}\n", styled("*", kGood, stdout), result.tests,
               result.tests == 1 ? "" : "s", result.orders > 1 ? ", in both orders of threads" : "");
    for (const Merit& merit : all) {
        fmt::print("  {} {}\n", merit.star ? styled("*", kGood, stdout) : styled("-", kNotice, stdout),
                   merit.text);
        count += merit.star;
    }
    return count;
}

// What inspection has to say about a wrong answer; nothing where it cannot.
void print_findings(const Desk& desk, const WorkbookEntry& entry, const Checkout& checkout,
                    const CheckCommand& command) {
    if (!inspects(checkout, entry, command)) return;
    try {
        for (const Merit& merit : merits(desk, entry, checkout, {.name = {}, .inspect = true}))
            fmt::print("  {}\n", merit.text);
    } catch (const std::runtime_error& error) {
        fmt::print("  inspection: {}\n", error.what());
    }
}

}  // namespace

bool check_one(Desk& desk, const WorkbookEntry& entry, const Checkout& checkout,
               const CheckCommand& command) {
    const CheckResult result =
        check_exercise(desk.book, entry, build_for(checkout, entry, command), {.limit = command.limit});
    const bool passed = result.verdict == Verdict::kPassed;
    int count = 0;
    if (passed) {
        fmt::print("{} {}\n", styled("solved", kGood, stdout), entry.id);
        count = print_score(result, merits(desk, entry, checkout, command));
    } else {
        fmt::print("{} {}: {}\n", styled("not yet", kBad, stdout), entry.id, result.text);
        if (result.verdict == Verdict::kFailed) print_findings(desk, entry, checkout, command);
        fmt::print("  {}        a hint: ./course hint {}\n", describe(desk.book, entry), entry.id);
    }
    desk.logbook.update(entry.id, [&](ExerciseRecord& record) {
        record.solved = record.solved || passed;
        record.stars = std::max(record.stars, count);
        record.failures += result.verdict == Verdict::kFailed || result.verdict == Verdict::kDoesNotCompile;
    });
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
    const auto next = desk.first_unsolved();
    fmt::print("{}\n", next ? fmt::format("  Next: {} (./course next)", next->id)
                            : "  That was the last of all exercises.");
    return kSuccess;
}

}  // namespace course::tool
