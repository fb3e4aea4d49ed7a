// Tests of a day's whole programs, as their user meets them: output and exit code.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "common/test/device_test.hpp"
#include "common/test/shell_run.hpp"

namespace course {

// Each test has an empty directory of its own, and the programs run there. They lie beside the test
// program.
class ProgramsTest : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        std::string name = (std::filesystem::temp_directory_path() / "program_XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr) << name;
        directory_ = name;
    }
    void TearDown() override {
        if (!directory_.empty()) std::filesystem::remove_all(directory_);
    }

    // `arguments` as one types them into a shell.
    ShellOutcome run(const std::string& program, const std::string& arguments = "",
                     const std::string& environment = "") const {
        const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
        const std::string name = COURSE_PROGRAM_PREFIX + program + COURSE_PROGRAM_SUFFIX;
        return run_in_shell("cd '" + directory_.string() + "' && " + environment + " '" +
                            (programs / name).string() + "' " + arguments);
    }

    // Both return whether it was so.
    bool expect_prints(const std::string& program, const std::string& arguments,
                       const std::string& text) const {
        return expect_fails(program, arguments, 0, text);
    }
    bool expect_fails(const std::string& program, const std::string& arguments, int exit_code,
                      const std::string& message) const {
        const ShellOutcome outcome = run(program, arguments);
        if (outcome.exit_code == exit_code && outcome.text.find(message) != std::string::npos) return true;
        ADD_FAILURE() << program << ' ' << arguments << ": expected exit code " << exit_code << " and '"
                      << message << "'; got exit code " << outcome.exit_code << " and\n"
                      << outcome.text;
        return false;
    }

    // It frees what it allocates, and destroys what it creates.
    void expect_no_leaks(const std::string& program, const std::string& arguments) const {
        if (!is_cpu_stand_in()) GTEST_SKIP() << "on a GPU compute-sanitizer --leak-check full finds memory";
        const ShellOutcome outcome = run(program, arguments, "CUDA_ON_CPU_LEAKS=on");
        if (outcome.text.find(" never ") != std::string::npos) ADD_FAILURE() << outcome.text;
    }

    std::filesystem::path directory_;
};

}  // namespace course
