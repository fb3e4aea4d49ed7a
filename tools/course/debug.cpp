#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

#include "build.hpp"
#include "commands.hpp"
#include "day_command.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "functions.hpp"
#include "learner.hpp"
#include "learner_program.hpp"
#include "own_program.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

void require_gdb() {
    if (capture({"gdb", "--version"}).exit_code != kSuccess)
        throw std::runtime_error("debug needs gdb, which was not found. Install it: apt-get install gdb");
}

// The bodies in which gdb stops: those of the exercise's functions or, for an exercise that is
// repaired by hand, those of all kernels in the file.
std::vector<std::size_t> bodies_of(const std::string& text, const Exercise& exercise) {
    std::vector<std::size_t> bodies;
    for (const std::string& kernel : exercise.kernels) {
        for (const FunctionDefinition& function : find_functions(text, kernel))
            bodies.push_back(function.body_begin);
    }
    return exercise.by_hand() ? kernel_bodies(text) : bodies;
}

// The line of the first statement, or of the closing brace if there is no statement yet.
int first_line_in(const std::string& text, std::size_t body) {
    std::size_t at = body + 1;
    const auto skip_to = [&](std::string_view end) {
        const auto found = text.find(end, at);
        at = found == std::string::npos ? text.size() : found + end.size();
    };
    while (at < text.size()) {
        if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
            ++at;
        } else if (text.compare(at, 2, "//") == 0) {
            skip_to("\n");
        } else if (text.compare(at, 2, "/*") == 0) {
            skip_to("*/");
        } else {
            break;
        }
    }
    return line_at(text, at);
}

// FILE:LINE of the first line of each body.
std::vector<std::string> first_lines(const std::filesystem::path& file, const std::string& text,
                                     const std::vector<std::size_t>& bodies) {
    std::vector<std::string> places;
    for (const std::size_t body : bodies)
        places.push_back(fmt::format("{}:{}", file.string(), first_line_in(text, body)));
    return places;
}

// The gdb command that stops at the first of `places` that the program reaches.
Command gdb_command(const std::vector<std::string>& places, const Command& program) {
    Command command = {"gdb", "-q"};
    const auto add = [&command](const char* option, std::string words) {
        command.insert(command.end(), {option, std::move(words)});
    };
    add("-iex", "set debuginfod enabled off");  // gdb would ask whether to download the system's symbols
    add("-iex", "set confirm off");
    add("-ex", "set print thread-events off");
    add("-ex", "set breakpoint pending on");
    for (const std::string& place : places)
        add("-ex", "break " + place);
    add("-ex", "run");
    command.push_back("--args");
    command.insert(command.end(), program.begin(), program.end());
    return command;
}

// The program that runs the exercise's functions, with a size that is small enough for a debugger.
Command program_of(const VariantBuild& build, const Day& day, const Exercise& exercise,
                   const DebugOptions& given) {
    RunOptions options;
    options.size = given.size;
    options.version = given.version;
    options.extra = given.extra;
    const auto program = std::ranges::find_if(day.programs, [&](const std::vector<std::string>& each) {
        return each.front() + ".cu" == exercise.file;
    });
    if (program != day.programs.end()) {
        require_no_versions(day, options);
        return whole_program_command(build.checkout, day, *program, build.target("_exercise"), options.extra);
    }
    if (options.size.empty()) options.size = day.small_size;
    if (options.version.empty()) options.version = exercise.version;
    return versions_command(build.program(day.directory + "_exercise_program"), options);
}

// Debugs `what`, starting in its first block.
int debug(const std::string& what, const std::vector<std::string>& places, const Command& program) {
    setenv("CUDA_ON_CPU_THREADS", "1", 0);  // blocks run one after the other, so the first stop is in block 0
    setenv("CUDA_ON_CPU_TIMEOUT", "86400", 0);
    fmt::print("{}\n", styled(fmt::format("{}: print threadIdx, print blockIdx, next, continue, quit", what),
                              kQuiet, stdout));
    std::fflush(stdout);
    return run(gdb_command(places, program));
}

}  // namespace

int debug_exercise(const Checkout& checkout, const DebugOptions& options) {
    require_no_device_linking(options.rdc, options.name.value_or(""));
    require_gdb();
    Learner learner(checkout);
    const WorkbookEntry entry = learner.choose(options.name);
    require_my_file(learner.book, {entry});

    const VariantBuild build = configure_debugged_build(checkout);
    const Calendar calendar = load_calendar(build.checkout.calendar());
    const Command program =
        program_of(build, find_day(calendar, entry.chapter->directory), *entry.exercise, options);
    build_my_program(learner.book, entry, build.checkout, std::filesystem::path(program.front()).filename());

    const std::filesystem::path file = learner.book.mine(entry);
    const std::string text = read_text_file(file);
    return debug(entry.id, first_lines(file, text, bodies_of(text, *entry.exercise)), program);
}

int debug_own_program(const Checkout& checkout, const DebugOptions& options,
                      const std::vector<std::string>& files) {
    if (!options.version.empty() || !options.size.empty())
        throw UsageError(fmt::format("{}: a program of your own has none; its own arguments stand behind --",
                                     options.version.empty() ? "--size" : "--only"));
    require_gdb();
    std::vector<std::string> places;
    for (const std::string& file : files) {
        if (!std::filesystem::is_regular_file(file)) continue;  // the build will report it
        const std::string text = read_text_file(file);
        const std::vector<std::string> of_file =
            first_lines(std::filesystem::absolute(file), text, kernel_bodies(text));
        places.insert(places.end(), of_file.begin(), of_file.end());
    }
    const bool on_gpu = load_calendar(checkout.calendar()).backend == "gpu";
    Command program = {build_own_program(on_gpu ? build_of_preset(checkout, "cpu") : checkout, files,
                                         {For::debugging, options.rdc})};
    program.insert(program.end(), options.extra.begin() + static_cast<std::ptrdiff_t>(files.size()) - 1,
                   options.extra.end());
    if (places.empty())
        fmt::print(stderr, "course: {} defines no kernel: gdb does not stop by itself\n", files.front());
    return debug(files.front(), places, program);
}

}  // namespace course::tool
