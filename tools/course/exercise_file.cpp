#include "exercise_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "functions.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

constexpr std::size_t kColumns = 110;  // ColumnLimit of .clang-format

std::size_t indentation_at(std::string_view text, std::size_t place) {
    const std::size_t line = text.rfind('\n', place) + 1;  // npos + 1 is 0
    return text.find_first_not_of(' ', line) - line;
}

std::string blank_body(std::string_view text, const FunctionDefinition& function,
                       const std::vector<std::string>& lines) {
    const std::size_t outside = indentation_at(text, function.head);
    const std::string inside(outside + 4, ' ');
    std::string body = "{\n";
    for (const std::string& line : lines)
        body += inside + (line.empty() ? "//" : "// " + line) + "\n";
    if (!function.returns_nothing) body += inside + "return {};\n";
    return body + std::string(outside, ' ') + "}";
}

std::string minutes_text(int minutes) {
    return fmt::format("{} minute{}", minutes, minutes == 1 ? "" : "s");
}

const std::string* task_of(const Exercise& exercise, std::string_view function) {
    const auto own = std::ranges::find(exercise.function_tasks, function, &FunctionTask::function);
    return own == exercise.function_tasks.end() ? nullptr : &own->text;
}

// The exercise's kernels in the order of the file.
std::vector<std::string> in_order(std::string_view text, std::string_view id, const Exercise& exercise) {
    std::vector<std::pair<std::size_t, std::string>> places;
    for (const std::string& kernel : exercise.kernels) {
        const std::vector<FunctionDefinition> functions = find_functions(text, kernel);
        if (functions.empty())
            throw ExerciseError(fmt::format("{}: {} defines no function '{}'", id, exercise.file, kernel));
        places.emplace_back(functions.front().head, kernel);
    }
    std::ranges::sort(places);
    std::vector<std::string> names;
    for (auto& [place, name] : places)
        names.push_back(std::move(name));
    return names;
}

// The TODOs of an exercise.
class Todos {
  public:
    Todos(std::string_view text, std::string_view id, const Exercise& exercise)
        : id_(id), exercise_(exercise), kernels_(in_order(text, id, exercise)) {
        const auto without = std::ranges::find_if(
            kernels_, [&](const std::string& kernel) { return task_of(exercise, kernel) == nullptr; });
        main_ = without == kernels_.end() ? kernels_.front() : *without;
    }

    const std::vector<std::string>& kernels() const { return kernels_; }

    // The TODO lines for the body of `kernel`; `again`: in another definition of the same name.
    std::vector<std::string> lines(const std::string& kernel, bool again, std::size_t width) const {
        std::vector<std::string> all;
        const auto add = [&](std::string_view text) {
            for (std::string& line : wrapped(text, width))
                all.push_back(std::move(line));
        };
        const std::string* const own = task_of(exercise_, kernel);
        if (again || (own == nullptr && kernel != main_)) {
            add(fmt::format("TODO {}: this one too, see {} above.", id_, again ? kernel : main_));
            return all;
        }
        add(fmt::format("TODO {}, {}", id_, heading(kernel)));
        if (kernel == main_) add(exercise_.task);
        if (kernel == main_ && own != nullptr && !exercise_.task.empty()) all.emplace_back();
        if (own != nullptr) add(*own);
        return all;
    }

  private:
    // "about 10 minutes." or "about 10 minutes. Functions: helper, kernel." or "continued."
    std::string heading(const std::string& kernel) const {
        if (kernel != kernels_.front()) return "continued.";
        const std::string time = fmt::format("about {}.", minutes_text(exercise_.minutes));
        return kernels_.size() == 1 ? time
                                    : fmt::format("{} Functions: {}.", time, fmt::join(kernels_, ", "));
    }

    std::string_view id_;
    const Exercise& exercise_;
    std::vector<std::string> kernels_;
    std::string main_;  // the kernel whose body has the exercise's text
};

std::string blanked(std::string text, std::string_view id, const Exercise& exercise) {
    const Todos todos(text, id, exercise);
    for (const std::string& kernel : todos.kernels()) {
        const std::vector<FunctionDefinition> functions = find_functions(text, kernel);
        std::vector<std::string> bodies;
        for (const FunctionDefinition& function : functions) {
            const std::size_t width = kColumns - 4 - 3 - indentation_at(text, function.head);
            bodies.push_back(blank_body(text, function, todos.lines(kernel, !bodies.empty(), width)));
        }
        text = with_bodies(text, functions, bodies);
    }
    return text;
}

// On the CPU a __device__ variable is also an ordinary variable of the program. Several files of a
// day contain this text.
const std::string kStages = R"(#ifndef COURSE_IN_STAGES
#define COURSE_IN_STAGES
#include <cstdlib>
#include <type_traits>
__device__ inline int course_solved = 0;
inline const bool course_solved_is_read = [] {
    if (const char* const number = std::getenv("COURSE_SOLVED")) course_solved = std::atoi(number);
    return true;
}();
#ifdef __SANITIZE_THREAD__  // an inspection must not count this load
__attribute__((noinline, no_sanitize_thread))
#endif
__host__ __device__ inline int course_number_solved() { return course_solved; }
__host__ __device__ constexpr bool course_is_blank(int exercise) {
    return !std::is_constant_evaluated() && course_number_solved() < exercise;
}
#endif
#line 1
)";

// Inserted on the line of the brace, so line numbers do not change.
std::string with_stage(const std::string& text, const std::vector<FunctionDefinition>& functions,
                       std::size_t number) {
    std::vector<std::string> bodies;
    for (const FunctionDefinition& function : functions) {
        bodies.push_back(fmt::format(
            "{{ if (course_is_blank({})) return{};{}", number, function.returns_nothing ? "" : " {}",
            text.substr(function.body_begin + 1, function.body_end - function.body_begin - 1)));
    }
    return with_bodies(text, functions, bodies);
}

void require_different_kernels(std::string_view day, const std::vector<Exercise>& exercises) {
    std::vector<std::string> seen;
    for (const Exercise& exercise : exercises) {
        for (const std::string& kernel : exercise.kernels) {
            if (std::ranges::find(seen, kernel) != seen.end())
                throw ExerciseError(fmt::format("{}/{}: '{}' is blank already", day, exercise.name, kernel));
            seen.push_back(kernel);
        }
    }
}

bool is_item(std::string_view line) {
    return line.starts_with("- ") ||
           (line.size() > 2 && line[0] >= '1' && line[0] <= '9' && line.substr(1, 2) == ". ");
}

// Blanks in `inline code` do not end a word.
std::size_t end_of_word(std::string_view line) {
    const std::size_t blank = line.find(' ');
    const std::size_t code = line.find('`');
    if (code == line.npos || code > blank) return blank;
    const std::size_t end = line.find('`', code + 1);
    if (end == line.npos) return blank;  // it goes on in the next line
    const std::size_t rest = end_of_word(line.substr(end + 1));
    return rest == line.npos ? rest : end + 1 + rest;
}

// Wraps the words of a paragraph or a list item into lines.
class Filler {
  public:
    explicit Filler(std::size_t width) : width_(width) {}

    void add(std::string_view line) {
        if (is_item(line)) {
            end_paragraph();
            indentation_ = line.front() == '-' ? 2 : 3;
        }
        while (!line.empty()) {
            const std::string_view word = line.substr(0, end_of_word(line));
            line.remove_prefix(std::min(word.size() + 1, line.size()));
            if (!word.empty()) add_word(word);
        }
    }
    void add_as_it_is(std::string_view line) {
        end_paragraph();
        lines_.emplace_back(line.substr(0, line.find_last_not_of(' ') + 1));
    }
    void end_paragraph() {
        if (!current_.empty()) lines_.push_back(std::move(current_));
        current_.clear();
        indentation_ = 0;
    }
    void add_gap() {
        end_paragraph();
        if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
    }
    std::vector<std::string> lines() {
        end_paragraph();
        while (!lines_.empty() && lines_.back().empty())
            lines_.pop_back();
        return std::move(lines_);
    }

  private:
    void add_word(std::string_view word) {
        if (!current_.empty() && current_.size() + 1 + word.size() > width_) {
            lines_.push_back(std::move(current_));
            current_ = std::string(indentation_, ' ');
        } else if (!current_.empty()) {
            current_ += ' ';
        }
        current_ += word;
    }

    std::size_t width_;
    std::size_t indentation_ = 0;
    std::string current_;
    std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
    Filler filler(width);
    bool in_code = false;
    while (!text.empty()) {
        const std::string_view line = next_line(text);
        if (line.starts_with("```")) {
            in_code = !in_code;
        } else if (in_code) {
            filler.add_as_it_is("    " + std::string(line));
        } else if (line.starts_with("    ")) {
            filler.add_as_it_is(line);
        } else if (line.find_first_not_of(' ') == std::string_view::npos) {
            filler.add_gap();
        } else {
            filler.add(line.substr(line.find_first_not_of(' ')));
        }
    }
    return filler.lines();
}

std::string make_exercise(std::string_view lesson, std::string_view day,
                          const std::vector<Exercise>& exercises) {
    require_different_kernels(day, exercises);
    std::string text = fmt::format(
        "// Exercise file: the lesson without the bodies that you will write. Fill in each TODO, then run\n"
        "// ./course check {}.\n//\n",
        day);
    text += lesson;
    for (const Exercise& exercise : exercises)
        text = blanked(std::move(text), fmt::format("{}/{}", day, exercise.name), exercise);
    return text;
}

std::string name_of_day(std::string_view directory) {
    const std::string_view digits = directory.substr(0, directory.find('_'));
    return std::string(digits.size() == 5 && digits.starts_with("day") ? digits : directory);
}

std::string blank_file(const std::filesystem::path& directory, const ExerciseSheet& sheet,
                       std::string_view file) {
    const std::string day = name_of_day(directory.filename().string());
    std::vector<Exercise> exercises;
    std::string start;
    for (const Exercise& exercise : sheet.exercises) {
        if (exercise.file != file) continue;
        for (const std::string& name : {exercise.file, exercise.starts_from}) {
            if (!name.empty() && !std::filesystem::exists(directory / name))
                throw ExerciseError(fmt::format("{}/{}: there is no {}/{}", day, exercise.name,
                                                directory.filename().string(), name));
        }
        if (!start.empty() && exercise.starts_from != start)
            throw ExerciseError(
                fmt::format("{}/{}: {} starts from {} already", day, exercise.name, file, start));
        if (exercise.by_hand()) {
            start = exercise.starts_from;
        } else {
            exercises.push_back(exercise);
        }
    }
    if (!start.empty() && !exercises.empty())
        throw ExerciseError(
            fmt::format("{}/{}: {} starts from {} already", day, exercises.front().name, file, start));
    if (!start.empty()) return read_text_file(directory / start);
    return make_exercise(read_text_file(directory / file), day, exercises);
}

std::string file_in_stages(const std::filesystem::path& directory, const ExerciseSheet& sheet,
                           std::string_view file) {
    std::string text = read_text_file(directory / file);
    for (std::size_t i = 0; i < sheet.exercises.size(); ++i) {
        const Exercise& exercise = sheet.exercises[i];
        if (exercise.file != file) continue;
        for (const std::string& kernel : exercise.kernels)
            text = with_stage(text, find_functions(text, kernel), i + 1);
    }
    return kStages + text;
}

std::vector<std::string> files_of(const ExerciseSheet& sheet) {
    std::vector<std::string> files;
    for (const Exercise& exercise : sheet.exercises) {
        if (std::ranges::find(files, exercise.file) == files.end()) files.push_back(exercise.file);
    }
    return files;
}

}  // namespace course::tool
