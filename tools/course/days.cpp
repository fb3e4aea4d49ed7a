#include "days.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/check/nearest.hpp"
#include "errors.hpp"

namespace course::tool {
namespace {

// 1, 01 and day01 mean 1.
std::optional<int> day_number(std::string_view name) {
    if (name.starts_with("day")) name.remove_prefix(3);
    int number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{} || end != name.data() + name.size() || number < 0) return std::nullopt;
    return number;
}

std::string no_such_day(const std::vector<Day>& days, std::string_view name, bool is_number) {
    std::vector<std::string> names, short_names;
    for (const Day& day : days) {
        names.insert(names.end(), {day.directory, day.topic, short_name(day)});
        short_names.push_back(short_name(day));
    }
    // The number of another day is not a useful suggestion.
    const std::string best = is_number ? "" : nearest(name, names);
    if (best.empty())
        return fmt::format("there is no day '{}'. All of them: {} (./course list)", name,
                           fmt::join(short_names, ", "));
    const auto near = std::ranges::find_if(days, [&best](const Day& day) {
        return best == day.directory || best == day.topic || best == short_name(day);
    });
    return fmt::format("there is no day '{}'; the nearest is {}. All of them: ./course list", name,
                       near->directory);
}

}  // namespace

Calendar load_calendar(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
    try {
        const auto json = nlohmann::json::parse(stream);
        Calendar calendar{json.at("backend"),
                          json.at("build_type"),
                          {},
                          json.value("late_stores", false),
                          json.value("variants", std::vector<std::string>())};
        for (const auto& day : json.at("days")) {
            const auto& number = day.at("number");
            calendar.days.push_back(
                {.directory = day.at("directory"),
                 .number = number.is_null() ? std::nullopt : std::optional(number.get<int>()),
                 .topic = day.at("topic"),
                 .title = day.at("title"),
                 .question = day.value("question", ""),
                 .part = day.value("part", ""),
                 .needs = day.value("needs", std::vector<std::string>()),
                 .beyond_needs = day.value("beyond_needs", std::vector<std::string>()),
                 .chapters_4e = day.value("chapters_4e", ""),
                 .chapters_5e = day.value("chapters_5e", ""),
                 .small_size = day.value("small_size", ""),
                 .hours = day.value("hours", 0.0),
                 .beyond_hours = day.value("beyond_hours", 0.0),
                 .beside = day.value("beside", ""),
                 .beside_version = day.value("beside_version", ""),
                 .no_counters = day.value("no_counters", ""),
                 .programs = day.value("programs", std::vector<std::vector<std::string>>())});
        }
        return calendar;
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(fmt::format("{}: {}", file.string(), error.what()));
    }
}

const Day& find_day(const Calendar& calendar, std::string_view name) {
    if (calendar.days.empty()) throw std::runtime_error("the build knows of no days");
    std::string_view wanted = name;
    while (wanted.ends_with('/'))
        wanted.remove_suffix(1);  // a shell completes the name of a directory with a slash

    const auto number = day_number(wanted);
    for (const Day& day : calendar.days) {
        if (wanted == day.directory || wanted == day.topic || (number && day.number == number)) return day;
    }
    throw UsageError(no_such_day(calendar.days, name, number.has_value()));
}

std::string short_name(const Day& day) {
    return day.number ? fmt::format("day{:02}", *day.number) : day.directory;
}

const Day& find_day_with_versions(const Calendar& calendar, std::string_view name, std::string_view command) {
    const Day& day = find_day(calendar, name);
    if (!day.programs.empty()) {
        throw UsageError(
            fmt::format("{} has whole programs and no versions: there is nothing to {}. Run it: "
                        "./course run {}",
                        day.directory, command, name));
    }
    return day;
}

void require_something_to_count(const Day& day) {
    if (!day.no_counters.empty())
        throw UsageError(fmt::format("{}: there is nothing to profile. {}", day.directory, day.no_counters));
}

}  // namespace course::tool
