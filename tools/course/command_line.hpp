// ./course from its command line to an exit code (errors.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "commands.hpp"

namespace course::tool {

// The commands that authors of the course need and learners rarely use. They are in a separate
// program, course_author, so that learners need not wait for their compilation. `./course`
// delegates them to it.
struct AuthorCommands {
    std::function<int(const Checkout&, const BenchOptions&)> bench_day;
    std::function<int(const Checkout&, const ProfileOptions&)> show_profile;
    std::function<int(const Checkout&, bool)> update_tables;
    std::function<int(const Checkout&, const std::optional<std::string>&)> try_exercises;
    std::function<int(const Checkout&, const NewDayOptions&)> new_day;
};

int run_command_line(int argc, const char* const* argv, const AuthorCommands& authors);

}  // namespace course::tool
