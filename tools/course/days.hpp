// The days of the course, as the build describes them in <build>/days.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct Day {
    std::string directory;      // "day01_vector_add"; also the target, and the program of a day with versions
    std::optional<int> number;  // nothing: not a day of the calendar (gemm_ladder)
    std::string topic;          // "vector_add"
    std::string title{};
    std::string question{};     // that the day answers
    std::string chapters_4e{};  // of the book's 4th edition, e.g. "2, 3"
    std::string chapters_5e{};
    std::string small_size{};  // on which its program soon ends; empty: the program's own choice
    double hours = 0;          // that a learner takes
    std::string
        beside{};  // the problem whose result stands on the front page; empty: the main one of its records
    std::string beside_version{};  // that of this version; empty: of the fastest
    // Of a day of whole programs: the name of each, and its arguments. A day with versions has one
    // program, and none here.
    std::vector<std::vector<std::string>> programs{};

    // What builds its program, or its programs; the target `directory` builds its tests, too.
    std::string program_target() const { return directory + "_program"; }
};

struct Calendar {
    std::string backend;     // "cpu" or "gpu"
    std::string build_type;  // "Release"...
    std::vector<Day> days;
    bool late_stores = false;  // are exercises built so that they can run with CUDA_ON_CPU_STORES=late?
};

// Throws std::runtime_error when the file cannot be read or is not what it should be.
Calendar load_calendar(const std::filesystem::path& file);

// `name` is a directory, a topic or a number: day01_vector_add, vector_add, day01, 01 or 1.
// Throws UsageError, which names the nearest or all of them, when there is no such day.
const Day& find_day(const Calendar& calendar, std::string_view name);

// "day15", or the directory of what has no number.
std::string short_name(const Day& day);

// As find_day, and throws UsageError when that day has whole programs instead of versions.
// `command` is for the message.
const Day& find_day_with_versions(const Calendar& calendar, std::string_view name, std::string_view command);

}  // namespace course::tool
