#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "build.hpp"
#include "cause.hpp"
#include "check_run.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "file_lock.hpp"
#include "inspect_output.hpp"
#include "inspect_text.hpp"
#include "learner.hpp"
#include "score.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

// Checks run on the CPU, which reports errors in more detail, unless a GPU is requested.
Checkout build_for(const Workbook& book, const Checkout& checkout, const WorkbookEntry& entry,
                   const CheckCommand& command) {
    if (entry.exercise->needs_inspection) return build_of_preset(checkout, "inspect");
    const bool is_gpu = book.calendar().backend == "gpu";
    return command.gpu == is_gpu ? checkout : build_of_preset(checkout, command.gpu ? "gpu" : "cpu");
}

// Inspection needs a build of its own. It is used when requested, and from then on for every check
// of that day.
bool inspects(const Checkout& checkout, const WorkbookEntry& entry, const CheckCommand& command) {
    if (entry.exercise->version.empty() || entry.exercise->needs_inspection) return false;
    return command.inspect || !command.html.empty() ||
           std::filesystem::exists(
               inspected_build(checkout).program(entry.chapter->directory + "_exercise_program"));
}

// A right answer is also inspected if the exercise is about memory traffic.
bool inspects_if_right(const Checkout& checkout, const WorkbookEntry& entry, const CheckCommand& command) {
    return !entry.exercise->traffic.empty() || inspects(checkout, entry, command);
}

// A requested inspection is shown in full: the learner's kernel on the terminal, and next to the
// lesson's kernel on the page.
void show_inspection(const InspectionScore& score, const Workbook& book, const WorkbookEntry& entry,
                     const Checkout& checkout, const CheckCommand& command, bool in_sentences) {
    Sources sources(checkout.root);
    const auto limits = limits_of_device();
    if (command.inspect && in_sentences)
        fmt::print("{}\n", inspection_text(score.mine, limits, sources, use_colour(stdout)));
    if (command.html.empty()) return;
    PageHead head = head_of(find_day(book.calendar(), entry.chapter->directory));
    head.title = fmt::format("{}: your {}", entry.id, entry.exercise->version);
    write_file(command.html, inspection_page(head, side_by_side(score.mine, score.lesson), limits, sources));
    fmt::print("  written: {}\n", command.html);
}

// The assessment of an answer beyond its result.
struct Assessment {
    std::vector<Criterion> criteria;
    std::string objection;  // why it does not solve the exercise although its result is right
};

std::string objection_of(const InspectionScore& score, const WorkbookEntry& entry) {
    std::string why;
    if (!score.of_findings.empty())
        why = "its tests pass, but " + score.of_findings;
    else if (!score.of_traffic.empty())
        why = "its tests pass, but the exercise is about how it uses memory:\n\n" + score.of_traffic;
    if (!why.empty()) why += fmt::format("\n  Line by line: ./course check {} --inspect\n", entry.id);
    return why;
}

Assessment assess(const Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                  const CheckCommand& command, bool in_sentences) {
    Assessment all;
    if (inspects_if_right(checkout, entry, command)) {
        if (!inspects(checkout, entry, command)) {
            fmt::print(stderr, "{}\n",
                       styled("course: this exercise is about how it uses memory: its kernels are compiled "
                              "once more, so that accesses can be counted",
                              kQuiet, stderr));
        }
        const VariantBuild inspecting = configure_inspected_build(checkout);
        set_cache_path(inspecting.checkout, "COURSE_MY", learner.book.my_directory());
        const InspectionScore score = score_by_inspection(
            entry, inspecting, find_day(learner.book.calendar(), entry.chapter->directory).small_size);
        show_inspection(score, learner.book, entry, checkout, command, in_sentences);
        all = {score.criteria, objection_of(score, entry)};
    }
    if (command.gpu && !entry.exercise->version.empty()) {
        if (const auto criterion = score_by_time(entry, build_of_preset(checkout, "gpu")))
            all.criteria.push_back(*criterion);
    }
    return all;
}

int print_score(const CheckResult& result, const std::vector<Criterion>& all) {
    int count = 1;
    fmt::print("  {} correct: {} test{}{}\n", styled("*", kGood, stdout), result.tests,
               result.tests == 1 ? " passes" : "s pass",
               result.schedules.empty() ? "" : ", " + result.schedules);
    for (const Criterion& criterion : all) {
        fmt::print("  {} {}\n", criterion.star ? styled("*", kGood, stdout) : styled("-", kNotice, stdout),
                   criterion.text);
        count += criterion.star;
    }
    return count;
}

// A missing score is reported but does not change the result.
Assessment assess_if_possible(const Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                              const CheckCommand& command, bool in_sentences) {
    try {
        return assess(learner, entry, checkout, command, in_sentences);
    } catch (const Interrupted&) {
        throw;
    } catch (const std::exception& error) {  // also of a result that is no JSON
        return {{{.star = false, .text = fmt::format("not compared with the lesson's: {}", error.what())}},
                ""};
    }
}

// The findings of the inspection of a wrong answer, a paragraph each. A comparison with the lesson
// would not help then.
std::string findings_in(const Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                        const CheckCommand& command) {
    std::string text;
    if (!inspects(checkout, entry, command)) return text;
    CheckCommand without_gpu = command;
    without_gpu.gpu = false;
    for (const Criterion& criterion :
         assess_if_possible(learner, entry, checkout, without_gpu, false).criteria) {
        if (criterion.is_finding) text += fmt::format("  {}\n", criterion.text);
    }
    return text;
}

void print_what_was_not_looked_at(const Checkout& checkout, const WorkbookEntry& entry,
                                  const CheckCommand& command) {
    if (entry.exercise->version.empty() || entry.exercise->needs_inspection ||
        inspects_if_right(checkout, entry, command))
        return;
    fmt::print("{}\n",
               styled(fmt::format("  ? as good as the lesson's? ./course check {} --inspect", entry.id),
                      kQuiet, stdout));
}

// --inspect shows what the day's program runs by itself.
void print_that_nothing_is_inspected(const WorkbookEntry& entry, const CheckCommand& command) {
    if (!command.inspect) return;
    if (entry.exercise->needs_inspection)
        fmt::print("  --inspect: the tests of {} count accesses, so they have inspected it.\n", entry.id);
    else if (entry.exercise->version.empty())
        fmt::print(
            "  --inspect: there is nothing to inspect, because {} is not a version of the day's program.\n",
            entry.id);
}

// Numbers do not show a race or a bad access.
void print_how_to_see_the_line(const Checkout& checkout, const WorkbookEntry& entry,
                               const CheckCommand& command) {
    if (entry.exercise->version.empty() || entry.exercise->needs_inspection ||
        inspects(checkout, entry, command))
        return;
    fmt::print("  A race, or an index out of range? ./course check {} --inspect names its line.\n", entry.id);
}

// A test of a later exercise may call a kernel of an earlier one. If that kernel is still blank,
// it writes nothing, and the learner would look for the error in the wrong function. A file to
// repair stands by itself.
void print_earlier_blanks(const Workbook& book, const WorkbookEntry& entry) {
    if (!book.is_begun(entry) || entry.exercise->by_hand()) return;
    std::string blanks;
    for (const WorkbookEntry& other : book.entries()) {
        if (other.id == entry.id) break;
        if (other.chapter == entry.chapter && !book.is_begun(other))
            blanks += (blanks.empty() ? "" : ", ") + other.id;
    }
    if (!blanks.empty()) fmt::print("  Still blank: {}. These tests may run that code, too.\n", blanks);
}

// An error of the compiler fails all exercises of the file.
void print_others_of_the_file(const Workbook& book, const WorkbookEntry& entry) {
    std::string others;
    for (const WorkbookEntry& other : book.entries()) {
        if (other.id != entry.id && book.mine(other) == book.mine(entry) && book.is_begun(other))
            others += (others.empty() ? "" : ", ") + other.id;
    }
    if (!others.empty()) fmt::print("  In the same file, so they fail with it: {}.\n", others);
}

// A page shows exactly one kernel, which the day's program must be able to run separately.
void require_one_with_version(const std::vector<WorkbookEntry>& entries) {
    const WorkbookEntry& first = entries.front();
    if (entries.size() > 1)
        throw UsageError(
            fmt::format("--html: a page shows one exercise; expected one, such as {}", first.id));
    if (first.exercise->version.empty() || first.exercise->needs_inspection) {
        throw UsageError(fmt::format(
            "--html: the day's program does not run {} by itself; expected an exercise that is a version",
            first.id));
    }
}

}  // namespace

namespace {

CauseJudgement judge_cause(const Learner& learner, const WorkbookEntry& entry) {
    if (entry.exercise->causes.empty()) return {};
    learner.book.copy_blank_files(*entry.chapter);
    return judge_cause(*entry.exercise, entry.chapter->sheet, learner.book.blank(entry),
                       read_text_file(learner.book.mine(entry)));
}

// Are there counters of the file that the exercise starts from? It is a version of the exercise's
// name.
bool has_counters(const Checkout& checkout, const WorkbookEntry& entry) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(checkout.measurements())) return false;
    const auto of_machine = [&](const fs::directory_entry& machine) {
        std::ifstream file(machine.path() / (entry.chapter->directory + ".counters.jsonl"));
        for (std::string line; std::getline(file, line);) {
            if (nlohmann::json::parse(line).value("version", "") == entry.exercise->name) return true;
        }
        return false;
    };
    return std::ranges::any_of(fs::directory_iterator(checkout.measurements()), of_machine);
}

// What counters show, such as spills, an inspection may not.
void print_evidence(const Learner& learner, const WorkbookEntry& entry, const Checkout& checkout) {
    const std::string mine = Workbook::shown(learner.book.mine(entry));
    if (has_counters(checkout, entry))
        fmt::print("  The evidence: ./course profile {} --only {}, ./course check {} --inspect\n",
                   entry.chapter->name, entry.exercise->name, entry.id);
    else if (!entry.exercise->version.empty() || entry.exercise->needs_inspection)
        fmt::print("  The evidence: ./course check {} --inspect\n", entry.id);
    else
        fmt::print("  The evidence: ./course run {}, ./course inspect {}\n", mine, mine);
}

// Before anything is built: a repair without a cause would be a guess. The inspection that was
// requested is the evidence, and is shown all the same.
Judgement refuse_verdict(Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                         const CheckCommand& command, const CauseJudgement& cause) {
    learner.logbook.update(entry.id, [](ExerciseRecord& record) { ++record.failures; });
    if (entry.exercise->needs_inspection && command.inspect) {
        const FileLock lock(checkout.root / "build" / "check.lock", "checking " + entry.id);
        fmt::print("{}\n",
                   run_exercise_tests(learner.book, entry, build_for(learner.book, checkout, entry, command),
                                      learner.book.calendar(), {.limit = command.limit})
                       .text);
    } else if (!entry.exercise->version.empty() && command.inspect) {
        const FileLock lock(checkout.root / "build" / "check.lock", "checking " + entry.id);
        CheckCommand without_the_lessons = command;  // a page would show the solution
        without_the_lessons.html.clear();
        without_the_lessons.gpu = false;
        assess_if_possible(learner, entry, checkout, without_the_lessons, true);
    }
    fmt::print("{} {}: {}", styled("not yet", kBad, stdout), entry.id, cause.text);
    print_evidence(learner, entry, checkout);
    fmt::print("  {}\n  A hint: ./course hint {}\n", describe(learner.book, entry), entry.id);
    return {.verdict = "not yet", .why = cause.text, .cause = cause.state};
}

}  // namespace

Judgement check_and_record(Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                           const CheckCommand& command) {
    const CauseJudgement cause = judge_cause(learner, entry);
    if (!cause.is_right()) return refuse_verdict(learner, entry, checkout, command, cause);
    if (!cause.state.empty()) {
        fmt::print("the verdict on {} is right: {}\n", entry.id, cause.text);
        learner.logbook.update(entry.id, [](ExerciseRecord& record) { record.has_cause = true; });
    }
    // Two checks at once would overwrite each other's programs: the learners' files may differ,
    // but the programs have the same names.
    const FileLock lock(checkout.root / "build" / "check.lock", "checking " + entry.id);
    const Checkout build = build_for(learner.book, checkout, entry, command);
    std::optional<Calendar> of_other_build;
    if (build.build != checkout.build) of_other_build = load_calendar(build.calendar());
    const CheckResult result = run_exercise_tests(learner.book, entry, build,
                                                  of_other_build ? *of_other_build : learner.book.calendar(),
                                                  {.limit = command.limit,
                                                   .failures_shown = command.failures_shown,
                                                   .broken = command.keep_going ? &learner.broken : nullptr});
    const bool is_right = result.verdict == Verdict::kPassed;
    const Assessment assessment =
        is_right ? assess_if_possible(learner, entry, checkout, command, true) : Assessment{};
    const bool passed = is_right && assessment.objection.empty();
    Judgement judgement{.verdict = passed                                  ? "solved"
                                   : result.verdict == Verdict::kCannotRun ? "cannot run"
                                                                           : "not yet",
                        .cause = cause.state};
    learner.logbook.update(entry.id, [&](ExerciseRecord& record) {
        record.solved = record.solved || passed;
        record.failures += !passed && result.verdict != Verdict::kCannotRun;
    });
    if (passed) {
        fmt::print("{} {}\n", styled("solved", kGood, stdout), entry.id);
        judgement.tests = result.tests;
        judgement.stars = print_score(result, assessment.criteria);
        for (const Criterion& criterion : assessment.criteria)
            judgement.counts.push_back(criterion.text);
        if (!result.note.empty()) fmt::print("{}\n", styled(result.note, kNotice, stdout));
        print_what_was_not_looked_at(checkout, entry, command);
        print_that_nothing_is_inspected(entry, command);
        learner.logbook.update(entry.id, [&](ExerciseRecord& record) {
            record.stars = std::max(record.stars, judgement.stars);
        });
    } else {
        judgement.why = is_right ? assessment.objection : result.text;
        fmt::print("{} {}: {}\n", styled("not yet", kBad, stdout), entry.id, judgement.why);
        // A kernel that does not end would not end under inspection, either.
        if (result.verdict == Verdict::kFailed && !result.timed_out) {
            const std::string findings = findings_in(learner, entry, checkout, command);
            fmt::print("{}", findings);
            judgement.why += findings;
        }
        const std::string mine = Workbook::shown(learner.book.mine(entry)) + ":";
        if (result.verdict == Verdict::kFailed && !result.timed_out &&
            result.text.find(mine) == std::string::npos)
            print_how_to_see_the_line(checkout, entry, command);
        print_that_nothing_is_inspected(entry, command);
        if (result.verdict == Verdict::kFailed) print_earlier_blanks(learner.book, entry);
        if (result.verdict == Verdict::kDoesNotCompile) print_others_of_the_file(learner.book, entry);
        fmt::print("  {}\n  A hint: ./course hint {}\n", describe(learner.book, entry), entry.id);
    }
    return judgement;
}

namespace {

std::vector<WorkbookEntry> asked_for(Learner& learner, const CheckCommand& command) {
    if (command.all) {
        if (command.name)
            throw UsageError(fmt::format("--all: every exercise; expected it without '{}'", *command.name));
        return learner.book.entries();
    }
    std::vector<WorkbookEntry> entries = {learner.choose(command.name)};
    if (command.name) {
        if (const auto meant = learner.book.find(*command.name); meant.size() > 1) entries = meant;
    }
    return entries;
}

using Judged = std::vector<std::pair<std::string, Judgement>>;  // exercises in order

void write_json(const std::string& file, const Judged& judged) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [id, judgement] : judged)
        list.push_back({{"id", id},
                        {"verdict", judgement.verdict},
                        {"tests", judgement.tests},
                        {"stars", judgement.stars},
                        {"cause", judgement.cause},
                        {"counts", judgement.counts},
                        {"why", judgement.why}});
    using Json = nlohmann::ordered_json;
    replace_file(file, list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// What cannot be judged (the file is a directory, the lesson does not build) does not end a check
// of many.
Judgement check_whatever_happens(Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                                 const CheckCommand& command) {
    try {
        return check_and_record(learner, entry, checkout, command);
    } catch (const Interrupted&) {
        throw;
    } catch (const std::exception& error) {  // also of a result that is no JSON
        fmt::print("{} {}: {}\n", styled("cannot run", kBad, stdout), entry.id, error.what());
        return {.verdict = "cannot run", .why = error.what()};
    }
}

// An exercise that is not begun is blank, unless its file does not compile: an answer may be prose.
Judgement judge_unbegun(Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                        const CheckCommand& command) {
    if (!learner.book.is_changed_elsewhere(entry)) return {.verdict = "blank"};
    const FileLock lock(checkout.root / "build" / "check.lock", "checking " + entry.id);
    const std::string errors = errors_of_exercise(
        learner.book, entry, build_for(learner.book, checkout, entry, command), &learner.broken);
    if (errors.empty()) return {.verdict = "blank"};
    const std::string why = "does not compile:\n\n" + errors;
    fmt::print("{} {}: {}  {}\n", styled("not yet", kBad, stdout), entry.id, why,
               describe(learner.book, entry));
    return {.verdict = "not yet", .why = why};
}

// "blank: day05/tiled, day05/prefetch"; how many, if there are many.
std::string text_of_blanks(const Judged& judged) {
    constexpr std::size_t kNamed = 12;
    std::vector<std::string> blanks;
    for (const auto& [id, judgement] : judged) {
        if (judgement.verdict == "blank") blanks.push_back(id);
    }
    if (blanks.empty()) return "";
    if (blanks.size() > kNamed) return fmt::format("blank: {} exercises\n", blanks.size());
    return fmt::format("blank: {}\n", fmt::join(blanks, ", "));
}

}  // namespace

int check_exercises(const Checkout& checkout, const CheckCommand& command) {
    require_writable("--html", command.html);
    require_writable("--json", command.json);
    Learner learner(checkout);
    const std::vector<WorkbookEntry> entries = asked_for(learner, command);
    if (!command.html.empty()) require_one_with_version(entries);
    const bool any_begun = std::ranges::any_of(
        entries, [&](const WorkbookEntry& entry) { return learner.book.is_begun(entry); });
    Judged judged;
    for (const WorkbookEntry& entry : entries) {
        // Of several, those that have not been begun would only fail. If none has been, the first
        // one is checked and says where to write.
        if (entries.size() > 1 && !learner.book.is_begun(entry) &&
            (any_begun || command.keep_going || entry.id != entries.front().id)) {
            judged.push_back({entry.id, judge_unbegun(learner, entry, checkout, command)});
            continue;
        }
        judged.push_back({entry.id, command.keep_going
                                        ? check_whatever_happens(learner, entry, checkout, command)
                                        : check_and_record(learner, entry, checkout, command)});
        if (!judged.back().second.solved() && !command.keep_going) break;
    }
    if (!command.json.empty()) write_json(command.json, judged);
    const bool all_solved =
        std::ranges::all_of(judged, [](const auto& each) { return each.second.solved(); });
    fmt::print("{}", text_of_blanks(judged));
    if (entries.size() > 1 && command.keep_going)
        fmt::print("{} of {} solved\n",
                   std::ranges::count_if(judged, [](const auto& each) { return each.second.solved(); }),
                   entries.size());
    if (std::ranges::any_of(
            judged, [](const auto& each) { return !each.second.solved() && each.second.verdict != "blank"; }))
        return kFailed;
    const bool beyond = entries.back().exercise->is_beyond();
    auto next = command.all ? std::nullopt : learner.first_unsolved_of(beyond, entries.back().chapter);
    if (!next && !command.all) next = learner.first_unsolved_of(beyond);
    if (!next) next = learner.first_unsolved();
    fmt::print("{}\n", next ? fmt::format("  Next: {} (./course next)", next->id)
                            : "  That was the last of all exercises.");
    return all_solved ? kSuccess : kFailed;
}

}  // namespace course::tool
