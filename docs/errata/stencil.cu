// Figure 8.12: a sweep of a 7-point stencil, plane after plane along z. The planes before and
// behind the current one are in registers; only the current one is also in shared memory.
//
//   ./course run docs/errata/stencil.cu
#include "errata.hpp"

constexpr int kSide = 9, kIn = 8, kOut = kIn - 2;
constexpr float kLeftOver = 1000.0f;

// At the end of a step the next plane becomes the current one. The reported form takes it from the
// shared array of the version before, next_tile, to which no thread stores any more.
template <bool kReported>
__global__ void sweep(const float* in, float* out) {
    __shared__ float tile[kIn][kIn], next_tile[kIn][kIn];
    const int tx = threadIdx.x, ty = threadIdx.y, z_first = blockIdx.z * kOut;
    const int x = static_cast<int>(blockIdx.x) * kOut + tx - 1,
              y = static_cast<int>(blockIdx.y) * kOut + ty - 1;
    // Whatever lay there when the block began.
    next_tile[ty][tx] = kLeftOver;
    const auto load = [&](int z) {
        const bool inside = x >= 0 && x < kSide && y >= 0 && y < kSide && z >= 0 && z < kSide;
        return inside ? in[(z * kSide + y) * kSide + x] : 0.0f;
    };
    const bool is_inner_thread = tx > 0 && tx < kIn - 1 && ty > 0 && ty < kIn - 1;
    const bool is_inner_column = x > 0 && x < kSide - 1 && y > 0 && y < kSide - 1;
    float before = load(z_first - 1), current = load(z_first);
    tile[ty][tx] = current;
    for (int z = z_first; z < z_first + kOut; ++z) {
        const float next = load(z + 1);
        __syncthreads();
        if (is_inner_thread && is_inner_column && z > 0 && z < kSide - 1)
            out[(z * kSide + y) * kSide + x] = 2.0f * current + tile[ty][tx - 1] + tile[ty][tx + 1] +
                                               tile[ty - 1][tx] + tile[ty + 1][tx] + before + next;
        __syncthreads();
        before = current;
        current = next;
        tile[ty][tx] = kReported ? next_tile[ty][tx] : next;
    }
}

int main() {
    constexpr int kCells = kSide * kSide * kSide;
    std::vector<float> cells(kCells), expected(kCells, -1.0f);
    for (int i = 0; i < kCells; ++i)
        cells[i] = static_cast<float>(i * 5 % 13);
    for (int z = 1; z < kSide - 1; ++z)
        for (int y = 1; y < kSide - 1; ++y)
            for (int x = 1; x < kSide - 1; ++x) {
                const int i = (z * kSide + y) * kSide + x, plane = kSide * kSide;
                expected[i] = 2.0f * cells[i] + cells[i - 1] + cells[i + 1] + cells[i - kSide] +
                              cells[i + kSide] + cells[i - plane] + cells[i + plane];
            }
    const errata::OnDevice<float> in(cells), reported(kCells, -1.0f), corrected(kCells, -1.0f);
    constexpr int kBlocks = (kSide + kOut - 1) / kOut;
    const dim3 grid(kBlocks, kBlocks, kBlocks), block(kIn, kIn);
    sweep<true><<<grid, block>>>(in.data(), reported.data());
    sweep<false><<<grid, block>>>(in.data(), corrected.data());
    return errata::show("8.12", "cells wrong", errata::differences(reported.to_host(), expected),
                        errata::differences(corrected.to_host(), expected))
               ? 0
               : 1;
}
