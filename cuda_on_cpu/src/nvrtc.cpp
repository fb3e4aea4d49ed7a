#include <nvrtc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "child_process.hpp"
#include "module_text.hpp"
#include "modules.hpp"

using Headers = std::vector<std::pair<std::string, std::string>>;  // name, text

struct _nvrtcProgram {
    std::string source;
    std::string name;
    Headers headers;
    std::vector<std::string> expressions;
    std::map<std::string, std::string> lowered_names;
    bool compiled = false;
    std::string log;
    std::string module;  // a shared object
    std::string text;    // the same module as text, which programs treat as PTX
};

namespace cuda_on_cpu {
namespace {

namespace fs = std::filesystem;

// For each name expression a pointer is appended to the source, with this name and the expression's
// number.
constexpr std::string_view kPointer = "cuda_on_cpu_name_";

class Directory {
  public:
    Directory() : path_((fs::temp_directory_path() / "nvrtc_XXXXXX").string()) {
        if (mkdtemp(path_.data()) == nullptr) path_.clear();
    }
    ~Directory() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    bool exists() const { return !path_.empty(); }
    fs::path path() const { return path_; }

  private:
    std::string path_;
};

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// The nvcc that was built with this library or, if that does not exist, the one on the PATH.
std::string nvcc() {
    if (const char* named = std::getenv("CUDA_ON_CPU_NVCC")) return named;
    return fs::exists(CUDA_ON_CPU_NVCC_PATH) ? CUDA_ON_CPU_NVCC_PATH : "nvcc";
}

bool starts_with_one_of(std::string_view option, std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [option](std::string_view name) {
        return option.starts_with(name) &&
               (option.size() == name.size() || option[name.size()] == '=' || option[name.size()] == ' ');
    });
}

// Options that only NVRTC has, or that have no effect on the CPU.
bool is_ignored(std::string_view option) {
    return starts_with_one_of(option, {"-default-device",
                                       "--device-as-default-execution-space",
                                       "-dc",
                                       "--device-c",
                                       "-dw",
                                       "--device-w",
                                       "-rdc",
                                       "--relocatable-device-code",
                                       "-dlto",
                                       "--dlink-time-opt",
                                       "-ewp",
                                       "--extensible-whole-program",
                                       "-Ofc",
                                       "--Ofast-compile",
                                       "-modify-stack-limit",
                                       "--modify-stack-limit",
                                       "-device-stack-protector",
                                       "--device-stack-protector",
                                       "-builtin-move-forward",
                                       "--builtin-move-forward",
                                       "-builtin-initializer-list",
                                       "--builtin-initializer-list",
                                       "-pch",
                                       "--pch",
                                       "-pch-dir",
                                       "--pch-dir",
                                       "-pch-verbose",
                                       "--pch-verbose",
                                       "-pch-messages",
                                       "--pch-messages",
                                       "-create-pch",
                                       "--create-pch",
                                       "-use-pch",
                                       "--use-pch",
                                       "-opt-info",
                                       "--optimization-info",
                                       "-brief-diag",
                                       "--brief-diagnostics",
                                       "-no-cache",
                                       "--no-cache",
                                       "-no-source-include",
                                       "--no-source-include",
                                       "-extra-device-vectorization",
                                       "--extra-device-vectorization",
                                       "-version-ident",
                                       "--version-ident",
                                       "-jump-table-density",
                                       "--jump-table-density",
                                       "-noeh",
                                       "-std=c++11",
                                       "-fdevice-time-trace",
                                       "--fdevice-time-trace",
                                       "-lto"});
}

// NVIDIA's headers would hide those of the stand-in.
bool is_toolkit(const fs::path& directory) {
    std::error_code ignored;
    return fs::exists(directory / "cuda_runtime_api.h", ignored) &&
           !fs::exists(directory / "cuda_on_cpu" / "launch.h", ignored);
}

std::vector<std::string> compiler_options(int count, const char* const* options) {
    std::vector<std::string> result;
    for (int i = 0; i < count; ++i) {
        std::string option = options[i];
        while (!option.empty() && option.back() == ' ')
            option.pop_back();
        if (option.empty() || is_ignored(option)) continue;
        const bool alone = option == "-I" || option == "--include-path";
        if (alone && i + 1 < count) option = "-I" + std::string(options[++i]);
        for (const std::string_view include : {"--include-path=", "-I="}) {
            if (option.starts_with(include)) option = "-I" + option.substr(include.size());
        }
        if (option.starts_with("-I")) {
            const std::size_t path = std::min(option.find_first_not_of(' ', 2), option.size());
            option = "-I" + option.substr(path);
            if (is_toolkit(option.substr(2))) continue;
        } else if (option.starts_with("-D") || option.starts_with("-U")) {
            std::size_t name = std::min(option.find_first_not_of(' ', 2), option.size());
            if (name < option.size() && option[name] == '=') ++name;
            option = option.substr(0, 2) + option.substr(name);
        }
        result.push_back(option);
    }
    return result;
}

// The files from which a program and its headers are compiled. The include directory is deep enough
// for names such as "../x.h". Absolute names are replaced in the texts, because they would lead
// outside the directory.
class Files {
  public:
    Files(const fs::path& directory, const Headers& headers)
        : absolute_(directory / "absolute"), headers_(directory / "headers"), source_(directory / "source") {
        for (int level = deepest_climb(headers); level > 0; --level) {
            headers_ /= "below";
            source_ /= "below";
        }
        for (const auto& [name, text] : headers)
            if (fs::path(name).is_absolute()) renamed_.emplace_back(name, in_place_of(name).string());
    }

    fs::path source() const { return source_ / "program.cu"; }
    fs::path header(const std::string& name) const {
        return fs::path(name).is_absolute() ? in_place_of(name) : headers_ / name;
    }
    std::string include_option() const { return "-I" + headers_.string(); }

    // Writes the file. False: not possible, for instance because a header has the name of another
    // header's directory.
    bool write(const fs::path& file, const std::string& text) const {
        std::error_code error;
        fs::create_directories(file.parent_path(), error);
        std::ofstream stream(file, std::ios::binary);
        stream << with_other_names(text);
        return static_cast<bool>(stream.flush());
    }

  private:
    fs::path in_place_of(const fs::path& name) const {
        return absolute_ / name.lexically_normal().relative_path();
    }

    // The largest number of directories that a name leads upwards: 2 for "../../x.h", 1 for
    // "a/../../x.h".
    static int deepest_climb(const Headers& headers) {
        int deepest = 0;
        for (const auto& [name, text] : headers) {
            const fs::path path = fs::path(name).lexically_normal();
            deepest = std::max(deepest, static_cast<int>(std::count(path.begin(), path.end(), "..")));
        }
        return deepest;
    }

    std::string with_other_names(const std::string& text) const {
        if (renamed_.empty()) return text;
        static const std::regex kInclude(R"(#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"])");
        std::string result;
        auto at = text.begin();
        for (std::sregex_iterator match(text.begin(), text.end(), kInclude), end; match != end; ++match) {
            const auto renamed = std::ranges::find(renamed_, match->str(1), &Renamed::first);
            if (renamed == renamed_.end()) continue;
            result.append(at, (*match)[1].first);
            result += renamed->second;
            at = (*match)[1].second;
        }
        return result.append(at, text.end());
    }

    using Renamed = std::pair<std::string, std::string>;
    fs::path absolute_;
    fs::path headers_;
    fs::path source_;
    std::vector<Renamed> renamed_;
};

std::string source_of(const _nvrtcProgram& program) {
    std::string text = "#line 1 \"" + program.name + "\"\n" + program.source + "\n";
    for (std::size_t i = 0; i < program.expressions.size(); ++i) {
        const std::string& expression = program.expressions[i];
        const std::size_t first = std::min(expression.find_first_not_of(' '), expression.size());
        const char* address = first < expression.size() && expression[first] == '&' ? "" : "&";
        text += "#line 1 \"name expression\"\nextern \"C\" { __attribute__((used)) auto " +
                std::string(kPointer) + std::to_string(i) + " = " + address + expression + "; }\n";
    }
    return text;
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* nvrtcGetErrorString(nvrtcResult result) {
    static constexpr const char* kNames[] = {"NVRTC_SUCCESS",
                                             "NVRTC_ERROR_OUT_OF_MEMORY",
                                             "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                             "NVRTC_ERROR_INVALID_INPUT",
                                             "NVRTC_ERROR_INVALID_PROGRAM",
                                             "NVRTC_ERROR_INVALID_OPTION",
                                             "NVRTC_ERROR_COMPILATION",
                                             "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                             "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                             "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                             "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                             "NVRTC_ERROR_INTERNAL_ERROR",
                                             "NVRTC_ERROR_TIME_FILE_WRITE_FAILED"};
    const auto index = static_cast<std::size_t>(result);
    return index < std::size(kNames) ? kNames[index] : "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int* major, int* minor) {
    if (major == nullptr || minor == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
    if (count == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    *count = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* archs) {
    if (archs == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    *archs = 90;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int header_count,
                               const char* const* headers, const char* const* include_names) {
    if (program == nullptr || source == nullptr || header_count < 0 ||
        (header_count > 0 && (headers == nullptr || include_names == nullptr)))
        return NVRTC_ERROR_INVALID_INPUT;
    for (int i = 0; i < header_count; ++i)
        if (headers[i] == nullptr || include_names[i] == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    auto* made = new _nvrtcProgram;
    made->source = source;
    made->name = name == nullptr || *name == 0 ? "default_program" : name;
    for (int i = 0; i < header_count; ++i)
        made->headers.emplace_back(include_names[i], headers[i]);
    *program = made;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
    if (program == nullptr || *program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
    delete *program;
    *program = nullptr;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count, const char* const* options) {
    if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
    if (option_count < 0 || (option_count > 0 && options == nullptr)) return NVRTC_ERROR_INVALID_INPUT;
    for (int i = 0; i < option_count; ++i)
        if (options[i] == nullptr) return NVRTC_ERROR_INVALID_OPTION;
    const Directory directory;
    if (!directory.exists()) return NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
    const fs::path module = directory.path() / "program.cubin";
    const Files files(directory.path(), program->headers);
    const fs::path source = files.source();
    if (!files.write(source, source_of(*program))) return NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
    for (const auto& [name, text] : program->headers) {
        if (files.write(files.header(name), text)) continue;
        program->log = "nvrtc: the header '" + name +
                       "' cannot be written; expected the name of a file, which is no other header's "
                       "directory\n";
        program->compiled = true;
        return NVRTC_ERROR_COMPILATION;
    }
    // As in NVRTC, headers beside the source are found.
    const fs::path beside = fs::path(program->name).parent_path();
    std::vector<std::string> command = {
        nvcc(), "-cubin",
        "-O2",  // NVRTC optimises unless it is told not to
        "-o",   module,   files.include_option(), "-I" + (beside.empty() ? "." : beside.string())};
    for (std::string& option : compiler_options(option_count, options))
        command.push_back(std::move(option));
    command.push_back(source);
    const ChildResult result = read_child({.arguments = command, .errors = Errors::with_output});
    const int status = result.exit_code;
    program->log = result.output;
    program->compiled = true;
    program->module = status == 0 ? contents(module) : "";
    program->text = status == 0 ? text_of_image(program->module) : "";
    if (status == 127) {
        program->log +=
            "nvrtc: '" + command[0] +
            "' cannot be run. NVRTC compiles by nvcc of cuda_on_cpu: put its directory on the PATH, "
            "or name it in CUDA_ON_CPU_NVCC\n";
        std::fprintf(stderr, "cuda_on_cpu: %s", program->log.c_str());
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    if (status != 0)
        return program->log.find("nvcc fatal") != std::string::npos ? NVRTC_ERROR_INVALID_OPTION
                                                                    : NVRTC_ERROR_COMPILATION;
    for (std::size_t i = 0; i < program->expressions.size(); ++i)
        program->lowered_names[program->expressions[i]] =
            pointed_to(program->module, std::string(kPointer) + std::to_string(i));
    return NVRTC_SUCCESS;
}

namespace {

nvrtcResult get_size(nvrtcProgram program, const std::string& what, std::size_t* size, std::size_t more) {
    if (size == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    if (!program->compiled || what.empty()) return NVRTC_ERROR_INVALID_PROGRAM;
    *size = what.size() + more;
    return NVRTC_SUCCESS;
}

nvrtcResult get(nvrtcProgram program, const std::string& what, char* to, std::size_t more) {
    std::size_t size = 0;
    if (to == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    if (const nvrtcResult error = get_size(program, what, &size, more); error != NVRTC_SUCCESS) return error;
    std::copy(what.c_str(), what.c_str() + size, to);
    return NVRTC_SUCCESS;
}

}  // namespace

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* size) {
    if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
    if (size == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    *size = program->log.size() + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
    if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
    if (log == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    std::copy(program->log.c_str(), program->log.c_str() + program->log.size() + 1, log);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, std::size_t* size) {
    return program == nullptr ? NVRTC_ERROR_INVALID_PROGRAM : get_size(program, program->text, size, 1);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx) {
    return program == nullptr ? NVRTC_ERROR_INVALID_PROGRAM : get(program, program->text, ptx, 1);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* size) {
    return program == nullptr ? NVRTC_ERROR_INVALID_PROGRAM : get_size(program, program->module, size, 0);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
    return program == nullptr ? NVRTC_ERROR_INVALID_PROGRAM : get(program, program->module, cubin, 0);
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
    if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
    if (expression == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    if (program->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    program->expressions.emplace_back(expression);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression, const char** name) {
    if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
    if (expression == nullptr || name == nullptr) return NVRTC_ERROR_INVALID_INPUT;
    if (!program->compiled) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    const auto found = program->lowered_names.find(expression);
    if (found == program->lowered_names.end() || found->second.empty())
        return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    *name = found->second.c_str();
    return NVRTC_SUCCESS;
}
