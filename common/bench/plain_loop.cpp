#include "common/bench/plain_loop.hpp"

#include <fmt/format.h>
#include <omp.h>

namespace course {

std::string plain_loop_name(int threads) {
    return fmt::format("plain_loop_{}_thread{}", threads, threads == 1 ? "" : "s");
}

std::vector<int> plain_loop_threads() {
    const int all = omp_get_max_threads();
    return all == 1 ? std::vector{1} : std::vector{1, all};
}

std::string too_long_for_a_plain_loop(double seconds) {
    constexpr double kMostSeconds = 20;
    return seconds <= kMostSeconds ? "" : fmt::format("it would take about {:.0f} s", seconds);
}

int repeats_of_plain_loop(double seconds) {
    constexpr double kMostToRepeat = 5;
    return seconds <= kMostToRepeat ? 3 : 1;
}

}  // namespace course
