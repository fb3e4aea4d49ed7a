#include "common/bench/sweep_text.hpp"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace {

course::Record record(const char* problem, const char* version, course::Role role, double ms,
                      course::L2State l2 = course::L2State::kWarm) {
    course::Record result;
    result.problem = problem;
    result.version = version;
    result.role = role;
    result.measurement.emplace();
    result.measurement->ms.median = ms;
    result.measurement->l2 = l2;
    return result;
}

TEST(TextOfSweep, HasMeanLeastAndTheWorst) {
    const std::vector<course::Record> records = {
        record("small", "library", course::Role::kPeer, 4), record("small", "mine", course::Role::kOurs, 1),
        record("large", "library", course::Role::kPeer, 2), record("large", "mine", course::Role::kOurs, 8)};
    EXPECT_EQ(course::text_of_sweep(records),
              "\nmine beside library on 2 problems, warm: geometric mean 1.000, lowest 0.250\n"
              "   0.250  large\n   4.000  small\n");
    EXPECT_EQ(course::text_of_sweep(std::span(records).first(1)), "") << "nothing to compare with";
}

TEST(TextOfSweep, ComparesWithTheFastestPeerWarmAndFlushed) {
    constexpr course::L2State kFlushed = course::L2State::kFlushed;
    std::vector<course::Record> records = {record("p", "mine", course::Role::kOurs, 1),
                                           record("p", "slow", course::Role::kPeer, 9),
                                           record("p", "fast", course::Role::kPeer, 2),
                                           record("p", "mine", course::Role::kOurs, 1, kFlushed),
                                           record("p", "fast", course::Role::kPeer, 3, kFlushed),
                                           record("p", "copy", course::Role::kLimit, 0.5)};
    EXPECT_EQ(course::text_of_sweep(records),
              "\nmine beside the fastest peer on 1 problems, warm: geometric mean 2.000, lowest 2.000\n"
              "   2.000  p\n"
              "\nmine beside the fastest peer on 1 problems, flushed: geometric mean 3.000, lowest 3.000\n"
              "   3.000  p\n");
    std::erase_if(records, [](const course::Record& one) { return one.role == course::Role::kPeer; });
    EXPECT_EQ(course::text_of_sweep(records),
              "\nmine beside copy on 1 problems, warm: geometric mean 0.500, lowest 0.500\n   0.500  p\n");
}

}  // namespace
