// What the lesson says of its versions' accesses, counted; and races.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "beyond/alignments.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/inspection_test.hpp"
#include "wavefronts.hpp"

namespace {

using course::DeviceBuffer;
using day13::Symbol;

class Lesson : public testing::Test {
  protected:
    static constexpr std::size_t kM = 200;
    static constexpr std::size_t kN = 190;
    static constexpr std::size_t kVertices = 100;

    std::function<void()> edit(const day13::EditVersion& version) {
        return [this, launch = version.launcher] {
            launch(a_.span(), b_.span(), distances_.span(), workspace_, nullptr);
        };
    }

    std::function<void()> local(const day13::LocalVersion& version) {
        return [this, launch = version.launcher] {
            launch(a_.span(), b_.span(), {}, score_.span(), workspace_, nullptr);
        };
    }

    std::function<void()> paths(const day13::PathVersion& version) {
        return [this, launch = version.launcher] { launch(distance_.span(), kVertices, nullptr); };
    }

    std::function<void()> trace(const day13::TraceVersion& version) {
        return [this, launch = version.launcher] {
            launch(a_.span(), b_.span(), script_.span(), alignment_.span(), trace_workspace_, nullptr);
        };
    }

    std::function<void()> local_trace(const day13::LocalTraceVersion& version) {
        return [this, launch = version.launcher] {
            launch(a_.span(), b_.span(), {}, script_.span(), alignment_.span(), trace_workspace_, nullptr);
        };
    }

    std::function<void()> affine(const day13::AffineVersion& version) {
        return [this, launch = version.launcher] {
            launch(a_.span(), b_.span(), {}, score_.span(), affine_workspace_, nullptr);
        };
    }

    // b, cut into sequences.
    std::function<void()> search(const day13::SearchVersion& version) {
        return [this, launch = version.launcher] {
            launch(a_.span(), database_, {}, distances_.span().subspan(0, database_.count()), nullptr);
        };
    }

    std::function<void()> frechet() {
        return
            [this] { frechet_distances(curve_.span(), curve_.span(), leashes_.span(), workspace_, nullptr); };
    }

    // Wavefronts of shared memory beyond those that are needed, as a share of these.
    static double excess_of_shared(const std::function<void()>& launch) {
        std::uint64_t all = 0, ideal = 0;
        for (const course::KernelInspection& kernel : course::inspect(launch).kernels) {
            for (const course::AccessLine& line : kernel.lines) {
                if (line.space != course::Space::kShared) continue;
                all += line.transactions;
                ideal += line.ideal;
            }
        }
        EXPECT_GT(ideal, 0U);
        return static_cast<double>(all - ideal) / static_cast<double>(ideal);
    }

    void SetUp() override {
        if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    }

  private:
    static DeviceBuffer<Symbol> symbols(std::size_t n, std::uint64_t seed) {
        course::Random random(seed);
        std::vector<Symbol> all(n);
        for (Symbol& symbol : all)
            symbol = static_cast<Symbol>(random.below(4));
        return DeviceBuffer<Symbol>(std::span<const Symbol>(all));
    }

    static DeviceBuffer<float> weights() {
        course::Random random(13);
        std::vector<float> all(kVertices * kVertices);
        for (float& weight : all)
            weight = static_cast<float>(random.integer(1, 100));
        return DeviceBuffer<float>(std::span<const float>(all));
    }

    DeviceBuffer<Symbol> a_ = symbols(kM, 1);
    DeviceBuffer<Symbol> b_ = symbols(kN, 2);
    DeviceBuffer<int> distances_{kN + 1};
    DeviceBuffer<int> score_{1};
    day13::Workspace workspace_{kM, kN};
    DeviceBuffer<float> distance_ = weights();
    DeviceBuffer<day13::Step> script_{kM + kN};
    DeviceBuffer<day13::Alignment> alignment_{1};
    day13::TraceWorkspace trace_workspace_{kM, kN};
    day13::AffineWorkspace affine_workspace_{kM, kN};
    day13::Database database_{b_.to_host(), std::vector<std::int64_t>{0, 7, 60, 100, 101, 130, 133, 190}};
    DeviceBuffer<float2> curve_{std::span<const float2>(std::vector<float2>(kN))};
    DeviceBuffer<float> leashes_{kN + 1};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day13::EditVersion& version : day13::edit_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(edit(version));
    }
    for (const day13::LocalVersion& version : day13::local_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(local(version));
    }
    for (const day13::PathVersion& version : day13::path_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(paths(version));
    }
    for (const day13::TraceVersion& version : day13::trace_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(trace(version));
    }
    for (const day13::LocalTraceVersion& version : day13::local_trace_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(local_trace(version));
    }
    for (const day13::AffineVersion& version : day13::affine_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(affine(version));
    }
    for (const day13::SearchVersion& version : day13::search_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(search(version));
    }
    EXPECT_NO_RACES(frechet());
}

// Directions are skewed as the wave is: a warp's store of them is one sector.
TEST_F(Lesson, DirectionsAreStoredInWholeSectors) {
    int seen = 0;
    for (const course::KernelInspection& kernel :
         course::inspect(trace(course::find_version(day13::trace_versions(), "trace_thread"))).kernels) {
        for (const course::AccessLine& line : kernel.lines) {
            const bool is_of_directions = line.space == course::Space::kGlobal && line.bytes == 1 &&
                                          line.operation == course::Operation::kStore;
            if (!is_of_directions || kernel.name.find("trace_strips") == std::string::npos) continue;
            ++seen;
            EXPECT_EQ(line.worst.transactions, 1U) << course::described(line);
        }
    }
    EXPECT_EQ(seen, 1);
}

// The last column of a tile takes 2 wavefronts for a warp. With a pitch of 65, each step took 32.
TEST_F(Lesson, TilesHaveHardlyAnyBankConflicts) {
    for (const char* version : {"tiles", "register_rows"})
        EXPECT_LT(excess_of_shared(edit(course::find_version(day13::edit_versions(), version))), 0.05)
            << version;
    for (const char* version : {"blocked", "register_tiles"})
        EXPECT_EQ(excess_of_shared(paths(course::find_version(day13::path_versions(), version))), 0)
            << version;
}

}  // namespace
