// Instructions of compute capability 9.0a (PTX ISA; day code reaches them through
// common/device/ptx_hopper.cuh): barriers that count arrivals and bytes (mbarrier), the tensor
// memory accelerator (TMA), and the matrix products of warpgroups (wgmma).
//
// Asynchronous work is carried out as late as possible: a load when a thread waits for its barrier
// and no thread of the block can run, a product when its warp waits for it. Until then the
// destination is poisoned, so that reading it, or releasing a stage, too early shows as NaN. The
// source of a store must not change until its thread has waited for the read.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/thread.h"

struct CUtensorMap;

// The address within shared memory that instructions and descriptors use, and the conversion back.
// It is an error if the pointer points to other memory. Descriptors can refer only to dynamic
// shared memory.
std::size_t __cvta_generic_to_shared(const void* pointer);
void* __cvta_shared_to_generic(std::size_t address);
// Other memory keeps its generic addresses.
inline std::size_t __cvta_generic_to_global(const void* pointer) {
    return reinterpret_cast<std::size_t>(pointer);
}
inline std::size_t __cvta_generic_to_local(const void* pointer) {
    return reinterpret_cast<std::size_t>(pointer);
}
inline std::size_t __cvta_generic_to_constant(const void* pointer) {
    return reinterpret_cast<std::size_t>(pointer);
}
inline std::size_t __cvta_generic_to_grid_constant(const void* pointer) {
    return reinterpret_cast<std::size_t>(pointer);
}
inline void* __cvta_global_to_generic(std::size_t address) {
    return reinterpret_cast<void*>(address);
}
inline void* __cvta_local_to_generic(std::size_t address) {
    return reinterpret_cast<void*>(address);
}
inline void* __cvta_constant_to_generic(std::size_t address) {
    return reinterpret_cast<void*>(address);
}
inline void* __cvta_grid_constant_to_generic(std::size_t address) {
    return reinterpret_cast<void*>(address);
}

namespace cuda_on_cpu {

// Converts numbers of 16 bits and fewer to float (small_float.h).
template <class Format>
float decode(std::uint16_t bits);
using Decode = float (*)(std::uint16_t);

// The operands of a product, and the type of its sums.
struct ProductOf {
    // Converts an element of an operand.
    float (*decode)(std::uint32_t bits) = nullptr;
    // Of an operand.
    unsigned element_size = 2;
    bool b_row_major = false;
    bool a_column_major = false;
    bool integers = false;  // sums are std::int32_t, and wrap; otherwise float

    bool operator==(const ProductOf&) const = default;
};
// TF32: sign, exponent and the first 10 bits of the mantissa of a float. The other bits are
// ignored.
constexpr std::uint32_t kTf32Bits = 0xffffe000u;
// T: a type of 8 or 16 bits, or float for TF32.
template <class T, bool kBRowMajor, bool kAColumnMajor = false>
constexpr ProductOf product_of() {
    static_assert(sizeof(T) == 2 || (!kBRowMajor && !kAColumnMajor),
                  "wgmma takes 8-bit operands and TF32 along k only");
    ProductOf product{.element_size = sizeof(T),
                      .b_row_major = kBRowMajor,
                      .a_column_major = kAColumnMajor,
                      .integers = std::is_integral_v<T>};
    if constexpr (std::is_integral_v<T>) {
        product.decode = [](std::uint32_t bits) { return static_cast<float>(static_cast<T>(bits)); };
    } else if constexpr (std::is_same_v<T, float>) {
        product.decode = [](std::uint32_t bits) { return std::bit_cast<float>(bits & kTf32Bits); };
    } else {
        product.decode = [](std::uint32_t bits) {
            return cuda_on_cpu::decode<typename T::Format>(static_cast<std::uint16_t>(bits));
        };
    }
    return product;
}

// `d`: float or std::int32_t.
void issue_product(void* d, unsigned registers, std::uint64_t a, std::uint64_t b, const ProductOf& product,
                   Site site);
// A comes from registers, four of each lane. They are read when the warp waits for the product.
void issue_product(void* d, unsigned registers, const unsigned* a, std::uint64_t b, const ProductOf& product,
                   Site site);
void wait_for_products(unsigned pending, Site site);
// How an asynchronous reduction combines the element in memory with the new value: it takes the
// bits of both and returns the bits of the result. A null `result` means a plain copy. The library
// loads and stores the elements itself, because the atomics of a header that a kernel includes let
// other threads run, and no thread may run while a copy is carried out.
struct Combine {
    unsigned element_size = 0;  // 2, 4 or 8 bytes
    std::uint64_t (*result)(std::uint64_t there, std::uint64_t value) = nullptr;
};
void wait_for_stores(unsigned pending, bool until_written, Site site);
void set_registers(Site site);

namespace ptx {

using MBarrier = std::uint64_t;

void mbarrier_init(MBarrier* barrier, unsigned arrivals, Site site = Site::here());
void mbarrier_inval(MBarrier* barrier, Site site = Site::here());
void fence_mbarrier_init();
void mbarrier_arrive(MBarrier* barrier, Site site = Site::here());
void mbarrier_arrive_at(MBarrier* barrier, unsigned rank, Site site = Site::here());
void mbarrier_arrive_expect(MBarrier* barrier, unsigned bytes, Site site = Site::here());
// Waits until the phase is complete, so it never returns false.
bool mbarrier_try_wait(MBarrier* barrier, unsigned parity, Site site = Site::here());
inline void mbarrier_wait(MBarrier* barrier, unsigned parity, Site site = Site::here()) {
    mbarrier_try_wait(barrier, parity, site);
}

inline void prefetch(const CUtensorMap*) {}
void tma_load(void* shared, const CUtensorMap* map, int column, int row, MBarrier* barrier,
              Site site = Site::here());
void tma_load_multicast(void* shared, const CUtensorMap* map, int column, int row, MBarrier* barrier,
                        std::uint16_t blocks, Site site = Site::here());
// For a map of four extents: loads the box at `column` and `row` of the matrix (i, j).
void tma_load(void* shared, const CUtensorMap* map, int column, int row, int i, int j, MBarrier* barrier,
              Site site = Site::here());
// For an im2col map: loads pixels from (column, row) of an image on, each read `right` columns to
// the right and `down` rows below.
void tma_load_im2col(void* shared, const CUtensorMap* map, int channel, int column, int row, int image,
                     std::uint16_t right, std::uint16_t down, MBarrier* barrier, Site site = Site::here());
void tma_store(const CUtensorMap* map, int column, int row, const void* shared, Site site = Site::here());
// For a map of one extent.
void tma_load_line(void* shared, const CUtensorMap* map, int column, MBarrier* barrier,
                   Site site = Site::here());
void tma_store_line(const CUtensorMap* map, int column, const void* shared, Site site = Site::here());
void tma_store_commit();
template <int kPending>
void tma_store_wait_read(Site site = Site::here()) {
    static_assert(kPending >= 0, "tma_store_wait_read<N>: N groups may stay pending, 0 or more");
    wait_for_stores(kPending, false, site);
}
template <int kPending>
void tma_store_wait(Site site = Site::here()) {
    static_assert(kPending >= 0, "tma_store_wait<N>: N groups may stay pending, 0 or more");
    wait_for_stores(kPending, true, site);
}
void fence_proxy_async();

inline unsigned cluster_rank() {
    return cluster_block_rank();
}
inline void cluster_arrive(Site site = Site::here()) {
    cluster_barrier_arrive(site);
}
inline void cluster_wait(Site site = Site::here()) {
    cluster_barrier_wait(site);
}
void named_barrier(unsigned id, unsigned threads, Site site = Site::here());
void named_barrier_arrive(unsigned id, unsigned threads, Site site = Site::here());

// The CPU has no such registers: this only checks that whole warps call it.
template <int kRegisters>
void registers_decrease(Site site = Site::here()) {
    static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
    set_registers(site);
}
template <int kRegisters>
void registers_increase(Site site = Site::here()) {
    static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
    set_registers(site);
}

void wgmma_fence(Site site = Site::here());
void wgmma_commit(Site site = Site::here());
template <int kPending>
void wgmma_wait(Site site = Site::here()) {
    static_assert(kPending >= 0, "wgmma_wait<N>: N groups may stay pending, 0 or more");
    wait_for_products(kPending, site);
}
// The same as wgmma_wait; the two differ only for nvcc.
template <int kPending>
void wgmma_wait_in_branch(Site site = Site::here()) {
    wgmma_wait<kPending>(site);
}
template <class T, bool kBRowMajor, bool kAColumnMajor = false, class Sum, std::size_t kRegisters>
void wgmma(Sum (&d)[kRegisters], std::uint64_t a, std::uint64_t b, Site site = Site::here()) {
    static_assert(kRegisters % 4 == 0 && kRegisters >= 4 && kRegisters <= 128,
                  "N is 8 to 256, in steps of 8");
    static_assert(std::is_same_v<T, std::int8_t> ? std::is_same_v<Sum, int> : std::is_same_v<Sum, float>,
                  "int8 is summed in int, floating point in float");
    issue_product(d, kRegisters, a, b, product_of<T, kBRowMajor, kAColumnMajor>(), site);
}
// D = A B: the previous contents of D are ignored.
template <class T, bool kBRowMajor, std::size_t kRegisters>
void wgmma_set(float (&d)[kRegisters], std::uint64_t a, std::uint64_t b, Site site = Site::here()) {
    for (float& sum : d)
        sum = 0;
    wgmma<T, kBRowMajor>(d, a, b, site);
}
// `a` must exist and stay unchanged until the thread has waited for the product.
template <class T, bool kBRowMajor, std::size_t kRegisters>
void wgmma(float (&d)[kRegisters], const unsigned (&a)[4], std::uint64_t b, Site site = Site::here()) {
    static_assert(kRegisters % 4 == 0 && kRegisters >= 4 && kRegisters <= 128,
                  "N is 8 to 256, in steps of 8");
    static_assert(!std::is_integral_v<T>, "A from registers: floating point only");
    issue_product(d, kRegisters, a, b, product_of<T, kBRowMajor>(), site);
}
// The same for TF32.
template <std::size_t kRegisters>
void wgmma_tf32(float (&d)[kRegisters], const unsigned (&a)[4], std::uint64_t b, Site site = Site::here()) {
    static_assert(kRegisters % 4 == 0 && kRegisters >= 4 && kRegisters <= 128,
                  "N is 8 to 256, in steps of 8");
    issue_product(d, kRegisters, a, b, product_of<float, false>(), site);
}
template <std::size_t kRegisters>
void wgmma_tf32_set(float (&d)[kRegisters], const unsigned (&a)[4], std::uint64_t b,
                    Site site = Site::here()) {
    for (float& sum : d)
        sum = 0;
    wgmma_tf32(d, a, b, site);
}

}  // namespace ptx
}  // namespace cuda_on_cpu
