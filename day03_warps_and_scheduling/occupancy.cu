// Occupancy by hand: how many blocks of a kernel are resident on an SM at the same time?
//                                                         PMPP chapter 4 (4th and 5th edition)
//
// An SM has a fixed number of slots for warps and for blocks, of registers, and of bytes of shared
// memory. A block becomes resident when there is room for all of it, and keeps its share until its
// last thread has ended.
#include <algorithm>

#include "common/bench/occupancy.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "warps.hpp"

namespace day03 {

using course::ceil_div;

// Each resource alone allows a number of blocks; the smallest number counts. Two resources are
// allocated in portions: a warp gets its registers in multiples of sm.register_portion, from the
// registers of one of sm.partitions equal partitions of the SM; a block gets its shared memory, and
// sm.reserved_shared_bytes with it, in multiples of sm.shared_portion.
int resident_blocks(const course::BlockNeeds& block, const course::MultiprocessorLimits& sm) {
    const int warps = ceil_div(block.threads, 32);
    const int by_warps = sm.warps / warps;

    int by_registers = sm.blocks;
    if (block.registers > 0) {  // the CPU counts none
        const int of_a_warp = ceil_div(32 * block.registers, sm.register_portion) * sm.register_portion;
        const int warps_in_a_partition = sm.registers / sm.partitions / of_a_warp;
        by_registers = warps_in_a_partition * sm.partitions / warps;
    }

    int by_shared_memory = sm.blocks;
    const std::size_t wanted = block.shared_bytes + sm.reserved_shared_bytes;
    if (wanted > 0)
        by_shared_memory =
            static_cast<int>(sm.shared_bytes / (ceil_div(wanted, sm.shared_portion) * sm.shared_portion));

    return std::min({sm.blocks, by_warps, by_registers, by_shared_memory});
}

}  // namespace day03
