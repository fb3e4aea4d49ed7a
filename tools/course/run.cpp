#include <fmt/format.h>

#include <algorithm>

#include "build.hpp"
#include "commands.hpp"
#include "common/check/nearest.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "own_program.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

// The commands that run a day of whole programs: all of them, or the one that is named.
std::vector<Command> program_commands(const Checkout& checkout, const Day& day, const RunOptions& options) {
    if (!options.size.empty() || !options.variant.empty() || !options.json.empty())
        throw UsageError(fmt::format(
            "{} has whole programs: --size, --variant and --json are for days with versions", day.directory));
    if (options.program.empty() && !options.extra.empty())
        throw UsageError(fmt::format("'{}': which program of {} is it for? Add --program NAME",
                                     options.extra.front(), day.directory));
    const std::string prefix = day.directory.substr(0, day.directory.find('_') + 1);
    std::vector<Command> commands;
    std::vector<std::string> names;
    for (const std::vector<std::string>& program : day.programs) {
        names.push_back(program.front());
        if (!options.program.empty() && program.front() != options.program) continue;
        Command command = program;
        command.front() = checkout.program(prefix + program.front());
        if (!options.extra.empty()) {
            command.resize(1);
            command.insert(command.end(), options.extra.begin(), options.extra.end());
        }
        commands.push_back(std::move(command));
    }
    if (commands.empty()) throw UsageError(unknown_name("program", options.program, names));
    return commands;
}

int run_shown(const Command& command) {
    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    return run(command);
}

}  // namespace

int run_day(const Checkout& checkout, const RunOptions& options) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const Day& day = find_day(calendar, options.day);
    if (!day.programs.empty()) {
        const std::vector<Command> commands = program_commands(checkout, day, options);
        build_target(checkout, day.directory);
        for (const Command& command : commands) {
            if (const int exit_code = run_shown(command); exit_code != kSuccess) return exit_code;
        }
        return kSuccess;
    }
    if (!options.program.empty())
        throw UsageError(fmt::format("--program: {} has one program, with versions: --variant chooses one",
                                     day.directory));
    build_target(checkout, day.directory);

    Command command = {checkout.program(day.directory)};
    const auto add = [&command](const char* option, const std::string& value) {
        if (!value.empty()) command.insert(command.end(), {option, value});
    };
    add("--size", options.size);
    add("--variant", options.variant);
    add("--json", options.json);
    command.insert(command.end(), options.extra.begin(), options.extra.end());
    return run_shown(command);
}

int run_own_program(const Checkout& checkout, const RunOptions& options,
                    const std::vector<std::string>& files) {
    Command command = {build_own_program(checkout, files)};
    command.insert(command.end(), options.extra.begin() + static_cast<std::ptrdiff_t>(files.size()) - 1,
                   options.extra.end());
    return run_shown(command);
}

}  // namespace course::tool
