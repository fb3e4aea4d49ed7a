// Figures 7.7 and 7.15: two convolutions with a filter of 3 x 3.
//
//   ./course run docs/errata/convolution.cu
#include "errata.hpp"

constexpr int kRadius = 1, kFilter = 2 * kRadius + 1, kTile = 8;
constexpr int kWidth = 20, kHeight = 10;

// 7.7, one thread per pixel. The reported form stores without a check of row and column, so the
// threads of blocks that stand over the edge store, too.
template <bool kReported>
__global__ void convolve(const float* in, const float* filter, float* out) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int y = 0; y < kFilter; ++y)
        for (int x = 0; x < kFilter; ++x) {
            const int in_row = row - kRadius + y, in_col = col - kRadius + x;
            if (in_row >= 0 && in_row < kHeight && in_col >= 0 && in_col < kWidth)
                sum += filter[y * kFilter + x] * in[in_row * kWidth + in_col];
        }
    if (kReported || (row < kHeight && col < kWidth)) out[row * kWidth + col] = sum;
}

// 7.15, a tile without its halo in shared memory. The reported form tests the place of a neighbour
// in the tile with the radius taken off, and then reads without taking it off. Behind the tile is
// room for what it reads there.
template <bool kReported>
__global__ void convolve_cached_halo(const float* in, const float* filter, float* out) {
    __shared__ float tile[kTile * kTile + kRadius * (kTile + 1)];
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * kTile + tx;
    const int col = blockIdx.x * kTile + tx, row = blockIdx.y * kTile + ty;
    tile[thread] = row < kHeight && col < kWidth ? in[row * kWidth + col] : 0.0f;
    if (thread < kRadius * (kTile + 1)) tile[kTile * kTile + thread] = 0.0f;
    __syncthreads();
    if (row >= kHeight || col >= kWidth) return;
    float sum = 0.0f;
    for (int y = 0; y < kFilter; ++y)
        for (int x = 0; x < kFilter; ++x) {
            const int tile_row = ty - kRadius + y, tile_col = tx - kRadius + x;
            const int in_row = row - kRadius + y, in_col = col - kRadius + x;
            if (tile_row >= 0 && tile_row < kTile && tile_col >= 0 && tile_col < kTile)
                sum += filter[y * kFilter + x] *
                       (kReported ? tile[(ty + y) * kTile + tx + x] : tile[tile_row * kTile + tile_col]);
            else if (in_row >= 0 && in_row < kHeight && in_col >= 0 && in_col < kWidth)
                sum += filter[y * kFilter + x] * in[in_row * kWidth + in_col];
        }
    out[row * kWidth + col] = sum;
}

int main() {
    // Small whole numbers: every sum is exact.
    constexpr int kPixels = kWidth * kHeight;
    std::vector<float> image(kPixels), weights(kFilter * kFilter), expected(kPixels);
    for (int i = 0; i < kPixels; ++i)
        image[i] = static_cast<float>(i * 7 % 11);
    for (int i = 0; i < kFilter * kFilter; ++i)
        weights[i] = static_cast<float>(i + 1);
    for (int row = 0; row < kHeight; ++row)
        for (int col = 0; col < kWidth; ++col)
            for (int y = -kRadius; y <= kRadius; ++y)
                for (int x = -kRadius; x <= kRadius; ++x)
                    if (row + y >= 0 && row + y < kHeight && col + x >= 0 && col + x < kWidth)
                        expected[row * kWidth + col] += weights[(y + kRadius) * kFilter + x + kRadius] *
                                                        image[(row + y) * kWidth + col + x];

    const errata::OnDevice<float> in(image), filter(weights);
    const dim3 block(kTile, kTile), grid((kWidth + kTile - 1) / kTile, (kHeight + kTile - 1) / kTile);

    // Behind the result lie elements that no thread should store to.
    constexpr float kUntouched = -1.0f;
    const std::vector<float> before(2 * kPixels, kUntouched);
    const errata::OnDevice<float> reported(before), corrected(before);
    convolve<true><<<grid, block>>>(in.data(), filter.data(), reported.data());
    convolve<false><<<grid, block>>>(in.data(), filter.data(), corrected.data());
    std::vector<float> right = expected;
    right.resize(2 * kPixels, kUntouched);
    bool all = errata::show("7.7", "elements behind the result overwritten",
                            errata::differences(reported.to_host(), right, kPixels),
                            errata::differences(corrected.to_host(), right));

    const errata::OnDevice<float> reported_tile(kPixels, kUntouched), corrected_tile(kPixels, kUntouched);
    convolve_cached_halo<true><<<grid, block>>>(in.data(), filter.data(), reported_tile.data());
    convolve_cached_halo<false><<<grid, block>>>(in.data(), filter.data(), corrected_tile.data());
    all &= errata::show("7.15", "pixels wrong", errata::differences(reported_tile.to_host(), expected),
                        errata::differences(corrected_tile.to_host(), expected));
    return all ? 0 : 1;
}
