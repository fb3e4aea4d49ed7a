#include "renumbered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "file_lock.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

struct Renumbered {
    std::string_view before;
    std::string_view now;
};
constexpr std::size_t kShortName = std::string_view("day00").size();
constexpr std::array kDays = {Renumbered{"day02_copies_and_streams", "day09_copies_and_streams"},
                              Renumbered{"day43_eight_bit_attention", "day44_eight_bit_attention"},
                              Renumbered{"day27_hopper_attention", "day43_hopper_attention"}};

void say(const std::string& text) {
    fmt::print(stderr, "{} {}\n", styled("course:", kNotice, stderr), text);
}

}  // namespace

void rename_days(const fs::path& mine) {
    for (const auto& [before, now] : kDays) {
        const fs::path from = mine / before;
        const fs::path to = mine / now;
        std::error_code error;
        if (!fs::is_directory(from, error)) continue;
        const FileLock lock(mine, /*purpose=*/"");
        if (!fs::is_directory(from, error)) continue;  // another command was faster
        if (fs::exists(to, error)) {
            say(fmt::format("{} has the number of before, and {} exists: your files in it are not used",
                            from.string(), to.string()));
            continue;
        }
        fs::rename(from, to, error);
        if (error)
            say(fmt::format("{} could not be renamed to {}: {}", from.string(), to.string(),
                            error.message()));
        else
            say(fmt::format("{} is {} now: within a part, numbers are the order in which days are read",
                            before, now));
    }
}

Renumbering::Renumbering(const std::vector<std::string>& ids) {
    const auto is_new = [](const std::string& id) {
        return id.starts_with("day09/") || id.starts_with("day44/") ||
               (id.starts_with("day43/") && id != "day43/places" && id != "day43/overlap");
    };
    day43_is_old_ = std::ranges::none_of(ids, is_new);
}

std::string Renumbering::operator()(const std::string& id) const {
    const std::string_view day = std::string_view(id).substr(0, id.find('/'));
    const auto found = std::ranges::find_if(
        kDays, [day](const Renumbered& each) { return each.before.substr(0, kShortName) == day; });
    if (found == kDays.end() || (day == "day43" && !day43_is_old_)) return id;
    return std::string(found->now.substr(0, kShortName)) + id.substr(day.size());
}

}  // namespace course::tool
