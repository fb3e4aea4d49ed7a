#include "precompiled.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include "process.hpp"

namespace translator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeaders[] = {"cuda_runtime.h", "algorithm", "array", "stdexcept", "string", "vector"};
constexpr const char* kTestDefinition = "-DGTEST_HAS_PTHREAD=1";  // where GoogleTest is used

// Two compilers that ran at the same time would write the same file.
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

// Where headers are looked for and what is warned of make no difference to what they say.
std::string name_of(const std::vector<std::string>& command) {
    std::string all;
    for (std::size_t i = 0; i < command.size(); ++i) {
        const std::string& option = command[i];
        if (option == "-I" || option == "-isystem")
            ++i;
        else if (!option.starts_with("-I") && !option.starts_with("-W"))
            all += option + '\n';
    }
    return std::to_string(std::hash<std::string>()(all));
}

// What stands behind the colon of the compiler's "made: header header \", over several lines. "" when there is no such file.
std::string prerequisites(const fs::path& rule) {
    std::ifstream file(rule);
    std::string made;
    std::string files;
    file >> made;
    std::getline(file, files, '\0');
    while (files.ends_with('\n'))
        files.pop_back();
    return files;
}

// Is `made` newer than all of these?
bool is_up_to_date(const fs::path& made, const std::string& files) {
    std::error_code error;
    const auto time = fs::last_write_time(made, error);
    if (error || files.empty()) return false;
    std::istringstream words(files);
    for (std::string word; words >> word;) {
        if (word != "\\" && (fs::last_write_time(word, error) > time || error)) return false;
    }
    return true;
}

bool make(const std::vector<std::string>& command, const fs::path& header, const fs::path& made,
          const fs::path& rule) {
    std::ofstream text(header);
    for (const char* const name : kHeaders)
        text << "#include <" << name << ">\n";
    if (std::find(command.begin(), command.end(), kTestDefinition) != command.end())
        text << "#include <gtest/gtest.h>\n";
    text.close();
    const fs::path unfinished = made.string() + ".unfinished";
    std::vector<std::string> compile = command;
    compile.insert(compile.end(), {"-x", "c++-header", header, "-o", unfinished, "-MD", "-MF", rule});
    std::error_code error;
    if (!text || run_program(compile) != 0) return false;
    fs::rename(unfinished, made, error);
    return !error;
}

}  // namespace

PrecompiledHeaders precompiled_headers(const std::string& directory,
                                       const std::vector<std::string>& command) {
    std::error_code error;
    fs::create_directories(directory, error);
    const std::string header = (fs::path(directory) / (name_of(command) + ".hpp")).string();
    const std::string made = header + ".gch";
    const std::string rule = header + ".d";
    const Lock lock(header + ".lock");
    if (!is_up_to_date(made, prerequisites(rule)) && !make(command, header, made, rule)) return {};
    return {{"-fpch-preprocess", "-include", header}, prerequisites(rule)};
}

}  // namespace translator
