// The number of memory transactions that one request of a warp needs.
//
// Shared memory has 32 banks, each 4 bytes wide. In one wavefront every bank delivers one word, to
// all lanes that request it. More than 128 bytes need several wavefronts at best: requests of 8
// bytes per lane are served in halves of a warp, those of 16 bytes in quarters. Atomics on one word
// are served one after the other. Global memory is transferred in sectors of 32 bytes. The
// remaining rules are undocumented and were found with the hardware counters of an H200:
// docs/measurements/h200/inspection_counts.json.
#pragma once

#include <array>
#include <cstdint>

#include "trace.hpp"

namespace cuda_on_cpu::inspector {

inline constexpr unsigned kSectorBytes = 32;

// One address for each lane; those of lanes outside the mask are ignored.
using Addresses = std::array<std::uint64_t, kLanes>;

struct Count {
    unsigned transactions = 0;
    unsigned ideal = 0;
    // Distinct bytes.
    unsigned bytes_used = 0;

    bool operator==(const Count&) const = default;
};

// The distinct sectors (address / 32) of a request, in no particular order.
struct Sectors {
    // A lane's 16 bytes may span two sectors.
    std::array<std::uint64_t, 2 * kLanes> sector;
    unsigned count = 0;
};

// Counts wavefronts; `mask` is not empty, `bytes` is 1, 2, 4, 8 or 16 per lane.
Count count_shared(Operation operation, LaneMask mask, const Addresses& addresses, unsigned bytes);
// Counts sectors, which are also returned in `sectors`; an atomic operation may visit one several
// times.
Count count_global(Operation operation, LaneMask mask, const Addresses& addresses, unsigned bytes,
                   Sectors& sectors);
// Counts the wavefronts of a load or store of `matrices` matrices; row i of matrix m, 16 bytes, is
// at rows[8 m + i].
Count count_matrices(const Addresses& rows, unsigned matrices);

}  // namespace cuda_on_cpu::inspector
