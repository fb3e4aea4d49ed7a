// Which compiler it is shows neither in its name nor in the directories above it.
#include "host_compiler.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

class HostCompiler : public testing::Test {
  protected:
    HostCompiler() {
        std::string name = (fs::temp_directory_path() / "clang tools_XXXXXX").string();
        directory_ = mkdtemp(name.data());
    }
    ~HostCompiler() override { fs::remove_all(directory_); }

    std::string program(const std::string& name, const std::string& script) const {
        const fs::path file = directory_ / name;
        std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
        fs::permissions(file, fs::perms::owner_all);
        return file;
    }

  private:
    fs::path directory_;
};

TEST_F(HostCompiler, IsClangIfItSaysSo) {
    EXPECT_FALSE(translator::is_clang(program("g++", "exec g++ \"$@\"")));
    EXPECT_FALSE(translator::is_clang(program("clang++", "exec g++ \"$@\"")));
    EXPECT_TRUE(translator::is_clang(program("c++", "echo '#define __clang__ 1'")));
    if (std::system("clang++ --version >/dev/null 2>&1") == 0) {
        EXPECT_TRUE(translator::is_clang(program("mpicxx", "exec clang++ \"$@\"")));
    }
}

TEST_F(HostCompiler, IsNoClangIfItCannotBeRun) {
    EXPECT_FALSE(translator::is_clang(program("broken_clang++", "echo '#define __clang__ 1'; exit 1")));
}

}  // namespace
