#include "common/bench/version.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

int twice(int x) {
    return 2 * x;
}
course::Work work(const int& n) {
    return {.bytes = 8.0 * n, .flops = 1.0 * n};
}
std::string even_only(const int& n) {
    return n % 2 == 0 ? "" : "n = " + std::to_string(n) + " must be even";
}

using Doubling = course::Version<int (*)(int), int>;

const std::vector<Doubling> kVersions = {
    {.name = "naive", .idea = "one thread per element", .launcher = twice, .work = work},
    {.name = "float4", .idea = "four at a time", .launcher = twice, .work = work, .constraint = even_only},
};

TEST(Version, IsFoundByName) {
    const Doubling& version = course::find_version(kVersions, "float4");
    EXPECT_EQ(version.idea, "four at a time");
    EXPECT_EQ(version.launcher(21), 42);
    EXPECT_EQ(version.work(10).bytes, 80);
}

TEST(Version, SaysWhyItCannotRun) {
    EXPECT_EQ(kVersions[0].cannot_run(3), "");
    EXPECT_EQ(kVersions[1].cannot_run(4), "");
    EXPECT_EQ(kVersions[1].cannot_run(3), "n = 3 must be even");
}

TEST(Version, UnknownNameSuggestsTheNearest) {
    try {
        course::find_version(kVersions, "fload4");
        FAIL() << "expected std::invalid_argument";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "unknown version 'fload4': did you mean 'float4'? Known: naive, float4");
    }
}

TEST(Nearest, TakesTheCheapestEdits) {
    const std::vector<std::string> days = {"day01", "day05", "day15"};
    EXPECT_EQ(course::nearest("day5", days), "day05");
    EXPECT_EQ(course::nearest("dai15", days), "day15");
    const std::vector<std::string> kernels = {"memset", "one_per_thread"};
    EXPECT_EQ(course::nearest("one_pr", kernels), "one_per_thread") << "typed short";
}

TEST(Nearest, NoneWhereNothingIsNear) {
    const std::vector<std::string> kernels = {"naive", "float4", "tiled_prefetch"};
    for (const char* name : {"", "4", "foo", "zzzzz", "histogram"})
        EXPECT_EQ(course::nearest(name, kernels), "") << name;
    EXPECT_EQ(course::nearest("tiled", kernels), "tiled_prefetch") << "the beginning";
    EXPECT_EQ(course::nearest("frist", std::vector<std::string>{"grid_stride"}), "")
        << "r, i, s, t are in it";
    EXPECT_EQ(course::nearest("x", {}), "");
    EXPECT_EQ(course::unknown_name("version", "foo", kernels),
              "unknown version 'foo'. Known: naive, float4, tiled_prefetch");
    EXPECT_EQ(course::unknown_name("day", "x", {}), "unknown day 'x': there are none");
}

}  // namespace
