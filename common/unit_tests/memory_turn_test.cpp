#include "common/test/memory_turn.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

using course::MemoryTurn;
using std::chrono::milliseconds;

TEST(MemoryTurn, IsTakenByOneAtATime) {
    char name[] = "/tmp/memory_turn_XXXXXX";
    const int file = mkstemp(name);
    ASSERT_GE(file, 0);
    close(file);
    MemoryTurn first(name);
    MemoryTurn second(name);
    EXPECT_TRUE(first.take(milliseconds(0)));
    EXPECT_TRUE(first.take(milliseconds(0))) << "it has it already";
    EXPECT_FALSE(second.take(milliseconds(50)));
    std::thread gives_back([&] {
        std::this_thread::sleep_for(milliseconds(50));
        first.give_back();
    });
    EXPECT_TRUE(second.take(milliseconds(60'000)));
    gives_back.join();
    EXPECT_FALSE(first.take(milliseconds(0)));
    std::remove(name);
}

TEST(MemoryTurn, WithoutItsFileNeedsNoWait) {
    MemoryTurn first("/nonexistent/file");
    MemoryTurn second("/nonexistent/file");
    EXPECT_TRUE(first.take(milliseconds(0)));
    EXPECT_TRUE(second.take(milliseconds(0)));
}

}  // namespace
