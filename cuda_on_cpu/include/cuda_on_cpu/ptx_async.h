// Inline PTX: asynchronous copies and mbarriers (PTX ISA, cp.async, mbarrier, cp.async.bulk).
#pragma once

#include "cuda_on_cpu/async_copy.h"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/programmatic_launch.h"
#include "cuda_on_cpu/ptx_memory.h"

namespace cuda_on_cpu::ptx::isa {

// ---- cp.async ----------------------------------------------------------------------------------------------------------

inline void cp_async_part(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes,
                          std::uint32_t valid, Site site = Site::here()) {
    if (bytes != 4 && bytes != 8 && bytes != 16)
        device_failure(cudaErrorLaunchFailure, "cp.async of a size that is not 4, 8 or 16 bytes", site);
    issue_copy(shared_pointer(shared, bytes, site), reinterpret_cast<const void*>(global), bytes, valid,
               site);
}
inline void cp_async(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes,
                     Site site = Site::here()) {
    cp_async_part(shared, global, bytes, bytes, site);
}
inline void cp_async_unless(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes, bool ignored,
                            Site site = Site::here()) {
    cp_async_part(shared, global, bytes, ignored ? 0 : bytes, site);
}
inline void cp_async_with_policy(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes,
                                 std::uint64_t, Site site = Site::here()) {
    cp_async_part(shared, global, bytes, bytes, site);
}
inline void cp_async_part_with_policy(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes,
                                      std::uint32_t valid, std::uint64_t, Site site = Site::here()) {
    cp_async_part(shared, global, bytes, valid, site);
}
inline void cp_async_commit_group() {
    commit_copies();
}
inline void cp_async_wait_group(std::uint32_t pending) {
    wait_for_copies(pending);
}
// Includes copies that are not in a group yet.
inline void cp_async_wait_all() {
    commit_copies();
    wait_for_copies(0);
}

// ---- mbarriers ---------------------------------------------------------------------------------------------------------

// The state of an arrival, which test_wait and try_wait take, is the parity of its phase. For
// arrivals, `barrier` may be in another block of the cluster; the returned state must not be used
// then.
std::uint64_t arrive_at_mbarrier(void* barrier, unsigned count, Site site);
std::uint64_t arrive_at_mbarrier_expecting(void* barrier, unsigned bytes, Site site);
// `count` arrivals at once; the phase also waits for `bytes` more bytes.
std::uint64_t arrive_at_mbarrier(void* barrier, std::int64_t count, std::int64_t bytes, Site site);
std::uint64_t arrive_without_completing(void* barrier, unsigned count, Site site);
void arrive_and_drop_at_mbarrier(void* barrier, Site site);
void expect_at_mbarrier(void* barrier, int bytes, Site site);
// For cuda::barrier. `name` is the operation, for reports.
void init_mbarrier_for_cpp(void* barrier, std::int64_t arrivals, Site site);
void attach_copies_to_mbarrier(void* barrier, Site site);
void wait_at_mbarrier(void* barrier, unsigned parity, const char* name, Site site);
// Lets other threads run before it returns false. After many such results it waits, as try_wait
// does.
bool test_mbarrier(void* barrier, unsigned parity, Site site);

template <Space kSpace>
__forceinline__ MBarrier* mbarrier_at(std::uint64_t address, Site site) {
    return static_cast<MBarrier*>(pointer_to<kSpace>(address, sizeof(MBarrier), site));
}
template <Space kSpace>
__forceinline__ void mbarrier_init(std::uint64_t address, std::uint32_t count, Site site = Site::here()) {
    ptx::mbarrier_init(mbarrier_at<kSpace>(address, site), count, site);
}
template <Space kSpace>
__forceinline__ void mbarrier_inval(std::uint64_t address, Site site = Site::here()) {
    ptx::mbarrier_inval(mbarrier_at<kSpace>(address, site), site);
}
template <Space kSpace>
__forceinline__ std::uint64_t mbarrier_arrive_times(std::uint64_t address, std::uint32_t count,
                                                    Site site = Site::here()) {
    return arrive_at_mbarrier(mbarrier_at<kSpace>(address, site), count, site);
}
template <Space kSpace>
__forceinline__ std::uint64_t mbarrier_arrive(std::uint64_t address, Site site = Site::here()) {
    return mbarrier_arrive_times<kSpace>(address, 1, site);
}
template <Space kSpace>
__forceinline__ std::uint64_t mbarrier_arrive_expect(std::uint64_t address, std::uint32_t bytes,
                                                     Site site = Site::here()) {
    return arrive_at_mbarrier_expecting(mbarrier_at<kSpace>(address, site), bytes, site);
}
template <Space kSpace>
__forceinline__ void mbarrier_expect(std::uint64_t address, std::uint32_t bytes, Site site = Site::here()) {
    expect_at_mbarrier(mbarrier_at<kSpace>(address, site), static_cast<int>(bytes), site);
}
template <Space kSpace>
__forceinline__ void mbarrier_complete(std::uint64_t address, std::uint32_t bytes, Site site = Site::here()) {
    expect_at_mbarrier(mbarrier_at<kSpace>(address, site), -static_cast<int>(bytes), site);
}
template <Space kSpace>
__forceinline__ bool mbarrier_test_parity(std::uint64_t address, std::uint32_t parity,
                                          Site site = Site::here()) {
    return test_mbarrier(mbarrier_at<kSpace>(address, site), parity, site);
}
template <Space kSpace>
__forceinline__ bool mbarrier_test_state(std::uint64_t address, std::uint64_t state,
                                         Site site = Site::here()) {
    return mbarrier_test_parity<kSpace>(address, static_cast<std::uint32_t>(state), site);
}
template <Space kSpace>
__forceinline__ bool mbarrier_try_parity(std::uint64_t address, std::uint32_t parity,
                                         Site site = Site::here()) {
    return mbarrier_try_wait(mbarrier_at<kSpace>(address, site), parity, site);
}
template <Space kSpace>
__forceinline__ bool mbarrier_try_parity_for(std::uint64_t address, std::uint32_t parity, std::uint32_t,
                                             Site site = Site::here()) {
    return mbarrier_try_parity<kSpace>(address, parity, site);
}
template <Space kSpace>
__forceinline__ bool mbarrier_try_state(std::uint64_t address, std::uint64_t state,
                                        Site site = Site::here()) {
    return mbarrier_try_parity<kSpace>(address, static_cast<std::uint32_t>(state), site);
}
template <Space kSpace>
__forceinline__ bool mbarrier_try_state_for(std::uint64_t address, std::uint64_t state, std::uint32_t,
                                            Site site = Site::here()) {
    return mbarrier_try_state<kSpace>(address, state, site);
}
// This thread's copies are complete here, which is one of the moments that a GPU may choose.
// Without .noinc the barrier expects one more arrival, and this is that arrival.
template <Space kSpace, bool kCounts>
__forceinline__ void cp_async_mbarrier_arrive(std::uint64_t address, Site site = Site::here()) {
    cp_async_wait_all();
    if constexpr (kCounts) arrive_at_mbarrier(mbarrier_at<kSpace>(address, site), 1, site);
}

// ---- Bulk copies -------------------------------------------------------------------------------------------------------

// One-dimensional copies. As for boxes, a load is carried out when a thread waits for its mbarrier.
void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier, Site site = Site::here());
void bulk_store(void* global, const void* shared, unsigned bytes, Site site = Site::here());
void bulk_load_multicast(void* shared, const void* global, unsigned bytes, MBarrier* barrier,
                         std::uint16_t blocks, Site site = Site::here());
// cp.reduce.async.bulk to global memory.
void bulk_reduce(void* global, const void* shared, unsigned bytes, Combine combine, Site site = Site::here());
void bulk_reduce_add(float* global, const float* shared, unsigned bytes, Site site = Site::here());
// To shared memory of a block of the cluster, in which the mbarrier must be, too: cp.async.bulk and
// cp.reduce.async.bulk; st.async and red.async.
void bulk_copy_to_block(void* there, const void* shared, unsigned bytes, void* barrier, Combine combine,
                        Site site = Site::here());
void store_in_block(void* there, const void* value, unsigned bytes, void* barrier, Combine combine,
                    Site site = Site::here());

inline void bulk_copy_to_shared(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes,
                                std::uint64_t barrier, Site site = Site::here()) {
    bulk_load(shared_pointer(shared, bytes, site), reinterpret_cast<const void*>(global), bytes,
              mbarrier_at<Space::shared>(barrier, site), site);
}
inline void bulk_copy_to_shared_with_policy(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes,
                                            std::uint64_t barrier, std::uint64_t, Site site = Site::here()) {
    bulk_copy_to_shared(shared, global, bytes, barrier, site);
}
inline void bulk_copy_to_global(std::uint64_t global, std::uint64_t shared, std::uint32_t bytes,
                                Site site = Site::here()) {
    bulk_store(reinterpret_cast<void*>(global), shared_pointer(shared, bytes, site), bytes, site);
}
inline void bulk_copy_to_global_with_policy(std::uint64_t global, std::uint64_t shared, std::uint32_t bytes,
                                            std::uint64_t, Site site = Site::here()) {
    bulk_copy_to_global(global, shared, bytes, site);
}

inline void bulk_commit_group() {
    tma_store_commit();
}
inline void bulk_wait_group(std::uint32_t pending, Site site = Site::here()) {
    wait_for_stores(pending, true, site);
}
inline void bulk_wait_group_read(std::uint32_t pending, Site site = Site::here()) {
    wait_for_stores(pending, false, site);
}

using Coordinates = List<std::uint32_t, 2>;
inline const CUtensorMap* map_at(std::uint64_t address) {
    return reinterpret_cast<const CUtensorMap*>(address);
}
inline void tensor_load(std::uint64_t shared, std::uint64_t map, Coordinates at, std::uint64_t barrier,
                        Site site = Site::here()) {
    tma_load(shared_pointer(shared, 1, site), map_at(map), static_cast<int>(at.word[0]),
             static_cast<int>(at.word[1]), mbarrier_at<Space::shared>(barrier, site), site);
}
inline void tensor_load_with_policy(std::uint64_t shared, std::uint64_t map, Coordinates at,
                                    std::uint64_t barrier, std::uint64_t, Site site = Site::here()) {
    tensor_load(shared, map, at, barrier, site);
}
inline void tensor_load_multicast(std::uint64_t shared, std::uint64_t map, Coordinates at,
                                  std::uint64_t barrier, std::uint16_t blocks, Site site = Site::here()) {
    tma_load_multicast(shared_pointer(shared, 1, site), map_at(map), static_cast<int>(at.word[0]),
                       static_cast<int>(at.word[1]), mbarrier_at<Space::shared>(barrier, site), blocks, site);
}
inline void tensor_load_multicast_with_policy(std::uint64_t shared, std::uint64_t map, Coordinates at,
                                              std::uint64_t barrier, std::uint16_t blocks, std::uint64_t,
                                              Site site = Site::here()) {
    tensor_load_multicast(shared, map, at, barrier, blocks, site);
}
inline void prefetch_tensor(std::uint64_t, Coordinates) {}
inline void tensor_store(std::uint64_t map, Coordinates at, std::uint64_t shared, Site site = Site::here()) {
    tma_store(map_at(map), static_cast<int>(at.word[0]), static_cast<int>(at.word[1]),
              shared_pointer(shared, 1, site), site);
}
inline void tensor_store_with_policy(std::uint64_t map, Coordinates at, std::uint64_t shared, std::uint64_t,
                                     Site site = Site::here()) {
    tensor_store(map, at, shared, site);
}

using cuda_on_cpu::await_previous_grid;
using cuda_on_cpu::ptx::cluster_arrive;
using cuda_on_cpu::ptx::cluster_wait;
using cuda_on_cpu::ptx::fence_mbarrier_init;
using cuda_on_cpu::ptx::fence_proxy_async;

}  // namespace cuda_on_cpu::ptx::isa
