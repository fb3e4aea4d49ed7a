// What the lesson states about its accesses, counted, and races.
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "beyond/reconstruction.hpp"
#include "beyond/reconstruction_verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "mri.hpp"

namespace {

using course::DeviceBuffer;
using day37::Grid;

class Lesson : public testing::Test {
  protected:
    Lesson() {
        const day37::HostSamples k = day37::random_samples(300, grid_, 37);
        const day37::HostPositions r = day37::grid_positions(grid_);
        for (const auto* values : {&k.kx, &k.ky, &k.kz, &k.phi_re, &k.phi_im, &k.d_re, &k.d_im})
            k_.emplace_back(std::span(*values));
        for (const auto* values : {&r.x, &r.y, &r.z})
            r_.emplace_back(std::span(*values));
    }

    std::function<void()> sums(const std::string& version) {
        return [this, &launch = course::find_version(day37::versions(), version).launcher] {
            launch({k_[0].span(), k_[1].span(), k_[2].span(), k_[3].span(), k_[4].span(), k_[5].span(),
                    k_[6].span()},
                   {r_[0].span(), r_[1].span(), r_[2].span(), grid_}, {re_.span(), im_.span()}, workspace_,
                   nullptr);
        };
    }

    // Requests to a memory by the loads and stores of all kernels.
    static std::uint64_t requests(const course::Inspection& seen, course::Space space) {
        std::uint64_t all = 0;
        for (const course::KernelInspection& kernel : seen.kernels) {
            for (const course::AccessLine& line : kernel.lines)
                all += line.space == space ? line.requests : 0;
        }
        return all;
    }

  private:
    Grid grid_{16, 4, 2};
    std::vector<DeviceBuffer<float>> k_, r_;
    DeviceBuffer<float> re_{grid_.count()}, im_{grid_.count()};
    day37::Workspace workspace_{{grid_, 300}};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day37::Version& version : day37::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(sums(version.name));
    }
}

// 4 warps x 300 samples; the few thousand others load positions and store sums.
TEST_F(Lesson, RegistersLeaveFiveLoadsPerSample) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const std::uint64_t registers = requests(course::inspect(sums("registers")), course::Space::kGlobal);
    const std::uint64_t gather = requests(course::inspect(sums("gather")), course::Space::kGlobal);
    EXPECT_GE(registers, 4U * 300 * 5);
    EXPECT_LT(registers, 4U * 300 * 5 + 200);
    EXPECT_GE(gather, 4U * 300 * 14);
}

TEST_F(Lesson, ATileIsReadWithoutBankConflicts) {
    for (const char* version :
         {"shared_tile", "coarsened", "rotation", "mirrored", "mirrored_runs", "separable"}) {
        SCOPED_TRACE(version);
        EXPECT_CONFLICT_FREE(sums(version));
    }
}

// Lines of 32 to 1024: eight, four and two of them in a block; an even and an odd number of stages.
TEST(Normal, TransformsHaveNoBankConflicts) {
    for (const Grid& grid :
         {Grid{9, 17, 1}, Grid{9, 33, 1}, Grid{9, 1, 65}, Grid{9, 1, 130}, Grid{9, 1, 300}}) {
        SCOPED_TRACE(grid.ny * grid.nz);
        const day37::SamplesOnDevice samples(day37::random_samples(2, grid, 37));
        day37::NormalOperator normal(grid, samples.k(), nullptr);
        const std::vector<float2> image(grid.count(), make_float2(1, 0));
        DeviceBuffer<float2> in{std::span(image)};
        DeviceBuffer<float2> out(grid.count());
        EXPECT_CONFLICT_FREE([&] { normal.apply(in.span(), out.span(), nullptr); });
        EXPECT_NO_RACES([&] { normal.apply(in.span(), out.span(), nullptr); });
    }
}

}  // namespace
