#include "exercise_sources.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "exercise_file.hpp"

namespace course::tool {
namespace {

std::string copy_of(const std::filesystem::path& file) {
    return fmt::format("#line 1 \"{}\"\n{}", file.string(), read_text_file(file));
}

ExerciseSheet sheet_of(const std::filesystem::path& day) {
    const std::filesystem::path exercises = day / "exercises.md";
    return parse_hints(read_text_file(exercises), (day.filename() / exercises.filename()).string());
}

}  // namespace

void make_exercise_sources(const std::filesystem::path& day, const std::filesystem::path& mine,
                           const std::filesystem::path& tree, const std::vector<std::string>& files) {
    const ExerciseSheet sheet = sheet_of(day);
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

void make_files_in_stages(const std::filesystem::path& day, const std::filesystem::path& mine) {
    const ExerciseSheet sheet = sheet_of(day);
    for (const std::string& file : files_of(sheet))
        replace_file(mine / file, file_in_stages(day, sheet, file));
}

}  // namespace course::tool
