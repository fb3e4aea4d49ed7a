// cuda_on_cpu_compile [--headers=DIRECTORY] [--arch=800,900a] [--rdc] COMPILER ARGUMENTS...
//
// Runs as a prefix of the host compiler's command (CMake: CXX_COMPILER_LAUNCHER). A command that
// compiles a .cu file is split into three steps: preprocess, translate, compile. Every other
// command runs unchanged. In code that an inspection watches (-fsanitize=thread), a fourth step
// separates inline functions from those of the inspector. With --headers, the headers that nearly
// every .cu file includes are compiled once, into that directory. --arch is the compute capability
// that __CUDA_ARCH__ has in device code; of several, the last one. With --rdc, all .cu files of a
// program share the device variables.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "host_compiler.hpp"
#include "merge.hpp"
#include "precompiled.hpp"
#include "process.hpp"
#include "translate.hpp"

namespace {

using Arguments = std::vector<std::string>;

// Prefixes of mangled names in object files: std, __gnu_cxx, cuda_on_cpu.
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
            // The step determines the language, but a CUDA source may have any file name.
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

// Inline functions of the standard library and of the stand-in are in every object file that uses
// them, and the linker keeps one copy for all. Watched code must not share them with the
// inspector's own code: the inspector would watch itself, or would miss accesses of the kernel.
// Here the copies in watched code get other names.
int keep_functions_apart(const std::string& object) {
    std::string symbols;
    int status = translator::run_program({"nm", "--defined-only", "--format=posix", object}, symbols);
    if (status != 0) return status;
    const std::string names = object + ".names";
    std::string renamed;
    std::istringstream lines(symbols);
    for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(0, line.find(' '));
        // W: a function that the linker may find more than once; n: the name of a group of
        // functions, such as the constructors of a class.
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

// The preprocessor's rule names the files that it has read; this adds those that were read when the
// headers were compiled.
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

struct Settings {
    // The directory of precompiled headers; "" if there is none.
    std::string headers;
    std::vector<std::string> architectures{"900a"};  // ascending
    translator::DeviceVariables device_variables = translator::DeviceVariables::own;
    // A user's own program: it reports at exit what suggests wrong results.
    bool own_program = false;
};

// The files that the text was made of, except system headers, which do not use CUDA.
std::set<std::string> files_of(std::string_view preprocessed) {
    std::set<std::string> files;
    for (std::size_t at = preprocessed.find("# "); at != std::string_view::npos;
         at = preprocessed.find("\n# ", at + 1)) {
        const std::size_t begin = preprocessed.find('"', at) + 1;
        const std::size_t end = preprocessed.find('"', begin);
        if (begin == 0 || end == std::string_view::npos) break;
        const std::string_view name = preprocessed.substr(begin, end - begin);
        if (!name.starts_with("/usr/") && !name.starts_with("<")) files.emplace(name);
    }
    return files;
}

bool mentions_architecture(std::string_view preprocessed) {
    const std::set<std::string> files = files_of(preprocessed);
    return std::any_of(files.begin(), files.end(), [](const std::string& name) {
        std::string text;
        return read_file(name, text) && text.find("__CUDA_ARCH") != std::string::npos;
    });
}

// The additional options for device code.
Arguments architecture_definitions(const std::string& architecture) {
    const std::string number = architecture.substr(0, architecture.find_first_not_of("0123456789"));
    Arguments definitions = {"-D__CUDA_ARCH__=" + number};
    const std::string name = "SM" + number.substr(0, number.size() - 1);
    if (architecture.ends_with('a')) definitions.push_back("-D__CUDA_ARCH_FEAT_" + name + "_ALL");
    if (architecture.ends_with('a') || architecture.ends_with('f'))
        definitions.insert(definitions.end(), {"-D__CUDA_ARCH_SPECIFIC__=" + number,
                                               "-D__CUDA_ARCH_FAMILY_SPECIFIC__=" + number});
    return definitions;
}

std::string architecture_list(const Settings& settings) {
    std::string list;
    for (const std::string& architecture : settings.architectures)
        list +=
            (list.empty() ? "" : ",") + architecture.substr(0, architecture.find_first_not_of("0123456789"));
    return "-D__CUDA_ARCH_LIST__=" + list;
}

void print(const std::vector<translator::Warning>& warnings, const std::string& source) {
    for (const translator::Warning& warning : warnings) {
        const std::string& file = warning.file.empty() ? source : warning.file;
        std::fprintf(stderr, "%s:%d: warning: %s\n", file.c_str(), warning.line, warning.message.c_str());
    }
}

// Appended to a file of the user's own program, which then reports at exit what suggests wrong
// results.
constexpr const char* kOwnProgram =
    "\n[[maybe_unused]] static const bool cuda_on_cpu_own_program_ = ::cuda_on_cpu::own_program = true;\n";

// Removes every `-include FILE` from the options and returns them. Such a file is included after
// cuda_runtime.h, because it, or its translation, may use the declarations there.
Arguments take_inclusions(Arguments& options) {
    Arguments inclusions;
    for (auto option = options.begin(); option != options.end();) {
        if (*option != "-include" || option + 1 == options.end()) {
            ++option;
            continue;
        }
        inclusions.insert(inclusions.end(), option, option + 2);
        option = options.erase(option, option + 2);
    }
    return inclusions;
}

// A debugger shows each thread, and a sanitizer its accesses, as the scheduler runs them.
bool optimises(const Arguments& options) {
    bool result = false;
    for (const std::string& option : options) {
        if (option.starts_with("-fsanitize=")) return false;
        if (option.starts_with("-O")) result = option != "-O0" && option != "-Og";
    }
    return result;
}

int compile_cuda(const Settings& settings, const std::string& compiler, const Command& command) {
    // The macros that nvcc defines, the last two with --extended-lambda and
    // --expt-relaxed-constexpr, which are always on here.
    static const Arguments kDefinitions = {"-D__CUDACC__", "-D__CUDACC_VER_MAJOR__=13",
                                           "-D__CUDACC_VER_MINOR__=0", "-D__CUDACC_EXTENDED_LAMBDA__",
                                           "-D__CUDACC_RELAXED_CONSTEXPR__"};
    const std::string preprocessed = command.object + ".ii";
    const std::string translated = command.object + ".translated.ii";

    const auto dialect =
        translator::is_clang(compiler) ? translator::Dialect::clang : translator::Dialect::gnu;
    Arguments others = command.others;
    const Arguments inclusions = take_inclusions(others);
    const Arguments options = joined({compiler}, {others, kDefinitions});
    translator::PrecompiledHeaders precompiled;
    if (!settings.headers.empty() && dialect == translator::Dialect::gnu)
        precompiled = translator::precompiled_headers(settings.headers, options,
                                                      settings.own_program ? command.source : "");

    std::string text;
    // `definitions` are those of host code or of device code.
    const auto preprocess = [&](const Arguments& definitions) {
        const int status =
            translator::run_compiler(joined(options, {precompiled.options,
                                                      definitions,
                                                      {"-E", "-x", "c++", "-include", "cuda_runtime.h"},
                                                      inclusions,
                                                      {command.source, "-o", preprocessed}}));
        if (status != 0) return status;
        if (read_file(preprocessed, text)) return 0;
        std::fprintf(stderr, "cuda_on_cpu_compile: cannot read %s\n", preprocessed.c_str());
        return 1;
    };
    Arguments definitions = command.dependencies;
    definitions.push_back(architecture_list(settings));
    int status = preprocess(definitions);
    if (status != 0) return status;

    if (!precompiled.files.empty() && !add_prerequisites(command.dependencies, precompiled.files)) return 1;

    std::vector<translator::Warning> warnings;
    if (mentions_architecture(text)) {
        const std::string host_text = text;
        definitions = architecture_definitions(settings.architectures.back());
        definitions.push_back(architecture_list(settings));
        status = preprocess(definitions);
        if (status != 0) return status;
        text = translator::merge_passes(host_text, text, warnings);
    }
    const auto has_option = [&](const char* option) {
        return std::find(command.others.begin(), command.others.end(), option) != command.others.end();
    };
    const bool watched = has_option("-fsanitize=thread");
    try {
        text = translator::translate(
            text, dialect, watched ? translator::SharedArrays::in_gaps : translator::SharedArrays::plain,
            settings.device_variables, &warnings,
            optimises(command.others) ? translator::ThreadLoops::on : translator::ThreadLoops::off);
    } catch (const translator::TranslationError& error) {
        const std::string& file = error.file.empty() ? command.source : error.file;
        std::fprintf(stderr, "%s:%d: error: %s\n", file.c_str(), error.line, error.what());
        return 1;
    }
    print(warnings, command.source);
    if (settings.own_program) text += kOwnProgram;
    if (!write_file(translated, text)) {
        std::fprintf(stderr, "cuda_on_cpu_compile: cannot write %s\n", translated.c_str());
        return 1;
    }
    // -I and similar options are no longer needed; clang would warn about them, and g++ would warn
    // about clang's option.
    const Arguments quiet =
        dialect == translator::Dialect::clang ? Arguments{"-Wno-unused-command-line-argument"} : Arguments{};
    status = translator::run_compiler(joined(
        {compiler}, {others, quiet, {"-x", "c++-cpp-output", "-c", translated, "-o", command.object}}));
    // The translated text stays, for the curious reader.
    std::remove(preprocessed.c_str());
    const bool has_object = status == 0 && !has_option("-fsyntax-only");
    return has_object && watched ? keep_functions_apart(command.object) : status;
}

// Parses "800,900a"; returns false if this is not a list of compute capabilities.
bool parse_architectures(const std::string& list, std::vector<std::string>& architectures) {
    architectures.clear();
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ',');) {
        const std::size_t digits = std::min(part.find_first_not_of("0123456789"), part.size());
        if (digits < 3 || part.size() > digits + 1) return false;
        architectures.push_back(part);
    }
    return !architectures.empty();
}

}  // namespace

int main(int count, char** values) {
    Arguments arguments(values + 1, values + count);
    Settings settings;
    constexpr std::string_view kHeaders = "--headers=";
    constexpr std::string_view kArchitecture = "--arch=";
    bool understood = true;
    std::size_t own = 0;
    for (; own < arguments.size() && arguments[own].starts_with("--"); ++own) {
        const std::string& option = arguments[own];
        if (option.starts_with(kHeaders)) {
            settings.headers = option.substr(kHeaders.size());
        } else if (option.starts_with(kArchitecture)) {
            understood = understood &&
                         parse_architectures(option.substr(kArchitecture.size()), settings.architectures);
        } else if (option == "--own-program") {
            settings.own_program = true;
        } else if (option == "--rdc") {
            settings.device_variables = translator::DeviceVariables::shared;
        } else {
            understood = false;
        }
    }
    arguments.erase(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(own));
    if (!understood || arguments.empty() || arguments[0].starts_with("-")) {
        std::fprintf(
            stderr,
            "usage: cuda_on_cpu_compile [--headers=DIRECTORY] [--arch=900a] [--rdc] [--own-program] COMPILER "
            "ARGUMENTS...\n"
            "example: cuda_on_cpu_compile g++ -std=c++20 -Icuda_on_cpu/include -c day.cu -o day.o\n");
        return 2;
    }
    const Command command = parse({arguments.begin() + 1, arguments.end()});
    return command.source.empty() ? translator::run_program(arguments)
                                  : compile_cuda(settings, arguments[0], command);
}
