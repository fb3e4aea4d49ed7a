// Day 30, fourth part: the linear layer of LLM.int8().
//
//     find outlier columns ─▶ quantise the others, row by row ─▶ X8 W8^T in int32 ─▶ times the scales ─▶ + Xo Wo^T ─▶ Y
//
//   version            kernels   what goes through memory                          what limits it
//   separate_kernels   7         sums in int32, then in float                      memory, and the outlier product
//   fused              5         X8, and what of X and W is an outlier             the int8 product
//
// How many outlier columns there are only the GPU knows; a host that asked would wait for it. So work is queued for any number, and
// kernels read the number.
//
//   ./course run day30 --size 1024x1024x1024
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "arguments.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "int8_matmul.hpp"
#include "llm_int8.hpp"
#include "quantization_device.cuh"
#include "tensor_tile.cuh"

namespace day30 {
namespace {

// --- Kernels ---------------------------------------------------------------------------------------------------------

constexpr int kMarkWarps = 8;
constexpr int kMarkTile = course::kWarpSize * kOctet;  // columns of a block
constexpr std::size_t kMarkRows = 64;                  // rows of a block

// Idea: a warp walks down 256 columns and keeps the largest magnitudes, two in a register. Outliers are few: who finds one writes it down.
// Cost removed: meeting with other warps and blocks. Several may write the same 0.
// Still limits it: memory, for one read of X.
template <bool kAligned>
__global__ void __launch_bounds__(kMarkWarps* course::kWarpSize)
    mark_outliers(DeviceMatrix<const __half> x, float threshold, std::uint16_t* keep, unsigned tiles) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const std::size_t column = std::size_t{blockIdx.x % tiles} * kMarkTile + lane * kOctet;
    const std::size_t begin = blockIdx.x / tiles * kMarkRows;
    const std::size_t end = min(begin + kMarkRows, x.rows());
    __half2 largest[kOctet / 2];
    for (__half2& two : largest)
        two = __float2half2_rn(0);
#pragma unroll 4
    for (std::size_t row = begin + warp; row < end; row += kMarkWarps) {
        const auto octet =
            Octet<__half>::load<kAligned>(x.data() + row * x.leading_dimension(), column, x.cols());
        for (int k = 0; k < kOctet / 2; ++k)
            largest[k] = __hmax2_nan(largest[k], __habs2(octet.unit(k)));
    }
    for (int k = 0; k < kOctet; ++k) {
        const float value = k % 2 == 0 ? __low2float(largest[k / 2]) : __high2float(largest[k / 2]);
        if (column + k < x.cols() && !(value < threshold)) keep[column + k] = 0;  // NaN is not less
    }
}

constexpr int kListThreads = 1024;

// One block lists the outlier columns in ascending order. Each warp counts its own by ballot, and adds those of the warps before.
__global__ void __launch_bounds__(kListThreads)
    list_outliers(const std::uint16_t* keep, std::size_t cols, std::uint32_t* columns, std::uint32_t* count) {
    constexpr int kWarps = kListThreads / course::kWarpSize;
    __shared__ unsigned of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    unsigned before = 0;
    for (std::size_t begin = 0; begin < cols; begin += kListThreads) {
        const std::size_t column = begin + threadIdx.x;
        const bool is_outlier = column < cols && keep[column] == 0;
        const unsigned lanes = __ballot_sync(course::kWholeWarp, is_outlier);
        if (lane == 0) of_warp[warp] = static_cast<unsigned>(__popc(lanes));
        __syncthreads();
        unsigned place = before + static_cast<unsigned>(__popc(lanes & ((1u << lane) - 1)));
        for (int w = 0; w < kWarps; ++w) {
            if (w < warp) place += of_warp[w];
            before += of_warp[w];
        }
        if (is_outlier) columns[place] = static_cast<std::uint32_t>(column);
        __syncthreads();
    }
    if (threadIdx.x == 0) *count = before;
}

// Outlier columns as 0: both halves of a pair at once, by their bits.
template <bool kAligned>
__device__ void mask(Octet<__half>& octet, const std::uint16_t* keep, std::size_t column, std::size_t cols) {
    using Mask = course::Pack<std::uint16_t, kOctet>;
    Mask of_octet{};
    if (kAligned && column + kOctet <= cols) {
        of_octet = Mask::load(keep + column);
    } else {
        for (int k = 0; k < kOctet; ++k)
            if (column + k < cols) of_octet.value[k] = keep[column + k];
    }
    unsigned words[kOctet / 2];
    std::memcpy(words, &of_octet, sizeof(words));
    for (int u = 0; u < kOctet / 2; ++u) {
        unsigned pair;
        std::memcpy(&pair, &octet.unit(u), sizeof(pair));
        pair &= words[u];
        std::memcpy(&octet.unit(u), &pair, sizeof(pair));
    }
}

constexpr int kKeptPacks = 4;

// Idea: as row_in_registers, and what belongs to an outlier column becomes 0 on its way.
// Cost removed: a copy of X without its outlier columns.
// Still limits it: memory. X is read a second time, from the L2 cache if it fits there.
template <bool kAligned, int kThreads>
__global__ void __launch_bounds__(kThreads)
    kept_row_in_registers(DeviceMatrix<const __half> x, const std::uint16_t* keep,
                          DeviceMatrix<std::int8_t> out, float* scale) {
    const std::size_t row = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x);
    RowShare<__half, kThreads, kKeptPacks, kAligned> share;
    share.load(x.data() + row * x.leading_dimension(), x.cols(), thread);
    share.for_each(thread, [&](Octet<__half>& octet, std::size_t column) {
        mask<kAligned>(octet, keep, column, x.cols());
    });
    const Range range = group_merge<Scheme::kSymmetric, kThreads>(share.template range<Scheme::kSymmetric>());
    const Parameters parameters = parameters_of<Scheme::kSymmetric>(range);
    share.template store<Reader::kSoon>(out.data() + row * out.leading_dimension(), x.cols(), thread,
                                        AbsmaxQuantizer(parameters.scale));
    if (thread == 0) scale[row] = parameters.scale;
}

constexpr int kLongThreads = 1024;

// The same for rows that no block can keep: read twice.
template <bool kAligned>
__global__ void __launch_bounds__(kLongThreads)
    kept_row_in_passes(DeviceMatrix<const __half> x, const std::uint16_t* keep, DeviceMatrix<std::int8_t> out,
                       float* scale) {
    const std::size_t row = blockIdx.x;
    const __half* const x_row = x.data() + row * x.leading_dimension();
    const auto kept = [&](std::size_t column) {
        auto octet = Octet<__half>::load<kAligned>(x_row, column, x.cols());
        mask<kAligned>(octet, keep, column, x.cols());
        return octet;
    };
    Range range = {};
    for (std::size_t column = threadIdx.x * kOctet; column < x.cols(); column += kLongThreads * kOctet) {
        const auto octet = kept(column);
        range = merge<Scheme::kSymmetric>(range, range_of<Scheme::kSymmetric>(&octet, 1));
    }
    const Parameters parameters =
        parameters_of<Scheme::kSymmetric>(group_merge<Scheme::kSymmetric, kLongThreads>(range));
    const AbsmaxQuantizer quantize(parameters.scale);
    for (std::size_t column = threadIdx.x * kOctet; column < x.cols(); column += kLongThreads * kOctet)
        store_bytes<kAligned>(quantize(kept(column)), out.data() + row * out.leading_dimension(), column,
                              x.cols());
    if (threadIdx.x == 0) scale[row] = parameters.scale;
}

// The outlier columns of X and W side by side, filled up with zeros to whole tiles.
struct Outliers {
    const std::uint32_t* columns;
    const std::uint32_t* count;
    __half* x;  // tokens x pitch
    __half* w;  // outputs x pitch
    std::size_t pitch;

    static constexpr std::size_t kTile = 64;  // columns of half in 128 bytes

    __device__ std::size_t padded() const { return (*count + kTile - 1) / kTile * kTile; }
};

constexpr int kGatherWarps = 8;

// A warp takes the outlier columns out of a row: rows of X first, then those of W.
__global__ void __launch_bounds__(kGatherWarps* course::kWarpSize)
    gather_outliers(DeviceMatrix<const __half> x, DeviceMatrix<const __half> w, Outliers outliers) {
    const std::size_t index = std::size_t{blockIdx.x} * kGatherWarps + threadIdx.x / course::kWarpSize;
    if (index >= x.rows() + w.rows()) return;
    const bool of_x = index < x.rows();
    const std::size_t row = of_x ? index : index - x.rows();
    const DeviceMatrix<const __half> from = of_x ? x : w;
    __half* const to = (of_x ? outliers.x : outliers.w) + row * outliers.pitch;
    const std::size_t count = *outliers.count;
    for (std::size_t i = threadIdx.x % course::kWarpSize; i < outliers.padded(); i += course::kWarpSize)
        to[i] = i < count ? from(row, outliers.columns[i]) : __half(0.0f);
}

constexpr int kPlainThreads = 256;

// Idea: sums become floats where they stand; a kernel for an operation.
// Cost removed: none yet.
// Still limits it: memory, twice 4 bytes for each result; and the next kernel reads them again.
__global__ void __launch_bounds__(kPlainThreads)
    dequantize_sums(std::int32_t* sums, std::size_t rows, std::size_t cols, const float* row_scale,
                    const float* column_scale) {
    const std::size_t i = std::size_t{blockIdx.x} * kPlainThreads + threadIdx.x;
    if (i >= rows * cols) return;
    const float value = static_cast<float>(sums[i]) * row_scale[i / cols] * column_scale[i % cols];
    sums[i] = __float_as_int(value);
}

// Idea: the product of the outlier columns, a thread for each result, on top of what the 8 bits gave.
// Cost removed: none yet.
// Still limits it: two loads for a multiply-add; slow when outlier columns are many.
__global__ void __launch_bounds__(kPlainThreads)
    add_outliers(const std::int32_t* sums, Outliers outliers, DeviceMatrix<__half> y) {
    const std::size_t i = std::size_t{blockIdx.x} * kPlainThreads + threadIdx.x;
    if (i >= y.rows() * y.cols()) return;
    const std::size_t row = i / y.cols();
    const std::size_t column = i % y.cols();
    float sum = __int_as_float(sums[i]);
    for (std::size_t k = 0; k < *outliers.count; ++k)
        sum += static_cast<float>(outliers.x[row * outliers.pitch + k]) *
               static_cast<float>(outliers.w[column * outliers.pitch + k]);
    y(row, column) = __half(sum);
}

using Tile = TileShape<128, 256, 64, 64, 4>;

// Idea: a block multiplies its tile in int8, turns the sums into floats in their registers, and goes on with the outlier columns: a few
// more steps of the same loop, in half.
// Cost removed: 16 bytes of memory for each result (18 against 2), and two kernels.
// Still limits it: the int8 product; quantising X before it.
template <class T>
__global__ void __launch_bounds__(T::THREADS)
    fused_layer(DeviceMatrix<const std::int8_t> x8, const float* x_scale, DeviceMatrix<const std::int8_t> w8,
                const float* w_scale, Outliers outliers, DeviceMatrix<__half> y, unsigned tiles_m,
                unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const TilePlace place = tile_place<T>(tiles_m, tiles_n);
    Sums<T, int> products = {};
    multiply_tile<T, int>(
        shared, rows_from(x8.data(), x8.leading_dimension(), x8.rows(), x8.cols(), place.row),
        rows_from(w8.data(), w8.leading_dimension(), w8.rows(), w8.cols(), place.column), products);

    Sums<T, float> sums;
    for_each_pair<T>([&](int i, int j, int pair, int row, int column) {
        const std::size_t r = min(place.row + row, y.rows() - 1);
        for (int k = 0; k < 2; ++k) {
            const std::size_t s = min(place.column + column + k, y.cols() - 1);
            sums[i][j][pair + k] = static_cast<float>(products[i][j][pair + k]) * x_scale[r] * w_scale[s];
        }
    });

    const std::size_t depth = outliers.padded();
    multiply_tile<T, float>(shared, rows_from(outliers.x, outliers.pitch, y.rows(), depth, place.row),
                            rows_from(outliers.w, outliers.pitch, y.cols(), depth, place.column), sums);

    const bool pairs = y.leading_dimension() % 2 == 0 && reinterpret_cast<std::uintptr_t>(y.data()) % 4 == 0;
    for_each_pair<T>([&](int i, int j, int pair, int row, int column) {
        const float* const sum = &sums[i][j][pair];
        const std::size_t r = place.row + row;
        const std::size_t s = place.column + column;
        if (r >= y.rows() || s >= y.cols()) return;
        if (pairs && s + 1 < y.cols()) {
            *reinterpret_cast<__half2*>(&y(r, s)) = __floats2half2_rn(sum[0], sum[1]);
        } else {
            y(r, s) = __half(sum[0]);
            if (s + 1 < y.cols()) y(r, s + 1) = __half(sum[1]);
        }
    });
}

// --- Launchers -------------------------------------------------------------------------------------------------------

// Cuts a workspace into pieces, each aligned to 256 bytes. Without one (nullptr) it only counts.
class Pieces {
  public:
    explicit Pieces(std::byte* begin) : begin_(begin) {}

    template <class T>
    DeviceSpan<T> take(std::size_t count) {
        const std::size_t at = used_;
        used_ += course::ceil_div<std::size_t>(count * sizeof(T), 256) * 256;
        T* const data = begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + at);
        return DeviceSpan<T>::from_device_pointer(data, count);
    }

    std::size_t used() const { return used_; }

  private:
    std::byte* begin_;
    std::size_t used_ = 0;
};

std::size_t rounded_up(std::size_t value, std::size_t step) {
    return course::ceil_div(value, step) * step;
}

// What lies in a workspace; `with_sums` for the version that keeps int32 sums there.
struct Parts {
    DeviceSpan<std::uint16_t> keep;
    DeviceSpan<std::uint32_t> columns, count;
    DeviceSpan<float> x_scale;
    DeviceSpan<std::int8_t> x8_memory;
    DeviceSpan<__half> x_outliers, w_outliers;
    DeviceSpan<std::int32_t> sums;
    std::size_t x8_pitch, outlier_pitch, bytes;

    Parts(const LayerShape& shape, std::byte* workspace, bool with_sums)
        : x8_pitch(rounded_up(shape.inputs, 16)), outlier_pitch(rounded_up(shape.inputs, Outliers::kTile)) {
        Pieces pieces(workspace);
        keep = pieces.take<std::uint16_t>(shape.inputs);
        columns = pieces.take<std::uint32_t>(shape.inputs);
        count = pieces.take<std::uint32_t>(1);
        x_scale = pieces.take<float>(shape.tokens);
        x8_memory = pieces.take<std::int8_t>(shape.tokens * x8_pitch);
        x_outliers = pieces.take<__half>(shape.tokens * outlier_pitch);
        w_outliers = pieces.take<__half>(shape.outputs * outlier_pitch);
        if (with_sums) sums = pieces.take<std::int32_t>(shape.tokens * shape.outputs);
        bytes = pieces.used();
    }

    DeviceMatrix<std::int8_t> x8(const LayerShape& shape) const {
        return {x8_memory, shape.tokens, shape.inputs, x8_pitch};
    }
    Outliers outliers() const {
        return {columns.data(), count.data(), x_outliers.data(), w_outliers.data(), outlier_pitch};
    }
};

std::size_t separate_workspace(const LayerShape& shape) {
    return Parts(shape, nullptr, true).bytes;
}
std::size_t fused_workspace(const LayerShape& shape) {
    return Parts(shape, nullptr, false).bytes;
}

// Throws std::invalid_argument unless the layer is as llm_int8.hpp says. False when there is nothing to do.
bool check_layer(const Layer& layer, std::size_t workspace) {
    const auto [tokens, outputs, inputs] = layer.shape();
    require_shape("llm_int8: w", layer.w, outputs, inputs);
    require_shape("llm_int8: w8", layer.w8, outputs, inputs);
    require_size("llm_int8: w_scale", layer.w_scale.size(), outputs);
    require_shape("llm_int8: y", layer.y, tokens, outputs);
    course::require(layer.threshold >= 0, "llm_int8: threshold is ", layer.threshold, "; expected 0 or more");
    course::require(inputs <= kLongestSum, "llm_int8: inputs are ", inputs, "; expected at most ",
                    kLongestSum, ", or sums would not fit in 32 bits");
    course::require(layer.workspace.size() >= workspace, "llm_int8: workspace has ", layer.workspace.size(),
                    " bytes; expected at least ", workspace);
    course::require(course::is_aligned(layer.workspace.data(), 16),
                    "llm_int8: workspace has an address % 16 of ", remainder_by_16(layer.workspace.data()),
                    "; expected 0");
    const auto apart = [&](std::string_view what, auto operand) {
        require_apart("llm_int8: y", layer.y, what, operand);
        require_apart("llm_int8: workspace", layer.workspace, what, operand);
    };
    apart("x", layer.x);
    apart("w", layer.w);
    apart("w8", layer.w8);
    apart("w_scale", layer.w_scale);
    require_apart("llm_int8: workspace", layer.workspace, "y", layer.y);
    return tokens != 0 && outputs != 0;
}

// The steps that both versions begin with: X in 8 bits, and the outlier columns of both factors.
void prepare(const Layer& layer, const Parts& parts, cudaStream_t stream) {
    find_outlier_columns(layer.x, layer.threshold, parts.keep, parts.columns, parts.count, stream);
    quantize_kept_columns(layer.x, parts.keep, parts.x8(layer.shape()), parts.x_scale, stream);
    gather_outliers<<<course::blocks_for(layer.x.rows() + layer.w.rows(), kGatherWarps),
                      kGatherWarps * course::kWarpSize, 0, stream>>>(layer.x, layer.w, parts.outliers());
    CUDA_CHECK_LAUNCH();
}

void launch_separate(const Layer& layer, cudaStream_t stream) {
    if (!check_layer(layer, separate_workspace(layer.shape()))) return;
    const auto [tokens, outputs, inputs] = layer.shape();
    const Parts parts(layer.shape(), layer.workspace.data(), true);
    prepare(layer, parts, stream);
    course::find_variant(matmul_variants(), "auto")
        .launcher.launch(parts.x8(layer.shape()), layer.w8, {parts.sums, tokens, outputs}, stream);
    const unsigned blocks = course::blocks_for(tokens * outputs, kPlainThreads);
    dequantize_sums<<<blocks, kPlainThreads, 0, stream>>>(parts.sums.data(), tokens, outputs,
                                                          parts.x_scale.data(), layer.w_scale.data());
    CUDA_CHECK_LAUNCH();
    add_outliers<<<blocks, kPlainThreads, 0, stream>>>(parts.sums.data(), parts.outliers(), layer.y);
    CUDA_CHECK_LAUNCH();
}

std::string fused_constraint(const LayerShape& = {}) {
    return course::why_no_tensor_cores(fused_layer<Tile>, Tile::SHARED);
}

void launch_fused(const Layer& layer, cudaStream_t stream) {
    const std::string reason = fused_constraint();
    course::require(reason.empty(), "llm_int8: this version ", reason);
    require_aligned_rows("llm_int8: w8", layer.w8);
    if (!check_layer(layer, fused_workspace(layer.shape()))) return;
    const auto [tokens, outputs, inputs] = layer.shape();
    const Parts parts(layer.shape(), layer.workspace.data(), false);
    prepare(layer, parts, stream);
    const std::size_t tiles_m = course::ceil_div<std::size_t>(tokens, Tile::BM);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(outputs, Tile::BN);
    course::launch(fused_layer<Tile>,
                   {course::blocks_for(tiles_m * tiles_n, 1), Tile::THREADS, Tile::SHARED, stream},
                   parts.x8(layer.shape()), parts.x_scale.data(), layer.w8, layer.w_scale.data(),
                   parts.outliers(), layer.y, static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n));
}

// At the least: X and W8 once, Y once. That the weights of outlier columns are read in half is left out.
course::Work work(const LayerShape& shape) {
    const auto m = static_cast<double>(shape.tokens);
    const auto n = static_cast<double>(shape.outputs);
    const auto k = static_cast<double>(shape.inputs);
    return {.bytes = 2 * m * k + n * k + 2 * m * n,
            .written = 2 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = course::Arithmetic::kOther};
}

course::KernelResources fused_resources() {
    course::allow_shared_bytes(fused_layer<Tile>, Tile::SHARED);
    return course::resources_of(fused_layer<Tile>, Tile::THREADS, Tile::SHARED);
}

}  // namespace

course::Work half_layer_work(const LayerShape& shape) {
    course::Work half = work(shape);
    half.bytes += static_cast<double>(shape.outputs) * static_cast<double>(shape.inputs);  // W: 2 bytes each
    return half;
}

void find_outlier_columns(DeviceMatrix<const __half> x, float threshold, DeviceSpan<std::uint16_t> keep,
                          DeviceSpan<std::uint32_t> columns, DeviceSpan<std::uint32_t> count,
                          cudaStream_t stream) {
    require_size("find_outlier_columns: keep", keep.size(), x.cols());
    require_size("find_outlier_columns: columns", columns.size(), x.cols());
    require_size("find_outlier_columns: count", count.size(), 1);
    course::require(threshold >= 0, "find_outlier_columns: threshold is ", threshold, "; expected 0 or more");
    require_apart("find_outlier_columns: keep", keep, "x", x);
    require_apart("find_outlier_columns: columns", columns, "x", x);
    require_apart("find_outlier_columns: count", count, "x", x);
    require_apart("find_outlier_columns: keep", keep, "columns", columns);
    require_apart("find_outlier_columns: keep", keep, "count", count);
    require_apart("find_outlier_columns: columns", columns, "count", count);
    if (x.cols() != 0)
        CUDA_CHECK(cudaMemsetAsync(keep.data(), 0xff, keep.size() * sizeof(std::uint16_t), stream));
    if (x.rows() != 0 && x.cols() != 0) {
        const std::size_t tiles = course::ceil_div<std::size_t>(x.cols(), kMarkTile);
        const std::size_t chunks = course::ceil_div(x.rows(), kMarkRows);
        const auto kernel = rows_are_aligned(x, 16) ? mark_outliers<true> : mark_outliers<false>;
        kernel<<<course::blocks_for(tiles * chunks, 1), kMarkWarps * course::kWarpSize, 0, stream>>>(
            x, threshold, keep.data(), static_cast<unsigned>(tiles));
        CUDA_CHECK_LAUNCH();
    }
    list_outliers<<<1, kListThreads, 0, stream>>>(keep.data(), x.cols(), columns.data(), count.data());
    CUDA_CHECK_LAUNCH();
}

namespace {

// Calls function(a constant) with the fewest threads, a power of two from 128 to 1024, that can keep a row; false if none can.
template <int kThreads = 128, class Function>
bool with_kept_threads(std::size_t cols, const Function& function) {
    if (cols <= RowShare<__half, kThreads, kKeptPacks, true>::kCapacity) {
        function(std::integral_constant<int, kThreads>{});
        return true;
    }
    if constexpr (kThreads < 1024) return with_kept_threads<2 * kThreads>(cols, function);
    return false;
}

}  // namespace

void quantize_kept_columns(DeviceMatrix<const __half> x, DeviceSpan<const std::uint16_t> keep,
                           DeviceMatrix<std::int8_t> out, DeviceSpan<float> scale, cudaStream_t stream) {
    require_size("quantize_kept_columns: keep", keep.size(), x.cols());
    require_size("quantize_kept_columns: scale", scale.size(), x.rows());
    require_shape("quantize_kept_columns: out", out, x.rows(), x.cols());
    require_apart("quantize_kept_columns: out", out, "x", x);
    require_apart("quantize_kept_columns: out", out, "keep", keep);
    require_apart("quantize_kept_columns: out", out, "scale", scale);
    require_apart("quantize_kept_columns: scale", scale, "x", x);
    require_apart("quantize_kept_columns: scale", scale, "keep", keep);
    if (x.rows() == 0) return;
    const bool aligned =
        rows_are_aligned(x, 16) && rows_are_aligned(out, 8) && course::is_aligned(keep.data(), 16);
    const unsigned blocks = course::blocks_for(x.rows(), 1);
    const bool kept = with_kept_threads(x.cols(), [&](auto threads) {
        const auto kernel =
            aligned ? kept_row_in_registers<true, threads> : kept_row_in_registers<false, threads>;
        kernel<<<blocks, threads.value, 0, stream>>>(x, keep.data(), out, scale.data());
    });
    if (!kept) {
        const auto kernel = aligned ? kept_row_in_passes<true> : kept_row_in_passes<false>;
        kernel<<<blocks, kLongThreads, 0, stream>>>(x, keep.data(), out, scale.data());
    }
    CUDA_CHECK_LAUNCH();
}

std::span<const LlmInt8> layer_variants() {
    static const std::array<LlmInt8, 2> list = {{
        {"separate_kernels", "a kernel for each step", {launch_separate, separate_workspace}, work},
        {"fused",
         "scales and outlier columns in the int8 product's registers",
         {launch_fused, fused_workspace, fused_resources, true},
         work,
         fused_constraint},
    }};
    return list;
}

}  // namespace day30
