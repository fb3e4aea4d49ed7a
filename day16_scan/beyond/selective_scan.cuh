// Day 16, beyond: the selective scan, in which the recurrence h[t] = factor[t] h[t - 1] + offset[t]
// of every channel and state is a scan with the operator Affine (operator_scan.cuh). A state space
// model does this in place of attention, with work that grows with the length and not with its
// square. The equations and the layout of the arrays are in selective_scan.hpp.
//
//   version          what is new                                              what limits it
//   sequential       a thread for each channel, one time step after another   not profiled: 2.60 ms
//   block_scan       a block for each channel, a thread for each time step    not profiled: 1.98 ms
//   chunks           a thread has eight time steps in registers               not profiled: 546 µs
//   shared_inputs    b and c are loaded once for four channels                not profiled: 649 µs
//
//   The times: a batch of 8, 1,536 channels, 2,048 steps, 16 states, on an H200.
//
//   ./course run day16 --size 1x16x2000x16      batch x channels x time steps x states
#pragma once

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "operator_scan.cuh"

namespace day16 {

struct SelectiveArrays {
    const float* x;
    const float* delta;
    const float* a;
    const float* b;
    const float* c;
    const float* d;
    float* y;
    std::size_t length;
    unsigned rows;  // batch x channels: a row is one channel of one sequence
    unsigned channels;
    unsigned states;

    // The first element of state n in b and c, for a sequence of the batch.
    __device__ std::size_t inputs_of(std::size_t sequence, unsigned n) const {
        return (sequence * states + n) * length;
    }
};

// --- One time step after another --------------------------------------------------------------------

constexpr int kTogether = 16;  // states that a thread holds in registers

// Idea: the equations as they stand. Each thread computes a whole row, with sixteen states at a
// time in registers; the y of more states are added up in memory.
// Cost removed: none; this is the start.
// Still limits it: not profiled. There are only batch x channels threads. Adjacent threads have
// adjacent rows, so their accesses are `length` floats apart: each loads a sector of its own.
__global__ void selective_sequential(SelectiveArrays s) {
    const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= s.rows) return;
    const unsigned channel = row % s.channels;
    const float* x = s.x + row * s.length;
    const float* delta = s.delta + row * s.length;
    float* y = s.y + row * s.length;
    for (unsigned first = 0; first < s.states; first += kTogether) {
        float a[kTogether];
        float h[kTogether];
#pragma unroll
        for (int n = 0; n < kTogether; ++n) {
            a[n] = first + n < s.states ? s.a[std::size_t{channel} * s.states + first + n] : 0.0f;
            h[n] = 0;
        }
        const std::size_t inputs = s.inputs_of(row / s.channels, first);
        for (std::size_t t = 0; t < s.length; ++t) {
            const float delta_x = delta[t] * x[t];
            float sum = first == 0 ? s.d[channel] * x[t] : y[t];
#pragma unroll
            for (int n = 0; n < kTogether; ++n) {
                if (first + n >= s.states) break;
                h[n] = expf(delta[t] * a[n]) * h[n] + delta_x * s.b[inputs + n * s.length + t];
                sum += s.c[inputs + n * s.length + t] * h[n];
            }
            y[t] = sum;
        }
    }
}

inline void launch_selective_sequential(const SelectiveArrays& s, cudaStream_t stream) {
    constexpr int kThreads = 64;  // small blocks, so that few rows still use many multiprocessors
    selective_sequential<<<course::blocks_for(s.rows, kThreads), kThreads, 0, stream>>>(s);
}

// --- A scan over time -------------------------------------------------------------------------------

// Idea: step t is the map h -> factor h + offset, and maps are combined by an associative operator.
// So 256 steps are a scan of a block. What the maps of all tiles before make of 0 is the carry.
// Cost removed: the chain of `length` dependent steps, and strided accesses: adjacent threads have
// adjacent time steps.
// Still limits it: not profiled. For each state a thread has one step, twelve shuffles and two
// barriers.
__global__ void __launch_bounds__(kBlock) selective_block_scan(SelectiveArrays s) {
    extern __shared__ float carry[];  // of each state
    const std::size_t row = blockIdx.x;
    const unsigned channel = blockIdx.x % s.channels;
    for (unsigned n = threadIdx.x; n < s.states; n += kBlock)
        carry[n] = 0;
    for (std::size_t tile = 0; tile < s.length; tile += kBlock) {
        const std::size_t t = tile + threadIdx.x;
        const bool is_inside = t < s.length;
        const float delta = is_inside ? s.delta[row * s.length + t] : 0.0f;
        const float x = is_inside ? s.x[row * s.length + t] : 0.0f;
        float y = s.d[channel] * x;
        for (unsigned n = 0; n < s.states; ++n) {
            const std::size_t inputs = s.inputs_of(row / s.channels, n) + t;
            Affine::Value own = Affine::neutral();
            if (is_inside)
                own = {expf(delta * s.a[std::size_t{channel} * s.states + n]), delta * x * s.b[inputs]};
            Affine::Value total;
            const Affine::Value before = combined_before<Affine>(own, total);
            const Affine::Value until = Affine::apply({0, carry[n]}, Affine::apply(before, own));
            if (is_inside) y += s.c[inputs] * until.offset;
            __syncthreads();  // all threads have read the carry and the sums of warps
            if (threadIdx.x == 0) carry[n] = Affine::apply({0, carry[n]}, total).offset;
        }
        if (is_inside) s.y[row * s.length + t] = y;
    }
}

inline void launch_selective_block_scan(const SelectiveArrays& s, cudaStream_t stream) {
    selective_block_scan<<<s.rows, kBlock, s.states * sizeof(float), stream>>>(s);
}

// --- Chunks in registers ----------------------------------------------------------------------------

// The kOwn elements of a row from `first` on; 0 beyond the end of the row.
template <int kOwn>
__device__ void load_chunk(float (&own)[kOwn], const float* row, std::size_t first, std::size_t length) {
    if (first + kOwn <= length && course::is_aligned(row + first, 16)) {
#pragma unroll
        for (int k = 0; k < kOwn; k += 4) {
            const auto pack = course::Pack<float, 4>::load(row + first + k);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                own[k + i] = pack.value[i];
        }
    } else {
#pragma unroll
        for (int k = 0; k < kOwn; ++k)
            own[k] = first + k < length ? row[first + k] : 0.0f;
    }
}

template <int kOwn>
__device__ void store_chunk(const float (&own)[kOwn], float* row, std::size_t first, std::size_t length) {
    if (first + kOwn <= length && course::is_aligned(row + first, 16)) {
#pragma unroll
        for (int k = 0; k < kOwn; k += 4)
            course::Pack<float, 4>{{own[k], own[k + 1], own[k + 2], own[k + 3]}}.store(row + first + k);
    } else {
#pragma unroll
        for (int k = 0; k < kOwn; ++k)
            if (first + k < length) row[first + k] = own[k];
    }
}

// combined_before() of kChannels values at once, with one barrier for all. The caller alternates
// between two arrays `of_warp`, so that no second barrier is needed before the next call.
template <int kChannels>
__device__ void combined_before_each(Affine::Value (&value)[kChannels], Affine::Value (&total)[kChannels],
                                     Affine::Value (&of_warp)[kWarps][kChannels]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
        for (int stride = 1; stride < kWarpSize; stride *= 2) {
            const Affine::Value left = shuffle<1>(value[c], stride);
            if (lane >= stride) value[c] = Affine::apply(left, value[c]);
        }
        if (lane == kWarpSize - 1) of_warp[warp][c] = value[c];
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
        const Affine::Value left = shuffle<1>(value[c], 1);
        value[c] = Affine::neutral();
        total[c] = Affine::neutral();
        for (int w = 0; w < kWarps; ++w) {
            if (w == warp) value[c] = total[c];
            total[c] = Affine::apply(total[c], of_warp[w][c]);
        }
        if (lane > 0) value[c] = Affine::apply(value[c], left);
    }
}

// `chunks` is selective_chunks<8, 1>.
// Idea: each thread combines the maps of eight consecutive steps, and the block scans one map for
// each thread. With the state before its chunk, a thread computes its eight steps once more, one
// after another.
// Cost removed: shuffles and barriers: as many for 2,048 steps as for 256 before.
// Still limits it: not profiled. For each step and state, four bytes of b and of c are loaded,
// for each step only twelve bytes of x, delta and y. All channels load the same b and c, so caches
// serve most loads.
//
// `shared_inputs` is selective_chunks<4, 4>.
// Idea: a block has four channels, so that a thread uses each b and c four times.
// Cost removed: three quarters of the loads of b and c; a barrier serves four scans.
// Still limits it: not profiled. A GPU with 16 exponentials per clock in each multiprocessor
// needs longer for exp() than for the memory traffic, if there are more than about 12 states.
//
// Three blocks of 256 threads fit on a multiprocessor with 80 registers for each thread, two with
// 128. Without the bound, a thread with four channels takes 160.
template <int kOwn, int kChannels>
__global__ void __launch_bounds__(kBlock, kChannels == 1 ? 3 : 2) selective_chunks(SelectiveArrays s) {
    extern __shared__ float carries[];  // two for each state and channel: of this tile, of the next
    __shared__ Affine::Value of_warp[2][kWarps][kChannels];
    constexpr std::size_t kSteps = kBlock * kOwn;
    const unsigned groups = course::ceil_div<unsigned>(s.channels, kChannels);
    const std::size_t sequence = blockIdx.x / groups;
    const unsigned first_channel = blockIdx.x % groups * kChannels;
    const unsigned carried = s.states * kChannels;
    for (unsigned i = threadIdx.x; i < carried; i += kBlock)
        carries[i] = 0;
    unsigned buffer = 0;
    float* carry = carries;
    float* next_carry = carries + carried;
    for (std::size_t tile = 0; tile < s.length; tile += kSteps) {
        const std::size_t first = tile + threadIdx.x * kOwn;
        float delta[kChannels][kOwn];
        float delta_x[kChannels][kOwn];
        float y[kChannels][kOwn];
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
            // Steps beyond the end, and channels beyond the last one, have delta = x = 0.
            const unsigned channel = first_channel + c;
            const std::size_t length = channel < s.channels ? s.length : 0;
            const std::size_t row = (sequence * s.channels + channel) * s.length;
            const float d = channel < s.channels ? s.d[channel] : 0.0f;
            load_chunk(delta_x[c], s.x + row, first, length);
            load_chunk(delta[c], s.delta + row, first, length);
#pragma unroll
            for (int k = 0; k < kOwn; ++k) {
                y[c][k] = d * delta_x[c][k];
                delta_x[c][k] *= delta[c][k];
            }
        }
        for (unsigned n = 0; n < s.states; ++n) {
            const std::size_t inputs = s.inputs_of(sequence, n);
            float b[kOwn];
            load_chunk(b, s.b + inputs, first, s.length);
            float factor[kChannels][kOwn];
            Affine::Value own[kChannels];
#pragma unroll
            for (int c = 0; c < kChannels; ++c) {
                const unsigned channel = first_channel + c;
                const float a = channel < s.channels ? s.a[std::size_t{channel} * s.states + n] : 0.0f;
                own[c] = Affine::neutral();
#pragma unroll
                for (int k = 0; k < kOwn; ++k) {
                    factor[c][k] = expf(delta[c][k] * a);
                    own[c] = Affine::apply(own[c], {factor[c][k], delta_x[c][k] * b[k]});
                }
            }
            Affine::Value total[kChannels];
            combined_before_each(own, total, of_warp[buffer]);
            buffer ^= 1;
            float c_of_step[kOwn];
            load_chunk(c_of_step, s.c + inputs, first, s.length);
#pragma unroll
            for (int c = 0; c < kChannels; ++c) {
                const float before_tile = carry[n * kChannels + c];
                float h = Affine::apply({0, before_tile}, own[c]).offset;
#pragma unroll
                for (int k = 0; k < kOwn; ++k) {
                    h = factor[c][k] * h + delta_x[c][k] * b[k];
                    y[c][k] += c_of_step[k] * h;
                }
                if (threadIdx.x == 0)
                    next_carry[n * kChannels + c] = Affine::apply({0, before_tile}, total[c]).offset;
            }
        }
        float* const spare = carry;
        carry = next_carry;
        next_carry = spare;
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
            const std::size_t channel = first_channel + c;
            const std::size_t length = channel < s.channels ? s.length : 0;
            store_chunk(y[c], s.y + (sequence * s.channels + channel) * s.length, first, length);
        }
    }
}

template <int kOwn, int kChannels>
void launch_selective_chunks(const SelectiveArrays& s, cudaStream_t stream) {
    const unsigned groups = course::ceil_div<unsigned>(s.channels, kChannels);
    const unsigned grid = s.rows / s.channels * groups;
    const std::size_t carries = 2 * kChannels * s.states * sizeof(float);
    selective_chunks<kOwn, kChannels><<<grid, kBlock, carries, stream>>>(s);
}

}  // namespace day16
