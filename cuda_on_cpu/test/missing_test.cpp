#include "missing.hpp"

#include <gtest/gtest.h>

#include <string>

namespace translator {
namespace {

TEST(Missing, AHeaderOfALibraryIsNamed) {
    EXPECT_EQ(about_missing(
                  "a.cu:3:10: fatal error: cudnn.h: No such file or directory\n    3 | #include <cudnn.h>\n"),
              "a.cu:3: error: <cudnn.h> is of cuDNN, which does not exist on the CPU: leave out what needs "
              "it, or run "
              "the program with a GPU");
    EXPECT_EQ(
        about_missing(
            "In file included from a.cu:1:\nsub/b.h:7:10: fatal error: 'thrust/sort.h' file not found\n"),
        "sub/b.h:7: error: <thrust/sort.h> is of Thrust: apt-get install libthrust-dev");
    EXPECT_EQ(about_missing("\x1b[01m\x1b[Ka.cu:1:2:\x1b[m\x1b[K \x1b[01;31m\x1b[Kfatal error: "
                            "\x1b[m\x1b[Khelper_cuda.h: No such file or directory\n"),
              "a.cu:1: error: <helper_cuda.h> is of NVIDIA's samples: give their directory, -I "
              "cuda-samples/Common");
    EXPECT_NE(
        about_missing("a.cu:1:2: fatal error: cub/block/block_radix_rank.cuh: No such file or directory\n")
            .find("is not among the headers of CUB that exist here"),
        std::string::npos);
}

TEST(Missing, AFunctionOfALibraryIsNamed) {
    EXPECT_EQ(about_missing("a.cu:9:5: error: \u2018cusparseSgtsv2\u2019 was not declared in this scope\n"),
              "a.cu:9: error: 'cusparseSgtsv2' is not among what exists here of cuSPARSE: "
              "cuda_on_cpu/docs/libraries.md lists it");
    EXPECT_EQ(about_missing("a.cu:9:5: error: use of undeclared identifier 'cublasSgelsBatched'\n"),
              "a.cu:9: error: 'cublasSgelsBatched' is not among what exists here of cuBLAS: "
              "cuda_on_cpu/docs/libraries.md lists it");
    EXPECT_EQ(
        about_missing("a.cu:9: error: \u2018WarpLoad\u2019 is not a member of \u2018cub\u2019\n"),
        "a.cu:9: error: cub::WarpLoad is not among what exists here of CUB: cuda_on_cpu/docs/libraries.md "
        "lists it");
}

TEST(Missing, AClassOfCubIsNamedInAllWordsOfTheCompilers) {
    for (const char* errors : {"a.cu:2:206: error: \u2018WarpLoad\u2019 in namespace \u2018cub\u2019 does "
                               "not name a template type\n",
                               "a.cu:2:9: error: no template named 'WarpLoad' in namespace 'cub'\n"})
        EXPECT_EQ(about_missing(errors),
                  "a.cu:2: error: cub::WarpLoad is not among what exists here of CUB: "
                  "cuda_on_cpu/docs/libraries.md "
                  "lists it");
}

// Errors of the program, and warnings.
TEST(Missing, OtherErrorsAreLeftAlone) {
    for (const char* errors :
         {"", "a.cu:3:1: error: \u2018x\u2019 was not declared in this scope\n",
          "a.cu:3:10: fatal error: mine.h: No such file or directory\n",
          "a.cu:3:1: warning: cudnn.h: No such file or directory\n",
          "a.cu:3:1: error: expected \u2018;\u2019\n", "fatal error: ", "error: \u2018",
          "a.cu:1:1: error: \u2018load\u2019 is not a member of \u2018std\u2019\n",
          "a.cu:1:1: error: \u2018cublas\u2019 was not declared in this scope\n", "\x1b["})
        EXPECT_EQ(about_missing(errors), "") << errors;
}

}  // namespace
}  // namespace translator
