#include "learner_program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "check_run.hpp"
#include "errors.hpp"
#include "file_lock.hpp"

namespace course::tool {

void require_my_file(const Workbook& book, const std::vector<WorkbookEntry>& exercises) {
    const auto is_there = [&](const WorkbookEntry& entry) {
        return std::filesystem::exists(book.mine(entry));
    };
    if (std::ranges::any_of(exercises, is_there)) return;
    throw UsageError(fmt::format("{} is not there yet: ./course next {} copies it",
                                 Workbook::shown(book.mine(exercises.front())),
                                 exercises.front().chapter->name));
}

void build_my_program(const Workbook& book, const WorkbookEntry& entry, const Checkout& build,
                      const std::string& target) {
    const FileLock lock(build.root / "build" / "check.lock", "running your " + entry.chapter->name);
    const std::string errors = build_mine(book, entry, build, {target, "run of yours", "lesson"});
    if (errors.empty()) return;
    fmt::print(stderr, "{}", errors);
    throw BuildError(fmt::format("your {} does not compile: see above", entry.chapter->name));
}

}  // namespace course::tool
