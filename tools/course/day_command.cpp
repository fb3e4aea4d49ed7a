#include "day_command.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "common/bench/program.hpp"
#include "errors.hpp"

namespace course::tool {

void require_size(const std::string& size) {
    try {
        if (!size.empty()) parse_dims(size);
    } catch (const std::invalid_argument& error) {
        throw UsageError(fmt::format("--size: {}", error.what()));
    }
}

Command versions_command(const std::filesystem::path& program, const RunOptions& options) {
    require_size(options.size);
    Command command = {program};
    const auto add = [&command](const char* option, const std::string& value) {
        if (!value.empty()) command.insert(command.end(), {option, value});
    };
    add("--size", options.size);
    add("--only", options.version);
    add("--json", options.json);
    command.insert(command.end(), options.extra.begin(), options.extra.end());
    return command;
}

Command whole_program_command(const Checkout& checkout, const Day& day,
                              const std::vector<std::string>& program, const std::string& suffix,
                              const std::vector<std::string>& arguments) {
    const std::string prefix = day.directory.substr(0, day.directory.find('_') + 1);
    Command command = program;
    command.front() = checkout.program(prefix + program.front() + suffix);
    if (!arguments.empty()) {
        command.resize(1);
        command.insert(command.end(), arguments.begin(), arguments.end());
    }
    return command;
}

void require_no_versions(const Day& day, const RunOptions& options) {
    if (options.size.empty() && options.version.empty() && options.json.empty()) return;
    throw UsageError(fmt::format(
        "{} has whole programs: --size, --only and --json are for days with versions", day.directory));
}

}  // namespace course::tool
