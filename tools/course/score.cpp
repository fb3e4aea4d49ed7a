#include "score.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>

#include "errors.hpp"
#include "inspect_view.hpp"
#include "sandbox.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

constexpr double kAsFast = 0.9;         // of the lesson's speed
constexpr std::uint64_t kSpare = 1000;  // tolerance 0.1 %: bank conflicts depend on the data
constexpr double kAlike = 1.01;         // two lines count as equal within 1 % when the cause is searched

// An exercise about traffic is solved if its idea is there: slightly more traffic than the lesson's
// costs a star only. The thresholds are fractions of the lesson's sectors or wavefronts, and of its
// requests and atomic operations in global memory.
constexpr double kMuchMore = 1.25;
constexpr double kMuchMisuse = 0.02;  // beyond the ideal, on top of the lesson's own excess
constexpr double kManyRequests = 1.5;
constexpr double kFewerLanes = 0.5;  // in an atomic request, on average
constexpr double kManyBytes = 1.1;   // different ones, which the warps' loads need from shared memory

constexpr std::uintmax_t kMostFigures =
    64'000'000;  // bytes that one program writes; scripts/sandbox.sh cuts there

constexpr double kFewLanes = 28;  // of 32, on average: the end of the data takes no more away

struct Traffic {
    std::uint64_t transactions = 0;
    std::uint64_t ideal = 0;
    std::uint64_t requests = 0;
    std::vector<const AccessLine*> lines{};

    std::uint64_t beyond_ideal() const { return transactions - std::min(ideal, transactions); }
    double excess() const {
        return ideal == 0 ? 1 : static_cast<double>(transactions) / static_cast<double>(ideal);
    }
};

bool no_more(std::uint64_t mine, std::uint64_t lesson) {
    return mine <= lesson + lesson / kSpare;
}

bool alike(const AccessLine& a, const AccessLine& b) {
    const auto near = [](std::uint64_t x, std::uint64_t y) {
        return static_cast<double>(std::max(x, y)) <= kAlike * static_cast<double>(std::min(x, y));
    };
    return a.operation == b.operation && a.bytes == b.bytes && near(a.transactions, b.transactions) &&
           near(a.ideal, b.ideal);
}

// Of the learner's lines that the lesson does not have as well, the one with the most avoidable
// transactions; of equals, the one with the most transactions.
const AccessLine* worst(const Traffic& mine, Traffic lesson) {
    const auto cost = [](const AccessLine& line) {
        return std::pair(line.transactions - std::min(line.ideal, line.transactions), line.transactions);
    };
    const AccessLine* found = nullptr;
    for (const AccessLine* line : mine.lines) {
        const auto like = std::ranges::find_if(
            lesson.lines, [&](const AccessLine* theirs) { return alike(*line, *theirs); });
        if (like != lesson.lines.end()) {
            lesson.lines.erase(like);
        } else if (found == nullptr || cost(*line) > cost(*found)) {
            found = line;
        }
    }
    return found;
}

// Loads that wait for another block are atomic, and as many as it happens: an exercise in which
// blocks wait compares the other accesses. Where stores are many, a load too many is not seen among
// all accesses.
enum class Counted { kAll, kNotAtomic, kLoads };

Traffic traffic(const InspectedVersion& version, Space space, Counted counted = Counted::kAll) {
    Traffic sum;
    for (const KernelInspection& kernel : version.kernels) {
        // Only some blocks are inspected, and the learner's grid may differ from the lesson's: the
        // counts are scaled to all blocks.
        const auto of_all_blocks = [each = blocks_each(kernel)](std::uint64_t count) {
            return static_cast<std::uint64_t>(std::llround(each * static_cast<double>(count)));
        };
        for (const AccessLine& line : kernel.lines) {
            if (line.space != space) continue;
            if (counted != Counted::kAll && is_atomic(line.operation)) continue;
            if (counted == Counted::kLoads && line.operation == Operation::kStore) continue;
            sum.transactions += of_all_blocks(line.transactions);
            sum.ideal += of_all_blocks(line.ideal);
            sum.requests += of_all_blocks(line.requests);
            sum.lines.push_back(&line);
        }
    }
    return sum;
}

// Updates of one address by several lanes are carried out one after the other, which requests and
// sectors do not show. Atomic loads and stores are not: they count only where lanes are compared.
enum class AtomicsCounted { kUpdates, kAll };

struct Atomics {
    std::uint64_t lanes = 0;
    std::uint64_t requests = 0;
    const AccessLine* most = nullptr;  // the line with the most of them
};

Atomics atomics_of(const InspectedVersion& version, AtomicsCounted counted) {
    Atomics sum;
    for (const KernelInspection& kernel : version.kernels) {
        for (const AccessLine& line : kernel.lines) {
            if (line.space != Space::kGlobal || !is_atomic(line.operation)) continue;
            if (counted == AtomicsCounted::kUpdates && line.operation != Operation::kAtomic) continue;
            sum.lanes += static_cast<std::uint64_t>(
                std::llround(blocks_each(kernel) * static_cast<double>(line.active_lanes)));
            sum.requests += static_cast<std::uint64_t>(
                std::llround(blocks_each(kernel) * static_cast<double>(line.requests)));
            if (sum.most == nullptr || line.active_lanes > sum.most->active_lanes) sum.most = &line;
        }
    }
    return sum;
}

std::string place_of(const SourceLine& source) {
    return fmt::format("{}:{}", source.file, source.line);
}

// The lesson's version is good enough, even where it is there to show a problem.
Criterion compare(const Traffic& mine, const Traffic& lesson, const char* what, const char* unit) {
    if (mine.transactions == 0) return {true, fmt::format("{}: not used", what), false};
    const bool star = no_more(mine.transactions, lesson.transactions);
    std::string text =
        fmt::format("{}: {} {}, {:.2f} times the ideal", what, mine.transactions, unit, mine.excess());
    if (star) return {true, text, false};
    text += fmt::format("; the lesson's has {}", lesson.transactions);
    if (const AccessLine* line = worst(mine, lesson)) text += ". See " + place_of(line->source);
    return {false, text, false};
}

bool much_more(const Traffic& mine, const Traffic& lesson) {
    const auto theirs = static_cast<double>(lesson.transactions);
    return static_cast<double>(mine.transactions) > kMuchMore * theirs ||
           static_cast<double>(mine.beyond_ideal()) >
               static_cast<double>(lesson.beyond_ideal()) + kMuchMisuse * theirs;
}

// "a.cu:7: each request of a warp touches 32 sectors; expected 4"
std::string text_of_worst(const AccessLine& line) {
    const auto per_request = [&](std::uint64_t count) {
        return static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(line.requests, 1));
    };
    const bool is_global = line.space == Space::kGlobal;
    const double count = per_request(line.transactions);
    const std::string counted =
        fmt::format("{:.3g} {}{}", count, is_global ? "sector" : "wavefront", count == 1 ? "" : "s");
    if (line.transactions > line.ideal)
        return fmt::format("{}: each request of a warp {} {}; expected {:.3g}", place_of(line.source),
                           is_global ? "touches" : "takes", counted, per_request(line.ideal));
    // A warp that diverges makes a request for each of its branches.
    const double lanes = per_request(line.active_lanes);
    if (lanes < kFewLanes)
        return fmt::format("{}: {:.3g} of 32 lanes take part in a request: does the warp diverge?",
                           place_of(line.source), lanes);
    return fmt::format("{}: {} requests of {} each", place_of(line.source), line.requests, counted);
}

std::string objection_to(const Traffic& mine, const Traffic& lesson, Space space, const char* for_what = "") {
    const bool is_global = space == Space::kGlobal;
    // Narrow loads of adjacent elements touch as many sectors as wide ones, with more instructions.
    const bool many_requests = is_global && static_cast<double>(mine.requests) >
                                                kManyRequests * static_cast<double>(lesson.requests);
    std::string text;
    if (much_more(mine, lesson)) {
        text = fmt::format("  In {} memory it needs {} {}{}, the lesson's version {}.\n", name(space),
                           mine.transactions, is_global ? "sectors" : "wavefronts", for_what,
                           lesson.transactions);
    } else if (many_requests) {
        text = fmt::format("  To {} memory it makes {} requests, the lesson's version {}.\n", name(space),
                           mine.requests, lesson.requests);
    } else {
        return "";
    }
    if (const AccessLine* line = worst(mine, lesson)) text += "    " + text_of_worst(*line) + "\n";
    return text;
}

std::string objection_to(const Atomics& mine, const Atomics& lesson) {
    if (static_cast<double>(mine.lanes) <= kManyRequests * static_cast<double>(lesson.lanes)) return "";
    return fmt::format(
        "  In global memory it does {} atomic operations, the lesson's version {}.\n"
        "    {}: {:.3g} of 32 lanes take part in each request\n",
        mine.lanes, lesson.lanes, place_of(mine.most->source),
        static_cast<double>(mine.most->active_lanes) /
            static_cast<double>(std::max<std::uint64_t>(mine.most->requests, 1)));
}

// How often a block looks for another one's value depends on the time; how many lanes look does
// not.
std::string objection_to_lanes(const Atomics& mine, const Atomics& lesson) {
    const auto of_request = [](const Atomics& atomics) {
        return static_cast<double>(atomics.lanes) /
               static_cast<double>(std::max<std::uint64_t>(atomics.requests, 1));
    };
    if (mine.most == nullptr || of_request(mine) >= kFewerLanes * of_request(lesson)) return "";
    return fmt::format(
        "  On average {:.3g} of 32 lanes take part in a relaxed or an atomic access to global memory, in the "
        "lesson's version {:.3g}.\n"
        "    Most of them: {}\n",
        of_request(mine), of_request(lesson), place_of(mine.most->source));
}

// What the lanes of a warp load in common counts once: it depends on which lanes have which
// results. A wavefront of wide loads does not show it, because it serves 8 of the 32 lanes.
struct SharedBytes {
    std::uint64_t bytes = 0;
    const AccessLine* most = nullptr;  // the line with the most of them
};

SharedBytes shared_bytes_of(const InspectedVersion& version) {
    SharedBytes sum;
    for (const KernelInspection& kernel : version.kernels) {
        for (const AccessLine& line : kernel.lines) {
            if (line.space != Space::kShared || line.operation != Operation::kLoad) continue;
            sum.bytes += static_cast<std::uint64_t>(
                std::llround(blocks_each(kernel) * static_cast<double>(line.bytes_used)));
            if (sum.most == nullptr || line.bytes_used > sum.most->bytes_used) sum.most = &line;
        }
    }
    return sum;
}

std::string objection_to(const SharedBytes& mine, const SharedBytes& lesson) {
    if (static_cast<double>(mine.bytes) <= kManyBytes * static_cast<double>(lesson.bytes)) return "";
    return fmt::format(
        "  Its warps load {} different bytes from shared memory, those of the lesson's version {}. A warp "
        "needs fewer where more of its lanes load the same ones.\n"
        "    {}: each request of a warp loads {:.3g} different bytes\n",
        mine.bytes, lesson.bytes, place_of(mine.most->source),
        static_cast<double>(mine.most->bytes_used) /
            static_cast<double>(std::max<std::uint64_t>(mine.most->requests, 1)));
}

// Each place once.
std::vector<const Finding*> findings_of(const InspectedVersion& version) {
    std::vector<const Finding*> all;
    const auto same = [](const Finding& a, const Finding& b) {
        return a.kind == b.kind && a.source == b.source && a.other == b.other;
    };
    for (const KernelInspection& kernel : version.kernels) {
        for (const Finding& finding : kernel.findings) {
            if (std::ranges::none_of(all, [&](const Finding* other) { return same(finding, *other); }))
                all.push_back(&finding);
        }
    }
    return all;
}

// "block (0,0,0), thread (1,0,0), a.cu:7: the mask" -> "the mask": the finding's place and thread
// are shown anyway.
std::string without_place(const Finding& finding) {
    const std::string line = fmt::format(":{}: ", finding.source.line);
    const auto at = finding.message.find(line);
    return finding.message.starts_with("block (") && at != std::string::npos
               ? finding.message.substr(at + line.size())
               : finding.message;
}

std::string text_of(const std::vector<const Finding*>& findings) {
    constexpr std::size_t kShown = 3;
    std::string text;
    for (const Finding* finding : findings | std::views::take(kShown)) {
        std::string places = place_of(finding->source);
        if (finding->other && *finding->other != finding->source)  // in the message's order
            places = place_of(*finding->other) + " and " + places;
        std::string threads = thread_name(finding->thread, finding->block);
        if (finding->other)
            threads = thread_name(finding->other_thread, finding->other_block) + " and " + threads;
        const bool has_place = !finding->source.file.empty();  // an access within a call has none
        text += fmt::format("\n      {}{}\n      {}\n      {}", has_place ? places + ": " : "",
                            without_place(*finding), threads, finding->why);
    }
    return text;
}

std::string count_and_text_of(const std::vector<const Finding*>& findings) {
    return fmt::format("inspection found {} problem{}:{}", findings.size(), findings.size() == 1 ? "" : "s",
                       text_of(findings));
}

// The file that a program writes its results to; removed at the end.
class ResultFile {
  public:
    ResultFile(const Checkout& build, const std::string& program)
        : path_(build.build / "results" / fmt::format("{}.{}.json", program, getpid())) {
        std::filesystem::create_directories(path_.parent_path());
        std::filesystem::remove(path_);
    }
    ~ResultFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    ResultFile(const ResultFile&) = delete;
    ResultFile& operator=(const ResultFile&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

// A program of a day, on problems of one size; "": on its default ones.
struct ProgramRun {
    std::string program;
    std::string size{};
};

// Runs `programs` of `build` for the entry's version concurrently; returns what each wrote, and ""
// for one with a size on which it does not run that version.
std::vector<std::string> run_programs_for(const WorkbookEntry& entry, const VariantBuild& build,
                                          const std::vector<ProgramRun>& programs, const char* option) {
    std::vector<std::unique_ptr<ResultFile>> files;
    std::vector<Job> jobs;
    for (const auto& [program, size] : programs) {
        const bool is_lesson = !program.ends_with("_program");
        build_target(build.checkout, build.target(is_lesson ? program + "_program" : program));
        files.push_back(std::make_unique<ResultFile>(build.checkout, program + size));
        Command command = {is_lesson ? build.program_of_day(program) : build.program(program), option,
                           files.back()->path(), "--only", entry.exercise->version};
        if (!size.empty()) command.insert(command.end(), {"--size", size});
        // Inspected programs report the learner's lines, not lines of headers.
        jobs.push_back({running(command, files.back()->path()), {"CUDA_ON_CPU_LINES=kernel"}});
    }
    std::vector<std::string> written;
    const auto on_end = [&](std::size_t i, const Captured& run) {
        if (is_interrupted(run.exit_code)) throw Interrupted();
        if (run.timed_out)
            throw std::runtime_error(
                fmt::format("{}: not done after two minutes, ended", programs[i].program));
        if (!std::filesystem::exists(files[i]->path()) || std::filesystem::is_empty(files[i]->path())) {
            if (programs[i].size.empty())
                throw std::runtime_error(
                    fmt::format("{} wrote no figures:\n{}", programs[i].program, run.output));
            written.emplace_back();  // the version is none of those that the program runs on this size
            return true;
        }
        if (std::filesystem::file_size(files[i]->path()) >= kMostFigures)
            throw std::runtime_error(fmt::format("{}: figures of more than 64 MB", programs[i].program));
        written.push_back(read_text_file(files[i]->path()));
        return true;
    };
    capture_together(jobs, {.on_end = on_end}, std::chrono::minutes(2));
    return written;
}

InspectionFile inspection_of(const std::string& text, const WorkbookEntry& entry,
                             const std::string& program) {
    InspectionFile file = inspection_file_from_json(nlohmann::ordered_json::parse(text));
    std::erase_if(file.results, [&](const InspectedVersion& seen) {
        return seen.version != entry.exercise->version || !seen.cannot_run.empty();
    });
    if (file.results.empty())
        throw std::runtime_error(fmt::format("{} has inspected no '{}'", program, entry.exercise->version));
    return file;
}

// One after the other, so that each has the GPU to itself.
std::vector<MeasuredRecord> measured(const WorkbookEntry& entry, const Checkout& build,
                                     const std::string& program) {
    const ResultFile copy(build, program + "_copy");
    replace_file(copy.path(), run_programs_for(entry, {build, ""}, {{program}}, "--json").front());
    return load_records(copy.path());
}

// Of the kernels that an inspection names: which are those of the exercise, which of other
// exercises of its day?
class KernelsOfSheet {
  public:
    KernelsOfSheet(const Exercise& exercise, const ExerciseSheet& sheet)
        : exercise_(exercise), sheet_(sheet) {}

    bool is_own(const KernelInspection& kernel) const { return writes(exercise_, kernel); }
    bool is_of_another(const KernelInspection& kernel) const {
        return !is_own(kernel) && std::ranges::any_of(sheet_.exercises, [&](const Exercise& other) {
            return writes(other, kernel);
        });
    }
    // Were there any?
    bool drop_others(InspectedVersion& seen) const {
        return std::erase_if(seen.kernels,
                             [&](const KernelInspection& kernel) { return is_of_another(kernel); }) > 0;
    }

  private:
    // "day16::scan_tiles [with T = int]", "day16::scan_tiles<int>" -> "scan_tiles"
    static bool writes(const Exercise& exercise, const KernelInspection& kernel) {
        std::string name = kernel.name.substr(0, kernel.name.find_first_of(" <"));
        if (const auto colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
        return std::ranges::find(exercise.kernels, name) != exercise.kernels.end();
    }

    const Exercise& exercise_;
    const ExerciseSheet& sheet_;
};

}  // namespace

std::optional<InspectedVersion> all_problems(const InspectionFile& file, const std::string& version) {
    std::optional<InspectedVersion> all;
    for (const InspectedVersion& seen : file.results) {
        if (seen.version != version || !seen.cannot_run.empty()) continue;
        if (!all) {
            all = seen;
            continue;
        }
        all->kernels.insert(all->kernels.end(), seen.kernels.begin(), seen.kernels.end());
        if (all->failure.empty()) all->failure = seen.failure;
    }
    return all;
}

void keep_own_part(InspectionFile& mine, InspectionFile& lesson, const Exercise& exercise,
                   const ExerciseSheet& sheet) {
    const KernelsOfSheet kernels(exercise, sheet);
    const auto runs_own = [&](const InspectedVersion& seen) {
        return std::ranges::any_of(seen.kernels,
                                   [&](const KernelInspection& kernel) { return kernels.is_own(kernel); });
    };
    if (std::ranges::none_of(lesson.results, runs_own)) return;
    std::vector<std::string> own, shared;  // problems
    for (InspectedVersion& seen : lesson.results) {
        if (!runs_own(seen)) continue;
        own.push_back(seen.problem);
        if (kernels.drop_others(seen)) shared.push_back(seen.problem);
    }
    const auto is_among = [](const std::vector<std::string>& problems) {
        return [&](const InspectedVersion& seen) {
            return std::ranges::find(problems, seen.problem) != problems.end();
        };
    };
    for (InspectionFile* file : {&mine, &lesson})
        std::erase_if(file->results, std::not_fn(is_among(own)));
    for (InspectedVersion& seen : mine.results) {
        kernels.drop_others(seen);
        if (is_among(shared)(seen)) seen.failure.clear();
    }
}

std::vector<Criterion> criteria_of_inspection(const InspectedVersion& mine, const InspectedVersion& lesson) {
    const std::vector<const Finding*> findings = findings_of(mine);
    Criterion clean = compare(traffic(mine, Space::kShared), traffic(lesson, Space::kShared), "shared memory",
                              "wavefronts");
    if (!mine.failure.empty()) clean = {false, "inspected, its result is wrong: " + mine.failure, false};
    if (!findings.empty()) clean = {false, count_and_text_of(findings), true};
    Criterion global =
        compare(traffic(mine, Space::kGlobal), traffic(lesson, Space::kGlobal), "global memory", "sectors");
    if (!mine.failure.empty()) global.star = false;  // a kernel that failed has fewer sectors
    return {clean, global};
}

std::string objection_to_traffic(const InspectedVersion& mine, const InspectedVersion& lesson,
                                 const std::vector<std::string>& memory) {
    if (!mine.failure.empty()) return "  Inspected, its result is wrong: " + mine.failure + "\n";
    std::string text;
    for (const Space space : {Space::kGlobal, Space::kShared}) {
        if (std::ranges::find(memory, name(space)) != memory.end())
            text += objection_to(traffic(mine, space), traffic(lesson, space), space);
    }
    if (std::ranges::find(memory, "loads") != memory.end()) {
        for (const Space space : {Space::kGlobal, Space::kShared})
            text += objection_to(traffic(mine, space, Counted::kLoads),
                                 traffic(lesson, space, Counted::kLoads), space, " for its loads");
    }
    if (std::ranges::find(memory, "accesses") != memory.end())
        text += objection_to(traffic(mine, Space::kGlobal, Counted::kNotAtomic),
                             traffic(lesson, Space::kGlobal, Counted::kNotAtomic), Space::kGlobal);
    if (std::ranges::find(memory, "atomics") != memory.end())
        text += objection_to(atomics_of(mine, AtomicsCounted::kUpdates),
                             atomics_of(lesson, AtomicsCounted::kUpdates));
    if (std::ranges::find(memory, "lanes") != memory.end())
        text += objection_to_lanes(atomics_of(mine, AtomicsCounted::kAll),
                                   atomics_of(lesson, AtomicsCounted::kAll));
    if (std::ranges::find(memory, "different") != memory.end())
        text += objection_to(shared_bytes_of(mine), shared_bytes_of(lesson));
    return text;
}

std::string objection_to_findings(const InspectedVersion& mine, const InspectedVersion& lesson) {
    const std::vector<const Finding*> lessons = findings_of(lesson);
    std::vector<const Finding*> own = findings_of(mine);
    std::erase_if(own, [&](const Finding* finding) {
        return std::ranges::any_of(lessons,
                                   [&](const Finding* other) { return other->kind == finding->kind; });
    });
    return own.empty() ? "" : count_and_text_of(own) + "\n";
}

std::optional<Criterion> criterion_of_time(const std::vector<MeasuredRecord>& mine,
                                           const std::vector<MeasuredRecord>& lesson,
                                           const std::string& version) {
    double slowest = 0;
    std::optional<double> percent_of_limit;
    for (const MeasuredRecord& record : mine) {
        if (record.version != version) continue;
        const auto same = std::ranges::find_if(lesson, [&](const MeasuredRecord& other) {
            return other.version == version && other.problem == record.problem && other.l2 == record.l2 &&
                   other.dtype == record.dtype;
        });
        if (same == lesson.end() || record.median_ms <= 0 || same->median_ms <= 0) continue;
        const double speed = same->median_ms / record.median_ms;
        slowest = slowest == 0 ? speed : std::min(slowest, speed);
        if (record.percent_of_limit) percent_of_limit = record.percent_of_limit;
    }
    if (slowest == 0) return std::nullopt;
    std::string text = fmt::format("time: {:.0f} % of the lesson's speed", 100 * slowest);
    if (percent_of_limit) text += fmt::format(", {:.0f} % of the machine's limit", *percent_of_limit);
    return Criterion{slowest >= kAsFast, text, false};
}

namespace {

// What was found in another inspection of the version.
void add_findings(InspectedVersion& version, const InspectionFile& file) {
    const auto others = all_problems(file, version.version);
    if (!others) return;
    for (const KernelInspection& kernel : others->kernels) {
        KernelInspection found;
        found.name = kernel.name;
        found.findings = kernel.findings;
        version.kernels.push_back(found);
    }
}

}  // namespace

InspectionScore score_by_inspection(const WorkbookEntry& entry, const VariantBuild& inspecting,
                                    const std::string& small_size) {
    const std::string day = entry.chapter->directory;
    const std::string& version = entry.exercise->version;
    std::vector<ProgramRun> programs = {{day + "_exercise_program"}, {day}};
    if (!small_size.empty()) programs.push_back({day + "_exercise_program", small_size});
    const std::vector<std::string> written = run_programs_for(entry, inspecting, programs, "--inspect");
    InspectionFile mine = inspection_of(written[0], entry, programs[0].program);
    InspectionFile lesson = inspection_of(written[1], entry, programs[1].program);
    keep_own_part(mine, lesson, *entry.exercise, entry.chapter->sheet);
    if (mine.results.empty())
        throw std::runtime_error(
            fmt::format("{} has inspected no problem of {}", programs[0].program, entry.id));
    InspectedVersion my_problems = *all_problems(mine, version);
    // Sizes that no tile divides show accesses behind an array. The comparison is of the others.
    if (!small_size.empty() && !written[2].empty()) {
        InspectionFile small = inspection_file_from_json(nlohmann::ordered_json::parse(written[2]));
        InspectionFile the_same = small;  // the lesson's program does not run these sizes
        keep_own_part(small, the_same, *entry.exercise, entry.chapter->sheet);
        add_findings(my_problems, small);
    }
    const InspectedVersion lessons_problems = *all_problems(lesson, version);
    return {criteria_of_inspection(my_problems, lessons_problems),
            objection_to_findings(my_problems, lessons_problems),
            objection_to_traffic(my_problems, lessons_problems, entry.exercise->traffic), std::move(mine),
            std::move(lesson)};
}

InspectionFile side_by_side(const InspectionFile& mine, const InspectionFile& lesson) {
    InspectionFile both = {.day = lesson.day, .commit = lesson.commit, .results = {}};
    for (const InspectedVersion& seen : mine.results) {
        both.results.push_back(seen);
        both.results.back().version = "your " + seen.version;
        for (const InspectedVersion& other : lesson.results) {
            if (other.problem != seen.problem) continue;
            both.results.push_back(other);
            both.results.back().version = "the lesson's " + other.version;
        }
    }
    return both;
}

std::optional<Criterion> score_by_time(const WorkbookEntry& entry, const Checkout& gpu) {
    const std::string day = entry.chapter->directory;
    return criterion_of_time(measured(entry, gpu, day + "_exercise_program"), measured(entry, gpu, day),
                             entry.exercise->version);
}

}  // namespace course::tool
