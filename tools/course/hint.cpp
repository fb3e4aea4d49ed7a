#include <fmt/format.h>

#include <algorithm>

#include "commands.hpp"
#include "errors.hpp"
#include "learner.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

// ./course solution refuses before the first try.
std::string after_the_last(const std::string& id, const ExerciseRecord& record) {
    if (record.is_tried())
        return fmt::format("That was the last. How the lesson does it: ./course solution {}", id);
    return fmt::format(
        "That was the last. Now try: ./course check {}\n"
        "  After a check, ./course solution {} shows how the lesson does it.",
        id, id);
}

}  // namespace

int show_hint(const Checkout& checkout, const std::optional<std::string>& name) {
    Learner learner(checkout);
    const WorkbookEntry entry = learner.choose(name);
    const int all = static_cast<int>(entry.exercise->hints.size());
    const int shown = learner.logbook.of(entry.id).hints;
    const int number = std::min(shown + 1, all);
    fmt::print("{}\n\n", styled(fmt::format("{}, hint {} of {}{}", entry.id, number, all,
                                            number == shown ? ", shown before" : ""),
                                kHeading, stdout));
    print_prose(entry.exercise->hints.at(static_cast<std::size_t>(number - 1)));
    fmt::print("\n  {}\n", number < all ? fmt::format("More: ./course hint {}", entry.id)
                                        : after_the_last(entry.id, learner.logbook.of(entry.id)));
    learner.logbook.update(entry.id, [number](ExerciseRecord& record) { record.hints = number; });
    return kSuccess;
}

}  // namespace course::tool
