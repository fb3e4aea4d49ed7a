#include "tables.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "measurements.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

std::string record(const char* problem, const char* variant, const char* role, const char* verified = "true",
                   const char* median = "0.738") {
    return fmt::format(
        R"({{"day": "day01_vector_add", "problem": "{}", "variant": "{}", "role": "{}", "dtype": "float",
            "median_ms": {}, "spread_ms": 0.0021, "repeats": 20, "l2": "flushed", "bytes": 3221225472, "flops": 0,
            "percent_of_limit": 99.43, "verified": {}, "max_error": 0, "device": "NVIDIA H200", "driver": "580.65.06",
            "cuda": "13.0", "commit": "0123456789ab", "date": "2026-11-21T10:30:00Z"}})",
        problem, variant, role, median, verified);
}

class Tables : public testing::Test {
  protected:
    void SetUp() override {
        directory_.write("h200/day01_vector_add.json",
                         fmt::format("[{},{},{}]", record("add 2^28", "float4", "ours"),
                                     record("add 2^28", "cudaMemcpy", "limit", "null"),
                                     record("add 2^20", "float4", "ours", "true", "0.00214")));
    }
    std::string fresh(const std::string& text) const { return with_fresh_tables(text, directory_.path()); }
    std::string error_of(const std::string& text) const {
        try {
            fresh(text);
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "no error";
    }
    TemporaryDirectory directory_;
};

constexpr const char* kFilled =
    "before\n"
    "<!-- measurements: h200/day01_vector_add problem=add 2^28 -->\n"
    "| problem | version | L2 | median | ± | GB/s | % of limit |\n"
    "| --- | --- | --- | --: | --: | --: | --: |\n"
    "| add 2^28 | float4 | flushed | 738 µs | 2.10 µs | 4365 | 99.4 |\n"
    "| add 2^28 | cudaMemcpy (limit) | flushed | 738 µs | 2.10 µs | 4365 | 99.4 |\n"
    "\n"
    "Measured on NVIDIA H200, driver 580.65.06, CUDA 13.0, commit 0123456789ab, 2026-11-21.\n"
    "<!-- end measurements -->\n"
    "after";

TEST_F(Tables, FillsAnEmptyBlockAndLeavesTheRestAlone) {
    EXPECT_EQ(fresh("before\n<!-- measurements: h200/day01_vector_add problem=add 2^28 -->\n"
                    "<!-- end measurements -->\nafter"),
              kFilled);
}

TEST_F(Tables, FiguresBesideTimesAreTheLastColumns) {
    std::string with = record("p", "a", "ours");
    with.insert(with.size() - 1, R"(, "figures": [["relative error", 0.012345], ["outliers", 5]])");
    directory_.write("h200/d.json", fmt::format("[{},{}]", with, record("p", "b", "ours")));
    const std::string table = fresh("<!-- measurements: h200/d -->\n<!-- end measurements -->\n");
    EXPECT_NE(table.find("| % of limit | relative error | outliers |\n"), std::string::npos) << table;
    EXPECT_NE(table.find("| 99.4 | 0.0123 | 5 |\n"), std::string::npos) << table;
    EXPECT_NE(table.find("| 99.4 |  |  |\n"), std::string::npos) << table;
}

// A program writes null for a figure that is not finite; the file stays readable.
TEST_F(Tables, AFigureThatIsNotFiniteIsADash) {
    std::string with = record("p", "a", "ours");
    with.insert(with.size() - 1, R"(, "figures": [["relative error", null], ["outliers", 4096]])");
    directory_.write("h200/d.json", fmt::format("[{},{}]", with, record("p", "b", "ours")));
    const std::string table = fresh("<!-- measurements: h200/d -->\n<!-- end measurements -->\n");
    EXPECT_NE(table.find("| 99.4 | - | 4096 |\n"), std::string::npos) << table;
    EXPECT_NE(table.find("| 99.4 |  |  |\n"), std::string::npos) << table;
}

TEST_F(Tables, AFilledBlockStaysAsItIs) {
    EXPECT_EQ(fresh(kFilled), kFilled);
}

TEST_F(Tables, ADriftedFigureIsPutRight) {
    std::string drifted = kFilled;
    drifted.replace(drifted.find("4365"), 4, "4400");
    EXPECT_EQ(fresh(drifted), kFilled);
}

TEST_F(Tables, WithoutAProblemAllAreShown) {
    const std::string text =
        fresh("<!-- measurements: h200/day01_vector_add -->\n<!-- end measurements -->\n");
    EXPECT_NE(text.find("| add 2^28 |"), std::string::npos);
    EXPECT_NE(text.find("| add 2^20 | float4 | flushed | 2.14 µs |"), std::string::npos);
}

TEST_F(Tables, TextWithoutBlocksIsUntouchedToTheByte) {
    for (const std::string text :
         {"", "\n", "a", "a\r\n\n  b\n\n", "```\n<!-- measurements: x/y -->\n```\n"}) {
        EXPECT_EQ(fresh(text), text);
    }
}

TEST_F(Tables, MistakesAreNamedWithTheirLine) {
    EXPECT_NE(error_of("\n<!-- measurements: h200/day99 -->\n<!-- end measurements -->")
                  .find("line 2: cannot read"),
              std::string::npos);
    EXPECT_NE(error_of("<!-- measurements: h200/day01_vector_add problem=add 1 -->\n").find("no record"),
              std::string::npos);
    EXPECT_NE(
        error_of("<!-- measurements: h200/day01_vector_add -->\n").find("line 1: the block is not closed"),
        std::string::npos);
    EXPECT_NE(error_of("<!-- end measurements -->\n").find("without a beginning"), std::string::npos);
    EXPECT_NE(error_of("<!-- measurements: h200/day01_vector_add size=3 -->\n").find("unknown option"),
              std::string::npos);
    EXPECT_NE(error_of("<!-- measurements: -->\n").find("expected <machine>"), std::string::npos);
    EXPECT_NE(error_of("<!-- measurements: h200/day01_vector_add\n").find("same line"), std::string::npos);
    const std::string open = "<!-- measurements: h200/day01_vector_add -->\n";
    EXPECT_NE(error_of(open + open).find("line 2: the block opened in line 1"), std::string::npos);
}

TEST_F(Tables, AWrongResultHasNoPlaceInATable) {
    directory_.write("h200/wrong.json", fmt::format("[{}]", record("add", "broken", "ours", "false")));
    EXPECT_NE(error_of("<!-- measurements: h200/wrong -->\n").find("not verified"), std::string::npos);
}

std::string warm(std::string record) {
    return record.replace(record.find("flushed"), 7, "warm");
}

TEST_F(Tables, ComparesTheBestOfOursWithTheBestPeer) {
    directory_.write("h200/day20.json",
                     fmt::format("[{},{},{},{},{},{}]", warm(record("rows", "slow", "ours", "true", "0.9")),
                                 warm(record("rows", "fast", "ours", "true", "0.5")),
                                 warm(record("rows", "bad_peer", "peer", "true", "0.8")),
                                 warm(record("rows", "good_peer", "peer", "true", "0.6")),
                                 warm(record("rows", "copy", "limit", "null", "0.1")),
                                 record("rows", "flushed_counts_not", "ours", "true", "0.2")));
    // Neither the host nor other work is a peer.
    std::string on_host = warm(record("alone", "openmp", "peer", "true", "9"));
    on_host.replace(on_host.find("NVIDIA H200"), 11, "host CPU");
    std::string in_half = warm(record("alone", "tensor_cores", "peer", "true", "0.01"));
    in_half.replace(in_half.find("\"float\""), 7, "\"half\"");
    directory_.write("h200/day21.json", fmt::format("[{},{},{}]", on_host, in_half,
                                                    warm(record("alone", "only", "ours", "true", "0.25"))));
    const std::string heading =
        "| problem | ours | median | GB/s | % of limit | peer | peer / ours |\n"
        "| --- | --- | --: | --: | --: | --- | --: |\n";
    const std::string rows = "| rows | fast | 500 µs | 6442 | 99.4 | good_peer 600 µs | 1.20 |\n";
    const std::string of_one_file = fresh("<!-- comparison: h200/day20 -->\n<!-- end measurements -->\n");
    EXPECT_NE(of_one_file.find(heading + rows + "\nMeasured on NVIDIA H200"), std::string::npos)
        << of_one_file;
    const std::string of_all = fresh("<!-- comparison: h200 -->\n<!-- end measurements -->\n");
    EXPECT_NE(of_all.find(rows + "| alone | only | 250 µs | 12885 | 99.4 |  |  |\n"), std::string::npos)
        << of_all;
}

TEST_F(Tables, ComparingAMachineLeavesOutItsSweepsAndTheCalibrationOfTheInspection) {
    const std::string comparison = "<!-- comparison: h200 -->\n<!-- end measurements -->\n";
    directory_.write("h200/a.json", fmt::format("[{}]", warm(record("a problem", "v", "ours"))));
    const std::string before = fresh(comparison);
    directory_.write("h200/a_sweep.json", fmt::format("[{}]", warm(record("swept", "v", "ours"))));
    directory_.write("h200/inspection_counts.json", R"({"cases": []})");
    EXPECT_EQ(fresh(comparison), before);
    EXPECT_NE(fresh("<!-- comparison: h200/a_sweep -->\n<!-- end measurements -->\n").find("swept"),
              std::string::npos)
        << "but not where it is asked for by name";
}

// 2 x 10^9 operations; the machine's limit is 5 TFLOP/s. `ms` is written as it stands.
std::string step(const char* problem, const char* variant, const char* role, const char* l2, const char* ms,
                 const char* kernel = "") {
    return fmt::format(
        R"({{"day": "gemm_ladder", "problem": "{}", "variant": "{}", "role": "{}", "dtype": "float",
            "median_ms": {}, "spread_ms": 0.01, "repeats": 20, "l2": "{}", "bytes": 3000, "flops": 2000000000,
            "percent_of_limit": 50, "limit_flops_per_second": 5000000000000, "verified": true, "max_error": 0,
            "device": "NVIDIA H200", "driver": "580.65.06", "cuda": "13.0", "commit": "0123456789ab",
            "date": "2026-11-21T10:30:00Z"{}}})",
        problem, variant, role, ms, l2, kernel);
}

constexpr const char* kKernel =
    R"(, "kernel": {"threads": 256, "registers": 128, "local_bytes": 0, "shared_bytes": 33792,
                    "blocks_per_multiprocessor": 2, "occupancy": 0.25, "limited_by": "registers"})";

TEST_F(Tables, ALadderShowsItsStepsBesideThePeer) {
    directory_.write("h200/gemm.json",
                     fmt::format("[{},{},{},{},{},{}]", step("sgemm 10", "00_cublas", "peer", "warm", "0.8"),
                                 step("sgemm 10", "00_cublas", "peer", "flushed", "0.9"),
                                 step("sgemm 10", "01_naive", "ours", "warm", "4", kKernel),
                                 step("sgemm 10", "01_naive", "ours", "flushed", "4.5", kKernel),
                                 step("sgemm 10", "02_new", "ours", "warm", "0.5"),
                                 step("sgemm 20", "01_naive", "ours", "warm", "77", kKernel)));
    const std::string text =
        fresh("<!-- ladder: h200/gemm problem=sgemm 10 -->\n<!-- end measurements -->\n");
    EXPECT_EQ(
        text,
        "<!-- ladder: h200/gemm problem=sgemm 10 -->\n"
        "| version | median | TFLOP/s | % of 00_cublas | L2 flushed | % of 00_cublas | % of FMA limit | "
        "registers | shared memory | occupancy | limited by |\n"
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |\n"
        "| 00_cublas | 800 µs | 2.50 | 100.0 | 900 µs | 100.0 | 50.0 |  |  |  |  |\n"
        "| 01_naive | 4.00 ms | 0.50 | 20.0 | 4.50 ms | 20.0 | 10.0 | 128 | 33 KB | 25 % | registers |\n"
        "| 02_new | 500 µs | 4.00 | 160.0 |  |  | 80.0 |  |  |  |  |\n"
        "\nMeasured on NVIDIA H200, driver 580.65.06, CUDA 13.0, commit 0123456789ab, 2026-11-21.\n"
        "<!-- end measurements -->\n");
    EXPECT_EQ(fresh(text), text) << "a filled block stays as it is";
}

TEST_F(Tables, MistakesInLaddersAreNamed) {
    const std::string ours = step("p", "01_naive", "ours", "warm", "4");
    const std::string peer = step("p", "00_cublas", "peer", "warm", "1");
    const auto error_with = [&](const std::string& records) {
        directory_.write("h200/g.json", "[" + records + "]");
        return error_of("<!-- ladder: h200/g problem=p -->\n");
    };
    EXPECT_NE(error_of("<!-- ladder: h200/g -->\n").find("expected problem=..."), std::string::npos);
    EXPECT_NE(error_of("<!-- ladder: -->\n").find("after 'ladder:'"), std::string::npos);
    EXPECT_NE(error_with(ours).find("no record has the role 'peer'"), std::string::npos);
    EXPECT_NE(error_with(ours + "," + peer + "," + step("p", "torch", "peer", "warm", "1"))
                  .find("not '00_cublas' and 'torch'"),
              std::string::npos);
    EXPECT_NE(
        error_with(peer + "," + step("p", "02_new", "ours", "flushed", "4")).find("'02_new' has no warm"),
        std::string::npos);
    EXPECT_NE(error_with(step("q", "00_cublas", "peer", "warm", "1")).find("no record has the problem 'p'"),
              std::string::npos);
    std::string wrong = ours;
    wrong.replace(wrong.find("true"), 4, "false");
    EXPECT_NE(error_with(peer + "," + wrong).find("not verified"), std::string::npos);
}

// Ratios of 2, 0.5 and 8 warm: a geometric mean of 2; of 1, 0.25 and 4 flushed: 1.
std::string sweep_records() {
    std::string records;
    const auto add = [&](const char* problem, const char* ours, const char* peer, const char* ours_flushed,
                         const char* peer_flushed) {
        for (const std::string& record : {step(problem, "00_cublas", "peer", "warm", peer),
                                          step(problem, "00_cublas", "peer", "flushed", peer_flushed),
                                          step(problem, "14_auto", "ours", "warm", ours),
                                          step(problem, "14_auto", "ours", "flushed", ours_flushed)})
            records += (records.empty() ? "" : ",") + record;
    };
    add("a", "1", "2", "3", "3");
    add("b", "4", "2", "4", "1");
    add("c", "1", "8", "1", "4");
    return records;
}

TEST_F(Tables, ASweepEndsWithTheMeanAndTheLowest) {
    directory_.write("h200/gemm_sweep.json", "[" + sweep_records() + "]");
    const std::string text = fresh("<!-- sweep: h200/gemm_sweep -->\n<!-- end measurements -->\n");
    EXPECT_EQ(text,
              "<!-- sweep: h200/gemm_sweep -->\n"
              "| problem | 14_auto | 00_cublas | 00_cublas / 14_auto | with L2 flushed |\n"
              "| --- | --: | --: | --: | --: |\n"
              "| a | 1.00 ms | 2.00 ms | 2.00 | 1.00 |\n"
              "| b | 4.00 ms | 2.00 ms | 0.50 | 0.25 |\n"
              "| c | 1.00 ms | 8.00 ms | 8.00 | 4.00 |\n"
              "| **geometric mean of 3** |  |  | 2.000 | 1.000 |\n"
              "| **lowest** |  |  | 0.500 | 0.250 |\n"
              "\nMeasured on NVIDIA H200, driver 580.65.06, CUDA 13.0, commit 0123456789ab, 2026-11-21.\n"
              "<!-- end measurements -->\n");
    EXPECT_EQ(fresh(text), text) << "a filled block stays as it is";
}

TEST_F(Tables, MistakesInSweepsAreNamed) {
    const auto error_with = [&](const std::string& more) {
        directory_.write("h200/s.json", "[" + sweep_records() + "," + more + "]");
        return error_of("<!-- sweep: h200/s -->\n");
    };
    EXPECT_NE(error_of("<!-- sweep: h200/s problem=a -->\n").find("expected no problem="), std::string::npos);
    EXPECT_NE(error_with(step("a", "05_tiles", "ours", "warm", "1")).find("not '14_auto' and '05_tiles'"),
              std::string::npos);
    EXPECT_NE(
        error_with(step("d", "14_auto", "ours", "warm", "1")).find("'d' has no warm record of '00_cublas'"),
        std::string::npos);
    EXPECT_NE(
        error_with(step("d", "00_cublas", "peer", "warm", "1")).find("'d' has no warm record of '14_auto'"),
        std::string::npos);
    EXPECT_EQ(error_with(step("d", "00_cublas", "peer", "warm", "1") + "," +
                         step("d", "14_auto", "ours", "warm", "1"))
                  .find("no warm"),
              std::string::npos);
    EXPECT_EQ(fresh("<!-- sweep: h200/s -->\n<!-- end measurements -->\n").find("| 1.000 |\n"),
              std::string::npos)
        << "no mean of flushed ratios where one is missing";
}

TEST_F(Tables, MistakesInComparisonsAreNamed) {
    EXPECT_NE(error_of("<!-- comparison: -->\n").find("expected <machine>"), std::string::npos);
    EXPECT_NE(error_of("<!-- comparison: h100 -->\n").find("cannot read"), std::string::npos);
    EXPECT_NE(error_of("<!-- comparison: h200/day01_vector_add -->\n").find("no record of ours"),
              std::string::npos);
    directory_.write("h200/wrong.json", fmt::format("[{}]", warm(record("add", "broken", "ours", "false"))));
    EXPECT_NE(error_of("<!-- comparison: h200/wrong -->\n").find("not verified"), std::string::npos);
}

TEST(LoadRecords, RefusesWhatIsNotARecord) {
    const TemporaryDirectory directory;
    EXPECT_THROW(load_records(directory.path() / "missing.json"), std::runtime_error);
    EXPECT_THROW(load_records(directory.write("empty.json", "[]")), std::runtime_error);
    EXPECT_THROW(load_records(directory.write("field.json", R"([{"problem": "p"}])")), std::runtime_error);
    EXPECT_THROW(load_records(directory.write("zero.json",
                                              fmt::format("[{}]", record("p", "v", "ours", "true", "0")))),
                 std::runtime_error);
}

TEST(FormatTime, KeepsThreeDigits) {
    EXPECT_EQ(format_time(0.0012345), "1.23 µs");
    EXPECT_EQ(format_time(0.738), "738 µs");
    EXPECT_EQ(format_time(12.345), "12.3 ms");
    EXPECT_EQ(format_time(2500), "2.50 s");
}

TEST(FindReadmes, LeavesOutBuildsAndHiddenDirectories) {
    const TemporaryDirectory directory;
    for (const char* name : {"README.md", "day01/README.md", "build/cpu/README.md", "build-x/README.md",
                             ".git/README.md", "day01/build/README.md", "docs/notes.md"}) {
        directory.write(name, "");
    }
    const std::vector<std::filesystem::path> expected = {directory.path() / "README.md",
                                                         directory.path() / "day01/README.md",
                                                         directory.path() / "day01/build/README.md"};
    EXPECT_EQ(find_readmes(directory.path()), expected);
}

}  // namespace
}  // namespace course::tool
