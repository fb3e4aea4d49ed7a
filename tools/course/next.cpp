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

int next_exercise(const Checkout& checkout, const std::optional<std::string>& name) {
    Learner learner(checkout);
    if (!name && !learner.first_unsolved()) {
        fmt::print("All {} exercises are solved. ./course progress shows them.\n",
                   learner.book.entries().size());
        return kSuccess;
    }
    print_exercise(learner, learner.choose(name));
    const std::string rest = name ? " " + *name : "";
    fmt::print("\n  Then: ./course check{}        stuck: ./course hint{}\n", rest, rest);
    return kSuccess;
}

}  // namespace course::tool
