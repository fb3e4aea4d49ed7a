// The program as a user runs it: the five matrices, files of the user's own, and what it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/test/device_test.hpp"
#include "common/test/shell_run.hpp"

namespace {

class SpmvProgram : public course::DeviceTest {
  protected:
    static std::string output_of(const std::string& arguments, int exit_code = 0) {
        // It lies beside the test, wherever that was copied to.
        const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "day35_spmv";
        const course::ShellOutcome outcome = course::run_in_shell("'" + program.string() + "' " + arguments);
        EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.text;
        return outcome.text;
    }
    static bool contains(const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    }
    static std::string matrix(const std::string& name) {
        return "--matrix '" DAY35_MATRICES "/" + name + ".mtx'";
    }
};

TEST_F(SpmvProgram, RunsTheFiveMatrices) {
    const std::string text = output_of("--size 300");
    for (const char* part :
         {"27-band 300x300, 7918 entries", "16 random 300x300, 4800 entries", "power law 300x300",
          "laplacian 1156x1156, 5644 entries", "3x3 blocks 192x192, 9000 entries"})
        EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
    EXPECT_FALSE(contains(text, "WRONG")) << text;
}

TEST_F(SpmvProgram, RunsAFileAndSaysWhichFormatWins) {
    for (const auto& [name, shape] : {std::pair("small_general", "4x5, 7 entries"),
                                      {"truss_symmetric", "6x6, 16 entries"},
                                      {"web_pattern", "8x8, 14 entries"}}) {
        const std::string text = output_of(matrix(name));
        EXPECT_TRUE(contains(text, std::string(name) + ".mtx " + shape)) << text;
        for (const char* part : {"csr_merge", "packed_sell", "bytes/entry", "conversion",
                                 " wins, with its data in L2", ": rows of "})
            EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
    }
}

TEST_F(SpmvProgram, RunsOneVersion) {
    const std::string text = output_of(matrix("web_pattern") + " --only csr_merge");
    EXPECT_TRUE(contains(text, "csr_merge ran alone")) << text;
    EXPECT_TRUE(contains(output_of("--only nosuch", 2), "nosuch"));
}

TEST_F(SpmvProgram, MatricesWithoutEntriesAndWithoutRows) {
    const auto file = std::filesystem::temp_directory_path() / ("day35_" + std::to_string(getpid()) + ".mtx");
    for (const char* size : {"0 0 0", "5 0 0", "0 5 0", "5 5 0"}) {
        std::ofstream(file) << "%%MatrixMarket matrix coordinate real general\n" << size << "\n";
        const std::string text = output_of("--matrix '" + file.string() + "'");
        EXPECT_FALSE(contains(text, "rows of ")) << "nothing to explain\n" << text;
    }
    std::filesystem::remove(file);
}

TEST_F(SpmvProgram, RefusesFilesThatAreNone) {
    EXPECT_TRUE(contains(output_of("--matrix /dev/null", 2), "/dev/null:1: expected '%%MatrixMarket"));
    EXPECT_TRUE(
        contains(output_of("--matrix no/such.mtx", 2), "no/such.mtx: cannot be opened: No such file"));
    EXPECT_TRUE(contains(output_of(matrix("../README"), 2), "cannot be opened"));
    EXPECT_TRUE(
        contains(output_of("--matrix '" DAY35_MATRICES "/../CMakeLists.txt'", 2),
                 "CMakeLists.txt:1: expected '%%MatrixMarket matrix coordinate ...' as the first line"));
    EXPECT_TRUE(contains(output_of(matrix("web_pattern") + " --size 5", 2), "excludes"));
    EXPECT_TRUE(contains(output_of("--size 5x5", 2), "expected one number of rows"));
}

}  // namespace
