// make_exercise_sources DAY MY TREE FILE...
//
// Puts together what an exercise's build compiles: in the directory TREE each FILE of the day's directory DAY, as the learner's in the
// directory MY, if it is there; else blank, if exercises.md names it; else as it is. #include "..." looks in the including file's
// directory first: here it finds the learner's header, whoever includes it. #line says where a text is from, so that messages,
// debuggers and inspections name that file and not the copy. Writes only what has changed: nothing else is compiled again.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "exercise_file.hpp"

namespace {

namespace fs = std::filesystem;
namespace tool = course::tool;

std::string copy_of(const fs::path& file) {
    return fmt::format("#line 1 \"{}\"\n{}", file.string(), tool::read_text_file(file));
}

void make(const fs::path& day, const fs::path& mine, const fs::path& tree,
          const std::vector<std::string>& files) {
    const fs::path exercises = day / "exercises.md";
    const tool::ExerciseSheet sheet =
        tool::parse_hints(tool::read_text_file(exercises), (day.filename() / exercises.filename()).string());
    const std::vector<std::string> blank = tool::files_of(sheet);
    for (const std::string& file : files) {
        std::string text;
        if (fs::exists(mine / file)) {
            text = copy_of(mine / file);
        } else if (std::ranges::find(blank, file) != blank.end()) {
            text = tool::blank_file(day, sheet, file);
        } else {
            text = copy_of(day / file);
        }
        if (!fs::exists(tree / file) || tool::read_text_file(tree / file) != text)
            tool::replace_file(tree / file, text);
    }
}

}  // namespace

int main(int count, char** values) {
    const std::vector<std::string> arguments(values + 1, values + count);
    if (arguments.size() < 3) {
        fmt::print(stderr, "usage: make_exercise_sources DAY MY TREE FILE...\n");
        return 2;
    }
    try {
        make(arguments[0], arguments[1], arguments[2], {arguments.begin() + 3, arguments.end()});
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
