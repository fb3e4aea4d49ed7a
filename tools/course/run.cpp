#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "build.hpp"
#include "commands.hpp"
#include "common/check/nearest.hpp"
#include "day_command.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "learner_program.hpp"
#include "own_program.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

using Programs = std::vector<std::vector<std::string>>;  // of a day of whole programs: names and arguments

// The commands that run `programs` of a day of whole programs: all of them, or the named one.
std::vector<Command> program_commands(const Checkout& checkout, const Day& day, const Programs& programs,
                                      const std::string& suffix, const RunOptions& options) {
    require_no_versions(day, options);
    if (options.program.empty() && !options.extra.empty() && programs.size() > 1)
        throw UsageError(fmt::format("'{}': which program of {} is it for? Add --program NAME",
                                     options.extra.front(), day.directory));
    std::vector<Command> commands;
    std::vector<std::string> names;
    for (const std::vector<std::string>& program : programs) {
        names.push_back(program.front());
        if (!options.program.empty() && program.front() != options.program) continue;
        commands.push_back(whole_program_command(checkout, day, program, suffix, options.extra));
    }
    if (commands.empty()) throw UsageError(unknown_name("program", options.program, names));
    return commands;
}

void require_no_program(const Day& day, const RunOptions& options) {
    if (options.whole_program)
        throw UsageError(
            fmt::format("--program: {} has one program, with versions: --only chooses one", day.directory));
}

int run_shown(const std::vector<Command>& commands) {
    for (const Command& command : commands) {
        fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
        if (const int exit_code = run(command); exit_code != kSuccess) return exit_code;
    }
    return kSuccess;
}

// program.cu of a day with versions.
int run_program_of_lesson(const Checkout& checkout, const Day& day, const RunOptions& options) {
    const bool has_program = std::filesystem::exists(checkout.root / day.directory / "program.cu");
    if (!has_program) require_no_program(day, options);
    if (!options.size.empty() || !options.version.empty() || !options.json.empty())
        throw UsageError("--size, --only and --json are for all versions; expected --program without them");
    Command command = {checkout.program(day.directory + "_whole")};
    if (!options.program.empty()) command.push_back(options.program);
    command.insert(command.end(), options.extra.begin(), options.extra.end());
    build_target(checkout, day.directory + "_whole");
    return run_shown({command});
}

// The programs that contain the exercises.
Programs programs_of(const std::vector<WorkbookEntry>& exercises, const Day& day) {
    Programs programs = day.programs;
    std::erase_if(programs, [&](const std::vector<std::string>& program) {
        return std::ranges::none_of(exercises, [&](const WorkbookEntry& entry) {
            return entry.exercise->file == program.front() + ".cu";
        });
    });
    return programs;
}

int run_mine(const Checkout& checkout, const Calendar& calendar, const RunOptions& given) {
    const Workbook book(checkout, calendar, learners_directory(checkout));
    const std::vector<WorkbookEntry> exercises = book.find(given.day);
    require_my_file(book, exercises);
    const WorkbookEntry& first = exercises.front();
    const Day& day = find_day(calendar, first.chapter->directory);
    if (!day.programs.empty()) {
        const std::vector<Command> commands =
            program_commands(checkout, day, programs_of(exercises, day), "_exercise", given);
        for (const Command& command : commands)
            build_my_program(book, first, checkout, std::filesystem::path(command.front()).filename());
        return run_shown(commands);
    }
    RunOptions options = given;
    if (exercises.size() == 1 && options.version.empty()) options.version = first.exercise->version;
    const std::string target = day.directory + "_exercise_program";
    require_no_program(day, options);
    const Command command = versions_command(checkout.program(target), options);
    build_my_program(book, first, checkout, target);
    return run_shown({command});
}

}  // namespace

int run_day(const Checkout& checkout, const RunOptions& options) {
    require_no_device_linking(options.rdc, options.day);
    const Calendar calendar = load_calendar(checkout.calendar());
    if (options.mine) return run_mine(checkout, calendar, options);
    if (const auto slash = options.day.find('/');
        slash + 1 < options.day.size() && slash != std::string::npos)
        throw UsageError(fmt::format(
            "{0} is an exercise. Your kernel: ./course run --mine {0}; the lesson's: ./course run {1}",
            options.day, options.day.substr(0, slash)));
    const Day& day = find_day(calendar, options.day);
    if (day.programs.empty() && options.whole_program) return run_program_of_lesson(checkout, day, options);
    const std::vector<Command> commands =
        day.programs.empty()
            ? std::vector<Command>{versions_command(checkout.program(day.directory), options)}
            : program_commands(checkout, day, day.programs, "", options);
    build_target(checkout, day.program_target());
    return run_shown(commands);
}

int run_own_program(const Checkout& checkout, const RunOptions& options,
                    const std::vector<std::string>& files) {
    Command command = {build_own_program(checkout, files, {.relocatable_device_code = options.rdc})};
    command.insert(command.end(), options.extra.begin() + static_cast<std::ptrdiff_t>(files.size()) - 1,
                   options.extra.end());
    return run_shown({command});
}

}  // namespace course::tool
