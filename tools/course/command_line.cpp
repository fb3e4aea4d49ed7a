#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <initializer_list>

#include "commands.hpp"
#include "common/bench/unknown_argument.hpp"
#include "errors.hpp"
#include "own_program.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

constexpr const char* kExitCodes =
    "exit codes: 0 done, 1 a test, a verification or the work itself failed, 2 wrong usage, 3 the build "
    "failed,\n"
    "            128 + n: the program that was run ended by signal n\n"
    "COURSE_PRESET=cpu|gpu|cpu-sanitize|cpu-debug|inspect chooses the build; without it gpu where nvcc and a "
    "GPU "
    "are, else "
    "cpu.";

constexpr const char* kDay = "day01, 1, vector_add or day01_vector_add; gemm_ladder";

int report(const std::exception& error, int exit_code) {
    fmt::print(stderr, "{} {}\n", styled("course:", kBad, stderr), error.what());
    return exit_code;
}

// The arguments, last to first as CLI11 wants them. After one of `forwarding`, commands that hand
// arguments over to the day's program, the first option that is not the command's own, and all
// after it, are the program's: "--" is put before it.
std::vector<std::string> with_separator(std::initializer_list<const CLI::App*> forwarding, int argc,
                                        const char* const* argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    for (const CLI::App* command : forwarding) {
        if (arguments.size() <= 2 || arguments.front() != command->get_name()) continue;
        // Behind the files of a program of one's own that is run everything is that program's.
        const auto files =
            static_cast<std::ptrdiff_t>(own_files({arguments.begin() + 1, arguments.end()}).size());
        if (files > 0 && command->get_name() == "run") {
            const auto behind = arguments.begin() + 1 + files;
            if (behind != arguments.end() && *behind == "--") arguments.erase(behind);
            arguments.insert(arguments.begin() + 2, "--");
            continue;
        }
        const auto is_foreign = [command](const std::string& argument) {
            return argument.starts_with("-") && command->get_option_no_throw(argument) == nullptr;
        };
        const auto takes_value = [command](const std::string& argument) {
            const CLI::Option* const option = command->get_option_no_throw(argument);
            return argument.starts_with("-") && option != nullptr && option->get_items_expected_min() > 0;
        };
        auto first = arguments.begin() + 2;  // `--size -5`: the value is no option
        while (first != arguments.end() && (!is_foreign(*first) || takes_value(*std::prev(first))))
            ++first;
        if (first != arguments.end() && *first != "--") arguments.insert(first, "--");
    }
    std::reverse(arguments.begin(), arguments.end());
    return arguments;
}

// The files that begin at `first`, what a command has taken for its DAY.
std::vector<std::string> files_from(const std::string& first, int argc, const char* const* argv) {
    const char* const* const end = argv + argc;
    return own_files({std::find(argv + 2, end, first), end});
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
    CLI::App app(
        "CUDA, day by day: runs, tests and measures the lessons, on a GPU or, without one, on the CPU.",
        "./course");
    app.require_subcommand(0, 1);
    app.footer(fmt::format("example: ./course run day01\n{}", kExitCodes));
    std::function<int(const Checkout&)> command;

    auto* list = app.add_subcommand("list", "The days, and the chapters of the book that they go with");
    list->footer("example: ./course list");
    list->callback([&] { command = list_days; });

    RunOptions options;
    auto* run =
        app.add_subcommand("run", "Builds a day's program and runs it: every version verified and timed");
    run->add_option("DAY", options.day, std::string(kDay) + "; or a program of your own: my.cu")->required();
    run->add_option("--size", options.size, "Problem size, as the day's program reads it")->type_name("N");
    run->add_option("--variant", options.variant, "Only this version")->type_name("V");
    run->add_option("--json", options.json, "Writes the records to this file, as JSON Lines")
        ->type_name("FILE");
    run->add_option("--program", options.program, "Only this one, of a day of whole programs (day00)")
        ->type_name("P");
    run->add_flag(
        "--mine", options.mine,
        "Your kernels, from my/, in the place of the lesson's; DAY may be an exercise: day05/coalesced");
    run->add_option("ARGUMENTS", options.extra,
                    "From the first other option on, or after --: handed to the program as they are");
    run->footer(
        "example: ./course run vector_add --size 1000000\n         ./course run day01 -- --help\n"
        "         ./course run --mine day05/coalesced --size 64x64x64\n"
        "         ./course run day00 --program vector_add 1000003\n"
        "         ./course run day10 --image in.png --sigma 4 --out out.png\n"
        "         ./course run gemm_ladder --step 0,5 --m 1000 --n 3000 --k 500\n"
        "         ./course run my.cu more.cu -- arguments of the program");
    run->callback([&] {
        const std::vector<std::string> files = own_files({argv + 2, argv + argc});
        command = [&options, files](const Checkout& checkout) {
            return files.empty() ? run_day(checkout, options) : run_own_program(checkout, options, files);
        };
    });

    InspectOptions inspected;
    auto* inspect = app.add_subcommand(
        "inspect",
        "Counts how a day's kernels use memory, line by line, and looks for races and bad accesses; no GPU");
    inspect->add_option("DAY", inspected.day, std::string(kDay) + "; or a program of your own: my.cu")
        ->required();
    inspect->add_option("--variant", inspected.variant, "Only this version")->type_name("V");
    inspect->add_option("--size", inspected.size, "Problem size, as the day's program reads it")
        ->type_name("N");
    inspect->add_option("--html", inspected.html, "Writes a page with the annotated source to this file")
        ->type_name("FILE");
    inspect->add_option("--json", inspected.json, "Writes all figures to this file")->type_name("FILE");
    inspect->add_option("ARGUMENTS", inspected.extra,
                        "From the first other option on, or after --: handed to the program as they are");
    inspect->footer(
        "exit code: 1 when there are findings\n"
        "example: ./course inspect day05 --variant tiled_static\n"
        "         ./course inspect gemm_ladder --variant 08_swizzle --size 256x256x256 --html swizzle.html\n"
        "         ./course inspect my.cu more.cu --html page.html -- arguments of the program");
    inspect->callback([&] {
        command = [&, files = files_from(inspected.day, argc, argv)](const Checkout& checkout) {
            return files.empty() ? inspect_day(checkout, inspected)
                                 : inspect_own_program(checkout, inspected, files);
        };
    });

    std::optional<std::string> tested_day;
    auto* test = app.add_subcommand("test", "Builds and runs all tests, or those of one day");
    test->add_option("DAY", tested_day, kDay);
    test->footer("example: ./course test day01");
    test->callback(
        [&] { command = [&](const Checkout& checkout) { return test_days(checkout, tested_day); }; });

    BenchOptions benched;
    auto* bench = app.add_subcommand("bench", "Measures a day's full list of problems");
    bench->add_option("DAY", benched.day, kDay)->required();
    bench->add_flag("--sweep", benched.sweep,
                    "The long list of shapes instead, where the day has one (gemm_ladder)");
    bench->add_flag("--record", benched.record, "Keeps the figures in docs/measurements/<machine>/");
    bench->footer("example: ./course bench day01\n         ./course bench gemm_ladder --sweep --record");
    bench->callback(
        [&] { command = [&](const Checkout& checkout) { return bench_day(checkout, benched); }; });

    bool check_only = false;
    auto* tables = app.add_subcommand(
        "tables", "Makes docs/measured and the tables in the READMEs from the records in docs/measurements");
    tables->add_flag("--check", check_only, "Writes nothing; exits with 1 and names the file that differs");
    tables->footer("example: ./course tables --check");
    tables->callback(
        [&] { command = [&](const Checkout& checkout) { return update_tables(checkout, check_only); }; });

    auto* examine =
        app.add_subcommand("doctor", "The tools and the GPU (or why none is used), and its limits");
    examine->footer("example: ./course doctor");
    examine->callback([&] { command = doctor; });

    constexpr const char* kExercise =
        "day05, day05/coalesced or coalesced; without it the first that is not solved";
    auto* next = app.add_subcommand("next", "The next exercise: what it asks, and where to write");
    std::optional<std::string> next_name;
    next->add_option("EXERCISE", next_name, kExercise);
    next->footer("example: ./course next");
    next->callback(
        [&] { command = [&](const Checkout& checkout) { return next_exercise(checkout, next_name); }; });

    CheckCommand checked;
    int seconds = 60;
    const auto add_check_options = [&](CLI::App* to) {
        to->add_option("EXERCISE", checked.name, kExercise);
        to->add_flag("--gpu", checked.gpu,
                     "On the GPU; without it on the CPU, which says more about a mistake");
        to->add_flag("--inspect", checked.inspect,
                     "Also looks for races, bank conflicts and uncoalesced accesses, in a build of its own; "
                     "from then on always");
        to->add_option("--limit", seconds, "Seconds that a run of its tests may take")
            ->check(CLI::Range(1, 3600))
            ->capture_default_str();
    };
    auto* check = app.add_subcommand("check", "Builds an exercise with your file and tests it");
    add_check_options(check);
    check->add_option("--html", checked.html, "--inspect, and writes a page with your source and its counts")
        ->type_name("FILE");
    check->footer("exit code: 1 when it is not solved\nexample: ./course check day05/coalesced");
    check->callback([&] {
        checked.limit = std::chrono::seconds(seconds);
        command = [&](const Checkout& checkout) { return check_exercises(checkout, checked); };
    });

    DebugOptions debugged;
    auto* debug = app.add_subcommand("debug", "Stops in the first line of your kernel, in gdb; on the CPU");
    debug->add_option("EXERCISE", debugged.name,
                      std::string(kExercise) + "; or a program of your own: my.cu");
    debug->add_option("--variant", debugged.variant, "Not the exercise's version but this one")
        ->type_name("V");
    debug
        ->add_option("--size", debugged.size,
                     "Problem size, as the day's program reads it; without it a small one")
        ->type_name("N");
    debug->add_option("ARGUMENTS", debugged.extra,
                      "From the first other option on, or after --: handed to the program as they are");
    debug->footer(
        "example: ./course debug day05/coalesced --size 8x8x8\n"
        "         ./course debug my.cu more.cu -- arguments of the program");
    debug->callback([&] {
        command = [&, files = files_from(debugged.name.value_or(""), argc, argv)](const Checkout& checkout) {
            return files.empty() ? debug_exercise(checkout, debugged)
                                 : debug_own_program(checkout, debugged, files);
        };
    });

    WatchCommand watched;
    auto* watch =
        app.add_subcommand("watch", "Checks an exercise whenever you save its file, then the next one");
    add_check_options(watch);
    watch->add_flag("--poll", watched.poll,
                    "Looks at the file again and again: for file systems that tell no news");
    watch->footer("example: ./course watch day05");
    watch->callback([&] {
        checked.limit = std::chrono::seconds(seconds);
        watched.check = checked;
        command = [&](const Checkout& checkout) { return watch_exercise(checkout, watched); };
    });

    std::optional<std::string> hinted;
    auto* hint = app.add_subcommand("hint", "The next hint");
    hint->add_option("EXERCISE", hinted, kExercise);
    hint->footer("example: ./course hint day05/coalesced");
    hint->callback([&] { command = [&](const Checkout& checkout) { return show_hint(checkout, hinted); }; });

    std::string reset_name;
    auto* reset =
        app.add_subcommand("reset", "Makes an exercise, or a day's files, blank again; keeps what was there");
    reset->add_option("EXERCISE", reset_name, "day05, day05/coalesced or coalesced")->required();
    reset->footer("example: ./course reset day05/coalesced");
    reset->callback(
        [&] { command = [&](const Checkout& checkout) { return reset_exercise(checkout, reset_name); }; });

    auto* progress = app.add_subcommand("progress", "All exercises, and which are solved");
    progress->footer("example: ./course progress");
    ProgressCommand shown;
    auto* shown_day =
        progress->add_option("DAY", shown.name, "The day to show in full; else that of the next exercise");
    auto* json = progress->add_flag("--json", shown.as_json, "For other programs")->excludes(shown_day);
    progress->add_flag("--all", shown.all, "Every exercise of every day")
        ->excludes(json)
        ->excludes(shown_day);
    progress->callback(
        [&] { command = [&](const Checkout& checkout) { return show_progress(checkout, shown); }; });

    auto* cleaned =
        app.add_subcommand("clean", "Removes all builds, which can take some GB; your files stay");
    cleaned->footer("example: ./course clean");
    cleaned->callback([&] { command = [&](const Checkout& checkout) { return clean(checkout); }; });

    SolutionCommand solved;
    auto* solution = app.add_subcommand("solution", "How the lesson does it");
    solution->add_option("EXERCISE", solved.name, kExercise);
    solution->add_flag("--force", solved.force, "Also when it has not been tried");
    solution->add_flag("--paste", solved.paste,
                       "Puts it into your file; what was there is kept as <file>.bak");
    solution->footer("example: ./course solution day05/coalesced");
    solution->callback(
        [&] { command = [&](const Checkout& checkout) { return show_solution(checkout, solved); }; });

    std::optional<std::string> made_day;
    auto* exercises = app.add_subcommand(
        "exercises", "For authors: can every exercise be made from its lesson and exercises.md?");
    exercises->add_option("DAY", made_day, kDay);
    exercises->footer("example: ./course exercises day05");
    exercises->callback(
        [&] { command = [&](const Checkout& checkout) { return try_exercises(checkout, made_day); }; });

    NewDayOptions created;
    auto* create = app.add_subcommand("new-day", "For authors: writes a day that compiles, to be filled in");
    create->add_option("NAME", created.directory, "dayNN_topic")->required();
    create->add_option("--title", created.title, "Its title")->type_name("TEXT");
    create->add_option("--question", created.question, "The question it answers")->type_name("TEXT");
    create->footer("example: ./course new-day day17_filter --title Filter");
    create->callback([&] { command = [&](const Checkout& checkout) { return new_day(checkout, created); }; });

    try {
        app.parse(with_separator({run, inspect, debug}, argc, argv));
    } catch (const CLI::ExtrasError&) {
        fmt::print(stderr, "course: {}\n", unknown_argument(app));
        return kUsage;
    } catch (const CLI::RequiredError& error) {
        const auto chosen = app.get_subcommands();
        fmt::print(stderr, "course: {}{}\n", error.what(),
                   chosen.empty() ? "" : fmt::format("; {}", chosen.front()->get_footer()));
        return kUsage;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kSuccess : kUsage;
    }
    if (!command) {
        fmt::print("{}", app.help());
        return kSuccess;
    }
    try {
        return command(checkout_from_environment());
    } catch (const UsageError& error) {
        return report(error, kUsage);
    } catch (const Interrupted& error) {
        return report(error, kInterrupted);
    } catch (const BuildError& error) {
        return report(error, kBuildFailed);
    } catch (const std::exception& error) {
        return report(error, kFailed);
    }
}

}  // namespace course::tool
