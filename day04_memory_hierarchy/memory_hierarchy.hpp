// The host API of day 4. The kernels are in memory_hierarchy.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day04 {

// --- Latency: a list that one thread follows -----------------------------------------------------

// A ring of lines of 128 bytes in random order. The first word of line l is next[32 l].
struct Ring {
    std::vector<unsigned> order;  // the lines, in the order of the list: each once
    std::vector<unsigned> next;   // order.size() words: of line l, where its successor starts, in words

    // The word at which the list is after `steps` steps from order[rank].
    unsigned after(std::size_t rank, std::size_t steps) const;
};
Ring random_ring(std::size_t lines, std::uint64_t seed);

struct Chase {
    std::size_t lines = 0;  // 1 to 2^27 - 1
    unsigned steps = 0;
};

// Enqueues `steps` steps from word `start` of `next`, which has 32 words for each line; *last is
// then the word that was reached. `start` is the first word of a line. Throws std::invalid_argument
// for a bad argument, CudaError when the launch fails.
using ChaseLauncher = void (*)(course::DeviceSpan<const unsigned> next, unsigned start, unsigned steps,
                               course::DeviceSpan<unsigned> last, cudaStream_t stream);
using ChaseVersion = course::Version<ChaseLauncher, Chase>;
std::span<const ChaseVersion> chase_versions();

// --- Bandwidth: sums of all elements -------------------------------------------------------------

struct Read {
    std::size_t elements = 0;
    unsigned blocks_per_sm = 8;  // 1 to 8, of 8 warps each
};

// Threads of a grid with this many blocks on each SM of the current device.
std::size_t read_threads(unsigned blocks_per_sm);

// Enqueues the kernel. `sums` has an element for each thread; together they are the sum of x modulo
// 2^32. x starts at a multiple of 16 bytes. Throws as above.
using ReadLauncher = void (*)(course::DeviceSpan<const unsigned> x, unsigned blocks_per_sm,
                              course::DeviceSpan<unsigned> sums, cudaStream_t stream);
struct ReadVersion : course::Version<ReadLauncher, Read> {
    unsigned bytes_in_flight = 4;  // of a thread
};
std::span<const ReadVersion> read_versions();

// The sum of all elements, modulo 2^32.
unsigned sum_on_cpu(std::span<const unsigned> x);

}  // namespace day04
