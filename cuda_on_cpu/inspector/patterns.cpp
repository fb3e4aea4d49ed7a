#include "patterns.hpp"

#include <algorithm>

namespace cuda_on_cpu::inspector {

void Pattern::set(Action action, const Addresses& addresses, std::uint64_t to_gpu) {
    action_ = action;
    addresses_ = addresses;
    to_gpu_ = to_gpu;
    const auto [lowest, highest] = std::ranges::minmax(addresses);
    lowest_ = lowest;
    highest_ = highest;
    Addresses gpu = addresses;
    for (std::uint64_t& address : gpu)
        address += to_gpu;
    constexpr LaneMask kAll = ~LaneMask{0};
    sectors_.count = 0;
    count_ = action.space() == Space::kShared
                 ? count_shared(action.operation(), kAll, gpu, action.bytes())
                 : count_global(action.operation(), kAll, gpu, action.bytes(), sectors_);
    make_groups();
}

void Pattern::make_groups() {
    group_count_ = 0;
    const unsigned bytes = action_.bytes();
    if (action_.operation() != Operation::kLoad || action_.space() != Space::kGlobal || bytes < 4) return;
    for (unsigned first = 0; first < kLanes;) {
        const auto end_of_group = [&](std::uint64_t step) {
            unsigned lane = first + 1;
            while (lane < kLanes && addresses_[lane] == addresses_[lane - 1] + step &&
                   (step == 0 || addresses_[lane] % kLineBytes != 0))
                ++lane;
            return lane;
        };
        const unsigned same = end_of_group(0);
        const unsigned end = same > first + 1 ? same : end_of_group(bytes);
        groups_[group_count_++] = {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(end - first),
                                   same > first + 1};
        first = end;
    }
}

}  // namespace cuda_on_cpu::inspector
