#include "findings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace cuda_on_cpu::inspector {
namespace {

Party at(int line) {
    return Party{static_cast<Place>(line), {1, 0, 0}, {static_cast<unsigned>(line), 0, 0}};
}

constexpr Place kCode = 1000;  // from here on 16 places are one line

SourceLine resolve(Place place) {
    return {"a.cu", static_cast<int>(place < kCode ? place : place / 16)};
}

void add(Findings& findings, const std::string& kind, int line, int other) {
    findings.add(kind, at(line), other > 0 ? std::optional(at(other)) : std::nullopt,
                 [&](RawFinding& finding) { finding.message = "first of " + std::to_string(line); });
}

TEST(Findings, CountsTheSameKindAtTheSamePlaces) {
    Findings findings;
    EXPECT_TRUE(findings.empty());
    for (int i = 0; i < 5; ++i)
        add(findings, "race", 10, 20);
    add(findings, "race", 10, 30);
    add(findings, "out_of_bounds", 10, 0);
    const auto taken = findings.take(resolve);
    ASSERT_EQ(taken.size(), 3U);
    EXPECT_EQ(taken[0].kind, "out_of_bounds");
    EXPECT_FALSE(taken[0].other.has_value());
    EXPECT_EQ(taken[1].count, 5U);
    EXPECT_EQ(taken[1].source.line, 10);
    EXPECT_EQ(taken[1].other->line, 20);
    EXPECT_EQ(taken[1].thread[0], 10U);
    EXPECT_EQ(taken[1].other_thread[0], 20U);
    EXPECT_EQ(taken[1].message, "first of 10");
    EXPECT_FALSE(taken[1].why.empty());
    EXPECT_TRUE(findings.empty());
}

TEST(Findings, WhichOfTheTwoComesFirstDoesNotMatter) {
    Findings findings;
    add(findings, "race", 10, 20);
    add(findings, "race", 20, 10);
    const auto taken = findings.take(resolve);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].count, 2U);
}

// Blocks run at the same time, the second perhaps before the first.
TEST(Findings, ShowsTheFirstOneOfTheFirstBlock) {
    Findings findings;
    const auto add_of_block = [&](unsigned x, unsigned y, const std::string& message) {
        findings.add("race", Party{10, {x, y, 0}, {}}, Party{20, {x, y, 0}, {}},
                     [&](RawFinding& finding) { finding.message = message; });
    };
    add_of_block(0, 1, "row 1");
    add_of_block(3, 0, "column 3");
    add_of_block(2, 0, "column 2");
    add_of_block(2, 0, "column 2 again");
    add_of_block(1, 1, "column 1 of row 1");
    const auto taken = findings.take(resolve);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].message, "column 2");
    EXPECT_EQ(taken[0].block, (std::array{2U, 0U, 0U}));
    EXPECT_EQ(taken[0].other_block, (std::array{2U, 0U, 0U}));
    EXPECT_EQ(taken[0].count, 5U);
}

TEST(Findings, SeveralPlacesInTheCodeMayBeOneLine) {
    Findings findings;
    for (Place code : {1600U, 1601U, 1610U, 2000U})
        findings.add("uninitialised_read", Party{code, {}, {}}, std::nullopt, [](RawFinding&) {});
    EXPECT_EQ(findings.places().size(), 4U);
    const auto taken = findings.take(resolve);
    ASSERT_EQ(taken.size(), 2U);
    EXPECT_EQ(taken[0].count, 3U);
}

}  // namespace
}  // namespace cuda_on_cpu::inspector
