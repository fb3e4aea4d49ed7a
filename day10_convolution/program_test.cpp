// Day 10's program as its user meets it: what it writes, and what it refuses, with which message
// and exit code.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/test/device_test.hpp"
#include "common/test/shell_run.hpp"
#include "picture.hpp"

namespace {

using Outcome = course::ShellOutcome;

std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Each test has an empty directory of its own, and the program runs there.
class ProgramTest : public course::DeviceTest {
  protected:
    void SetUp() override {
        course::DeviceTest::SetUp();
        std::string name = (std::filesystem::temp_directory_path() / "day10_XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr) << name;
        directory_ = name;
    }
    void TearDown() override {
        if (!directory_.empty()) std::filesystem::remove_all(directory_);
    }

    // `arguments` as one types them into a shell.
    Outcome run(const std::string& arguments) const {
        return course::run_in_shell("cd '" + directory_.string() + "' && '" DAY10_PROGRAM "' " + arguments);
    }

    void expect_refused(const std::string& arguments, const std::string& message) const {
        const Outcome outcome = run(arguments);
        EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.text;
        EXPECT_NE(outcome.text.find("day10_convolution: " + message), std::string::npos) << arguments << "\n"
                                                                                         << outcome.text;
    }

    std::filesystem::path directory_;
};

TEST_F(ProgramTest, WritesTheBlurredPicture) {
    const day10::HostPicture picture = day10::read_picture(DAY10_PICTURE);
    for (const std::string arguments : {"--only separable_streaming", "--only separable_fused"}) {
        const Outcome outcome =
            run("--sigma 0.5 --out tmp.png " + arguments);  // the second replaces the first
        EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
        EXPECT_NE(outcome.text.find("written: tmp.png"), std::string::npos) << outcome.text;
        const day10::HostPicture blurred = day10::read_picture(directory_ / "tmp.png");
        EXPECT_EQ(blurred.rows, picture.rows);
        EXPECT_EQ(blurred.cols, picture.cols);
        EXPECT_EQ(blurred.channels, picture.channels);
        EXPECT_NE(blurred.values, picture.values);
        std::filesystem::directory_iterator files(directory_);
        EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "nothing is left beside the picture";
    }
}

// JPEG has no pictures wider than 65535: found out when the picture is there, and no fault of the
// arguments.
TEST_F(ProgramTest, LeavesTheOldFileWhenWritingFails) {
    day10::write_picture(directory_ / "wide.png", {1, 70000, 1, std::vector<std::uint8_t>(70000, 9)});
    std::ofstream(directory_ / "x.jpg") << "old";
    const Outcome outcome = run("--image wide.png --sigma 0.5 --only separable_streaming --out x.jpg");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("cannot write 'x.jpg'"), std::string::npos) << outcome.text;
    EXPECT_EQ(contents(directory_ / "x.jpg"), "old");
}

// 371 million terms for `naive`; two passes have 2 million.
TEST_F(ProgramTest, LeavesOutSlowVersionsOnTheCpu) {
    const Outcome outcome = run("--size 64x64x301");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_EQ(outcome.text.find("it would take long on the CPU; --only naive runs it") != std::string::npos,
              course::is_cpu_stand_in())
        << outcome.text;
}

TEST_F(ProgramTest, RefusesPicturesThatItCannotRead) {
    std::ofstream(directory_ / "junk.png") << "junk";
    std::filesystem::create_directory(directory_ / "dir.png");
    const std::string long_name = std::string(300, 'a') + ".png";
    expect_refused("--image no.png", "--image: 'no.png' cannot be read: No such file or directory");
    expect_refused("--image junk.png", "--image: 'junk.png' is no picture; expected PNG, JPEG or the like");
    expect_refused("--image dir.png", "--image: 'dir.png' is a directory; expected a picture");
    expect_refused("--image " + long_name, "--image: '" + long_name + "' cannot be read: File name too long");
}

TEST_F(ProgramTest, RefusesNumbersOutsideTheirLimits) {
    expect_refused("--filter 4", "--filter 4: expected an odd number, at most 4095");
    expect_refused("--filter 4097", "--filter 4097: expected an odd number, at most 4095");
    expect_refused("--sigma 0", "--sigma 0: expected a finite number > 0");
    expect_refused("--sigma nan", "--sigma nan: expected a finite number > 0");
    expect_refused("--sigma -1e-9", "--sigma -1e-09: expected a finite number > 0");
    expect_refused("--sigma 683", "--sigma 683: expected at most 682, or --filter as well");
    expect_refused("--size 8x8x4097",
                   "size 8x8x4097: a filter of 4097; expected an odd number, at most 4095");
}

TEST_F(ProgramTest, RefusesFilesThatItMustNotWrite) {
    std::filesystem::create_directory(directory_ / "dir.png");
    std::filesystem::copy_file(DAY10_PICTURE, directory_ / "in.png");
    std::filesystem::create_symlink("in.png", directory_ / "link.png");
    const std::string before = contents(directory_ / "in.png");
    const std::string long_name = std::string(300, 'a') + ".png";
    const std::string is_read = " is the picture that is read; expected another file";
    expect_refused("--image in.png --out in.png", "--out: 'in.png'" + is_read);
    expect_refused("--image in.png --out link.png", "--out: 'link.png'" + is_read);
    expect_refused("--image link.png --out ./in.png", "--out: './in.png'" + is_read);
    EXPECT_EQ(contents(directory_ / "in.png"), before);
    expect_refused("--out dir.png", "--out: 'dir.png' is a directory; expected the name of a file");
    expect_refused("--out ''", "--out: '' is no name of a file");
    expect_refused("--out no/x.png", "--out: 'no/x.png' cannot be written: No such file or directory");
    expect_refused("--out " + long_name, "--out: '" + long_name + "' cannot be written: File name too long");
    for (const std::string name : {"picture", "x.xyz"})
        expect_refused(
            "--out " + name,
            "--out: '" + name + "' has no extension of a picture; expected .png, .jpg or the like");
    expect_refused("--out x.pgm", "--out: 'x.pgm' is of a format that cannot hold 3 channels of bytes here");
}

TEST_F(ProgramTest, RefusesVersionsThatWriteNoPicture) {
    expect_refused("--out x.png --only opencv", "--out: unknown version 'opencv'");
    expect_refused("--out x.png --only naiv", "--out: unknown version 'naiv': did you mean 'naive'?");
    expect_refused("--out x.png --sigma 60 --only constant_filter",
                   "--out: constant_filter cannot run: constant memory holds 16384 weights");
    EXPECT_FALSE(std::filesystem::exists(directory_ / "x.png"));
}

}  // namespace
