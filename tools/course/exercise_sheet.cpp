#include "exercise_sheet.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "common/check/nearest.hpp"

namespace course::tool {
namespace {

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// "`a`, `b`" -> {"a", "b"}; the quotes may be left out.
std::vector<std::string> list_of(std::string_view text) {
    std::vector<std::string> items;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(','));
        text.remove_prefix(std::min(part.size() + 1, text.size()));
        std::string_view item = trimmed(part);
        if (item.size() >= 2 && item.front() == '`' && item.back() == '`')
            item = trimmed(item.substr(1, item.size() - 2));
        items.emplace_back(item);
    }
    return items;
}

bool is_name(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
}

// Reads line by line. The headings before a line determine what it belongs to.
class Parser {
  public:
    explicit Parser(std::string_view file) : file_(file) {}

    void take(std::string_view line) {
        ++line_;
        if (line.starts_with("```")) in_code_ = !in_code_;
        if (!in_code_ && line.starts_with("#")) return take_heading(line);
        if (takes_settings_ && line.starts_with("- ")) return take_setting(line.substr(2));
        if (text_ == nullptr) {
            if (!trimmed(line).empty()) fail("expected '# title' first");
            return;
        }
        if (!trimmed(line).empty()) takes_settings_ = false;
        *text_ += std::string(line) + "\n";
    }

    ExerciseSheet result() {
        if (in_code_) fail("a ``` is not closed");
        end_exercise();
        if (sheet_.title.empty()) fail("expected '# title'");
        if (sheet_.exercises.empty()) fail("there is no exercise; expected '## name'");
        trim(sheet_.introduction);
        return std::move(sheet_);
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        const std::string where = sheet_.exercises.empty() ? "" : sheet_.exercises.back().name + ": ";
        throw ExerciseError(fmt::format("{}:{}: {}{}", file_, line_, where, what));
    }

    static void trim(std::string& text) { text = std::string(trimmed(text)); }

    void take_heading(std::string_view line) {
        const std::string_view text =
            trimmed(line.substr(std::min(line.find_first_not_of('#'), line.size())));
        takes_settings_ = false;
        if (line.starts_with("# ")) {
            if (!sheet_.title.empty()) fail("a second '# title'");
            sheet_.title = text;
            text_ = &sheet_.introduction;
        } else if (line.starts_with("## ") && !sheet_.title.empty()) {
            begin_exercise(text);
        } else if (line.starts_with("### `") && !sheet_.exercises.empty()) {
            begin_function(list_of(text).front());
        } else if (line.starts_with("### ") && !sheet_.exercises.empty()) {
            begin_hint(text);
        } else {
            fail(
                fmt::format("'{}' has no place here; expected '# title', '## name', '### `function`' or "
                            "'### Hint 1'",
                            line));
        }
    }

    void begin_exercise(std::string_view name) {
        end_exercise();
        if (!is_name(name)) fail(fmt::format("'{}' is no name; expected a-z, 0-9 and _", name));
        if (std::ranges::find(sheet_.exercises, name, &Exercise::name) != sheet_.exercises.end())
            fail(fmt::format("there are two exercises '{}'", name));
        sheet_.exercises.push_back({.name = std::string(name)});
        text_ = &sheet_.exercises.back().task;
        takes_settings_ = true;
        hints_ = 0;
    }

    void begin_function(const std::string& name) {
        Exercise& exercise = sheet_.exercises.back();
        if (hints_ > 0) fail(fmt::format("'{}' comes after a hint", name));
        if (std::ranges::find(exercise.kernels, name) == exercise.kernels.end())
            fail(unknown_name("function", name, exercise.kernels));
        if (std::ranges::find(exercise.function_tasks, name, &FunctionTask::function) !=
            exercise.function_tasks.end())
            fail(fmt::format("there are two texts for '{}'", name));
        exercise.function_tasks.push_back({name, {}});
        text_ = &exercise.function_tasks.back().text;
    }

    void begin_hint(std::string_view title) {
        Exercise& exercise = sheet_.exercises.back();
        if (hints_ == exercise.hints.size()) fail("more than three hints");
        if (title != fmt::format("Hint {}", hints_ + 1))
            fail(fmt::format("'### {}'; expected '### Hint {}'", title, hints_ + 1));
        text_ = &exercise.hints[hints_++];
    }

    void take_setting(std::string_view line) {
        static const std::vector<std::string> kKeys = {"kernels", "file",     "starts_from", "cause",
                                                       "tests",   "version",  "needs",       "traffic",
                                                       "streams", "children", "minutes"};
        Exercise& exercise = sheet_.exercises.back();
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) fail(fmt::format("'- {}'; expected '- key: value'", line));
        const std::string_view key = trimmed(line.substr(0, colon));
        if (key == "cause") return take_cause(trimmed(line.substr(colon + 1)));
        const std::vector<std::string> values = list_of(line.substr(colon + 1));
        if (values.empty() || values.front().empty()) fail(fmt::format("'{}' has no value", key));
        const std::string value = values.front();
        if (key == "kernels") {
            exercise.kernels = values;
        } else if (key == "file") {
            exercise.file = value;
        } else if (key == "starts_from") {
            exercise.starts_from = value;
        } else if (key == "tests") {
            exercise.tests = value;
        } else if (key == "version") {
            exercise.version = value;
        } else if (key == "needs") {
            if (value != "inspection") fail(fmt::format("needs is '{}'; expected inspection", value));
            exercise.needs_inspection = true;
        } else if (key == "traffic") {
            static const std::vector<std::string_view> kKinds = {"global", "shared",    "atomics", "accesses",
                                                                 "loads",  "different", "lanes"};
            for (const std::string& memory : values) {
                if (std::ranges::find(kKinds, memory) == kKinds.end())
                    fail(fmt::format("traffic is '{}'; expected any of {}", memory, fmt::join(kKinds, ", ")));
            }
            exercise.traffic = values;
        } else if (key == "streams") {
            for (const std::string& order : values) {
                if (order != "late" && order != "random")
                    fail(fmt::format("streams is '{}'; expected late, random or both", order));
            }
            exercise.streams = values;
        } else if (key == "children") {
            if (value != "early") fail(fmt::format("children is '{}'; expected early", value));
            exercise.early_children = true;
        } else if (key == "minutes") {
            const auto [end, error] =
                std::from_chars(value.data(), value.data() + value.size(), exercise.minutes);
            if (error != std::errc{} || end != value.data() + value.size() || exercise.minutes < 1)
                fail(fmt::format("minutes is '{}'; expected a number > 0", value));
        } else {
            fail(unknown_name("key", key, kKeys));
        }
        if (values.size() > 1 && key != "kernels" && key != "traffic" && key != "streams")
            fail(fmt::format("'{}' is a list; expected one value", key));
    }

    // "bank conflicts | `tile[threadIdx.x][k]`"; a name has no comma, because one ends it in the
    // learner's verdict.
    void take_cause(std::string_view value) {
        const auto bar = value.find('|');
        const std::string_view name = trimmed(value.substr(0, bar));
        std::string_view text = bar == std::string_view::npos ? "" : trimmed(value.substr(bar + 1));
        if (text.size() >= 2 && text.front() == '`' && text.back() == '`')
            text = text.substr(1, text.size() - 2);
        if (name.empty() || text.empty() || name.find_first_of(",?") != std::string_view::npos)
            fail(fmt::format("cause is '{}'; expected 'NAME | `text of the line`', with no comma in NAME",
                             value));
        sheet_.exercises.back().causes.push_back({std::string(name), std::string(text)});
    }

    void end_exercise() {
        if (sheet_.exercises.empty()) return;
        Exercise& exercise = sheet_.exercises.back();
        trim(exercise.task);
        for (FunctionTask& task : exercise.function_tasks) {
            trim(task.text);
            if (task.text.empty()) fail(fmt::format("no text for '{}'", task.function));
        }
        for (std::string& hint : exercise.hints)
            trim(hint);
        if (exercise.file.empty()) fail("no '- file:'");
        if (sheet_.exercises.size() > 1 && !exercise.is_beyond() &&
            sheet_.exercises[sheet_.exercises.size() - 2].is_beyond())
            fail("an exercise of the core behind one of beyond/; expected it before");
        if (exercise.kernels.empty() == exercise.starts_from.empty())
            fail("expected either '- kernels:' or '- starts_from:'");
        if (!exercise.causes.empty() && exercise.starts_from.empty())
            fail("'- cause:' names a line of a given file; expected '- starts_from:', too");
        if (exercise.tests.empty()) fail("no '- tests:'");
        if (exercise.minutes == 0) fail("no '- minutes:'");
        if (!exercise.traffic.empty() && exercise.version.empty())
            fail("'- traffic:' compares versions; expected '- version:', too");
        if (exercise.whole_task().empty()) fail("no text says what is asked");
        for (std::size_t i = 0; i < exercise.hints.size(); ++i) {
            if (exercise.hints[i].empty()) fail(fmt::format("no text for '### Hint {}'", i + 1));
        }
    }

    std::string_view file_;
    ExerciseSheet sheet_;
    std::string* text_ = nullptr;  // the text that lines are appended to
    int line_ = 0;
    std::size_t hints_ = 0;
    bool takes_settings_ = false;
    bool in_code_ = false;
};

}  // namespace

std::string Exercise::whole_task() const {
    std::string text = task;
    for (const FunctionTask& part : function_tasks)
        text += fmt::format("{}In `{}`:\n\n{}", text.empty() ? "" : "\n\n", part.function, part.text);
    return text;
}

ExerciseSheet parse_exercise_sheet(std::string_view text, std::string_view file) {
    Parser parser(file);
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        parser.take(line);
    }
    return parser.result();
}

}  // namespace course::tool
