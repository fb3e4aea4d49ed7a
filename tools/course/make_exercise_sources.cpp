// make_exercise_sources DAY MY TREE FILE... runs before an exercise is compiled.
// make_exercise_sources --in-stages DAY MY is for scripts/play_learner.py. See
// exercise_sources.hpp.
#include <fmt/format.h>

#include "exercise_sources.hpp"

int main(int count, char** values) {
    const std::vector<std::string> arguments(values + 1, values + count);
    if (arguments.size() < 3) {
        fmt::print(stderr,
                   "usage: make_exercise_sources DAY MY TREE FILE...\n"
                   "       make_exercise_sources --in-stages DAY MY\n");
        return 2;
    }
    try {
        if (arguments[0] == "--in-stages") {
            course::tool::make_files_in_stages(arguments[1], arguments[2]);
        } else {
            course::tool::make_exercise_sources(arguments[0], arguments[1], arguments[2],
                                                {arguments.begin() + 3, arguments.end()});
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
