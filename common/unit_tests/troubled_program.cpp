// A test program whose tests fail in every way; main_test.cpp runs it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

// Acts like a sanitizer that finds a leak after all tests have passed.
void fail() {
    std::puts("a leak");
    std::fflush(stdout);
    std::_Exit(1);
}
const bool fails_at_exit = std::getenv("COURSE_TROUBLE_AT_EXIT") != nullptr && std::atexit(fail) == 0;

TEST(First, Passes) {}

TEST(First, Fails) {
    EXPECT_EQ(1, 2) << "\"one\" \xff";
}

TEST(First, IsSkipped) {
    GTEST_SKIP() << "needs luck";
}

TEST(Second, Crashes) {
    std::printf("words before the end\n");
    std::fflush(stdout);
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
}

TEST(Second, Exits) {
    std::_Exit(0);
}

TEST(Second, Hangs) {
    if (std::getenv("COURSE_TEST_LIMIT") != nullptr) sleep(60);
}

TEST(Third, DISABLED_IsLeftOut) {
    FAIL();
}

TEST(Third, PassesAfterwards) {}

}  // namespace
