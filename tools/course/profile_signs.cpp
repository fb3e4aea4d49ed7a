// What stands out among the counters of a kernel. A class tells which unit is busy; these figures
// tell with what.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "inspect_view.hpp"
#include "measured_tables.hpp"
#include "profile_view.hpp"

namespace course::tool {
namespace {

const std::array<Advice, 8> kSigns = {{
    {"waits of the host",
     "the host does something between two launches, or waits in a copy or a synchronisation",
     "keep on the GPU what the next kernel needs, and copy once, at the end",
     {"day07", "day09"}},
    {"spills",
     "values that find no register lie in local memory, a part of device memory",
     "smaller blocks or fewer values per thread, and indices of arrays that the compiler knows",
     {"day07", "gemm_ladder"}},
    {"uncoalesced accesses",
     "each request of a warp needs that many sectors of 32 bytes; for 32 adjacent floats it needs 4",
     "adjacent lanes on adjacent elements: another order of the data, or of the threads",
     {"day01", "day06", "day07"}},
    {"bytes",
     "the same bytes are loaded again, or sectors are loaded of which only a part is used",
     "reuse in registers or shared memory, and fused kernels",
     {"day05", "day07", "day11"}},
    {"bank conflicts",
     "lanes of a warp need different words of one bank, one after the other",
     "another row length of the array in shared memory (padding), or a swizzle",
     {"day06", "day07"}},
    {"atomics",
     "atomic operations on few addresses queue for them",
     "add up in registers or shared memory first, then once per block",
     {"day07", "day12", "day15"}},
    {"idle SMs",
     "there are too few blocks for all SMs, or the last blocks run on after most SMs have none left",
     "more, smaller blocks of equal length",
     {"day04", "day07"}},
    {"loads in flight",
     "too few loads are in flight",
     "several independent loads per thread before the first value is used, without a store between them; "
     "more warps, if there is room",
     {"day04", "day07", "day15"}},
}};

double busy_with(const KernelCounters& kernel, std::string_view unit) {
    for (const auto& [name, percent] : kernel.busy)
        if (name == unit) return percent;
    return 0;
}

double stalled_on(const KernelCounters& kernel, std::string_view state) {
    for (const auto& [name, share] : kernel.stalls)
        if (name == state) return share;
    return 0;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
}

// Each function returns the figures that prove its sign; empty: there is no such sign.

std::string waits_of_the_host(const Profile& profile) {
    constexpr double kLeastGap = 5;      // of a launch, in microseconds: more than a launch takes
    constexpr double kShortKernel = 50;  // microseconds; the time of a longer one may differ under a profiler
    if (!profile.timed) return "";
    double kernels = 0;
    int launches = 0;
    for (const KernelCounters& kernel : profile.kernels) {
        kernels += kernel.microseconds;
        launches += kernel.launches;
    }
    const double all = profile.timed->median_ms * 1e3;
    const double gap = (all - kernels) / launches;
    if (gap < kLeastGap || all < 2 * kernels || kernels / launches > kShortKernel) return "";
    return fmt::format("no kernel runs for {} of {}, {} for each launch", format_time((all - kernels) * 1e-3),
                       format_time(all * 1e-3), format_time(gap * 1e-3));
}

std::string spills(const Profile& profile) {
    constexpr double kMany = 1000;        // in a microsecond
    constexpr double kBytesOfWarp = 128;  // 4 of each lane
    const KernelCounters& kernel = profile.kernels.front();
    if (kernel.spills < kMany * kernel.microseconds) return "";
    return fmt::format("{:.3g} million loads and stores of local memory, {} if all lanes take part",
                       kernel.spills * 1e-6, bytes_text(kBytesOfWarp * kernel.spills));
}

std::string uncoalesced_accesses(const Profile& profile) {
    constexpr double kOfWideLoads = 20;  // 32 lanes that load 16 bytes each need 16 sectors
    constexpr double kBusy = 50;
    const KernelCounters& kernel = profile.kernels.front();
    const double busiest =
        std::max({busy_with(kernel, "memory"), busy_with(kernel, "L2"), busy_with(kernel, "L1")});
    if (busiest < kBusy || !is_one_of(kernel.limited_by, {"memory", "L2", "L1", "latency"})) return "";
    std::string text;
    for (const auto& [name, sectors] :
         {std::pair{"load", kernel.sectors_per_load}, {"store", kernel.sectors_per_store}})
        if (sectors > kOfWideLoads)
            text += fmt::format("{}{:.2f} sectors per {}", text.empty() ? "" : ", ", sectors, name);
    return text;
}

std::string more_bytes_than_needed(const Profile& profile) {
    constexpr double kTimes = 1.5;
    const KernelCounters& kernel = profile.kernels.front();
    const double needed = bytes_needed(profile);
    const double moved = dram_bytes(profile);
    if (needed == 0 || moved < kTimes * needed || !is_one_of(kernel.limited_by, {"memory", "L2"})) return "";
    return fmt::format("DRAM moves {}, {:.1f} times the {} that the work needs", bytes_text(moved),
                       moved / needed, bytes_text(needed));
}

std::string bank_conflicts(const Profile& profile) {
    constexpr double kMany = 0.25;
    constexpr double kBusy = 40;
    const KernelCounters& kernel = profile.kernels.front();
    if (kernel.bank_conflicts < kMany * kernel.shared_wavefronts || kernel.shared_wavefronts == 0) return "";
    if (busy_with(kernel, "shared memory") < kBusy ||
        !is_one_of(kernel.limited_by, {"shared memory", "L1", "latency", "barriers"}))
        return "";
    return fmt::format("bank conflicts make {:.3g} times as many wavefronts of shared memory as without them",
                       kernel.shared_wavefronts / (kernel.shared_wavefronts - kernel.bank_conflicts));
}

std::string queueing_atomics(const Profile& profile) {
    constexpr double kBusy = 20;
    constexpr double kAhead = 3;
    const KernelCounters& kernel = profile.kernels.front();
    const double atomics = busy_with(kernel, "atomics");
    if (atomics < kBusy || kernel.limited_by == "atomics") return "";
    double others = 0;
    for (const auto& [name, percent] : kernel.busy)
        if (name != "atomics") others = std::max(others, percent);
    if (atomics < kAhead * others) return "";
    return fmt::format("atomics are {:.0f} % busy, every other unit at most {:.0f} %", atomics, others);
}

std::string idle_multiprocessors(const Profile& profile) {
    constexpr double kFew = 75;
    constexpr double kLongEnough = 20;  // microseconds: shorter ones begin and end for a good part of them
    const KernelCounters& kernel = profile.kernels.front();
    if (kernel.active >= kFew || kernel.microseconds < kLongEnough * kernel.launches) return "";
    const std::string waves = kernel.waves > 0 ? fmt::format(", and the blocks make {:.3g} wave{}",
                                                             kernel.waves, kernel.waves == 1 ? "" : "s")
                                               : "";
    return fmt::format("SMs have work for {}{}", active_text(kernel), waves);
}

std::string few_loads(const Profile& profile) {
    constexpr double kMostly = 0.5;
    constexpr double kIdle = 40;
    constexpr double kHalf = 0.5;
    const KernelCounters& kernel = profile.kernels.front();
    const double waiting = stalled_on(kernel, "long_scoreboard");
    const double memory = busy_with(kernel, "memory");
    if (kernel.limited_by != "latency" || waiting < kMostly) return "";
    if (std::max({memory, busy_with(kernel, "L2"), busy_with(kernel, "L1")}) >= kIdle) return "";
    std::string text =
        fmt::format("warps wait for loads for {:.0f} % of their time, and memory is {:.0f} % busy",
                    100 * waiting, memory);
    if (kernel.occupancy < kHalf * kernel.largest_occupancy)
        text += fmt::format("; an SM has {:.0f} % of the warps that it can hold", kernel.occupancy);
    return text;
}

}  // namespace

std::span<const Advice> advice_on_signs() {
    return kSigns;
}

std::vector<Sign> signs_of(const Profile& profile) {
    std::vector<Sign> signs;
    if (profile.kernels.empty()) return signs;
    const auto add = [&](std::string_view name, std::string figures) {
        if (!figures.empty()) signs.push_back({std::move(figures), &advice_on(kSigns, name)});
    };
    add("waits of the host", waits_of_the_host(profile));
    add("spills", spills(profile));
    add("uncoalesced accesses", uncoalesced_accesses(profile));
    // Spills and sectors that are not used are such bytes.
    if (signs.empty()) add("bytes", more_bytes_than_needed(profile));
    add("bank conflicts", bank_conflicts(profile));
    add("atomics", queueing_atomics(profile));
    add("idle SMs", idle_multiprocessors(profile));
    if (signs.empty()) add("loads in flight", few_loads(profile));
    return signs;
}

}  // namespace course::tool
