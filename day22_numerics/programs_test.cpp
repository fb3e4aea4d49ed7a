// Day 22's programs as their user meets them: what they print, and what they refuse. All additions
// of rounding and sums round as IEEE 754 has it, so their output is the same everywhere.
#include "common/test/programs_test.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

using course::ProgramsTest;
using course::ShellOutcome;

// The numbers of the line that starts with `first`; none if there is no such line.
std::vector<double> numbers_after(const std::string& text, const std::string& first) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(first)) continue;
        std::istringstream words(line.substr(first.size()));
        std::vector<double> numbers;
        for (std::string word; words >> word;)
            numbers.push_back(std::strtod(word.c_str(), nullptr));
        return numbers;
    }
    return {};
}

void expect_line(const std::string& text, const std::string& line) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << "expected the line\n"
                                                                         << line << "\nand got\n"
                                                                         << text;
}

class Numerics : public ProgramsTest {
  protected:
    std::string output(const std::string& program, const std::string& arguments = "") const {
        const ShellOutcome outcome = run(program, arguments);
        EXPECT_EQ(outcome.exit_code, 0) << program << ' ' << arguments << "\n" << outcome.text;
        return outcome.text;
    }
    void expect_refusals(const std::string& program, const std::string& range) const {
        for (const std::string n : {"0", "-1", "99999999999", "abc", "12x", "1.5"})
            expect_fails(program, n, 2, "N is '" + n + "'; expected a whole number from " + range);
        expect_fails(program, "5 6", 2, "usage: " + program + " [N]");
    }
};

// --- rounding ------------------------------------------------------------------------------------

using Rounding = Numerics;

TEST_F(Rounding, TheNextFloatIsOneUlpAway) {
    const std::string text = output("rounding");
    expect_line(text, "  x = 0         2^-149");
    expect_line(text, "  x = 9.99995e-41  2^-149");
    expect_line(text, "  x = 1         2^-23");
    expect_line(text, "  x = 1000      2^-14");
    expect_line(text, "  x = 1.67772e+07  2^1");
    expect_line(text, "  x = 1e+30     2^76");
}

TEST_F(Rounding, TiesGoToTheEvenNeighbour) {
    const std::string text = output("rounding");
    expect_line(text, "  a =  1, b =   0.5000 ulp         0        0    1     0");
    expect_line(text, "  a =  1, b =   1.5000 ulp         2        1    2     1");
    expect_line(text, "  a =  1, b =   0.5020 ulp         1        0    1     0");
    expect_line(text, "  a =  1, b =   0.2500 ulp         0        0    1     0");
    expect_line(text, "  a = -1, b =  -0.5000 ulp         0        0    0    -1");
}

TEST_F(Rounding, OneRoundingIsNotTwo) {
    const std::string text = output("rounding");
    expect_line(text, "a * a - b = 5.96046e-08 with one rounding, 0 with two");
    expect_line(text, "(1e8 - 1e8) + 1 = 1, 1e8 + (-1e8 + 1) = 0");
    expect_fails("rounding", "1", 2, "usage: rounding");
}

TEST_F(Rounding, FreesWhatItAllocates) {
    expect_no_leaks("rounding", "");
}

// --- sums ----------------------------------------------------------------------------------------

class Sums : public Numerics {
  protected:
    enum Column { kInOrder, kInPairs, kCompensated, kInDouble };

    static constexpr int kLengths[] = {1, 2, 3, 31, 32, 33, 255, 1000, 4099};

    // The errors of sums of n values, in ulps: one for each column.
    static std::vector<double> errors_of(const std::string& text, int n) {
        const std::string number = std::to_string(n);
        return numbers_after(text, std::string(10 - number.size(), ' ') + number + " ");
    }
    void expect_error(int n, Column column, double expected) const {
        const std::string text = output("sums", "262144");
        const std::vector<double> errors = errors_of(text, n);
        ASSERT_EQ(errors.size(), 4u) << text;
        EXPECT_EQ(errors[column], expected) << "error of " << n << " values, in ulps\n" << text;
    }
    void expect_at_most(int n, Column column, double most) const {
        const std::string text = output("sums", std::to_string(n));
        const std::vector<double> errors = errors_of(text, n);
        ASSERT_EQ(errors.size(), 4u) << text;
        EXPECT_LE(errors[column], most) << "error of " << n << " values, in ulps\n" << text;
    }
};
using SumsInPairs = Sums;
using SumsCompensated = Sums;

TEST_F(Sums, ErrorsGrowWithTheLengthInOrder) {
    expect_error(256, kInOrder, 5.15);
    expect_error(8192, kInOrder, 27.62);
    expect_error(262144, kInOrder, 100.38);
}

TEST_F(Sums, InDoubleOnlyTheLastRoundingCounts) {
    for (const int n : kLengths) {
        expect_at_most(n, kInOrder, n);
        expect_at_most(n, kInDouble, 0.5);
    }
    expect_error(262144, kInDouble, 0.38);
}

// A value takes part in log2(n) additions.
TEST_F(SumsInPairs, ErrorsAreWithinTheirBound) {
    for (const int n : kLengths)
        expect_at_most(n, kInPairs, std::ceil(std::log2(n)));
    expect_error(256, kInPairs, 0.85);
    expect_error(262144, kInPairs, 1.38);
}

// Off by little more than the last rounding.
TEST_F(SumsCompensated, ErrorsDoNotGrow) {
    for (const int n : kLengths)
        expect_at_most(n, kCompensated, 1.01);
    expect_error(256, kCompensated, 0.4);
    expect_error(262144, kCompensated, 0.38);
}

TEST_F(Sums, FreesWhatItAllocates) {
    expect_no_leaks("sums", "1000");
}

TEST_F(Sums, RefusesWhatIsNoLength) {
    expect_refusals("sums", "1 to 4194304");
}

// --- elimination ---------------------------------------------------------------------------------

using Elimination = Numerics;

double largest_error(const std::string& text, int n, const std::string& how) {
    const std::vector<double> numbers =
        numbers_after(text, std::to_string(n) + " unknowns, " + how + " pivoting: largest error ");
    EXPECT_EQ(numbers.size(), 1u) << text;
    return numbers.empty() ? NAN : numbers[0];
}

TEST_F(Elimination, NeedsAPivotThatIsNotTiny) {
    for (const int n : {3, 31, 32, 33, 100}) {
        SCOPED_TRACE(std::to_string(n) + " unknowns");
        const std::string text = output("elimination", std::to_string(n));
        EXPECT_LT(largest_error(text, n, "with"), 1e-3) << "with pivoting";
        EXPECT_FALSE(largest_error(text, n, "without") < 1e-2) << "without pivoting, with a pivot of 1e-7";
    }
}

// Blocks of 16 x 16 threads, and a block of 256.
TEST_F(Elimination, AnyNumberOfUnknowns) {
    for (const int n : {2, 15, 16, 17, 64, 65, 257}) {
        SCOPED_TRACE(std::to_string(n) + " unknowns");
        EXPECT_LT(largest_error(output("elimination", std::to_string(n)), n, "with"), 1e-2);
    }
}

TEST_F(Elimination, FreesWhatItAllocates) {
    expect_no_leaks("elimination", "20");
}

TEST_F(Elimination, RefusesWhatIsNoNumberOfUnknowns) {
    expect_refusals("elimination", "2 to 1024");
}

// --- refinement ----------------------------------------------------------------------------------

using Refinement = Numerics;

// Solution and corrections: the errors with residuals in float, and in double.
std::vector<std::vector<double>> errors_of(const std::string& text) {
    std::vector<std::vector<double>> errors;
    for (const std::string line :
         {"solution   0", "correction 1", "correction 2", "correction 3", "correction 4"})
        errors.push_back(numbers_after(text, line));
    return errors;
}

TEST_F(Refinement, ReachesDoubleWithFactorsInFloat) {
    for (const int n : {33, 100, 129}) {
        SCOPED_TRACE(std::to_string(n) + " unknowns");
        const std::string text = output("refinement", std::to_string(n));
        const auto errors = errors_of(text);
        for (const auto& of_step : errors)
            ASSERT_EQ(of_step.size(), 2u) << text;
        EXPECT_GT(errors[0][1], 1e-8) << "a solution in float\n" << text;
        EXPECT_LT(errors[0][1], 1e-3) << text;
        EXPECT_LT(errors[1][1], 1e-2 * errors[0][1]) << "a step gains at least two digits here\n" << text;
        EXPECT_LT(errors[4][1], 1e-12) << "a solution in double\n" << text;
        EXPECT_GT(errors[4][0], 1e-8) << "with residuals in float no correction is better\n" << text;
    }
}

TEST_F(Refinement, AnyNumberOfUnknowns) {
    for (const int n : {1, 2, 15, 16, 17, 18, 255, 258}) {
        SCOPED_TRACE(std::to_string(n) + " unknowns");
        const std::string text = output("refinement", std::to_string(n));
        const auto errors = errors_of(text);
        ASSERT_EQ(errors[4].size(), 2u) << text;
        EXPECT_LT(errors[4][1], 1e-11) << text;
    }
}

TEST_F(Refinement, FreesWhatItAllocates) {
    expect_no_leaks("refinement", "20");
}

TEST_F(Refinement, RefusesWhatIsNoNumberOfUnknowns) {
    expect_refusals("refinement", "1 to 1024");
}

}  // namespace
