// How often the memory system must move to serve one request of a warp.
//
// Shared memory has 32 banks, each 4 bytes wide; in one go (a wavefront) every bank delivers one
// word, to as many lanes as want it. More than 32 lanes times 4 bytes take several goes at best:
// lanes that ask for 8 bytes are served in halves of a warp, for 16 bytes in quarters. Atomics on
// one word are served one after the other. Global memory is moved in sectors of 32 bytes. The rules
// beyond that are the hardware's own, found with its counters:
// docs/measurements/h200/inspection_counts.json.
#pragma once

#include <array>
#include <cstdint>

#include "trace.hpp"

namespace cuda_on_cpu::inspector {

// One address for each lane; those of lanes outside the mask do not count.
using Addresses = std::array<std::uint64_t, kLanes>;

struct Count {
    unsigned transactions = 0;
    unsigned ideal = 0;
    unsigned bytes_used = 0;  // distinct bytes asked for

    bool operator==(const Count&) const = default;
};

// The sectors (address / 32) of a request, each once, in no particular order.
struct Sectors {
    std::array<std::uint64_t, 2 * kLanes> sector;  // a lane's 16 bytes may lie across a border
    unsigned count = 0;
};

// Wavefronts; `mask` is not empty, `bytes` 1, 2, 4, 8 or 16 a lane.
Count count_shared(Operation operation, LaneMask mask, const Addresses& addresses, unsigned bytes);
// Sectors, which are left in `sectors` too; an atomic operation may visit one several times.
Count count_global(Operation operation, LaneMask mask, const Addresses& addresses, unsigned bytes,
                   Sectors& sectors);
// Wavefronts of a load of `matrices` matrices; row i of matrix m, 16 bytes, is at rows[8 m + i].
Count count_matrix_load(const Addresses& rows, unsigned matrices);

}  // namespace cuda_on_cpu::inspector
