// Products whose C has few rows or few columns (for step 14).
//
// Change:     no tiles. The large operand is loaded once, from global memory to registers. The thin
//             one is read through the cache (few rows) or from shared memory (few columns).
// Why:        most of a tile would be out of range. And the product is memory-bound: an element of
//             the large operand is used in at most kThin multiply-adds.
//
//     few rows       C = A (thin) x B     a lane has 4 columns of C; a warp takes 8 of every 64 rows
//                                         of B
//     few columns    C = A x B (thin)     a warp has 4 rows of C; a lane takes every 32nd float4 of
//                                         these rows of A
//
// A block has a strip of C and a part of K. There are enough parts to keep the GPU busy. The
// partial sums of a strip are added up by its last block: a reduction (PMPP chapter 10).
#include <algorithm>
#include <cuda/atomic>
#include <stdexcept>
#include <string>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "launch.hpp"
#include "thin.hpp"
#include "tile.cuh"
#include "tiles.hpp"

namespace gemm {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / course::kWarpSize;
constexpr unsigned kBlocksEach = 4;                      // per SM
constexpr std::size_t kMostSums = std::size_t{1} << 16;  // that one block adds up at the end

// How C and K are divided: block b has strip b / parts of C, and part b % parts of K.
struct Division {
    unsigned strips;
    unsigned parts;

    std::size_t blocks() const { return std::size_t{strips} * parts; }
};

// The columns of A in a part: whole chunks, of which K may cut off the last.
template <int CHUNK>
struct Part {
    std::size_t begin;
    std::size_t end;

    __device__ Part(const Division& division, std::size_t k) {
        const std::size_t chunks = course::ceil_div<std::size_t>(k, CHUNK);
        const unsigned part = blockIdx.x % division.parts;
        begin = chunks * part / division.parts * CHUNK;
        end = min(chunks * (part + 1) / division.parts * CHUNK, k);
    }
};

// A block's sums of its strip, in value[0]. In finish_strip(), each sum is one of SLICES, which the
// block adds up when it stores them.
template <int ELEMENTS>
struct Sums {
    static constexpr int SLICES = ELEMENTS < kThreads ? kThreads / ELEMENTS : 1;

    float value[SLICES][ELEMENTS];
};

// Adds up ELEMENTS partial sums of each part. Slice s of `sums` gets parts s, s + SLICES...
template <int ELEMENTS>
__device__ void add_up_parts(const float* partial, unsigned parts, Sums<ELEMENTS>& sums) {
    constexpr int SLICES = Sums<ELEMENTS>::SLICES;
    // Sums of a thread: their loads are in flight at the same time.
    constexpr int EACH = SLICES * ELEMENTS / kThreads;
    const int slice = static_cast<int>(threadIdx.x) / ELEMENTS;
    const int first = static_cast<int>(threadIdx.x) % ELEMENTS;
    float total[EACH] = {};
#pragma unroll 4
    for (unsigned part = static_cast<unsigned>(slice); part < parts; part += SLICES) {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            total[i] += partial[part * ELEMENTS + first + i * kThreads];
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        sums.value[slice][first + i * kThreads] = total[i];
}

// Adds up the sums of all parts of this strip. The last block to finish reads those of the others,
// always in the same order, and calls write(element, sum). With one part, it calls write() at once.
template <int ELEMENTS, class Write>
__device__ void finish_strip(const Sgemm& gemm, const Division& division, Sums<ELEMENTS>& sums, Write write) {
    constexpr int SLICES = Sums<ELEMENTS>::SLICES;
    __shared__ bool is_last;
    const unsigned strip = blockIdx.x / division.parts;
    const unsigned part = blockIdx.x % division.parts;
    int slices = 1;
    if (division.parts > 1) {
        float* const partial = gemm.scratch.partial.data() + std::size_t{strip} * division.parts * ELEMENTS;
        for (int i = static_cast<int>(threadIdx.x); i < ELEMENTS; i += kThreads)
            partial[part * ELEMENTS + i] = sums.value[0][i];
        __syncthreads();  // all threads of the block have stored
        if (threadIdx.x == 0) {
            // Release: a block that draws a later ticket sees this block's sums. Acquire: this
            // block sees those of all earlier tickets.
            cuda::atomic_ref<unsigned, cuda::thread_scope_device> ticket(gemm.scratch.tickets[strip]);
            is_last = ticket.fetch_add(1, cuda::memory_order_acq_rel) == division.parts - 1;
            if (is_last) ticket.store(0, cuda::memory_order_relaxed);  // for the next launch
        }
        __syncthreads();  // is_last is set
        if (!is_last) return;
        add_up_parts<ELEMENTS>(partial, division.parts, sums);
        __syncthreads();  // all slices are complete
        slices = SLICES;
    }
    for (int i = static_cast<int>(threadIdx.x); i < ELEMENTS; i += kThreads) {
        float sum = 0;
        for (int slice = 0; slice < slices; ++slice)
            sum += sums.value[slice][i];
        write(i, sum);
    }
}

// A warp's values of a row are divided among its lanes in packs of VEC, one after the other. This
// is the place in the row of the lane's i-th value.
template <int VEC>
__device__ int place_in_row(int i) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    return (i / VEC * course::kWarpSize + lane) * VEC + i % VEC;
}

// This lane's values of a row of `count` floats, zero-filled past its end. VEC = 4: the row is
// 16-byte aligned, and `count` is a multiple of 4.
template <int VEC, int COUNT>
__device__ void load_row(const float* row, std::size_t count, float (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += VEC) {
        const auto place = static_cast<std::size_t>(place_in_row<VEC>(i));
        const auto pack =
            place < count ? course::Pack<float, VEC>::load(row + place) : course::Pack<float, VEC>{};
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            values[i + j] = pack.value[j];
    }
}

template <int ROWS_>
struct FewRows {
    static constexpr int ROWS = ROWS_;
    static constexpr int EACH = 4;                         // columns of a lane
    static constexpr int COLS = EACH * course::kWarpSize;  // of a block
    static constexpr int DEPTH = 8;                        // rows of B that a warp loads at once
    static constexpr int CHUNK = DEPTH * kWarps;
    static constexpr int ELEMENTS = ROWS * COLS;
    static constexpr int AT_ONCE = std::min(ROWS, 4);  // rows of C in one step of add_up_warps()
    // Blocks per SM: few enough to leave registers for DEPTH rows of B. Without them, the compiler
    // would load one row after the other.
    static constexpr int BLOCKS_EACH = ROWS == 1 ? 4 : ROWS <= 8 ? 2 : 1;
    static_assert(ROWS % AT_ONCE == 0, "FewRows: ROWS must be at most 4, or a multiple of 4");
};

// Adds up the warps' sums of the strip, AT_ONCE rows of C at a time.
template <class T, int VEC>
__device__ void add_up_warps(const float (&sums)[T::ROWS][T::EACH],
                             float (&of_warps)[kWarps][T::AT_ONCE][T::COLS], Sums<T::ELEMENTS>& total) {
#pragma unroll
    for (int row = 0; row < T::ROWS; row += T::AT_ONCE) {
        __syncthreads();  // of_warps is safe to overwrite
#pragma unroll
        for (int r = 0; r < T::AT_ONCE; ++r) {
#pragma unroll
            for (int j = 0; j < T::EACH; ++j)
                of_warps[threadIdx.x / course::kWarpSize][r][place_in_row<VEC>(j)] = sums[row + r][j];
        }
        __syncthreads();  // of_warps is complete
        for (int i = static_cast<int>(threadIdx.x); i < T::AT_ONCE * T::COLS; i += kThreads) {
            float sum = 0;
#pragma unroll
            for (int warp = 0; warp < kWarps; ++warp)
                sum += of_warps[warp][i / T::COLS][i % T::COLS];
            total.value[0][row * T::COLS + i] = sum;
        }
    }
    __syncthreads();  // the total is complete
}

// sums += columns [k, k + DEPTH) of A times these rows of the strip of B. WHOLE: all of them belong
// to the part; otherwise only those before `end`.
template <class T, int VEC, bool WHOLE>
__device__ void multiply_rows(const Sgemm& gemm, std::size_t k, std::size_t end, std::size_t col,
                              float (&sums)[T::ROWS][T::EACH]) {
    float b[T::DEPTH][T::EACH];
#pragma unroll
    for (int d = 0; d < T::DEPTH; ++d)
        load_row<VEC>(&gemm.b(k + d, col), WHOLE || k + d < end ? gemm.n() - col : 0, b[d]);
#pragma unroll
    for (int r = 0; r < T::ROWS; ++r) {
        // Past the last row: any row, because that sum is not stored.
        const std::size_t row = min(static_cast<std::size_t>(r), gemm.m() - 1);
#pragma unroll
        for (int d = 0; d < T::DEPTH; ++d) {
            const float a = WHOLE || k + d < end ? gemm.a(row, k + d) : 0.0f;
#pragma unroll
            for (int j = 0; j < T::EACH; ++j)
                sums[r][j] += a * b[d][j];
        }
    }
}

// Idea: a block loads a strip of B, each warp DEPTH rows of it at a time, and multiplies them by
// the few rows of A, which the cache holds.
// Cost removed: the part of a tile that is out of range; shared memory and its barriers.
// Still limits it: memory bandwidth.
template <class T, int VEC>
__global__ __launch_bounds__(kThreads, T::BLOCKS_EACH) void sgemm_few_rows(Sgemm gemm, Division division) {
    __shared__ float of_warps[kWarps][T::AT_ONCE][T::COLS];
    __shared__ Sums<T::ELEMENTS> total;
    wait_for_kernel_in_front();
    const std::size_t col = std::size_t{blockIdx.x / division.parts} * T::COLS;
    const Part<T::CHUNK> part(division, gemm.k());
    float sums[T::ROWS][T::EACH] = {};

    std::size_t k = part.begin + threadIdx.x / course::kWarpSize * T::DEPTH;
    for (; k + T::DEPTH <= part.end; k += T::CHUNK)
        multiply_rows<T, VEC, true>(gemm, k, part.end, col, sums);
    if (k < part.end) multiply_rows<T, VEC, false>(gemm, k, part.end, col, sums);
    add_up_warps<T, VEC>(sums, of_warps, total);
    finish_strip(gemm, division, total, [&](int element, float sum) {
        write_element(gemm, element / T::COLS, col + element % T::COLS, sum);
    });
}

template <int COLS_>
struct FewColumns {
    static constexpr int COLS = COLS_;
    static constexpr int EACH = 4;              // rows of A of a warp
    static constexpr int ROWS = EACH * kWarps;  // of a block
    static constexpr int DEPTH = 8;             // values of each row that a lane loads at once
    static constexpr int CHUNK = DEPTH * course::kWarpSize;
    static constexpr int PADDED = CHUNK + 4;  // columns of B start four banks apart
    static constexpr int ELEMENTS = ROWS * COLS;
};

// Stores rows [k, end) of B, at most CHUNK, to shared memory, transposed. Out-of-range elements are
// zero-filled.
template <class T>
__device__ void stage_columns(const Sgemm& gemm, std::size_t k, std::size_t end,
                              float (&b)[T::COLS][T::PADDED]) {
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < T::CHUNK * T::COLS; i += kThreads) {
        const std::size_t row = k + i / T::COLS;
        const auto col = static_cast<std::size_t>(i % T::COLS);
        b[col][i / T::COLS] = row < end && col < gemm.n() ? gemm.b(row, col) : 0.0f;
    }
}

// Adds up COUNT values of each lane over the warp. Each exchange halves the number of values: two
// lanes whose numbers differ in one bit exchange halves, and each adds up one half. At the end
// values[0], values[1]... of a lane are COUNT / 32 of the sums, at least one. Returns the number of
// the first of them.
template <int COUNT, int DISTANCE = course::kWarpSize / 2, int SIZE>
__device__ int add_up_lanes(float (&values)[SIZE]) {
    constexpr int HALF = COUNT / 2;
    const bool upper = (threadIdx.x & DISTANCE) != 0;
    int first = 0;
    if constexpr (COUNT == 1) {
        values[0] += __shfl_xor_sync(course::kWholeWarp, values[0], DISTANCE);
    } else {
        first = upper ? HALF : 0;
#pragma unroll
        for (int i = 0; i < HALF; ++i) {
            const float away = upper ? values[i] : values[i + HALF];
            const float kept = upper ? values[i + HALF] : values[i];
            values[i] = kept + __shfl_xor_sync(course::kWholeWarp, away, DISTANCE);
        }
    }
    if constexpr (DISTANCE > 1) first += add_up_lanes<std::max(HALF, 1), DISTANCE / 2>(values);
    return first;
}

// Idea: a warp loads four rows of A, and multiplies them by the few columns of B in shared memory.
// Then its lanes add up their sums.
// Cost removed: the part of a tile that is out of range; A's copy in shared memory.
// Still limits it: memory bandwidth.
template <class T, int VEC>
__global__ __launch_bounds__(kThreads) void sgemm_few_columns(Sgemm gemm, Division division) {
    alignas(16) __shared__ float b[T::COLS][T::PADDED];
    __shared__ Sums<T::ELEMENTS> total;
    wait_for_kernel_in_front();
    const std::size_t row = std::size_t{blockIdx.x / division.parts} * T::ROWS;
    // The warp's first row in the strip.
    const int first = static_cast<int>(threadIdx.x) / course::kWarpSize * T::EACH;
    const Part<T::CHUNK> part(division, gemm.k());
    float sums[T::EACH * T::COLS] = {};

    for (std::size_t k = part.begin; k < part.end; k += T::CHUNK) {
        float a[T::EACH][T::DEPTH];
#pragma unroll
        for (int r = 0; r < T::EACH; ++r)
            load_row<VEC>(&gemm.a(row + first + r, k), row + first + r < gemm.m() ? part.end - k : 0, a[r]);
        stage_columns<T>(gemm, k, part.end, b);
        __syncthreads();  // the chunk of B is complete
#pragma unroll
        for (int c = 0; c < T::COLS; ++c) {
#pragma unroll
            for (int d = 0; d < T::DEPTH; ++d) {
                const float value = b[c][place_in_row<VEC>(d)];
#pragma unroll
                for (int r = 0; r < T::EACH; ++r)
                    sums[r * T::COLS + c] += a[r][d] * value;
            }
        }
        __syncthreads();  // the chunk of B is safe to overwrite
    }
    const int begin = add_up_lanes<T::EACH * T::COLS>(sums);
    constexpr int LEFT = std::max(T::EACH * T::COLS / course::kWarpSize, 1);
#pragma unroll
    for (int i = 0; i < LEFT; ++i)
        total.value[0][first * T::COLS + begin + i] = sums[i];
    __syncthreads();  // the total is complete
    finish_strip(gemm, division, total, [&](int element, float sum) {
        write_element(gemm, row + element / T::COLS, element % T::COLS, sum);
    });
}

// Are the rows 16-byte aligned, and do they consist of whole float4?
bool is_whole_packs(const course::DeviceMatrix<const float>& matrix) {
    return course::is_aligned(matrix.data(), 16) && matrix.cols() % 4 == 0 &&
           matrix.leading_dimension() % 4 == 0;
}

// One of the kernels, and its strips.
struct Thin {
    void (*whole_packs)(Sgemm, Division);
    void (*any)(Sgemm, Division);
    int rows;  // of a strip
    int cols;
    int chunk;

    Division divide(const Shape& shape, unsigned blocks) const {
        const std::size_t strips = course::ceil_div<std::size_t>(shape.m, static_cast<std::size_t>(rows)) *
                                   course::ceil_div<std::size_t>(shape.n, static_cast<std::size_t>(cols));
        const std::size_t chunks = course::ceil_div<std::size_t>(shape.k, static_cast<std::size_t>(chunk));
        const std::size_t wanted = strips == 0 ? 1 : blocks / strips;
        const std::size_t most = kMostSums / static_cast<std::size_t>(rows * cols);
        const std::size_t parts = std::max<std::size_t>(std::min({wanted, chunks, most}), 1);
        return {course::blocks_for(strips, 1), static_cast<unsigned>(parts)};
    }

    ScratchSize scratch(const Division& division) const {
        if (division.parts == 1) return {};
        return {.partial = division.blocks() * static_cast<std::size_t>(rows * cols),
                .tickets = division.strips};
    }
};

template <int ROWS>
Thin few_rows() {
    using T = FewRows<ROWS>;
    return {sgemm_few_rows<T, 4>, sgemm_few_rows<T, 1>, ROWS, T::COLS, T::CHUNK};
}

template <int COLS>
Thin few_columns() {
    using T = FewColumns<COLS>;
    return {sgemm_few_columns<T, 4>, sgemm_few_columns<T, 1>, T::ROWS, COLS, T::CHUNK};
}

// With few rows and few columns, rows of A are long and rows of B short: warps load rows of A.
bool has_few_columns(const Shape& shape) {
    return shape.n <= kThin;
}

Thin thin_for(const Shape& shape) {
    if (!is_thin(shape)) {
        throw std::invalid_argument("thin product: C is " + std::to_string(shape.m) + " x " +
                                    std::to_string(shape.n) + "; expected at most " + std::to_string(kThin) +
                                    " rows or columns");
    }
    const std::size_t few = has_few_columns(shape) ? shape.n : shape.m;
    if (has_few_columns(shape))
        return few == 1 ? few_columns<1>() : few <= 8 ? few_columns<8>() : few_columns<16>();
    return few == 1 ? few_rows<1>() : few <= 8 ? few_rows<8>() : few_rows<16>();
}

}  // namespace

bool is_worth_a_thin_kernel(const Shape& shape) {
    return is_thin(shape) &&
           thin_for(shape).divide(shape, thin_blocks()).blocks() >= course::multiprocessors() / 2;
}

unsigned thin_blocks() {
    return kBlocksEach * course::multiprocessors();
}

ScratchSize thin_scratch(const Shape& shape, unsigned blocks) {
    const Thin thin = thin_for(shape);
    return thin.scratch(thin.divide(shape, blocks));
}

void launch_thin(unsigned blocks, const Sgemm& given, cudaStream_t stream) {
    if (blocks == 0) throw std::invalid_argument("launch_thin: blocks is 0; expected at least 1");
    const Shape shape{given.m(), given.n(), given.k()};
    const Thin thin = thin_for(shape);
    const Sgemm gemm = checked(given, thin_scratch(shape, blocks));
    const Division division = thin.divide({gemm.m(), gemm.n(), gemm.k()}, blocks);
    if (division.strips == 0) return;
    const auto kernel =
        is_whole_packs(has_few_columns(shape) ? gemm.a : gemm.b) ? thin.whole_packs : thin.any;
    course::launch_early(kernel, {course::blocks_for(division.blocks(), 1), kThreads, 0, stream}, gemm,
                         division);
}

}  // namespace gemm
