#include <fmt/format.h>

#include <set>

#include "commands.hpp"
#include "errors.hpp"
#include "functions.hpp"
#include "learner.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

void replace_keeping_old(const std::filesystem::path& file, const std::string& text) {
    const std::string before = read_text_file(file);
    if (text == before) {
        fmt::print("{}: nothing to do\n", Workbook::shown(file));
        return;
    }
    const std::filesystem::path old = free_name(file, ".bak");
    replace_file(old, before);
    replace_file(file, text);
    fmt::print("{}: done; what was there is in {}\n", Workbook::shown(file), old.filename().string());
}

// Replaces the bodies of the exercise's functions in the learner's file by those in `after`. The
// old file is kept.
void replace_bodies(const Learner& learner, const WorkbookEntry& entry, std::string after) {
    const std::filesystem::path file = learner.book.mine(entry);
    learner.book.copy_blank_files(*entry.chapter);
    const std::string before = read_text_file(file);
    if (!entry.exercise->by_hand()) {
        try {
            after = with_bodies_from(before, after, entry.exercise->kernels);
        } catch (const ExerciseError& error) {
            throw std::runtime_error(fmt::format("{}: {}. ./course reset {} makes the file anew",
                                                 Workbook::shown(file), error.what(), entry.chapter->name));
        }
    }
    replace_keeping_old(file, after);
}

}  // namespace

int show_solution(const Checkout& checkout, const SolutionCommand& command) {
    Learner learner(checkout);
    const WorkbookEntry entry = learner.choose(command.name);
    if (!learner.logbook.of(entry.id).is_tried() && !command.force) {
        throw UsageError(fmt::format(
            "{} has not been tried yet: ./course check {}, then ./course hint; --force shows it anyway",
            entry.id, entry.id));
    }
    const std::filesystem::path file = learner.book.lesson(entry);
    if (command.paste) {
        replace_bodies(learner, entry, read_text_file(file));
        return kSuccess;
    }
    const std::string text = read_text_file(file);
    if (entry.exercise->by_hand()) fmt::print("{}\n{}", styled(Workbook::shown(file), kQuiet, stdout), text);
    for (const std::string& kernel : entry.exercise->kernels) {
        for (const FunctionDefinition& function : find_functions(text, kernel)) {
            fmt::print("{}\n{}\n\n",
                       styled(fmt::format("{}:{}", Workbook::shown(file), line_at(text, function.head)),
                              kQuiet, stdout),
                       text.substr(function.begin, function.body_end - function.begin));
        }
    }
    return kSuccess;
}

int reset_exercise(const Checkout& checkout, const std::string& name) {
    Learner learner(checkout);
    const std::vector<WorkbookEntry> entries = learner.book.find(name);
    learner.book.copy_blank_files(*entries.front().chapter);
    std::set<std::filesystem::path> done;
    for (const WorkbookEntry& entry : entries) {
        if (!done.insert(learner.book.mine(entry)).second) continue;
        if (entries.size() > 1) {
            replace_keeping_old(learner.book.mine(entry), learner.book.blank(entry));
        } else {
            replace_bodies(learner, entry, learner.book.blank(entry));
        }
    }
    for (const WorkbookEntry& entry : entries) {
        if (learner.logbook.of(entry.id) == ExerciseRecord{}) continue;
        learner.logbook.update(entry.id, [](ExerciseRecord& record) { record = {}; });
        fmt::print("{}: begins anew; its checks, hints and stars are forgotten\n", entry.id);
    }
    return kSuccess;
}

}  // namespace course::tool
