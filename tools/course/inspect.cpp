#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "build.hpp"
#include "commands.hpp"
#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"
#include "common/check/check.hpp"
#include "day_command.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "inspect_explain.hpp"
#include "inspect_output.hpp"
#include "inspect_text.hpp"
#include "inspect_trace.hpp"
#include "inspect_view.hpp"
#include "own_program.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

// The file that a run of the program writes its figures to; removed at the end.
class FiguresFile {
  public:
    explicit FiguresFile(const Checkout& checkout, const std::string& day)
        : path_(checkout.build / "inspections" / fmt::format("{}.{}.json", day, getpid())) {
        std::filesystem::create_directories(path_.parent_path());
        std::filesystem::remove(path_);
    }
    ~FiguresFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    FiguresFile(const FiguresFile&) = delete;
    FiguresFile& operator=(const FiguresFile&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

Command command_for(const std::filesystem::path& program, const InspectOptions& options,
                    const std::filesystem::path& figures) {
    Command command = {program, "--inspect", figures};
    if (!options.size.empty()) command.insert(command.end(), {"--size", options.size});
    if (!options.version.empty()) command.insert(command.end(), {"--only", options.version});
    if (!options.trace.empty()) command.emplace_back("--trace");
    command.insert(command.end(), options.extra.begin(), options.extra.end());
    return command;
}

nlohmann::ordered_json read_json(const std::filesystem::path& file) {
    std::ifstream stream(file);
    try {
        return nlohmann::ordered_json::parse(stream);
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(fmt::format("{}: {}", file.string(), error.what()));
    }
}

// Adds a sentence to each line of `json`, which has the same contents as `file`.
void add_sentences(nlohmann::ordered_json& json, const InspectionFile& file) {
    for (std::size_t i = 0; i < file.results.size(); ++i) {
        const std::vector<KernelInspection>& kernels = file.results[i].kernels;
        for (std::size_t k = 0; k < kernels.size(); ++k) {
            nlohmann::ordered_json& lines = json["results"][i]["kernels"][k]["lines"];
            for (std::size_t l = 0; l < kernels[k].lines.size(); ++l)
                lines[l]["sentence"] = explain(kernels[k].lines[l]);
        }
    }
}

void write(const std::string& file, const std::string& text) {
    if (file.empty()) return;
    write_file(file, text);
    fmt::print("written: {}\n", file);
}

void require_outputs(const InspectOptions& options) {
    require_writable("--html", options.html);
    require_writable("--json", options.json);
    require_writable("--trace", options.trace);
    const std::pair<std::string_view, std::string> files[] = {
        {"--html", options.html}, {"--json", options.json}, {"--trace", options.trace}};
    for (const auto& [option, file] : files) {
        for (const auto& [other, same] : files) {
            if (option != other && !file.empty() && file == same)
                throw UsageError(
                    fmt::format("{} and {} are both '{}'; expected two files", option, other, file));
        }
    }
}

// Shows the inspection on the terminal, and writes it to the files that the learner has named.
void show(const InspectionFile& file, nlohmann::ordered_json json, const PageHead& head,
          const Checkout& checkout, const InspectOptions& options) {
    const auto limits = limits_of_device();
    Sources sources(checkout.root);
    fmt::print("{}", inspection_text(file, limits, sources, use_colour(stdout)));
    if (!options.html.empty()) write(options.html, inspection_page(head, file, limits, sources));
    write(options.trace, trace_text(file, sources));
    if (options.json.empty()) return;
    add_sentences(json, file);
    write(options.json, json.dump(2) + "\n");
}

std::string how_it_ended(int exit_code) {
    if (exit_code == kSuccess) return "";
    if (exit_code > 128) return fmt::format("The program was ended by signal {}.", exit_code - 128);
    return fmt::format("The program ended with exit code {}.", exit_code);
}

}  // namespace

void require_writable(const char* option, const std::filesystem::path& file) {
    const auto refuse = [&](const std::string& reason) {
        throw UsageError(fmt::format("{}: cannot write '{}': {}", option, file.string(), reason));
    };
    if (file.empty()) return;
    std::error_code error;
    const bool existed = std::filesystem::exists(file, error);
    if (existed && !std::filesystem::is_regular_file(file)) refuse("it is there, and is no file");
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
    if (error) refuse(error.message());
    if (!std::ofstream(file, std::ios::app)) refuse("no permission, or no such directory");
    if (!existed) std::filesystem::remove(file);
}

std::optional<MultiprocessorLimits> limits_of_device() {
    try {
        return multiprocessor_limits();
    } catch (const CudaError&) {
        return std::nullopt;
    }
}

PageHead head_of(const Day& day) {
    return {day.number ? fmt::format("Day {}: {}", *day.number, day.title) : day.title, day.question};
}

Inspected inspect_versions(const Checkout& checkout, const Day& lesson, const InspectOptions& options) {
    const std::string& day = lesson.directory;
    const VariantBuild inspecting = configure_inspected_build(checkout);
    const std::filesystem::path program = inspecting.program_of_day(day);
    announce_first_build(
        inspecting.checkout, program.filename(),
        fmt::format("the first inspection of {} compiles its kernels anew, to watch every access", day));
    build_target(inspecting.checkout, inspecting.target(lesson.program_target()));

    const FiguresFile figures(inspecting.checkout, day);
    fmt::print(stderr, "{}\n", styled("course: inspecting " + day, kQuiet, stderr));
    const Captured outcome = capture(command_for(program, options, figures.path()));
    if (outcome.exit_code != kSuccess) fmt::print(stderr, "{}", outcome.output);
    if (outcome.exit_code == kUsage || outcome.exit_code > 128) return {outcome.exit_code, {}};
    if (!std::filesystem::exists(figures.path()))
        throw std::runtime_error(fmt::format("{} wrote no figures: see above", day));
    return {outcome.exit_code, inspection_file_from_json(read_json(figures.path()))};
}

int inspect_day(const Checkout& checkout, const InspectOptions& options) {
    require_no_device_linking(options.rdc, options.day);
    const Calendar calendar = load_calendar(checkout.calendar());
    const Day& lesson = find_day_with_versions(calendar, options.day, "inspect");
    require_size(options.size);
    require_outputs(options);
    const auto [exit_code, file] = inspect_versions(checkout, lesson, options);
    if (!file) return exit_code;
    show(*file, to_json(*file), head_of(lesson), checkout, options);
    return exit_code == kSuccess && count_findings(*file) == 0 ? kSuccess : kFailed;
}

Inspected inspect_program(const Checkout& checkout, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& files, const ProgramBuild& how) {
    const Checkout inspecting = build_of_preset(checkout, "inspect");
    announce_first_build(inspecting, "cuda_on_cpu_compile",
                         "the first inspection builds what watches every access");
    Command command = {build_own_program(inspecting, files, how)};
    command.insert(command.end(), arguments.begin() + static_cast<std::ptrdiff_t>(files.size()) - 1,
                   arguments.end());
    const std::string name = std::filesystem::path(files.front()).filename();
    const FiguresFile figures(inspecting, name);
    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    setenv("CUDA_ON_CPU_INSPECTION", figures.path().c_str(), 1);
    const int exit_code = run(command);
    if (exit_code == kInterrupted && !std::filesystem::exists(figures.path())) return {exit_code, {}};
    if (!std::filesystem::exists(figures.path()))
        throw std::runtime_error(
            fmt::format("{} There is no inspection: it is written when the program ends by itself.",
                        how_it_ended(exit_code)));

    InspectedVersion whole{
        .problem = "the whole program", .version = name, .judged = false, .failure = how_it_ended(exit_code)};
    const nlohmann::ordered_json seen = read_json(figures.path());
    seen.at("awaited_copies").get_to(whole.awaited_copies);
    seen.at("awaited_copy_bytes").get_to(whole.awaited_copy_bytes);
    for (const nlohmann::ordered_json& kernel : seen.at("kernels"))
        whole.kernels.push_back(kernel_inspection_from_json(kernel));
    if (whole.kernels.empty())
        whole.failure += fmt::format(
            "{}The program launched no kernel, so there is nothing to count: did it end before, with a "
            "message above? Arguments of its own stand behind --: ./course inspect {} -- 1000",
            whole.failure.empty() ? "" : " ", files.front());
    return {exit_code, InspectionFile{.day = name, .commit = "", .results = {std::move(whole)}}};
}

int inspect_own_program(const Checkout& checkout, const InspectOptions& options,
                        const std::vector<std::string>& files) {
    if (!options.version.empty() || !options.size.empty())
        throw UsageError(fmt::format(
            "{}: a program of your own has neither versions nor sizes that are known here; its own "
            "arguments stand behind --",
            options.version.empty() ? "--size" : "--only"));
    if (!options.trace.empty())
        throw UsageError(
            fmt::format("--trace '{}': only the versions of a day are traced; expected a day, not '{}'",
                        options.trace, options.day));
    require_outputs(options);
    require_program(files);
    const auto [exit_code, file] =
        inspect_program(checkout, options.extra, files, {.relocatable_device_code = options.rdc});
    if (!file) return exit_code;
    show(*file, to_json(*file), {file->day, ""}, checkout, options);
    if (exit_code != kSuccess) return exit_code;
    return count_findings(*file) == 0 ? kSuccess : kFailed;
}

}  // namespace course::tool
