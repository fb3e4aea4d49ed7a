#include "profile_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "inspect_view.hpp"
#include "measured_tables.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

constexpr std::size_t kShownUnits = 3;
constexpr std::size_t kShownWaits = 2;
constexpr double kLeastFactor = 1.1;  // below it, two figures are much the same
constexpr double kPointsAsTwice = 25;
constexpr std::size_t kColumns = 110;

// --- Figures of the hardware ---------------------------------------------------------------------

double total_microseconds(const Profile& profile) {
    double sum = 0;
    for (const KernelCounters& kernel : profile.kernels)
        sum += kernel.microseconds;
    return sum;
}

std::string other_kernels(const Profile& profile) {
    std::string text;
    for (std::size_t i = 1; i < profile.kernels.size(); ++i) {
        const KernelCounters& kernel = profile.kernels[i];
        text += fmt::format("{}{} {} ({})", i == 1 ? "" : ", ", kernel.kernel,
                            format_time(kernel.microseconds * 1e-3), kernel.limited_by);
    }
    return text;
}

std::string rate(double per_second, std::string_view unit) {
    constexpr double kTera = 1e12;
    return per_second >= kTera ? fmt::format("{:.3g} T{}", per_second / kTera, unit)
                               : fmt::format("{:.3g} G{}", per_second * 1e-9, unit);
}

// "0.83 %", "87 %"
std::string share_text(double share) {
    const double percent = 100 * share;
    return percent < 1 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

// Where the version stands between its bytes and its operations, and how far it is from the nearer
// roof.
std::string roofline(const MeasuredRecord& record) {
    constexpr double kMilli = 1e-3;
    const double seconds = record.median_ms * kMilli;
    const double bytes = record.bytes / seconds;
    const double flops = record.flops / seconds;
    std::string text = record.bytes > 0 && record.flops > 0
                           ? fmt::format("{:.3g} operations per byte: ", record.flops / record.bytes)
                           : "";
    text += rate(bytes, "B/s");
    const bool known = record.limit_bytes_per_second > 0;
    if (known)
        text += fmt::format(" of {} measured ({})", rate(record.limit_bytes_per_second, "B/s"),
                            share_text(bytes / record.limit_bytes_per_second));
    if (known && bytes > record.limit_bytes_per_second) text += ", because a cache holds the data";
    if (record.flops == 0) return text;
    text += "; " + rate(flops, record.dtype == "float" ? "FLOP/s" : "op/s");
    if (record.dtype != "float" || on_other_units(record) || record.limit_flops_per_second == 0)
        return text + ", whose limit on this unit is not measured";
    text += fmt::format(" of {} measured ({})", rate(record.limit_flops_per_second, "FLOP/s"),
                        share_text(flops / record.limit_flops_per_second));
    if (!known) return text;
    const bool memory = flops / record.limit_flops_per_second < bytes / record.limit_bytes_per_second;
    return text + (memory ? ". The roof is memory" : ". The roof is arithmetic");
}

std::vector<Figure> units_of(const KernelCounters& kernel) {
    std::vector<Figure> units;
    for (const auto& [name, percent] : kernel.busy)
        units.push_back({name, fmt::format("{:.0f} %", percent), {}, percent, true});
    std::ranges::stable_sort(units, std::ranges::greater{}, &Figure::value);
    return units;
}

std::string units_text(const KernelCounters& kernel) {
    std::vector<std::string> texts;
    for (const Figure& unit : units_of(kernel))
        if (texts.size() < kShownUnits) texts.push_back(unit.name + " " + unit.counted);
    return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<Figure> hardware_figures(const Profile& profile) {
    const KernelCounters& kernel = profile.kernels.front();
    const double microseconds = total_microseconds(profile);
    std::vector<Figure> figures = {{"time", format_time(microseconds * 1e-3), {}, microseconds}};
    if (profile.timed)
        figures.push_back(
            {"unprofiled", format_time(profile.timed->median_ms), {}, profile.timed->median_ms});
    else if (profile.timed_on_another)
        figures.push_back(
            {"unprofiled", fmt::format("{} for {}", format_time(profile.timed_on_another->median_ms),
                                       profile.timed_on_another->problem)});
    figures.push_back({"kernel", fmt::format("{}, {} launch{}", kernel.kernel, kernel.launches,
                                             kernel.launches == 1 ? "" : "es")});
    if (profile.kernels.size() > 1) figures.push_back({"other kernels", other_kernels(profile)});
    if (profile.timed) figures.push_back({"roofline", roofline(*profile.timed)});
    figures.push_back({"busiest units", units_text(kernel)});
    const double needed = bytes_needed(profile);
    figures.push_back({"DRAM",
                       fmt::format("{} read, {} written{}", bytes_text(kernel.dram_bytes_read),
                                   bytes_text(kernel.dram_bytes_written),
                                   needed > 0 ? fmt::format("; the work needs {}", bytes_text(needed)) : ""),
                       {},
                       kernel.dram_bytes_read + kernel.dram_bytes_written});
    figures.push_back({"SMs with work", active_text(kernel), {}, kernel.active, true});
    if (kernel.waves > 0)
        figures.push_back({"waves of blocks", fmt::format("{:.3g}", kernel.waves), {}, kernel.waves});
    figures.push_back(
        {"occupancy reached", fmt::format("{:.0f} %", kernel.occupancy), {}, kernel.occupancy, true});
    figures.push_back({"registers", fmt::format("{} per thread", kernel.registers), {}, kernel.registers});
    figures.push_back(
        {"spills",
         kernel.spills == 0 ? "none" : fmt::format("{:.0f} loads and stores of local memory", kernel.spills),
         {},
         kernel.spills});
    figures.push_back({"clock", fmt::format("{:.0f} MHz", kernel.megahertz), {}, kernel.megahertz});
    return figures;
}

// States in which an instruction is issued are no waits.
std::vector<Wait> waits_of(const KernelCounters& kernel) {
    std::vector<Wait> waits;
    for (const auto& [name, share] : kernel.stalls) {
        if (name != "selected" && waits.size() < kShownWaits)
            waits.push_back({share, &advice_on(advice_on_stalls(), name)});
    }
    return waits;
}

// --- Figures that both know ----------------------------------------------------------------------

// The sums over some of the accesses of all inspected kernels.
struct Sums {
    double requests = 0;
    double transactions = 0;
    double ideal = 0;
    double lanes = 0;

    double per_request() const { return requests == 0 ? 0 : transactions / requests; }
};

template <class Predicate>
Sums sums_of(const std::vector<KernelInspection>& kernels, const Predicate& counts) {
    Sums sums;
    for (const KernelInspection& kernel : kernels) {
        for (const AccessLine& line : kernel.lines) {
            if (!counts(line)) continue;
            sums.requests += static_cast<double>(line.requests);
            sums.transactions += static_cast<double>(line.transactions);
            sums.ideal += static_cast<double>(std::min(line.ideal, line.transactions));
            sums.lanes += static_cast<double>(line.active_lanes);
        }
    }
    return sums;
}

std::string per_request(double sectors) {
    return sectors > 0 ? fmt::format("{:.2f}", sectors) : "none";
}

std::string conflicts_text(double percent, double wavefronts) {
    return wavefronts == 0 ? "no shared memory" : fmt::format("{:.1f} % of the wavefronts", percent);
}

// "12.6 MB, unique 12.6 MB": the fact of that name.
std::string fact(const Profile& profile, std::string_view name) {
    std::vector<std::string> texts;
    for (const KernelInspection& kernel : profile.inspected) {
        for (const auto& [key, text] : facts_of(kernel, profile.inspected_on))
            if (key == name && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
    }
    return fmt::format("{}", fmt::join(texts, "; "));
}

// "65536", "about 65536": of lanes, in global memory.
std::string atomics_text(const Profile& profile) {
    double operations = 0;
    bool sampled = false;
    for (const KernelInspection& kernel : profile.inspected) {
        sampled = sampled || kernel.blocks != kernel.inspected_blocks;
        for (const AccessLine& line : kernel.lines)
            if (line.space == Space::kGlobal && line.operation == Operation::kAtomic)
                operations += blocks_each(kernel) * static_cast<double>(line.active_lanes);
    }
    return operations == 0 ? "" : fmt::format("{}{:.0f}", sampled ? "about " : "", operations);
}

// "add: 128 blocks of 256 threads", with the launches if there are several.
std::string grid_text(const Profile& profile) {
    std::vector<std::string> texts;
    for (const KernelInspection& kernel : profile.inspected)
        texts.push_back(fmt::format("{}: {}", short_name(kernel.name), extent(kernel)));
    return fmt::format("{}", fmt::join(texts, "; "));
}

// What else the inspection has to say: facts that have no row of their own.
Facts other_facts(const Profile& profile) {
    constexpr std::array<std::string_view, 5> kOwnRow = {"read", "written", "barriers per block",
                                                         "active lanes", "occupancy"};
    Facts facts = profile.facts;
    for (const KernelInspection& kernel : profile.inspected) {
        for (const auto& [name, text] : facts_of(kernel, profile.inspected_on)) {
            const bool has_row = std::ranges::find(kOwnRow, name) != kOwnRow.end() ||
                                 std::ranges::find(facts, name, &Facts::value_type::first) != facts.end();
            if (!has_row) facts.emplace_back(name, fact(profile, name));
        }
    }
    return facts;
}

std::vector<Figure> predictable_figures(const Profile& profile) {
    const bool counted = !profile.kernels.empty();
    const KernelCounters kernel = counted ? profile.kernels.front() : KernelCounters{};
    const auto global = [&](Operation operation, Operation atomic) {
        return sums_of(profile.inspected, [=](const AccessLine& line) {
            return line.space == Space::kGlobal && (line.operation == operation || line.operation == atomic);
        });
    };
    const Sums loads = global(Operation::kLoad, Operation::kAtomicLoad);
    const Sums stores = global(Operation::kStore, Operation::kAtomicStore);
    const Sums shared =
        sums_of(profile.inspected, [](const AccessLine& line) { return line.space == Space::kShared; });
    const Sums all = sums_of(profile.inspected, [](const AccessLine&) { return true; });
    const bool inspected = !profile.inspected.empty();

    std::vector<Figure> figures;
    const auto add = [&](std::string name, std::string by_gpu, const std::string& here,
                         std::optional<double> value, std::optional<double> predicted_value,
                         bool percent = false) {
        figures.push_back({std::move(name), counted ? std::move(by_gpu) : "", inspected ? here : "",
                           counted ? value : std::nullopt, percent,
                           inspected ? predicted_value : std::nullopt});
    };
    const auto percent_of = [](double part, double whole) { return whole == 0 ? 0 : 100 * part / whole; };
    const double conflicts = percent_of(kernel.bank_conflicts, kernel.shared_wavefronts);
    const double conflicts_here = percent_of(shared.transactions - shared.ideal, shared.transactions);
    const double lanes_here = all.requests == 0 ? 0 : all.lanes / all.requests;
    add("sectors per load", per_request(kernel.sectors_per_load), per_request(loads.per_request()),
        kernel.sectors_per_load, loads.per_request());
    add("sectors per store", per_request(kernel.sectors_per_store), per_request(stores.per_request()),
        kernel.sectors_per_store, stores.per_request());
    if (shared.requests > 0)
        add("wavefronts per shared access", "", per_request(shared.per_request()), {}, shared.per_request());
    add("bank conflicts", conflicts_text(conflicts, kernel.shared_wavefronts),
        conflicts_text(conflicts_here, shared.transactions), conflicts, conflicts_here, true);
    add("active lanes", fmt::format("{:.1f} of an instruction", kernel.lanes),
        fmt::format("{:.1f} of an access", lanes_here), kernel.lanes, lanes_here);
    add("atomic operations", "", atomics_text(profile), {}, {});
    add("grid", "", grid_text(profile), {}, {});
    add("occupancy at most",
        fmt::format("{:.0f} %, limited by {}", kernel.largest_occupancy, kernel.occupancy_limit),
        fact(profile, "occupancy"), kernel.largest_occupancy, {}, true);
    add("barriers per block", "", fact(profile, "barriers per block"), {}, {});
    add("bytes read", "", fact(profile, "read"), {}, {});
    add("bytes written", "", fact(profile, "written"), {}, {});
    for (const auto& [name, text] : other_facts(profile))
        add(name, "", text, {}, {});
    return figures;
}

// --- Text ----------------------------------------------------------------------------------------

// Appends `text`, wrapped between words: `first` before its first line, spaces before the others.
void add_wrapped(std::string& page, const std::string& first, std::size_t indent, std::string_view text) {
    std::string before = first;
    while (!text.empty()) {
        std::size_t end = text.size();
        if (end > kColumns - indent) {
            end = text.rfind(' ', kColumns - indent);
            if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
        }
        page += fmt::format("{}{}\n", before, text.substr(0, end));
        before = std::string(indent, ' ');
        text.remove_prefix(std::min(text.size(), end + 1));
    }
}

std::string in(bool colour, const fmt::text_style& style, std::string_view text) {
    return colour ? fmt::format(style, "{}", text) : std::string(text);
}

std::string attempt_text(const Advice& advice) {
    return fmt::format("Try: {} ({})", advice.attempt, days_text(advice));
}

// What the counters prove has better advice than the class or a wait alone.
void add_signs(std::string& page, const Screen& screen, bool colour) {
    page += in(colour, kQuiet, "  what stands out") + "\n";
    for (const Sign& sign : screen.signs) {
        add_wrapped(page, "    ", 4, fmt::format("{}: {}", sign.figures, sign.advice->words));
        add_wrapped(page, "    ", 4, attempt_text(*sign.advice));
    }
}

constexpr std::size_t kNameColumn = 20;

void add_hardware(std::string& page, const Screen& screen, bool colour) {
    page += in(colour, kQuiet, "  what only the hardware knows") + "\n";
    constexpr std::size_t kIndent = 4 + kNameColumn;
    for (const Figure& figure : screen.hardware)
        add_wrapped(page, fmt::format("    {:<{}}", figure.name, kNameColumn), kIndent, figure.counted);
    for (const Wait& wait : screen.waits) {
        add_wrapped(page, fmt::format("    {:<{}}", "warps", kNameColumn), kIndent,
                    fmt::format("{:.0f} % of their time: {} ({})", 100 * wait.share, wait.advice->words,
                                wait.advice->name));
        if (waits_have_attempts(screen))
            add_wrapped(page, std::string(kIndent, ' '), kIndent, attempt_text(*wait.advice));
    }
}

void add_predictable(std::string& page, const Screen& screen, bool colour) {
    const bool inspected = screen.not_inspected.empty();
    constexpr std::size_t kName = 30;
    constexpr std::size_t kCounted = 32;
    std::string head = "  what can be predicted";
    if (!screen.gpu.empty()) head = fmt::format("{:<{}}{:<{}}", head, kName + 4, screen.gpu, kCounted);
    if (inspected)
        head = fmt::format("{:<{}}{}", head, kName + 4, "inspected here, " + screen.inspected_problem);
    head.erase(head.find_last_not_of(' ') + 1);
    page += in(colour, kQuiet, head) + "\n";
    for (const Figure& figure : screen.predictable) {
        if (figure.counted.empty() && figure.predicted.empty()) continue;
        std::string line = fmt::format("    {:<{}}", figure.name, kName);
        if (!screen.gpu.empty()) line += fmt::format("{:<{}}", figure.counted, kCounted);
        const std::size_t indent = line.size();
        if (figure.predicted.empty())
            page += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        else
            add_wrapped(page, line, indent, figure.predicted);
    }
    if (!inspected) add_wrapped(page, "  ", 2, screen.not_inspected);
}

// --- Comparison ----------------------------------------------------------------------------------

struct Compared {
    Change change;
    double size = 0;  // 1: a factor of two
};

Compared compared(const std::string& name, const Figure& a, const Figure& b) {
    Compared result{{name, a.counted, b.counted, ""}, 0};
    const double before = *a.value;
    const double after = *b.value;
    if (a.percent) {
        const double points = after - before;
        result.size = std::abs(points) / kPointsAsTwice;
        result.change.factor = fmt::format("{:+.0f} points", points);
    } else if (before == 0 || after == 0) {
        constexpr double kFromNothing = 10;
        result.size = before == after ? 0 : kFromNothing;
        result.change.factor = before == 0 ? "new" : "gone";
    } else {
        result.size = std::abs(std::log2(after / before));
        result.change.factor = fmt::format("{:.3g}×", after / before);
    }
    if (result.size < std::log2(kLeastFactor)) result.change.factor = "";
    return result;
}

const Figure* find(const std::vector<Figure>& figures, std::string_view name) {
    const auto found = std::ranges::find(figures, name, &Figure::name);
    return found == figures.end() ? nullptr : &*found;
}

std::vector<Figure> to_compare(const Screen& screen) {
    std::vector<Figure> figures;
    for (const auto* list : {&screen.hardware, &screen.predictable}) {
        for (const Figure& figure : *list)
            if (figure.value) figures.push_back(figure);
    }
    for (const Figure& unit : screen.units)
        figures.push_back({"busy: " + unit.name, unit.counted, {}, unit.value, true});
    for (const Figure& figure : screen.predictable)
        if (figure.predicted_value)
            figures.push_back(
                {"inspected: " + figure.name, figure.predicted, {}, figure.predicted_value, figure.percent});
    for (const Wait& wait : screen.waits)
        figures.push_back({fmt::format("warps: {}", wait.advice->name),
                           fmt::format("{:.0f} %", 100 * wait.share),
                           {},
                           100 * wait.share,
                           true});
    return figures;
}

bool is_idle(const Figure& a, const Figure& b) {
    constexpr double kIdle = 10;
    return a.name.starts_with("busy: ") && *a.value < kIdle && *b.value < kIdle;
}

// Of a wait that only one of two versions has among its largest.
Compared of_one(const Figure& figure, bool is_new) {
    return {is_new ? Change{figure.name, "-", figure.counted, "new"}
                   : Change{figure.name, figure.counted, "-", "gone"},
            *figure.value / kPointsAsTwice};
}

}  // namespace

bool waits_have_attempts(const Screen& screen) {
    return screen.signs.empty() && screen.limited_by != "launch";
}

std::string active_text(const KernelCounters& kernel) {
    constexpr double kCounted = 0.1;  // percent; the counter has one digit behind the point
    return (kernel.active < kCounted ? "less than 0.1 %" : share_text(kernel.active / 100)) +
           " of the time, on average";
}

double dram_bytes(const Profile& profile) {
    double sum = 0;
    for (const KernelCounters& kernel : profile.kernels)
        sum += kernel.dram_bytes_read + kernel.dram_bytes_written;
    return sum;
}

double bytes_needed(const Profile& profile) {
    return profile.timed ? profile.timed->bytes : 0;
}

std::vector<Change> changes(const Screen& before, const Screen& after) {
    const std::vector<Figure> a = to_compare(before);
    const std::vector<Figure> b = to_compare(after);
    std::vector<Compared> all;
    for (const Figure& figure : a) {
        const Figure* const other = find(b, figure.name);
        if (other == nullptr)
            all.push_back(of_one(figure, false));
        else if (!is_idle(figure, *other))
            all.push_back(compared(figure.name, figure, *other));
    }
    for (const Figure& figure : b)
        if (find(a, figure.name) == nullptr) all.push_back(of_one(figure, true));
    std::ranges::stable_sort(all, std::ranges::greater{}, &Compared::size);
    std::vector<Change> sorted;
    for (Compared& each : all)
        sorted.push_back(std::move(each.change));
    return sorted;
}

Screen screen_of(const Profile& profile) {
    Screen screen{.name = profile.name,
                  .problem = profile.problem,
                  .gpu = profile.gpu,
                  .inspected_problem = profile.inspected_problem,
                  .not_inspected = profile.not_inspected,
                  .limited_by = "",
                  .reason = profile.reason,
                  .signs = {},
                  .units = {},
                  .hardware = {},
                  .waits = {},
                  .predictable = predictable_figures(profile)};
    if (profile.kernels.empty()) return screen;
    const KernelCounters& longest = profile.kernels.front();
    screen.limited_by = longest.limited_by;
    screen.limit = &advice_on(advice_on_limits(), longest.limited_by);
    screen.signs = signs_of(profile);
    screen.units = units_of(longest);
    screen.hardware = hardware_figures(profile);
    screen.waits = waits_of(longest);
    return screen;
}

std::string screen_text(const Screen& screen, bool colour) {
    std::string page =
        fmt::format("\n{} {}, {}{}{}\n", in(colour, kQuiet, "==="), in(colour, kHeading, screen.name),
                    screen.problem, screen.gpu.empty() ? "" : ", ", screen.gpu);
    if (screen.limit != nullptr) {
        const std::string why = screen.reason.empty() ? "" : ": " + screen.reason;
        add_wrapped(page, "  ", 2, fmt::format("limited by {}{}", screen.limited_by, why));
        if (screen.signs.empty())
            add_wrapped(page, "  ", 2, attempt_text(*screen.limit));
        else
            add_signs(page, screen, colour);
        add_hardware(page, screen, colour);
    }
    add_predictable(page, screen, colour);
    return page;
}

std::string comparison_text(const Screen& before, const Screen& after, bool colour) {
    std::vector<std::array<std::string, 4>> rows = {{"", before.name, after.name, ""},
                                                    {"limited by", before.limited_by, after.limited_by, ""}};
    const bool one_problem = before.problem == after.problem;
    if (!one_problem) rows.push_back({"problem", before.problem, after.problem, ""});
    for (const Change& change : changes(before, after))
        rows.push_back({change.name, change.before, change.after, change.factor});
    std::array<std::size_t, 4> widths{};
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    std::string where = one_problem ? after.problem : "two problems";
    if (!after.gpu.empty()) where += ", " + after.gpu;
    std::string page =
        fmt::format("\n{} {}: what changed most stands first\n", in(colour, kQuiet, "==="), where);
    for (const auto& row : rows) {
        std::string line = fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}", row[0], widths[0], row[1], widths[1],
                                       row[2], widths[2], row[3]);
        line.erase(line.find_last_not_of(' ') + 1);
        page += (&row == &rows.front() ? in(colour, kHeading, line) : line) + "\n";
    }
    for (const Screen* screen : {&before, &after}) {
        if (!screen->reason.empty())
            add_wrapped(
                page, "  ", 2,
                fmt::format("{} is limited by {}: {}", screen->name, screen->limited_by, screen->reason));
    }
    return page;
}

}  // namespace course::tool
