// Asynchronous copies from global to shared memory (PTX ISA, cp.async; day code reaches them
// through common/device/ptx.cuh).
//
// A copy is pending until the thread that issued it waits for its group or ends. Until then its
// destination is poisoned, so that a missing wait shows as NaN. The source is read when the copy is
// issued, which is one of the moments a GPU may choose.
#pragma once

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

// Issues a copy of `bytes` (4, 8 or 16) bytes. The bytes from `valid_bytes` on are zero-filled, and
// their source is not read. It is an error if the source or the destination is not aligned to
// `bytes`, or if the destination is outside the block's shared memory.
void issue_copy(void* shared, const void* global, unsigned bytes, unsigned valid_bytes, Site site);
// Makes a group of the copies that the thread has issued since its last commit.
void commit_copies();
// Waits until at most the `pending` newest groups of the thread are incomplete.
void wait_for_copies(unsigned pending);

namespace ptx {

inline void cp_async_4(void* shared, const void* global, bool valid = true, Site site = Site::here()) {
    issue_copy(shared, global, 4, valid ? 4 : 0, site);
}
inline void cp_async_8(void* shared, const void* global, bool valid = true, Site site = Site::here()) {
    issue_copy(shared, global, 8, valid ? 8 : 0, site);
}
inline void cp_async_16(void* shared, const void* global, unsigned valid_bytes = 16,
                        Site site = Site::here()) {
    issue_copy(shared, global, 16, valid_bytes, site);
}
inline void cp_async_commit() {
    commit_copies();
}
template <int kPending>
void cp_async_wait() {
    static_assert(kPending >= 0, "cp_async_wait<N>: N groups may stay pending, 0 or more");
    wait_for_copies(kPending);
}

}  // namespace ptx
}  // namespace cuda_on_cpu
