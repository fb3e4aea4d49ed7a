#include "tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "counters.hpp"
#include "measured_tables.hpp"
#include "measurements.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOpen = "<!-- ";
constexpr std::string_view kClose = "-->";
constexpr std::string_view kEnd = "<!-- end of measurements -->";
constexpr std::string_view kFigure = "<!-- figure:";
constexpr std::string_view kEndFigure = "<!-- /figure -->";
constexpr std::array<std::string_view, 5> kBlocks = {
    "measurements:", "ladder:", "sweep:", "scaling:", "days:"};
constexpr std::string_view kNotMeasured = "Not measured yet.\n";
constexpr std::string_view kRecords = ".jsonl";
constexpr std::string_view kSweep = "_sweep";
constexpr std::string_view kPlot = "_plot";
constexpr std::string_view kCounters = ".counters.jsonl";

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r";
    const auto first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// The text after `key` in a comment that begins with it: "h200/day15_reduction, sum 268435456".
std::string_view inside(std::string_view comment, std::string_view key) {
    if (!comment.ends_with(kClose)) throw std::runtime_error("the comment must end in --> on the same line");
    comment.remove_prefix(kOpen.size() + key.size());
    comment.remove_suffix(kClose.size());
    return trimmed(comment);
}

// "a, b, c" -> "a" and "b, c". A problem's name may have commas.
std::pair<std::string, std::string> split_at_comma(std::string_view text) {
    const auto comma = text.find(',');
    if (comma == std::string_view::npos) return {std::string(trimmed(text)), ""};
    return {std::string(trimmed(text.substr(0, comma))), std::string(trimmed(text.substr(comma + 1)))};
}

// "sum 4096; versions: tree shuffle" -> "sum 4096" and the names of the versions.
std::pair<std::string, std::vector<std::string>> split_at_versions(const std::string& text) {
    constexpr std::string_view kVersions = "; versions:";
    const auto at = text.find(kVersions);
    if (at == std::string::npos) return {text, {}};
    std::istringstream names(text.substr(at + kVersions.size()));
    return {text.substr(0, at), {std::istream_iterator<std::string>(names), {}}};
}

// The counters of "h200/day15_reduction"; none if the file is missing.
std::vector<KernelCounters> counters_of(const std::string& name, const TableSources& sources) {
    const fs::path file = sources.measurements / (name + std::string(kCounters));
    return fs::exists(file) ? load_counters(file) : std::vector<KernelCounters>();
}

// The records of "h200/day15_reduction", with what limits each; empty if the file is missing.
std::optional<std::vector<MeasuredRecord>> records_of(const std::string& name, const TableSources& sources) {
    const auto slash = name.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == name.size() ||
        name.find(' ') != std::string::npos)
        throw std::runtime_error(fmt::format(
            "the records are '{}'; expected <machine>/<day>, and a comma before the problem", name));
    const fs::path file = sources.measurements / (name + std::string(kRecords));
    if (!fs::exists(file)) return std::nullopt;
    std::vector<MeasuredRecord> records = load_records(file);
    const std::vector<KernelCounters> counters = counters_of(name, sources);
    for (MeasuredRecord& record : records)
        record.limited_by = limit_of(counters, record.problem, record.version, record.median_ms * 1e3);
    return records;
}

// "day15_reduction" of "h200/day15_reduction", "h200/day15_reduction_sweep",
// "h200/day15_reduction_plot" and "h200/day15_reduction.counters".
std::string day_of(const std::string& name) {
    std::string day = name.substr(name.find('/') + 1);
    day = day.substr(0, day.find('.'));
    for (const std::string_view suffix : {kSweep, kPlot}) {
        if (day.ends_with(suffix)) day.resize(day.size() - suffix.size());
    }
    return day;
}

std::string page_link(const std::string& day, const fs::path& file, const TableSources& sources) {
    const std::string page = fmt::format("docs/measured/{}.md", day);
    return fmt::format("[{}]({})", page,
                       (sources.root / page).lexically_relative(file.parent_path()).generic_string());
}

// The number of exercises of a day.
int count_exercises(const fs::path& day) {
    std::ifstream stream(day / "exercises.md");
    int count = 0;
    for (std::string line; std::getline(stream, line);)
        count += line.starts_with("## ") ? 1 : 0;
    return count;
}

using LinkTo = std::function<std::string(const fs::path&)>;  // from the page, to a file of the course

// "[01](day01_vector_add/README.md) [ladder](gemm_ladder/README.md)"
std::string links(const std::vector<std::string>& names, const std::vector<Day>& days, const LinkTo& link) {
    std::vector<std::string> all;
    for (const std::string& name : names) {
        const auto day =
            std::ranges::find_if(days, [&](const Day& each) { return short_name(each) == name; });
        if (day == days.end())
            throw std::runtime_error(fmt::format("a day needs '{}', which is no day", name));
        all.push_back(fmt::format("[{}]({})", day->number ? fmt::format("{:02}", *day->number) : name,
                                  link(fs::path(day->directory) / "README.md")));
    }
    return fmt::format("{}", fmt::join(all, " "));
}

// "3.5", or "3.5 + 2": of the core, and of what is beyond it.
std::string hours_text(const Day& day) {
    return day.beyond_hours == 0 ? fmt::format("{}", day.hours)
                                 : fmt::format("{} + {}", day.hours, day.beyond_hours);
}

std::string best_beside_a_library(const Day& day, const std::string& machine, const TableSources& sources,
                                  const LinkTo& link) {
    const auto records = records_of(machine + "/" + day.directory, sources);
    if (!records) return "";
    const std::string best =
        best_result(*records, day.beside.empty() ? main_problem(*records) : day.beside, day.beside_version);
    if (best.empty()) return "";
    return fmt::format("[{}]({})", best, link(fs::path("docs/measured") / (day.directory + ".md")));
}

// A table for each part, in the order in which days are read.
std::string days_table(const std::string& machine, const fs::path& file, const TableSources& sources) {
    const LinkTo link = [&](const fs::path& to) {
        return (sources.root / to).lexically_relative(file.parent_path()).generic_string();
    };
    std::string table;
    const std::string* part = nullptr;
    int number = 0;
    for (const Day& day : sources.days) {
        if (part == nullptr || *part != day.part) {
            table += fmt::format(
                "{}### {}. {}\n\n"
                "| day | question | needs | hours | exercises | best beside a library |\n"
                "| --- | --- | --- | --: | --: | --- |\n",
                part == nullptr ? "" : "\n", ++number, day.part);
        }
        part = &day.part;
        const int exercises = count_exercises(sources.root / day.directory);
        table += fmt::format("| [{}]({}) | {} | {} | {} | {} | {} |\n",
                             day.number ? fmt::format("{:02} {}", *day.number, day.title) : day.title,
                             link(fs::path(day.directory) / "README.md"), day.question,
                             links(day.needs, sources.days, link), hours_text(day),
                             exercises == 0 ? "" : fmt::format("{}", exercises),
                             best_beside_a_library(day, machine, sources, link));
    }
    return table;
}

std::string block_text(std::string_view marker, const fs::path& file, const TableSources& sources) {
    const auto key = *std::ranges::find_if(kBlocks, [&](std::string_view candidate) {
        return marker.substr(kOpen.size()).starts_with(candidate);
    });
    const std::string_view content = inside(marker, key);
    if (key == "days:") return days_table(std::string(content), file, sources);
    const auto [name, problem] = split_at_comma(content);
    const auto records = records_of(name, sources);
    if (!records) return std::string(kNotMeasured);
    const std::string link = page_link(day_of(name), file, sources);
    if (key == "ladder:" && problem.empty())
        throw std::runtime_error("a ladder is on one problem; expected it after a comma");
    if (key == "ladder:") return ladder_table(*records, problem, link);
    if (key == "sweep:" && !problem.empty())
        throw std::runtime_error("a sweep is over all problems; expected none");
    if (key == "sweep:") return sweep_summary(*records, link);
    if (key == "scaling:" && !problem.empty())
        throw std::runtime_error("scaling is over all sizes; expected no problem");
    if (key == "scaling:") return scaling_table(*records, link);
    const auto [shown, versions] = split_at_versions(problem);
    return summary_table(*records, shown.empty() ? main_problem(*records) : shown, link, versions);
}

// "h200/gemm_ladder, sgemm 4096x4096x4096, 07_double_buffering, TFLOP/s"
std::string figure_text(std::string_view content, const TableSources& sources) {
    const auto [name, rest] = split_at_comma(content);
    const auto quantity = rest.rfind(',');
    const auto version =
        quantity == std::string::npos || quantity == 0 ? std::string::npos : rest.rfind(',', quantity - 1);
    if (version == std::string::npos)
        throw std::runtime_error(
            fmt::format("the figure is '{}'; expected <machine>/<day>, problem, version, quantity", content));
    const std::string_view view = rest;
    const auto records = records_of(name, sources);
    if (!records) return "(not measured yet)";
    return one_figure(*records, std::string(trimmed(view.substr(0, version))),
                      std::string(trimmed(view.substr(version + 1, quantity - version - 1))),
                      trimmed(view.substr(quantity + 1)));
}

std::string with_fresh_figures(std::string line, const TableSources& sources) {
    for (std::size_t begin = line.find(kFigure); begin != std::string::npos;) {
        const auto close = line.find(kClose, begin);
        const auto end = line.find(kEndFigure, begin);
        if (close == std::string::npos || end == std::string::npos || end < close)
            throw std::runtime_error(fmt::format("a figure must end in {} on the same line", kEndFigure));
        const std::size_t value = close + kClose.size();
        const std::string text =
            figure_text(inside(std::string_view(line).substr(begin, value - begin), "figure:"), sources);
        line.replace(value, end - value, text);
        begin = line.find(kFigure, value + text.size());
    }
    return line;
}

bool begins_block(std::string_view line) {
    return line.starts_with(kOpen) && std::ranges::any_of(kBlocks, [line](std::string_view key) {
               return line.substr(kOpen.size()).starts_with(key);
           });
}

template <class Make>
std::string at_line(int number, const Make& make) {
    try {
        return make();
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("line {}: {}", number, error.what()));
    }
}

// The machines with records, in alphabetical order.
std::vector<std::string> machines(const TableSources& sources) {
    std::vector<std::string> names;
    if (!fs::is_directory(sources.measurements)) return names;
    for (const auto& entry : fs::directory_iterator(sources.measurements)) {
        if (entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
}

std::string page_section(const std::string& machine, const std::string& day, const TableSources& sources) {
    std::string text;
    if (const auto records = records_of(machine + "/" + day, sources)) {
        text += provenance(*records) + "\n";
        const std::string comparison = comparison_table(*records);
        if (!comparison.empty())
            text += "\n## The fastest of ours beside the fastest peer\n\nBoth with a warm cache.\n\n" +
                    comparison;
        for (const std::string& problem : problems_of(*records)) {
            const auto about = records_about(*records, problem);
            text +=
                fmt::format("\n## {}\n\nType: {}.\n\n{}", problem, about.front().dtype, full_table(about));
        }
    }
    const std::string name = machine + "/" + day;
    if (const std::vector<KernelCounters> counters = counters_of(name, sources); !counters.empty()) {
        text += fmt::format(
            "{}## What limits each kernel\n\n{}The rule: [counters.py](../../scripts/counters.py).\n",
            text.empty() ? "" : "\n",
            counters_provenance(sources.measurements / (name + std::string(kCounters))));
        std::vector<std::string> problems;
        for (const KernelCounters& kernel : counters) {
            if (std::ranges::find(problems, kernel.problem) != problems.end()) continue;
            problems.push_back(kernel.problem);
            text += fmt::format("\n### {}, counters\n\n{}", kernel.problem,
                                counters_table(counters, kernel.problem));
        }
    }
    if (const auto swept = records_of(fmt::format("{}/{}{}", machine, day, kSweep), sources)) {
        text += fmt::format("{}## Sweep\n\n{}\n\n{}", text.empty() ? "" : "\n", provenance(*swept),
                            sweep_table(*swept));
    }
    if (const auto plotted = records_of(fmt::format("{}/{}{}", machine, day, kPlot), sources)) {
        text += fmt::format(
            "{}## Sizes of the plots\n\n{}\n\nThe fastest of ours beside the fastest peer, warm.\n\n{}",
            text.empty() ? "" : "\n", provenance(*plotted), comparison_table(*plotted));
    }
    return text;
}

bool has_plain_loops(const std::string& name, const TableSources& sources) {
    const auto records = records_of(name, sources);
    return records && std::ranges::any_of(*records, [](const MeasuredRecord& record) {
               return record.version.starts_with("plain_loop_");
           });
}

// A program of the ladder's beyond/ that is no step of it: "gemm_ladder_strassen".
bool is_beyond_the_ladder(const std::string& name) {
    return name.starts_with("gemm_ladder_");
}

std::string measured_page(const std::string& day, const std::vector<std::string>& names,
                          const TableSources& sources) {
    const auto known = std::ranges::find(sources.days, day, &Day::directory);
    const std::string title = known == sources.days.end() ? day : known->title;
    const auto has_records = [&](std::string_view suffix) {
        return std::ranges::any_of(names, [&](const std::string& machine) {
            return fs::exists(sources.measurements / machine / fmt::format("{}{}{}", day, suffix, kRecords));
        });
    };
    std::string more;
    if (has_records(kSweep)) more += fmt::format("./course bench {} --sweep --record\n", day);
    if (has_records(kPlot)) more += fmt::format("./course bench {} --plot --record\n", day);
    const bool beyond_the_ladder = is_beyond_the_ladder(day);
    const std::string how = beyond_the_ladder
                                ? fmt::format(
                                      "build/gpu/bin/{0} --bench --json "
                                      "docs/measurements/<machine>/{0}.jsonl\n",
                                      day)
                                : fmt::format(
                                      "./course bench {0} --record\n{1}"
                                      "scripts/measure_peers.py docs/measurements/<machine>/{0}.jsonl     "
                                      "# PyTorch and CuPy, where Python has them\n",
                                      day, more);
    std::string page = fmt::format(
        "<!-- Made by ./course tables from docs/measurements/*/{0}*.jsonl. Not to be edited. -->\n"
        "# Measured: {1}\n\n"
        "Every version of [{0}](../../{2}/README.md), its peers (the same work by a library) and the "
        "machine's limit, on every problem.\n"
        "On a machine with a GPU this makes the page anew ([how it is measured](../../common/README.md)):\n\n"
        "```\n{3}"
        "./course tables\n"
        "```\n\n"
        "- *median*: of all repeats; *±*: half the interquartile range. *warm*: the data is in the L2 cache "
        "as far as it fits; *flushed*: it is not.\n"
        "- *% of limit*: of the speed that the machine's measured limits, memory or multiply-adds, allow for "
        "this work; empty for tensor cores, whose limit is not measured.\n"
        "- *peer / this*: how many times as fast as the fastest peer on the same device, in the same state "
        "of the cache.\n",
        day, title, beyond_the_ladder ? "gemm_ladder/beyond" : day, how);
    if (std::ranges::any_of(
            names, [&](const std::string& machine) { return has_plain_loops(machine + "/" + day, sources); }))
        page +=
            "- *plain_loop*: the same work in a plain C++ loop on the host's CPU, on one thread and, by "
            "OpenMP, on all ([how](../../common/README.md#plain-loops-on-the-cpu)). No ratio counts it.\n";
    for (const std::string& machine : names) {
        const std::string section = page_section(machine, day, sources);
        if (!section.empty()) page += "\n" + section;
    }
    return page;
}

}  // namespace

std::string with_fresh_tables(std::string_view text, const fs::path& file, const TableSources& sources) {
    std::istringstream lines{std::string(text)};
    std::string fresh;
    int number = 0;
    int opened_at = 0;  // line where the current block begins; 0: outside of blocks
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
            fresh += in_fence ? line : at_line(number, [&] { return with_fresh_figures(line, sources); });
            if (!lines.eof()) fresh += '\n';
        }
        if (ends) opened_at = 0;
        if (begins) {
            opened_at = number;
            fresh += at_line(number, [&] { return block_text(content, file, sources); });
        }
    }
    if (opened_at != 0)
        throw std::runtime_error(fmt::format("line {}: the block is not closed by '{}'", opened_at, kEnd));
    return fresh;
}

std::vector<fs::path> find_markdown(const fs::path& root) {
    std::vector<fs::path> found;
    auto entry = fs::recursive_directory_iterator(root);
    for (; entry != fs::recursive_directory_iterator(); ++entry) {
        const std::string name = entry->path().filename().string();
        const bool is_ours = !name.starts_with(".") && entry->path() != root / "docs" / "measured" &&
                             (entry.depth() != 0 || (!name.starts_with("build") && name != "my"));
        if (entry->is_directory()) {
            if (!is_ours) entry.disable_recursion_pending();
        } else if (is_ours && name.ends_with(".md") && entry->is_regular_file()) {
            found.push_back(entry->path());
        }
    }
    std::ranges::sort(found);
    return found;
}

std::map<std::string, std::string> measured_pages(const TableSources& sources) {
    const std::vector<std::string> names = machines(sources);
    std::map<std::string, std::string> pages;
    for (const std::string& machine : names) {
        for (const auto& entry : fs::directory_iterator(sources.measurements / machine)) {
            if (entry.path().extension() != kRecords) continue;
            const std::string day = day_of("/" + entry.path().stem().string());
            std::string& page = pages[day + ".md"];
            if (page.empty()) page = measured_page(day, names, sources);
        }
    }
    return pages;
}

std::string wrong_measured_line(std::string_view source, const std::string& version,
                                const TableSources& sources) {
    static const std::regex kMeasured(R"(// Measured:[^\n]*?about (\d+)(\.\d+)? TFLOP/s)");
    std::match_results<std::string_view::const_iterator> match;
    if (!std::regex_search(source.begin(), source.end(), match, kMeasured)) return "";
    for (const std::string& machine : machines(sources)) {
        const auto records = records_of(machine + "/gemm_ladder", sources);
        if (!records) continue;
        const double typed = std::stod(match[1].str() + match[2].str());
        const double last_digit =
            match[2].matched ? std::pow(10.0, 1.0 - static_cast<double>(match[2].length())) : 1;
        constexpr double kRounding = 1e-6;
        const std::string measured = one_figure(*records, "sgemm 4096x4096x4096", version, "TFLOP/s");
        if (std::abs(typed - std::stod(measured)) > last_digit + kRounding)
            return fmt::format("says 'about {} TFLOP/s'; docs/measurements/{} has {}",
                               match[1].str() + match[2].str(), machine, measured);
    }
    return "";
}

}  // namespace course::tool
