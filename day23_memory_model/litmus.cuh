// Litmus tests: programs of two to four threads and two words, x and y, both 0 at first. Each asks
// whether an outcome is possible that no order of the threads' accesses explains.
//
//   message_passing   x = 1; y = 1       | r0 = y; r1 = x        r0 = 1, r1 = 0: flag seen, data not
//   store_buffering   x = 1; r0 = y      | y = 1; r1 = x         r0 = 0, r1 = 0: neither store seen
//   load_buffering    r0 = x; y = 1      | r1 = y; x = 1         r0 = 1, r1 = 1: both seen too early
//   coherence         x = 1              | r0 = x; r1 = x        r0 = 1, r1 = 0: new value, then old
//   two_readers       x = 1 | y = 1      | r0 = x; r1 = y | r2 = y; r3 = x
//                                                                1, 0, 1, 0: the readers disagree
//
// (two_readers is known as IRIW: independent reads of independent writes.) Each kernel runs a test
// in many *instances* at once. An instance has two words of its own. A block has one *role*: its
// threads run the same part of the test in different instances, so that the roles of an instance
// are in different blocks.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cuda/atomic>

namespace day23::litmus {

constexpr unsigned kThreads = 64;  // of a block, each with an instance
constexpr int kRegisters = 4;      // of an instance: r0 to r3

// How a word is accessed.
enum class Access {
    kPlain,           // word = 1
    kVolatile,        // volatile: the compiler keeps the access, and its order among volatile ones
    kRelaxed,         // atomic
    kOrdered,         // atomic: a load acquires, a store releases
    kOrderedInBlock,  // the same for the threads of one block only
    kSequential       // atomic: one order of all such accesses
};

template <Access kAccess>
__device__ inline void store(unsigned& word, unsigned value) {
    if constexpr (kAccess == Access::kPlain) {
        word = value;
    } else if constexpr (kAccess == Access::kVolatile) {
        *const_cast<volatile unsigned*>(&word) = value;
    } else if constexpr (kAccess == Access::kOrderedInBlock) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_block>(word).store(value, cuda::memory_order_release);
    } else {
        constexpr cuda::memory_order kOrder = kAccess == Access::kRelaxed   ? cuda::memory_order_relaxed
                                              : kAccess == Access::kOrdered ? cuda::memory_order_release
                                                                            : cuda::memory_order_seq_cst;
        cuda::atomic_ref<unsigned, cuda::thread_scope_device>(word).store(value, kOrder);
    }
}

template <Access kAccess>
__device__ inline unsigned load(unsigned& word) {
    if constexpr (kAccess == Access::kPlain) {
        return word;
    } else if constexpr (kAccess == Access::kVolatile) {
        return *const_cast<volatile unsigned*>(&word);
    } else if constexpr (kAccess == Access::kOrderedInBlock) {
        return cuda::atomic_ref<unsigned, cuda::thread_scope_block>(word).load(cuda::memory_order_acquire);
    } else {
        constexpr cuda::memory_order kOrder = kAccess == Access::kRelaxed   ? cuda::memory_order_relaxed
                                              : kAccess == Access::kOrdered ? cuda::memory_order_acquire
                                                                            : cuda::memory_order_seq_cst;
        return cuda::atomic_ref<unsigned, cuda::thread_scope_device>(word).load(kOrder);
    }
}

// What stands between the two accesses of a thread.
enum class Fence { kNone, kBlock, kDevice };

template <Fence kFence>
__device__ inline void fence() {
    if constexpr (kFence == Fence::kBlock) __threadfence_block();
    if constexpr (kFence == Fence::kDevice) __threadfence();
}

// The memory of a launch.
struct Memory {
    unsigned* words;      // 2 for each instance: every x, and then every y; 0 before the launch
    unsigned* registers;  // kRegisters for each instance: what the loads returned
    unsigned* met;        // for each group of blocks with the same instances: how many have started
};

// A thread's part of a test.
struct Part {
    unsigned role;
    unsigned &x, &y;
    unsigned* registers;
};

// Blocks 0 to kRoles - 1 have the same instances, and so on. They wait for one another, a limited
// time, because parts that run one after the other show nothing. Each role takes the
// instances in another order: 1 + 16 role is odd, so it has no common divisor with kThreads, and
// each instance occurs once.
//
// A block's x are adjacent, its y are `groups` words apart. Where both lie decides how often a weak
// outcome shows. In 10^9 runs of store buffering with relaxed accesses an H200 showed it
// 8,791,975 times, and in 33,792,000 with each y 8 words behind its x never.
template <unsigned kRoles>
__device__ inline Part part_of(const Memory& memory) {
    const unsigned role = blockIdx.x % kRoles;
    const unsigned group = blockIdx.x / kRoles;
    if (threadIdx.x == 0) {
        const cuda::atomic_ref<unsigned, cuda::thread_scope_device> met(memory.met[group]);
        met.fetch_add(1, cuda::memory_order_relaxed);
        for (int polls = 0; polls < 1000 && met.load(cuda::memory_order_relaxed) < kRoles; ++polls) {
        }
    }
    __syncthreads();
    const unsigned thread = (threadIdx.x * (1 + 16 * role) + 5 * role) % kThreads;
    const std::size_t instance = std::size_t{group} * kThreads + thread;
    const std::size_t groups = gridDim.x / kRoles;
    unsigned* const every_y = memory.words + groups * kThreads;
    return {role, memory.words[instance], every_y[thread * groups + group],
            memory.registers + instance * kRegisters};
}

// x is the data, y the flag. Data that are plain must not be read by a thread that has not seen the
// flag, because they may be written meanwhile. So it waits a limited time, and then reports 1, as
// if it had been right.
template <Access kFlag, Fence kWriters = Fence::kNone, Fence kReaders = Fence::kNone,
          Access kData = Access::kPlain>
__global__ void message_passing(Memory memory) {
    constexpr int kPolls = kData == Access::kPlain ? 1000 : 0;
    const Part me = part_of<2>(memory);
    if (me.role == 0) {
        store<kData>(me.x, 1);
        fence<kWriters>();
        store<kFlag>(me.y, 1);
    } else {
        unsigned flag = load<kFlag>(me.y);
        for (int polls = 0; polls < kPolls && flag == 0; ++polls)
            flag = load<kFlag>(me.y);
        fence<kReaders>();
        const bool may_read = kData != Access::kPlain || flag == 1;
        const unsigned data = may_read ? load<kData>(me.x) : 1;
        me.registers[0] = flag;
        me.registers[1] = data;
    }
}

template <Access kAccess, Fence kFence = Fence::kNone>
__global__ void store_buffering(Memory memory) {
    const Part me = part_of<2>(memory);
    unsigned& mine = me.role == 0 ? me.x : me.y;
    unsigned& other = me.role == 0 ? me.y : me.x;
    store<kAccess>(mine, 1);
    fence<kFence>();
    me.registers[me.role] = load<kAccess>(other);
}

template <Access kAccess, Fence kFence = Fence::kNone>
__global__ void load_buffering(Memory memory) {
    const Part me = part_of<2>(memory);
    unsigned& first = me.role == 0 ? me.x : me.y;
    unsigned& second = me.role == 0 ? me.y : me.x;
    const unsigned seen = load<kAccess>(first);
    fence<kFence>();
    store<kAccess>(second, 1);
    me.registers[me.role] = seen;
}

template <Access kAccess>
__global__ void coherence(Memory memory) {
    const Part me = part_of<2>(memory);
    if (me.role == 0) {
        store<kAccess>(me.x, 1);
    } else {
        const unsigned before = load<kAccess>(me.x);
        const unsigned after = load<kAccess>(me.x);
        me.registers[0] = before;
        me.registers[1] = after;
    }
}

template <Access kAccess, Fence kFence = Fence::kNone>
__global__ void two_readers(Memory memory) {
    const Part me = part_of<4>(memory);
    if (me.role < 2) {
        store<kAccess>(me.role == 0 ? me.x : me.y, 1);
        return;
    }
    unsigned* const registers = me.registers + 2 * (me.role - 2);
    const unsigned first = load<kAccess>(me.role == 2 ? me.x : me.y);
    fence<kFence>();
    const unsigned second = load<kAccess>(me.role == 2 ? me.y : me.x);
    registers[0] = first;
    registers[1] = second;
}

// counts[r0 + 2 r1 + 4 r2 + 8 r3] becomes the number of instances with these registers, added to
// what it is. Registers that the test does not have count as 0.
__global__ void count_outcomes(const unsigned* registers, unsigned instances, unsigned used,
                               unsigned long long* counts) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= instances) return;
    unsigned outcome = 0;
    for (unsigned r = 0; r < used; ++r)
        outcome |= registers[std::size_t{i} * kRegisters + r] << r;
    atomicAdd(&counts[outcome], 1ULL);
}

template <class Kernel>
void launch(Kernel* kernel, const Memory& memory, unsigned groups, unsigned roles, cudaStream_t stream) {
    kernel<<<groups * roles, kThreads, 0, stream>>>(memory);
}

}  // namespace day23::litmus
