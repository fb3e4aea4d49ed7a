// Figure 12.8: a stable filter. A thread keeps its element or drops it, and an exclusive scan of
// the flags gives it a place.
//
//   ./course run docs/errata/filter.cu
#include "errata.hpp"

constexpr int kBlock = 128;

// Keeps even numbers. One block; the scan is a plain loop, because the figure is not about it. The
// reported form reads in[i] without comparing i and n.
template <bool kReported>
__global__ void keep_even(const unsigned* in, int n, unsigned* out, int* out_size) {
    __shared__ int keeps[kBlock];
    const int i = threadIdx.x;
    const bool is_in_range = kReported || i < n;
    const unsigned value = is_in_range ? in[i] : 1u;
    keeps[i] = is_in_range && value % 2 == 0;
    __syncthreads();
    int place = 0;
    for (int before = 0; before < i; ++before)
        place += keeps[before];
    if (keeps[i]) out[place] = value;
    if (i == n - 1) *out_size = place + keeps[i];
}

int main() {
    // 100 elements for 128 threads. Behind them lie even numbers that do not belong to the input.
    constexpr int kLength = 100;
    constexpr unsigned kUntouched = 999;
    std::vector<unsigned> values(kBlock, 8), expected;
    for (int i = 0; i < kLength; ++i) {
        values[i] = i * 3 % 17;
        if (values[i] % 2 == 0) expected.push_back(values[i]);
    }
    const int kept = static_cast<int>(expected.size());
    expected.resize(kBlock, kUntouched);
    const errata::OnDevice<unsigned> in(values), reported(kBlock, kUntouched), corrected(kBlock, kUntouched);
    const errata::OnDevice<int> reported_size(1, 0), corrected_size(1, 0);
    keep_even<true><<<1, kBlock>>>(in.data(), kLength, reported.data(), reported_size.data());
    keep_even<false><<<1, kBlock>>>(in.data(), kLength, corrected.data(), corrected_size.data());
    std::printf("%d elements are kept; the kernels say %d and %d\n", kept, reported_size.to_host()[0],
                corrected_size.to_host()[0]);
    return errata::show("12.8", "elements behind the result overwritten",
                        errata::differences(reported.to_host(), expected),
                        errata::differences(corrected.to_host(), expected))
               ? 0
               : 1;
}
