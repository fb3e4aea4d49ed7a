#include "renewed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "exercise_file.hpp"
#include "file_lock.hpp"
#include "functions.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// Why no function can be found in `text`: its brackets do not match. Empty: they do.
std::string mistake_in(std::string_view text) {
    try {
        find_functions(text, "any");
        return "";
    } catch (const ExerciseError& error) {
        return error.what();
    }
}

// Is there a definition of `function`? A text whose brackets do not match has none.
bool defines(std::string_view text, const std::string& function) {
    try {
        return !find_functions(text, function).empty();
    } catch (const ExerciseError&) {
        return false;
    }
}

// Is every body of `function` as it was copied: the text of the task, and perhaps `return {};`?
bool is_blank(std::string_view text, const std::string& function) {
    return std::ranges::all_of(find_functions(text, function), [&](const FunctionDefinition& each) {
        std::string_view body = text.substr(each.body_begin, each.body_end - each.body_begin);
        if (body.find("// TODO ") == std::string_view::npos) return false;
        std::string code;
        while (!body.empty()) {
            const std::string_view line = next_line(body);
            std::ranges::copy_if(line.substr(0, line.find("//")), std::back_inserter(code),
                                 [](char c) { return c != ' ' && c != '\t' && c != '\r'; });
        }
        return code == "{}" || code == "{return{};}";
    });
}

// The functions that a file defines at the beginning of a line.
std::vector<std::string> functions_of(const std::string& text) {
    static const std::regex kHead(
        R"((?:^|\n)(?:inline|__global__|__device__|static|constexpr|template)\b)"
        R"((?:[^;{}()]|__launch_bounds__\([^()]*\))*?\b(?!__launch_bounds__\b)(\w+)\()");
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
        std::set<fs::path> by_hand;
        for (const WorkbookEntry& entry : book.entries()) {
            if (entry.chapter != &chapter) continue;
            if (entry.exercise->by_hand()) {
                by_hand.insert(book.mine(entry));
                continue;
            }
            LearnersFile& file = files_[book.mine(entry)];
            if (file.blank.empty()) {
                file.path = book.mine(entry);
                file.blank = book.blank(entry);
                if (fs::exists(file.path)) file.text = read_text_file(file.path);
            }
            file.kernels.insert(file.kernels.end(), entry.exercise->kernels.begin(),
                                entry.exercise->kernels.end());
        }
        // Files that no exercise is in any more. A learner's own program in this directory is none,
        // although it may define the same functions: the file of today has those, too. A name that
        // begins with a dot is an editor's.
        std::map<fs::path, LearnersFile> left_over;
        const fs::path top = book.my_directory() / chapter.directory;
        for (const auto& entry :
             fs::recursive_directory_iterator(top, fs::directory_options::skip_permission_denied)) {
            const fs::path& path = entry.path();
            if ((path.extension() != ".cu" && path.extension() != ".cuh") || !entry.is_regular_file() ||
                path.filename().string().starts_with('.') || files_.contains(path) || by_hand.contains(path))
                continue;
            std::string text = read_text_file(path);
            if (has_what_today_lacks(text)) left_over[path] = {.path = path, .text = std::move(text)};
        }
        files_.merge(left_over);
    }

    // False: not now, because the functions of a file cannot be found.
    bool renew() {
        const bool outdated =
            std::ranges::any_of(files_, [&](const auto& each) { return is_outdated(each.second); });
        for (const auto& [path, file] : files_) {
            const std::string mistake = mistake_in(file.text);
            if (mistake.empty()) continue;
            if (outdated)
                fmt::print(
                    stderr,
                    "{} the lesson of {} has changed. Your file is renewed when its brackets match: {}\n",
                    styled("course:", kNotice, stderr), Workbook::shown(path), mistake);
            return false;
        }
        if (outdated) replace_files();
        return true;
    }

  private:
    void replace_files() {
        std::map<fs::path, std::string> fresh;  // all of them, before any is replaced
        for (const auto& [path, file] : files_)
            if (!file.blank.empty()) fresh[path] = with_my_bodies(file);
        // First the files that are new, last those that no exercise is in any more: a function has
        // a place at any time, also if a file cannot be written.
        for (const auto& [path, file] : files_) {
            if (file.text.empty()) replace_file(path, fresh[path]);
        }
        for (const auto& [path, file] : files_) {
            if (file.text.empty() || file.blank.empty() || fresh[path] == file.text) continue;
            const fs::path aside = free_name(path, ".before");
            replace_file(aside, file.text);  // a copy: the file may be a link, which stays one
            replace_file(path, fresh[path]);
            report(path, aside);
        }
        for (const auto& [path, file] : files_) {
            if (!file.blank.empty()) continue;
            const fs::path aside = free_name(path, ".before");
            fs::rename(path, aside);
            report(path, aside);
        }
    }

    void report(const fs::path& path, const fs::path& aside) const {
        fmt::print(stderr,
                   "{} the lesson of {} has changed: your functions of its exercises are in its file of "
                   "today{}. Your file of before is kept as {}, with what else you wrote\n",
                   styled("course:", kNotice, stderr), Workbook::shown(path), left_blank_,
                   Workbook::shown(aside));
    }

    // A function of an exercise that the learner's file of that exercise does not define.
    bool has_what_today_lacks(const std::string& text) const {
        return std::ranges::any_of(files_, [&](const auto& each) {
            const LearnersFile& file = each.second;
            return mistake_in(file.text).empty() &&
                   std::ranges::any_of(file.kernels, [&](const std::string& kernel) {
                       return !defines(file.text, kernel) && defines(text, kernel);
                   });
        });
    }

    // Prose has none, so nothing of it would be left in a file of today. Text whose brackets do not
    // match may have some.
    bool has_functions(const std::string& text) const {
        return !functions_of(text).empty() || !mistake_in(text).empty() ||
               std::ranges::any_of(files_, [&](const auto& each) {
                   return std::ranges::any_of(
                       each.second.kernels, [&](const std::string& kernel) { return defines(text, kernel); });
               });
    }

    bool is_outdated(const LearnersFile& file) const {
        if (file.text.empty()) return false;
        if (file.blank.empty()) return true;
        if (!has_functions(file.text)) return false;
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
            if (source == files_.end() || is_blank(source->second.text, kernel)) continue;
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
        bool done = false;
        try {
            const FileLock lock(book.my_directory(), /*purpose=*/"");  // another command may do the same
            done = FilesOfDay(book, chapter).renew();
        } catch (const std::exception& error) {  // a directory that must not be read, or written
            fmt::print(stderr, "{} your files of {} cannot be renewed: {}\n",
                       styled("course:", kNotice, stderr), chapter.name, error.what());
        }
        if (done) logbook.set_lesson_stamp(chapter.name, stamp);
    }
}

}  // namespace course::tool
