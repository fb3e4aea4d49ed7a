// Precompiled headers of kernels: made once, again when a header has changed, and done without
// where one does not compile. In a directory whose name has a blank.
#include "precompiled.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using translator::precompiled_headers;

class Precompiled : public testing::Test {
  protected:
    void SetUp() override {
        if (std::system("g++ --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no g++";
    }

    Precompiled() {
        std::string name = (fs::temp_directory_path() / "precompiled headers_XXXXXX").string();
        directory = mkdtemp(name.data());
        // The standard's headers would take a second each time, and nothing here depends on them.
        for (const char* const header : {"algorithm", "array", "stdexcept", "string", "vector"})
            std::ofstream(directory / header) << "// empty\n";
        write_header("int old_function();\n");
    }
    ~Precompiled() override { fs::remove_all(directory); }

    // A cuda_runtime.h of ours; its time stamp is that of files written `later`.
    void write_header(const std::string& text, std::chrono::seconds later = {}) {
        const fs::path file = directory / "cuda_runtime.h";
        std::ofstream(file) << text;
        fs::last_write_time(file, fs::file_time_type::clock::now() + later);
    }

    translator::PrecompiledHeaders headers(const std::vector<std::string>& more = {}) const {
        std::vector<std::string> command = {"g++", "-std=c++20", "-Wall", "-I", directory.string()};
        command.insert(command.end(), more.begin(), more.end());
        return precompiled_headers(directory / "made", command);
    }

    fs::path made() const { return headers().options.at(2) + ".gch"; }

    fs::path directory;
};

TEST_F(Precompiled, AreMadeOnce) {
    const fs::path first = made();
    const auto time = fs::last_write_time(first);
    EXPECT_EQ(made(), first);
    EXPECT_EQ(fs::last_write_time(first), time);
    EXPECT_NE(headers().files.find("cuda_runtime.h"), std::string::npos);
}

// An editor's command. With this option g++ makes no headers, and each look at a file would try.
TEST_F(Precompiled, AreMadeForTheSyntaxAlone) {
    const translator::PrecompiledHeaders only_syntax = headers({"-fsyntax-only"});
    ASSERT_EQ(only_syntax.options.size(), 3U);
    EXPECT_TRUE(fs::exists(only_syntax.options.at(2) + ".gch"));
    EXPECT_EQ(only_syntax.options, headers().options);
}

// Which libraries a target links decides the order of its options.
TEST_F(Precompiled, AreSharedWhateverTheOrderOfDefinitions) {
    const auto options = headers({"-O1", "-DNDEBUG", "-fPIC", "-g1"}).options;
    EXPECT_EQ(headers({"-fPIC", "-O1", "-g1", "-DNDEBUG"}).options, options);
    EXPECT_NE(headers({"-O1", "-DNDEBUG", "-g1"}).options, options);
    EXPECT_NE(headers({"-O1", "-O0", "-DNDEBUG", "-fPIC", "-g1"}).options, options);
}

TEST_F(Precompiled, AreMadeAgainWhenAHeaderHasChanged) {
    const auto time = fs::last_write_time(made());
    write_header("int new_function();\n", std::chrono::seconds(2));
    EXPECT_GT(fs::last_write_time(made()), time);
}

// Saved while it is compiled, or put back as it was before: the time stamp decides.
TEST_F(Precompiled, AreAsOldAsTheLookAtTheHeaders) {
    const auto before = fs::file_time_type::clock::now();
    const fs::path first = made();
    write_header("int saved_meanwhile();\n");
    fs::last_write_time(directory / "cuda_runtime.h",
                        fs::last_write_time(first) + std::chrono::milliseconds(1));
    const auto time = fs::last_write_time(first);
    EXPECT_LT(time - before, std::chrono::seconds(1));
    EXPECT_GT(fs::last_write_time(made()), time);
}

TEST_F(Precompiled, AreMadeAgainWhenAHeaderIsGone) {
    { std::ofstream(directory / "other.h") << "int other();\n"; }
    write_header("#include \"other.h\"\n");
    const auto time = fs::last_write_time(made());
    write_header("int alone();\n", -std::chrono::hours(1));
    fs::remove(directory / "other.h");
    EXPECT_GT(fs::last_write_time(made()), time);
}

TEST_F(Precompiled, DifferFromOptionToOption) {
    const fs::path optimised =
        precompiled_headers(directory / "made", {"g++", "-std=c++20", "-O2", "-I", directory.string()})
            .options.at(2) +
        ".gch";
    EXPECT_NE(optimised, made());
}

TEST_F(Precompiled, AreSharedByProgramsWithMacrosOfTheirOwn) {
    const auto with_macro = precompiled_headers(
        directory / "made", {"g++", "-std=c++20", "-Wall", "-DN=3", "-I", directory.string()});
    EXPECT_EQ(with_macro.options.at(2) + ".gch", made());
}

TEST_F(Precompiled, OfAProgramOfOnesOwnAreThoseThatItIncludes) {
    const std::string source = (directory / "own.cu").string();
    std::ofstream(source) << "  #  include <vector>\n// #include <array>\n#include <string_view>\n";
    const auto own = precompiled_headers(directory / "made",
                                         {"g++", "-std=c++20", "-Wall", "-I", directory.string()}, source);
    ASSERT_EQ(own.options.size(), 3U);
    std::ifstream header(own.options.at(2));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(header), {}),
              "#include <cuda_runtime.h>\n#include <vector>\n");
    EXPECT_NE(own.options.at(2) + ".gch", made());
}

TEST_F(Precompiled, AreDoneWithoutWhereAHeaderDoesNotCompile) {
    write_header("not C++\n");
    const auto none = headers();
    EXPECT_TRUE(none.options.empty());
    EXPECT_EQ(none.files, "");
}

using translator::private_directory;

class PrivateDirectory : public testing::Test {
  protected:
    PrivateDirectory() {
        std::string name = (fs::temp_directory_path() / "private_XXXXXX").string();
        directory = mkdtemp(name.data());
    }
    ~PrivateDirectory() override { fs::remove_all(directory); }

    fs::path directory;
};

TEST_F(PrivateDirectory, IsMadeForItsOwnerAlone) {
    const std::string made = directory / "made";
    EXPECT_EQ(private_directory(made), made);
    EXPECT_EQ(fs::status(made).permissions(), fs::perms::owner_all);
    EXPECT_EQ(private_directory(made), made) << "the second time";
}

TEST_F(PrivateDirectory, IsNoneThatOthersCanWriteTo) {
    const fs::path open_to_all = directory / "open";
    fs::create_directory(open_to_all);
    fs::permissions(open_to_all, fs::perms::all);
    EXPECT_EQ(private_directory(open_to_all), "");
}

TEST_F(PrivateDirectory, IsNoneOfAnotherUser) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
    const fs::path given = directory / "given";
    fs::create_directory(given, directory);
    ASSERT_EQ(chown(given.c_str(), 12345, 12345), 0);
    EXPECT_EQ(private_directory(given), "");
}

TEST_F(PrivateDirectory, IsNoLinkAndNoFile) {
    fs::create_directory(directory / "real", directory);
    fs::create_directory_symlink(directory / "real", directory / "link");
    EXPECT_EQ(private_directory(directory / "link"), "");
    { std::ofstream(directory / "file") << "text\n"; }
    EXPECT_EQ(private_directory(directory / "file"), "");
    EXPECT_EQ(private_directory(directory / "nowhere" / "deeper"), "");
}

}  // namespace
