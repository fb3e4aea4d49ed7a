// Inline PTX: special registers, operations of the threads of a warp or of a block together, and
// control flow (PTX ISA, "Special Registers", "Parallel Synchronization and Communication
// Instructions", "Miscellaneous Instructions").
#pragma once

#include "cuda_on_cpu/barriers.h"
#include "cuda_on_cpu/cluster.h"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/intrinsics.h"
#include "cuda_on_cpu/ptx_memory.h"
#include "cuda_on_cpu/warp.h"

namespace cuda_on_cpu::ptx::isa {

// ---- Special registers -------------------------------------------------------------------------------------------------

#define CUDA_ON_CPU_REGISTERS(name, vector) \
    inline std::uint32_t name##_x() {       \
        return vector.x;                    \
    }                                       \
    inline std::uint32_t name##_y() {       \
        return vector.y;                    \
    }                                       \
    inline std::uint32_t name##_z() {       \
        return vector.z;                    \
    }
CUDA_ON_CPU_REGISTERS(tid, threadIdx)
CUDA_ON_CPU_REGISTERS(ntid, blockDim)
CUDA_ON_CPU_REGISTERS(ctaid, blockIdx)
CUDA_ON_CPU_REGISTERS(nctaid, gridDim)
CUDA_ON_CPU_REGISTERS(clusterid, __clusterIdx())
CUDA_ON_CPU_REGISTERS(nclusterid, __clusterGridDimInClusters())
CUDA_ON_CPU_REGISTERS(cluster_ctaid, __clusterRelativeBlockIdx())
CUDA_ON_CPU_REGISTERS(cluster_nctaid, __clusterDim())
#undef CUDA_ON_CPU_REGISTERS

inline std::uint32_t cluster_ctarank() {
    return __clusterRelativeBlockRank();
}
inline std::uint32_t cluster_nctarank() {
    return __clusterSizeInBlocks();
}
inline bool is_explicit_cluster() {
    return cluster_is_given();
}
inline std::uint32_t laneid() {
    return current_lane;
}
inline std::uint32_t warpid() {
    return current_warp;
}
inline std::uint32_t nwarpid() {
    return 32;
}
// Blocks run on OS threads, each of which counts as a multiprocessor.
std::uint32_t smid();
std::uint32_t nsmid();
inline std::uint32_t lanemask_eq() {
    return 1u << current_lane;
}
inline std::uint32_t lanemask_lt() {
    return lanemask_eq() - 1;
}
inline std::uint32_t lanemask_le() {
    return lanemask_eq() | lanemask_lt();
}
inline std::uint32_t lanemask_ge() {
    return ~lanemask_lt();
}
inline std::uint32_t lanemask_gt() {
    return ~lanemask_le();
}
// A thread that reads the clock repeatedly may be waiting.
inline std::uint64_t clock64() {
    poll();
    return static_cast<std::uint64_t>(::clock64());
}
inline std::uint32_t clock() {
    return static_cast<std::uint32_t>(clock64());
}
inline std::uint32_t clock_hi() {
    return static_cast<std::uint32_t>(clock64() >> 32);
}
// Nanoseconds of the day's clock.
std::uint64_t globaltimer();
inline std::uint32_t globaltimer_lo() {
    return static_cast<std::uint32_t>(globaltimer());
}
inline std::uint32_t globaltimer_hi() {
    return static_cast<std::uint32_t>(globaltimer() >> 32);
}
inline std::uint32_t dynamic_smem_size() {
    return static_cast<std::uint32_t>(dynamic_shared_size());
}

// ---- Warps -------------------------------------------------------------------------------------------------------------

// Bits 0 to 4 of `c` bound the source lane; bits 8 to 12 are the mask of the bits that select the
// segment. False: the source lane is outside, and the lane gets its own value.
template <Mode kMode>
__forceinline__ void shfl_with(std::uint32_t& d, bool& p, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                               std::uint32_t mask, Site site = Site::here()) {
    const std::uint32_t lane = current_lane, by = b & 31, bound = c & 31, segment = c >> 8 & 31;
    const auto last = static_cast<int>((lane & segment) | (bound & ~segment));
    int from = 0;
    switch (kMode) {
        case Mode::up:
            from = static_cast<int>(lane) - static_cast<int>(by);
            break;
        case Mode::down:
            from = static_cast<int>(lane + by);
            break;
        case Mode::bfly:
            from = static_cast<int>(lane ^ by);
            break;
        default:
            from = static_cast<int>((lane & segment) | (by & ~segment));
    }
    p = kMode == Mode::up ? from >= last : from <= last;
    d = shuffle(mask, a, p ? static_cast<std::uint32_t>(from) : lane, "shfl.sync", site);
}
template <Mode kMode>
__forceinline__ std::uint32_t shfl(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t mask,
                                   Site site = Site::here()) {
    std::uint32_t d;
    bool p;
    shfl_with<kMode>(d, p, a, b, c, mask, site);
    return d;
}

inline std::uint32_t vote_ballot(bool a, std::uint32_t mask, Site site = Site::here()) {
    return ballot(mask, a, "vote.sync.ballot", site);
}
template <Mode kMode>
__forceinline__ bool vote(bool a, std::uint32_t mask, Site site = Site::here()) {
    if constexpr (kMode == Mode::any) return ballot(mask, a, "vote.sync.any", site) != 0;
    if constexpr (kMode == Mode::all) return ballot(mask, !a, "vote.sync.all", site) == 0;
    // Do all lanes have the same predicate?
    const std::uint32_t votes = ballot(mask, a, "vote.sync.uni", site);
    return votes == 0 || ballot(mask, !a, "vote.sync.uni", site) == 0;
}
template <class T>
__forceinline__ std::uint32_t match_any(Bits<T> a, std::uint32_t mask, Site site = Site::here()) {
    return match(mask, a, "match.any.sync", site).same;
}
template <class T>
__forceinline__ void match_all_with(std::uint32_t& d, bool& p, Bits<T> a, std::uint32_t mask,
                                    Site site = Site::here()) {
    const auto found = match(mask, a, "match.all.sync", site);
    p = found.same == found.lanes;
    d = p ? found.lanes : 0;
}
template <class T>
__forceinline__ std::uint32_t match_all(Bits<T> a, std::uint32_t mask, Site site = Site::here()) {
    std::uint32_t d;
    bool p;
    match_all_with<T>(d, p, a, mask, site);
    return d;
}
inline std::uint32_t activemask(Site site = Site::here()) {
    return converged_lanes(site);
}
template <class T, Op kOp>
struct FoldWith {
    Bits<T> operator()(Bits<T> a, Bits<T> b) const { return changed<T, kOp>(a, b); }
};
template <class T, Op kOp>
__forceinline__ Bits<T> redux(Bits<T> a, std::uint32_t mask, Site site = Site::here()) {
    return warp_fold(mask, a, FoldWith<T, kOp>{}, "redux.sync", site);
}
// The lowest lane of the mask is elected.
inline void elect(std::uint32_t& d, bool& p, std::uint32_t mask, Site site = Site::here()) {
    warp_barrier(mask, site);
    d = static_cast<std::uint32_t>(std::countr_zero(mask));
    p = d == current_lane;
}
inline void bar_warp_sync(std::uint32_t mask, Site site = Site::here()) {
    warp_barrier(mask, site);
}

// ---- Blocks and clusters -----------------------------------------------------------------------------------------------

// bar.red: waits, and returns the result of the vote.
int vote_at_named_barrier(BarrierKind kind, unsigned id, unsigned threads, bool predicate, Site site);

inline unsigned block_threads() {
    return blockDim.x * blockDim.y * blockDim.z;
}
// Whole warps count.
inline unsigned threads_of_warps() {
    return (block_threads() + 31) / 32 * 32;
}
inline void bar_sync_of(std::uint32_t id, std::uint32_t threads, Site site = Site::here()) {
    if (id == 0 && threads == threads_of_warps()) {
        block_barrier(BarrierKind::sync, 0, site);
    } else {
        named_barrier(id, threads, site);
    }
}
inline void bar_sync(std::uint32_t id, Site site = Site::here()) {
    bar_sync_of(id, threads_of_warps(), site);
}
inline void bar_arrive(std::uint32_t id, std::uint32_t threads, Site site = Site::here()) {
    named_barrier_arrive(id, threads, site);
}
inline int bar_red_of_kind(BarrierKind kind, std::uint32_t id, std::uint32_t threads, bool a, Site site) {
    if (id == 0 && threads == threads_of_warps()) return block_barrier(kind, a, site);
    return vote_at_named_barrier(kind, id, threads, a, site);
}
inline std::uint32_t bar_red_popc_of(std::uint32_t id, std::uint32_t threads, bool a,
                                     Site site = Site::here()) {
    return static_cast<std::uint32_t>(bar_red_of_kind(BarrierKind::count, id, threads, a, site));
}
inline std::uint32_t bar_red_popc(std::uint32_t id, bool a, Site site = Site::here()) {
    return bar_red_popc_of(id, threads_of_warps(), a, site);
}
template <Op kOp>
__forceinline__ bool bar_red_of(std::uint32_t id, std::uint32_t threads, bool a, Site site = Site::here()) {
    return bar_red_of_kind(kOp == Op::and_ ? BarrierKind::all : BarrierKind::any, id, threads, a, site) != 0;
}
template <Op kOp>
__forceinline__ bool bar_red(std::uint32_t id, bool a, Site site = Site::here()) {
    return bar_red_of<kOp>(id, threads_of_warps(), a, site);
}

// ---- The rest ----------------------------------------------------------------------------------------------------------

inline void nothing() {}
inline void nothing_with(std::uint32_t) {}
inline void nanosleep(std::uint32_t nanoseconds) {
    __nanosleep(nanoseconds);
}
inline void set_registers(std::uint32_t, Site site = Site::here()) {
    cuda_on_cpu::set_registers(site);
}
[[noreturn]] inline void trap(Site site = Site::here()) {
    device_failure(cudaErrorLaunchFailure, "trap", site);
}
inline void brkpt() {
    __brkpt();
}
// Ends the thread. Destructors do not run.
[[noreturn]] void exit();

}  // namespace cuda_on_cpu::ptx::isa

// barrier.sync as functions: all threads of the block, or a number of them, at one of 16 barriers.
inline void __barrier_sync(unsigned id, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::ptx::isa::bar_sync(id, site);
}
inline void __barrier_sync_count(unsigned id, unsigned threads,
                                 cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::ptx::isa::bar_sync_of(id, threads, site);
}
