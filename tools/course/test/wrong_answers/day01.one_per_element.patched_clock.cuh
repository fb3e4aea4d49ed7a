// A clock of its own, which runs at half the speed.
// exercise: day01/one_per_element
// expect: defines std::chrono::_V2::steady_clock::now\(\)
// added to the solution: vector_add.cuh
#include <time.h>

#include <chrono>

std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return time_point(duration((now.tv_sec * 1'000'000'000 + now.tv_nsec) / 2));
}
