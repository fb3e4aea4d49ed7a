#include "few_blocks.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "cuda_on_cpu/few_blocks.h"
#include "environment.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::uint64_t kOnEachSide = 4;
constexpr unsigned kManyMultiprocessors = 1U << 22;

thread_local std::optional<std::vector<double>> chosen_places;

}  // namespace

FewBlocks::FewBlocks(std::vector<double> places) {
    chosen_places = std::move(places);
}

FewBlocks::~FewBlocks() {
    chosen_places.reset();
}

std::optional<std::vector<std::uint64_t>> few_blocks_of(std::uint64_t blocks) {
    if (!chosen_places) {
        const std::uint64_t first = environment().first_blocks;
        if (first == 0 || first >= blocks) return std::nullopt;
        std::vector<std::uint64_t> run(first);
        std::iota(run.begin(), run.end(), std::uint64_t{0});
        return run;
    }
    std::set<std::uint64_t> run;
    for (const double place : *chosen_places) {
        const auto middle = static_cast<std::uint64_t>(place * static_cast<double>(blocks - 1));
        const std::uint64_t first = middle - std::min(middle, kOnEachSide);
        const std::uint64_t last = std::min(middle + kOnEachSide, blocks - 1);
        for (std::uint64_t block = first; block <= last; ++block)
            run.insert(block);
    }
    return std::vector(run.begin(), run.end());
}

unsigned pretended_multiprocessors() {
    return chosen_places ? kManyMultiprocessors : 0;
}

}  // namespace cuda_on_cpu
