// An inspection as the terminal and the page show it, from made-up figures.
#include "inspect_view.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "inspect_example.hpp"
#include "inspect_page.hpp"
#include "inspect_picture.hpp"
#include "inspect_text.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

constexpr const char* kSource =
    "// Idea: a column.\n"
    "template <int TILE>\n"
    "__global__ void transpose(const float* in, float* out) {\n"
    "    tile[y][x] = in[i];\n"
    "    out[i] = tile[x][y] < limit && \"&\";\n"
    "}\n";

const MultiprocessorLimits kLimits = {.warps = 64,
                                      .blocks = 32,
                                      .registers = 65536,
                                      .shared_bytes = 228 * 1024,
                                      .shared_bytes_of_block = 227 * 1024,
                                      .reserved_shared_bytes = 1024};

AccessLine at(int number, AccessLine line) {
    line.source.line = number;
    return line;
}

KernelInspection kernel() {
    return {.name = "day::transpose [with int TILE = 32; bool VECTOR = true]",
            .launches = 1,
            .blocks = 16,
            .inspected_blocks = 16,
            .threads_per_block = 1024,
            .static_shared = 4096,
            .barriers = 16,
            .global_read_bytes = 131072,
            .global_written_bytes = 65536,
            .unique_read_bytes = 65536,
            .unique_written_bytes = 65536,
            .lines = {at(4, global_load(4, 4, stride(4))), at(5, shared_load(4, 1, stride(0))),
                      at(5, shared_load(4, 32, stride(128)))},
            .findings = {}};
}

Finding race() {
    return {.kind = "race",
            .source = {"day/kernel.cu", 4},
            .message = "tile[0][1] is written while it may be read",
            .why = "No barrier between the two.",
            .block = {1, 0, 0},
            .thread = {2, 0, 0},
            .other = SourceLine{"day/kernel.cu", 5},
            .other_block = {1, 0, 0},
            .other_thread = {3, 4, 0},
            .count = 12};
}

InspectionFile inspection() {
    return {.day = "day",
            .commit = "abc",
            .results = {{.problem = "matrix 128x128",
                         .variant = "plain",
                         .verified = true,
                         .flops = 393216,
                         .kernels = {kernel()}},
                        {.problem = "matrix 128x128", .variant = "wide", .cannot_run = "too wide"}}};
}

class View : public testing::Test {
  protected:
    View() { directory_.write("day/kernel.cu", kSource); }

    std::string text(const InspectionFile& file) { return inspection_text(file, kLimits, sources_, false); }
    std::string page(const InspectionFile& file) { return inspection_page(file, kLimits, sources_); }

    TemporaryDirectory directory_;
    Sources sources_{directory_.path()};
};

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

TEST_F(View, ATableForEachKernel) {
    EXPECT_EQ(text(inspection()), R"(
=== plain, matrix 128x128, verified
  arithmetic intensity  2 operations for each byte moved, 3 if a cache kept all
transpose<32, true>: 16 blocks of 1024 threads
                                  requests       per request  ideal  lanes  bytes used
  kernel.cu:5: out[i] = tile[x][y] < limit && "&";
    shared load of 4 bytes, tile        10  32.00 wavefronts   1.00   32.0           -
      32 lanes hit bank 0: a column of a 32-wide tile. Pad the row by one word.
    shared load of 4 bytes, tile        10   1.00 wavefronts   1.00   32.0           -
      All 32 lanes read the same word: a broadcast, 1 wavefront.
  kernel.cu:4: tile[y][x] = in[i];
    global load of 4 bytes, tile        10   4.00 sectors      4.00   32.0     100.0 %
      32 neighbouring elements of 4 bytes: 4 sectors, as few as possible.
  read                  131 KB, unique 65.5 KB (2 times)
  written               65.5 KB, unique 65.5 KB
  barriers per block    1
  active lanes          32.0 of 32 at an access, on average
  shared memory         4.1 KB per block
  occupancy             100 %, 2 blocks on a multiprocessor; limited by threads, registers not counted

=== wide, matrix 128x128, not run
  too wide

no findings
)");
}

TEST_F(View, AFindingWithBothPlacesAndThreads) {
    InspectionFile file = inspection();
    file.results[0].kernels[0].findings = {race()};
    const std::string shown = text(file);
    EXPECT_NE(shown.find("  FINDING race (12 times): kernel.cu:4\n"
                         "    tile[0][1] is written while it may be read\n"
                         "    kernel.cu:4: thread (2, 0, 0) of block (1, 0, 0)\n"
                         "    kernel.cu:5: thread (3, 4, 0) of block (1, 0, 0)\n"
                         "    No barrier between the two.\n"),
              std::string::npos)
        << shown;
    EXPECT_TRUE(shown.ends_with("\n1 finding\n"));
    EXPECT_EQ(count_findings(file), 1U);
}

TEST_F(View, SamplingAndSeveralLaunchesAreSaid) {
    KernelInspection sampled = kernel();
    sampled.blocks = 4096;
    sampled.inspected_blocks = 256;
    sampled.launches = 2;
    EXPECT_EQ(extent(sampled), "4096 blocks of 1024 threads in 2 launches, sampled 256 of 4096 blocks");
    InspectionFile file = inspection();
    file.results[0].kernels = {sampled};
    EXPECT_NE(text(file).find("  arithmetic intensity  0.125 operations for each byte moved\n"),
              std::string::npos)
        << "the bytes of all blocks follow from those of the sampled ones, the unique ones do not";
    EXPECT_NE(text(file).find("barriers per block    0.0625\n"), std::string::npos);
}

TEST_F(View, ActiveLanesAreTheMeanOverAllRequests) {
    const auto half = [](std::int64_t lane) { return lane < 16 ? 4 * lane : -1; };
    InspectionFile file = inspection();
    std::vector<AccessLine>& lines = file.results[0].kernels[0].lines;
    lines = {at(4, global_load(4, 4, stride(4))),  // 10 requests of 32 lanes
             at(5, access(Space::kShared, Operation::kLoad, 4, 1, half, 30))};
    EXPECT_NE(text(file).find("  active lanes          20.0 of 32 at an access, on average\n"),
              std::string::npos)
        << text(file);
    lines.clear();
    EXPECT_EQ(text(file).find("active lanes"), std::string::npos) << "no access, no mean";
}

TEST_F(View, LongListsAreCutWhereTheyAreCheap) {
    InspectionFile file = inspection();
    std::vector<AccessLine>& lines = file.results[0].kernels[0].lines;
    lines.clear();
    for (int number = 1; number <= 14; ++number)
        lines.push_back(at(number, access(Space::kGlobal, Operation::kLoad, 4, 4, stride(4), 100U + number)));
    const std::string shown = text(file);
    EXPECT_NE(shown.find("... and 4 cheaper lines"), std::string::npos);
    EXPECT_NE(shown.find("kernel.cu:14:"), std::string::npos);
    EXPECT_EQ(shown.find("kernel.cu:4:"), std::string::npos);
}

TEST_F(View, TheLineWithTheMostToGainComesFirst) {
    InspectionFile file = inspection();
    const auto order = [&](const char* first, const char* second) {
        const std::string shown = text(file);
        return shown.find(first) < shown.find(second);
    };
    std::vector<AccessLine>& lines = file.results[0].kernels[0].lines;
    lines = {at(3, access(Space::kGlobal, Operation::kLoad, 4, 4, stride(4), 1000)),
             at(4, access(Space::kShared, Operation::kLoad, 4, 2, stride(8), 100))};
    for (AccessLine& line : lines)
        line.ideal = line.space == Space::kGlobal ? line.transactions : line.transactions / 2;
    EXPECT_TRUE(order("kernel.cu:4:", "kernel.cu:3:"))
        << "100 wavefronts too many against 4000 sectors that must be";
    lines[1].ideal = lines[1].transactions;
    EXPECT_TRUE(order("kernel.cu:3:", "kernel.cu:4:")) << "nothing to gain: 128000 bytes against 25600";
    lines[1].ideal -= 100;
    lines[0].ideal -= 390;
    EXPECT_TRUE(order("kernel.cu:4:", "kernel.cu:3:")) << "a wavefront is 128 bytes, a sector 32";
    lines[0].ideal -= 20;
    EXPECT_TRUE(order("kernel.cu:3:", "kernel.cu:4:"));
}

TEST_F(View, WhatWasNotSeenIsSaid) {
    InspectionFile file = inspection();
    EXPECT_EQ(text(file).find("not counted  "), std::string::npos);
    EXPECT_EQ(text(file).find("not watched"), std::string::npos);
    file.results[0].kernels[0].dropped_accesses = 77;
    file.results[0].kernels[0].all_memory_watched = false;
    EXPECT_NE(text(file).find("not counted           77 accesses of threads"), std::string::npos);
    EXPECT_NE(text(file).find("not watched           races between blocks beyond"), std::string::npos);
}

TEST_F(View, WhatIsUnknownIsNotMadeUp) {
    InspectionFile file = inspection();
    file.results[0].flops = 0;
    KernelInspection& strange = file.results[0].kernels[0];
    strange.name = "operator() [odd";
    strange.inspected_blocks = strange.blocks = strange.threads_per_block = 0;
    strange.lines = {at(0, global_load(4, 4, stride(4))), at(99, global_load(4, 4, stride(4)))};
    strange.lines[0].source.file = "";
    strange.lines[1].requests = 0;
    const std::string shown = text(file);
    EXPECT_EQ(shown.find("arithmetic intensity"), std::string::npos);
    EXPECT_EQ(shown.find("occupancy"), std::string::npos);
    EXPECT_EQ(shown.find("nan"), std::string::npos);
    EXPECT_EQ(shown.find("inf"), std::string::npos);
    EXPECT_NE(shown.find("an unknown place"), std::string::npos);
    EXPECT_NE(shown.find("operator() [odd"), std::string::npos);
    EXPECT_NE(page(file).find("class=\"number\">99<"), std::string::npos) << "a line beyond the file's end";
}

TEST_F(View, NamesOfKernels) {
    EXPECT_EQ(short_name("plain"), "plain");
    EXPECT_EQ(short_name("k [with int N = 4]"), "k<4>");
    EXPECT_EQ(short_name("k [with T = float; int N = 4]"), "k<float, 4>");
    EXPECT_EQ(short_name("day05::{anonymous}::k [with T = day05::Pair]"), "k<day05::Pair>");
    EXPECT_EQ(short_name("k<std::plus<int>>"), "k<std::plus<int>>");
}

TEST_F(View, NamesOfArrays) {
    AccessLine line = global_load(4, 4, stride(4));
    EXPECT_EQ(array_of(line), "tile");
    line.worst.array = "allocation of 131072 bytes";
    EXPECT_EQ(array_of(line), "131 KB");
    line.worst.array = "allocation of what?";
    EXPECT_EQ(array_of(line), "allocation of what?");
}

TEST_F(View, GradesAreTimesTheIdeal) {
    AccessLine line = shared_load(4, 1, stride(4));
    EXPECT_EQ(grade(line), Grade::kGood);
    line.transactions = 13;
    EXPECT_EQ(grade(line), Grade::kFair);
    line.transactions = 20;
    EXPECT_EQ(grade(line), Grade::kBad);
    line.transactions = 5;  // broadcasts may take less than their ideal
    EXPECT_EQ(grade(line), Grade::kGood);
}

TEST_F(View, ThePageShowsTheSourceFromTheKernelsBeginning) {
    const std::string html = page(inspection());
    for (const char* line : {"// Idea: a column.", "template &lt;int TILE&gt;", "    tile[y][x] = in[i];",
                             "    out[i] = tile[x][y] &lt; limit &amp;&amp; &quot;&amp;&quot;;"})
        EXPECT_EQ(count(html, fmt::format("<code>{}</code>", line)), 1U) << line;
    EXPECT_NE(html.find("transpose&lt;32, true&gt;"), std::string::npos);
    EXPECT_EQ(count(html, "<details open>"), 1U) << "the costliest line is open";
    EXPECT_NE(html.find("<details open><summary class=\"row\"><span class=\"number\">5<"), std::string::npos);
    EXPECT_EQ(count(html, "<svg"), 3U) << "a picture for each access";
    EXPECT_NE(html.find("32 lanes hit bank 0"), std::string::npos);
}

TEST_F(View, ThePageNeedsNothingFromElsewhere) {
    InspectionFile file = inspection();
    file.results[0].kernels[0].findings = {race()};
    const std::string html = page(file);
    for (const char* outside : {"http:", "https:", "src=", "@import", "url(", "<link"})
        EXPECT_EQ(html.find(outside), std::string::npos) << outside;
    EXPECT_EQ(count(html, "<script>"), 1U);
    for (const char* element :
         {"html",    "head",    "body", "style", "script", "table", "tr",   "td",    "th", "div",
          "details", "summary", "span", "code",  "svg",    "g",     "text", "title", "p",  "h2"}) {
        const std::regex opening(std::string("<") + element + "[ >]");
        const auto opened = std::distance(std::sregex_iterator(html.begin(), html.end(), opening), {});
        EXPECT_EQ(static_cast<std::size_t>(opened), count(html, std::string("</") + element + ">"))
            << element;
    }
}

TEST_F(View, ThePageMarksTheLinesOfFindings) {
    InspectionFile file = inspection();
    file.results[0].kernels[0].lines.clear();
    file.results[0].kernels[0].findings = {race()};
    const std::string html = page(file);
    EXPECT_EQ(count(html, "<b>finding</b>"), 2U);
    EXPECT_NE(html.find("thread (3, 4, 0) of block (1, 0, 0)"), std::string::npos);
}

TEST(Escaped, LeavesNoMarkup) {
    EXPECT_EQ(escaped("<script>alert(\"&\")</script>"),
              "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;");
}

TEST(Picture, ShowsAColumnAsOneBankAndARowAsAll) {
    const std::string column = picture(shared_load(4, 32, stride(128)));
    EXPECT_EQ(count(column, "class=\"once\""), 1U);
    EXPECT_EQ(count(column, "class=\"again\""), 31U);
    EXPECT_EQ(count(column, "class=\"idle\""), 31U * 32U);
    EXPECT_NE(column.find("bank 0, word at byte 3968: lane 31<"), std::string::npos);
    const std::string row = picture(shared_load(4, 1, stride(4)));
    EXPECT_EQ(count(row, "class=\"once\""), 32U);
    EXPECT_EQ(count(row, "class=\"idle\""), 0U);
}

TEST(Picture, ShowsWhatOfASectorIsWanted) {
    const std::string shifted = picture(global_load(4, 5, stride(4, 4)));
    EXPECT_EQ(count(shifted, "class=\"moved\""), 5U);
    EXPECT_EQ(count(shifted, "class=\"once\""), 128U) << "byte by byte";
    EXPECT_EQ(count(shifted, "class=\"idle\""), 3U) << "the rest of the second line of 128 bytes";
    EXPECT_NE(shifted.find("byte 128: lane 31<"), std::string::npos);
}

TEST(Picture, RunsOfNumbers) {
    EXPECT_EQ(runs({}), "");
    EXPECT_EQ(runs({7}), "7");
    EXPECT_EQ(runs({0, 1, 2, 5, 6, 31}), "0-2, 5, 6, 31");
}

}  // namespace
}  // namespace course::tool
