// The running CUDA thread, and the ways in which it can wait for others. All device code that
// involves a second thread uses the functions in this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/spin_hint.h"
#include "driver_types.h"
#include "vector_types.h"

// Plain objects, one set per OS thread (an OS thread runs one block at a time), so that gdb can
// print them.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
inline constexpr int warpSize = 32;

namespace cuda_on_cpu {

// Lane of the running thread in its warp, and its warp in the block.
extern constinit thread_local unsigned current_lane;
extern constinit thread_local unsigned current_warp;

// True while a kernel runs on this OS thread: some functions (assert, printf, cudaMalloc) may be
// called from both host and device code.
bool in_kernel();

// --- Block barrier ---------------------------------------------------------------------------------------------

enum class BarrierKind { sync, count, all, any, split };

// Waits until every thread of the block that has not exited has arrived. Returns the count,
// conjunction or disjunction of `predicate` over the block. Arriving from two different places in
// the source is an error.
int block_barrier(BarrierKind kind, int predicate, Site site);

// The same barrier in two halves: each thread arrives and later waits for the others, each once per
// phase.
void block_barrier_arrive(Site site);
void block_barrier_wait(Site site);

// --- Warp collectives ------------------------------------------------------------------------------------------

// The view of the last lane to arrive: one operand per lane of `mask`, each in the frame of its
// lane.
struct Lanes {
    unsigned mask;
    void* const* operands;

    template <class T>
    T& at(unsigned lane) const {
        return *static_cast<T*>(operands[lane]);
    }
    bool holds(unsigned lane) const { return (mask >> lane & 1U) != 0; }
};
using CollectiveWork = void (*)(const Lanes&);

// May the mask name lanes that have ended? Barriers, votes and shuffles ignore them, as on a GPU,
// but a value shuffled from such a lane is undefined, which an inspection reports, as NVIDIA's
// synccheck does. Tensor cores need all 32 lanes.
enum class Ended { refused, reported, allowed };

// Waits until all lanes of `mask` have called it with the same mask and the same work; the last
// lane to arrive does the work for all. It is an error if the mask lacks the calling lane, if it
// contains ended lanes and these are not allowed, or if lanes disagree on the work. Lanes beyond
// the end of a small block are removed from the mask.
void warp_collective(unsigned mask, void* operand, CollectiveWork work, const char* name, Site site,
                     Ended ended = Ended::refused);

// A lane has read lane `source` in a shuffle, which did not take part. With
// CUDA_ON_CPU_SHUFFLES=tell the first of these in a process is reported, because a wrong result
// does not show where it comes from. It is no error: a kernel may ignore the value.
void note_undefined_shuffle(unsigned mask, unsigned source, const char* name, Site site);

// Like warp_collective() for a tile of several warps: 64 to 1024 threads of consecutive rank.
// `operands` are those of its threads, in order of rank.
using TileWork = void (*)(void* const* operands, unsigned threads);
void tile_collective(unsigned size, void* operand, TileWork work, const char* name, Site site);

// Returns the lanes of the warp that are at this place together: waits until every other lane waits
// elsewhere or has exited.
unsigned converged_lanes(Site site);

// --- Several blocks --------------------------------------------------------------------------------------------

// Barriers over all blocks of a cooperative grid, and (in two halves) over all threads of a
// cluster.
void grid_barrier(Site site);
bool grid_barrier_available();
void cluster_barrier_arrive(Site site);
void cluster_barrier_wait(Site site);
dim3 cluster_dimensions();
bool cluster_is_given();  // by the launch or the kernel
uint3 cluster_block_index();
unsigned cluster_block_rank();
// The address of the same shared-memory object in another block of the cluster, and the rank of the
// block to whose shared memory a pointer points.
void* map_shared(const void* pointer, unsigned rank, Site site);
unsigned shared_rank(const void* pointer, Site site);

// --- Shared memory ---------------------------------------------------------------------------------------------

void* dynamic_shared();
std::size_t dynamic_shared_size();

// Differs from that of every other block of this OS thread.
extern constinit thread_local std::uint64_t current_block;
// `gap` bytes before and after the object are unused. If `alone` is false, they may hold variables
// of the same declaration.
void enter_shared(void* object, std::size_t size, bool poison, const char* name, std::size_t gap = 0,
                  bool alone = false);
// Unused bytes that are declared before and after a `__shared__` variable: the compiler places the
// three side by side, in this order or in reverse. A gap that lies elsewhere is not used.
struct SharedGap {
    char bytes[256] = {};  // with a value, as clang++ demands of `constinit`
};
void enter_shared(void* object, std::size_t size, bool poison, const char* name, SharedGap& one,
                  SharedGap& other);

// One object for each `__shared__` variable: the first thread of a block to reach the declaration
// poisons the variable, because on a GPU the variable contains leftovers of other blocks.
class alignas(64) SharedVariable {  // as what it lies beside: no gap is lost to alignment
  public:
    // `gaps`: a size, and whether the variable is alone between them; or two of SharedGap.
    template <class T, class... Gaps>
    void enter(T& object, const char* name, Gaps&&... gaps) {
        if (seen_by_ == current_block) return;
        seen_by_ = current_block;
        enter_shared(const_cast<std::remove_volatile_t<T>*>(&object), sizeof object,
                     std::is_trivially_default_constructible_v<std::remove_all_extents_t<T>>, name, gaps...);
    }

  private:
    std::uint64_t seen_by_ = 0;
};

// --- Parameters ----------------------------------------------------------------------------------------------------

// The location of a thread's __grid_constant__ parameters. The translator declares such a list in
// kernels of files that query the state space of an address.
struct GridConstant {
    const volatile void* begin;
    std::size_t size;
};
void set_grid_constants(const GridConstant* first, std::size_t count);
template <std::size_t kCount>
class GridConstants {
  public:
    template <class... Parameters>
    explicit GridConstants(const Parameters&... parameters)
        : list_{{__builtin_addressof(parameters), sizeof parameters}...} {
        set_grid_constants(list_, sizeof...(parameters));
    }
    ~GridConstants() { set_grid_constants(nullptr, 0); }
    GridConstants(const GridConstants&) = delete;
    GridConstants& operator=(const GridConstants&) = delete;

  private:
    GridConstant list_[kCount + 1];  // a parameter pack may be empty
};
template <class... Parameters>
explicit GridConstants(const Parameters&...) -> GridConstants<sizeof...(Parameters)>;

// --- The end ---------------------------------------------------------------------------------------------------

// Ends the launch: prints `message` with the place and the thread. The launch then returns `error`,
// as on a GPU.
[[noreturn]] void device_failure(cudaError_t error, const char* message, Site site);

}  // namespace cuda_on_cpu
