// Day 0's programs as their user meets them: what they print and write, and what they refuse.
#include "common/test/programs_test.hpp"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/device/random.hpp"

namespace {

using course::ProgramsTest;
using course::ShellOutcome;
using Bytes = std::vector<std::uint8_t>;

// --- hello ---------------------------------------------------------------------------------------

using Hello = ProgramsTest;

TEST_F(Hello, EveryThreadOfBothBlocksPrintsOneLine) {
    const ShellOutcome outcome = run("hello");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    std::vector<std::string> lines;
    std::istringstream text(outcome.text);
    for (std::string line; std::getline(text, line);)
        lines.push_back(line);
    std::sort(lines.begin(), lines.end());  // blocks run in any order
    std::vector<std::string> expected;
    for (const char thread : {'0', '1', '2', '3'}) {
        for (const char block : {'0', '1'})
            expected.push_back(std::string("hello from thread ") + thread + " of block " + block);
    }
    EXPECT_EQ(lines, expected);
}

// --- vector_add ----------------------------------------------------------------------------------

using VectorAdd = ProgramsTest;

TEST_F(VectorAdd, AddsAnyNumberOfElements) {
    for (const long n : {1, 31, 32, 33, 255, 256, 257, 1000003}) {
        double sum = 0;
        for (long i = 0; i < n; ++i)
            sum += 0.5 * static_cast<double>(i % 1000) + 3 - static_cast<double>(i % 7);
        char text[100];
        std::snprintf(text, sizeof text, "%ld elements are right, their sum is %.1f;", n, sum);
        expect_prints("vector_add", std::to_string(n), text);
    }
}

TEST_F(VectorAdd, FreesWhatItAllocates) {
    expect_no_leaks("vector_add", "1000");
}

// A call that fails must end the program with a message that says where and why.
TEST_F(VectorAdd, ReportsEachCallThatFails) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "no call of a GPU's runtime fails when asked to";
    struct Call {
        const char* name;
        const char* error;
        const char* what;
        const char* advice;
    };
    const char* const in_check = "is it in CUDA_CHECK()?";
    const Call calls[] = {
        {"cudaMalloc:1", "out of memory", "the first cudaMalloc", in_check},
        {"cudaMalloc:2", "out of memory", "the second cudaMalloc", in_check},
        {"cudaMalloc:3", "out of memory", "the third cudaMalloc", in_check},
        {"cudaMemcpy:1", "invalid argument", "the first copy", in_check},
        {"cudaMemcpy:2", "invalid argument", "the second copy", in_check},
        {"cudaMemcpy:3", "invalid argument", "the third copy", in_check},
        {"launch:1", "too many resources requested for launch", "the launch",
         "does CUDA_CHECK(cudaGetLastError()) follow it?"},
    };
    for (const Call& call : calls) {
        const ShellOutcome outcome =
            run("vector_add", "1000", std::string("CUDA_ON_CPU_REFUSE=") + call.name);
        const auto says = [&](const char* text) { return outcome.text.find(text) != std::string::npos; };
        if (!says("CUDA_ON_CPU_REFUSE")) continue;  // the program makes fewer calls
        if (outcome.exit_code == 1 && says("vector_add.cu:") && says(call.error)) continue;
        ADD_FAILURE() << call.what << " failed, and the program did not report it: " << call.advice
                      << " Expected exit code 1 and 'vector_add.cu:LINE: ...: " << call.error
                      << "'; got exit code " << outcome.exit_code << " and\n"
                      << outcome.text;
    }
}

TEST_F(VectorAdd, ChoosesASizeWhenNoneIsGiven) {
    expect_prints("vector_add", "", "1000000 elements are right");
}

// Between the two events: longer than nothing, shorter than the program.
TEST_F(VectorAdd, MeasuresTheKernel) {
    const auto begin = std::chrono::steady_clock::now();
    const ShellOutcome outcome = run("vector_add", "1000003");
    const std::chrono::duration<double, std::milli> whole = std::chrono::steady_clock::now() - begin;
    const std::string before = "the kernel took ";
    const std::size_t at = outcome.text.find(before);
    ASSERT_NE(at, std::string::npos) << outcome.text;
    const double kernel_milliseconds = std::strtod(outcome.text.c_str() + at + before.size(), nullptr);
    EXPECT_GT(kernel_milliseconds, 0) << outcome.text;
    EXPECT_LT(kernel_milliseconds, whole.count())
        << "milliseconds from start to end of the program; " << outcome.text;
}

TEST_F(VectorAdd, RefusesASizeThatIsNone) {
    for (const std::string size :
         {"0", "-1", "268435457", "99999999999999999999", "abc", "12x", "1.5", "''"}) {
        const std::string shown = size == "''" ? "" : size;
        expect_fails("vector_add", size, 2,
                     "N is '" + shown + "'; expected a whole number from 1 to 268435456");
    }
    expect_fails("vector_add", "1 2", 2, "usage: vector_add [N]");
}

// --- grayscale -----------------------------------------------------------------------------------

class Grayscale : public ProgramsTest {
  protected:
    std::string path(const std::string& name) const { return (directory_ / name).string(); }

    static png_image image_of(unsigned width, unsigned height, unsigned format) {
        png_image image;
        std::memset(&image, 0, sizeof image);
        image.version = PNG_IMAGE_VERSION;
        image.width = width;
        image.height = height;
        image.format = format;
        return image;
    }
    // Only block (0, 0) runs: the first pixel that is not written, as the program reports it.
    void expect_first_missing(unsigned width, unsigned height, const std::string& place,
                              const char* why) const {
        if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU runs all blocks";
        write_rgb("in.png", width, height, Bytes(std::size_t{3} * width * height));
        const ShellOutcome outcome = run("grayscale", "in.png out.png", "CUDA_ON_CPU_FIRST_BLOCKS=1");
        EXPECT_NE(outcome.text.find(place + " is "), std::string::npos)
            << "of " << width << " x " << height
            << " pixels block (0, 0) alone has run. The first that is not "
            << "written should be " << place << ": " << why << "\ngrayscale: " << outcome.text;
    }
    void write_rgb(const std::string& name, unsigned width, unsigned height, const Bytes& rgb) const {
        png_image image = image_of(width, height, PNG_FORMAT_RGB);
        ASSERT_NE(png_image_write_to_file(&image, path(name).c_str(), 0, rgb.data(), 0, nullptr), 0)
            << image.message;
    }
    // Row after row; `width` and `height` are those that the file must have.
    Bytes read_gray(const std::string& name, unsigned width, unsigned height) const {
        png_image image = image_of(0, 0, 0);
        if (png_image_begin_read_from_file(&image, path(name).c_str()) == 0) {
            ADD_FAILURE() << name << ": " << image.message;
            return {};
        }
        EXPECT_EQ(image.format, static_cast<unsigned>(PNG_FORMAT_GRAY)) << "one channel";
        EXPECT_EQ(image.width, width);
        EXPECT_EQ(image.height, height);
        image.format = PNG_FORMAT_GRAY;
        Bytes gray(PNG_IMAGE_SIZE(image));
        EXPECT_NE(png_image_finish_read(&image, nullptr, gray.data(), 0, nullptr), 0) << image.message;
        return gray;
    }
};

TEST_F(Grayscale, EveryPixelIsTheLuminanceOfItsColour) {
    const unsigned shapes[][2] = {{1, 1},   {16, 16}, {15, 16}, {17, 33},
                                  {33, 17}, {1, 31},  {31, 1},  {241, 187}};
    course::Random random(20270101);
    SCOPED_TRACE("course::Random seed 20270101");
    for (const auto& [width, height] : shapes) {
        Bytes rgb(std::size_t{3} * width * height);
        for (std::uint8_t& value : rgb)
            value = static_cast<std::uint8_t>(random.below(256));
        ASSERT_NO_FATAL_FAILURE(write_rgb("in.png", width, height, rgb));
        if (!expect_prints("grayscale", "in.png out.png",
                           std::to_string(width) + " x " + std::to_string(height) + " pixels are right"))
            continue;  // out.png is missing, or that of the shape before
        Bytes expected;
        for (std::size_t i = 0; i < rgb.size(); i += 3)
            expected.push_back(
                static_cast<std::uint8_t>((21 * rgb[i] + 72 * rgb[i + 1] + 7 * rgb[i + 2] + 50) / 100));
        EXPECT_EQ(read_gray("out.png", width, height), expected) << width << " x " << height;
    }
}

// Any order of the pixels gives the right picture when all blocks run. Of the first block alone the
// first 16 columns are right.
TEST_F(Grayscale, RowsLieOneBehindTheOther) {
    expect_first_missing(40, 10, "row 0, column 16",
                         "block (0, 0) has columns 0 to 15 of each row. Is the index row * width + col?");
}

// The threads of column 15 have no pixel, although row * 15 + 15 is one: the first of the next row.
TEST_F(Grayscale, ThreadsBesideTheRowWriteNothing) {
    expect_first_missing(
        15, 40, "row 16, column 0",
        "block (0, 0) has rows 0 to 15. Does a thread in column 15 write the first pixel of the "
        "next row? Row and column each need a check of their own.");
}

TEST_F(Grayscale, BlackAndWhiteStayAsTheyAre) {
    write_rgb("in.png", 2, 1, {0, 0, 0, 255, 255, 255});
    expect_prints("grayscale", "in.png out.png", "2 x 1 pixels are right");
    EXPECT_EQ(read_gray("out.png", 2, 1), (Bytes{0, 255}));
}

TEST_F(Grayscale, RefusesWhatItCannotReadOrWrite) {
    expect_fails("grayscale", "", 2, "usage: grayscale IN.png OUT.png");
    expect_fails("grayscale", "in.png", 2, "usage: grayscale IN.png OUT.png");
    expect_fails("grayscale", "no.png out.png", 2,
                 "grayscale: cannot read 'no.png': No such file or directory");
    std::ofstream(path("junk.png")) << "this is no picture";
    expect_fails("grayscale", "junk.png out.png", 2, "grayscale: cannot read 'junk.png': ");
    write_rgb("in.png", 1, 1, {1, 2, 3});
    expect_fails("grayscale", "in.png no/out.png", 1,
                 "grayscale: cannot write 'no/out.png': No such file or directory");
}

// The head of a picture is enough to refuse it: 40000 x 40000 pixels are 4.8 GB, and `3 * i` would
// wrap.
TEST_F(Grayscale, RefusesMorePixelsThanAnIndexCanCount) {
    constexpr unsigned char kHead[] = {0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n',  // signature
                                       0,    0,    0,    13,   'I',  'H',  'D',  'R',   // 13 bytes
                                       0,    0,    0x9c, 0x40, 0,    0,    0x9c, 0x40,
                                       8,    2,    0,    0,    0,  // 40000 x 40000, RGB
                                       0xde, 0x6e, 0x99, 0x52,     // CRC
                                       0,    0,    0,    0,    'I',  'D',  'A',  'T'};
    std::ofstream(path("large.png"), std::ios::binary)
        .write(reinterpret_cast<const char*>(kHead), sizeof kHead);
    expect_fails("grayscale", "large.png out.png", 2,
                 "grayscale: 'large.png' has 40000 x 40000 pixels; expected at most 715827882");
    EXPECT_FALSE(std::filesystem::exists(path("out.png")));
}

TEST_F(Grayscale, RefusesAPictureThatIsCutOff) {
    write_rgb("in.png", 40, 40, Bytes(4800, 77));
    std::filesystem::resize_file(path("in.png"), std::filesystem::file_size(path("in.png")) / 2);
    expect_fails("grayscale", "in.png out.png", 2, "grayscale: cannot read 'in.png': ");
    EXPECT_FALSE(std::filesystem::exists(path("out.png")));
}

// --- squares -------------------------------------------------------------------------------------

using Squares = ProgramsTest;

TEST_F(Squares, AreRightWithEveryBlockSizeThatIsAllowed) {
    for (const int threads : {1, 31, 32, 33, 256, 1000, 1024})
        expect_prints("squares", std::to_string(threads), "the sum of the squares below 1000 is 332833500");
}

TEST_F(Squares, SaysThatALaunchWasRefusedInsteadOfPrintingASum) {
    for (const std::string threads : {"1025", "2048", "1000000"}) {
        const ShellOutcome outcome = run("squares", threads);
        SCOPED_TRACE("squares " + threads);
        EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
        EXPECT_NE(outcome.text.find("squares.cu:"), std::string::npos) << outcome.text;
        // Which of the two it says is the driver's choice.
        EXPECT_TRUE(outcome.text.find("invalid configuration argument") != std::string::npos ||
                    outcome.text.find("invalid argument") != std::string::npos)
            << outcome.text;
        EXPECT_EQ(outcome.text.find("the sum of the squares"), std::string::npos) << outcome.text;
    }
}

TEST_F(Squares, FreesWhatItAllocates) {
    expect_no_leaks("squares", "256");
}

TEST_F(Squares, RefusesWhatIsNoBlockSize) {
    for (const std::string threads : {"0", "-1", "1000001", "abc", "12x"})
        expect_fails("squares", threads, 2,
                     "THREADS_PER_BLOCK is '" + threads + "'; expected a whole number");
}

// --- three_ways ----------------------------------------------------------------------------------

using ThreeWays = ProgramsTest;

// Neither too few workers nor too many, and one element more or less than a block.
TEST_F(ThreeWays, AllAddEveryElement) {
    struct Case {
        long n;
        int workers;
    };
    for (const auto& [n, workers] :
         {Case{1, 1}, {1, 4}, {3, 4}, {31, 2}, {255, 3}, {256, 7}, {257, 64}, {100003, 5}}) {
        const std::string arguments = std::to_string(n) + " " + std::to_string(workers);
        const ShellOutcome outcome = run("three_ways", arguments);
        EXPECT_EQ(outcome.exit_code, 0) << arguments;
        const std::string right = std::to_string(n) + " elements are right.";
        const long blocks = (n + 255) / 256;
        for (const std::string& way : {"processes, " + std::to_string(workers) + ": ",
                                       "OpenMP, " + std::to_string(workers) + " threads: ",
                                       "CUDA, " + std::to_string(blocks) + " blocks of 256 threads: "})
            EXPECT_NE(outcome.text.find(way + right), std::string::npos)
                << arguments << ": expected '" << way + right << "'; got\n"
                << outcome.text;
    }
}

// Ten elements for four workers are 2, 3, 2 and 3; for CUDA there is a thread for each.
TEST_F(ThreeWays, EachWorkerHasTheShareOfItsFormula) {
    const ShellOutcome outcome = run("three_ways", "10 4");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    std::vector<std::string> workers;
    std::istringstream text(outcome.text);
    for (std::string line; std::getline(text, line);) {
        const std::string before = "    workers: ";
        if (line.starts_with(before)) workers.push_back(line.substr(before.size()));
    }
    const std::string shares = "0 0 1 1 1 2 2 3 3 3";
    EXPECT_EQ(workers, (std::vector<std::string>{shares, shares, "0 1 2 3 4 5 6 7 8 9"})) << outcome.text;
}

TEST_F(ThreeWays, FreesWhatItAllocates) {
    expect_no_leaks("three_ways", "1000 4");
}

TEST_F(ThreeWays, RefusesNumbersThatAreNone) {
    for (const std::string n : {"0", "-1", "67108865", "abc", "12x", "1.5"})
        expect_fails("three_ways", n, 2, "N is '" + n + "'; expected a whole number from 1 to 67108864");
    for (const std::string workers : {"0", "65", "many"})
        expect_fails("three_ways", "10 " + workers, 2,
                     "WORKERS is '" + workers + "'; expected a whole number from 1 to 64");
    expect_fails("three_ways", "1 2 3", 2, "usage: three_ways [N [WORKERS]]");
}

}  // namespace
