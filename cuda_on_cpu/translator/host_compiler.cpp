#include "host_compiler.hpp"

#include "process.hpp"

namespace translator {

bool is_clang(const std::string& compiler) {
    std::string macros;
    return run_program({compiler, "-dM", "-E", "-x", "c++", "/dev/null"}, macros) == 0 &&
           macros.find("#define __clang__ ") != std::string::npos;
}

}  // namespace translator
