#include "tables.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "measurements.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

constexpr const char* kHeader =
    R"({"format":"course records 1","day":"day01_vector_add","dtype":"float","spread_ms":0.0021,"bytes":3221225472,"flops":3e9,)"
    R"("percent_of_limit":null,"verified":true,"device":"NVIDIA H200","driver":"580.65.06","cuda":"13.0",)"
    R"("commit":"0123456789ab","date":"2026-11-21T10:30:00Z"})"
    "\n";

std::string line(const char* problem, const char* version, const char* role, double ms,
                 const char* l2 = "warm") {
    return fmt::format(R"({{"problem":"{}","version":"{}","role":"{}","median_ms":{},"l2":"{}"}})", problem,
                       version, role, ms, l2) +
           "\n";
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

class Tables : public testing::Test {
  protected:
    void SetUp() override {
        write_records("h200/day01_vector_add",
                      line("add, small", "float4", "ours", 0.00214) + line("add 2^28", "plain", "ours", 1.5) +
                          line("add 2^28", "float4", "ours", 0.75) + line("add 2^28", "thrust", "peer", 0.6));
    }
    void write_records(const std::string& name, const std::string& lines) {
        directory_.write("docs/measurements/" + name + ".jsonl", kHeader + lines);
    }
    TableSources sources() const {
        return {directory_.path(), directory_.path() / "docs/measurements", days_};
    }
    std::string fresh(const std::string& text, const std::string& file = "day01_vector_add/README.md") const {
        return with_fresh_tables(text, directory_.path() / file, sources());
    }
    std::string error_of(const std::string& text) const {
        try {
            fresh(text);
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "no error";
    }
    TemporaryDirectory directory_;
    std::vector<Day> days_ = {
        {.directory = "day01_vector_add",
         .number = 1,
         .topic = "vector_add",
         .title = "Vector addition",
         .question = "Which thread?",
         .chapters_4e = "2, 3",
         .chapters_5e = "3",
         .hours = 1.5,
         .beside = "add, small"},
        {.directory = "gemm_ladder", .number = {}, .topic = "gemm_ladder", .title = "The ladder"}};
};

constexpr const char* kFilled =
    "before\n"
    "<!-- measurements: h200/day01_vector_add, add 2^28 -->\n"
    "| version | time | speed-up | speed beside thrust |\n"
    "| --- | --: | --: | --: |\n"
    "| plain | 1.50 ms | 1.00× | 0.40× |\n"
    "| float4 | 750 µs | 2.00× | 0.80× |\n"
    "| thrust (peer) | 600 µs | 2.50× | 1.00× |\n"
    "\n"
    "*add 2^28 (float), warm cache, NVIDIA H200, 2026-11-21.* Other sizes, all columns: "
    "[docs/measured/day01_vector_add.md](../docs/measured/day01_vector_add.md).\n"
    "<!-- end of measurements -->\n"
    "after";

constexpr const char* kCounters =
    R"({"format":"course counters 1","day":"day01_vector_add","device":"NVIDIA H200","driver":"580","cuda":"13.0","ncu":"2025.3.1","commit":"0123456789ab","date":"2026-11-29T00:00:00Z"})"
    "\n";

std::string counters_line(const char* version, const char* kernel, double us, const char* limited_by) {
    return fmt::format(
               R"({{"problem":"add 2^28","version":"{}","kernel":"{}","launches":2,"us":{},"busy":{{"memory":92.4,"L2":94.1,"issue":11}},"stalls":{{"long_scoreboard":0.91,"wait":0.05}},"MHz":1980,"occupancy":80.2,"largest_occupancy":100,"occupancy_limit":"warps","sectors_per_load":16,"bank_conflicts":0,"local_loads":3,"local_stores":4,"registers":32,"limited_by":"{}"}})",
               version, kernel, us, limited_by) +
           "\n";
}

TEST_F(Tables, TheMarkerCanNameTheVersions) {
    const auto block = [](const std::string& versions) {
        return "<!-- measurements: h200/day01_vector_add, add 2^28; versions: " + versions +
               " -->\n<!-- end of measurements -->\n";
    };
    const std::string table = fresh(block("float4"));
    EXPECT_TRUE(has(table, "| float4 | 750 µs | 2.00× |")) << table;
    EXPECT_TRUE(has(table, "| thrust (peer) |")) << table;
    EXPECT_FALSE(has(table, "| plain |")) << table;
    EXPECT_TRUE(has(table, "One more version, other sizes")) << table;
    const std::string both = fresh(block("float4 plain"));
    EXPECT_LT(both.find("| plain |"), both.find("| float4 |")) << "in the records' order\n" << both;
    EXPECT_TRUE(has(error_of(block("float4 float8")), "names version 'float8'"));
    EXPECT_TRUE(has(error_of(block("a b c d e f g h i j")), "names 10 versions; expected at most 9"));
}

TEST_F(Tables, WhatLimitsAVersionIsTheClassOfItsLongestKernel) {
    EXPECT_FALSE(
        has(fresh("<!-- measurements: h200/day01_vector_add, add 2^28 -->\n<!-- end of measurements -->\n"),
            "limited by"));
    directory_.write("docs/measurements/h200/day01_vector_add.counters.jsonl",
                     kCounters + counters_line("float4", "prepare", 2, "launch") +
                         counters_line("float4", "add_float4", 740, "memory"));
    const std::string table =
        fresh("<!-- measurements: h200/day01_vector_add, add 2^28 -->\n<!-- end of measurements -->\n");
    EXPECT_TRUE(has(table, "| limited by |")) << table;
    EXPECT_TRUE(has(table, "| float4 | 750 µs |")) << table;
    EXPECT_TRUE(has(table, "| memory |")) << table;
    EXPECT_FALSE(has(table, "launch")) << table;
    EXPECT_FALSE(
        has(fresh("<!-- measurements: h200/day01_vector_add, add, small -->\n<!-- end of measurements -->\n"),
            "limited by"))
        << "the counters are of another problem";
    directory_.write("docs/measurements/h200/day01_vector_add.counters.jsonl",
                     kCounters + counters_line("float4", "add_float4", 370, "memory"));
    EXPECT_FALSE(
        has(fresh("<!-- measurements: h200/day01_vector_add, add 2^28 -->\n<!-- end of measurements -->\n"),
            "limited by"))
        << "the profiler saw less than half of 750 us";
}

TEST_F(Tables, TheCountersOfEachKernelAreOnTheDaysPage) {
    directory_.write("docs/measurements/h200/day01_vector_add.counters.jsonl",
                     kCounters + counters_line("float4", "add_float4", 740, "memory"));
    const std::string page = measured_pages(sources()).at("day01_vector_add.md");
    EXPECT_TRUE(has(page, "## What limits each kernel")) << page;
    EXPECT_TRUE(has(page, "Nsight Compute 2025.3.1 on NVIDIA H200")) << page;
    EXPECT_TRUE(
        has(page,
            "| float4 | add_float4 | 2 | 740 µs | memory | L2 94 %, memory 92 % | long_scoreboard 91 %, "
            "wait 5 % | 80 of 100 % (warps) | 16,  | 0 | 32 | 7 | 1980 MHz |"))
        << page;
}

TEST_F(Tables, CountersThatAreNoneAreNamed) {
    directory_.write("docs/measurements/h200/day01_vector_add.counters.jsonl",
                     std::string(kCounters) + "{}\n");
    EXPECT_TRUE(has(error_of("<!-- measurements: h200/day01_vector_add -->\n<!-- end of measurements -->\n"),
                    "day01_vector_add.counters.jsonl: line 2: "));
    directory_.write("docs/measurements/h200/day01_vector_add.counters.jsonl", "{}\n");
    EXPECT_TRUE(has(error_of("<!-- measurements: h200/day01_vector_add -->\n<!-- end of measurements -->\n"),
                    "expected a header"));
}

TEST_F(Tables, FillsAnEmptyBlockAndLeavesTheRestAlone) {
    EXPECT_EQ(fresh("before\n<!-- measurements: h200/day01_vector_add, add 2^28 -->\n<!-- end of "
                    "measurements -->\nafter"),
              kFilled);
}

TEST_F(Tables, AFilledBlockStaysAsItIs) {
    EXPECT_EQ(fresh(kFilled), kFilled);
}

TEST_F(Tables, ADriftedFigureIsPutRight) {
    std::string drifted = kFilled;
    drifted.replace(drifted.find("0.80"), 4, "0.90");
    EXPECT_EQ(fresh(drifted), kFilled);
}

TEST_F(Tables, WithoutAProblemTheMainOneIsShown) {
    EXPECT_TRUE(has(fresh("<!-- measurements: h200/day01_vector_add -->\n<!-- end of measurements -->\n"),
                    "*add 2^28 (float)"));
}

TEST_F(Tables, AProblemMayHaveACommaInItsName) {
    EXPECT_TRUE(
        has(fresh("<!-- measurements: h200/day01_vector_add, add, small -->\n<!-- end of measurements -->\n"),
            "2.14 µs"));
}

TEST_F(Tables, LinksStartFromTheFile) {
    EXPECT_TRUE(has(fresh("<!-- measurements: h200/day01_vector_add -->\n<!-- end of measurements -->\n",
                          "a/b/README.md"),
                    "(../../docs/measured/day01_vector_add.md)"));
    EXPECT_TRUE(has(
        fresh("<!-- measurements: h200/day01_vector_add -->\n<!-- end of measurements -->\n", "docs/book.md"),
        "(measured/day01_vector_add.md)"));
}

TEST_F(Tables, WhatIsNotMeasuredYetSaysSo) {
    for (const char* kind : {"measurements: h200/day99_new", "measurements: h200/day99_new, add 7",
                             "ladder: h200/day99_new, p", "sweep: h200/day99_new_sweep"}) {
        const std::string begin = fmt::format("<!-- {} -->\n", kind);
        EXPECT_EQ(fresh(begin + "<!-- end of measurements -->\n"),
                  begin + "Not measured yet.\n<!-- end of measurements -->\n");
    }
}

TEST_F(Tables, LaddersAndSweepsHaveBlocks) {
    write_records("h200/g", line("p", "00_cublas", "peer", 1) + line("p", "01_naive", "ours", 10));
    EXPECT_TRUE(has(fresh("<!-- ladder: h200/g, p -->\n<!-- end of measurements -->\n"),
                    "| 01_naive | 0.30 | 10.0 |"));
    write_records("h200/g_sweep", line("p", "00_cublas", "peer", 1) + line("p", "01_naive", "ours", 10));
    EXPECT_TRUE(has(fresh("<!-- sweep: h200/g_sweep -->\n<!-- end of measurements -->\n"),
                    "(../docs/measured/g.md)"));
    EXPECT_TRUE(has(error_of("<!-- ladder: h200/g -->\n"), "a ladder is on one problem"));
    EXPECT_TRUE(has(error_of("<!-- sweep: h200/g_sweep, p -->\n"), "a sweep is over all problems"));
}

TEST_F(Tables, AFigureStandsWithinASentence) {
    const std::string begin = "about <!-- figure: h200/day01_vector_add, add, small, float4, time -->";
    EXPECT_EQ(fresh(begin + "7 h<!-- /figure -->, and <!-- figure: h200/day01_vector_add, add 2^28, float4, "
                            "speed-up --><!-- /figure -->.\n"),
              begin +
                  "2.14 µs<!-- /figure -->, and <!-- figure: h200/day01_vector_add, add 2^28, float4, "
                  "speed-up -->2.00×<!-- /figure -->.\n");
    EXPECT_TRUE(has(fresh("<!-- figure: h200/day99, p, v, time -->1<!-- /figure -->"),
                    "(not measured yet)<!-- /figure -->"));
    EXPECT_TRUE(has(error_of("a\n<!-- figure: h200/day01_vector_add, float4, time -->1<!-- /figure -->"),
                    "line 2: the figure is 'h200/day01_vector_add, float4, time'; expected"));
    EXPECT_TRUE(has(error_of("<!-- figure: h200/day01_vector_add, add 2^28, float4, time -->1\n"),
                    "<!-- /figure --> on the same line"));
    EXPECT_TRUE(
        has(error_of("<!-- figure: h200/day01_vector_add, add 2^28, float5, time -->1<!-- /figure -->"),
            "no warm record of 'float5'"));
}

TEST_F(Tables, TextWithoutBlocksIsUntouchedToTheByte) {
    for (const std::string text :
         {"", "\n", "a", "a\r\n\n  b\n\n", "```\n<!-- measurements: x/y -->\n<!-- figure: a -->\n```\n"}) {
        EXPECT_EQ(fresh(text), text);
    }
}

TEST_F(Tables, MistakesAreNamedWithTheirLine) {
    const std::string open = "<!-- measurements: h200/day01_vector_add -->\n";
    EXPECT_TRUE(has(error_of("\n<!-- measurements: h200/day01_vector_add, add 1 -->\n"),
                    "line 2: no record has the problem 'add 1'"));
    EXPECT_TRUE(has(error_of(open), "line 1: the block is not closed by '<!-- end of measurements -->'"));
    EXPECT_TRUE(has(error_of("<!-- end of measurements -->\n"), "without a beginning"));
    EXPECT_TRUE(has(error_of("<!-- measurements: h200/day01_vector_add problem=add 2^28 -->\n"),
                    "a comma before the problem"));
    EXPECT_TRUE(has(error_of("<!-- measurements: -->\n"), "expected <machine>/<day>"));
    EXPECT_TRUE(has(error_of("<!-- measurements: day01_vector_add -->\n"), "expected <machine>/<day>"));
    EXPECT_TRUE(has(error_of("<!-- measurements: h200/day01_vector_add\n"), "same line"));
    EXPECT_TRUE(has(error_of(open + open), "line 2: the block opened in line 1"));
}

TEST_F(Tables, TheFrontPageHasATableForEachPartAndARowForEachDay) {
    directory_.write("day01_vector_add/exercises.md", "# Exercises\n## one\n### Hint 1\n## two\n");
    days_[0].part = "A first kernel";
    days_[1].part = "Tensor cores";
    days_[1].needs = {"day01"};
    const std::string open = "<!-- days: h200 -->\n<!-- end of measurements -->\n";
    EXPECT_EQ(fresh(open, "README.md"),
              "<!-- days: h200 -->\n"
              "### 1. A first kernel\n\n"
              "| day | question | needs | hours | exercises | best beside a library |\n"
              "| --- | --- | --- | --: | --: | --- |\n"
              "| [01 Vector addition](day01_vector_add/README.md) | Which thread? |  | 1.5 | 2 |  |\n"
              "\n### 2. Tensor cores\n\n"
              "| day | question | needs | hours | exercises | best beside a library |\n"
              "| --- | --- | --- | --: | --: | --- |\n"
              "| [The ladder](gemm_ladder/README.md) |  | [01](day01_vector_add/README.md) | 0 |  |  |\n"
              "<!-- end of measurements -->\n");
    days_[0].beyond_hours = 2;
    EXPECT_TRUE(has(fresh(open, "README.md"), "| Which thread? |  | 1.5 + 2 | 2 |"));
    days_[0].beside = "";
    EXPECT_TRUE(has(fresh(open, "README.md"), "| [0.80× thrust](docs/measured/day01_vector_add.md) |"));
    days_[0].beside_version = "plain";
    EXPECT_TRUE(has(fresh(open, "README.md"), "[0.40× thrust]"));
    days_[1].needs = {"day02"};
    EXPECT_TRUE(has(error_of(open), "a day needs 'day02', which is no day"));
}

TEST_F(Tables, APageHasEveryProblemOfEveryMachineAndTheSweep) {
    EXPECT_TRUE(measured_pages({directory_.path(), directory_.path() / "missing", {}}).empty());
    write_records("a100/day01_vector_add", line("add 2^28", "plain", "ours", 3));
    write_records("h200/g_sweep", line("q", "00_cublas", "peer", 1) + line("q", "01_naive", "ours", 10));
    directory_.write("docs/measurements/h200/inspection_counts.json", "{}");
    const auto pages = measured_pages(sources());
    ASSERT_EQ(pages.size(), 2U);
    const std::string& page = pages.at("day01_vector_add.md");
    EXPECT_TRUE(has(page, "# Measured: Vector addition\n"));
    EXPECT_TRUE(has(page, "./course bench day01_vector_add --record\n"));
    EXPECT_FALSE(has(page, "--sweep"));
    EXPECT_TRUE(has(page, "| add, small | float | float4 | 2.14 µs |")) << page;
    EXPECT_TRUE(has(page, "\n## add, small\n")) << page;
    EXPECT_TRUE(has(page, "| float4 | warm | 2.14 µs | 2.10 µs |")) << page;
    EXPECT_TRUE(has(page, "| plain | warm | 3.00 ms |")) << "of the other machine\n" << page;
    EXPECT_TRUE(has(pages.at("g.md"), "./course bench g --sweep --record\n")) << pages.at("g.md");
    EXPECT_TRUE(has(pages.at("g.md"), "| **lowest** |  |  | 0.100 |")) << pages.at("g.md");
    EXPECT_FALSE(has(pages.at("g.md"), "--plot")) << pages.at("g.md");
}

TEST_F(Tables, APageHasTheSizesOfThePlots) {
    write_records("h200/g_plot", line("r", "cublas", "peer", 3) + line("r", "fused", "ours", 2) +
                                     line("r", "unfused", "ours", 4));
    const auto pages = measured_pages(sources());
    ASSERT_TRUE(pages.contains("g.md")) << "and no page of its own";
    EXPECT_FALSE(pages.contains("g_plot.md"));
    const std::string& page = pages.at("g.md");
    EXPECT_TRUE(has(page, "./course bench g --plot --record\n")) << page;
    EXPECT_TRUE(has(page, "## Sizes of the plots\n")) << page;
    EXPECT_TRUE(has(page, "| r | float | fused | 2.00 ms |")) << page;
}

TEST_F(Tables, APageExplainsPlainLoopsWhereThereAreSome) {
    const std::string loop = "*plain_loop*: the same work in a plain C++ loop on the host's CPU";
    EXPECT_FALSE(has(measured_pages(sources()).at("day01_vector_add.md"), loop));
    write_records("a100/day01_vector_add",
                  line("add 2^28", "plain", "ours", 3) + line("add 2^28", "plain_loop_1_thread", "peer", 9));
    EXPECT_TRUE(has(measured_pages(sources()).at("day01_vector_add.md"), loop));
}

TEST_F(Tables, MarkdownIsFoundWhereAPersonWroteIt) {
    for (const char* file : {"README.md", "docs/book.md", "docs/measured/day01.md", "my/notes.md",
                             "build/cpu/a.md", ".git/a.md", "day01/fused/README.md", "day01/a.txt"})
        directory_.write(file, "");
    const std::vector<std::filesystem::path> expected = {directory_.path() / "README.md",
                                                         directory_.path() / "day01/fused/README.md",
                                                         directory_.path() / "docs/book.md"};
    EXPECT_EQ(find_markdown(directory_.path()), expected);
}

TEST_F(Tables, AStepsHeadIsHeldAgainstItsRecord) {
    write_records("h200/gemm_ladder",
                  line("sgemm 4096x4096x4096", "01_naive", "ours", 0.625));  // 4.80 TFLOP/s
    const auto wrong = [&](const char* head) { return wrong_measured_line(head, "01_naive", sources()); };
    EXPECT_EQ(wrong("// Why: about 9 TFLOP/s.\n// Measured:   about 5 TFLOP/s, a tenth of cuBLAS.\n"), "");
    EXPECT_EQ(wrong("// Measured:   4096^3: about 4.7 TFLOP/s.\n"), "");
    EXPECT_EQ(wrong("// Measured:   about 6 TFLOP/s.\n"),
              "says 'about 6 TFLOP/s'; docs/measurements/h200 has 4.80");
    EXPECT_EQ(wrong("// Measured:   about 4.6 TFLOP/s.\n"),
              "says 'about 4.6 TFLOP/s'; docs/measurements/h200 has 4.80");
    EXPECT_EQ(wrong("// Measured:   nothing, yet.\n"), "");
}

TEST(LoadRecords, RefusesWhatIsNotARecord) {
    const TemporaryDirectory directory;
    const auto load = [&](const std::string& lines) {
        return load_records(directory.write("r.jsonl", kHeader + lines));
    };
    EXPECT_EQ(load(line("p", "v", "ours", 1)).size(), 1U);
    EXPECT_THROW(load_records(directory.path() / "missing.jsonl"), std::runtime_error);
    EXPECT_THROW(load(""), std::runtime_error) << "no records";
    EXPECT_THROW(load("{\"problem\": \"p\"}\n"), std::runtime_error) << "a field is missing";
    EXPECT_THROW(load(line("p", "v", "ours", 0)), std::runtime_error) << "no time";
    EXPECT_THROW(load_records(directory.write("a.jsonl", "[]\n")), std::runtime_error) << "no header";
}

TEST(LoadRecords, ARecordOverridesTheHeader) {
    const TemporaryDirectory directory;
    const auto records = load_records(directory.write(
        "r.jsonl",
        std::string(kHeader) +
            R"({"problem":"p","version":"v","role":"peer","median_ms":1,"l2":"warm","device":"host CPU"})" +
            "\n" + line("p", "w", "ours", 1)));
    EXPECT_EQ(records.at(0).device, "host CPU");
    EXPECT_EQ(records.at(1).device, "NVIDIA H200");
}

}  // namespace
}  // namespace course::tool
