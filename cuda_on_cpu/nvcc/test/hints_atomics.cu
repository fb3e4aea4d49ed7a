// Kernels with atomic functions that lack a barrier, and right ones whose atomic functions give
// other results in another order of threads. usage: hints_atomics CASE
#include <cooperative_groups.h>

#include <cstring>
#include <string>

namespace cg = cooperative_groups;

constexpr int kBlocks = 6;
constexpr int kThreads = 256;
constexpr int kCount = kBlocks * kThreads;
constexpr int kBins = 64;

__device__ float block_sum(float value, bool synchronise) {
    __shared__ float sums[kThreads];
    sums[threadIdx.x] = value;
    if (synchronise) __syncthreads();
    for (int d = kThreads / 2; d > 0; d /= 2) {
        if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
        if (synchronise) __syncthreads();
    }
    return sums[0];
}

// ---- A barrier is missing -----------------------------------------------------------------------

__global__ void histogram_not_cleared(const int* in, int* bins) {
    __shared__ int own[kBins];
    if (threadIdx.x < kBins) own[threadIdx.x] = 0;
    // __syncthreads() is missing
    atomicAdd(&own[in[blockIdx.x * kThreads + threadIdx.x] % kBins], 1);
    __syncthreads();
    if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
__global__ void histogram_not_complete(const int* in, int* bins) {
    extern __shared__ int own_bins[];
    for (int b = threadIdx.x; b < kBins; b += blockDim.x)
        own_bins[b] = 0;
    __syncthreads();
    atomicAdd(own_bins + in[blockIdx.x * kThreads + threadIdx.x] % kBins, 1);
    // __syncthreads() is missing
    for (int b = threadIdx.x; b < kBins; b += blockDim.x)
        if (own_bins[b] > 0) atomicAdd(bins + b, own_bins[b]);
}
__global__ void sum_without_barriers(const int* in, int* out) {
    const float sum = block_sum(in[blockIdx.x * kThreads + threadIdx.x], false);
    if (threadIdx.x == 0) atomicAdd(reinterpret_cast<float*>(out), sum);
}
__global__ void maximum_without_barriers(const int* in, int* out) {
    __shared__ int most[kThreads];
    most[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
    for (int d = kThreads / 2; d > 0; d /= 2)
        if (threadIdx.x < d) most[threadIdx.x] = max(most[threadIdx.x], most[threadIdx.x + d]);
    if (threadIdx.x == 0) atomicMax(out, most[0]);
}
__global__ void dot_not_complete(const int* in, int* out) {  // the sum is read before all have added
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    const float mine = in[blockIdx.x * kThreads + threadIdx.x];
    atomicAdd(&sum, mine * mine);
    reinterpret_cast<float*>(out)[blockIdx.x * kThreads + threadIdx.x] = mine / sum;
}
__global__ void double_sum_without_barriers(const int* in, int* out) {
    __shared__ double sums[kThreads];
    sums[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
    for (int d = kThreads / 2; d > 0; d /= 2)
        if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
    if (threadIdx.x == 0) atomicAdd(reinterpret_cast<double*>(out), sums[0]);
}
// A scan in one pass: each block waits for the one before it, by tickets or by blockIdx.
__device__ void scan_blocks(const int* in, int* out, int* state, bool synchronise, bool by_tickets = true) {
    int* const ticket = state;
    int* const ready = state + 1;
    volatile int* const prefix = state + 1 + kBlocks + 1;
    __shared__ int block, before;
    __shared__ int values[kThreads];
    if (threadIdx.x == 0) block = by_tickets ? atomicAdd(ticket, 1) : blockIdx.x;
    __syncthreads();
    const int i = block * kThreads + threadIdx.x;
    values[threadIdx.x] = in[i];
    for (int d = 1; d < kThreads; d *= 2) {
        __syncthreads();
        const int sum =
            threadIdx.x >= d ? values[threadIdx.x] + values[threadIdx.x - d] : values[threadIdx.x];
        if (synchronise) __syncthreads();
        values[threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (block > 0) {
            while (atomicAdd(&ready[block - 1], 0) == 0) {
            }
        }
        before = block > 0 ? prefix[block - 1] : 0;
        prefix[block] = before + values[kThreads - 1];
        __threadfence();
        atomicAdd(&ready[block], 1);
    }
    __syncthreads();
    out[i] = before + values[threadIdx.x];
}
__global__ void scan_without_a_barrier(const int* in, int* out, int* state) {
    scan_blocks(in, out, state, false);
}
__global__ void chain_without_a_barrier(const int* in, int* out, int* state) {
    scan_blocks(in, out, state, false, false);
}
// The last block to finish adds what all have left.
__device__ void sum_in_last_block(const int* in, int* out, int* state, bool synchronise) {
    __shared__ bool is_last;
    const float sum = block_sum(in[blockIdx.x * kThreads + threadIdx.x], true);
    float* const parts = reinterpret_cast<float*>(out) + 1;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(reinterpret_cast<unsigned*>(state), gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    if (synchronise) __syncthreads();
    if (is_last) {
        float all = 0;
        for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads)
            all += parts[i];
        atomicAdd(reinterpret_cast<float*>(out), all);
    }
}
__global__ void last_block_without_barrier(const int* in, int* out, int* state) {
    sum_in_last_block(in, out, state, false);
}

// ---- Right --------------------------------------------------------------------------------------

__global__ void histogram(const int* in, int* bins) {
    __shared__ int own[kBins];
    if (threadIdx.x < kBins) own[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&own[in[blockIdx.x * kThreads + threadIdx.x] % kBins], 1);
    __syncthreads();
    if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
__global__ void sum(const int* in, int* out) {
    const float sum = block_sum(0.1f * in[blockIdx.x * kThreads + threadIdx.x], true);
    if (threadIdx.x == 0) atomicAdd(reinterpret_cast<float*>(out), sum);
}
__global__ void normalise(const int* in, int* out) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    const float mine = 0.37f * in[blockIdx.x * kThreads + threadIdx.x] - 100;  // sums nearly cancel
    atomicAdd(&sum, mine);
    __syncthreads();
    reinterpret_cast<float*>(out)[blockIdx.x * kThreads + threadIdx.x] = sum;
}
__global__ void double_sums(const int* in, int* out) {
    __shared__ double sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, 1.0 / (1 + in[blockIdx.x * kThreads + threadIdx.x]));
    __syncthreads();
    if (threadIdx.x == 0) reinterpret_cast<double*>(out)[blockIdx.x] = sum;
}
__global__ void scan(const int* in, int* out, int* state) {
    scan_blocks(in, out, state, true);
}
__global__ void chain(const int* in, int* out, int* state) {
    scan_blocks(in, out, state, true, false);
}
__global__ void last_block(const int* in, int* out, int* state) {
    sum_in_last_block(in, out, state, true);
}
__global__ void compact(const int* in, int* out, int* state) {  // in any order
    __shared__ int found, place;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    const int mine = in[blockIdx.x * kThreads + threadIdx.x];
    int own = -1;
    if (mine % 3 == 0) own = atomicAdd(&found, 1);
    __syncthreads();
    if (threadIdx.x == 0) place = atomicAdd(state, found);
    __syncthreads();
    if (own >= 0) out[place + own] = mine;
}
__global__ void compact_by_warps(const int* in, int* out, int* state) {
    __shared__ int values[kThreads];
    values[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
    __syncthreads();
    const int mine = values[kThreads - 1 - threadIdx.x];
    const unsigned chosen = __ballot_sync(0xffffffff, mine % 2 == 0);
    const unsigned lane = threadIdx.x % 32;
    int place = 0;
    if (lane == 0) place = atomicAdd(state, __popc(chosen));
    place = __shfl_sync(0xffffffff, place, 0) + __popc(chosen & ((1u << lane) - 1));
    if (mine % 2 == 0) out[place] = mine;
}
__global__ void push_under_a_lock(const int* in, int* out, int* state) {  // a list, whose order is any
    __shared__ int lock, head;
    if (threadIdx.x == 0) lock = 0, head = -1;
    __syncthreads();
    const int i = blockIdx.x * kThreads + threadIdx.x;
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            out[i] = head;
            head = i;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
}
// Distances in a ring of nodes, from what others have just found: more launches would end it.
__global__ void relax(const int* in, int* out, int* state) {
    __shared__ int changed;
    if (threadIdx.x == 0) changed = 0;
    __syncthreads();
    const int i = blockIdx.x * kThreads + threadIdx.x;
    volatile int* const distance = out;
    const int next = (i + 1) % kCount, before = (i + kCount - 1) % kCount;
    if (distance[i] + in[i] < distance[next]) {
        atomicMin(&out[next], distance[i] + in[i]);
        atomicAdd(&changed, 1);
    }
    if (distance[i] + in[i] < distance[before]) atomicMin(&out[before], distance[i] + in[i]);
    __syncthreads();
    if (threadIdx.x == 0 && changed > 0) state[0] = 1;
}
// Removes nodes of few neighbours: more launches would end it.
__global__ void peel(const int* in, int* out, int* state) {
    __shared__ int removed;
    if (threadIdx.x == 0) removed = 0;
    __syncthreads();
    const int i = blockIdx.x * kThreads + threadIdx.x;
    volatile int* const degree = out;
    if (degree[i] >= 0 && degree[i] < 2) {
        degree[i] = -1000;
        atomicAdd(&removed, 1);
        const int first = static_cast<int>(blockIdx.x) * kThreads;  // each block has a ring of its own
        atomicSub(&out[first + (threadIdx.x + 1) % kThreads], 1);
        atomicSub(&out[first + (threadIdx.x + kThreads - 1) % kThreads], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(state, removed);
}
// The same without atomic functions on the distances: a thread writes its own only.
__device__ void relax_from(const int* in, int* out, int* state, int neighbour, int other_neighbour) {
    __shared__ int changed;
    if (threadIdx.x == 0) changed = 0;
    __syncthreads();
    const int i = blockIdx.x * kThreads + threadIdx.x;
    volatile int* const distance = out;
    for (const int from : {(i + neighbour) % kCount, (i + other_neighbour) % kCount}) {
        if (distance[from] + in[i] < distance[i]) {
            distance[i] = distance[from] + in[i];
            atomicAdd(&changed, 1);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && changed > 0) atomicAdd(state, changed);
}
__global__ void relax_own(const int* in, int* out, int* state) {
    relax_from(in, out, state, kCount - 1, kCount - 1);
}
__global__ void relax_both_ways(const int* in, int* out, int* state) {
    relax_from(in, out, state, kCount - 1, 1);
}
// An atomic function of the program's own, from compare-and-swap.
__device__ void add_by_swaps(float* at, float value) {
    int* const word = reinterpret_cast<int*>(at);
    int old = *word, expected;
    do {
        expected = old;
        old = atomicCAS(word, expected, __float_as_int(__int_as_float(expected) + value));
    } while (old != expected);
}
__global__ void sum_by_swaps(const int* in, int* out, int*) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    add_by_swaps(&sum, 0.1f * in[blockIdx.x * kThreads + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) add_by_swaps(reinterpret_cast<float*>(out), sum);
}
__global__ void tickets_in_ptx(const int* in, int* out, int* state) {
    __shared__ int values[kThreads];
    values[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    int ticket;
    asm volatile("atom.global.add.s32 %0, [%1], 1;" : "=r"(ticket) : "l"(state) : "memory");
    out[ticket] = values[threadIdx.x] + blockIdx.x;
}
__global__ void random_places(const int* in, int* out, int* state) {
    __shared__ int count;
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) count = 0;
    block.sync();
    if (in[block.group_index().x * kThreads + block.thread_rank()] % 2)
        out[block.group_index().x * kThreads + atomicAdd(&count, 1)] = static_cast<int>(block.thread_rank());
    block.sync();
    if (block.thread_rank() == 0) atomicAdd(state, count);
}

template <class... Parameters>
void run(void (*kernel)(Parameters...), const int* in, int* out, int* state) {
    for (int i = 0; i < 2; ++i) {
        cudaMemset(state, 0, 1024 * sizeof(int));
        if constexpr (sizeof...(Parameters) == 2)
            kernel<<<kBlocks, kThreads, kBins * sizeof(int)>>>(in, out);
        else
            kernel<<<kBlocks, kThreads>>>(in, out, state);
    }
}

int main(int count, char** values) {
    const std::string name = count > 1 ? values[1] : "";
    int *in = nullptr, *out = nullptr, *state = nullptr;
    cudaMallocManaged(&in, kCount * sizeof(int));
    cudaMallocManaged(&out, 2 * kCount * sizeof(int));
    cudaMallocManaged(&state, 1024 * sizeof(int));
    for (int i = 0; i < kCount; ++i)
        in[i] = static_cast<int>(i * 2654435761u % 1009 % 700);
    std::memset(out, 0, 2 * kCount * sizeof(int));
    if (name.starts_with("relax"))
        for (int i = 0; i < kCount; ++i)
            out[i] = i % 100 == 0 ? 0 : 1 << 20;
    if (name == "peel")
        for (int i = 0; i < kCount; ++i)
            out[i] = i % 50 == 0 ? 1 : 2;
#define CASE(kernel) \
    if (name == #kernel) run(kernel, in, out, state)
    CASE(histogram_not_cleared);
    CASE(histogram_not_complete);
    CASE(sum_without_barriers);
    CASE(maximum_without_barriers);
    CASE(dot_not_complete);
    CASE(double_sum_without_barriers);
    CASE(scan_without_a_barrier);
    CASE(chain_without_a_barrier);
    CASE(last_block_without_barrier);
    CASE(histogram);
    CASE(sum);
    CASE(normalise);
    CASE(double_sums);
    CASE(scan);
    CASE(chain);
    CASE(last_block);
    CASE(compact);
    CASE(compact_by_warps);
    CASE(push_under_a_lock);
    CASE(relax);
    CASE(relax_own);
    CASE(relax_both_ways);
    CASE(peel);
    CASE(sum_by_swaps);
    CASE(tickets_in_ptx);
    CASE(random_places);
#undef CASE
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
