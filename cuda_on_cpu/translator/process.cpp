#include "process.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "child_process.hpp"
#include "missing.hpp"

namespace translator {
namespace {

int exit_code_of(const cuda_on_cpu::ChildResult& result, const std::string& program) {
    if (result.error != 0)
        std::fprintf(stderr, "cuda_on_cpu_compile: cannot run %s: %s\n", program.c_str(),
                     std::strerror(result.error));
    return result.exit_code;
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
    return exit_code_of(cuda_on_cpu::run_child({arguments}), arguments.at(0));
}

int run_program(const std::vector<std::string>& arguments, std::string& output) {
    const cuda_on_cpu::ChildResult result = cuda_on_cpu::read_child({arguments});
    output += result.output;
    return exit_code_of(result, arguments.at(0));
}

int run_compiler(std::vector<std::string> arguments) {
    if (isatty(STDERR_FILENO) != 0) arguments.emplace_back("-fdiagnostics-color=always");
    cuda_on_cpu::ChildProgram program{arguments};
    program.errors = cuda_on_cpu::Errors::with_output;
    const cuda_on_cpu::ChildResult result = cuda_on_cpu::read_child(program);
    const int status = exit_code_of(result, arguments.at(0));
    if (status != 0) {
        if (const std::string missing = about_missing(result.output); !missing.empty())
            std::fprintf(stderr, "%s\n", missing.c_str());
    }
    std::fwrite(result.output.data(), 1, result.output.size(), stderr);
    return status;
}

}  // namespace translator
