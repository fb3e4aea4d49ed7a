// An inspection as the terminal shows it, from made-up figures.
#include "inspect_view.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspect_example.hpp"
#include "inspect_text.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

class View : public testing::Test {
  protected:
    View() { directory_.write("day/kernel.cu", kExampleSource); }

    std::string text(const InspectionFile& file) {
        return inspection_text(file, kExampleLimits, sources_, false);
    }

    TemporaryDirectory directory_;
    Sources sources_{directory_.path()};
};

TEST_F(View, ATableForEachKernel) {
    EXPECT_EQ(text(example_inspection()), R"(
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
      32 adjacent elements of 4 bytes: 4 sectors, as few as possible.
  read                  131 KB, unique 65.5 KB (2 times)
  written               65.5 KB, unique 65.5 KB
  barriers per block    1
  active lanes          32.0 of 32 at an access, on average
  shared memory         4.1 KB per block
  occupancy             100 %, 2 blocks on a multiprocessor; limited by threads, registers not counted
  registers             at most 64 for a thread of such a block; values beyond them spill

=== wide, matrix 128x128, not run
  too wide

no findings
)");
}

TEST_F(View, WithoutAnyKernelThereIsNoVerdict) {
    InspectionFile file = example_inspection();
    file.results[0].kernels.clear();
    file.results[0].failure = "The program launched no kernel.";
    const std::string shown = text(file);
    EXPECT_NE(shown.find("\n  The program launched no kernel.\n"), std::string::npos) << shown;
    EXPECT_TRUE(shown.ends_with("\nnothing was inspected\n")) << shown;
}

TEST_F(View, AFindingWithBothPlacesAndThreads) {
    InspectionFile file = example_inspection();
    file.results[0].kernels[0].findings = {example_race()};
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
    KernelInspection sampled = example_kernel();
    sampled.blocks = 4096;
    sampled.inspected_blocks = 256;
    sampled.launches = 2;
    EXPECT_EQ(extent(sampled), "4096 blocks of 1024 threads in 2 launches, sampled 256 of 4096 blocks");
    InspectionFile file = example_inspection();
    file.results[0].kernels = {sampled};
    EXPECT_NE(text(file).find("  arithmetic intensity  0.125 operations for each byte moved\n"),
              std::string::npos)
        << "the bytes of all blocks follow from those of the sampled ones, the unique ones do not";
    EXPECT_NE(text(file).find("tile      ~160  32.00 wavefronts"), std::string::npos) << text(file);
    EXPECT_NE(text(file).find("read                  about 2.1 MB\n"), std::string::npos) << text(file);
    EXPECT_NE(text(file).find("barriers per block    0.0625\n"), std::string::npos);
}

TEST_F(View, ActiveLanesAreTheMeanOverAllRequests) {
    const auto half = [](std::int64_t lane) { return lane < 16 ? 4 * lane : -1; };
    InspectionFile file = example_inspection();
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
    InspectionFile file = example_inspection();
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
    InspectionFile file = example_inspection();
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

TEST_F(View, CopiesThatTheHostWaitsFor) {
    InspectionFile file = example_inspection();
    EXPECT_EQ(text(file).find("copies to the host"), std::string::npos);
    file.results[0].awaited_copies = 16;
    file.results[0].awaited_copy_bytes = 64;
    EXPECT_NE(text(file).find("  copies to the host    16, of 64 B in all, and the host waits for each\n"),
              std::string::npos)
        << text(file);
    file.results[0].flops = 0;
    EXPECT_NE(text(file).find("copies to the host"), std::string::npos) << "with or without an intensity";
}

TEST_F(View, RegistersAreScarceInLargeBlocks) {
    InspectionFile file = example_inspection();
    unsigned& threads = file.results[0].kernels[0].threads_per_block;
    threads = 768;  // 65536 / 768 = 85.3
    EXPECT_NE(text(file).find("  registers             at most 80 for a thread"), std::string::npos);
    threads = 512;
    EXPECT_EQ(text(file).find("  registers  "), std::string::npos);
}

TEST_F(View, ATailIsMoreThanAQuarterOfTheTime) {
    InspectionFile file = example_inspection();
    KernelInspection& kernel = file.results[0].kernels[0];
    const auto has_tail = [&](std::uint64_t blocks, unsigned launches = 1) {
        kernel.blocks = kernel.inspected_blocks = blocks;
        kernel.launches = launches;
        return text(file).find("  tail  ") != std::string::npos;
    };
    EXPECT_FALSE(has_tail(132));
    EXPECT_TRUE(has_tail(133));
    EXPECT_NE(text(file).find("133 blocks on the 132 multiprocessors of an H200: some get 2"),
              std::string::npos);
    EXPECT_TRUE(has_tail(197));
    EXPECT_FALSE(has_tail(198)) << "198 of 264";
    EXPECT_TRUE(has_tail(265)) << "265 of 396";
    EXPECT_FALSE(has_tail(133, 133)) << "a block in each launch";
    EXPECT_TRUE(has_tail(266, 2));
}

// transpose() with 16 blocks of 32 warps, whose line 4 loads and stores `out` in a loop.
TEST_F(View, SumsInMemory) {
    InspectionFile file = example_inspection();
    KernelInspection& kernel = file.results[0].kernels[0];
    AccessLine load = at(4, global_load(4, 4, stride(4)));
    load.requests = 16 * 32 * 5;
    AccessLine store = load;
    store.operation = Operation::kStore;
    const auto told = [&] { return text(file).find("  stored again  ") != std::string::npos; };
    kernel.lines = {load, store};
    kernel.global_written_bytes = 5 * kernel.unique_written_bytes;
    EXPECT_NE(text(file).find("  stored again          tile, 5 times in a thread, at kernel.cu:4;"),
              std::string::npos)
        << text(file);
    kernel.global_written_bytes = kernel.unique_written_bytes;
    EXPECT_FALSE(told()) << "five elements, each once";
    kernel.global_written_bytes = 5 * kernel.unique_written_bytes;
    kernel.lines = {store};
    EXPECT_FALSE(told()) << "no load";
    kernel.lines = {at(5, load), store};
    EXPECT_FALSE(told()) << "loaded in another line";
    load.worst.array = "other";
    kernel.lines = {load, store};
    EXPECT_FALSE(told()) << "another array";
    load.worst.array = store.worst.array;
    load.requests = store.requests = 16 * 32;
    kernel.lines = {load, store};
    EXPECT_FALSE(told()) << "once in a thread";
}

TEST_F(View, WhatWasNotSeenIsSaid) {
    InspectionFile file = example_inspection();
    EXPECT_EQ(text(file).find("not counted  "), std::string::npos);
    EXPECT_EQ(text(file).find("not watched"), std::string::npos);
    file.results[0].kernels[0].dropped_accesses = 77;
    file.results[0].kernels[0].all_memory_watched = false;
    EXPECT_NE(text(file).find("not counted           77 accesses of threads"), std::string::npos);
    EXPECT_NE(text(file).find("not watched           races between blocks beyond"), std::string::npos);
}

TEST_F(View, WhatIsUnknownIsNotMadeUp) {
    InspectionFile file = example_inspection();
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
    line.worst.array = "matrices, allocation of 131072 bytes";
    EXPECT_EQ(array_of(line), "matrices, 131 KB");
    line.worst.array = "allocation of what?";
    EXPECT_EQ(array_of(line), "allocation of what?");
}

TEST_F(View, GradesAreTimesTheIdeal) {
    AccessLine line = shared_load(4, 1, stride(4));
    EXPECT_EQ(grade(line), Grade::kIdeal);
    line.transactions = 13;
    EXPECT_EQ(grade(line), Grade::kFair);
    line.transactions = 20;
    EXPECT_EQ(grade(line), Grade::kPoor);
    line.transactions = 5;  // broadcasts may take less than their ideal
    EXPECT_EQ(grade(line), Grade::kIdeal);
}

}  // namespace
}  // namespace course::tool
