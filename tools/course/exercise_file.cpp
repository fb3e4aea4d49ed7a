#include "exercise_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "functions.hpp"

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

// What the body of kernel number `index` says.
std::vector<std::string> todo(std::string_view id, const Exercise& exercise, std::size_t index,
                              std::size_t width) {
    if (index > 0)
        return wrapped(fmt::format("TODO {}: this one too, see {}.", id, exercise.kernels.front()), width);
    std::vector<std::string> lines = {fmt::format("TODO {}, about {}.", id, minutes_text(exercise.minutes))};
    for (std::string& line : wrapped(exercise.task, width))
        lines.push_back(std::move(line));
    return lines;
}

std::string blanked(std::string text, std::string_view id, const Exercise& exercise) {
    for (std::size_t k = 0; k < exercise.kernels.size(); ++k) {
        const std::vector<FunctionDefinition> functions = find_functions(text, exercise.kernels[k]);
        if (functions.empty()) {
            throw ExerciseError(
                fmt::format("{}: {} defines no function '{}'", id, exercise.file, exercise.kernels[k]));
        }
        std::vector<std::string> bodies;
        for (const FunctionDefinition& function : functions) {
            const std::size_t width = kColumns - 4 - 3 - indentation_at(text, function.head);
            bodies.push_back(blank_body(text, function, todo(id, exercise, k + bodies.size(), width)));
        }
        text = with_bodies(text, functions, bodies);
    }
    return text;
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

std::string_view next_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

bool is_item(std::string_view line) {
    return line.starts_with("- ") ||
           (line.size() > 2 && line[0] >= '1' && line[0] <= '9' && line.substr(1, 2) == ". ");
}

// The words of a paragraph or an item, filled into lines.
class Filler {
  public:
    explicit Filler(std::size_t width) : width_(width) {}

    void add(std::string_view line) {
        if (is_item(line)) {
            end_paragraph();
            indentation_ = line.front() == '-' ? 2 : 3;
        }
        while (!line.empty()) {
            const std::string_view word = line.substr(0, line.find(' '));
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
        "// To work through: fill in what says TODO, then ./course check {}. Yours is the copy in my/.\n"
        "// What follows is the lesson's file, without what you will write.\n//\n",
        day);
    text += lesson;
    for (const Exercise& exercise : exercises)
        text = blanked(std::move(text), fmt::format("{}/{}", day, exercise.name), exercise);
    return text;
}

}  // namespace course::tool
