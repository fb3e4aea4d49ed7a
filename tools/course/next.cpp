#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cause.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "learner.hpp"
#include "styles.hpp"

namespace course::tool {

namespace {

void print_how_to_name_the_cause(const WorkbookEntry& entry) {
    fmt::print("\n");
    print_prose(
        fmt::format("First the verdict, then the repair: replace `{}` by the cause and the number of "
                    "the guilty line in the file as you got it.",
                    kOpenVerdict));
    fmt::print("  The file as you got it: {}/{}\n  The causes of this day: {}\n", entry.chapter->directory,
               entry.exercise->starts_from, fmt::join(causes_of(entry.chapter->sheet), "; "));
}

}  // namespace

void print_exercise(const Learner& learner, const WorkbookEntry& entry) {
    for (const auto& file : learner.book.copy_blank_files(*entry.chapter))
        fmt::print(stderr, "{}\n", styled("course: copied " + Workbook::shown(file), kQuiet, stderr));
    if (entry.exercise == &entry.chapter->sheet.exercises.front()) {
        fmt::print("{}\n\n", styled(entry.chapter->sheet.title, kHeading, stdout));
        print_prose(entry.chapter->sheet.introduction);
        fmt::print("  The lesson: {}/README.md\n", entry.chapter->directory);
        fmt::print("\n");
    }
    fmt::print("{}  {}\n\n", styled(entry.id, kHeading, stdout), describe(learner.book, entry));
    print_prose(entry.exercise->whole_task());
    if (!entry.exercise->causes.empty()) print_how_to_name_the_cause(entry);
}

int next_exercise(const Checkout& checkout, const NextCommand& command) {
    Learner learner(checkout);
    if (!command.name && !learner.first_unsolved()) {
        fmt::print("All {} exercises are solved. ./course progress shows them.\n",
                   learner.book.entries().size());
        return kSuccess;
    }
    if (command.beyond) {
        const auto next = learner.choose_of(/*beyond=*/true);
        if (next) {
            print_exercise(learner, *next);
        } else {
            fmt::print("All exercises beyond the core are solved. The core: ./course next\n");
            return kSuccess;
        }
    } else {
        const WorkbookEntry entry = learner.choose(command.name);
        if (!command.name && entry.exercise->is_beyond() && !learner.first_unsolved_of(/*beyond=*/false))
            fmt::print("{}\n\n",
                       styled("The core of the course is solved. What is left is beyond it.", kGood, stdout));
        print_exercise(learner, entry);
    }
    const std::string rest = command.name ? " " + *command.name : "";
    fmt::print("\n  Then: ./course check{}        stuck: ./course hint{}\n", rest, rest);
    return kSuccess;
}

}  // namespace course::tool
