// Every version on any number of ranks, against one grid on the CPU: the same bits. Also Jacobi's
// method.
#include "multi_gpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "beyond/jacobi.hpp"
#include "common/check/data_pattern.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/shell_run.hpp"
#include "domain.hpp"
#include "timeline.hpp"

namespace {

using course::DataPattern;
using day50::Domain;
using day50::Extents;

// On the CPU, before the stand-in reads them. Streams run late, so that a missing event shows, also
// in exercises.
const int devices_are_set = setenv("CUDA_ON_CPU_DEVICES", "4", 0);
const int streams_are_set = setenv("CUDA_ON_CPU_STREAMS", "late", 0);

constexpr std::uint64_t kSeed = 50;

int device_count() {
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    return count;
}

// With fewer devices than ranks, ranks share them: on one GPU all but a few versions are tested.
std::vector<int> devices_for(std::size_t ranks) {
    std::vector<int> devices(ranks);
    for (std::size_t r = 0; r < ranks; ++r)
        devices[r] = static_cast<int>(r) % device_count();
    return devices;
}

class VersionTest : public course::DeviceTestWithParam<const day50::Version*> {
  protected:
    // Runs one launch for each number of steps, on the same domain.
    static void expect_same_bits(const Extents& extents, std::size_t ranks, const std::vector<unsigned>& runs,
                                 DataPattern pattern = DataPattern::kSignedUniform) {
        Domain domain(extents, devices_for(ranks));
        const std::string reason = GetParam()->cannot_run(day50::problem_of(domain, runs.front()));
        if (!reason.empty()) {
            not_run = reason;
            return;
        }
        std::uint64_t seed = kSeed;
        for (const unsigned steps : runs) {
            SCOPED_TRACE(std::to_string(extents.nx) + " x " + std::to_string(extents.ny) + " x " +
                         std::to_string(extents.nz) + " on " + std::to_string(ranks) + " ranks, " +
                         std::to_string(steps) + " steps");
            const std::vector<float> in = course::make_data<float>(extents.cells(), pattern, ++seed);
            domain.copy_from(in);
            domain.spoil();
            GetParam()->launcher(domain, steps, nullptr);
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
            const std::vector<float> got = domain.to_host();
            const std::vector<float> expected = day50::steps_on_cpu(extents, in, steps);
            for (std::size_t i = 0; i < got.size(); ++i) {
                ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(float)), 0)
                    << "cell (" << i % extents.nx << ", " << i / extents.nx % extents.ny << ", "
                    << i / extents.plane() << ") is " << got[i] << "; expected " << expected[i];
            }
            ran = true;
        }
    }
    void TearDown() override {
        if (IsSkipped()) return;
        ASSERT_EQ(cudaGetLastError(), cudaSuccess);
        if (!ran) GTEST_SKIP() << not_run;
    }
    void SetUp() override {
        ran = false;
        not_run = "";
        course::DeviceTestWithParam<const day50::Version*>::SetUp();
    }
    // The first rank counts that a version of one rank, or of several, can run.
    static inline bool ran = false;
    static inline std::string not_run;
};

INSTANTIATE_TEST_SUITE_P(DayFifty, VersionTest, course::each_of(day50::versions()), course::VersionName());

// Slabs of 4 planes, whose edges are the same planes; of 5 to 8, whose edges have planes in common
// or meet; of 9 and more, with a middle.
TEST_P(VersionTest, SlabsOfAnyThickness) {
    for (const std::size_t ranks : {1, 2, 3})
        for (const std::size_t planes : {4, 5, 7, 8, 9, 11})
            expect_same_bits({11, 10, ranks * planes}, ranks, {3});
}

TEST_P(VersionTest, UnevenSlabs) {
    expect_same_bits({13, 9, 19}, 2, {2});
    expect_same_bits({13, 9, 13}, 3, {5});
    expect_same_bits({9, 17, 23}, 4, {4});
}

// Narrower than the stencil, a tile, and one cell more.
TEST_P(VersionTest, PlanesOfAnyShape) {
    for (const std::size_t nx : {1, 8, 9, 32, 33})
        expect_same_bits({nx, 10, 18}, 2, {2});
    for (const std::size_t ny : {1, 8, 9, 17})
        expect_same_bits({40, ny, 18}, 2, {2});
    expect_same_bits({33, 9, 3}, 1, {1});
}

// Ghost planes, events, flags and graphs of one launch must not serve the next one. With one step
// `in` is read alone, and `spare` is not used.
TEST_P(VersionTest, LaunchesOneAfterTheOther) {
    expect_same_bits({12, 11, 27}, 2, {1, 2, 5, 2, 0, 9, 2});
    expect_same_bits({12, 11, 27}, 3, {4, 3});
}

// Other work holds back one stream of each rank. What waits for it by an event only, comes too
// early if that event is missing.
TEST_P(VersionTest, StreamsThatLag) {
    const Extents extents{12, 11, 27};
    Domain domain(extents, devices_for(2));
    not_run = GetParam()->cannot_run(day50::problem_of(domain, 1));
    if (!not_run.empty()) return;
    const std::vector<float> in =
        course::make_data<float>(extents.cells(), DataPattern::kSignedUniform, kSeed);
    for (cudaStream_t day50::Rank::*const lagging : {&day50::Rank::middle, &day50::Rank::edges}) {
        domain.copy_from(in);
        domain.spoil();
        std::vector<void*> memory;
        for (const day50::Rank& rank : domain.ranks()) {
            const day50::OnDevice on(rank.device);
            CUDA_CHECK(cudaMalloc(&memory.emplace_back(nullptr), sizeof(int)));
            for (int i = 0; i < 64; ++i)
                CUDA_CHECK(cudaMemsetAsync(memory.back(), 0, sizeof(int), rank.*lagging));
        }
        GetParam()->launcher(domain, 4, nullptr);
        CUDA_CHECK(cudaStreamSynchronize(nullptr));
        const std::vector<float> got = domain.to_host();
        const std::vector<float> expected = day50::steps_on_cpu(extents, in, 4);
        EXPECT_TRUE(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0)
            << "Cells are wrong when other work holds back the stream "
            << (lagging == &day50::Rank::middle ? "rank.middle" : "rank.edges");
        for (void* const held : memory)
            CUDA_CHECK(cudaFree(held));
    }
    ran = true;
}

TEST_P(VersionTest, DataPatterns) {
    for (const DataPattern pattern :
         {DataPattern::kAllEqual, DataPattern::kHugeNextToTiny, DataPattern::kSorted})
        expect_same_bits({12, 11, 19}, 2, {3}, pattern);
}

TEST_P(VersionTest, RandomShapes) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int i = 0; i < 6; ++i) {
        const std::size_t ranks = 1 + random.below(4);
        const Extents extents{1 + random.below(40), 1 + random.below(20), 4 * ranks + random.below(20)};
        expect_same_bits(extents, ranks, {static_cast<unsigned>(1 + random.below(6))});
    }
}

// `in` is written in the stream before the launch, and `out` is read in it afterwards.
TEST_P(VersionTest, RunsAfterAndBeforeOtherWorkOfTheStream) {
    const Extents extents{12, 11, 19};
    for (const std::size_t ranks : {1, 2}) {
        Domain domain(extents, devices_for(ranks));
        not_run = GetParam()->cannot_run(day50::problem_of(domain, 3));
        if (!not_run.empty()) continue;
        ran = true;
        Domain source(extents, devices_for(ranks));
        const std::vector<float> in =
            course::make_data<float>(extents.cells(), DataPattern::kSignedUniform, kSeed);
        source.copy_from(in);
        domain.copy_from(std::vector<float>(in.size()));
        domain.spoil();
        cudaStream_t stream = nullptr;
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        std::vector<float> got(in.size());
        for (std::size_t r = 0; r < ranks; ++r)
            CUDA_CHECK(cudaMemcpyAsync(
                domain.ranks()[r].in, source.ranks()[r].in,
                (domain.ranks()[r].slab.planes + 2 * day50::kRadius) * extents.plane() * sizeof(float),
                cudaMemcpyDefault, stream));
        GetParam()->launcher(domain, 3, stream);
        for (const day50::Rank& rank : domain.ranks())
            CUDA_CHECK(cudaMemcpyAsync(
                &got[rank.slab.first * extents.plane()], rank.out + day50::kRadius * extents.plane(),
                rank.slab.planes * extents.plane() * sizeof(float), cudaMemcpyDefault, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        CUDA_CHECK(cudaStreamDestroy(stream));
        EXPECT_EQ(got, day50::steps_on_cpu(extents, in, 3)) << ranks << " ranks";
    }
}

// As after 2^32 - 2 steps.
TEST_P(VersionTest, FlagsWrapRound) {
    Domain domain({12, 11, 19}, devices_for(2));
    not_run = GetParam()->cannot_run(day50::problem_of(domain, 7));
    if (!not_run.empty()) return;
    ran = true;
    const std::vector<float> in =
        course::make_data<float>(domain.extents().cells(), DataPattern::kSignedUniform, kSeed);
    domain.copy_from(in);
    domain.spoil();
    domain.steps_before = 0u - 2;
    const unsigned before = domain.steps_before;
    const day50::Progress flags{.own = before, .below = before, .above = before};
    for (const day50::Rank& rank : domain.ranks())
        CUDA_CHECK(cudaMemcpy(rank.flags, &flags, sizeof(flags), cudaMemcpyHostToDevice));
    GetParam()->launcher(domain, 7, nullptr);
    CUDA_CHECK(cudaStreamSynchronize(nullptr));
    EXPECT_EQ(domain.to_host(), day50::steps_on_cpu(domain.extents(), in, 7));
}

// Ranks of `persistent` on one GPU would wait for each other for ever.
TEST_P(VersionTest, RefusesWhatItCannotRun) {
    ran = true;
    Domain domain({9, 9, 9}, std::vector<int>{0, 0});
    domain.copy_from(std::vector<float>(729));
    for (const unsigned steps : {2, 0}) {
        const std::string reason = GetParam()->cannot_run(day50::problem_of(domain, steps));
        EXPECT_EQ(course::refusal([&] { GetParam()->launcher(domain, steps, nullptr); }),
                  reason.empty() ? "" : "multi_gpu: the version " + reason);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
}

TEST_P(VersionTest, LeavesTheCurrentDevice) {
    const int last = device_count() - 1;
    CUDA_CHECK(cudaSetDevice(last));
    {
        Domain domain({9, 9, 9}, devices_for(1));
        domain.copy_from(std::vector<float>(729));
        if (GetParam()->cannot_run(day50::problem_of(domain, 1)).empty()) {
            GetParam()->launcher(domain, 1, domain.ranks()[0].edges);
            ran = true;
        } else {
            not_run = GetParam()->cannot_run(day50::problem_of(domain, 1));
        }
    }
    int device = -1;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaSetDevice(0));
    EXPECT_EQ(device, last);
}

class Overlap : public course::DeviceTest {};

// A launch that is not needed costs time, but no result shows it. E: an edge, M: the middle, of
// each rank in the order of the launches. Only planes beside a neighbour are swept as edges, before
// the middle, and none of them twice: a slab of 4 planes is one edge.
TEST_F(Overlap, SweepsEdgesFirstAndOnlyBesideANeighbour) {
    struct Case {
        std::size_t ranks;
        std::size_t planes;  // of each rank
        std::vector<std::string> sweeps;
    };
    const std::vector<Case> cases = {{1, 12, {"M"}},
                                     {2, 12, {"EM", "EM"}},
                                     {3, 12, {"EM", "EEM", "EM"}},
                                     {3, 8, {"EM", "EE", "EM"}},
                                     {3, 5, {"EM", "EE", "EM"}},
                                     {3, 4, {"E", "E", "E"}}};
    for (const day50::Version& version : day50::versions()) {
        if (version.name != "peer_copy_overlapped" && version.name != "nccl_overlapped") continue;
        for (const Case& each : cases) {
            SCOPED_TRACE(version.name + ", " + std::to_string(each.ranks) + " slabs of " +
                         std::to_string(each.planes) + " planes");
            Domain domain({9, 9, each.ranks * each.planes}, devices_for(each.ranks));
            if (!version.cannot_run(day50::problem_of(domain, 1)).empty()) continue;
            domain.copy_from(std::vector<float>(domain.extents().cells()));
            day50::Timeline timeline(domain);
            version.launcher(domain, 1, nullptr);
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
            std::vector<std::string> sweeps(each.ranks);
            for (const day50::Timeline::Bar& bar : timeline.bars())
                if (bar.what == "sweep")
                    sweeps[static_cast<std::size_t>(bar.rank)] += bar.stream == "edges" ? "E" : "M";
            EXPECT_EQ(sweeps, each.sweeps);
        }
    }
}

// Jacobi's method: the same grid, the same number of steps and the same norm on any number of
// ranks.
class JacobiTest : public course::DeviceTestWithParam<const day50::JacobiVersion*> {
  protected:
    struct Outcome {
        day50::JacobiResult result;
        std::vector<float> grid;
    };

    // Runs one launch for each of `stops`, on the same domain. Nothing where the version cannot
    // run.
    static std::vector<Outcome> run(const day50::JacobiVersion& version, const Extents& extents,
                                    std::size_t ranks, const std::vector<day50::Stop>& stops) {
        std::vector<Outcome> outcomes;
        Domain domain(extents, devices_for(ranks));
        if (!version.cannot_run(day50::problem_of(domain, 1)).empty()) return outcomes;
        day50::RowSums sums(domain);
        for (const day50::Stop& stop : stops) {
            domain.copy_from(data(extents));
            domain.spoil();
            const day50::JacobiResult result = version.launcher(domain, sums, stop, nullptr);
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
            outcomes.push_back({result, domain.to_host()});
        }
        return outcomes;
    }

    static std::vector<float> data(const Extents& extents) {
        return course::make_data<float>(extents.cells(), DataPattern::kSignedUniform, kSeed);
    }

    static void expect_same_as_one_gpu(const Extents& extents, const std::vector<std::size_t>& rank_counts,
                                       const std::vector<day50::Stop>& stops) {
        const std::vector<Outcome> one = run(day50::jacobi_versions().front(), extents, 1, stops);
        for (const std::size_t ranks : rank_counts) {
            const std::vector<Outcome> got = run(*GetParam(), extents, ranks, stops);
            for (std::size_t i = 0; i < got.size(); ++i) {
                SCOPED_TRACE(std::to_string(extents.nx) + " columns, " + std::to_string(extents.nz) +
                             " rows, " + std::to_string(ranks) + " ranks, launch " + std::to_string(i));
                std::vector<float> expected = data(extents);
                const day50::JacobiResult on_cpu = day50::jacobi_on_cpu(extents, expected, stops[i]);
                EXPECT_EQ(got[i].result.steps, on_cpu.steps);
                EXPECT_NEAR(got[i].result.norm, on_cpu.norm, 1e-12 * on_cpu.norm);
                EXPECT_EQ(got[i].result.norm, one[i].result.norm);
                ASSERT_EQ(got[i].grid, expected);
            }
        }
    }
};

INSTANTIATE_TEST_SUITE_P(DayFifty, JacobiTest, course::each_of(day50::jacobi_versions()),
                         course::VersionName());

// Slabs of 4 to 7 rows. Each number of steps ends in another of the two grids.
TEST_P(JacobiTest, GivesTheSameBitsOnAnyNumberOfRanks) {
    expect_same_as_one_gpu({20, 1, 19}, {1, 2, 3}, {{7, 1, 0}, {4, 3, 0}, {1, 1, 0}, {9, 4, 0}});
}

// Narrower than a warp, a block, and one cell more; and a grid that is all edge.
TEST_P(JacobiTest, RowsOfAnyLength) {
    for (const std::size_t columns : {1, 2, 3, 128, 131})
        expect_same_as_one_gpu({columns, 1, 13}, {1, 3}, {{3, 2, 0}});
    for (const std::size_t rows : {1, 2, 3})
        expect_same_as_one_gpu({5, 1, rows}, {1}, {{3, 1, 0}});
}

// The tolerances are norms that one GPU has had, so the last bit of the norm decides.
TEST_P(JacobiTest, StopsAfterTheSameStep) {
    const Extents extents{12, 1, 14};
    std::vector<day50::Stop> stops;
    for (const unsigned steps : {5, 12, 30}) {
        const double norm =
            run(day50::jacobi_versions().front(), extents, 1, {{steps, 1, 0}}).front().result.norm;
        stops.push_back({100, 1, norm});
        stops.push_back({100, 1, std::nextafter(norm, 0.0)});
        stops.push_back({100, 4, norm});
    }
    const std::vector<Outcome> one = run(day50::jacobi_versions().front(), extents, 1, stops);
    const unsigned expected[] = {5, 6, 8, 12, 13, 12, 30, 31, 32};
    for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_EQ(one[i].result.steps, expected[i]);
    for (const std::size_t ranks : {1, 2, 3}) {
        const std::vector<Outcome> got = run(*GetParam(), extents, ranks, stops);
        for (std::size_t i = 0; i < got.size(); ++i) {
            EXPECT_EQ(got[i].result.steps, one[i].result.steps) << ranks << " ranks, launch " << i;
            EXPECT_EQ(got[i].result.norm, one[i].result.norm) << ranks << " ranks, launch " << i;
            EXPECT_EQ(got[i].grid, one[i].grid) << ranks << " ranks, launch " << i;
        }
    }
}

// Other work holds back one stream of each rank. What should wait for it comes too early if an
// event is missing.
TEST_P(JacobiTest, StreamsThatLag) {
    const Extents extents{12, 1, 14};
    Domain domain(extents, devices_for(2));
    if (!GetParam()->cannot_run(day50::problem_of(domain, 1)).empty()) GTEST_SKIP() << "one rank only";
    day50::RowSums sums(domain);
    std::vector<float> expected = data(extents);
    const day50::Stop stop{6, 5, 0};
    const day50::JacobiResult on_cpu = day50::jacobi_on_cpu(extents, expected, stop);
    for (cudaStream_t day50::Rank::*const lagging : {&day50::Rank::middle, &day50::Rank::edges}) {
        for (const std::size_t late_rank : {0, 1}) {
            domain.copy_from(data(extents));
            domain.spoil();
            const day50::Rank& rank = domain.ranks()[late_rank];
            for (int i = 0; i < 64; ++i)
                CUDA_CHECK(cudaMemsetAsync(rank.flags, 0, sizeof(unsigned), rank.*lagging));
            const day50::JacobiResult result = GetParam()->launcher(domain, sums, stop, nullptr);
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
            EXPECT_EQ(domain.to_host(), expected) << late_rank;
            EXPECT_NEAR(result.norm, on_cpu.norm, 1e-12 * on_cpu.norm) << late_rank;
        }
    }
}

TEST_P(JacobiTest, RefusesWhatItCannotRun) {
    Domain domain({9, 1, 9}, devices_for(1));
    Domain deep({9, 2, 9}, devices_for(1));
    Domain other({9, 1, 8}, devices_for(1));
    day50::RowSums sums(domain);
    const auto refusal = [&](Domain& of, const day50::Stop& stop) {
        return course::refusal([&] { GetParam()->launcher(of, sums, stop, nullptr); });
    };
    EXPECT_EQ(refusal(deep, {1, 1, 0}), "jacobi: extents are 9 x 2 x 9; expected a grid_2d()");
    EXPECT_EQ(refusal(other, {1, 1, 0}), "jacobi: sums are for 9 rows on 1 ranks; expected 8 on 1");
    EXPECT_EQ(refusal(domain, {0, 1, 0}), "jacobi: stop has most_steps 0 and every 1; expected at least 1");
    EXPECT_EQ(refusal(domain, {1, 0, 0}), "jacobi: stop has most_steps 1 and every 0; expected at least 1");
    Domain shared({9, 1, 9}, std::vector<int>{0, 0});
    const std::string reason = GetParam()->cannot_run(day50::problem_of(shared, 1));
    EXPECT_EQ(refusal(shared, {1, 1, 0}), reason.empty()
                                              ? "jacobi: sums are for 9 rows on 1 ranks; expected 9 on 2"
                                              : "jacobi: the version " + reason);
}

TEST(Cut, DiffersByOnePlaneAtMost) {
    for (const std::size_t nz : {4, 16, 17, 19, 101}) {
        for (std::size_t ranks = 1; ranks <= nz / 4; ++ranks) {
            std::size_t first = 0;
            for (const day50::Slab& slab : day50::cut(nz, ranks)) {
                EXPECT_EQ(slab.first, first);
                EXPECT_GE(slab.planes, nz / ranks);
                EXPECT_LE(slab.planes, nz / ranks + 1);
                first += slab.planes;
            }
            EXPECT_EQ(first, nz);
        }
    }
}

TEST(Cut, RefusesSlabsThinnerThanTheRadius) {
    EXPECT_EQ(course::refusal([] { day50::cut(15, 4); }),
              "cut: nz is 15 and ranks is 4; expected at least 4 planes for each rank, which is nz >= 16");
    EXPECT_EQ(course::refusal([] { day50::cut(15, 0); }), "cut: ranks is 0; expected at least 1");
}

// Processes: mpi.cu and nvshmem.cu, started as a user does. Open MPI wants to be told that it may
// run as root, and more processes than cores.
class Mpi : public course::DeviceTest {
  protected:
    void SetUp() override {
        course::DeviceTest::SetUp();
#ifndef COURSE_MPIRUN
        GTEST_SKIP() << "MPI was not found: scripts/install_dependencies.sh --cluster installs Open MPI";
#endif
    }
    static course::ShellOutcome run(int processes, const std::string& command) {
#ifdef COURSE_MPIRUN
        return course::run_in_shell(
            "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
            "timeout 60 " COURSE_MPIRUN " -np " +
            std::to_string(processes) + " " + command);
#else
        return {processes, command};
#endif
    }
    static std::string program() {
#ifdef COURSE_MPIRUN
        return COURSE_MPI_PROGRAM;
#else
        return "";
#endif
    }
    static void expect_same_bits(int processes, const std::string& command,
                                 const std::vector<std::string>& versions) {
        const course::ShellOutcome outcome = run(processes, command);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
        for (const std::string& version : versions) {
            const std::size_t line = outcome.text.find(version);
            ASSERT_NE(line, std::string::npos) << outcome.text;
            EXPECT_NE(outcome.text.substr(line, outcome.text.find('\n', line) - line).find(", ok"),
                      std::string::npos)
                << outcome.text;
        }
    }
};

TEST_F(Mpi, GivesTheSameBits) {
    for (const auto& [processes, size] : {std::pair(1, "9x10x11x2"), {2, "33x9x17x3"}, {3, "12x11x13x6"}})
        expect_same_bits(processes, program() + " --size " + size, {"mpi_staged ", "mpi_overlapped "});
}

TEST_F(Mpi, NvshmemGivesTheSameBits) {
#ifdef COURSE_NVSHMEM_PROGRAM
    if (device_count() < 2) GTEST_SKIP() << "needs two GPUs: a process of NVSHMEM has one of its own";
    for (const char* size : {"9x10x8x1", "33x9x17x5", "64x40x100x7"})
        expect_same_bits(2, std::string(COURSE_NVSHMEM_PROGRAM " --size ") + size, {"nvshmem_put "});
#else
    GTEST_SKIP() << "was built without NVSHMEM, which needs a GPU";
#endif
}

TEST_F(Mpi, AFailureEndsAllProcesses) {
    const course::ShellOutcome outcome = run(2, program() + " --size 9x9x7x1");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("cut: nz is 7 and ranks is 2; expected at least 4 planes"), std::string::npos)
        << outcome.text;
}

// Process 1 is killed while process 0 waits for its planes, or soon will.
TEST_F(Mpi, AProcessThatDiesEndsTheRun) {
    const course::ShellOutcome outcome =
        run(2, "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 1; kill -9 $$) & fi; exec " + program() +
                   " --size 32x32x32x1000000'");
    EXPECT_NE(outcome.exit_code, 0) << outcome.text;
    EXPECT_NE(outcome.exit_code, 124) << "still ran after 60 s";
    EXPECT_NE(outcome.text.find("signal 9"), std::string::npos) << outcome.text;
}

class Refusals : public course::DeviceTest {};

TEST_F(Refusals, NameTheArgument) {
    const std::vector<int> none{device_count()};
    EXPECT_EQ(course::refusal([&] {
                  Domain({9, 9, 9}, none);
              }),
              "Domain: devices[0] is " + std::to_string(device_count()) + "; expected 0 to " +
                  std::to_string(device_count() - 1));
    EXPECT_EQ(course::refusal([&] {
                  Domain({9, 0, 9}, devices_for(1));
              }),
              "Domain: extents are 9 x 0 x 9; expected 1 to 2^30 x 1 to 65535 x 1 to 65535");
    // More than 2^64 bytes: the product must not wrap round to a few gigabytes.
    EXPECT_THROW(Domain({(std::size_t{1} << 30) - 16373, 65530, 65535}, devices_for(1)), std::length_error);
    Domain domain({9, 9, 9}, devices_for(1));
    EXPECT_EQ(course::refusal([&] { domain.copy_from(std::vector<float>(728)); }),
              "Domain::copy_from: grid has 728 cells; expected 729");
}

}  // namespace
