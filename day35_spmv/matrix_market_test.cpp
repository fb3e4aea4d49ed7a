// Reading Matrix Market files: what they mean, and what is said of files that mean nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "host/matrices.hpp"

namespace {

using day35::CsrMatrix;
using day35::Index;
using day35::Offset;
using day35::parse_matrix_market;

template <class T>
std::vector<T> list(std::span<const T> span) {
    return {span.begin(), span.end()};
}

const std::string kFolder = DAY35_MATRICES "/";

TEST(MatrixMarket, GeneralFile) {
    const CsrMatrix csr = day35::read_matrix_market(kFolder + "small_general.mtx");
    EXPECT_EQ(csr.shape(), (day35::Shape{4, 5}));
    EXPECT_EQ(list(csr.row_start()), (std::vector<Offset>{0, 3, 3, 5, 7}));
    EXPECT_EQ(list(csr.cols()), (std::vector<Index>{0, 1, 4, 1, 2, 0, 0}));
    EXPECT_EQ(list(csr.values()), (std::vector<float>{2, 1, -15, 7, 0.25f, 0.5f, 0.25f}));
}

TEST(MatrixMarket, SymmetricFileMeansBothHalves) {
    const CsrMatrix csr = day35::read_matrix_market(kFolder + "truss_symmetric.mtx");
    EXPECT_EQ(csr.entries(), 16);
    EXPECT_EQ(list(csr.row_start()), (std::vector<Offset>{0, 2, 5, 8, 11, 14, 16}));
    EXPECT_EQ(list(csr.cols()).at(2), 0);
    EXPECT_EQ(list(csr.cols()).at(4), 2);
    EXPECT_EQ(list(csr.values()),
              (std::vector<float>{2, -1, -1, 2, -1, -1, 2, -1, -1, 2, -1, -1, 2, -1, -1, 2}));
}

TEST(MatrixMarket, PatternFileHasOnes) {
    const CsrMatrix csr = day35::read_matrix_market(kFolder + "web_pattern.mtx");
    EXPECT_EQ(csr.entries(), 14);
    EXPECT_EQ(list(csr.values()), std::vector<float>(14, 1.0f));
    EXPECT_EQ(csr.row_length(7), 0);
}

TEST(MatrixMarket, SkewSymmetricFileNegatesTheOtherHalf) {
    const CsrMatrix csr = parse_matrix_market(
        "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 5\n3 1 -2\n", "skew");
    EXPECT_EQ(list(csr.row_start()), (std::vector<Offset>{0, 2, 3, 4}));
    EXPECT_EQ(list(csr.cols()), (std::vector<Index>{1, 2, 0, 0}));
    EXPECT_EQ(list(csr.values()), (std::vector<float>{-5, 2, 5, -2}));
}

TEST(MatrixMarket, BlankLinesCommentsTabsAndLineEndsOfWindows) {
    const CsrMatrix csr = parse_matrix_market(
        "%%MatrixMarket\tMATRIX Coordinate REAL General\r\n% a\r\n\r\n%b\n  2\t3   1 \r\n\r\n% c\r\n 2 "
        "3\t1e-1\r\n\r\n",
        "blanks");
    EXPECT_EQ(csr.shape(), (day35::Shape{2, 3}));
    EXPECT_EQ(list(csr.row_start()), (std::vector<Offset>{0, 0, 1}));
    EXPECT_EQ(list(csr.values()), std::vector<float>{0.1f});
}

TEST(MatrixMarket, EmptyMatrices) {
    const std::string head = "%%MatrixMarket matrix coordinate real general\n";
    EXPECT_EQ(parse_matrix_market(head + "0 0 0\n", "empty").shape(), (day35::Shape{0, 0}));
    EXPECT_EQ(parse_matrix_market(head + "3 0 0", "empty").row_start().size(), 4u);
}

TEST(MatrixMarket, ValuesBeyondFloat) {
    const CsrMatrix csr = parse_matrix_market(
        "%%MatrixMarket matrix coordinate real general\n1 5 5\n1 1 1e39\n1 2 -1e400\n1 3 1e-60\n1 4 "
        "1e-400\n1 5 nan\n",
        "large");
    constexpr float kInf = std::numeric_limits<float>::infinity();
    EXPECT_EQ(csr.values()[0], kInf);
    EXPECT_EQ(csr.values()[1], -kInf);
    EXPECT_EQ(csr.values()[2], 0.0f);
    EXPECT_EQ(csr.values()[3], 0.0f);
    EXPECT_TRUE(std::isnan(csr.values()[4]));
}

// To the nearest float at once: by way of double this one, just above the middle of two floats,
// would go to the lower.
TEST(MatrixMarket, ValuesAreRoundedOnce) {
    const CsrMatrix csr = parse_matrix_market(
        "%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 1.000000059604644775390626\n1 2 +1.5\n",
        "rounding");
    EXPECT_EQ(csr.values()[0], 1 + std::numeric_limits<float>::epsilon());
    EXPECT_EQ(csr.values()[1], 1.5f);
}

TEST(MatrixMarket, IntegerFile) {
    const CsrMatrix csr = parse_matrix_market(
        "%%MatrixMarket matrix coordinate integer general\n1 3 3\n1 1 +7\n1 2 -3\n1 3 16777216\n", "whole");
    EXPECT_EQ(list(csr.values()), (std::vector<float>{7, -3, 16777216}));
}

struct BadFile {
    const char* text;
    const char* message;
};

TEST(MatrixMarket, SaysWhatIsWrongAndInWhichLine) {
#define HEAD "%%MatrixMarket matrix coordinate real general\n"
    const std::vector<BadFile> files = {
        {"", "f:1: expected '%%MatrixMarket matrix coordinate ...' as the first line"},
        {"3 3 1\n1 1 1\n", "f:1: expected '%%MatrixMarket matrix coordinate ...' as the first line"},
        {"%%MatrixMarket vector coordinate real general\n", "f:1: object is 'vector'; supported: matrix"},
        {"%%MatrixMarket matrix array real general\n", "f:1: format is 'array'; supported: coordinate"},
        {"%%MatrixMarket matrix coordinate complex general\n",
         "f:1: field is 'complex'; supported: real, integer, pattern"},
        {"%%MatrixMarket matrix coordinate real hermitian\n",
         "f:1: symmetry is 'hermitian'; supported: general, symmetric, skew-symmetric"},
        {"%%MatrixMarket matrix coordinate real\n",
         "f:1: symmetry is ''; supported: general, symmetric, skew-symmetric"},
        {"%%MatrixMarket matrix coordinate real general 7\n",
         "f:1: '7' is left over; expected the end of the line"},
        {HEAD, "f:2: the file ends; expected a line 'rows cols entries'"},
        {HEAD "% only\n", "f:3: the file ends; expected a line 'rows cols entries'"},
        {HEAD "3 3\n", "f:2: entries is ''; expected a whole number from 0 to 4611686018427387903"},
        {HEAD "-3 3 1\n", "f:2: rows is '-3'; expected a whole number from 0 to 2147483647"},
        {HEAD "3 2147483648 1\n", "f:2: cols is '2147483648'; expected a whole number from 0 to 2147483647"},
        {HEAD "3 3 1 1\n", "f:2: '1' is left over; expected the end of the line"},
        {HEAD "3 4 1\n1 5 1\n", "f:3: col is '5'; expected a whole number from 1 to 4"},
        {HEAD "3 4 1\n4 1 1\n", "f:3: row is '4'; expected a whole number from 1 to 3"},
        {HEAD "3 4 1\n0 1 1\n", "f:3: row is '0'; expected a whole number from 1 to 3"},
        {HEAD "3 4 1\n1.5 1 1\n", "f:3: row is '1.5'; expected a whole number from 1 to 3"},
        {HEAD "3 4 1\n\n%\n1 1 one\n", "f:5: value is 'one'; expected a number"},
        {HEAD "3 4 1\n1 1 1.5x\n", "f:3: value is '1.5x'; expected a number"},
        {HEAD "3 4 1\n1 1\n", "f:3: value is ''; expected a number"},
        {HEAD "3 4 1\n1 1 1 2\n", "f:3: '2' is left over; expected the end of the line"},
        {HEAD "3 4 2\n1 1 1\n", "f:4: the file ends after 1 entries; expected 2"},
        {HEAD "3 4 1\n1 1 1\n2 2 2\n", "f:4: a line behind the last entry; expected 1 entries"},
        {"%%MatrixMarket matrix coordinate pattern general\n3 4 1\n1 1 1\n",
         "f:3: '1' is left over; expected the end of the line"},
        {"%%MatrixMarket matrix coordinate real symmetric\n3 4 0\n",
         "f:2: 3 x 4; expected a square matrix, it is symmetric"},
        {"%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n1 2 1\n",
         "f:3: entry (1, 2) is above the diagonal; expected only those below it in a symmetric file"},
        {"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1\n",
         "f:3: entry (2, 2) is on the diagonal, with value 1.000000; expected none there, it is 0 in a "
         "skew-symmetric matrix"},
        {HEAD "0 4 2\n1 1 1\n", "f:2: 2 entries in a matrix of 0 x 4; expected 0"},
        {HEAD "4 0 2\n1 1 1\n", "f:2: 2 entries in a matrix of 4 x 0; expected 0"},
        {HEAD "3 4 1\n1 1 +-1.5\n", "f:3: value is '+-1.5'; expected a number"},
        {HEAD "3 4 1\n1 1 ++1.5\n", "f:3: value is '++1.5'; expected a number"},
        {HEAD "3 4 1\n1 1 +\n", "f:3: value is '+'; expected a number"},
        {"%%MatrixMarket matrix coordinate integer general\n3 4 1\n1 1 1.5\n",
         "f:3: value is '1.5'; expected a whole number of 64 bits, as in 'integer' files"},
        {"%%MatrixMarket matrix coordinate integer general\n3 4 1\n1 1 +-1\n",
         "f:3: value is '+-1'; expected a whole number of 64 bits, as in 'integer' files"},
    };
#undef HEAD
    for (const BadFile& file : files) {
        try {
            parse_matrix_market(file.text, "f");
            ADD_FAILURE() << "accepted: " << file.text;
        } catch (const day35::MatrixMarketError& error) {
            EXPECT_STREQ(error.what(), file.message) << file.text;
        }
    }
}

TEST(MatrixMarket, FilesThatCannotBeRead) {
    const auto message = [](const std::string& file) -> std::string {
        try {
            day35::read_matrix_market(file);
        } catch (const day35::MatrixMarketError& error) {
            return error.what();
        }
        return "read";
    };
    EXPECT_EQ(message("no/such.mtx"), "no/such.mtx: cannot be opened: No such file or directory");
    EXPECT_EQ(message("/"), "/: is a directory; expected a Matrix Market file");
    EXPECT_EQ(message("/dev/null"),
              "/dev/null:1: expected '%%MatrixMarket matrix coordinate ...' as the first line");
}

}  // namespace
