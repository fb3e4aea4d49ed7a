// Exercises on trees: what an array holds after each step, which warps diverge, how many additions
// there are. 4th edition 10.1 to 10.3, 10.6, 11.1, 11.4 to 11.6; 5th edition 10.1 to 10.3, 10.6,
// 11.1, 11.3, 11.6.
//
//   ./course run docs/answers/trees.cu
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kFew = 8;

__device__ void print(const char* step, int stride, const int* values) {
    if (threadIdx.x == 0) {
        printf("  %s %d:", step, stride);
        for (int i = 0; i < kFew; ++i)
            printf(" %d", values[i]);
        printf("\n");
    }
    __syncthreads();  // the next step stores
}

// Reductions in place: the stride grows, thread t has element 2t; or it shrinks, thread t has
// element t.
__global__ void reduce(int* values, bool stride_grows) {
    const int t = threadIdx.x, threads = kFew / 2;
    for (int step = 1; step <= threads; step *= 2) {
        const int stride = stride_grows ? step : threads / step, own = stride_grows ? 2 * t : t;
        if (t < threads && (stride_grows ? t % stride == 0 : t < stride)) values[own] += values[own + stride];
        __syncthreads();
        print("stride", stride, values);
    }
}

// The same tree from the other end: the last threads' elements are the last ones of the array.
__global__ void reduce_to_the_end(int* values) {
    const int t = threadIdx.x, threads = kFew / 2;
    for (int stride = threads; stride >= 1; stride /= 2) {
        const int own = t + threads;
        if (t >= threads - stride && t < threads) values[own] += values[own - stride];
        __syncthreads();
        print("stride", stride, values);
    }
}

// Inclusive scans in place. Kogge-Stone: every element adds the one `stride` before it.
__global__ void scan_kogge_stone(int* values) {
    const int t = threadIdx.x;
    for (int stride = 1; stride < kFew; stride *= 2) {
        const int sum = t < kFew && t >= stride ? values[t] + values[t - stride] : 0;
        __syncthreads();
        if (t < kFew && t >= stride) values[t] = sum;
        __syncthreads();
        print("stride", stride, values);
    }
}

// Brent-Kung: a tree of sums up, then a tree that distributes them down.
__global__ void scan_brent_kung(int* values) {
    for (int stride = 1; stride < kFew; stride *= 2) {
        const int i = (static_cast<int>(threadIdx.x) + 1) * 2 * stride - 1;
        if (i < kFew) values[i] += values[i - stride];
        __syncthreads();
        print("up, stride", stride, values);
    }
    for (int stride = kFew / 4; stride > 0; stride /= 2) {
        const int i = (static_cast<int>(threadIdx.x) + 1) * 2 * stride - 1;
        if (i + stride < kFew) values[i + stride] += values[i];
        __syncthreads();
        print("down, stride", stride, values);
    }
}

// The warps in which some lanes add and some do not, in step `step` (from 1) of a tree over twice
// as many elements as threads.
__global__ void count_divergent(bool stride_grows, int step, int* warps) {
    const int t = threadIdx.x,
              stride = stride_grows ? 1 << (step - 1) : static_cast<int>(blockDim.x) >> (step - 1);
    const unsigned lanes = __ballot_sync(0xffffffffu, stride_grows ? t % stride == 0 : t < stride);
    if (t % 32 == 0 && lanes != 0 && lanes != 0xffffffffu) atomicAdd(warps, 1);
}

// Additions of a scan of n elements: Kogge-Stone's, then those of Brent-Kung.
__global__ void count_additions(int n, int* additions) {
    for (int stride = 1; stride < n; stride *= 2)
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            if (i >= stride) atomicAdd(additions, 1);
            if ((i + 1) % (2 * stride) == 0) atomicAdd(additions + 1, 1);
            if ((i + 1) % (2 * stride) == stride && i >= stride) atomicAdd(additions + 2, 1);
        }
}

int main() {
    int* values = nullptr;
    cudaMallocManaged(&values, kFew * sizeof(int));
    const auto set = [&](const char* exercise, const int(&numbers)[kFew]) {
        std::printf("%s\n", exercise);
        for (int i = 0; i < kFew; ++i)
            values[i] = numbers[i];
    };
    const int ten[] = {6, 2, 7, 4, 5, 8, 3, 1}, eleven[] = {4, 6, 7, 1, 2, 8, 5, 2};
    bool all = true;
    set("10.6a, adjacent elements first", ten);
    reduce<<<1, 32>>>(values, true);
    all &= cudaDeviceSynchronize() == cudaSuccess && values[0] == 36;
    set("10.6b, distant elements first", ten);
    reduce<<<1, 32>>>(values, false);
    all &= cudaDeviceSynchronize() == cudaSuccess && values[0] == 36;
    set("10.3, towards the end", ten);
    reduce_to_the_end<<<1, 32>>>(values);
    all &= cudaDeviceSynchronize() == cudaSuccess && values[7] == 36;
    set("11.1, Kogge-Stone", eleven);
    scan_kogge_stone<<<1, 32>>>(values);
    all &= cudaDeviceSynchronize() == cudaSuccess && values[7] == 35;
    set("Brent-Kung (4th edition 11.5, 5th edition 11.6)", eleven);
    scan_brent_kung<<<1, 32>>>(values);
    all &= cudaDeviceSynchronize() == cudaSuccess && values[7] == 35;

    set("Counts", {});
    count_divergent<<<1, 512>>>(true, 5, values);
    count_divergent<<<1, 512>>>(false, 5, values + 1);
    count_additions<<<1, 1024>>>(2048, values + 2);
    all &= cudaDeviceSynchronize() == cudaSuccess;
    std::printf("  10.1: 1024 elements, fifth step: %d of 16 warps diverge; 10.2: %d\n", values[0],
                values[1]);
    std::printf("  2048 elements: %d additions by Kogge-Stone; by Brent-Kung %d up and %d down\n", values[2],
                values[3], values[4]);
    return all && values[0] == 16 && values[1] == 0 && values[2] == 20481 && values[3] + values[4] == 4083
               ? 0
               : 1;
}
