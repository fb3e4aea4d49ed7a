// Day 40: C = alpha A B + beta C on tensor cores, 16-bit factors, sums in single precision.          PMPP chapters 5 and 6
//
// C is m x n; A, row-major, is m x k; B, row-major, is k x n. Any shape, and rows that begin anywhere.
//
//   version           tile of a block   of a warp   stages   what is new                           what limits it
//   wmma_global       32 x 32           16 x 16     none     WMMA: matrices that belong to a warp      each is loaded for one product
//   wmma_shared       64 x 64           32 x 32     2        shared memory, cp.async                   its loads: nobody says which lane holds what
//   mma_sync          64 x 64           16 x 16     1        ldmatrix, mma.sync                    a load for every product
//   warp_tiles        128 x 128         64 x 32     1        fragments serve several products      bank conflicts of ldmatrix
//   swizzled          128 x 128         64 x 32     1        rows in different banks               waiting for the next tiles
//   multi_stage       128 x 256         64 x 64     3        cp.async, two stages ahead            products wait where a stage begins
//   fragments_ahead   128 x 256         64 x 64     3        fragments a step ahead                mma.sync itself: Hopper's wgmma is faster
//
// What follows, with Hopper's own instructions, is in hopper/hopper.cu; `best` chooses one that suits the operands.
//
//   ./course run day40                          all versions, verified and timed
//   ./course run day40 --variant multi_stage --size 4096x4096x4096
#include <mma.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.hpp"
#include "common/check/check.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "common/device/tensor_core_support.hpp"
#include "common/tile/tile_copies.cuh"
#include "hopper/hopper.hpp"
#include "output.cuh"
#include "tensor_cores.hpp"

namespace day40 {
namespace {

using course::DeviceMatrix;

template <class T_, int BM_, int BN_, int WM_, int WN_, int STAGES_, bool SWIZZLED_>
struct TileShape {
    using T = T_;
    static constexpr int BM = BM_, BN = BN_, BK = 64, WM = WM_, WN = WN_, STAGES = STAGES_;
    static constexpr bool SWIZZLED = SWIZZLED_;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
};

// 16 x 16 results of each of four warps.
template <class T_>
struct FourMatrices {
    using T = T_;
    static constexpr int BM = 32, BN = 32, WARPS_N = 2, THREADS = 128;
};

template <class S>
struct Stage {
    course::SharedTile<S, S::BM, S::BK> a;
    course::SharedTile<S, S::BK, S::BN> b;
};

// Where the tile of a block begins in C, and the results of this warp in the tile.
template <class S>
struct Place {
    int row;
    int column;
    int warp_row;
    int warp_column;

    __device__ explicit Place(const Order& order) {
        const Order::Place tile = order.place(static_cast<int>(blockIdx.x));
        const int warp = static_cast<int>(threadIdx.x) / 32;
        row = tile.row * S::BM;
        column = tile.column * S::BN;
        warp_row = warp / S::WARPS_N * S::WM;
        warp_column = warp % S::WARPS_N * S::WN;
    }
};

template <class T>
__device__ void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (std::is_same_v<T, __half>) {
        course::ptx::mma_m16n8k16_f16(d, a, b);
    } else {
        course::ptx::mma_m16n8k16_bf16(d, a, b);
    }
}

// What a warp multiplies for 16 of k: 16 x 16 elements of A for each 16 of its rows, 16 x 8 of B for each 8 of its columns. Chunks change
// places alike in rows 16 apart, so addresses differ by constants.
template <class S>
struct Fragments {
    static constexpr int ROWS = S::WM / 16, COLUMNS = S::WN / 8;
    unsigned a[ROWS][4];
    unsigned b[COLUMNS][2];

    __device__ void load(Stage<S>& stage, int warp_row, int warp_column, int k) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            course::ptx::ldmatrix_x4(a[i],
                                     stage.a.chunk(warp_row + lane % 16, k / 8 + lane / 16) + i * 16 * S::BK);
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 2) {
            unsigned two[4];
            course::ptx::ldmatrix_x4_trans(
                two, stage.b.chunk(lane % 16, warp_column / 8 + j + lane / 16) + k * S::BN);
            b[j][0] = two[0];
            b[j][1] = two[1];
            b[j + 1][0] = two[2];
            b[j + 1][1] = two[3];
        }
    }
};

// The sums of a warp, with mma.sync: lane 4 g + t has columns 2 t and 2 t + 1 of eight, in rows g and g + 8.
template <class S>
class MmaSums {
    static constexpr int ROWS = Fragments<S>::ROWS, COLUMNS = Fragments<S>::COLUMNS;

  public:
    // Each fragment of A times each of B.
    __device__ void add_products(const Fragments<S>& fragments) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                multiply_add<typename S::T>(sums_[i][j], fragments.a[i], fragments.b[j]);
    }

    // Products of one stage.
    __device__ void multiply(Stage<S>& stage, int warp_row, int warp_column) {
#pragma unroll
        for (int k = 0; k < S::BK; k += 16) {
            Fragments<S> fragments;
            fragments.load(stage, warp_row, warp_column, k);
            add_products(fragments);
        }
    }

    // The warp's results begin at (row, column) of C.
    __device__ void store(const Output& out, int row, int column, unsigned char*) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                for (int lower = 0; lower < 2; ++lower)
                    store_pair(out, row + i * 16 + lower * 8 + lane / 4, column + j * 8 + lane % 4 * 2,
                               sums_[i][j][lower * 2], sums_[i][j][lower * 2 + 1]);
    }

  private:
    float sums_[ROWS][COLUMNS][4] = {};
};

namespace wmma = nvcuda::wmma;

template <class T>
using FactorA = wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major>;
template <class T>
using FactorB = wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major>;
using Results = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
constexpr int kElements = 16 * 16;  // of one of them

// Which lane holds which result is WMMA's secret: to be scaled, and left out where C ends, they go through shared memory.
__device__ void store_results(const Results& results, const Output& out, int row, int column,
                              float* staging) {
    wmma::store_matrix_sync(staging, results, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = static_cast<int>(threadIdx.x) % 32 * 2; e < kElements; e += 64)
        store_pair(out, row + e / 16, column + e % 16, staging[e], staging[e + 1]);
    __syncwarp();
}

// The sums of a warp, with WMMA.
template <class S>
class WmmaSums {
    static constexpr int ROWS = S::WM / 16, COLUMNS = S::WN / 16;

  public:
    __device__ WmmaSums() {
#pragma unroll
        for (auto& row : sums_)
#pragma unroll
            for (Results& sum : row)
                wmma::fill_fragment(sum, 0.0f);
    }

    __device__ void multiply(Stage<S>& stage, int warp_row, int warp_column) {
// Older GPUs have no such matrices of bfloat16; Version::constraint refuses them.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#pragma unroll
        for (int k = 0; k < S::BK; k += 16) {
            FactorA<typename S::T> a[ROWS];
            FactorB<typename S::T> b[COLUMNS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                wmma::load_matrix_sync(a[i], stage.a.chunk(warp_row + i * 16, k / 8), S::BK);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                wmma::load_matrix_sync(b[j], stage.b.chunk(k, warp_column / 8 + j * 2), S::BN);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    wmma::mma_sync(sums_[i][j], a[i], b[j], sums_[i][j]);
        }
#endif
    }

    // `memory`: shared, and of no other use any more once all warps are here.
    __device__ void store(const Output& out, int row, int column, unsigned char* memory) const {
        __syncthreads();
        float* const staging = reinterpret_cast<float*>(memory) + threadIdx.x / 32 * kElements;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                store_results(sums_[i][j], out, row + i * 16, column + j * 16, staging);
    }

  private:
    Results sums_[ROWS][COLUMNS];
};

// --- Kernels ---------------------------------------------------------------------------------------------------------

// 16 x 16 elements from (row, column) of a matrix on: straight from global memory, or, where the matrix ends within them or rows do not
// begin at multiples of 16 bytes, through shared memory.
template <class Factor, class T>
__device__ void load_factor(Factor& factor, const DeviceMatrix<const T>& matrix, bool straight, int row,
                            int column, T* staging) {
    const int rows = static_cast<int>(matrix.rows());
    const int columns = static_cast<int>(matrix.cols());
    if (straight && row + 16 <= rows && column + 16 <= columns) {
        wmma::load_matrix_sync(factor, &matrix(row, column),
                               static_cast<unsigned>(matrix.leading_dimension()));
        return;
    }
    for (int e = static_cast<int>(threadIdx.x) % 32; e < kElements; e += 32) {
        const bool inside = row + e / 16 < rows && column + e % 16 < columns;
        staging[e] = inside ? matrix(row + e / 16, column + e % 16) : T(0.0f);
    }
    __syncwarp();
    wmma::load_matrix_sync(factor, staging, 16);
    __syncwarp();  // the next one may overwrite it
}

// sum += 16 x 16 elements of A times 16 x 16 of B, from k on.
template <class T>
__device__ void add_product(Results& sum, const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b,
                            bool straight, int row, int column, int k, T* staging) {
// Older GPUs have no such matrices of bfloat16; Version::constraint refuses them.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    FactorA<T> a_factor;
    FactorB<T> b_factor;
    load_factor(a_factor, a, straight, row, k, staging);
    load_factor(b_factor, b, straight, k, column, staging);
    wmma::mma_sync(sum, a_factor, b_factor, sum);
#endif
}

// Idea: WMMA: a warp owns three matrices of 16 x 16 and multiplies them in one call.
// Cost removed: 4096 multiply-adds in a call instead of one.
// Still limits it: global memory and L2. Each matrix is loaded for one product.
template <class S, bool kAligned>
__global__ void __launch_bounds__(S::THREADS)
    wmma_global(DeviceMatrix<const typename S::T> a, DeviceMatrix<const typename S::T> b, Output out,
                Order order) {
    using T = typename S::T;
    __shared__ __align__(32) float results[S::THREADS / 32][kElements];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const Order::Place place = order.place(static_cast<int>(blockIdx.x));
    const int row = place.row * S::BM + warp / S::WARPS_N * 16;
    const int column = place.column * S::BN + warp % S::WARPS_N * 16;
    T* const staging = reinterpret_cast<T*>(results[warp]);

    Results sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < static_cast<int>(a.cols()); k += 16)
        add_product(sum, a, b, kAligned, row, column, k, staging);
    store_results(sum, out, row, column, results[warp]);
}

// Idea: tiles in shared memory, products of each warp from there. The plans below make five versions of it.
// Cost removed: an element comes from global memory once for all warps of a block.
// Still limits it: see the plans.
template <class S, class Sums, bool kAligned>
__global__ void __launch_bounds__(S::THREADS)
    tensor_cores(DeviceMatrix<const typename S::T> a, DeviceMatrix<const typename S::T> b, Output out,
                 Order order) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<Stage<S>*>(memory);
    const Place<S> place(order);
    const int count = static_cast<int>(course::ceil_div<std::size_t>(a.cols(), S::BK));

    course::TileCopies<S, S::BM, S::BK> a_copies(a, place.row, 0);
    course::TileCopies<S, S::BK, S::BN> b_copies(b, 0, place.column);
    const auto copy = [&](int number) {
        if (number < count) {
            a_copies.template to<kAligned>(stages[number % S::STAGES].a);
            b_copies.template to<kAligned>(stages[number % S::STAGES].b);
            a_copies.next_columns();
            b_copies.next_rows();
        }
        course::ptx::cp_async_commit();
    };

    Sums sums;
    for (int number = 0; number < S::STAGES - 1; ++number)
        copy(number);
    for (int number = 0; number < count; ++number) {
        if constexpr (S::STAGES == 1) copy(number);
        course::ptx::cp_async_wait<S::STAGES == 1 ? 0 : S::STAGES - 2>();
        __syncthreads();  // the stage is there, and nobody needs the one before it any more
        if constexpr (S::STAGES > 1) copy(number + S::STAGES - 1);
        sums.multiply(stages[number % S::STAGES], place.warp_row, place.warp_column);
        if constexpr (S::STAGES == 1) __syncthreads();
    }
    sums.store(out, place.row + place.warp_row, place.column + place.warp_column, memory);
}

// Idea: the fragments of the next 16 of k are loaded while this one's are multiplied, also across the border between two stages, and
// copies are issued in the midst of products.
// Cost removed: in every stage, tensor cores that wait for a barrier, for copies to be issued and for the first fragments.
// Still limits it: mma.sync takes its operands through registers; and power.
template <class S, bool kAligned>
__global__ void __launch_bounds__(S::THREADS)
    fragments_ahead(DeviceMatrix<const typename S::T> a, DeviceMatrix<const typename S::T> b, Output out,
                    Order order) {
    static_assert(S::STAGES > 1 && S::BK % 32 == 0);  // every stage begins with fragments[0]
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<Stage<S>*>(memory);
    const Place<S> place(order);
    const int depth = static_cast<int>(a.cols());

    // What lies behind the last stage is zeros.
    course::TileCopies<S, S::BM, S::BK> a_copies(a, place.row, 0);
    course::TileCopies<S, S::BK, S::BN> b_copies(b, 0, place.column);
    const auto copy_a = [&](auto inside, int stage) {
        a_copies.template to<kAligned, inside>(stages[stage].a);
        a_copies.next_columns();
    };
    const auto copy_b = [&](auto inside, int stage) {
        b_copies.template to<kAligned, inside>(stages[stage].b);
        b_copies.next_rows();
        course::ptx::cp_async_commit();
    };
    for (int stage = 0; stage < S::STAGES - 1; ++stage) {
        copy_a(std::false_type(), stage);
        copy_b(std::false_type(), stage);
    }
    course::ptx::cp_async_wait<S::STAGES - 2>();
    __syncthreads();

    MmaSums<S> sums;
    Fragments<S> fragments[2];
    fragments[0].load(stages[0], place.warp_row, place.warp_column, 0);
    int read = 0;
    int write = S::STAGES - 1;
    const auto multiply_stage = [&](auto inside) {
#pragma unroll
        for (int k = 0; k < S::BK; k += 16) {
            if (k + 16 == S::BK) {
                course::ptx::cp_async_wait<S::STAGES - 2>();
                __syncthreads();  // the next stage is there, and nobody needs this one any more
                write = read;
                read = read + 1 < S::STAGES ? read + 1 : 0;
            }
            fragments[(k / 16 + 1) % 2].load(stages[read], place.warp_row, place.warp_column,
                                             (k + 16) % S::BK);
            if (k == 0) copy_a(inside, write);
            if (k == 16) copy_b(inside, write);
            sums.add_products(fragments[k / 16 % 2]);
        }
    };
    // Most copies come from inside the matrices and need not ask where these end.
    const bool inside = kAligned && static_cast<int>(a.rows()) - place.row >= S::BM &&
                        static_cast<int>(b.cols()) - place.column >= S::BN;
    int k = 0;
    for (; inside && k + S::STAGES * S::BK <= depth; k += S::BK)
        multiply_stage(std::true_type());
    for (; k < depth; k += S::BK)
        multiply_stage(std::false_type());
    course::ptx::cp_async_wait<0>();  // zeros are still on their way
    sums.store(out, place.row + place.warp_row, place.column + place.warp_column, memory);
}

// --- Plans: the versions -----------------------------------------------------------------------------------------------

// The kernel of a plan, and how much dynamic shared memory it takes.
template <template <class> class Sums>
struct FromShared {
    template <class S>
    static constexpr std::size_t kShared = sizeof(Stage<S>) * S::STAGES;
    template <class S, bool kAligned>
    static auto kernel() {
        return tensor_cores<S, Sums<S>, kAligned>;
    }
};

struct WmmaGlobal {
    template <class T>
    using Shape = FourMatrices<T>;
    static constexpr std::size_t kAlignment = 32;
    template <class S>
    static constexpr std::size_t kShared = 0;
    template <class S, bool kAligned>
    static auto kernel() {
        return wmma_global<S, kAligned>;
    }
};

// Idea: a block's tiles come through shared memory, copied asynchronously while the tiles before are multiplied; a warp has four products
// of each pair of fragments.
// Cost removed: most loads from global memory, and waiting for the others.
// Still limits it: the layout of fragments is WMMA's secret: loads from shared memory meet in the same banks, and results take a detour.
struct WmmaShared : FromShared<WmmaSums> {
    template <class T>
    using Shape = TileShape<T, 64, 64, 32, 32, 2, false>;
    static constexpr std::size_t kAlignment = 16;
};

// Idea: mma.sync: a warp multiplies 16 x 16 by 16 x 8 in one instruction, from fragments that ldmatrix brings to the right lanes.
// Cost removed: secrets. Which lane holds what is known, and results go straight to C.
// Still limits it: shared memory. A warp loads 16 x 16 of A and of B for two products.
struct MmaSync : FromShared<MmaSums> {
    template <class T>
    using Shape = TileShape<T, 64, 64, 16, 16, 1, false>;
    static constexpr std::size_t kAlignment = 16;
};

// Idea: a warp has 64 x 32 results: four fragments of A and four of B make sixteen products.
// Cost removed: five eighths of the loads from shared memory for a product, and half of those from global memory.
// Still limits it: every ldmatrix reads eight rows from the same banks, one after the other.
struct WarpTiles : FromShared<MmaSums> {
    template <class T>
    using Shape = TileShape<T, 128, 128, 64, 32, 1, false>;
    static constexpr std::size_t kAlignment = 16;
};

// Idea: chunks of a row change places.
// Cost removed: bank conflicts, all of them.
// Still limits it: copies and products take turns.
struct Swizzled : FromShared<MmaSums> {
    template <class T>
    using Shape = TileShape<T, 128, 128, 64, 32, 1, true>;
    static constexpr std::size_t kAlignment = 16;
};

// Idea: two stages are on their way while one is multiplied, and a warp has 64 x 64 results.
// Cost removed: waiting for global memory.
// Still limits it: where a stage begins nobody multiplies. All warps wait for each other, issue copies and load fragments, at the same time.
struct MultiStage : FromShared<MmaSums> {
    template <class T>
    using Shape = TileShape<T, 128, 256, 64, 64, 3, true>;
    static constexpr std::size_t kAlignment = 16;
};

// The same tile, with a loop of its own.
struct FragmentsAhead : MultiStage {
    template <class S, bool kAligned>
    static auto kernel() {
        return fragments_ahead<S, kAligned>;
    }
};

// --- Launchers -------------------------------------------------------------------------------------------------------

constexpr int kBand = 8;

template <class Plan, class T>
struct Launch {
    using S = typename Plan::template Shape<T>;
    static constexpr std::size_t kShared = Plan::template kShared<S>;

    static void launch(const Gemm<T>& unchecked, cudaStream_t stream) {
        const Gemm<T> gemm = checked(unchecked);
        const auto& [a, b, c, alpha, beta] = gemm;
        if (c.rows() == 0 || c.cols() == 0) return;
        const Order order = make_order(c, S::BM, S::BN, kBand);
        const auto aligned = [](const auto& matrix) {
            return course::is_aligned(matrix.data(), Plan::kAlignment) && matrix.leading_dimension() % 8 == 0;
        };
        const auto kernel = aligned(a) && aligned(b) ? kernel_for_rows<true>() : kernel_for_rows<false>();
        course::launch(kernel, {blocks_of(order), S::THREADS, kShared, stream}, a, b,
                       make_output(c, alpha, beta), order);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(kernel_for_rows<true>(), kShared);
        return course::resources_of(kernel_for_rows<true>(), S::THREADS, kShared);
    }

    static std::string constraint(const Shape&) {
        return course::why_no_tensor_cores(kernel_for_rows<true>(), kShared);
    }

    template <bool kAligned>
    static auto kernel_for_rows() {
        return Plan::template kernel<S, kAligned>();
    }

    static KernelFor<T> kernel_for() {
        return {.launch = launch,
                .why_not = [](const Gemm<T>&) { return std::string(); },
                .resources = resources};
    }
};

template <class Plan>
Version version(const char* name, const char* idea) {
    return {.name = name,
            .idea = idea,
            .launcher = {.half = Launch<Plan, __half>::kernel_for(),
                         .bfloat16 = Launch<Plan, __nv_bfloat16>::kernel_for()},
            .work = work_of,
            .constraint = Launch<Plan, __half>::constraint};
}

// For whoever only wants the product: on a Hopper the last version, mma.sync on other GPUs.
template <class T>
const KernelFor<T>& fastest() {
    static const Version any = version<FragmentsAhead>("fragments_ahead", "");
    static const Version hopper = hopper_versions().back();
    return kernel_of<T>(hopper.cannot_run({}).empty() ? hopper : any);
}

template <class T>
KernelFor<T> best() {
    return {.launch = [](const Gemm<T>& gemm, cudaStream_t stream) { fastest<T>().launch(gemm, stream); },
            .why_not = [](const Gemm<T>&) { return std::string(); },
            .resources = nullptr};  // those of the version that it takes
}

}  // namespace

std::span<const Version> versions() {
    static const std::vector<Version> list = [] {
        std::vector<Version> all = {
            version<WmmaGlobal>("wmma_global", "WMMA, fragments from global memory"),
            version<WmmaShared>("wmma_shared", "WMMA from shared memory, asynchronous copies"),
            version<MmaSync>("mma_sync", "ldmatrix and mma.sync, 16 x 16 results of a warp"),
            version<WarpTiles>("warp_tiles", "64 x 32 results of a warp"),
            version<Swizzled>("swizzled", "no bank conflicts"),
            version<MultiStage>("multi_stage", "asynchronous copies, three stages"),
            version<FragmentsAhead>("fragments_ahead", "fragments loaded a step ahead of their products")};
        const std::vector<Version> hopper = hopper_versions();
        all.insert(all.end(), hopper.begin(), hopper.end());
        all.push_back({.name = "best",
                       .idea = "realigned, or fragments_ahead on other GPUs",
                       .launcher = {.half = best<__half>(), .bfloat16 = best<__nv_bfloat16>()},
                       .work = work_of,
                       .constraint = Launch<FragmentsAhead, __half>::constraint});
        return all;
    }();
    return list;
}

}  // namespace day40
