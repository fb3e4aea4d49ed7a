// Checks that the copies of the runtime API make before they start.
#pragma once

#include <cstddef>
#include <limits>

#include "driver_types.h"

namespace cuda_on_cpu {

// Checks the range that a copy reads or writes, including the gaps between its rows. As on a GPU, a
// device pointer must point to device memory, and the range must lie inside one allocation. Host
// memory that was not allocated by CUDA cannot be checked. `name`: the argument, such as
// "destination".
cudaError_t check_copied(const char* function, const char* name, const void* pointer, bool on_device,
                         std::size_t bytes);

// A product or sum that does not fit in a std::size_t: no memory holds so many bytes.
inline constexpr std::size_t kTooManyBytes = std::numeric_limits<std::size_t>::max();
std::size_t product(std::size_t a, std::size_t b);
// The bytes from the first byte of slices of rows to the last one; rows start `pitch` bytes apart,
// slices `slice_bytes`. There is at least one of each.
struct Extent {
    std::size_t row_bytes;
    std::size_t pitch;
    std::size_t rows;
    std::size_t slice_bytes = 0;
    std::size_t slices = 1;
};
std::size_t bytes_of(const Extent& extent);
// Are the `count` elements from `first` on inside `size` elements?
inline bool is_inside(std::size_t first, std::size_t count, std::size_t size) {
    return count <= size && first <= size - count;
}

}  // namespace cuda_on_cpu
