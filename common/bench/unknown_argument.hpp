// What a command line says that it does not know, and the nearest that it knows.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace course {

// For CLI::ExtrasError, once `app` has parsed: "unknown option '--vairant': did you mean
// '--only'? Known: ...", or "unknown command 'chek'...", of the subcommand that was given if
// there is one.
std::string unknown_argument(const CLI::App& app);

}  // namespace course
