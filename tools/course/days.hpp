// The days of the course, as the build describes them in <build>/days.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct Day {
    std::string
        directory;  // "day01_vector_add"; also the build target, and the program of a day with versions
    std::optional<int> number;  // empty: not a day of the calendar (gemm_ladder)
    std::string topic;          // "vector_add"
    std::string title{};
    std::string question{};                   // answered by the day
    std::string part{};                       // the title of its part
    std::vector<std::string> needs{};         // the days to read before it: "day05", "gemm_ladder"
    std::vector<std::string> beyond_needs{};  // those that only its further versions need
    std::string chapters_4e{};                // of the book's 4th edition, e.g. "2, 3"
    std::string chapters_5e{};
    std::string small_size{};  // on which its program ends soon; empty: the program's default
    double hours = 0;          // time that a learner needs for the core
    double beyond_hours = 0;   // and for the rest
    // The problem whose result is shown on the front page; empty: the main problem of its records.
    std::string beside{};
    std::string beside_version{};  // the result of this version; empty: of the fastest one
    // Why a profiler has nothing to count, and what to look at instead; empty: it has.
    std::string no_counters{};
    // For a day of whole programs: the name of each program, and its arguments. Empty for a day
    // with versions, which has only one program.
    std::vector<std::vector<std::string>> programs{};

    // The target that builds its program or programs. The target `directory` builds its tests,
    // too.
    std::string program_target() const { return directory + "_program"; }
};

struct Calendar {
    std::string backend;                  // "cpu" or "gpu"
    std::string build_type;               // "Release"...
    std::vector<Day> days;                // in the order in which they are read
    bool late_stores = false;             // can exercises in this build run with CUDA_ON_CPU_STORES=late?
    std::vector<std::string> variants{};  // of the days' programs: "debugged", "inspected"
};

// Throws std::runtime_error if the file cannot be read or is malformed.
Calendar load_calendar(const std::filesystem::path& file);

// `name` is a directory, a topic or a number: day01_vector_add, vector_add, day01, 01 or 1. Throws
// UsageError, with the nearest name or all names, if there is no such day.
const Day& find_day(const Calendar& calendar, std::string_view name);

// "day15", or the directory if the day has no number.
std::string short_name(const Day& day);

// The same as find_day, but also throws UsageError if that day has whole programs instead of
// versions. `command` is for the message.
const Day& find_day_with_versions(const Calendar& calendar, std::string_view name, std::string_view command);

// Throws UsageError, which says what to look at instead, if a profiler has nothing to count in the
// day.
void require_something_to_count(const Day& day);

}  // namespace course::tool
