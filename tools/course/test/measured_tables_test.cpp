#include "measured_tables.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace course::tool {
namespace {

// 2 x 10^9 operations, 10^9 bytes.
MeasuredRecord record(const std::string& version, double ms, const std::string& role = "ours",
                      const std::string& problem = "p", const std::string& l2 = "warm") {
    MeasuredRecord made;
    made.day = "day99";
    made.problem = problem;
    made.dtype = "float";
    made.version = version;
    made.role = role;
    made.l2 = l2;
    made.median_ms = ms;
    made.spread_ms = 0.0021;
    made.bytes = 1e9;
    made.flops = 2e9;
    made.limit_flops_per_second = 5e12;
    made.verified = true;
    made.device = "NVIDIA H200";
    made.driver = "580.65.06";
    made.cuda = "13.0";
    made.commit = "0123456789ab";
    made.date = "2026-11-21T10:30:00Z";
    return made;
}

template <class Work>
std::string error_of(const Work& work) {
    try {
        work();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

constexpr const char* kLink = "[page](page.md)";

// --- A few rows for a README ---

TEST(SummaryTable, ShowsOneProblemWithAWarmCacheBesideTheFastestPeerAndTheLimit) {
    MeasuredRecord limit = record("cudaMemcpy", 0.4, "limit");
    limit.percent_of_limit = 100;
    MeasuredRecord on_host = record("openmp", 0.1, "peer");
    on_host.device = "host CPU";
    MeasuredRecord in_half = record("half_peer", 0.1, "peer");
    in_half.dtype = "half";
    MeasuredRecord fast = record("fast", 0.5);
    fast.percent_of_limit = 80.04;
    const std::vector<MeasuredRecord> records = {on_host,
                                                 in_half,
                                                 record("slow", 2),
                                                 record("slow", 0.1, "ours", "p", "flushed"),
                                                 fast,
                                                 record("slow_peer", 0.9, "peer"),
                                                 record("good_peer", 0.6, "peer"),
                                                 limit,
                                                 record("slow", 0.1, "ours", "another")};
    EXPECT_EQ(
        summary_table(records, "p", kLink),
        "| version | time | speed-up | speed beside good_peer | % of limit |\n"
        "| --- | --: | --: | --: | --: |\n"
        "| slow | 2.00 ms | 1.00× | 0.30× |  |\n"
        "| fast | 500 µs | 4.00× | 1.20× | 80.0 |\n"
        "| good_peer (peer) | 600 µs | 3.33× | 1.00× |  |\n"
        "| cudaMemcpy (limit) | 400 µs |  |  | 100.0 |\n"
        "\n"
        "*p (float), warm cache, NVIDIA H200, 2026-11-21.* Other sizes, all columns: [page](page.md).\n");
}

TEST(SummaryTable, ColumnsThatNoRowFillsAreLeftOut) {
    EXPECT_TRUE(summary_table({record("a", 2)}, "p", kLink).starts_with("| version | time | speed-up |\n"));
}

TEST(SummaryTable, FiguresBesideTimesAreTheLastColumns) {
    MeasuredRecord with = record("a", 2);
    with.figures = {{"relative error", 0.012345}, {"outliers", std::nullopt}};
    const std::string table = summary_table({with, record("b", 1)}, "p", kLink);
    EXPECT_TRUE(contains(table, "| speed-up | relative error | outliers |\n")) << table;
    EXPECT_TRUE(contains(table, "| 1.00× | 0.0123 | - |\n")) << table;
    EXPECT_TRUE(contains(table, "| 2.00× |  |  |\n")) << table;
}

std::vector<MeasuredRecord> twelve() {
    std::vector<MeasuredRecord> records;
    // v5 and v8 are slower than the one before; v10 gains least; v11, the fastest, gains less than
    // any but v10.
    const std::vector<double> times = {100, 90, 80, 70, 60, 65, 50, 40, 45, 30, 29.5, 29};
    for (std::size_t i = 0; i < times.size(); ++i)
        records.push_back(record(fmt::format("v{}", i), times[i]));
    return records;
}

TEST(SummaryTable, OfMoreThanTenTheFirstTheFastestAndTheLargestGainsStay) {
    const std::string table = summary_table(twelve(), "p", kLink);
    EXPECT_EQ(std::ranges::count(table, '\n'), 2 + 10 + 2) << table;
    for (const char* shown : {"v0", "v1", "v2", "v3", "v4", "v6", "v7", "v9", "v10", "v11"})
        EXPECT_TRUE(contains(table, fmt::format("| {} |", shown))) << shown << "\n" << table;
    EXPECT_TRUE(contains(table, " 2 more versions, other sizes, all columns: [page]")) << table;
    EXPECT_LT(table.find("| v1 |"), table.find("| v9 |")) << "in their order";
}

TEST(SummaryTable, PeerAndLimitCountAsRows) {
    std::vector<MeasuredRecord> records = twelve();
    records.push_back(record("peer", 28, "peer"));
    records.push_back(record("limit", 27, "limit"));
    const std::string table = summary_table(records, "p", kLink);
    EXPECT_EQ(std::ranges::count(table, '\n'), 2 + 10 + 2) << table;
    EXPECT_FALSE(contains(table, "| v10 |")) << table;
    EXPECT_TRUE(contains(table, "| v11 |")) << "the fastest stays\n" << table;
    EXPECT_TRUE(contains(table, " 4 more versions,")) << table;
}

TEST(SummaryTable, AWrongResultHasNoPlaceInIt) {
    MeasuredRecord wrong = record("broken", 1);
    wrong.verified = false;
    EXPECT_TRUE(
        contains(error_of([&] { summary_table({wrong}, "p", kLink); }), "'broken' on 'p' is not verified"));
    EXPECT_TRUE(contains(error_of([&] { summary_table({record("a", 1)}, "q", kLink); }),
                         "no record has the problem 'q'"));
    EXPECT_TRUE(contains(error_of([&] { summary_table({record("a", 1, "peer")}, "p", kLink); }),
                         "no warm record of ours"));
}

TEST(MainProblem, HasTheMostVersionsAndOfSuchTheMostBytes) {
    MeasuredRecord larger = record("a", 1, "ours", "larger");
    larger.bytes = 9e9;
    MeasuredRecord larger_too = larger;
    larger_too.version = "b";
    MeasuredRecord huge = record("a", 1, "ours", "huge");
    huge.bytes = 1e12;
    EXPECT_EQ(main_problem({record("a", 1), record("b", 1), larger, larger_too, huge, record("c", 1, "peer"),
                            record("c", 1, "ours", "p", "flushed")}),
              "larger");
    EXPECT_TRUE(contains(error_of([] { main_problem({record("c", 1, "peer")}); }), "no warm record of ours"));
}

TEST(LadderTable, ShowsThePeerAndTheFirstVersionOfEachStep) {
    const std::vector<MeasuredRecord> records = {
        record("00_cublas", 0.8, "peer"),
        record("01_naive", 4),
        record("02_new", 1),
        record("09a_deeper", 0.7),
        record("11_split_k", 0.9),
        record("11_split_k_in_kernel", 0.85),
        record("12_stages", 0.6),
        record("01_naive", 77, "ours", "other"),
    };
    EXPECT_EQ(ladder_table(records, "p", kLink),
              "| version | TFLOP/s | % of cublas | % of FMA limit |\n"
              "| --- | --: | --: | --: |\n"
              "| 00_cublas | 2.50 | 100.0 | 50.0 |\n"
              "| 01_naive | 0.50 | 20.0 | 10.0 |\n"
              "| 02_new | 2.00 | 80.0 | 40.0 |\n"
              "| 11_split_k | 2.22 | 88.9 | 44.4 |\n"
              "| 12_stages | 3.33 | 133.3 | 66.7 |\n"
              "\n"
              "*p (float), warm cache, NVIDIA H200, 2026-11-21.* All versions, other sizes, all columns: "
              "[page](page.md).\n");
}

TEST(LadderTable, HasNoStepOnTensorCores) {
    MeasuredRecord tensor_cores = record("15_tensor_cores", 0.3);
    tensor_cores.percent_of_limit = 2.3;  // of memory; 133 % of the multiply-adds
    MeasuredRecord multiply_adds = record("12_stages", 0.6);
    multiply_adds.percent_of_limit = 66.7;
    const std::string table =
        ladder_table({record("00_cublas", 0.8, "peer"), multiply_adds, tensor_cores}, "p", kLink);
    EXPECT_TRUE(contains(table, "12_stages")) << table;
    EXPECT_FALSE(contains(table, "15_tensor_cores")) << table;
}

TEST(LadderTable, OfMoreStepsThanFitThoseThatGainedTheMostStay) {
    std::vector<MeasuredRecord> records = {record("plain_loop_1_thread", 0.1, "peer"),
                                           record("00_cublas", 1, "peer")};
    records.front().device = "host CPU";
    for (int step = 1; step <= 9; ++step)
        records.push_back(record(fmt::format("0{}_step", step), 10 - step));
    records.insert(records.begin() + 5, record("10_slower", 8));
    const std::string table = ladder_table(records, "p", kLink);
    EXPECT_FALSE(contains(table, "10_slower")) << table;
    EXPECT_FALSE(contains(table, "plain_loop")) << table;
    for (int step = 0; step <= 9; ++step)
        EXPECT_TRUE(contains(table, fmt::format("| 0{}_", step))) << table;
}

TEST(LadderTable, MistakesAreNamed) {
    const MeasuredRecord naive = record("01_naive", 4);
    const MeasuredRecord peer = record("00_cublas", 1, "peer");
    EXPECT_TRUE(
        contains(error_of([&] { ladder_table({naive}, "p", kLink); }), "no record has the role 'peer'"));
    EXPECT_TRUE(contains(error_of([&] {
                             ladder_table({naive, peer, record("torch", 1, "peer")}, "p", kLink);
                         }),
                         "not '00_cublas' and 'torch'"));
    EXPECT_TRUE(
        contains(error_of([&] {
                     ladder_table({naive, record("00_cublas", 1, "peer", "p", "flushed")}, "p", kLink);
                 }),
                 "'00_cublas' has no warm record"));
}

// Ratios of 2, 0.5 and 8 warm: a geometric mean of 2; of 1, 0.25 and 4 flushed: 1.
std::vector<MeasuredRecord> swept() {
    std::vector<MeasuredRecord> records;
    const auto add = [&](const char* problem, double ours, double peer, double ours_flushed,
                         double peer_flushed) {
        records.push_back(record("00_cublas", peer, "peer", problem));
        records.push_back(record("00_cublas", peer_flushed, "peer", problem, "flushed"));
        records.push_back(record("14_auto", ours, "ours", problem));
        records.push_back(record("14_auto", ours_flushed, "ours", problem, "flushed"));
    };
    add("a", 1, 2, 3, 3);
    add("b", 4, 2, 4, 1);
    add("c", 1, 8, 1, 4);
    return records;
}

TEST(SweepTable, EndsWithTheMeanAndTheLowest) {
    EXPECT_EQ(sweep_table(swept()),
              "| problem | 14_auto | 00_cublas | 00_cublas / 14_auto | with L2 flushed |\n"
              "| --- | --: | --: | --: | --: |\n"
              "| a | 1.00 ms | 2.00 ms | 2.00 | 1.00 |\n"
              "| b | 4.00 ms | 2.00 ms | 0.50 | 0.25 |\n"
              "| c | 1.00 ms | 8.00 ms | 8.00 | 4.00 |\n"
              "| **geometric mean of 3** |  |  | 2.000 | 1.000 |\n"
              "| **lowest** |  |  | 0.500 | 0.250 |\n");
}

TEST(SweepTable, InOneSentence) {
    EXPECT_EQ(
        sweep_summary(swept(), kLink),
        "`14_auto` beside `00_cublas` on 3 problems, NVIDIA H200: geometric mean 2.00× with a warm "
        "cache, 1.00× with the L2 flushed; lowest 0.50× (b) and 0.25× (b); at least as fast on 2 and 2. "
        "Every problem: [page](page.md).\n");
    std::vector<MeasuredRecord> warm = swept();
    std::erase_if(warm, [](const MeasuredRecord& one) { return one.l2 == "flushed"; });
    EXPECT_EQ(sweep_summary(warm, kLink),
              "`14_auto` beside `00_cublas` on 3 problems, NVIDIA H200: geometric mean 2.00× with a warm "
              "cache, lowest 0.50× (b); at least as fast on 2. Every problem: [page](page.md).\n");
}

TEST(SweepTable, ComparesWithTheFastestPeerOrWithTheLimit) {
    EXPECT_EQ(sweep_table({record("auto", 2, "ours", "a"), record("csr", 8, "peer", "a"),
                           record("sell", 4, "peer", "a"), record("auto", 2, "ours", "b"),
                           record("csr", 1, "peer", "b"), record("copy", 0.1, "limit", "b")}),
              "| problem | auto | the fastest peer | the fastest peer / auto |\n"
              "| --- | --: | --: | --: |\n"
              "| a | 2.00 ms | 4.00 ms | 2.00 |\n"
              "| b | 2.00 ms | 1.00 ms | 0.50 |\n"
              "| **geometric mean of 2** |  |  | 1.000 |\n"
              "| **lowest** |  |  | 0.500 |\n");
    EXPECT_TRUE(contains(sweep_table({record("auto", 2, "ours", "a"), record("copy", 1, "limit", "a")}),
                         "| a | 2.00 ms | 1.00 ms | 0.50 |"));
}

TEST(SweepTable, MistakesAreNamed) {
    const auto with = [](std::vector<MeasuredRecord> more) {
        std::vector<MeasuredRecord> records = swept();
        records.insert(records.end(), more.begin(), more.end());
        return records;
    };
    const auto error_with = [&](const std::vector<MeasuredRecord>& more) {
        return error_of([&] { sweep_table(with(more)); });
    };
    EXPECT_TRUE(contains(error_with({record("05_tiles", 1, "ours", "a")}), "not '14_auto' and '05_tiles'"));
    EXPECT_TRUE(
        contains(error_with({record("14_auto", 1, "ours", "d")}), "'d' has no warm record of '00_cublas'"));
    EXPECT_TRUE(
        contains(error_with({record("00_cublas", 1, "peer", "d")}), "'d' has no warm record of '14_auto'"));
    EXPECT_FALSE(
        contains(sweep_table(with({record("00_cublas", 1, "peer", "d"), record("14_auto", 1, "ours", "d")})),
                 "| 1.000 |\n"))
        << "no mean of flushed ratios where one is missing";
}

// --- Everything ---

TEST(FullTable, ShowsEveryRecordWithItsKernelAndItsFigures) {
    MeasuredRecord ours = record("a", 2);
    ours.percent_of_limit = 99.43;
    ours.kernel = {.registers = 128, .shared_bytes = 33792, .occupancy = 0.25, .limited_by = "registers"};
    ours.figures = {{"relative error", 0.012345}};
    EXPECT_EQ(full_table({record("cub", 1, "peer"), ours, record("a", 3, "ours", "p", "flushed"),
                          record("cub", 1.5, "peer", "p", "flushed")}),
              "| version | L2 | median | ± | GB/s | GFLOP/s | % of limit | peer / this | registers | shared "
              "memory | occupancy | "
              "limited by | relative error |\n"
              "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- | --: |\n"
              "| cub (peer) | warm | 1.00 ms | 2.10 µs | 1000 | 2000 |  |  |  |  |  |  |  |\n"
              "| a | warm | 2.00 ms | 2.10 µs | 500 | 1000 | 99.4 | 0.50 | 128 | 33 KB | 25 % | registers | "
              "0.0123 |\n"
              "| a | flushed | 3.00 ms | 2.10 µs | 333 | 667 |  | 0.50 |  |  |  |  |  |\n"
              "| cub (peer) | flushed | 1.50 ms | 2.10 µs | 667 | 1333 |  |  |  |  |  |  |  |\n");
}

// 2.3 % of memory, and 133 % of FP32 multiply-adds: what tensor cores could do is not known.
TEST(FullTable, HasNoShareOfALimitForTensorCores) {
    MeasuredRecord tensor_cores = record("a", 0.3);
    tensor_cores.percent_of_limit = 2.3;
    EXPECT_FALSE(contains(full_table({tensor_cores}), "2.3")) << full_table({tensor_cores});
    MeasuredRecord multiply_adds = record("a", 0.5);
    multiply_adds.percent_of_limit = 80.04;
    EXPECT_TRUE(contains(full_table({multiply_adds}), "| 80.0 |")) << full_table({multiply_adds});
}

TEST(ComparisonTable, HasTheBestOfOursBesideTheBestPeerForEachProblem) {
    MeasuredRecord on_host = record("openmp", 9, "peer", "alone");
    on_host.device = "host CPU";
    EXPECT_EQ(comparison_table({record("slow", 0.9), record("fast", 0.5), record("bad_peer", 0.8, "peer"),
                                record("good_peer", 0.6, "peer"), record("copy", 0.1, "limit"),
                                record("fast", 0.2, "ours", "p", "flushed"), on_host,
                                record("only", 0.25, "ours", "alone")}),
              "| problem | type | ours | median | GB/s | GFLOP/s | peer | peer / ours |\n"
              "| --- | --- | --- | --: | --: | --: | --- | --: |\n"
              "| p | float | fast | 500 µs | 2000 | 4000 | good_peer 600 µs | 1.20 |\n"
              "| alone | float | only | 250 µs | 4000 | 8000 |  |  |\n");
    EXPECT_EQ(comparison_table({record("copy", 0.1, "limit")}), "");
}

// --- One result ---

TEST(BestResult, IsBesideThePeer) {
    const MeasuredRecord peer = record("00_cublas", 1, "peer");
    EXPECT_EQ(best_result({record("a", 4), record("b", 2), peer}, "p", ""), "0.50× cublas");
    EXPECT_EQ(best_result({record("a", 4), record("b", 2), peer}, "p", "a"), "0.25× cublas");
    MeasuredRecord loop = record("plain_loop_16_threads", 0.1, "peer");
    loop.device = "host CPU";
    EXPECT_EQ(best_result({loop, record("b", 2), peer}, "p", ""), "0.50× cublas") << "the CPU is no library";
    EXPECT_EQ(best_result({loop, record("b", 2)}, "p", ""), "");
    MeasuredRecord alone = record("a", 1);
    alone.percent_of_limit = 92.6;
    EXPECT_EQ(best_result({alone}, "p", ""), "") << "a limit is no library";
    EXPECT_TRUE(contains(error_of([&] { best_result({alone}, "p", "c"); }), "no warm record of 'c'"));
}

TEST(OneFigure, IsThatOfTheWarmRecord) {
    MeasuredRecord with_kernel = record("b", 1);
    with_kernel.kernel = {.registers = 128, .shared_bytes = 0, .occupancy = 0.25, .limited_by = "registers"};
    with_kernel.percent_of_limit = 40.04;
    const std::vector<MeasuredRecord> records = {record("a", 4), record("b", 9, "ours", "p", "flushed"),
                                                 with_kernel, record("cub", 0.8, "peer")};
    const auto figure = [&](const char* quantity) { return one_figure(records, "p", "b", quantity); };
    EXPECT_EQ(figure("time"), "1.00 ms");
    EXPECT_EQ(figure("GB/s"), "1000");
    EXPECT_EQ(figure("GFLOP/s"), "2000");
    EXPECT_EQ(figure("TFLOP/s"), "2.00");
    EXPECT_EQ(figure("% of limit"), "40.0");
    EXPECT_EQ(figure("% of peer"), "80");
    EXPECT_EQ(figure("speed-up"), "4.00×");
    EXPECT_EQ(figure("registers"), "128");
    EXPECT_EQ(figure("occupancy"), "25 %");
    EXPECT_TRUE(contains(error_of([&] { figure("watts"); }), "the quantity is 'watts'; expected time, "));
    EXPECT_TRUE(contains(error_of([&] { one_figure(records, "p", "a", "registers"); }),
                         "'registers' of 'a' on 'p' is not known"));
    EXPECT_TRUE(
        contains(error_of([&] { one_figure(records, "p", "z", "time"); }), "'p' has no warm record of 'z'"));
}

TEST(Provenance, NamesEachRunOnce) {
    MeasuredRecord later = record("b", 1);
    later.commit = "ba9876543210";
    EXPECT_EQ(provenance({record("a", 1), record("a", 2), later}),
              "Measured on NVIDIA H200, driver 580.65.06, CUDA 13.0, commit 0123456789ab, 2026-11-21; driver "
              "580.65.06, CUDA 13.0, "
              "commit ba9876543210, 2026-11-21.");
}

TEST(FormatTime, KeepsThreeDigits) {
    EXPECT_EQ(format_time(0.0012345), "1.23 µs");
    EXPECT_EQ(format_time(0.738), "738 µs");
    EXPECT_EQ(format_time(12.345), "12.3 ms");
    EXPECT_EQ(format_time(2500), "2.50 s");
}

// --- Several GPUs ---

TEST(ScalingTable, ComparesCubesOnOneGpuAndOnSeveral) {
    const auto at = [](const std::string& version, double ms, const std::string& size,
                       const std::string& role = "ours") {
        return record(version, ms, role, "25-point " + size + " on 2 GPUs");
    };
    const std::vector<MeasuredRecord> records = {
        at("one_gpu", 4, "256x256x256x10"),   at("peer_copy", 3, "256x256x256x10"),
        at("graph", 2.5, "256x256x256x10"),   at("no_exchange", 2, "256x256x256x10", "limit"),
        at("one_gpu", 2, "128x128x128x10"),   at("graph", 1.6, "128x128x128x10"),
        at("one_gpu", 8.5, "256x256x512x10"), at("graph", 5, "256x256x512x10"),
        at("one_gpu", 1, "64x64x128x10"),     at("graph", 1, "64x64x128x10"),
        at("one_gpu", 1, "64x48x40x4"),       record("one_gpu", 1, "ours", "Jacobi 64x48x400 on 2 GPUs"),
    };
    const std::string text = scaling_table(records, kLink);
    const auto row = [&](const std::string& begin) {
        const std::size_t at_row = text.find("| " + begin);
        return at_row == std::string::npos ? "no row" : text.substr(at_row, text.find('\n', at_row) - at_row);
    };
    EXPECT_EQ(row("128 x 128 x 128"), "| 128 x 128 x 128 | 200 µs | 160 µs | graph | 1.25× |  |") << text;
    EXPECT_EQ(row("256 x 256 x 256"), "| 256 x 256 x 256 | 400 µs | 250 µs | graph | 1.60× | 2.00× |");
    EXPECT_EQ(row("256 x 256 x 512"), "| 256 x 256 x 512 | 400 µs | 500 µs | graph | 80 % |");
    // Its cube was not measured; nor are these cubes.
    for (const char* other : {"64 x 64 x 128", "64 x 48 x 40", "64 x 48 x 400"})
        EXPECT_EQ(row(other), "no row");
    EXPECT_EQ(error_of([&] { scaling_table({record("one_gpu", 1)}, kLink); }),
              "no problem is a cube on one GPU and on several");
}

}  // namespace
}  // namespace course::tool
