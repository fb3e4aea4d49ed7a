// make_exercise_sources DAY MY TREE FILE...: see exercise_sources.hpp. The build runs it before it
// compiles an exercise.
#include <fmt/format.h>

#include "exercise_sources.hpp"

int main(int count, char** values) {
    const std::vector<std::string> arguments(values + 1, values + count);
    if (arguments.size() < 3) {
        fmt::print(stderr, "usage: make_exercise_sources DAY MY TREE FILE...\n");
        return 2;
    }
    try {
        course::tool::make_exercise_sources(arguments[0], arguments[1], arguments[2],
                                            {arguments.begin() + 3, arguments.end()});
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
