#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>

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
constexpr const char* kExercise =
    "day05, day05/coalesced or coalesced; without it the one named last or, if it is solved, the next";
constexpr const char* kForwarded =
    "From the first other option on, or after --: handed to the program as they are";

constexpr const char* kDeviceLinking = "--rdc";

void add_device_linking(CLI::App* command, bool& rdc) {
    command->add_flag(kDeviceLinking, rdc,
                      "Of a program of your own: kernels use __device__ functions and variables of its other "
                      "files (nvcc -rdc=true)");
}

int report(const std::exception& error, int exit_code) {
    fmt::print(stderr, "{} {}\n", styled("course:", kBad, stderr), error.what());
    return exit_code;
}

// How many options of the command stand between its name and the files of the user's own program:
// `run --rdc my.cu`.
std::ptrdiff_t options_before_files(const std::vector<std::string>& arguments) {
    return arguments.size() > 1 && arguments[1] == kDeviceLinking ? 1 : 0;
}

// The arguments, last to first as CLI11 expects them. `forwarding` are commands that pass
// arguments on to the day's program. After one of them, the first option that is not the command's
// own, and everything after it, belong to the program, so "--" is inserted before it.
std::vector<std::string> with_separator(std::initializer_list<const CLI::App*> forwarding, int argc,
                                        const char* const* argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    for (const CLI::App* command : forwarding) {
        if (arguments.size() <= 2 || arguments.front() != command->get_name()) continue;
        // For the user's own program, everything after its files belongs to that program.
        const std::ptrdiff_t options = options_before_files(arguments);
        const auto files =
            static_cast<std::ptrdiff_t>(own_files({arguments.begin() + 1 + options, arguments.end()}).size());
        if (files > 0 && command->get_name() == "run") {
            const auto first = arguments.begin() + 1 + options;
            const auto behind = first + files;
            if (behind != arguments.end() && *behind == "--") arguments.erase(behind);
            arguments.insert(first + 1, "--");
            continue;
        }
        const auto is_foreign = [command](const std::string& argument) {
            return argument.starts_with("-") && command->get_option_no_throw(argument) == nullptr;
        };
        const auto takes_value = [command](const std::string& argument) {
            const CLI::Option* const option = command->get_option_no_throw(argument);
            return argument.starts_with("-") && option != nullptr && option->get_items_expected_min() > 0;
        };
        auto first = arguments.begin() + 2;  // `--size -5`: the value is not an option
        while (first != arguments.end() && (!is_foreign(*first) || takes_value(*std::prev(first))))
            ++first;
        if (first == arguments.end()) continue;
        if (*first != "--") first = arguments.insert(first, "--");
        // CLI11 expects the values of ARGUMENTS side by side: `my.cu more.cu --html page.html -- 7`
        // becomes `my.cu --html page.html -- more.cu 7`.
        const auto first_file = arguments.begin() + 1 + options;
        if (files > 1) std::rotate(first_file + 1, first_file + files, first + 1);
    }
    std::reverse(arguments.begin(), arguments.end());
    return arguments;
}

// The action of the chosen command; empty until a command has been read.
using Action = std::function<int(const Checkout&)>;

// The parameters of the add_* functions below: the parser, the action to set, and all arguments.
struct CommandLine {
    CLI::App& app;
    Action& action;
    const AuthorCommands& authors;
    std::vector<std::string> arguments;  // without the program's name

    CLI::App* add(const char* name, const char* summary, const std::string& footer) {
        CLI::App* const command = app.add_subcommand(name, summary);
        command->footer(footer);
        return command;
    }

    // The files of the user's own program. The command has parsed the first of them as its DAY.
    std::vector<std::string> files_from(const std::string& first) const {
        return own_files({std::find(arguments.begin(), arguments.end(), first), arguments.end()});
    }
};

// One function for each command. Options live as long as the action that reads them.

void add_list(CommandLine& line) {
    auto* command = line.add("list", "The days, and the chapters of the book that they go with",
                             "example: ./course list");
    command->callback([&line] { line.action = list_days; });
}

CLI::App* add_run(CommandLine& line) {
    auto* command =
        line.add("run", "Builds a day's program and runs it: every version verified and timed",
                 "example: ./course run vector_add --size 1000000\n         ./course run day01 -- --help\n"
                 "         ./course run --mine day05/coalesced --size 64x64x64\n"
                 "         ./course run day00 --program vector_add 1000003\n"
                 "         ./course run day15 --program 1000003\n"
                 "         ./course run day10 --image in.png --sigma 4 --out out.png\n"
                 "         ./course run gemm_ladder --step 0,5 --m 1000 --n 3000 --k 500\n"
                 "         ./course run my.cu more.cu -- arguments of the program\n"
                 "         ./course run --rdc my.cu more.cu");
    const auto options = std::make_shared<RunOptions>();
    command->add_option("DAY", options->day, std::string(kDay) + "; or a program of your own: my.cu")
        ->required();
    command->add_option("--size", options->size, "Problem size, as the day's program reads it")
        ->type_name("N");
    command->add_option("--only", options->version, "Only this version")->type_name("V");
    command->add_option("--json", options->json, "Writes the records to this file, as JSON Lines")
        ->type_name("FILE");
    auto* program =
        command
            ->add_option(
                "--program", options->program,
                "The day's program.cu, one file with main(); of a day of whole programs (day00) only P")
            ->type_name("[P]")
            ->expected(0, 1);
    command->add_flag(
        "--mine", options->mine,
        "Your kernels, from my/, in the place of the lesson's; DAY may be an exercise: day05/coalesced");
    add_device_linking(command, options->rdc);
    command->add_option("ARGUMENTS", options->extra, kForwarded);
    command->callback([&line, options, program] {
        options->whole_program = program->count() > 0;
        const std::vector<std::string> files = own_files(
            {line.arguments.begin() + 1 + options_before_files(line.arguments), line.arguments.end()});
        line.action = [options, files](const Checkout& checkout) {
            return files.empty() ? run_day(checkout, *options) : run_own_program(checkout, *options, files);
        };
    });
    return command;
}

CLI::App* add_inspect(CommandLine& line) {
    auto* command = line.add(
        "inspect",
        "Counts how a day's kernels use memory, line by line, and looks for races and bad accesses; no GPU",
        "exit code: 1 when there are findings\n"
        "example: ./course inspect day05 --only tiled_static\n"
        "         ./course inspect gemm_ladder --only 08_swizzle --size 256x256x256 --html swizzle.html\n"
        "         ./course inspect my.cu more.cu --html page.html -- arguments of the program");
    const auto options = std::make_shared<InspectOptions>();
    command->add_option("DAY", options->day, std::string(kDay) + "; or a program of your own: my.cu")
        ->required();
    command->add_option("--only", options->version, "Only this version")->type_name("V");
    command->add_option("--size", options->size, "Problem size, as the day's program reads it")
        ->type_name("N");
    command->add_option("--html", options->html, "Writes a page with the annotated source to this file")
        ->type_name("FILE");
    command->add_option("--json", options->json, "Writes all figures to this file")->type_name("FILE");
    command
        ->add_option("--trace", options->trace,
                     "Writes what one warp of each kernel does, step by step, to this file, as JSON Lines")
        ->type_name("FILE");
    add_device_linking(command, options->rdc);
    command->add_option("ARGUMENTS", options->extra, kForwarded);
    command->callback([&line, options] {
        line.action = [options, files = line.files_from(options->day)](const Checkout& checkout) {
            return files.empty() ? inspect_day(checkout, *options)
                                 : inspect_own_program(checkout, *options, files);
        };
    });
    return command;
}

void add_test(CommandLine& line) {
    auto* command = line.add("test", "Builds and runs the tests of all lessons, or all tests of one",
                             "example: ./course test day01\n         ./course test --thorough");
    const auto options = std::make_shared<TestOptions>();
    auto* day = command->add_option("DAY", options->day, kDay);
    const auto add_half = [&](const char* name, TestHalf half, const char* summary) {
        return command
            ->add_flag_callback(
                name, [options, half] { options->half = half; }, summary)
            ->excludes(day);
    };
    auto* thorough = add_half(
        "--thorough", TestHalf::kBoth,
        "Also other orders of threads, blocks and streams, older GPUs, the tests of cuda_on_cpu and tools/");
    add_half("--rest", TestHalf::kRest, "Only what --thorough runs and a plain ./course test does not")
        ->excludes(thorough);
    command->callback([&line, options] {
        line.action = [options](const Checkout& checkout) { return test_days(checkout, *options); };
    });
}

void add_bench(CommandLine& line) {
    auto* command =
        line.add("bench", "Measures a day's full list of problems",
                 "example: ./course bench day01\n         ./course bench gemm_ladder --sweep --record");
    const auto options = std::make_shared<BenchOptions>();
    command->add_option("DAY", options->day, kDay)->required();
    auto* sweep = command->add_flag(
        "--sweep", options->sweep,
        "A long list of shapes instead, where the day has one (21, 35, 41, 42, 45, gemm_ladder)");
    auto* counters = command
                         ->add_flag("--counters", options->counters,
                                    "What limits each version, instead of times: hardware counters, by "
                                    "Nsight Compute")
                         ->excludes(sweep);
    auto* plot =
        command
            ->add_flag("--plot", options->plot,
                       "The sizes of the day's plots instead (45 to 48), which scripts/draw_sizes.py draws")
            ->excludes(sweep)
            ->excludes(counters);
    command
        ->add_flag("--cpu-times", options->cpu_times,
                   "Only plain loops and what else runs on the host's CPU; --record adds them to the records")
        ->excludes(sweep)
        ->excludes(counters)
        ->excludes(plot);
    command->add_flag("--record", options->record, "Keeps the figures in docs/measurements/<machine>/");
    command->add_option("--random", options->random.count,
                        "So many random problems instead, which a distribution of the day draws");
    command->add_option("--seed", options->random.seed, "With --random: another seed, other problems (1)");
    command->add_option("--random-limit", options->random.limit, "With --random: the most work of a problem");
    command->add_option("--json", options->json, "With --random: a line for each problem, in this file");
    command->callback([&line, options] {
        line.action = [&line, options](const Checkout& checkout) {
            return line.authors.bench_day(checkout, *options);
        };
    });
}

CLI::App* add_profile(CommandLine& line) {
    auto* command = line.add(
        "profile",
        "What limits each version: a GPU's counters, beside what an inspection counts on this machine",
        "example: ./course profile day15\n"
        "         ./course profile day15 --only shared_memory --inspect\n"
        "         ./course profile day06 --compare naive padded\n"
        "         ./course profile my.cu more.cu -- arguments of the program");
    const auto options = std::make_shared<ProfileOptions>();
    command->add_option("DAY", options->day, std::string(kDay) + "; or a program of your own: my.cu")
        ->required();
    auto* only = command->add_option("--only", options->version, "Only this version, or this kernel of my.cu")
                     ->type_name("V");
    command->add_option("--compare", options->compare, "Two of them side by side, what changed most first")
        ->type_name("A B")
        ->expected(2)
        ->excludes(only);
    command
        ->add_option("--gpu", options->gpu,
                     "The stored counters of this GPU, h200; without it, a GPU that is there is measured now")
        ->type_name("NAME");
    command->add_option("--html", options->html, "Writes the same as a page to this file")->type_name("FILE");
    command->add_flag("--inspect", options->inspect,
                      "Builds the day's inspection if it is not there yet, which may take a minute");
    add_device_linking(command, options->rdc);
    command->add_option("ARGUMENTS", options->extra, kForwarded);
    command->callback([&line, options] {
        options->files = line.files_from(options->day);
        line.action = [&line, options](const Checkout& checkout) {
            return line.authors.show_profile(checkout, *options);
        };
    });
    return command;
}

void add_tables(CommandLine& line) {
    auto* command = line.add(
        "tables", "Makes docs/measured and the tables in the READMEs from the records in docs/measurements",
        "example: ./course tables --check");
    const auto check_only = std::make_shared<bool>(false);
    command->add_flag("--check", *check_only, "Writes nothing; exits with 1 and names the file that differs");
    command->callback([&line, check_only] {
        line.action = [&line, check_only](const Checkout& checkout) {
            return line.authors.update_tables(checkout, *check_only);
        };
    });
}

void add_doctor(CommandLine& line) {
    auto* command = line.add("doctor", "The tools and the GPU (or why none is used), and its limits",
                             "example: ./course doctor");
    command->callback([&line] { line.action = doctor; });
}

void add_occupancy(CommandLine& line) {
    auto* command = line.add(
        "occupancy", "What if: how many blocks are resident on a multiprocessor, and what changes it",
        "example: ./course occupancy --threads 256 --registers 40 --shared 16384 --capability 8.6");
    const auto options = std::make_shared<OccupancyOptions>();
    command->add_option("--threads", options->threads, "Of a block")->type_name("N")->required();
    command
        ->add_option("--registers", options->registers,
                     "Of a thread, as nvcc -Xptxas -v prints them; without it they are not counted")
        ->type_name("N");
    command->add_option("--shared", options->shared, "Bytes of shared memory of a block, static and dynamic")
        ->type_name("BYTES");
    command
        ->add_option("--capability", options->capability,
                     "Compute capability; without it the device's, or 9.0")
        ->type_name("X.Y");
    command->callback(
        [&line, options] { line.action = [options](const Checkout&) { return show_occupancy(*options); }; });
}

void add_tune(CommandLine& line) {
    auto* command = line.add("tune",
                             "Measures the tiles of the ladder's dispatcher and of day 41 on this GPU, for "
                             "their choices from now on",
                             "example: ./course tune");
    command->callback([&line] { line.action = tune_tiles; });
}

void add_next(CommandLine& line) {
    auto* command =
        line.add("next", "The next exercise: what it asks, and where to write",
                 "example: ./course next\n         ./course next day15\n         ./course next --beyond");
    const auto options = std::make_shared<NextCommand>();
    auto* name = command->add_option("EXERCISE", options->name, kExercise);
    command->add_flag("--beyond", options->beyond, "The next of those that are not of the core")
        ->excludes(name);
    command->callback([&line, options] {
        line.action = [options](const Checkout& checkout) { return next_exercise(checkout, *options); };
    });
}

void add_quiz(CommandLine& line) {
    auto* command =
        line.add("quiz", "Asks a day's questions: what do you predict?", "example: ./course quiz day15");
    const auto day = std::make_shared<std::string>();
    command->add_option("DAY", *day, kDay)->required();
    command->callback(
        [&line, day] { line.action = [day](const Checkout& checkout) { return quiz(checkout, *day); }; });
}

void add_check_options(CLI::App* command, CheckCommand& options) {
    command->add_option("EXERCISE", options.name, kExercise);
    command->add_flag("--gpu", options.gpu,
                      "On the GPU; without it on the CPU, which says more about a mistake");
    command->add_flag("--inspect", options.inspect,
                      "Also looks for races, bank conflicts and uncoalesced accesses, in a build of its own; "
                      "from then on always");
    command
        ->add_option_function<int>(
            "--limit", [&options](int seconds) { options.limit = std::chrono::seconds(seconds); },
            "Seconds that one of its tests may take")
        ->check(CLI::Range(1, 3600))
        ->default_str("60");
}

void add_check(CommandLine& line) {
    auto* command = line.add("check", "Builds an exercise with your file and tests it",
                             "exit code: 1 when one of those that you name is not solved, or blank\n"
                             "example: ./course check day05/coalesced\n"
                             "         ./course check --all --keep-going --json verdicts.json");
    const auto options = std::make_shared<CheckCommand>();
    add_check_options(command, *options);
    command->add_flag("--all", options->all, "Every exercise that you have begun");
    command->add_flag("--keep-going", options->keep_going, "Goes on after one that is not solved");
    command->add_option("--json", options->json, "Writes the verdicts, also of those that are blank")
        ->type_name("FILE");
    command
        ->add_option("--html", options->html, "--inspect, and writes a page with your source and its counts")
        ->type_name("FILE");
    command->callback([&line, options] {
        line.action = [options](const Checkout& checkout) { return check_exercises(checkout, *options); };
    });
}

CLI::App* add_debug(CommandLine& line) {
    auto* command = line.add("debug", "Stops in the first line of your kernel, in gdb; on the CPU",
                             "example: ./course debug day05/coalesced --size 8x8x8\n"
                             "         ./course debug my.cu more.cu -- arguments of the program");
    const auto options = std::make_shared<DebugOptions>();
    command->add_option("EXERCISE", options->name,
                        std::string(kExercise) + "; or a program of your own: my.cu");
    command->add_option("--only", options->version, "Not the exercise's version but this one")
        ->type_name("V");
    command
        ->add_option("--size", options->size,
                     "Problem size, as the day's program reads it; without it a small one")
        ->type_name("N");
    add_device_linking(command, options->rdc);
    command->add_option("ARGUMENTS", options->extra, kForwarded);
    command->callback([&line, options] {
        line.action = [options,
                       files = line.files_from(options->name.value_or(""))](const Checkout& checkout) {
            return files.empty() ? debug_exercise(checkout, *options)
                                 : debug_own_program(checkout, *options, files);
        };
    });
    return command;
}

void add_watch(CommandLine& line) {
    auto* command = line.add("watch", "Checks an exercise whenever you save its file, then the next one",
                             "example: ./course watch day05");
    const auto options = std::make_shared<WatchCommand>();
    add_check_options(command, options->check);
    command->add_flag("--poll", options->poll,
                      "Looks at the file again and again: for file systems that tell no news");
    command->callback([&line, options] {
        line.action = [options](const Checkout& checkout) { return watch_exercise(checkout, *options); };
    });
}

void add_hint(CommandLine& line) {
    auto* command = line.add("hint", "The next hint", "example: ./course hint day05/coalesced");
    const auto name = std::make_shared<std::optional<std::string>>();
    command->add_option("EXERCISE", *name, kExercise);
    command->callback([&line, name] {
        line.action = [name](const Checkout& checkout) { return show_hint(checkout, *name); };
    });
}

void add_reset(CommandLine& line) {
    auto* command =
        line.add("reset", "Makes an exercise, or a day's files, blank again; keeps what was there",
                 "example: ./course reset day05/coalesced");
    const auto name = std::make_shared<std::string>();
    command->add_option("EXERCISE", *name, "day05, day05/coalesced or coalesced")->required();
    command->callback([&line, name] {
        line.action = [name](const Checkout& checkout) { return reset_exercise(checkout, *name); };
    });
}

void add_progress(CommandLine& line) {
    auto* command = line.add("progress", "All exercises, and which are solved", "example: ./course progress");
    const auto options = std::make_shared<ProgressCommand>();
    auto* day = command->add_option("DAY", options->name,
                                    "Only this day; else all, and in full that of the next exercise");
    auto* json = command->add_flag("--json", options->as_json, "For other programs")->excludes(day);
    command->add_flag("--all", options->all, "Every exercise of every day")->excludes(json)->excludes(day);
    command->callback([&line, options] {
        line.action = [options](const Checkout& checkout) { return show_progress(checkout, *options); };
    });
}

void add_clean(CommandLine& line) {
    auto* command = line.add("clean", "Removes all builds, which can take some GB; your files stay",
                             "example: ./course clean");
    command->callback([&line] {
        line.action = [](const Checkout&) -> int {
            throw UsageError("clean removes this program, too; expected ./course clean in the checkout");
        };
    });
}

void add_grade(CommandLine& line) {
    auto* command = line.add("grade", "For teachers: judges what students handed in, each in a sandbox",
                             "example: ./course grade handed_in/* --days day05,day15");
    command->callback([&line] {
        line.action = [](const Checkout&) -> int {
            throw UsageError("grade is a script; expected ./course grade in the checkout");
        };
    });
}

void add_site(CommandLine& line) {
    auto* command = line.add("site", "Builds the course's pages as a static site; --serve shows it",
                             "example: ./course site --serve");
    command->callback([&line] {
        line.action = [](const Checkout&) -> int {
            throw UsageError("site is a script; expected ./course site in the checkout");
        };
    });
}

void add_solution(CommandLine& line) {
    auto* command =
        line.add("solution", "How the lesson does it", "example: ./course solution day05/coalesced");
    const auto options = std::make_shared<SolutionCommand>();
    command->add_option("EXERCISE", options->name, kExercise);
    command->add_flag("--force", options->force, "Also when it has not been tried");
    command->add_flag("--paste", options->paste,
                      "Puts it into your file; what was there is kept as <file>.bak");
    command->callback([&line, options] {
        line.action = [options](const Checkout& checkout) { return show_solution(checkout, *options); };
    });
}

void add_exercises(CommandLine& line) {
    auto* command =
        line.add("exercises", "For authors: can every exercise be made from its lesson and exercises.md?",
                 "example: ./course exercises day05");
    const auto day = std::make_shared<std::optional<std::string>>();
    command->add_option("DAY", *day, kDay);
    command->callback([&line, day] {
        line.action = [&line, day](const Checkout& checkout) {
            return line.authors.try_exercises(checkout, *day);
        };
    });
}

void add_new_day(CommandLine& line) {
    auto* command = line.add("new-day", "For authors: writes a day that compiles, to be filled in",
                             "example: ./course new-day day97_dot_product --title \"Dot product\"");
    const auto options = std::make_shared<NewDayOptions>();
    command->add_option("NAME", options->directory, "dayNN_topic")->required();
    command->add_option("--title", options->title, "Its title")->type_name("TEXT");
    command->add_option("--question", options->question, "The question it answers")->type_name("TEXT");
    command->callback([&line, options] {
        line.action = [&line, options](const Checkout& checkout) {
            return line.authors.new_day(checkout, *options);
        };
    });
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const AuthorCommands& authors) {
    CLI::App app(
        "CUDA, day by day: runs, tests and measures the lessons, on a GPU or, without one, on the CPU.",
        "./course");
    app.require_subcommand(0, 1);
    app.footer(fmt::format("example: ./course run day01\n{}", kExitCodes));
    Action action;
    CommandLine line{app, action, authors, {argv + 1, argv + argc}};

    // In the order of ./course --help.
    add_list(line);
    const CLI::App* const run = add_run(line);
    const CLI::App* const inspect = add_inspect(line);
    add_test(line);
    add_bench(line);
    add_tune(line);
    const CLI::App* const profile = add_profile(line);
    add_tables(line);
    add_doctor(line);
    add_occupancy(line);
    add_next(line);
    add_quiz(line);
    add_check(line);
    const CLI::App* const debug = add_debug(line);
    add_watch(line);
    add_hint(line);
    add_reset(line);
    add_progress(line);
    add_clean(line);
    add_solution(line);
    add_exercises(line);
    add_grade(line);
    add_site(line);
    add_new_day(line);

    try {
        app.parse(with_separator({run, inspect, profile, debug}, argc, argv));
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
    if (!action) {
        fmt::print("{}", app.help());
        return kSuccess;
    }
    try {
        return action(checkout_from_environment());
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
