#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

#include "commands.hpp"
#include "errors.hpp"

namespace course::tool {
namespace {

std::uintmax_t bytes_in(const std::filesystem::path& directory) {
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
        if (entry.is_regular_file() && !entry.is_symlink()) bytes += entry.file_size();
    }
    return bytes;
}

}  // namespace

int clean(const Checkout& checkout) {
    const std::filesystem::path builds = checkout.root / "build";
    if (!std::filesystem::exists(builds)) {
        fmt::print("nothing to clean: there is no {}\n", builds.string());
        return kSuccess;
    }
    const std::uintmax_t bytes = bytes_in(builds);
    std::filesystem::remove_all(builds);
    fmt::print("removed {}, {:.1f} GB; the next command builds again\n", builds.string(),
               static_cast<double>(bytes) * 1e-9);
    return kSuccess;
}

}  // namespace course::tool
