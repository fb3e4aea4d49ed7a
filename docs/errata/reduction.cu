// Chapter 10: figures 10.16 and 10.18, and how much of a block's time the first tree takes.
//
//   ./course run docs/errata/reduction.cu
#include "errata.hpp"

constexpr int kWarp = 32;

__device__ inline float sum_of_warp(float value) {
    for (int step = kWarp / 2; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffffu, value, step);
    return value;
}

// The text after the first tree, for 256 elements and 128 threads: a warp with at least one active
// thread takes the time of 32. Counts that over all steps.
__global__ void count_slots(int* slots) {
    for (int stride = 1; stride <= static_cast<int>(blockDim.x); stride *= 2) {
        const bool is_active = threadIdx.x % stride == 0;
        const bool is_warp_active = __any_sync(0xffffffffu, is_active) != 0;
        if (threadIdx.x % kWarp == 0 && is_warp_active) atomicAdd(slots, kWarp);
        __syncthreads();
    }
}

// 10.16: each warp sums, then the first warp sums the sums. In a block of 128 threads there are
// four of them; in the reported form all 32 lanes read one. Behind the four lies what the block
// keeps there for other purposes.
template <bool kReported>
__global__ void sum_in_two_stages(const float* in, float* out) {
    __shared__ float sums[kWarp];
    const int warps = blockDim.x / kWarp, lane = threadIdx.x % kWarp;
    if (static_cast<int>(threadIdx.x) >= warps && threadIdx.x < kWarp) sums[threadIdx.x] = 7.0f;
    const float of_warp = sum_of_warp(in[threadIdx.x] + in[threadIdx.x + blockDim.x]);
    if (lane == 0) sums[threadIdx.x / kWarp] = of_warp;
    __syncthreads();
    if (threadIdx.x >= kWarp) return;
    const float all = sum_of_warp(kReported || lane < warps ? sums[lane] : 0.0f);
    if (lane == 0) *out = all;
}

// 10.18: each block adds the sum of its segment of 2 * blockDim.x elements to the result. The
// length n is a parameter that the reported form does not use.
template <bool kReported>
__global__ void sum_segments(const float* in, int n, float* out) {
    __shared__ float sums[kWarp];
    const int lane = threadIdx.x % kWarp, i = 2 * blockDim.x * blockIdx.x + threadIdx.x, j = i + blockDim.x;
    const float first = kReported || i < n ? in[i] : 0.0f, second = kReported || j < n ? in[j] : 0.0f;
    const float of_warp = sum_of_warp(first + second);
    if (lane == 0) sums[threadIdx.x / kWarp] = of_warp;
    __syncthreads();
    if (threadIdx.x >= kWarp) return;
    const float all = sum_of_warp(lane < static_cast<int>(blockDim.x) / kWarp ? sums[lane] : 0.0f);
    if (lane == 0) atomicAdd(out, all);
}

int main() {
    const errata::OnDevice<int> slots(1, 0);
    count_slots<<<1, 128>>>(slots.data());
    const int counted = slots.to_host()[0];
    std::printf("256 elements: warps with an active thread take %d times the slot of a thread\n", counted);
    bool all = errata::show("10.4", "slots missing in the text's 736", counted - 736, counted - 864);

    // Whole numbers: every sum is exact. Behind the n elements lie some that do not belong to them.
    constexpr int kBlock = 128, kLength = 1000, kBlocks = (kLength + 2 * kBlock - 1) / (2 * kBlock);
    std::vector<float> values(kBlocks * 2 * kBlock, 100.0f);
    float sum_of_256 = 0.0f, sum_of_all = 0.0f;
    for (int i = 0; i < kLength; ++i) {
        values[i] = static_cast<float>(i % 5);
        sum_of_all += values[i];
        if (i < 256) sum_of_256 += values[i];
    }
    const errata::OnDevice<float> in(values);
    const auto is_wrong = [](const errata::OnDevice<float>& result, float right) {
        return result.to_host()[0] != right;
    };

    const errata::OnDevice<float> reported(1, 0.0f), corrected(1, 0.0f);
    sum_in_two_stages<true><<<1, kBlock>>>(in.data(), reported.data());
    sum_in_two_stages<false><<<1, kBlock>>>(in.data(), corrected.data());
    all &=
        errata::show("10.16", "sums wrong", is_wrong(reported, sum_of_256), is_wrong(corrected, sum_of_256));

    const errata::OnDevice<float> whole_segments(1, 0.0f), real_length(1, 0.0f), used_before(1, 5.0f);
    sum_segments<true><<<kBlocks, kBlock>>>(in.data(), kLength, whole_segments.data());
    sum_segments<false><<<kBlocks, kBlock>>>(in.data(), kLength, real_length.data());
    sum_segments<false><<<kBlocks, kBlock>>>(in.data(), kLength, used_before.data());
    const int right = is_wrong(real_length, sum_of_all);
    all &=
        errata::show("10.18a", "sums wrong: of 1000 elements", is_wrong(whole_segments, sum_of_all), right);
    all &= errata::show("10.18b", "sums wrong: the result held 5 before", is_wrong(used_before, sum_of_all),
                        right);
    return all ? 0 : 1;
}
