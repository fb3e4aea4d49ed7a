#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "build.hpp"
#include "commands.hpp"
#include "common/bench/machine.hpp"
#include "common/check/nearest.hpp"
#include "counters.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "inspect_output.hpp"
#include "inspect_view.hpp"
#include "measure_counters.hpp"
#include "measurements.hpp"
#include "own_program.hpp"
#include "profile_page.hpp"
#include "profile_view.hpp"
#include "styles.hpp"
#include "subprocess.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".counters.jsonl";

// The machines with counters of the day; of every day, if none is named.
std::vector<std::string> machines_with_counters(const fs::path& measurements, const std::string& day) {
    std::vector<std::string> machines;
    if (!fs::is_directory(measurements)) return machines;
    for (const auto& machine : fs::directory_iterator(measurements)) {
        if (fs::exists(machine.path() / (day + std::string(kSuffix))))
            machines.push_back(machine.path().filename());
    }
    std::ranges::sort(machines);
    return machines;
}

// "day01, day03, gemm_ladder": the days with counters of some machine.
std::string days_with_counters(const Checkout& checkout, const Calendar& calendar) {
    std::vector<std::string> names;
    for (const Day& day : calendar.days)
        if (!machines_with_counters(checkout.measurements(), day.directory).empty())
            names.push_back(short_name(day));
    return names.empty() ? "no day has any" : fmt::format("these days have some: {}", fmt::join(names, ", "));
}

// The stored counters of the day, on the chosen machine or the first that has some.
fs::path stored_counters(const Checkout& checkout, const Calendar& calendar, const Day& day,
                         const std::string& gpu) {
    const std::vector<std::string> machines = machines_with_counters(checkout.measurements(), day.directory);
    if (machines.empty())
        throw UsageError(fmt::format("no counters of {} are stored; {}", day.directory,
                                     days_with_counters(checkout, calendar)));
    if (!gpu.empty() && std::ranges::find(machines, gpu) == machines.end())
        throw UsageError(fmt::format("--gpu: {}", unknown_name("machine with counters", gpu, machines)));
    return checkout.measurements() / (gpu.empty() ? machines.front() : gpu) /
           (day.directory + std::string(kSuffix));
}

// The times of the same machine: measured with the counters, or stored; none where there are none.
std::vector<MeasuredRecord> times_of(const Checkout& checkout, const fs::path& counters) {
    std::string name = counters.filename();
    name.replace(name.size() - kSuffix.size(), kSuffix.size(), ".jsonl");
    for (const fs::path& directory :
         {counters.parent_path(), checkout.measurements() / counters.parent_path().filename()})
        if (fs::exists(directory / name)) return load_records(directory / name);
    return {};
}

std::optional<MeasuredRecord> time_of(const std::vector<MeasuredRecord>& records,
                                      const KernelCounters& kernel) {
    const auto found = std::ranges::find_if(records, [&](const MeasuredRecord& record) {
        return record.problem == kernel.problem && record.version == kernel.version &&
               record.role == "ours" && record.l2 == "warm";
    });
    return found == records.end() ? std::nullopt : std::optional(*found);
}

// The longest time of the version on any problem.
std::optional<MeasuredRecord> longest_time_of(const std::vector<MeasuredRecord>& records,
                                              const std::string& version) {
    std::optional<MeasuredRecord> longest;
    for (const MeasuredRecord& record : records) {
        if (record.version == version && record.role == "ours" && record.l2 == "warm" &&
            (!longest || record.median_ms > longest->median_ms))
            longest = record;
    }
    return longest;
}

// The reason of each kernel's class, from the script that has the rule; empty where it cannot run.
std::vector<std::string> reasons_of(const Checkout& checkout, const fs::path& counters) {
    const Captured said = capture({checkout.root / "scripts/counters.py", "--why", counters});
    std::vector<std::string> reasons;
    std::string_view text = said.output;
    while (said.exit_code == kSuccess && !text.empty())
        reasons.emplace_back(next_line(text));
    return reasons;
}

// Runs the command that writes counters of `name` to a file, and returns the file.
template <class MakeCommand>
fs::path counted(const Checkout& checkout, const std::string& name, const ProfileOptions& options,
                 const MakeCommand& make_command) {
    const fs::path output =
        checkout.build / "measurements" / this_machine().slug / (name + std::string(kSuffix));
    fs::create_directories(output.parent_path());
    const Command command = make_command(output);
    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    const int exit_code = run(command);
    if (exit_code == kInterrupted) throw Interrupted();
    if (exit_code != kSuccess)
        throw std::runtime_error(
            options.files.empty()
                ? fmt::format("nothing was counted; the stored counters: ./course profile {} --gpu h200",
                              options.day)
                : fmt::format("nothing was counted; without a GPU: COURSE_PRESET=cpu ./course profile {}",
                              options.files.front()));
    return output;
}

// All versions of a file of counters, each on the problem that takes it longest.
std::vector<Profile> profiles_of(const Checkout& checkout, const fs::path& file) {
    const std::vector<KernelCounters> counters = load_counters(file);
    if (counters.empty())
        throw std::runtime_error(fmt::format("{}: there is no kernel behind the header", file.string()));
    const std::vector<MeasuredRecord> records = times_of(checkout, file);
    const std::vector<std::string> reasons = reasons_of(checkout, file);
    const std::string gpu = counted_device(file);
    std::vector<Profile> profiles;
    for (const KernelCounters& counted : counters) {
        std::vector<KernelCounters> kernels = kernels_of(counters, counted.problem, counted.version);
        const auto known = std::ranges::find(profiles, counted.version, &Profile::name);
        if (known != profiles.end() && known->kernels.front().microseconds >= kernels.front().microseconds)
            continue;
        const auto longest = std::ranges::find_if(counters, [&](const KernelCounters& kernel) {
            return kernel.problem == counted.problem && kernel.version == counted.version &&
                   kernel.kernel == kernels.front().kernel;
        });
        const auto line = static_cast<std::size_t>(longest - counters.begin());
        Profile profile{.name = counted.version,
                        .problem = counted.problem,
                        .gpu = gpu,
                        .kernels = std::move(kernels),
                        .reason = reasons.size() == counters.size() ? reasons[line] : "",
                        .timed = time_of(records, counted)};
        if (!profile.timed) profile.timed_on_another = longest_time_of(records, counted.version);
        if (known == profiles.end())
            profiles.push_back(std::move(profile));
        else
            *known = std::move(profile);
    }
    return profiles;
}

// Those that the options name, or all.
std::vector<Profile> chosen(const std::vector<Profile>& profiles, const ProfileOptions& options) {
    std::vector<std::string> versions = options.compare;
    if (!options.version.empty()) versions.push_back(options.version);
    if (versions.empty()) return profiles;
    std::vector<std::string> names;
    for (const Profile& profile : profiles)
        names.push_back(profile.name);
    std::vector<Profile> found;
    for (const std::string& version : versions) {
        const auto profile = std::ranges::find(profiles, version, &Profile::name);
        if (profile == profiles.end())
            throw UsageError(unknown_name(options.files.empty() ? "version" : "kernel", version, names));
        found.push_back(*profile);
    }
    return found;
}

// "day05::multiply<32>" -> "multiply"
std::string_view without_arguments(std::string_view kernel) {
    return kernel.substr(0, kernel.find('<'));
}

// Adds what the inspection has seen of the version, of its longest kernel.
void add_inspection(Profile& profile, const InspectionFile& file,
                    const std::optional<MultiprocessorLimits>& limits) {
    profile.not_inspected = "The inspection has no such version.";
    for (const InspectedVersion& version : file.results) {
        if (version.version != profile.name) continue;
        profile.inspected_problem = version.problem;
        profile.inspected_on = limits;
        profile.facts = facts_of(version);
        profile.not_inspected = version.cannot_run;
        for (const KernelInspection& kernel : version.kernels) {
            if (without_arguments(short_name(kernel.name)) == profile.kernels.front().kernel)
                profile.inspected.push_back(kernel);
        }
        if (!profile.inspected.empty()) return;
        if (profile.not_inspected.empty())
            profile.not_inspected =
                fmt::format("Here the version has no kernel of the name {}.", profile.kernels.front().kernel);
    }
}

void add_inspections(const Checkout& checkout, const Day& day, const ProfileOptions& options,
                     std::vector<Profile>& profiles) {
    const VariantBuild inspecting = inspected_build(checkout);
    if (!options.inspect && !fs::exists(inspecting.program_of_day(day.directory))) {
        for (Profile& profile : profiles)
            profile.not_inspected = fmt::format(
                "What this machine can count stands beside it after ./course profile {} --inspect, whose "
                "first build may take a minute.",
                options.day);
        return;
    }
    std::vector<std::string> versions = {""};  // all
    if (!options.version.empty()) versions = {options.version};
    if (!options.compare.empty()) versions = options.compare;
    InspectionFile file;
    for (const std::string& version : versions) {
        InspectOptions inspect;
        inspect.version = version;
        const Inspected seen = inspect_versions(checkout, day, inspect);
        if (seen.file)
            file.results.insert(file.results.end(), seen.file->results.begin(), seen.file->results.end());
    }
    for (Profile& profile : profiles)
        add_inspection(profile, file, limits_of_device());
}

// Of a day's program, measured now.
fs::path measured_counters(const Checkout& checkout, const Day& day, const ProfileOptions& options) {
    require_profiler();
    build_target(checkout, day.program_target());
    return counted(checkout, day.directory, options,
                   [&](const fs::path& output) { return count_day(checkout, day, options.version, output); });
}

// On the terminal and, where a file is named, as a page. `note` stands below.
void show(const std::vector<Profile>& profiles, const ProfileOptions& options, const PageHead& head,
          const std::string& note) {
    std::vector<Screen> screens;
    for (const Profile& profile : profiles)
        screens.push_back(screen_of(profile));
    const bool comparison = !options.compare.empty();
    if (comparison) {
        fmt::print("{}", comparison_text(screens[0], screens[1], use_colour(stdout)));
    } else {
        for (const Screen& screen : screens)
            fmt::print("{}", screen_text(screen, use_colour(stdout)));
    }
    fmt::print("\n{}", note);
    if (options.html.empty()) return;
    replace_file(options.html, profile_page(head, screens, comparison, note));
    fmt::print("written: {}\n", options.html);
}

bool is_on_gpu(const Checkout& checkout) {
    return load_calendar(checkout.calendar()).backend == "gpu";
}

int profile_day(const Checkout& checkout, const ProfileOptions& options) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const Day& day = find_day_with_versions(calendar, options.day, "profile");
    require_something_to_count(day);
    const bool measures = options.gpu.empty() && is_on_gpu(checkout);
    const fs::path file = measures ? measured_counters(checkout, day, options)
                                   : stored_counters(checkout, calendar, day, options.gpu);
    std::vector<Profile> profiles = chosen(profiles_of(checkout, file), options);
    add_inspections(checkout, day, options, profiles);
    show(profiles, options, head_of(day), counters_provenance(file));
    return kSuccess;
}

// --- A program of the user's own -----------------------------------------------------------------

PageHead head_of_program(const ProfileOptions& options) {
    return {fs::path(options.files.front()).filename(), ""};
}

int profile_on_gpu(const Checkout& checkout, const ProfileOptions& options) {
    require_profiler();
    Command program = {build_own_program(checkout, options.files, {.relocatable_device_code = options.rdc})};
    program.insert(program.end(),
                   options.extra.begin() + static_cast<std::ptrdiff_t>(options.files.size()) - 1,
                   options.extra.end());
    const fs::path file =
        counted(checkout, fs::path(options.files.front()).stem(), options,
                [&](const fs::path& output) { return count_program(checkout, program, output); });
    std::vector<Profile> profiles = chosen(profiles_of(checkout, file), options);
    for (Profile& profile : profiles)
        profile.not_inspected = fmt::format(
            "What can be counted without a GPU, line by line: ./course inspect {}", options.files.front());
    show(profiles, options, head_of_program(options), counters_provenance(file));
    return kSuccess;
}

int profile_by_inspection(const Checkout& checkout, const ProfileOptions& options) {
    const auto [exit_code, file] =
        inspect_program(checkout, options.extra, options.files, {.relocatable_device_code = options.rdc});
    if (!file) return exit_code;
    const InspectedVersion& whole = file->results.front();
    if (whole.kernels.empty()) throw std::runtime_error(whole.failure);
    std::vector<Profile> profiles;
    for (const KernelInspection& kernel : whole.kernels)
        profiles.push_back({.name = short_name(kernel.name),
                            .problem = extent(kernel),
                            .inspected_problem = file->day,
                            .inspected = {kernel},
                            .facts = facts_of(whole),
                            .inspected_on = limits_of_device()});
    const std::size_t findings = count_findings(*file);
    const std::string note = fmt::format(
        "{}Line by line, with what is wrong: ./course inspect {}\n"
        "Without a GPU these are not known: the time, how busy the units are, what warps wait for, registers "
        "and spills.\n",
        findings == 0 ? "" : fmt::format("{} finding{}. ", findings, findings == 1 ? "" : "s"),
        options.files.front());
    show(chosen(profiles, options), options, head_of_program(options), note);
    return exit_code;
}

}  // namespace

int show_profile(const Checkout& checkout, const ProfileOptions& options) {
    require_writable("--html", options.html);
    if (!options.compare.empty() && options.compare.front() == options.compare.back())
        throw UsageError(fmt::format("--compare: '{}' stands there twice; expected two versions",
                                     options.compare.front()));
    if (options.files.empty()) require_no_device_linking(options.rdc, options.day);
    if (options.files.empty()) return profile_day(checkout, options);
    if (!options.gpu.empty())
        throw UsageError("--gpu: there are no stored counters of a program of your own");
    require_program(options.files);
    return is_on_gpu(checkout) ? profile_on_gpu(checkout, options) : profile_by_inspection(checkout, options);
}

}  // namespace course::tool
