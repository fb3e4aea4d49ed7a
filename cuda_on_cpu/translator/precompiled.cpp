#include "precompiled.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <string_view>

#include "make_rule.hpp"
#include "process.hpp"

namespace translator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStandardHeaders[] = {"algorithm", "array", "stdexcept", "string", "vector"};
constexpr const char* kTestDefinition = "-DGTEST_HAS_PTHREAD=1";  // where GoogleTest is used

// Serialises compilers that run at the same time: they would write the same file.
class Lock {
  public:
    explicit Lock(const fs::path& file) : file_(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
        if (file_ >= 0) flock(file_, LOCK_EX);
    }
    ~Lock() {
        if (file_ >= 0) close(file_);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    int file_;
};

// Macros that change these headers. g++ rejects precompiled headers if another macro would have
// changed them.
constexpr std::string_view kDefinitionsOfHeaders[] = {"-DCUDA_ON_CPU", "-DGTEST_", "-DNDEBUG", "-D_"};

bool is_definition_of_program(std::string_view option) {
    return option.starts_with("-D") &&
           std::none_of(std::begin(kDefinitionsOfHeaders), std::end(kDefinitionsOfHeaders),
                        [&](std::string_view name) { return option.starts_with(name); });
}

// Include directories of a lesson and warning options do not affect these headers. Nor does the
// order of most options, which depends on the libraries that a target links; where it does matter
// (-fPIC -fPIE), g++ rejects headers that do not fit.
std::string name_of(const std::vector<std::string>& command, const std::vector<std::string>& headers) {
    std::string in_order;
    std::set<std::string> in_any_order;
    for (std::size_t i = 0; i < command.size(); ++i) {
        const std::string& option = command[i];
        if (option == "-I" || option == "-isystem")
            ++i;
        else if (option.starts_with("-I") || option.starts_with("-W"))
            continue;
        else if (option.starts_with("-D") || option.starts_with("-f") || option.starts_with("-g") ||
                 option.starts_with("-m"))
            in_any_order.insert(option);
        else
            in_order += option + '\n';
    }
    for (const std::string& option : in_any_order)
        in_order += option + '\n';
    for (const std::string& name : headers)
        in_order += name + '\n';
    return std::to_string(std::hash<std::string>()(in_order));
}

// The files that were read for the target of `rule`; "" if there is no such file.
std::string files_of(const fs::path& rule) {
    std::ifstream file(rule);
    return std::string(prerequisites(std::string(std::istreambuf_iterator<char>(file), {})));
}

// Is `made` newer than all of these?
bool is_up_to_date(const fs::path& made, const std::string& files) {
    std::error_code error;
    const auto time = fs::last_write_time(made, error);
    if (error || files.empty()) return false;
    for (const std::string& name : names_in(files)) {
        if (fs::last_write_time(name, error) > time || error) return false;
    }
    return true;
}

// Does the text have this line, but for spaces?
bool includes(const std::string& text, std::string_view header) {
    const std::regex line("(^|\\n)[ \\t]*#[ \\t]*include[ \\t]*<" + std::string(header) + ">");
    return std::regex_search(text, line);
}

// Which headers are compiled for a source. A program of one's own may have a global variable
// `count` or `array` beside `using namespace std`, and gets no standard header that it does not
// include.
std::vector<std::string> headers_for(const std::string& own_source) {
    std::vector<std::string> headers = {"cuda_runtime.h"};
    std::ifstream file(own_source);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (const std::string_view name : kStandardHeaders) {
        if (own_source.empty() || includes(text, name)) headers.emplace_back(name);
    }
    return headers;
}

// The result gets the time at which compilation began, so that a header that is saved during
// compilation is newer.
bool make(const std::vector<std::string>& command, const std::vector<std::string>& headers,
          const fs::path& header, const fs::path& made, const fs::path& rule) {
    const auto begin = fs::file_time_type::clock::now();
    std::ofstream text(header);
    for (const std::string& name : headers)
        text << "#include <" << name << ">\n";
    if (std::find(command.begin(), command.end(), kTestDefinition) != command.end())
        text << "#include <gtest/gtest.h>\n";
    text.close();
    std::error_code error;
    // An old time: a file that is created during a build would be newer than the objects, and ninja
    // would then rebuild them.
    fs::last_write_time(header, begin - std::chrono::hours(24), error);

    const std::string unfinished = made.string() + ".unfinished";
    const std::string unfinished_rule = rule.string() + ".unfinished";
    std::vector<std::string> compile = command;
    // -c, because without it a wrapper such as mpicxx adds its libraries to the command.
    compile.insert(compile.end(), {"-c", "-x", "c++-header", header, "-o", unfinished, "-MD", "-MT", "made",
                                   "-MF", unfinished_rule});
    if (!text || run_program(compile) != 0) return false;
    fs::last_write_time(unfinished, begin, error);
    if (!error) fs::rename(unfinished_rule, rule, error);
    if (!error) fs::rename(unfinished, made, error);
    return !error;
}

}  // namespace

std::string private_directory(const std::string& directory) {
    // If it exists already, the checks below decide.
    mkdir(directory.c_str(), S_IRWXU);
    struct stat file {};
    const bool is_private = lstat(directory.c_str(), &file) == 0 && S_ISDIR(file.st_mode) &&
                            file.st_uid == geteuid() && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    return is_private ? directory : "";
}

PrecompiledHeaders precompiled_headers(const std::string& directory,
                                       const std::vector<std::string>& full_command,
                                       const std::string& own_source) {
    std::vector<std::string> command = full_command;
    std::erase_if(command, is_definition_of_program);
    // With it, g++ would not write the headers.
    std::erase(command, "-fsyntax-only");
    std::error_code error;
    fs::create_directories(directory, error);
    const std::vector<std::string> headers = headers_for(own_source);
    const std::string header = (fs::path(directory) / (name_of(command, headers) + ".hpp")).string();
    const std::string made = header + ".gch";
    const std::string rule = header + ".d";
    const Lock lock(header + ".lock");
    if (!is_up_to_date(made, files_of(rule)) && !make(command, headers, header, made, rule)) return {};
    return {{"-fpch-preprocess", "-include", header}, files_of(rule)};
}

}  // namespace translator
