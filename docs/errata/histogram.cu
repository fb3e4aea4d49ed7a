// Figures 9.9 and 9.13: a histogram of 8 bins with a private copy for each block, and the order in
// which threads take pixels.
//
//   ./course run docs/errata/histogram.cu
#include "errata.hpp"

constexpr int kBins = 8, kBlock = 32;

// 9.9: each block counts in its part of the pool, in global memory, and adds it to the result. No
// thread clears the pool.
__global__ void count_in_pool(const unsigned char* pixels, int n, unsigned* pool, unsigned* bins) {
    unsigned* const own = pool + blockIdx.x * kBins;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&own[pixels[i]], 1u);
    __syncthreads();
    if (threadIdx.x < kBins && own[threadIdx.x] != 0) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// 9.13: 16 pixels, interleaved. In the first pass all 8 threads take pixels 0 to 7; in the second
// pass `threads` of them take one each, from pixel 8 on.
__global__ void count_interleaved(const unsigned char* pixels, int threads, unsigned* bins) {
    atomicAdd(&bins[pixels[threadIdx.x]], 1u);
    if (static_cast<int>(threadIdx.x) < threads) atomicAdd(&bins[pixels[8 + threadIdx.x]], 1u);
}

int main() {
    constexpr int kPixels = 100, kBlocks = (kPixels + kBlock - 1) / kBlock;
    std::vector<unsigned char> image(kPixels);
    std::vector<unsigned> expected(kBins), expected_of_16(kBins);
    for (int i = 0; i < kPixels; ++i) {
        image[i] = static_cast<unsigned char>(i * i % kBins);
        ++expected[image[i]];
        if (i < 16) ++expected_of_16[image[i]];
    }
    const errata::OnDevice<unsigned char> pixels(image);

    // cudaMalloc does not clear: the pool may hold anything, here the counts of an earlier image.
    const errata::OnDevice<unsigned> reported(kBins, 0), corrected(kBins, 0);
    const errata::OnDevice<unsigned> used_pool(kBlocks * kBins, 3), clear_pool(kBlocks * kBins, 0);
    count_in_pool<<<kBlocks, kBlock>>>(pixels.data(), kPixels, used_pool.data(), reported.data());
    count_in_pool<<<kBlocks, kBlock>>>(pixels.data(), kPixels, clear_pool.data(), corrected.data());
    bool all = errata::show("9.9", "bins wrong", errata::differences(reported.to_host(), expected),
                            errata::differences(corrected.to_host(), expected));

    const errata::OnDevice<unsigned> four(kBins, 0), eight(kBins, 0);
    count_interleaved<<<1, 8>>>(pixels.data(), 4, four.data());
    count_interleaved<<<1, 8>>>(pixels.data(), 8, eight.data());
    all &= errata::show("9.13", "bins wrong", errata::differences(four.to_host(), expected_of_16),
                        errata::differences(eight.to_host(), expected_of_16));
    return all ? 0 : 1;
}
