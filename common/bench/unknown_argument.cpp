#include "common/bench/unknown_argument.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "common/check/nearest.hpp"

namespace course {

std::string unknown_argument(const CLI::App& app) {
    const CLI::App* used = &app;
    while (!used->get_subcommands().empty())
        used = used->get_subcommands().front();
    const std::vector<std::string> left = app.remaining(true);
    if (left.empty()) return "unknown argument";
    const auto is_option = [](const std::string& argument) { return argument.starts_with('-'); };
    const auto option = std::ranges::find_if(left, is_option);
    const std::string& argument = option == left.end() ? left.front() : *option;

    std::vector<std::string> known;
    if (argument.size() > 1 && is_option(argument) &&
        std::isdigit(static_cast<unsigned char>(argument[1])) != 0)
        return fmt::format("'{}' is negative; expected a number > 0", argument);
    if (is_option(argument)) {
        for (const CLI::Option* each : used->get_options()) {
            for (const std::string& name : each->get_lnames())
                known.push_back("--" + name);
        }
        return unknown_name("option", argument, known);
    }
    for (const CLI::App* each : used->get_subcommands([](const CLI::App*) { return true; }))
        known.push_back(each->get_name());
    return known.empty() ? fmt::format("unexpected argument '{}'", argument)
                         : unknown_name("command", argument, known);
}

}  // namespace course
