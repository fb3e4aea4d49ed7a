#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "measurements.hpp"

namespace course::tool {
namespace {

constexpr std::string_view kBegin = "<!-- measurements:";
constexpr std::string_view kBeginComparison = "<!-- comparison:";
constexpr std::string_view kBeginLadder = "<!-- ladder:";
constexpr std::string_view kBeginSweep = "<!-- sweep:";
constexpr std::string_view kEnd = "<!-- end measurements -->";

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r";
    const auto first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

struct Source {
    std::string file;  // "h200/day01_vector_add"
    std::optional<std::string> problem;
};

// What stands between `begin` and the end of the comment.
std::string_view inside(std::string_view marker, std::string_view begin) {
    constexpr std::string_view kClose = "-->";
    if (!marker.ends_with(kClose)) throw std::runtime_error("the comment must end in --> on the same line");
    marker.remove_prefix(begin.size());
    marker.remove_suffix(kClose.size());
    return trimmed(marker);
}

Source parse_source(std::string_view marker, std::string_view begin) {
    constexpr std::string_view kProblem = "problem=";

    const std::string_view content = inside(marker, begin);
    const auto space = content.find(' ');
    Source source{std::string(content.substr(0, space)), std::nullopt};
    if (source.file.empty()) {
        constexpr std::string_view kOpen = "<!-- ";
        throw std::runtime_error(
            fmt::format("expected <machine>/<directory> after '{}'", begin.substr(kOpen.size())));
    }
    if (space == std::string_view::npos) return source;
    const std::string_view option = trimmed(content.substr(space));
    if (!option.starts_with(kProblem)) {
        throw std::runtime_error(fmt::format("unknown option '{}'; expected problem=...", option));
    }
    source.problem = option.substr(kProblem.size());
    return source;
}

// The records of "h200/day20_softmax", or of all files in "h200" but those of sweeps and of the inspection's calibration, in
// alphabetical order.
std::vector<MeasuredRecord> records_of(std::string_view source, const std::filesystem::path& measurements) {
    if (source.empty())
        throw std::runtime_error("expected <machine> or <machine>/<directory> after 'comparison:'");
    const std::filesystem::path path = measurements / source;
    if (!std::filesystem::is_directory(path)) return load_records(path.string() + ".json");
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
        const std::string name = entry.path().stem().string();
        const bool compares = !name.ends_with("_sweep") && !name.starts_with("inspection_");
        if (entry.path().extension() == ".json" && compares) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    std::vector<MeasuredRecord> all;
    for (const auto& file : files)
        std::ranges::move(load_records(file), std::back_inserter(all));
    return all;
}

std::string table_of(std::string_view marker, const std::filesystem::path& measurements) {
    if (marker.starts_with(kBeginComparison))
        return comparison_table(records_of(inside(marker, kBeginComparison), measurements));
    const std::string_view begin = marker.starts_with(kBeginLadder)  ? kBeginLadder
                                   : marker.starts_with(kBeginSweep) ? kBeginSweep
                                                                     : kBegin;
    const Source source = parse_source(marker, begin);
    if (begin == kBeginLadder && !source.problem)
        throw std::runtime_error("a ladder is on one problem; expected problem=...");
    if (begin == kBeginSweep && source.problem)
        throw std::runtime_error("a sweep is over all problems; expected no problem=");
    const std::vector<MeasuredRecord> records = load_records(measurements / (source.file + ".json"));
    if (begin == kBeginLadder) return ladder_table(records, *source.problem);
    if (begin == kBeginSweep) return sweep_table(records);
    return markdown_table(records, source.problem);
}

bool begins_block(std::string_view line) {
    return line.starts_with(kBegin) || line.starts_with(kBeginComparison) || line.starts_with(kBeginLadder) ||
           line.starts_with(kBeginSweep);
}

}  // namespace

std::string with_fresh_tables(std::string_view text, const std::filesystem::path& measurements) {
    std::istringstream lines{std::string(text)};
    std::string fresh;
    int number = 0;
    int opened_at = 0;  // line of the block that we are in, 0: in none
    bool in_fence = false;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        const std::string_view content = trimmed(line);
        if (content.starts_with("```")) in_fence = !in_fence;
        const bool begins = !in_fence && begins_block(content);
        const bool ends = !in_fence && content == kEnd;
        if (begins && opened_at != 0) {
            throw std::runtime_error(
                fmt::format("line {}: the block opened in line {} is not closed", number, opened_at));
        }
        if (ends && opened_at == 0) {
            throw std::runtime_error(fmt::format("line {}: '{}' without a beginning", number, kEnd));
        }
        if (opened_at == 0 || ends) {
            fresh += line;
            if (!lines.eof()) fresh += '\n';
        }
        if (ends) opened_at = 0;
        if (begins) {
            opened_at = number;
            try {
                fresh += table_of(content, measurements);
            } catch (const std::runtime_error& error) {
                throw std::runtime_error(fmt::format("line {}: {}", number, error.what()));
            }
        }
    }
    if (opened_at != 0) throw std::runtime_error(fmt::format("line {}: the block is not closed", opened_at));
    return fresh;
}

std::vector<std::filesystem::path> find_readmes(const std::filesystem::path& root) {
    std::vector<std::filesystem::path> readmes;
    auto entry = std::filesystem::recursive_directory_iterator(root);
    for (; entry != std::filesystem::recursive_directory_iterator(); ++entry) {
        const std::string name = entry->path().filename().string();
        if (entry->is_directory() &&
            (name.starts_with(".") || (entry.depth() == 0 && name.starts_with("build")))) {
            entry.disable_recursion_pending();
        } else if (name == "README.md" && entry->is_regular_file()) {
            readmes.push_back(entry->path());
        }
    }
    std::ranges::sort(readmes);
    return readmes;
}

}  // namespace course::tool
