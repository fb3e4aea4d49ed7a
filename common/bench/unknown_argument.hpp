// Error messages for unknown options and commands, with the nearest known one.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace course {

// For CLI::ExtrasError, once `app` has parsed: "unknown option '--vairant': did you mean '--only'?
// Known: ...", or "unknown command 'chek'...", for the options of the given subcommand, if there
// is one.
std::string unknown_argument(const CLI::App& app);

}  // namespace course
