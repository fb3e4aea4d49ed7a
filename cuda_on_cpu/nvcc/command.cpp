#include "command.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace nvcc {
namespace {

enum class Takes { nothing, value };

using Apply = void (*)(Command& command, const std::string& value);

// How an option is written. The value follows as an argument of its own or after a '=', of some
// also joined: -Iinclude.
struct Option {
    std::vector<std::string_view> names;
    Takes takes;
    Apply apply;
    bool joined = false;
};

// At commas that stand neither in quotes nor behind a backslash: "\\," is a comma of the value.
Arguments split_at_commas(const std::string& list) {
    Arguments parts(1);
    char quote = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const char c = list[i];
        if (c == '\\' && i + 1 < list.size() && quote != '\'') {
            if (list[++i] != ',') parts.back() += c;
            parts.back() += list[i];
        } else if (c == ',' && quote == 0) {
            parts.emplace_back();
        } else {
            if (c == quote) {
                quote = 0;
            } else if (quote == 0 && (c == '"' || c == '\'')) {
                quote = c;
            }
            parts.back() += c;
        }
    }
    std::erase(parts, "");
    return parts;
}

// As a shell splits a line: at blanks, less quotes and backslashes.
Arguments words_of(const std::string& text) {
    Arguments words;
    bool in_word = false;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote == 0 && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
            in_word = false;
            continue;
        }
        if (!in_word) words.emplace_back();
        in_word = true;
        if (c == quote) {
            quote = 0;
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
            words.back() += text[++i];
        } else {
            words.back() += c;
        }
    }
    return words;
}

void append(Arguments& to, const Arguments& more) {
    to.insert(to.end(), more.begin(), more.end());
}

// Libraries of the CUDA Toolkit whose functions the stand-in's own library has, and those that do
// not exist on the CPU.
constexpr std::string_view kOwnLibraries[] = {"cudart", "cudart_static", "cudadevrt", "culibos",
                                              "nvToolsExt"};
constexpr std::string_view kMissingLibraries[] = {"cusolverMg", "cudnn", "nvjitlink", "npp"};

// Libraries for programs that load modules.
constexpr std::string_view kModuleLibraries[] = {"cuda", "nvrtc", "nvrtc_static", "nvrtc-builtins_static"};

void add_library(Command& command, const std::string& name) {
    if (std::ranges::find(kModuleLibraries, name) != std::end(kModuleLibraries)) {
        command.loads_modules = true;
        return;
    }
    if (std::ranges::find(kOwnLibraries, name) != std::end(kOwnLibraries)) return;
    if (std::ranges::any_of(kMissingLibraries, [&](std::string_view it) { return name.starts_with(it); }))
        throw UsageError(
            "'-l" + name +
            "': this library of the CUDA Toolkit does not exist on the CPU; here are the CUDA runtime, "
            "cuBLAS, cuSOLVER, cuSPARSE, cuRAND, cuFFT and NCCL");
    command.link_inputs.push_back("-l" + name);
}

// The headers of the stand-in need C++20: older standards are raised to it. All have the same name,
// so that all programs share their precompiled headers.
std::string standard_for(const std::string& asked) {
    const std::size_t plus = asked.find("++");
    const std::string language = asked.substr(0, plus);
    const bool is_cxx = plus != std::string::npos && (language == "c" || language == "gnu");
    const std::string year = is_cxx ? asked.substr(plus + 2) : "";
    for (const std::string_view old : {"98", "03", "11", "14", "17", "0x", "1y", "1z", "20", "2a"}) {
        if (year == old) return "";
    }
    for (const std::string_view newer : {"23", "2b", "26", "2c"}) {
        if (year == newer) return asked;
    }
    throw UsageError("-std=" + asked + ": expected c++03, c++11, c++14, c++17, c++20 or c++23");
}

std::string optimisation_for(const std::string& level) {
    const bool is_number = !level.empty() && level.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number)
        throw UsageError(
            "-O" + level +
            ": expected a number; other levels of the host compiler are handed on by -Xcompiler -O" + level);
    return "-O" + level;
}

// sm_80, compute_90a, arch=compute_80,code=[sm_80,sm_86]: what __CUDA_ARCH__ is made of. Others, as
// `native`, leave it as it is.
void add_architecture(Command& command, const std::string& asked) {
    constexpr std::string_view kFirst = "arch=";
    std::string name = asked.starts_with(kFirst) ? asked.substr(kFirst.size()) : asked;
    name = name.substr(0, name.find(','));
    const std::size_t number = name.find('_') + 1;
    const std::size_t end = name.find_first_not_of("0123456789", number);
    const std::string digits = name.substr(number, std::min(end, name.size()) - number);
    if (number == 0 || digits.size() < 2) return;
    command.architectures.push_back(digits + "0" + name.substr(number + digits.size()));
}

void refuse(Command&, const std::string&) {
    throw UsageError(
        "it was asked for an intermediate file (-E, -ltoir...), which do not exist here: kernels are "
        "compiled for the CPU. --keep keeps their translation, *.translated.ii");
}

void ignore(Command&, const std::string&) {}

// A module for the driver API: code for the CPU, whatever its name says.
void make_module(Command& command, const std::string& extension) {
    command.action = Action::module;
    command.module_extension = extension;
}

const std::vector<Option>& options() {
    using enum Takes;
    static const std::vector<Option> all = {
        {{"-o", "--output-file"}, value, [](Command& c, const std::string& v) { c.output = v; }},
        {{"-odir", "--output-directory"},
         value,
         [](Command& c, const std::string& v) { c.output_directory = v; }},
        {{"-c", "--compile", "-dw", "--device-w"},
         nothing,
         [](Command& c, const std::string&) { c.action = Action::compile; }},
        {{"-dc", "--device-c"},
         nothing,
         [](Command& c, const std::string&) {
             c.action = Action::compile;
             c.shares_device_variables = true;
         }},
        {{"-dlink", "--device-link"},
         nothing,
         [](Command& c, const std::string&) { c.action = Action::device_link; }},
        {{"-lib", "--lib"}, nothing, [](Command& c, const std::string&) { c.action = Action::archive; }},
        {{"-link", "--link"}, nothing, [](Command& c, const std::string&) { c.action = Action::link; }},
        {{"-M", "--generate-dependencies"},
         nothing,
         [](Command& c, const std::string&) {
             c.action = Action::list_dependencies;
             c.rule_options.push_back("-M");
         }},
        {{"-MM", "--generate-nonsystem-dependencies"},
         nothing,
         [](Command& c, const std::string&) {
             c.action = Action::list_dependencies;
             c.rule_options.push_back("-MM");
         }},
        {{"-run", "--run"}, nothing, [](Command& c, const std::string&) { c.run = true; }},
        {{"-run-args", "--run-args"},
         value,
         [](Command& c, const std::string& v) {
             for (const std::string& part : split_at_commas(v))
                 append(c.run_arguments, words_of(part));
         }},
        {{"-V", "--version"},
         nothing,
         [](Command& c, const std::string&) { c.action = Action::print_version; }},
        {{"-h", "--help"}, nothing, [](Command& c, const std::string&) { c.action = Action::print_help; }},
        {{"-cuda", "--cuda"}, nothing, [](Command& c, const std::string&) { c.action = Action::translate; }},
        {{"-E", "--preprocess", "-ltoir", "--ltoir", "-optix-ir", "--optix-ir"}, nothing, refuse},
        {{"-ptx", "--ptx"}, nothing, [](Command& c, const std::string&) { make_module(c, ".ptx"); }},
        {{"-cubin", "--cubin"}, nothing, [](Command& c, const std::string&) { make_module(c, ".cubin"); }},
        {{"-fatbin", "--fatbin"}, nothing, [](Command& c, const std::string&) { make_module(c, ".fatbin"); }},

        {{"-I", "--include-path"},
         value,
         [](Command& c, const std::string& v) { c.preprocessor.push_back("-I" + v); },
         true},
        {{"-isystem", "--system-include"},
         value,
         [](Command& c, const std::string& v) {
             for (const std::string& part : split_at_commas(v))
                 append(c.preprocessor, {"-isystem", part});
         }},
        {{"-include", "--pre-include"},
         value,
         [](Command& c, const std::string& v) {
             for (const std::string& part : split_at_commas(v))
                 append(c.preprocessor, {"-include", part});
         }},
        {{"-D", "--define-macro"},
         value,
         [](Command& c, const std::string& v) { c.preprocessor.push_back("-D" + v); },
         true},
        {{"-U", "--undefine-macro"},
         value,
         [](Command& c, const std::string& v) { c.preprocessor.push_back("-U" + v); },
         true},
        {{"-L", "--library-path"},
         value,
         [](Command& c, const std::string& v) { c.link_options.push_back("-L" + v); },
         true},
        {{"-l", "--library"}, value, add_library, true},
        {{"-shared", "--shared"},
         nothing,
         [](Command& c, const std::string&) { c.link_options.push_back("-shared"); }},
        {{"-Xlinker", "--linker-options"},
         value,
         [](Command& c, const std::string& v) {
             for (const std::string& part : split_at_commas(v))
                 for (const std::string& word : words_of(part))
                     append(c.link_options, {"-Xlinker", word});
         }},
        {{"-Xcompiler", "--compiler-options"},
         value,
         [](Command& c, const std::string& v) {
             for (const std::string& part : split_at_commas(v))
                 append(c.host, words_of(part));
         }},
        {{"-ccbin", "--compiler-bindir"},
         value,
         [](Command& c, const std::string& v) {
             c.compiler = std::filesystem::is_directory(v) ? v + "/g++" : v;
         }},
        {{"-std", "--std"}, value, [](Command& c, const std::string& v) { c.standard = standard_for(v); }},
        {{"-O", "--optimize"},
         value,
         [](Command& c, const std::string& v) {
             c.host_optimisation = optimisation_for(v);
             if (v == "0") c.optimisation = "-O0";
         },
         true},
        {{"-g", "--debug"}, nothing, [](Command& c, const std::string&) { c.debug_information = "-g"; }},
        {{"-G", "--device-debug"},
         nothing,
         [](Command& c, const std::string&) {
             c.debug_information = "-g";
             c.optimisation = "-O0";
         }},
        {{"-pg", "--profile"}, nothing, [](Command& c, const std::string&) { c.host.push_back("-pg"); }},
        {{"-w", "--disable-warnings"},
         nothing,
         [](Command& c, const std::string&) { c.host.push_back("-w"); }},
        {{"-Werror", "--Werror"},
         value,
         [](Command& c, const std::string& v) {
             if (v == "all-warnings") c.host.push_back("-Werror");
         }},

        {{"-MD", "--generate-dependencies-with-compile"},
         nothing,
         [](Command& c, const std::string&) {
             c.make_rule = true;
             c.rule_options.push_back("-MD");
         }},
        {{"-MMD", "--generate-nonsystem-dependencies-with-compile"},
         nothing,
         [](Command& c, const std::string&) {
             c.make_rule = true;
             c.rule_options.push_back("-MMD");
         }},
        {{"-MP", "--generate-dependency-targets"},
         nothing,
         [](Command& c, const std::string&) { c.rule_options.push_back("-MP"); }},
        {{"-MT", "--dependency-target-name"},
         value,
         [](Command& c, const std::string& v) {
             append(c.rule_options, {"-MT", v});
         }},
        {{"-MF", "--dependency-output"}, value, [](Command& c, const std::string& v) { c.rule_file = v; }},

        {{"-keep", "--keep", "-save-temps", "--save-temps"},
         nothing,
         [](Command& c, const std::string&) { c.keep = true; }},
        {{"--inspect"}, nothing, [](Command& c, const std::string&) { c.inspect = true; }},
        {{"-v", "--verbose"}, nothing, [](Command& c, const std::string&) { c.verbose = true; }},
        {{"-dryrun", "--dryrun"}, nothing, [](Command& c, const std::string&) { c.dry_run = true; }},

        {{"-arch", "--gpu-architecture", "-gencode", "--generate-code"}, value, add_architecture},
        {{"-rdc", "--relocatable-device-code"},
         value,
         [](Command& c, const std::string& v) { c.shares_device_variables = v == "true"; }},

        // What else is said about the GPU, or about nvcc's own passes, changes nothing on the CPU.
        {{"-code",
          "--gpu-code",
          "-Xptxas",
          "--ptxas-options",
          "-Xnvlink",
          "--nvlink-options",
          "-Xcudafe",
          "--cudafe-options",
          "-Xfatbin",
          "--fatbin-options",
          "-Xarchive",
          "--archive-options",
          "-maxrregcount",
          "--maxrregcount",
          "-ftz",
          "--ftz",
          "-prec-div",
          "--prec-div",
          "-prec-sqrt",
          "--prec-sqrt",
          "-fmad",
          "--fmad",
          "-cudart",
          "--cudart",
          "-cudadevrt",
          "--cudadevrt",
          "-default-stream",
          "--default-stream",
          "-t",
          "--threads",
          "-split-compile",
          "--split-compile",
          "-diag-suppress",
          "--diag-suppress",
          "-diag-error",
          "--diag-error",
          "-diag-warn",
          "--diag-warn",
          "-dopt",
          "--dopt",
          "-keep-dir",
          "--keep-dir",
          "-ldir",
          "--libdevice-directory",
          "-target-dir",
          "--target-directory",
          "-time",
          "--time"},
         value,
         ignore},
        {{"-m", "--machine"}, value, ignore, true},
        {{"-lineinfo",
          "--generate-line-info",
          "-use_fast_math",
          "--use_fast_math",
          "-extended-lambda",
          "--extended-lambda",
          "-expt-extended-lambda",
          "--expt-extended-lambda",
          "-expt-relaxed-constexpr",
          "--expt-relaxed-constexpr",
          "-ewp",
          "--extensible-whole-program",
          "-restrict",
          "--restrict",
          "-res-usage",
          "--resource-usage",
          "-src-in-ptx",
          "--source-in-ptx",
          "-dlto",
          "--dlink-time-opt",
          "-allow-unsupported-compiler",
          "--allow-unsupported-compiler",
          "-err-no",
          "--display-error-number",
          "-no-display-error-number",
          "-Wno-deprecated-gpu-targets",
          "--Wno-deprecated-gpu-targets",
          "-Wno-deprecated-declarations",
          "-Wreorder",
          "--Wreorder",
          "-Wdefault-stream-launch",
          "--Wdefault-stream-launch",
          "-Wmissing-launch-bounds",
          "--Wmissing-launch-bounds",
          "-Wext-lambda-captures-this",
          "--Wext-lambda-captures-this",
          "-noprof",
          "--no-profile",
          "-forward-unknown-opts",
          "--forward-unknown-opts",
          "-forward-unknown-to-host-linker",
          "--forward-unknown-to-host-linker"},
         nothing,
         ignore},
    };
    return all;
}

constexpr std::string_view kForward[] = {"-forward-unknown-to-host-compiler",
                                         "--forward-unknown-to-host-compiler"};
constexpr std::string_view kOptionsFile[] = {"-optf", "--options-file"};

// An option, and its value where that stands in the same argument.
struct Match {
    const Option* option = nullptr;
    bool has_value = false;
    std::string value{};
};

Match find_option(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    const std::string_view before = std::string_view(argument).substr(0, equals);
    for (const Option& option : options()) {
        const bool named = std::ranges::find(option.names, before) != option.names.end();
        if (named && equals == std::string::npos) return {&option};
        if (named && option.takes == Takes::value) return {&option, true, argument.substr(equals + 1)};
    }
    for (const Option& option : options()) {
        const std::string_view name = option.names.front();
        if (option.joined && argument.starts_with(name)) return {&option, true, argument.substr(name.size())};
    }
    return {};
}

bool has_extension(const std::string& file, std::initializer_list<std::string_view> extensions) {
    const std::string extension = std::filesystem::path(file).extension();
    return std::ranges::find(extensions, extension) != extensions.end();
}

bool is_shared_library(const std::string& file) {
    return std::filesystem::path(file).filename().string().find(".so") != std::string::npos;
}

// `language`: what -x has said, or "".
void add_input(Command& command, const std::string& file, const std::string& language) {
    if (has_extension(file, {".o", ".a", ".obj", ".lo"}) || is_shared_library(file)) {
        command.link_inputs.push_back(file);
        return;
    }
    if (!std::filesystem::exists(file)) throw UsageError("there is no file '" + file + "'");
    const auto add = [&](Language it) {
        command.sources.push_back({file, it});
        command.link_inputs.emplace_back();
    };
    if (language == "cu" || (language.empty() && has_extension(file, {".cu"}))) {
        add(Language::cuda);
    } else if (language == "c++" || has_extension(file, {".cpp", ".cc", ".cxx", ".C", ".c++"})) {
        add(Language::cxx);
    } else if (language == "c" || has_extension(file, {".c"})) {
        add(Language::c);
    } else {
        throw UsageError("'" + file +
                         "' is neither a source (.cu, .cpp, .cc, .cxx, .c) nor an object or a library (.o, "
                         ".a, .so); -x cu says that it is CUDA C++");
    }
}

// Arguments in files, of which a list may have several.
Arguments read_options_files(const std::string& list) {
    Arguments arguments;
    for (const std::string& name : split_at_commas(list)) {
        std::ifstream file(name);
        std::ostringstream text;
        text << file.rdbuf();
        if (!file) throw UsageError("--options-file: cannot read '" + name + "'");
        append(arguments, words_of(text.str()));
    }
    return arguments;
}

// In the place of --options-file FILE, and of @FILE as other compilers have it, stand the arguments
// in that file.
Arguments with_options_files(const Arguments& arguments) {
    Arguments all;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string name = arguments[i].substr(0, arguments[i].find('='));
        if (name.starts_with('@') && std::filesystem::exists(arguments[i].substr(1))) {
            append(all, read_options_files(arguments[i].substr(1)));
        } else if (std::ranges::find(kOptionsFile, name) == std::end(kOptionsFile)) {
            all.push_back(arguments[i]);
        } else if (name.size() < arguments[i].size()) {
            append(all, read_options_files(arguments[i].substr(name.size() + 1)));
        } else if (++i < arguments.size()) {
            append(all, read_options_files(arguments[i]));
        } else {
            throw UsageError("'" + name + "' needs a value");
        }
    }
    return all;
}

bool makes_one_file_for_each_source(Action action) {
    return action == Action::compile || action == Action::translate || action == Action::module ||
           action == Action::list_dependencies;
}

void check(const Command& command) {
    if (command.action == Action::print_version || command.action == Action::print_help) return;
    if (command.link_inputs.empty())
        throw UsageError("No input files specified; use option --help for more information");
    if (!command.output_directory.empty() && !std::filesystem::is_directory(command.output_directory))
        throw UsageError("-odir: there is no directory '" + command.output_directory + "'");
    if (command.run && command.action != Action::link)
        throw UsageError("-run: only a program can be run, and this command line makes none");
    if (makes_one_file_for_each_source(command.action)) {
        if (command.sources.empty())
            throw UsageError("nothing to compile: there is no source among the files");
        if (!command.output.empty() && command.sources.size() > 1)
            throw UsageError(
                "A single input file is required for a non-link phase when an outputfile is specified");
    }
    for (const std::string& input : command.link_inputs) {
        if (!input.empty() && !input.starts_with("-l") && !std::filesystem::exists(input))
            throw UsageError("there is no file '" + input + "'");
    }
}

}  // namespace

Command parse(const Arguments& command_line) {
    const auto of_environment = [](const char* name) {
        const char* const flags = std::getenv(name);
        return words_of(flags == nullptr ? "" : flags);
    };
    Arguments arguments = of_environment("NVCC_PREPEND_FLAGS");
    append(arguments, with_options_files(command_line));
    append(arguments, of_environment("NVCC_APPEND_FLAGS"));
    const bool forward = std::ranges::any_of(arguments, [](const std::string& argument) {
        return std::ranges::find(kForward, argument) != std::end(kForward);
    });
    Command command;
    std::string language;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        const bool is_language = argument == "-x" || argument == "--x";
        if (std::ranges::find(kForward, argument) != std::end(kForward)) continue;
        if (!argument.starts_with('-')) {
            add_input(command, argument, language);
            continue;
        }
        Match match = is_language ? Match{} : find_option(argument);
        if (!is_language && match.option == nullptr) {
            if (!forward)
                throw UsageError("Unknown option '" + argument +
                                 "'. An option of the host compiler is handed on by -Xcompiler " + argument);
            command.host.push_back(argument);
            continue;
        }
        if (is_language || (match.option->takes == Takes::value && !match.has_value)) {
            if (++i == arguments.size()) throw UsageError("'" + argument + "' needs a value");
            match.value = arguments[i];
        }
        if (is_language) {
            if (match.value != "cu" && match.value != "c++" && match.value != "c")
                throw UsageError("-x " + match.value + ": expected cu, c++ or c");
            language = match.value;
        } else if (match.option->joined) {  // a list: -Ia,b
            if (match.value.empty()) throw UsageError("'" + argument + "' needs a value");
            for (const std::string& part : split_at_commas(match.value))
                match.option->apply(command, part);
        } else {
            match.option->apply(command, match.value);
        }
    }
    std::ranges::sort(command.architectures, {}, [](const std::string& it) { return std::stoi(it); });
    // Names of device variables are looked up in a module.
    if (command.action == Action::module) find_option("-rdc").option->apply(command, "true");
    check(command);
    return command;
}

}  // namespace nvcc
