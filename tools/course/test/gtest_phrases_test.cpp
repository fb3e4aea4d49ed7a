// GoogleTest itself produces the phrases here, so that they match the installed version.
#include "gtest_phrases.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

namespace course::tool {
namespace {

// The messages of the failing assertions in `statement`, in plain words.
template <class Statement>
std::string plain(Statement statement) {
    testing::TestPartResultArray results;
    {
        const testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
        statement();
    }
    if (results.size() != 1) return "no failure";
    return in_plain_words(results.GetTestPartResult(0).message());
}

void refuse() {
    throw std::invalid_argument("n is 3");
}

TEST(GtestPhrases, TwoValuesThatDiffer) {
    const int blocks = 3, expected = 4;
    EXPECT_EQ(plain([&] { EXPECT_EQ(blocks, 4); }), "blocks is 3; expected 4");
    EXPECT_EQ(plain([&] { EXPECT_EQ(4, blocks); }), "blocks is 3; expected 4");
    EXPECT_EQ(plain([&] { EXPECT_EQ(blocks, expected); }), "blocks is 3; expected 4");
    const std::vector<float> expected_sums = {4};
    EXPECT_EQ(plain([&] { EXPECT_EQ(blocks, expected_sums[0]); }), "blocks is 3; expected 4");
    const float sum = -std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(plain([&] { EXPECT_EQ(sum, 4); }),
              "sum is nan (never written, or computed from what was not?); expected 4");
    EXPECT_EQ(plain([&] { EXPECT_EQ(1, 2); }), "1 is not 2");
    EXPECT_EQ(plain([&] { EXPECT_EQ(blocks + 1, 2U * 1); }), "blocks + 1 is 4; expected 2U * 1, which is 2");
    EXPECT_EQ(plain([&] { EXPECT_EQ(std::size_t(blocks), 2U); }), "std::size_t(blocks) is 3; expected 2");
}

TEST(GtestPhrases, ASearchIsToldInTheAuthorsWords) {
    const std::string text = "one two";
    EXPECT_EQ(plain([&] { EXPECT_NE(text.find("three"), std::string::npos) << "no three in " << text; }),
              "no three in one two");
    EXPECT_EQ(plain([&] { EXPECT_EQ(text.find("two"), std::string::npos) << "a two in " << text; }),
              "a two in one two");
    EXPECT_NE(plain([&] { EXPECT_NE(text.find("three"), std::string::npos); }).find("text.find"),
              std::string::npos);
}

// Many tests compare the message of a comparison with "", its text when all values agree.
TEST(GtestPhrases, AMessageThatShouldBeEmptyIsShownAsItIs) {
    const std::string message = "1 of 2 values differ\n  [0]: expected \"a\", got \\";
    EXPECT_EQ(plain([&] { EXPECT_EQ(message, "") << "n = 2"; }), message + "\nn = 2");
    EXPECT_EQ(plain([&] { EXPECT_EQ("", message); }), message);
}

TEST(GtestPhrases, WhatTheAuthorAddedStays) {
    const int blocks = 3;
    EXPECT_EQ(plain([&] { EXPECT_EQ(blocks, 4) << "n = 1000"; }), "blocks is 3; expected 4\nn = 1000");
}

TEST(GtestPhrases, Comparisons) {
    const int blocks = 3, limit = 2;
    EXPECT_EQ(plain([&] { EXPECT_LT(blocks, 2); }), "blocks is 3; expected < 2");
    EXPECT_EQ(plain([&] { EXPECT_LT(blocks, limit); }), "blocks is 3; expected < limit, which is 2");
    EXPECT_EQ(plain([&] { EXPECT_NE(blocks, 3); }), "blocks is 3; expected != 3");
}

TEST(GtestPhrases, Truth) {
    const bool done = false;
    EXPECT_EQ(plain([&] { EXPECT_TRUE(done); }), "done is false; expected true");
}

TEST(GtestPhrases, Exceptions) {
    EXPECT_EQ(plain([] { EXPECT_NO_THROW(refuse()); }), "refuse() throws std::invalid_argument: n is 3");
    EXPECT_EQ(plain([] { EXPECT_THROW(refuse(), std::out_of_range); }),
              "refuse() throws std::invalid_argument (n is 3); expected std::out_of_range");
    EXPECT_EQ(plain([] { EXPECT_THROW(static_cast<void>(0), std::out_of_range); }),
              "static_cast<void>(0) throws nothing; expected std::out_of_range");
    EXPECT_EQ(in_plain_words("C++ exception with description \"n is 3\" thrown in the test body."), "n is 3");
}

TEST(GtestPhrases, WhatAnAssertionSaysStandsWithoutItsFrame) {
    EXPECT_EQ(plain([] {
                  EXPECT_TRUE(testing::AssertionFailure() << "2 findings\nrace: a[3] (a.cu:7)\nrace: a[4]");
              }),
              "2 findings\nrace: a[3] (a.cu:7)\nrace: a[4]");
    const bool done = false;
    EXPECT_EQ(plain([&] { EXPECT_TRUE(done) << "n = 3: 1 of 3 values differs"; }),
              "n = 3: 1 of 3 values differs");
    EXPECT_EQ(plain([] { ADD_FAILURE() << "wrong"; }), "wrong");
}

TEST(GtestPhrases, TheCaseStandsBehindTheMessage) {
    EXPECT_EQ(
        in_plain_words("Failed\nwrong\nGoogle Test trace:\n/d/a.cpp:7: n = 3\n/d/random.hpp:9: seed 5\n"),
        "wrong\nin the case: n = 3, seed 5");
}

TEST(GtestPhrases, AnExceptionOfAnyType) {
    EXPECT_EQ(in_plain_words("Unknown C++ exception thrown in the test body."),
              "an exception that says nothing");
}

TEST(GtestPhrases, ALongTextIsLeftAsItIs) {
    std::string text = "Expected: (";
    text.append(1'000'000, 'x').append(") == (3), actual: 2 vs 3");
    EXPECT_EQ(in_plain_words(text), text);
}

}  // namespace
}  // namespace course::tool
