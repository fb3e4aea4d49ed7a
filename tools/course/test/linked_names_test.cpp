#include "linked_names.hpp"

#include <gtest/gtest.h>

namespace course::tool {
namespace {

// The lesson's object launches and allocates; the reference and the tests' helpers are beside it.
constexpr const char* kArchives =
    "day01/libday.a:sum.cu.o:                 U cudaGetLastError\n"
    "day01/libday.a:sum.cu.o:0000000000000000 T _ZN3day6launchEv\n"
    "day01/libday.a:sum_reference.cpp.o:0000000000000000 T _ZN3day3sumEv\n"
    "common/libcommon.a:verify.cpp.o:0000000000000000 T _ZN6course6verifyEv\n"
    "common/libcommon.a:verify.cpp.o:0000000000000000 W _ZN6course5guardEv\n"
    "cuda/libcuda.a:unity_0_cxx.cxx.o:0000000000000000 T cudaGetLastError\n";

std::string tampering(const std::string& type, const std::string& name) {
    const std::string blank(type == "U" ? 17 : 0, ' ');
    return tampering_in(
        "exercises/day01/sum.cu.o:" + (type == "U" ? blank : "0000000000000000 ") + type + " " + name + "\n",
        kArchives, "");
}

TEST(LinkedNames, WhatTheLessonDefinesOrCallsIsNoTampering) {
    EXPECT_EQ(tampering("T", "_ZN3day6launchEv"), "");
    EXPECT_EQ(tampering("U", "cudaGetLastError"), "");
    EXPECT_EQ(tampering("V", "DW.ref.__gxx_personality_v0"), "");
    EXPECT_EQ(tampering("T", "_ZN3day9my_kernelEv"), "");
    EXPECT_EQ(tampering("B", "total"), "") << "a __device__ variable outside of all namespaces";
    EXPECT_EQ(tampering("W", "_ZNSt6vectorIfSaIfEED1Ev"), "");
    EXPECT_EQ(tampering("W", "_ZN6course5guardEv"), "") << "an inline function of a common header";
    EXPECT_EQ(tampering("U", "printf"), "");
}

TEST(LinkedNames, ADefinitionThatTakesThePlaceOfAnotherIsTold) {
    EXPECT_EQ(tampering("T", "write"), "    it defines write, which the tests have already\n");
    EXPECT_EQ(tampering("W", "write"), "    it defines write, which the tests have already\n");
    EXPECT_EQ(tampering("T", "cudaGetLastError"),
              "    it defines cudaGetLastError, which the tests have already\n")
        << "the lesson only calls it";
    EXPECT_EQ(tampering("T", "main"), "    it defines main, which the tests have already\n");
    EXPECT_EQ(tampering("T", "cudaEventElapsedTime"),
              "    it defines cudaEventElapsedTime, which the tests have already\n");
    EXPECT_EQ(tampering("T", "_ZN3day3sumEv"), "    it defines day::sum(), which the tests have already\n");
    EXPECT_EQ(tampering("W", "_ZN6course6verifyEv"),
              "    it defines course::verify(), which the tests have already\n");
    EXPECT_EQ(tampering("T", "_ZN6course5guardEv"),
              "    it defines course::guard(), which the tests have already\n");
    EXPECT_EQ(tampering("T", "_Znwm"),
              "    it defines operator new(unsigned long), which the tests have already\n");
    EXPECT_EQ(tampering("T", "_ZNSt6chrono3_V212steady_clock3nowEv"),
              "    it defines std::chrono::_V2::steady_clock::now(), which the tests have already\n");
}

TEST(LinkedNames, CallsBehindTheTestsBackAreTold) {
    EXPECT_EQ(tampering("U", "_ZN3day3sumEv"), "    it calls the reference, day::sum()\n");
    for (const char* const name : {"cudaStreamIsCapturing", "cudaLaunchHostFunc_v2", "pthread_create", "fork",
                                   "execve", "fopen64", "dlsym", "setenv", "_exit"})
        EXPECT_EQ(tampering("U", name), "    it calls " + std::string(name) + "\n");
}

TEST(LinkedNames, AWholeProgramHasAMainAndMayReadFiles) {
    EXPECT_EQ(tampering_in("x/exercises/day00/add.cu.o:0000000000000000 T main\n"
                           "x/exercises/day00/add.cu.o:                 U fopen\n",
                           kArchives, ""),
              "");
}

TEST(LinkedNames, CodeThatRunsBeforeTheTestsIsTold) {
    const std::string mine = "exercises/day01/sum.cu.o:0000000000000000 T _ZN3day6launchEv\n";
    EXPECT_EQ(tampering_in(mine, kArchives, "  [ 7] .init_array       INIT_ARRAY 0\n"), "");
    EXPECT_EQ(tampering_in(mine, kArchives, "  [ 7] .preinit_array    PREINIT_ARRAY 0\n"),
              "    it has code that runs before the tests are ready (.preinit_array)\n");
}

}  // namespace
}  // namespace course::tool
