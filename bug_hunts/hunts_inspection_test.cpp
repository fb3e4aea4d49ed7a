// What a result does not show: races, sectors and wavefronts, seen while the kernels run.
#include <gtest/gtest.h>

#include "common/bench/version.hpp"
#include "common/test/inspection_test.hpp"
#include "trial.hpp"

namespace {

using course::DataPattern;
using hunts::Shape;
using hunts::Trial;

class Watched : public testing::TestWithParam<const char*> {
  protected:
    static Trial trial(const Shape& problem) {
        return {course::find_version(hunts::hunts(), GetParam()), problem, DataPattern::kSignedUniform};
    }
};

struct ParameterName {
    std::string operator()(const testing::TestParamInfo<const char*>& info) const { return info.param; }
};

using Findings = Watched;
INSTANTIATE_TEST_SUITE_P(Hunts, Findings,
                         testing::Values("filter", "resample", "vector_matrix", "midpoints", "warp_sums",
                                         "centre_rows", "column_sums", "scale_rows", "transpose", "fold",
                                         "running_sums", "shelves", "relay", "places", "recordings",
                                         "gradient", "rods", "flood", "halves", "letters", "squares",
                                         "details"),
                         ParameterName());

// Several blocks, and a last one that is not full.
TEST_P(Findings, None) {
    for (const Shape& shape : {Shape{131, 133}, Shape{1, 700}, Shape{700, 1}}) {
        Trial watched = trial(shape);
        const std::uint64_t before = hunts::bytes_in_use();
        EXPECT_NO_RACES([&] { watched.launch(); });
        EXPECT_EQ(hunts::bytes_in_use() - before, 0u) << "bytes of cudaMallocAsync without cudaFreeAsync";
        EXPECT_TRUE(watched.verify().ok()) << watched.verify().message();
    }
}

// Whole tiles.
using Sectors = Watched;
INSTANTIATE_TEST_SUITE_P(Hunts, Sectors,
                         testing::Values("vector_matrix", "midpoints", "warp_sums", "centre_rows",
                                         "column_sums", "scale_rows", "transpose"),
                         ParameterName());

TEST_P(Sectors, AsFewAsTheBytesNeed) {
    Trial watched = trial({128, 256});
    EXPECT_COALESCED([&] { watched.launch(); });
}

using Wavefronts = Watched;
INSTANTIATE_TEST_SUITE_P(Hunts, Wavefronts,
                         testing::Values("vector_matrix", "midpoints", "centre_rows", "column_sums",
                                         "transpose"),
                         ParameterName());

TEST_P(Wavefronts, AsFewAsTheBytesNeed) {
    Trial watched = trial({128, 256});
    EXPECT_CONFLICT_FREE([&] { watched.launch(); });
}

}  // namespace
