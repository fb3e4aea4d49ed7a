#include "exercise_sources.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "exercise_file.hpp"

namespace course::tool {
namespace {

std::string copy_of(const std::filesystem::path& file) {
    return fmt::format("#line 1 \"{}\"\n{}", file.string(), read_text_file(file));
}

}  // namespace

void make_exercise_sources(const std::filesystem::path& day, const std::filesystem::path& mine,
                           const std::filesystem::path& tree, const std::vector<std::string>& files) {
    const std::filesystem::path exercises = day / "exercises.md";
    const ExerciseSheet sheet =
        parse_hints(read_text_file(exercises), (day.filename() / exercises.filename()).string());
    const std::vector<std::string> blank = files_of(sheet);
    for (const std::string& file : files) {
        std::string text;
        if (std::filesystem::exists(mine / file)) {
            text = copy_of(mine / file);
        } else if (std::ranges::find(blank, file) != blank.end()) {
            text = blank_file(day, sheet, file);
        } else {
            text = copy_of(day / file);
        }
        if (!std::filesystem::exists(tree / file) || read_text_file(tree / file) != text)
            replace_file(tree / file, text);
    }
}

}  // namespace course::tool
