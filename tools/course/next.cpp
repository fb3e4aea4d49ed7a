#include <fmt/format.h>

#include "commands.hpp"
#include "errors.hpp"
#include "learner.hpp"
#include "styles.hpp"

namespace course::tool {

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
