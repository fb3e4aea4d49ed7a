#include "image_file.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "module_ranges.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::string_view kDeleted = " (deleted)";  // what Linux appends to the name of such a file

// dladdr() returns the names by which the files were opened, which may be relative.
std::string mapped_file(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        int name = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &name) == 2 &&
            wanted >= begin && wanted < end)
            return line.substr(static_cast<std::size_t>(name));
    }
    return "";
}

std::string in_proc(const std::string& name) {
    return "/proc/" + std::to_string(getpid()) + "/" + name;
}

}  // namespace

std::string file_of_image(const void* instruction) {
    if (const int file = file_of_module(instruction); file >= 0) return in_proc("fd/" + std::to_string(file));
    std::string name = mapped_file(instruction);
    if (!name.starts_with("/")) return "";
    if (!name.ends_with(kDeleted)) return name;
    // A new build has replaced the program while it runs.
    std::error_code error;
    if (std::filesystem::read_symlink("/proc/self/exe", error) == name) return in_proc("exe");
    name.resize(name.size() - kDeleted.size());
    return name;
}

}  // namespace cuda_on_cpu
