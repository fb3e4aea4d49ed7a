#include "exercise_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "exercise_file.hpp"

namespace course::tool {
namespace {

constexpr const char* kSetAside = "COURSE_SET_ASIDE";  // paths, each in a line

bool is_set_aside(const std::filesystem::path& file) {
    const char* const files = std::getenv(kSetAside);
    return files != nullptr &&
           ("\n" + std::string(files)).find("\n" + file.string() + "\n") != std::string::npos;
}

std::string copy_of(const std::filesystem::path& file) {
    return fmt::format("#line 1 \"{}\"\n{}", file.string(), read_text_file(file));
}

ExerciseSheet sheet_of(const std::filesystem::path& day) {
    const std::filesystem::path exercises = day / "exercises.md";
    return parse_exercise_sheet(read_text_file(exercises), (day.filename() / exercises.filename()).string());
}

// The file name in quotes after #include, without its directory; empty for other lines.
std::string_view included_by(std::string_view line) {
    const auto after = [&line](std::string_view word) {
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.starts_with(word)) return false;
        line.remove_prefix(word.size());
        return true;
    };
    if (!after("#") || !after("include") || !after("\"")) return {};
    const std::string_view path = line.substr(0, line.find('"'));
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

struct Copy {
    std::string file;
    std::string text;
    bool is_affected;  // it differs from the lesson's file, or includes an affected file

    bool includes(std::string_view name) const {
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            if (included_by(std::string_view(text).substr(begin, end - begin)) == name) return true;
            begin = end + 1;
        }
        return false;
    }
};

// Marks all files that include an affected file, directly or indirectly.
void find_affected(std::vector<Copy>& copies) {
    std::vector<std::string> names;
    for (const Copy& copy : copies) {
        if (copy.is_affected) names.push_back(std::filesystem::path(copy.file).filename());
    }
    while (!names.empty()) {
        const std::string name = names.back();
        names.pop_back();
        for (Copy& copy : copies) {
            if (copy.is_affected || !copy.includes(name)) continue;
            copy.is_affected = true;
            names.push_back(std::filesystem::path(copy.file).filename());
        }
    }
}

}  // namespace

void set_aside(const std::set<std::filesystem::path>& files) {
    std::string all;
    for (const std::filesystem::path& file : files)
        all += file.string() + "\n";
    setenv(kSetAside, all.c_str(), 1);
}

void make_exercise_sources(const std::filesystem::path& day, const std::filesystem::path& mine,
                           const std::filesystem::path& tree, const std::vector<std::string>& files) {
    const ExerciseSheet sheet = sheet_of(day);
    const std::vector<std::string> blank = files_of(sheet);
    std::vector<Copy> copies;
    for (const std::string& file : files) {
        if (std::filesystem::exists(mine / file) && !is_set_aside(mine / file)) {
            copies.push_back({file, copy_of(mine / file), true});
        } else if (std::ranges::find(blank, file) != blank.end()) {
            copies.push_back({file, blank_file(day, sheet, file), true});
        } else {
            copies.push_back({file, copy_of(day / file), false});
        }
    }
    find_affected(copies);
    for (const auto& [file, whole, is_affected] : copies) {
        const bool is_linked = file.ends_with(".cu") && !is_affected;
        const std::string text = is_linked ? "// As in the lesson, whose object is linked.\n" : whole;
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
