#include "renewed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>

#include "exercise_file.hpp"
#include "file_lock.hpp"
#include "functions.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// Is there a definition of `function`? A text whose brackets do not match has none.
bool defines(std::string_view text, const std::string& function) {
    try {
        return !find_functions(text, function).empty();
    } catch (const ExerciseError&) {
        return false;
    }
}

// The functions that a file defines at the beginning of a line.
std::vector<std::string> functions_of(const std::string& text) {
    static const std::regex kHead(
        R"((?:^|\n)(?:inline|__global__|__device__|static|constexpr)\b[^;{}()]*?(\w+)\()");
    std::vector<std::string> names;
    for (std::sregex_iterator match(text.begin(), text.end(), kHead), end; match != end; ++match)
        names.push_back(match->str(1));
    return names;
}

// A day's files of exercises, as they are and as they would be made today.
struct LearnersFile {
    fs::path path;
    std::string text{};   // the learner's; empty: there is none
    std::string blank{};  // of today; empty: no exercise is in this file now
    std::vector<std::string> kernels{};
};

class FilesOfDay {
  public:
    FilesOfDay(const Workbook& book, const Chapter& chapter) {
        for (const WorkbookEntry& entry : book.entries()) {
            if (entry.chapter != &chapter || entry.exercise->by_hand()) continue;
            LearnersFile& file = files_[book.mine(entry)];
            if (file.blank.empty()) {
                file.path = book.mine(entry);
                file.blank = book.blank(entry);
                if (fs::exists(file.path)) file.text = read_text_file(file.path);
            }
            file.kernels.insert(file.kernels.end(), entry.exercise->kernels.begin(),
                                entry.exercise->kernels.end());
        }
        // Files that no exercise is in any more, with functions of today's exercises.
        const fs::path top = book.my_directory() / chapter.directory;
        for (const auto& entry : fs::recursive_directory_iterator(top)) {
            const fs::path& path = entry.path();
            if ((path.extension() != ".cu" && path.extension() != ".cuh") || files_.contains(path)) continue;
            std::string text = read_text_file(path);
            if (has_kernel_of_today(text)) files_[path] = {.path = path, .text = std::move(text)};
        }
    }

    void renew() {
        if (std::ranges::none_of(files_, [&](const auto& each) { return is_outdated(each.second); })) return;
        std::map<fs::path, std::string> fresh;  // all of them, before any is replaced
        for (const auto& [path, file] : files_)
            if (!file.blank.empty()) fresh[path] = with_my_bodies(file);
        for (const auto& [path, file] : files_) {
            if (!file.blank.empty() && fresh[path] == file.text) continue;
            if (!file.text.empty()) {
                const fs::path aside = free_name(path, ".before");
                fs::rename(path, aside);
                fmt::print(stderr,
                           "{} the lesson of {} has changed: the functions that you wrote are in its file of "
                           "today{}. Your file of before is kept as {}\n",
                           styled("course:", kNotice, stderr), Workbook::shown(path), left_blank_,
                           Workbook::shown(aside));
            }
            if (!file.blank.empty()) replace_file(path, fresh[path]);
        }
    }

  private:
    bool has_kernel_of_today(const std::string& text) const {
        return std::ranges::any_of(files_, [&](const auto& each) {
            return std::ranges::any_of(each.second.kernels,
                                       [&](const std::string& kernel) { return defines(text, kernel); });
        });
    }

    bool is_outdated(const LearnersFile& file) const {
        if (file.text.empty()) return false;
        if (file.blank.empty()) return true;
        // Not the learner's own functions, but one that the lesson has and this file lacks.
        for (const std::string& name : functions_of(file.blank)) {
            if (file.text.find(name + "(") == std::string::npos) return true;
        }
        // An exercise that is in another file now.
        return std::ranges::any_of(files_, [&](const auto& each) {
            return std::ranges::any_of(each.second.kernels, [&](const std::string& kernel) {
                return !defines(file.blank, kernel) && defines(file.text, kernel);
            });
        });
    }

    std::string with_my_bodies(const LearnersFile& file) {
        std::string text = file.blank;
        for (const std::string& kernel : file.kernels) {
            const auto source = std::ranges::find_if(files_, [&](const auto& each) {
                return (file.text.empty() || !defines(file.text, kernel) || each.second.path == file.path) &&
                       defines(each.second.text, kernel);
            });
            if (source == files_.end()) continue;
            try {
                text = with_bodies_from(text, source->second.text, {kernel});
            } catch (const ExerciseError&) {
                left_blank_ += fmt::format(", except {}, which has other definitions now", kernel);
            }
        }
        return text;
    }

    std::map<fs::path, LearnersFile> files_;
    std::string left_blank_;
};

}  // namespace

void renew_files(const Workbook& book, Logbook& logbook) {
    for (const Chapter& chapter : book.chapters()) {
        if (!fs::exists(book.my_directory() / chapter.directory)) continue;
        std::string lessons;
        for (const WorkbookEntry& entry : book.entries()) {
            if (entry.chapter == &chapter && !entry.exercise->by_hand())
                lessons += entry.exercise->file + read_text_file(book.lesson(entry));
        }
        const std::string stamp = fmt::format("{:x}", std::hash<std::string>{}(lessons));
        if (logbook.lesson_stamp(chapter.name) == stamp) continue;
        {
            const FileLock lock(book.my_directory(), /*purpose=*/"");  // another command may do the same
            FilesOfDay(book, chapter).renew();
        }
        logbook.set_lesson_stamp(chapter.name, stamp);
    }
}

}  // namespace course::tool
