// cuda_on_cpu_compile [--headers=DIRECTORY] COMPILER ARGUMENTS...
//
// Stands before the host compiler's command (CMake: CXX_COMPILER_LAUNCHER). A command that compiles a .cu file is done in
// three steps: preprocess, translate, compile. Everything else runs as it is. Code that an inspection watches
// (-fsanitize=thread) gets functions of its own in a fourth. With --headers, what nearly every .cu file includes is compiled
// once, into that directory.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "precompiled.hpp"
#include "process.hpp"
#include "translate.hpp"

namespace {

using Arguments = std::vector<std::string>;

// As names begin in object files: std, __gnu_cxx, cuda_on_cpu.
constexpr std::string_view kSharedNamespaces[] = {
    "_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZN11cuda_on_cpu", "_ZNK11cuda_on_cpu"};

struct Command {
    std::string source;  // the .cu file; empty if there is none
    std::string object;
    Arguments dependencies;  // -MD -MF file ...: the preprocessor's part
    Arguments others;
};

Command parse(const Arguments& arguments) {
    Command command;
    bool compiles = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        const bool has_value = i + 1 < arguments.size();
        if (argument == "-c") {
            compiles = true;
        } else if (argument == "-o" && has_value) {
            command.object = arguments[++i];
        } else if (argument == "-x" && has_value) {
            // The language is known by the step; but a CUDA source may have any name.
            if (arguments[++i] == "cu" && i + 1 < arguments.size()) command.source = arguments[++i];
        } else if (argument == "-MD" || argument == "-MMD" || argument == "-MP") {
            command.dependencies.push_back(argument);
        } else if ((argument == "-MF" || argument == "-MT" || argument == "-MQ") && has_value) {
            command.dependencies.push_back(argument);
            command.dependencies.push_back(arguments[++i]);
        } else if (argument.ends_with(".cu") && !argument.starts_with("-")) {
            command.source = argument;
        } else {
            command.others.push_back(argument);
        }
    }
    if (!compiles || command.object.empty()) command.source.clear();
    return command;
}

Arguments joined(const Arguments& compiler, std::initializer_list<Arguments> parts) {
    Arguments result = compiler;
    for (const Arguments& part : parts)
        result.insert(result.end(), part.begin(), part.end());
    return result;
}

bool read_file(const std::string& path, std::string& text) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    text = std::move(content).str();
    return static_cast<bool>(file);
}

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    return static_cast<bool>(file.flush());
}

// Inline functions of the standard library and of the stand-in are in every object file that uses them, and the linker keeps one
// for all. Code that is watched must not share them with the code that watches: that would watch itself, and the kernel would
// have accesses that nobody sees. So here they get other names.
int keep_functions_apart(const std::string& object) {
    std::string symbols;
    int status = translator::run_program({"nm", "--defined-only", "--format=posix", object}, symbols);
    if (status != 0) return status;
    const std::string names = object + ".names";
    std::string renamed;
    std::istringstream lines(symbols);
    for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(0, line.find(' '));
        // W: a function that the linker may find more than once; n: the name of several that go together, as constructors do.
        const std::string_view type = std::string_view(line).substr(name.size(), 3);
        const bool shared = std::any_of(std::begin(kSharedNamespaces), std::end(kSharedNamespaces),
                                        [&](std::string_view prefix) { return name.starts_with(prefix); });
        if ((type == " W " || type == " n ") && shared)
            renamed.append(name).append(" ").append(name).append(".watched\n");
    }
    if (!write_file(names, renamed)) {
        std::fprintf(stderr, "cuda_on_cpu_compile: cannot write %s\n", names.c_str());
        return 1;
    }
    status = translator::run_program({"objcopy", "--redefine-syms=" + names, object});
    std::remove(names.c_str());
    return status;
}

// The preprocessor's rule names what it has read; add what was read when the headers were compiled.
bool add_prerequisites(const Arguments& dependencies, const std::string& files) {
    const auto option = std::find(dependencies.begin(), dependencies.end(), "-MF");
    if (option == dependencies.end()) return true;
    std::string rule;
    const bool was_read = read_file(option[1], rule);
    const std::size_t colon = rule.find(": ");
    if (was_read && colon != std::string::npos &&
        write_file(option[1], rule.insert(colon + 1, " " + files + " ")))
        return true;
    std::fprintf(stderr, "cuda_on_cpu_compile: cannot change %s\n", option[1].c_str());
    return false;
}

// At the end of a file of a program that is the user's own: at its end the program tells what suggests wrong results.
constexpr const char* kOwnProgram =
    "\n[[maybe_unused]] static const bool cuda_on_cpu_own_program_ = ::cuda_on_cpu::own_program = true;\n";

// `headers`: the directory of precompiled headers, or "".
int compile_cuda(const std::string& headers, bool own_program, const std::string& compiler,
                 const Command& command) {
    // What nvcc defines. __CUDA_ARCH__ is not: host and device code are compiled in one pass.
    static const Arguments kDefinitions = {"-D__CUDACC__", "-D__CUDACC_VER_MAJOR__=13",
                                           "-D__CUDACC_VER_MINOR__=0"};
    const std::string preprocessed = command.object + ".ii";
    const std::string translated = command.object + ".translated.ii";

    const auto dialect =
        compiler.find("clang") != std::string::npos ? translator::Dialect::clang : translator::Dialect::gnu;
    const Arguments options = joined({compiler}, {command.others, kDefinitions});
    translator::PrecompiledHeaders precompiled;
    if (!headers.empty() && dialect == translator::Dialect::gnu)
        precompiled = translator::precompiled_headers(headers, options);

    int status = translator::run_program(joined(
        options, {precompiled.options,
                  command.dependencies,
                  {"-E", "-x", "c++", "-include", "cuda_runtime.h", command.source, "-o", preprocessed}}));
    if (status != 0) return status;

    if (!precompiled.files.empty() && !add_prerequisites(command.dependencies, precompiled.files)) return 1;

    std::string text;
    if (!read_file(preprocessed, text)) {
        std::fprintf(stderr, "cuda_on_cpu_compile: cannot read %s\n", preprocessed.c_str());
        return 1;
    }
    const bool watched =
        std::find(command.others.begin(), command.others.end(), "-fsanitize=thread") != command.others.end();
    std::vector<translator::Warning> warnings;
    try {
        text = translator::translate(
            text, dialect, watched ? translator::SharedArrays::in_gaps : translator::SharedArrays::plain,
            &warnings);
    } catch (const translator::TranslationError& error) {
        const std::string& file = error.file.empty() ? command.source : error.file;
        std::fprintf(stderr, "%s:%d: error: %s\n", file.c_str(), error.line, error.what());
        return 1;
    }
    for (const translator::Warning& warning : warnings) {
        const std::string& file = warning.file.empty() ? command.source : warning.file;
        std::fprintf(stderr, "%s:%d: warning: %s\n", file.c_str(), warning.line, warning.message.c_str());
    }
    if (own_program) text += kOwnProgram;
    if (!write_file(translated, text)) {
        std::fprintf(stderr, "cuda_on_cpu_compile: cannot write %s\n", translated.c_str());
        return 1;
    }
    status = translator::run_program(
        joined({compiler}, {command.others,  // -I and the like have done their work; clang would complain.
                            {"-Wno-unused-command-line-argument", "-x", "c++-cpp-output", "-c", translated,
                             "-o", command.object}}));
    std::remove(preprocessed.c_str());  // the translated text stays: worth a look
    return status == 0 && watched ? keep_functions_apart(command.object) : status;
}

}  // namespace

int main(int count, char** values) {
    Arguments arguments(values + 1, values + count);
    std::string headers;
    constexpr std::string_view kHeadersOption = "--headers=";
    if (!arguments.empty() && arguments[0].starts_with(kHeadersOption)) {
        headers = arguments[0].substr(kHeadersOption.size());
        arguments.erase(arguments.begin());
    }
    const bool own_program = !arguments.empty() && arguments[0] == "--own-program";
    if (own_program) arguments.erase(arguments.begin());
    if (arguments.empty() || arguments[0].starts_with("-")) {
        std::fprintf(
            stderr,
            "usage: cuda_on_cpu_compile [--headers=DIRECTORY] [--own-program] COMPILER ARGUMENTS...\n"
            "example: cuda_on_cpu_compile g++ -std=c++20 -Icuda_on_cpu/include -c day.cu -o day.o\n");
        return 2;
    }
    const Command command = parse({arguments.begin() + 1, arguments.end()});
    return command.source.empty() ? translator::run_program(arguments)
                                  : compile_cuda(headers, own_program, arguments[0], command);
}
