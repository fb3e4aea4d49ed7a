// Exercises on launches: how many threads run, how many get into a branch, how many warps diverge?
// 4th edition 2.4, 2.9, 3.3, 4.1, 4.2, 4.3; chapters 2 to 4 of the 5th have the same.
//
//   ./course run docs/answers/launches.cu
#include <cuda_runtime.h>

#include <cstdio>

struct Counts {
    int blocks, threads, inside;           // `inside`: threads for which the condition holds
    int warps, active_warps, split_warps;  // active: at least one lane is inside; split: not all
};

// Conditions of a thread: x and y in the grid, t in its block.
struct Below {
    int columns, rows;
    __device__ bool operator()(int x, int y, int) const { return x < columns && y < rows; }
};
struct Ends {
    __device__ bool operator()(int, int, int t) const { return t < 40 || t >= 104; }
};
struct Even {
    __device__ bool operator()(int x, int, int) const { return x % 2 == 0; }
};
struct Iteration {
    int j;
    __device__ bool operator()(int x, int, int) const { return j < 5 - x % 3; }
};

template <typename Condition>
__global__ void count(Condition condition, Counts* counts) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int t = threadIdx.y * blockDim.x + threadIdx.x;
    const bool is_inside = condition(x, y, t);
    const unsigned lanes = __ballot_sync(0xffffffffu, is_inside);
    atomicAdd(&counts->threads, 1);
    if (is_inside) atomicAdd(&counts->inside, 1);
    if (t == 0) atomicAdd(&counts->blocks, 1);
    if (t % 32 != 0) return;
    atomicAdd(&counts->warps, 1);
    if (lanes != 0) atomicAdd(&counts->active_warps, 1);
    if (lanes != 0 && lanes != 0xffffffffu) atomicAdd(&counts->split_warps, 1);
}

template <typename Condition>
Counts run(const char* exercise, dim3 grid, dim3 block, Condition condition) {
    static Counts* counts = nullptr;
    if (counts == nullptr) cudaMallocManaged(&counts, sizeof(Counts));
    *counts = {};
    count<<<grid, block>>>(condition, counts);
    cudaDeviceSynchronize();
    const Counts c = *counts;
    std::printf("%-26s %4d blocks, %6d threads, %6d inside; %5d warps, %5d active, %4d divergent\n", exercise,
                c.blocks, c.threads, c.inside, c.warps, c.active_warps, c.split_warps);
    return c;
}

int main() {
    const Counts add = run("2.4: 8000 in blocks of 1024", 8, 1024, Below{8000, 1});
    run("2.9: 200000 by 128", (200000 + 127) / 128, 128, Below{200000, 1});
    run("3.3: 150 rows of 300", dim3((300 - 1) / 16 + 1, (150 - 1) / 32 + 1), dim3(16, 32), Below{300, 150});
    const Counts ends = run("4.1c: t < 40 or t >= 104", 8, 128, Ends{});
    run("4.1d: even indices", 8, 128, Even{});
    int diverging = 0;
    for (int j = 0; j < 5; ++j)
        diverging += run("4.1e: an iteration", 8, 128, Iteration{j}).split_warps != 0;
    std::printf("4.1e: %d iterations without divergence, %d with it\n", 5 - diverging, diverging);
    run("4.2, 4.3: 2000 by 512", 4, 512, Below{2000, 1});
    return cudaGetLastError() == cudaSuccess && add.inside == 8000 && ends.active_warps == 24 &&
                   diverging == 2
               ? 0
               : 1;
}
