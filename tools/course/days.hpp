// The days of the course, as the build describes them in <build>/days.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct Day {
    std::string directory;  // "day01_vector_add"; also the target, and the program of a day with versions
    int number = -1;        // -1: not a day of the calendar (gemm_ladder)
    std::string topic;      // "vector_add"
    std::string title;
    std::string chapter;  // of the book, e.g. "2, 3"
    bool ready = false;   // false: planned, nothing to run yet
    // Of a day of whole programs: the name of each, and its arguments. A day with versions has one program, and none here.
    std::vector<std::vector<std::string>> programs{};
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

// As find_day, and throws UsageError when that day is only planned.
const Day& find_ready_day(const Calendar& calendar, std::string_view name);

// As find_ready_day, and throws UsageError when that day has whole programs instead of versions. `command` is for the message.
const Day& find_day_with_versions(const Calendar& calendar, std::string_view name, std::string_view command);

}  // namespace course::tool
