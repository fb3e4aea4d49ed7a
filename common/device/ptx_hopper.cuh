// PTX instructions of compute capability 9.0a (Hopper), one typed function each: the continuation
// of ptx.cuh.
//
// Names of sections are those of NVIDIA's "Parallel Thread Execution ISA". Only a
// course_hopper_library can include this file: code for 90a runs only on 9.0, and launchers check
// the device first.
//
// Pointers are generic addresses of shared memory. "memory" keeps the compiler from moving memory
// accesses across the instruction.
#pragma once

#include <cuda.h>  // CUtensorMap: for the type only; the driver library is not linked
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "ptx_hopper.cuh needs code for 90a: make the target with course_hopper_library"
#endif

namespace course::ptx {

#ifdef CUDA_ON_CPU

// As in ptx.cuh, named with using and not wrapped.
using cuda_on_cpu::ptx::cluster_arrive;
using cuda_on_cpu::ptx::cluster_rank;
using cuda_on_cpu::ptx::cluster_wait;
using cuda_on_cpu::ptx::fence_mbarrier_init;
using cuda_on_cpu::ptx::fence_proxy_async;
using cuda_on_cpu::ptx::MBarrier;
using cuda_on_cpu::ptx::mbarrier_arrive;
using cuda_on_cpu::ptx::mbarrier_arrive_at;
using cuda_on_cpu::ptx::mbarrier_arrive_expect;
using cuda_on_cpu::ptx::mbarrier_init;
using cuda_on_cpu::ptx::mbarrier_inval;
using cuda_on_cpu::ptx::mbarrier_try_wait;
using cuda_on_cpu::ptx::mbarrier_wait;
using cuda_on_cpu::ptx::named_barrier;
using cuda_on_cpu::ptx::named_barrier_arrive;
using cuda_on_cpu::ptx::prefetch;
using cuda_on_cpu::ptx::registers_decrease;
using cuda_on_cpu::ptx::registers_increase;
using cuda_on_cpu::ptx::stmatrix_x4;
using cuda_on_cpu::ptx::stmatrix_x4_trans;
using cuda_on_cpu::ptx::tma_load;
using cuda_on_cpu::ptx::tma_load_im2col;
using cuda_on_cpu::ptx::tma_load_multicast;
using cuda_on_cpu::ptx::tma_store;
using cuda_on_cpu::ptx::tma_store_commit;
using cuda_on_cpu::ptx::tma_store_wait;
using cuda_on_cpu::ptx::tma_store_wait_read;
using cuda_on_cpu::ptx::wgmma;
using cuda_on_cpu::ptx::wgmma_commit;
using cuda_on_cpu::ptx::wgmma_fence;
using cuda_on_cpu::ptx::wgmma_set;
using cuda_on_cpu::ptx::wgmma_tf32;
using cuda_on_cpu::ptx::wgmma_tf32_set;
using cuda_on_cpu::ptx::wgmma_wait;
using cuda_on_cpu::ptx::wgmma_wait_in_branch;
using cuda_on_cpu::ptx::isa::bulk_load;
using cuda_on_cpu::ptx::isa::bulk_reduce_add;
using cuda_on_cpu::ptx::isa::bulk_store;

template <class Register>
void hold(Register&) {}

#endif

namespace detail {

// PTX ISA, cvta: the address within shared memory.
__device__ inline unsigned shared_window(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace detail

#ifndef CUDA_ON_CPU

// ---- Barriers in shared memory that count arrivals and bytes ------------------------------------
//
// A phase of an mbarrier completes when all of its arrivals have happened and all expected bytes
// have been written. Phases alternate in parity, 0 first. A wait names the parity of the phase that
// must have completed. So waiting for parity 1 on a fresh barrier returns immediately: the phase
// "before" the first counts as complete.

using MBarrier = std::uint64_t;

// PTX ISA, mbarrier.init: a phase takes `arrivals` arrivals. One thread initialises the barrier;
// the other threads must synchronise with it before they use the barrier.
__device__ inline void mbarrier_init(MBarrier* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_window(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// PTX ISA, mbarrier.inval: the memory can be reused for other data.
__device__ inline void mbarrier_inval(MBarrier* barrier) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(detail::shared_window(barrier)) : "memory");
}

// PTX ISA, fence.mbarrier_init: makes initialised barriers visible to the other blocks of the
// cluster and to bulk copies. A barrier between the threads must follow.
__device__ inline void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// PTX ISA, mbarrier.arrive: one arrival at a barrier of this block.
__device__ inline void mbarrier_arrive(MBarrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(detail::shared_window(barrier)) : "memory");
}

// PTX ISA, mapa and mbarrier.arrive with .shared::cluster: one arrival at the barrier that block
// `rank` of the cluster has at the same address. It signals that this thread has finished reading,
// and publishes none of its writes: a release at cluster scope would wait for all of its stores,
// which takes hundreds of cycles each time.
__device__ inline void mbarrier_arrive_at(MBarrier* barrier, unsigned rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(detail::shared_window(barrier)),
        "r"(rank)
        : "memory");
}

// PTX ISA, mbarrier.arrive.expect_tx: one arrival, and the phase now also waits for `bytes` of bulk
// copies.
__device__ inline void mbarrier_arrive_expect(MBarrier* barrier, unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_window(barrier)),
        "r"(bytes)
        : "memory");
}

// PTX ISA, mbarrier.try_wait.parity: has the phase of this parity ended? May suspend the thread
// for a while before it returns false.
__device__ inline bool mbarrier_try_wait(MBarrier* barrier, unsigned parity) {
    unsigned ended;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n"
        "}"
        : "=r"(ended)
        : "r"(detail::shared_window(barrier)), "r"(parity)
        : "memory");
    return ended != 0;
}

__device__ inline void mbarrier_wait(MBarrier* barrier, unsigned parity) {
    while (!mbarrier_try_wait(barrier, parity)) {
    }
}

// ---- Tensor memory accelerator: boxes of a matrix between global and shared memory --------------
//
// A CUtensorMap describes matrix, box and swizzle (tensor_map.hpp makes it). One thread issues the
// copy, and the hardware does it. `col` and `row` are the coordinates of the box's first element.
// Out-of-range elements are zero-filled by loads, and not written by stores.

// PTX ISA, prefetch.tensormap.
__device__ inline void prefetch(const CUtensorMap* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// PTX ISA, cp.async.bulk.tensor: copies the box to `shared`; `barrier` counts its bytes.
__device__ inline void tma_load(void* shared, const CUtensorMap* map, int col, int row, MBarrier* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
        "%3}], [%4];" ::"r"(detail::shared_window(shared)),
        "l"(map), "r"(col), "r"(row), "r"(detail::shared_window(barrier))
        : "memory");
}

// The same for a map of four extents: the box is in matrix (i, j).
__device__ inline void tma_load(void* shared, const CUtensorMap* map, int col, int row, int i, int j,
                                MBarrier* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
        "%3, %4, %5}], [%6];" ::"r"(detail::shared_window(shared)),
        "l"(map), "r"(col), "r"(row), "r"(i), "r"(j), "r"(detail::shared_window(barrier))
        : "memory");
}

// PTX ISA, cp.async.bulk.tensor with .im2col, for a map of NHWC images: a column of pixels, each
// with its channels from `channel` on. The pixels come from the map's bounding box, row by row and
// image by image, starting at (column, row) of `image`. For each pixel, the element `right` columns
// to its right and `down` rows below it is read.
__device__ inline void tma_load_im2col(void* shared, const CUtensorMap* map, int channel, int col, int row,
                                       int image, std::uint16_t right, std::uint16_t down,
                                       MBarrier* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
        "%3, %4, %5}], [%6], {%7, %8};" ::"r"(detail::shared_window(shared)),
        "l"(map), "r"(channel), "r"(col), "r"(row), "r"(image), "r"(detail::shared_window(barrier)),
        "h"(right), "h"(down)
        : "memory");
}

// PTX ISA, cp.async.bulk.tensor with .multicast::cluster: the box is copied to the same shared
// address in each block of the cluster whose rank has its bit set in `blocks`, and each block's
// barrier counts its bytes.
__device__ inline void tma_load_multicast(void* shared, const CUtensorMap* map, int col, int row,
                                          MBarrier* barrier, std::uint16_t blocks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(detail::shared_window(shared)),
        "l"(map), "r"(col), "r"(row), "r"(detail::shared_window(barrier)), "h"(blocks)
        : "memory");
}

// PTX ISA, cp.async.bulk.tensor from .shared::cta: copies the box from `shared` to the matrix, as
// part of this thread's open group.
__device__ inline void tma_store(const CUtensorMap* map, int col, int row, const void* shared) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(col), "r"(row), "r"(detail::shared_window(shared))
        : "memory");
}

// PTX ISA, cp.async.bulk: copies `bytes` from global to shared memory; `barrier` counts them.
// `bytes` and both addresses are multiples of 16.
__device__ inline void bulk_load(void* shared, const void* global, unsigned bytes, MBarrier* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            detail::shared_window(shared)),
        "l"(global), "r"(bytes), "r"(detail::shared_window(barrier))
        : "memory");
}

// The opposite direction, as part of this thread's open group.
__device__ inline void bulk_store(void* global, const void* shared, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                 "r"(detail::shared_window(shared)), "r"(bytes)
                 : "memory");
}

// PTX ISA, cp.reduce.async.bulk with .add.f32: adds the floats in `shared` to those in global
// memory, each atomically, in any order, as part of this thread's open group. `bytes` and both
// addresses are multiples of 16.
__device__ inline void bulk_reduce_add(float* global, const float* shared, unsigned bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(global),
                 "r"(detail::shared_window(shared)), "r"(bytes)
                 : "memory");
}

// PTX ISA, cp.async.bulk.commit_group: the stores that this thread has issued since the last call
// form a group.
__device__ inline void tma_store_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// PTX ISA, cp.async.bulk.wait_group.read: waits until all of this thread's groups except the
// kPending newest have read their shared memory, which is then safe to overwrite.
template <int kPending>
__device__ inline void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// PTX ISA, cp.async.bulk.wait_group: waits until they have also written to global memory.
template <int kPending>
__device__ inline void tma_store_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// PTX ISA, fence.proxy.async: makes this thread's writes to shared memory visible to bulk copies
// and wgmma that are issued after it.
__device__ inline void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- Clusters -----------------------------------------------------------------------------------

// PTX ISA, special register %cluster_ctarank.
__device__ inline unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// PTX ISA, barrier.cluster.arrive and .wait: a barrier of all threads of the cluster that have not
// ended.
__device__ inline void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- Warps of one block -------------------------------------------------------------------------

// PTX ISA, barrier.sync: a barrier for `threads` threads of the block, namely those that use the
// barrier `id` (1 to 15; 0 is __syncthreads).
__device__ inline void named_barrier(unsigned id, unsigned threads) {
    asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// PTX ISA, barrier.arrive: the calling threads arrive at the barrier without waiting.
__device__ inline void named_barrier_arrive(unsigned id, unsigned threads) {
    asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// PTX ISA, setmaxnreg: all warps of a warpgroup release registers, or wait until more registers
// are allocated to them.
template <int kRegisters>
__device__ inline void registers_decrease() {
    static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void registers_increase() {
    static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// PTX ISA, stmatrix: stores four 8 x 8 matrices of 16-bit elements from registers to shared
// memory; the inverse of ldmatrix_x4. Lane 8 m + i passes the address of row i of matrix m.
__device__ inline void stmatrix_x4(void* row, const unsigned (&r)[4]) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(detail::shared_window(row)),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
}
// The same with .trans: a row in shared memory is a column of a matrix.
__device__ inline void stmatrix_x4_trans(void* row, const unsigned (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     detail::shared_window(row)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

// ---- Asynchronous MMA of a warpgroup (wgmma) ----------------------------------------------------
//
// D += A B for four warps. D is 64 x N in their registers; A is 64 x K and B is K x N in shared
// memory, addressed by descriptors. K is 32 bytes: 16 elements of 16 bits, or 32 of 8 bits.
// Register 4 j + 2 h + i of lane 4 g + t in warp w is D(16 w + 8 h + g, 8 j + 2 t + i). The MMA
// runs while the warps continue, so D, A and B must not be accessed until wgmma_wait.

// PTX ISA, wgmma.fence: orders earlier accesses to the registers of D and A before the wgmma
// instructions that follow. Shared memory that threads have written also needs fence_proxy_async(),
// before a barrier between these threads and the wgmma.
__device__ inline void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// No instruction. It forces the compiler to compute the value here and not later, between wgmma
// instructions in flight, which would then be serialised.
__device__ inline void hold(float& value) {
    asm volatile("" : "+f"(value));
}
__device__ inline void hold(int& value) {
    asm volatile("" : "+r"(value));
}
__device__ inline void hold(unsigned& value) {
    asm volatile("" : "+r"(value));
}

// PTX ISA, wgmma.commit_group: the wgmma instructions since the last call form a group, one per
// warpgroup.
__device__ inline void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// PTX ISA, wgmma.wait_group: waits until all groups except the kPending newest are complete.
template <int kPending>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// The same, for one of two branches. ptxas moves a wait to the start of its basic block, ahead of
// the arithmetic that should overlap with the products. A branch ends the basic block, but equal
// code in both of its arms is merged. So this instruction differs from wgmma_wait by a comment. All
// warps of the warpgroup must take the same arm.
template <int kPending>
__device__ inline void wgmma_wait_in_branch() {
    asm volatile("wgmma.wait_group.sync.aligned %0; // in a branch" ::"n"(kPending) : "memory");
}

#define COURSE_PTX_D8(r, i)                                                                           \
    "+" r(d[i]), "+" r(d[i + 1]), "+" r(d[i + 2]), "+" r(d[i + 3]), "+" r(d[i + 4]), "+" r(d[i + 5]), \
        "+" r(d[i + 6]), "+" r(d[i + 7])
#define COURSE_PTX_D32(r, i) \
    COURSE_PTX_D8(r, i), COURSE_PTX_D8(r, i + 8), COURSE_PTX_D8(r, i + 16), COURSE_PTX_D8(r, i + 24)
#define COURSE_PTX_NUMBERS_32                                                \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define COURSE_PTX_NUMBERS_48 \
    COURSE_PTX_NUMBERS_32     \
    ", "                      \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define COURSE_PTX_NUMBERS_64                                                          \
    COURSE_PTX_NUMBERS_32                                                              \
    ", "                                                                               \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define COURSE_PTX_NUMBERS_96                                                          \
    COURSE_PTX_NUMBERS_64                                                              \
    ", "                                                                               \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define COURSE_PTX_NUMBERS_128                                                                     \
    COURSE_PTX_NUMBERS_96                                                                          \
    ", "                                                                                           \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// PTX ISA, wgmma.mma_async with .f16 or .bf16, N = 64, 96, 128, 192 or 256, summed in float.
// kBRowMajor: the descriptor of B comes from descriptor_mn_major; kAColumnMajor: so does that of
// A. All others come from descriptor_k_major. `keeps` is scale-d: 1 adds to the previous value of
// D, 0 replaces it.
#define COURSE_PTX_WGMMA(n, type, registers, a_number, b_number, a_order, b_order, keeps, ...)    \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type                  \
                 " {" COURSE_PTX_NUMBERS_##registers "}, %" #a_number ", %" #b_number ", " #keeps \
                                                     ", 1, 1, %" #a_order ", %" #b_order ";"      \
                 : __VA_ARGS__                                                                    \
                 : "l"(a), "l"(b), "n"(kAColumnMajor ? 1 : 0), "n"(kBRowMajor ? 1 : 0))

// PTX ISA, wgmma.mma_async with .e4m3, .e5m2 or .s8: the first two are summed in float, but with
// reduced precision; the last is summed in int, which wraps. Both descriptors come from
// descriptor_k_major, because bytes have no other order. (Only floats have scales.)
#define COURSE_PTX_WGMMA_BYTES(n, types, registers, a_number, b_number, keeps, scales, ...)              \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k32." types " {" COURSE_PTX_NUMBERS_##registers \
                 "}, %" #a_number ", %" #b_number ", " #keeps scales ";"                                 \
                 : __VA_ARGS__                                                                           \
                 : "l"(a), "l"(b))

#define COURSE_PTX_WGMMA_NAMED(name, keeps, n, registers, a_number, b_number, a_order, b_order, ...)         \
    template <class T, bool kBRowMajor, bool kAColumnMajor = false>                                          \
    __device__ inline void name(float(&d)[registers], std::uint64_t a, std::uint64_t b) {                    \
        static_assert(sizeof(T) == 2 || (!kBRowMajor && !kAColumnMajor),                                     \
                      "wgmma takes 8-bit operands along k only");                                            \
        if constexpr (std::is_same_v<T, __nv_bfloat16>) {                                                    \
            COURSE_PTX_WGMMA(n, "bf16", registers, a_number, b_number, a_order, b_order, keeps,              \
                             __VA_ARGS__);                                                                   \
        } else if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {                                             \
            COURSE_PTX_WGMMA_BYTES(n, "f32.e4m3.e4m3", registers, a_number, b_number, keeps, ", 1, 1",       \
                                   __VA_ARGS__);                                                             \
        } else if constexpr (std::is_same_v<T, __nv_fp8_e5m2>) {                                             \
            COURSE_PTX_WGMMA_BYTES(n, "f32.e5m2.e5m2", registers, a_number, b_number, keeps, ", 1, 1",       \
                                   __VA_ARGS__);                                                             \
        } else {                                                                                             \
            static_assert(std::is_same_v<T, __half>);                                                        \
            COURSE_PTX_WGMMA(n, "f16", registers, a_number, b_number, a_order, b_order, keeps, __VA_ARGS__); \
        }                                                                                                    \
    }
// wgmma: D += A B. wgmma_set: D = A B, the first product of a sum; the previous value of D is
// ignored.
#define COURSE_PTX_WGMMA_FUNCTION(...)            \
    COURSE_PTX_WGMMA_NAMED(wgmma, 1, __VA_ARGS__) \
    COURSE_PTX_WGMMA_NAMED(wgmma_set, 0, __VA_ARGS__)
#define COURSE_PTX_WGMMA_OF_INTEGERS(n, registers, a_number, b_number, ...)                        \
    template <class T, bool kBRowMajor>                                                            \
    __device__ inline void wgmma(int(&d)[registers], std::uint64_t a, std::uint64_t b) {           \
        static_assert(std::is_same_v<T, std::int8_t> && !kBRowMajor);                              \
        COURSE_PTX_WGMMA_BYTES(n, "s32.s8.s8", registers, a_number, b_number, 1, "", __VA_ARGS__); \
    }
COURSE_PTX_WGMMA_FUNCTION(64, 32, 32, 33, 34, 35, COURSE_PTX_D32("f", 0))
COURSE_PTX_WGMMA_FUNCTION(96, 48, 48, 49, 50, 51, COURSE_PTX_D32("f", 0), COURSE_PTX_D8("f", 32),
                          COURSE_PTX_D8("f", 40))
COURSE_PTX_WGMMA_FUNCTION(128, 64, 64, 65, 66, 67, COURSE_PTX_D32("f", 0), COURSE_PTX_D32("f", 32))
COURSE_PTX_WGMMA_FUNCTION(192, 96, 96, 97, 98, 99, COURSE_PTX_D32("f", 0), COURSE_PTX_D32("f", 32),
                          COURSE_PTX_D32("f", 64))
COURSE_PTX_WGMMA_FUNCTION(256, 128, 128, 129, 130, 131, COURSE_PTX_D32("f", 0), COURSE_PTX_D32("f", 32),
                          COURSE_PTX_D32("f", 64), COURSE_PTX_D32("f", 96))
COURSE_PTX_WGMMA_OF_INTEGERS(64, 32, 32, 33, COURSE_PTX_D32("r", 0))
COURSE_PTX_WGMMA_OF_INTEGERS(96, 48, 48, 49, COURSE_PTX_D32("r", 0), COURSE_PTX_D8("r", 32),
                             COURSE_PTX_D8("r", 40))
COURSE_PTX_WGMMA_OF_INTEGERS(192, 96, 96, 97, COURSE_PTX_D32("r", 0), COURSE_PTX_D32("r", 32),
                             COURSE_PTX_D32("r", 64))
COURSE_PTX_WGMMA_OF_INTEGERS(128, 64, 64, 65, COURSE_PTX_D32("r", 0), COURSE_PTX_D32("r", 32))
COURSE_PTX_WGMMA_OF_INTEGERS(256, 128, 128, 129, COURSE_PTX_D32("r", 0), COURSE_PTX_D32("r", 32),
                             COURSE_PTX_D32("r", 64), COURSE_PTX_D32("r", 96))

// PTX ISA, wgmma.mma_async with A in registers: 64 rows of 32 bytes. Register 2 j + h of lane 4 g +
// t in warp w holds four bytes of row 16 w + 8 h + g: for 16-bit elements, columns 8 j + 2 t and
// the next one, the first in the lower half, which is the layout of D rounded to pairs; for E4M3
// elements, columns 16 j + 4 t to 16 j + 4 t + 3, which is a different layout. These registers,
// too, must not be accessed until wgmma_wait.
#define COURSE_PTX_WGMMA_LEFT(n, types, transposes, registers, a0, a1, a2, a3, b_number, ...)          \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types " {" COURSE_PTX_NUMBERS_##registers      \
                 "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_number ", 1, 1, 1" transposes ";" \
                 : __VA_ARGS__                                                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kBRowMajor ? 1 : 0))
#define COURSE_PTX_WGMMA_LEFT_FUNCTION(n, registers, a0, a1, a2, a3, b_number, transpose_number, ...)       \
    template <class T, bool kBRowMajor>                                                                     \
    __device__ inline void wgmma(float(&d)[registers], const unsigned(&a)[4], std::uint64_t b) {            \
        static_assert(sizeof(T) == 2 || !kBRowMajor, "wgmma takes 8-bit operands along k only");            \
        if constexpr (std::is_same_v<T, __nv_bfloat16>) {                                                   \
            COURSE_PTX_WGMMA_LEFT(n, "k16.f32.bf16.bf16", ", %" #transpose_number, registers, a0, a1, a2,   \
                                  a3, b_number, __VA_ARGS__);                                               \
        } else if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {                                            \
            COURSE_PTX_WGMMA_LEFT(n, "k32.f32.e4m3.e4m3", "", registers, a0, a1, a2, a3, b_number,          \
                                  __VA_ARGS__);                                                             \
        } else {                                                                                            \
            static_assert(std::is_same_v<T, __half>);                                                       \
            COURSE_PTX_WGMMA_LEFT(n, "k16.f32.f16.f16", ", %" #transpose_number, registers, a0, a1, a2, a3, \
                                  b_number, __VA_ARGS__);                                                   \
        }                                                                                                   \
    }
COURSE_PTX_WGMMA_LEFT_FUNCTION(64, 32, 32, 33, 34, 35, 36, 37, COURSE_PTX_D32("f", 0))
COURSE_PTX_WGMMA_LEFT_FUNCTION(128, 64, 64, 65, 66, 67, 68, 69, COURSE_PTX_D32("f", 0),
                               COURSE_PTX_D32("f", 32))

// PTX ISA, wgmma.mma_async with .tf32, A in registers: 64 x 8. Register 2 j + h of lane 4 g + t in
// warp w is A(16 w + 8 h + g, 4 j + t). Operands are floats, of which tensor cores use sign,
// exponent and 10 bits of the mantissa. The descriptor of B comes from descriptor_k_major, because
// 32-bit operands have no other order. wgmma_tf32_set: D = A B, the first product of a sum.
#define COURSE_PTX_WGMMA_TF32(name, adds, n, registers, a0, a1, a2, a3, b_number, ...)               \
    __device__ inline void name(float(&d)[registers], const unsigned(&a)[4], std::uint64_t b) {      \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n                                          \
                     "k8.f32.tf32.tf32 {" COURSE_PTX_NUMBERS_##registers                             \
                     "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_number ", " #adds ", 1, 1;" \
                     : __VA_ARGS__                                                                   \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                          \
    }
#define COURSE_PTX_WGMMA_TF32_BOTH(...)               \
    COURSE_PTX_WGMMA_TF32(wgmma_tf32, 1, __VA_ARGS__) \
    COURSE_PTX_WGMMA_TF32(wgmma_tf32_set, 0, __VA_ARGS__)
COURSE_PTX_WGMMA_TF32_BOTH(128, 64, 64, 65, 66, 67, 68, COURSE_PTX_D32("f", 0), COURSE_PTX_D32("f", 32))
COURSE_PTX_WGMMA_TF32_BOTH(192, 96, 96, 97, 98, 99, 100, COURSE_PTX_D32("f", 0), COURSE_PTX_D32("f", 32),
                           COURSE_PTX_D32("f", 64))
#undef COURSE_PTX_WGMMA_TF32_BOTH
#undef COURSE_PTX_WGMMA_TF32
#undef COURSE_PTX_WGMMA_LEFT_FUNCTION
#undef COURSE_PTX_WGMMA_LEFT
#undef COURSE_PTX_WGMMA_OF_INTEGERS
#undef COURSE_PTX_WGMMA_FUNCTION
#undef COURSE_PTX_WGMMA_NAMED
#undef COURSE_PTX_WGMMA_BYTES
#undef COURSE_PTX_WGMMA
#undef COURSE_PTX_NUMBERS_128
#undef COURSE_PTX_NUMBERS_96
#undef COURSE_PTX_NUMBERS_64
#undef COURSE_PTX_NUMBERS_48
#undef COURSE_PTX_NUMBERS_32
#undef COURSE_PTX_D32
#undef COURSE_PTX_D8

#endif

// ---- Matrix descriptors of wgmma ----------------------------------------------------------------

// PTX ISA, "matrix descriptor" of wgmma, for tiles in rows of 128 bytes with the 128-byte swizzle,
// as TMA writes them: the 16-byte chunk c of row r is at chunk c ^ (r % 8). The tile is 1024-byte
// aligned.
//
// K-major (A row-major, B column-major): a row has 64 elements along k, or 128 of 8 bits. Eight
// rows, 1024 bytes, are followed by the next eight along M or N. One wgmma takes 32 bytes of each
// row.
__device__ inline std::uint64_t descriptor_k_major(const void* tile) {
    return 1ULL << 62 | 64ULL << 32 | 1ULL << 16 | (detail::shared_window(tile) & 0x3ffff) >> 4;
}
// MN-major (B row-major): a row has 64 elements along n, for one k. Eight rows, 1024 bytes, are
// followed by the next eight along k; the next 64 elements along n start `next_columns` bytes
// further. Sixteen elements along k are 2048 bytes.
__device__ inline std::uint64_t descriptor_mn_major(const void* tile, unsigned next_columns) {
    return 1ULL << 62 | 64ULL << 32 | static_cast<std::uint64_t>(next_columns >> 4) << 16 |
           (detail::shared_window(tile) & 0x3ffff) >> 4;
}
// The descriptor advanced by `bytes` within the same tile.
__device__ inline std::uint64_t advanced(std::uint64_t descriptor, unsigned bytes) {
    return descriptor + (bytes >> 4);
}

}  // namespace course::ptx
