// Figure 5.14: a block keeps two tiles in one array of dynamic shared memory. The kernel gets
// their sizes in bytes, and adds the first size to a pointer to float.
//
//   ./course run docs/errata/shared_sizes.cu
#include "errata.hpp"

// Where the second tile begins, in bytes from the start of the array.
template <bool kReported>
__global__ void find_second_tile(unsigned first_bytes, int* begin) {
    extern __shared__ char tiles[];
    float* const reported = reinterpret_cast<float*>(tiles) + first_bytes;
    float* const corrected = reinterpret_cast<float*>(tiles + first_bytes);
    float* const second = kReported ? reported : corrected;
    if (threadIdx.x == 0) *begin = static_cast<int>(reinterpret_cast<char*>(second) - tiles);
}

int main() {
    constexpr unsigned kBytes = 2 * 32 * 32 * sizeof(float);
    const errata::OnDevice<int> begin(1, -1);
    find_second_tile<true><<<1, 32, kBytes>>>(kBytes / 2, begin.data());
    const int reported = begin.to_host()[0];
    find_second_tile<false><<<1, 32, kBytes>>>(kBytes / 2, begin.data());
    const int corrected = begin.to_host()[0];
    std::printf("an array of %u bytes: its second tile begins at byte %d, corrected at byte %d\n", kBytes,
                reported, corrected);
    // The bytes of the second tile that lie behind the array.
    const auto behind = [](int first) {
        const int last = first + static_cast<int>(kBytes / 2);
        const int inside = first < static_cast<int>(kBytes) ? static_cast<int>(kBytes) - first : 0;
        return last <= static_cast<int>(kBytes) ? 0 : static_cast<int>(kBytes / 2) - inside;
    };
    return errata::show("5.14", "bytes of the second tile behind the end", behind(reported),
                        behind(corrected))
               ? 0
               : 1;
}
