// cooperative_groups::memcpy_async: the threads of a group copy to shared memory together, and go
// on; wait() is where the copies are there for all of them.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <algorithm>

#include "cooperative_groups.h"
#include "cuda_on_cpu/memcpy_async.h"
#include "cuda_pipeline.h"  // as NVIDIA's does

namespace cooperative_groups {

// `size` in bytes: a number or a cuda::aligned_size_t. Each call is one batch for wait_prior().
template <class Group, class T, class Size>
void memcpy_async(const Group& group, T* destination, const T* source, const Size& size,
                  Site site = Site::here()) {
    cuda_on_cpu::copy_by_group(group, destination, source, size, site);
    cuda_on_cpu::commit_copies();
}
template <class Group, class Size>
void memcpy_async(const Group& group, void* destination, const void* source, const Size& size,
                  Site site = Site::here()) {
    cuda_on_cpu::copy_by_group(group, static_cast<char*>(destination), static_cast<const char*>(source), size,
                               site);
    cuda_on_cpu::commit_copies();
}
// Extents in elements: as many are copied as both have.
template <class Group, class T>
void memcpy_async(const Group& group, T* destination, std::size_t destination_extent, const T* source,
                  std::size_t source_extent, Site site = Site::here()) {
    memcpy_async(group, destination, source, std::min(destination_extent, source_extent) * sizeof(T), site);
}

// Waits for all batches but the newest `kBatches`, then for the group.
template <unsigned kBatches, class Group>
void wait_prior(const Group& group, Site site = Site::here()) {
    cuda_on_cpu::wait_for_copies(kBatches);
    group.sync(site);
}
template <class Group>
void wait(const Group& group, Site site = Site::here()) {
    wait_prior<0>(group, site);
}

}  // namespace cooperative_groups

#include "cuda_on_cpu/macros_back.h"
