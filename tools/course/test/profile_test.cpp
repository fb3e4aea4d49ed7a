// What a profile shows, from made-up counters and a made-up inspection; and whether there are words
// for all that is stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>

#include "inspect_example.hpp"
#include "profile_view.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

KernelCounters counters() {
    return {.problem = "p",
            .version = "plain",
            .kernel = "transpose",
            .launches = 2,
            .microseconds = 40,
            .limited_by = "L2",
            .busy = {{"memory", 12.4}, {"L2", 87.1}, {"L1", 54}, {"FMA", 3}},
            .stalls = {{"selected", 0.6}, {"long_scoreboard", 0.3}, {"wait", 0.1}},
            .megahertz = 1980,
            .highest_megahertz = 1980,
            .occupancy = 56.2,
            .largest_occupancy = 75,
            .occupancy_limit = "registers",
            .sectors_per_load = 4,
            .sectors_per_store = 32,
            .lanes = 31.5,
            .waves = 3,
            .dram_bytes_read = 2.5e8,
            .dram_bytes_written = 0,
            .shared_wavefronts = 2000,
            .bank_conflicts = 500,
            .spills = 7,
            .registers = 40};
}

MeasuredRecord record(double ms, double bytes, double flops, const char* dtype = "float") {
    MeasuredRecord timed;
    timed.dtype = dtype;
    timed.median_ms = ms;
    timed.bytes = bytes;
    timed.flops = flops;
    timed.limit_bytes_per_second = 4e12;
    timed.limit_flops_per_second = 6e13;
    return timed;
}

Profile profile() {
    return {.name = "plain",
            .problem = "matrix 8192x8192",
            .gpu = "NVIDIA H200",
            .kernels = {counters()},
            .reason = "L2 is 87 % busy",
            .inspected_problem = "matrix 128x128",
            .inspected = {example_kernel()},
            .inspected_on = kExampleLimits};
}

const Figure& figure(const std::vector<Figure>& figures, const std::string& name) {
    for (const Figure& each : figures)
        if (each.name == name) return each;
    throw std::runtime_error("no figure " + name);
}

bool shows(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(Profiles, HaveTheCountsOfTheGpuBesideThoseOfTheInspection) {
    const Screen screen = screen_of(profile());
    const auto both = [&](const char* name) {
        const Figure found = figure(screen.predictable, name);
        return found.counted + " | " + found.predicted;
    };
    EXPECT_EQ(both("sectors per load"), "4.00 | 4.00");
    EXPECT_EQ(both("sectors per store"), "32.00 | none");
    EXPECT_EQ(both("wavefronts per shared access"), " | 16.50") << "a load of 32 and one of 1";
    EXPECT_EQ(both("bank conflicts"), "25.0 % of the wavefronts | 93.9 % of the wavefronts");
    EXPECT_EQ(both("active lanes"), "31.5 of an instruction | 32.0 of an access");
    EXPECT_TRUE(both("occupancy at most").starts_with("75 %, limited by registers | 100 %, 2 blocks"));
    EXPECT_EQ(both("barriers per block"), " | 1");
    EXPECT_EQ(both("bytes read"), " | 131 KB, unique 65.5 KB (2 times)");
}

TEST(Profiles, SayWhatOnlyTheHardwareKnows) {
    const Screen screen = screen_of(profile());
    EXPECT_EQ(figure(screen.hardware, "time").counted, "40.0 µs");
    EXPECT_EQ(figure(screen.hardware, "kernel").counted, "transpose, 2 launches");
    EXPECT_EQ(figure(screen.hardware, "busiest units").counted, "L2 87 %, L1 54 %, memory 12 %");
    EXPECT_EQ(figure(screen.hardware, "DRAM").counted, "250 MB read, 0 B written");
    EXPECT_EQ(figure(screen.hardware, "spills").counted, "7 loads and stores of local memory");
    ASSERT_EQ(screen.waits.size(), 2U) << "a warp that issues does not wait";
    EXPECT_EQ(screen.waits[0].advice->name, "long_scoreboard");
    EXPECT_EQ(screen.limit->name, "L2");
}

TEST(Profiles, OfSeveralKernelsTheLongestIsShown) {
    Profile two = profile();
    two.kernels.push_back(counters());
    two.kernels[1].kernel = "finish";
    two.kernels[1].microseconds = 5;
    const Screen screen = screen_of(two);
    EXPECT_EQ(figure(screen.hardware, "time").counted, "45.0 µs") << "of all kernels";
    EXPECT_EQ(figure(screen.hardware, "other kernels").counted, "finish 5.00 µs (L2)");
}

TEST(Profiles, PlaceAVersionOnTheRoofline) {
    const auto roofline = [](const MeasuredRecord& timed) {
        Profile with_time = profile();
        with_time.timed = timed;
        return figure(screen_of(with_time).hardware, "roofline").counted;
    };
    EXPECT_EQ(
        roofline(record(1, 2e9, 5e8)),
        "0.25 operations per byte: 2 TB/s of 4 TB/s measured (50 %); 500 GFLOP/s of 60 TFLOP/s measured "
        "(0.83 %). The roof is memory");
    EXPECT_TRUE(roofline(record(1, 1e8, 3e10)).ends_with("(50 %). The roof is arithmetic"));
    EXPECT_EQ(roofline(record(1, 8e9, 0)),
              "8 TB/s of 4 TB/s measured (200 %), because a cache holds the data");
    EXPECT_TRUE(roofline(record(1, 1e8, 3e11, "half")).ends_with("whose limit on this unit is not measured"));
    MeasuredRecord on_tensor_cores = record(1, 1e8, 3e11);
    on_tensor_cores.percent_of_limit = 2.5;
    EXPECT_TRUE(roofline(on_tensor_cores).ends_with("whose limit on this unit is not measured"))
        << "five times what FP32 can do";
}

TEST(Profiles, AreShownWithoutWhatIsNotThere) {
    Profile stored = profile();
    stored.inspected.clear();
    stored.not_inspected = "Not here.";
    const std::string text = screen_text(screen_of(stored), false);
    EXPECT_TRUE(shows(text, "limited by L2: L2 is 87 % busy\n"));
    EXPECT_TRUE(
        shows(text, "30 % of their time: wait for data from global or local memory (long_scoreboard)"));
    EXPECT_TRUE(shows(text, "\n  Not here.\n"));
    EXPECT_FALSE(shows(text, "inspected here"));
    EXPECT_FALSE(shows(text, "bytes read")) << "which only an inspection counts";

    Profile inspected = profile();
    inspected.kernels.clear();
    inspected.gpu.clear();
    const std::string predicted = screen_text(screen_of(inspected), false);
    EXPECT_FALSE(shows(predicted, "only the hardware knows"));
    EXPECT_TRUE(shows(predicted, "    sectors per load              4.00\n"));
    EXPECT_FALSE(std::regex_search(text + predicted, std::regex(" \n"))) << "blanks at the end of a line";
}

TEST(Profiles, ComparisonOfTwoProblemsNamesBoth) {
    Profile other = profile();
    other.problem = "add 2^10";
    const std::string one = comparison_text(screen_of(profile()), screen_of(profile()), false);
    EXPECT_TRUE(shows(one, "=== " + profile().problem + ", ")) << one;
    EXPECT_FALSE(shows(one, "  problem ")) << one;
    const std::string two = comparison_text(screen_of(profile()), screen_of(other), false);
    EXPECT_TRUE(shows(two, "=== two problems, ")) << two;
    EXPECT_TRUE(std::regex_search(two, std::regex("  problem +" + profile().problem + " +add 2.10\n")))
        << two;
    other.problem = profile().problem;
    other.gpu = "";
    const std::string no_gpu = comparison_text(screen_of(profile()), screen_of(other), false);
    EXPECT_TRUE(shows(no_gpu, "=== " + profile().problem + ": what changed")) << no_gpu;
}

TEST(Profiles, ComparisonBeginsWithWhatChangedMost) {
    Profile after = profile();
    after.name = "better";
    KernelCounters& kernel = after.kernels.front();
    kernel.microseconds = 20;
    kernel.sectors_per_store = 4;
    kernel.busy = {{"memory", 42.4}, {"L2", 88}, {"L1", 54}, {"FMA", 4}};
    kernel.stalls = {{"barrier", 0.5}, {"wait", 0.11}};
    kernel.spills = 0;
    std::vector<std::string> changed;
    for (const Change& change : changes(screen_of(profile()), screen_of(after)))
        if (!change.factor.empty()) changed.push_back(change.name + " " + change.factor);
    EXPECT_EQ(changed, (std::vector<std::string>{"spills gone", "sectors per store 0.125×",
                                                 "warps: barrier new", "busy: memory +30 points",
                                                 "warps: long_scoreboard gone", "time 0.5×"}));
    const std::string text = comparison_text(screen_of(profile()), screen_of(after), false);
    EXPECT_TRUE(shows(text, "32.00")) << text;
    EXPECT_LT(text.find("sectors per store"), text.find("time ")) << text;
    EXPECT_FALSE(shows(text, "busy: FMA")) << "idle in both";
    EXPECT_TRUE(shows(text, "inspected: bank conflicts"));
}

TEST(Profiles, SayForHowMuchOfTheTimeSmsHaveWorkAndWhatTheWorkNeeds) {
    Profile timed = profile();
    timed.kernels.front().active = 52.3;
    timed.kernels.front().waves = 0.5;
    timed.timed = record(1, 1e8, 0);
    const auto hardware = [](const Profile& of, const char* name) {
        return figure(screen_of(of).hardware, name).counted;
    };
    EXPECT_EQ(hardware(timed, "SMs with work"), "52 % of the time, on average");
    EXPECT_EQ(hardware(timed, "waves of blocks"), "0.5");
    EXPECT_EQ(hardware(timed, "DRAM"), "250 MB read, 0 B written; the work needs 100 MB");
    timed.kernels.front().active = 0.01;
    timed.kernels.front().waves = 0;
    EXPECT_EQ(hardware(timed, "SMs with work"), "less than 0.1 % of the time, on average");
    EXPECT_THROW(hardware(timed, "waves of blocks"), std::runtime_error);
}

TEST(Profiles, ATimeOfAnotherProblemNamesIt) {
    Profile timed = profile();
    timed.timed_on_another = record(2.4, 1e8, 0);
    timed.timed_on_another->problem = "matrix 64x64";
    EXPECT_EQ(figure(screen_of(timed).hardware, "unprofiled").counted, "2.40 ms for matrix 64x64");
    timed.timed = record(1, 1e8, 0);
    EXPECT_EQ(figure(screen_of(timed).hardware, "unprofiled").counted, "1.00 ms");
}

TEST(Profiles, CountAtomicsAndBlocksOfTheInspection) {
    Profile inspected = profile();
    EXPECT_EQ(figure(screen_of(inspected).predictable, "atomic operations").predicted, "");
    EXPECT_EQ(figure(screen_of(inspected).predictable, "grid").predicted,
              "transpose<32, true>: 16 blocks of 1024 threads");
    KernelInspection& kernel = inspected.inspected.front();
    kernel.lines.push_back(access(Space::kGlobal, Operation::kAtomic, 4, 1, stride(0)));
    kernel.lines.push_back(access(Space::kShared, Operation::kAtomic, 4, 1, stride(0)));
    kernel.lines.push_back(access(Space::kGlobal, Operation::kAtomicLoad, 4, 1, stride(0)));
    EXPECT_EQ(figure(screen_of(inspected).predictable, "atomic operations").predicted, "320");
    kernel.blocks = 32;
    EXPECT_EQ(figure(screen_of(inspected).predictable, "atomic operations").predicted, "about 640");
}

TEST(Profiles, ShowEveryFactOfTheInspectionOnce) {
    Profile inspected = profile();
    inspected.facts = {{"copies to the host", "16"}};
    inspected.inspected.push_back(inspected.inspected.front());
    std::map<std::string, std::string> rows;
    for (const Figure& row : screen_of(inspected).predictable)
        EXPECT_TRUE(rows.emplace(row.name, row.predicted).second) << row.name << " twice";
    EXPECT_EQ(rows["copies to the host"], "16");
    EXPECT_EQ(rows["shared memory"], "4.1 KB per block");
    for (const auto& [name, text] : facts_of(inspected.inspected.front(), inspected.inspected_on)) {
        const auto shows_it = [&, &text = text](const auto& row) { return shows(row.second, text); };
        EXPECT_TRUE(name == "active lanes" || std::ranges::any_of(rows, shows_it)) << name;
    }
    inspected.inspected.front().lines.resize(1);
    inspected.inspected.pop_back();
    for (const Figure& row : screen_of(inspected).predictable)
        EXPECT_NE(row.name, "wavefronts per shared access") << "it has no shared memory";
}

TEST(Profiles, ColumnsDoNotTouch) {
    Profile crowded = profile();
    crowded.kernels.front().largest_occupancy = 81;
    crowded.kernels.front().occupancy_limit = "shared memory";
    EXPECT_TRUE(
        shows(screen_text(screen_of(crowded), false), "81 %, limited by shared memory  100 %, 2 blocks"));
}

// --- What stands out -----------------------------------------------------------------------------

// Nothing stands out in it.
Profile inconspicuous() {
    Profile plain = profile();
    KernelCounters& kernel = plain.kernels.front();
    kernel.limited_by = "latency";
    kernel.microseconds = 400;
    kernel.busy = {{"memory", 45}, {"L2", 50}, {"shared memory", 50}, {"L1", 55}, {"atomics", 1}};
    kernel.stalls = {{"long_scoreboard", 0.6}, {"wait", 0.1}};
    kernel.sectors_per_store = 16;
    kernel.bank_conflicts = 0;
    plain.timed = record(0.41, 1e8, 0);
    return plain;
}

// "figures | name" of each sign.
std::vector<std::string> signs(const Profile& of) {
    std::vector<std::string> texts;
    for (const Sign& sign : signs_of(of))
        texts.push_back(sign.figures + " | " + std::string(sign.advice->name));
    return texts;
}

using Texts = std::vector<std::string>;

TEST(ProfileSigns, AKernelWithoutAnyHasNone) {
    EXPECT_EQ(signs(inconspicuous()), Texts{});
    Profile nothing_counted = inconspicuous();
    nothing_counted.kernels.clear();
    EXPECT_EQ(signs(nothing_counted), Texts{});
}

TEST(ProfileSigns, SectorsOfARequest) {
    Profile wide = inconspicuous();
    KernelCounters& kernel = wide.kernels.front();
    kernel.sectors_per_load = 18;
    EXPECT_EQ(signs(wide), Texts{}) << "nearly what loads of 16 bytes need";
    kernel.sectors_per_load = 32;
    EXPECT_EQ(signs(wide), Texts{"32.00 sectors per load | uncoalesced accesses"});
    kernel.sectors_per_store = 31.5;
    EXPECT_EQ(signs(wide), Texts{"32.00 sectors per load, 31.50 sectors per store | uncoalesced accesses"});
    kernel.limited_by = "FMA";
    EXPECT_EQ(signs(wide), Texts{}) << "another unit decides";
}

TEST(ProfileSigns, BytesBeyondThoseThatTheWorkNeeds) {
    Profile more = inconspicuous();
    more.kernels.front().limited_by = "memory";
    EXPECT_EQ(signs(more), Texts{"DRAM moves 250 MB, 2.5 times the 100 MB that the work needs | bytes"});
    more.timed->bytes = 2e8;
    EXPECT_EQ(signs(more), Texts{});
    more.kernels.push_back(more.kernels.front());
    EXPECT_EQ(signs(more), Texts{"DRAM moves 500 MB, 2.5 times the 200 MB that the work needs | bytes"})
        << "of all kernels";
    more.kernels.front().sectors_per_load = 32;
    EXPECT_EQ(signs(more), Texts{"32.00 sectors per load | uncoalesced accesses"}) << "which says why";
}

TEST(ProfileSigns, SpillsThatAreMany) {
    Profile spilling = inconspicuous();
    spilling.kernels.front().spills = 3e5;
    EXPECT_EQ(signs(spilling), Texts{});
    spilling.kernels.front().spills = 2e6;
    EXPECT_EQ(signs(spilling),
              Texts{"2 million loads and stores of local memory, 256 MB if all lanes take part | spills"});
}

TEST(ProfileSigns, BankConflictsOfABusySharedMemory) {
    Profile conflicting = inconspicuous();
    KernelCounters& kernel = conflicting.kernels.front();
    kernel.bank_conflicts = 1500;
    EXPECT_EQ(signs(conflicting), Texts{"bank conflicts make 4 times as many wavefronts of shared memory as "
                                        "without them | bank conflicts"});
    kernel.limited_by = "memory";
    EXPECT_EQ(signs(conflicting),
              Texts{"DRAM moves 250 MB, 2.5 times the 100 MB that the work needs | bytes"})
        << "memory decides";
    kernel.limited_by = "latency";
    kernel.busy[2].second = 30;
    EXPECT_EQ(signs(conflicting), Texts{}) << "mostly idle";
    kernel.busy[2].second = 50;
    kernel.bank_conflicts = 400;
    EXPECT_EQ(signs(conflicting), Texts{}) << "a fifth of the wavefronts";
}

TEST(ProfileSigns, AtomicsAheadOfAllOtherUnits) {
    Profile adding = inconspicuous();
    KernelCounters& kernel = adding.kernels.front();
    kernel.busy = {{"memory", 2}, {"L2", 11}, {"atomics", 34}};
    kernel.stalls = {{"drain", 0.44}};
    EXPECT_EQ(signs(adding), Texts{"atomics are 34 % busy, every other unit at most 11 % | atomics"});
    kernel.busy[1].second = 12;
    EXPECT_EQ(signs(adding), Texts{});
}

TEST(ProfileSigns, SmsWithoutWork) {
    Profile uneven = inconspicuous();
    KernelCounters& kernel = uneven.kernels.front();
    kernel.active = 52;
    kernel.waves = 0.5;
    EXPECT_EQ(
        signs(uneven),
        Texts{"SMs have work for 52 % of the time, on average, and the blocks make 0.5 waves | idle SMs"});
    kernel.microseconds = 39;
    uneven.timed.reset();
    EXPECT_EQ(signs(uneven), Texts{}) << "two short launches";
}

TEST(ProfileSigns, TooFewLoadsInFlight) {
    Profile waiting = inconspicuous();
    KernelCounters& kernel = waiting.kernels.front();
    kernel.busy = {{"memory", 8}, {"L2", 17}, {"L1", 5}};
    EXPECT_EQ(signs(waiting),
              Texts{"warps wait for loads for 60 % of their time, and memory is 8 % busy | loads in flight"});
    kernel.occupancy = 12.4;
    EXPECT_EQ(signs(waiting),
              Texts{"warps wait for loads for 60 % of their time, and memory is 8 % busy; an SM "
                    "has 12 % of the warps that it can hold | loads in flight"});
    kernel.active = 30;
    EXPECT_EQ(signs(waiting).size(), 1U) << "idle SMs have no loads in flight: " << signs(waiting).front();
    kernel.active = 100;
    kernel.busy[2].second = 41;
    EXPECT_EQ(signs(waiting), Texts{}) << "L1 is what they wait for";
    kernel.busy[2].second = 5;
    kernel.stalls.front().second = 0.4;
    EXPECT_EQ(signs(waiting), Texts{});
}

TEST(ProfileSigns, TimeWithoutAKernel) {
    Profile gaps = inconspicuous();
    KernelCounters& kernel = gaps.kernels.front();
    kernel.limited_by = "launch";
    kernel.launches = 16;
    kernel.microseconds = 32;
    gaps.timed->median_ms = 0.192;
    EXPECT_EQ(signs(gaps),
              Texts{"no kernel runs for 160 µs of 192 µs, 10.0 µs for each launch | waits of the host"});
    gaps.timed->median_ms = 0.08;
    EXPECT_EQ(signs(gaps), Texts{}) << "as short a gap as a launch leaves";
    gaps.timed.reset();
    EXPECT_EQ(signs(gaps), Texts{});
}

TEST(ProfileSigns, TheMysteriesOfDay7ShowTheirCausesAndTheRepairedKernelsDoNot) {
    const fs::path directory = fs::path(CHECKOUT) / "docs/measurements/h200";
    const std::vector<KernelCounters> counted = load_counters(directory / "day07_profiling.counters.jsonl");
    const std::vector<MeasuredRecord> times = load_records(directory / "day07_profiling.jsonl");
    const auto names_of = [&](const std::string& version) {
        Profile stored{.name = version, .problem = ""};
        for (const KernelCounters& kernel : counted)
            if (kernel.version == version) stored.kernels = kernels_of(counted, kernel.problem, version);
        for (const MeasuredRecord& time : times)
            if (time.version == version && time.l2 == "warm" &&
                time.problem == stored.kernels.front().problem)
                stored.timed = time;
        std::string found = stored.kernels.front().limited_by;
        for (const Sign& sign : signs_of(stored))
            found += ": " + std::string(sign.advice->name);
        return found;
    };
    const Texts slow = {"memory: uncoalesced accesses",
                        "shared memory: bank conflicts",
                        "latency: loads in flight",
                        "L2: spills",
                        "latency: idle SMs",
                        "latency: atomics",
                        "launch",
                        "launch: waits of the host"};
    const Texts repaired = {"memory", "memory", "memory", "memory", "issue", "barriers", "launch", "launch"};
    for (std::size_t i = 0; i < slow.size(); ++i) {
        const std::string mystery = "mystery" + std::to_string(i + 1);
        EXPECT_EQ(names_of(mystery), slow[i]) << mystery;
        EXPECT_EQ(names_of(mystery + "_repaired"), repaired[i]) << mystery;
    }
}

TEST(ProfileSigns, HaveTheAdviceThatAClassOrAWaitWouldHave) {
    Profile stored = inconspicuous();
    stored.kernels.front().stalls = {{"long_scoreboard", 0.6}};
    const std::string without = screen_text(screen_of(stored), false);
    EXPECT_FALSE(shows(without, "what stands out"));
    EXPECT_EQ(count(without, "Try: "), 2U) << "on the class and on the wait: " << without;
    stored.kernels.front().sectors_per_load = 32;
    const std::string with = screen_text(screen_of(stored), false);
    EXPECT_TRUE(shows(with, "\n  what stands out\n    32.00 sectors per load: each request of a warp needs"))
        << with;
    EXPECT_EQ(count(with, "Try: "), 1U) << with;
    EXPECT_TRUE(shows(with, "threads (day 01, day 06,\n    day 07)")) << with;
    EXPECT_TRUE(shows(with, "(long_scoreboard)")) << "the wait itself stays: " << with;

    stored = inconspicuous();
    stored.kernels.front().limited_by = "launch";
    EXPECT_EQ(count(screen_text(screen_of(stored), false), "Try: "), 1U) << "waits do not matter";
}

// --- Words ---------------------------------------------------------------------------------------

std::set<std::string> names(std::span<const Advice> all) {
    std::set<std::string> found;
    for (const Advice& advice : all)
        found.emplace(advice.name);
    return found;
}

// The text of scripts/counters.py between `begin` and the first `end` after it.
std::string in_the_script(const std::string& begin, const std::string& end) {
    const std::string script = read_text(fs::path(CHECKOUT) / "scripts/counters.py");
    const auto first = script.find(begin);
    return script.substr(first, script.find(end, first) - first);
}

std::set<std::string> matches(const std::string& text, const char* expression) {
    const std::regex pattern(expression);
    std::set<std::string> found;
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), last; match != last; ++match)
        found.insert((*match)[1]);
    return found;
}

TEST(ProfileWords, ThereAreSomeForEveryClassAndEveryStallThatTheScriptKnows) {
    std::set<std::string> classes = matches(in_the_script("UNITS = {", "\n}"), "    \"([A-Za-z0-9 ]+)\": ");
    EXPECT_EQ(classes.size(), 11U);
    classes.merge(std::set<std::string>{"power", "launch", "barriers", "constant memory", "latency"});
    EXPECT_EQ(names(advice_on_limits()), classes);

    const std::string list = in_the_script("STALLS = [", "\n]");
    EXPECT_EQ(names(advice_on_stalls()), matches(list.substr(list.find('\n')), "\\b([a-z_]+)\\b"));
    EXPECT_THROW(advice_on(advice_on_stalls(), "boredom"), std::runtime_error);
}

TEST(ProfileWords, EachNamesDaysThatAreThere) {
    std::set<std::string> days = {"gemm_ladder"};
    for (const auto& entry : fs::directory_iterator(CHECKOUT)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("day")) days.insert(name.substr(0, name.find('_')));
    }
    for (const auto& all : {advice_on_limits(), advice_on_stalls(), advice_on_signs()}) {
        for (const Advice& advice : all) {
            EXPECT_FALSE(advice.days.empty()) << advice.name;
            for (const std::string_view day : advice.days)
                EXPECT_TRUE(days.contains(std::string(day))) << advice.name << ": " << day;
        }
    }
}

TEST(ProfileWords, EveryStoredKernelHasAScreen) {
    int kernels = 0;
    for (const auto& machine : fs::directory_iterator(fs::path(CHECKOUT) / "docs/measurements")) {
        for (const auto& file : fs::directory_iterator(machine)) {
            if (!file.path().string().ends_with(".counters.jsonl")) continue;
            for (const KernelCounters& kernel : load_counters(file)) {
                Profile stored = profile();
                stored.kernels = {kernel};
                EXPECT_FALSE(screen_of(stored).waits.empty()) << file.path() << ": " << kernel.version;
                ++kernels;
            }
        }
    }
    EXPECT_GT(kernels, 300);
}

}  // namespace
}  // namespace course::tool
