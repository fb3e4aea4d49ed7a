// Day 30, first part: a matrix of float or half to 8 bits.                                   PMPP chapter 16, LLM.int8()
//
//     q = saturate(round(x / scale) + zero_point)        per tensor, per row or per column; symmetric or asymmetric
//
//   version            reads x     works for                          what limits it
//   host_pointers      2 times     rows, symmetric                    the bus to the host (quantize_rows_of_host)
//   two_passes         2 times     everything                         the second read, and a second kernel
//   row_in_registers   once        rows of up to 32768 columns        memory, 3 bytes per half; asymmetric: instructions
//
//   ./course run day30                                     all versions, verified and timed
//   ./course run day30 --variant row_in_registers --size 4096x4096x4096
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "quantization.hpp"
#include "quantization_device.cuh"

namespace day30 {
namespace {

constexpr int kThreads = 256;

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Ranges are collected where the parameters will stand: bits of the upper end in `scale`, of the lower end in `zero_point`. Both begin
// as 0.
template <Scheme kScheme>
__device__ void collect(Range range, float* scale, std::int32_t* zero_point, std::size_t group) {
    atomicMax(reinterpret_cast<unsigned*>(scale) + group, range.above);
    if constexpr (kScheme == Scheme::kAsymmetric)
        atomicMax(reinterpret_cast<unsigned*>(zero_point) + group, range.below);
}

constexpr int kChunkPacks = 4;
template <class T, bool kAligned>
using Chunk = RowShare<T, kThreads, kChunkPacks, kAligned>;
constexpr std::size_t kChunk = Chunk<float, true>::kCapacity;

// Idea: a block finds the range of a chunk of a row; atomics take chunks together, those of a row or those of the matrix.
// Cost removed: one block for a long row, or for everything.
// Still limits it: memory; quantize_octets will read it all again.
template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    find_row_ranges(DeviceMatrix<const T> in, unsigned chunks, float* scale, std::int32_t* zero_point) {
    const std::size_t row = blockIdx.x / chunks;
    const std::size_t begin = blockIdx.x % chunks * kChunk;
    Chunk<T, kAligned> chunk;
    chunk.load(in.data() + row * in.leading_dimension() + begin, min(kChunk, in.cols() - begin),
               static_cast<int>(threadIdx.x));
    const Range range = group_merge<kScheme, kThreads>(chunk.template range<kScheme>());
    if (threadIdx.x == 0)
        collect<kScheme>(range, scale, zero_point, kGranularity == Granularity::kRow ? row : 0);
}

constexpr int kColumnRows = 8;                           // of a block, at a time: a warp each
constexpr int kColumnTile = course::kWarpSize * kOctet;  // columns of a block
constexpr std::size_t kColumnChunk = 64;                 // rows of a block, altogether

// Idea: a warp walks down 256 columns, a lane eight of them, so that rows are read in whole, as they lie; warps meet in shared memory.
// Cost removed: a walk along one column would fetch 32 bytes for each 2 that it needs.
// Still limits it: quantize_octets will read it all again.
template <class T, Scheme kScheme, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    find_column_ranges(DeviceMatrix<const T> in, unsigned tiles, float* scale, std::int32_t* zero_point) {
    __shared__ Range of_warp[kColumnRows][kColumnTile];
    const std::size_t tile = std::size_t{blockIdx.x % tiles} * kColumnTile;
    const std::size_t begin = blockIdx.x / tiles * kColumnChunk;
    const std::size_t end = min(begin + kColumnChunk, in.rows());
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;

    Range range[kOctet] = {};
#pragma unroll 4
    for (std::size_t row = begin + warp; row < end; row += kColumnRows) {
        const auto octet = Octet<T>::template load<kAligned>(in.data() + row * in.leading_dimension(),
                                                             tile + lane * kOctet, in.cols());
        for (int k = 0; k < kOctet; ++k)
            range[k].template include<kScheme>(octet[k]);
    }
    for (int k = 0; k < kOctet; ++k)
        of_warp[warp][lane * kOctet + k] = range[k];
    __syncthreads();
    static_assert(kThreads == kColumnTile, "a thread for each column");
    Range of_column = {};
    for (int w = 0; w < kColumnRows; ++w)
        of_column = merge<kScheme>(of_column, of_warp[w][threadIdx.x]);
    if (tile + threadIdx.x < in.cols()) collect<kScheme>(of_column, scale, zero_point, tile + threadIdx.x);
}

// Collected ranges become parameters, in place.
template <Scheme kScheme>
__global__ void finish_parameters(float* scale, std::int32_t* zero_point, std::size_t groups) {
    const std::size_t group = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (group >= groups) return;
    Range range{.above = __float_as_uint(scale[group]), .below = 0};
    if constexpr (kScheme == Scheme::kAsymmetric) range.below = static_cast<unsigned>(zero_point[group]);
    const Parameters parameters = parameters_of<kScheme>(range);
    scale[group] = parameters.scale;
    if constexpr (kScheme == Scheme::kAsymmetric) zero_point[group] = parameters.zero_point;
}

// Parameters by value of the group that an element is in.
template <Scheme kScheme, Granularity kGranularity>
struct GivenParameters {
    const float* scale;
    const std::int32_t* zero_point;

    __device__ Parameters operator()(std::size_t row, std::size_t column) const {
        const std::size_t group = kGranularity == Granularity::kRow      ? row
                                  : kGranularity == Granularity::kColumn ? column
                                                                         : 0;
        return {scale[group], kScheme == Scheme::kAsymmetric ? zero_point[group] : 0};
    }
};

// Idea: eight values per thread, in registers from load to store.
// Cost removed: seven of eight accesses.
// Still limits it: memory; per column a scale, and its inverse, for each value.
template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    quantize_octets(DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                    GivenParameters<kScheme, kGranularity> parameters, std::size_t octets) {
    const Place<kThreads> place(octets);
    if (place.row >= in.rows()) return;
    const auto x = Octet<T>::template load<kAligned>(in.data() + place.row * in.leading_dimension(),
                                                     place.column(), in.cols());
    const auto quantizer = [&](int k) {
        const std::size_t column = min(place.column() + k, in.cols() - 1);
        return Quantizer::make<kScheme>(parameters(place.row, column));
    };
    Bytes q;
    if constexpr (kGranularity == Granularity::kColumn) {
        q = rounded_octet([&](int k) { return quantizer(k)(x[k]); });
    } else {
        q = quantizer(0)(x);
    }
    store_bytes<kAligned>(q, out.data() + place.row * out.leading_dimension(), place.column(), in.cols());
}

template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    dequantize_octets(DeviceMatrix<const std::int8_t> in, DeviceMatrix<T> out,
                      GivenParameters<kScheme, kGranularity> parameters, std::size_t octets) {
    const Place<kThreads> place(octets);
    if (place.row >= in.rows()) return;
    const Bytes q =
        load_bytes<kAligned>(in.data() + place.row * in.leading_dimension(), place.column(), in.cols());
    const auto x = Octet<T>::of([&](int k) {
        const Parameters p = parameters(place.row, min(place.column() + k, in.cols() - 1));
        return static_cast<T>(static_cast<float>(q.value[k] - p.zero_point) * p.scale);
    });
    x.template store<kAligned>(out.data() + place.row * out.leading_dimension(), place.column(), in.cols());
}

constexpr int kPacks = 4;
constexpr int kFewestThreads = 128;  // of a block: short rows share one
constexpr std::size_t kLongestRow = std::size_t{1024} * kPacks * kOctet;

// Idea: threads keep their row in registers while they find its range, and quantise it from there.
// Cost removed: the second read, and all kernels but one.
// Still limits it: memory; in the asymmetric scheme comparisons and conversions.
template <class T, Scheme kScheme, bool kAligned, int kRowThreads>
__global__ void __launch_bounds__(std::max(kRowThreads, kFewestThreads))
    row_in_registers(DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out, float* scale,
                     std::int32_t* zero_point) {
    constexpr int kRows = kRowThreads < kFewestThreads ? kFewestThreads / kRowThreads : 1;
    const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
    const std::size_t row = std::size_t{blockIdx.x} * kRows + threadIdx.x / kRowThreads;
    const std::size_t cols = row < in.rows() ? in.cols() : 0;  // a row beyond the last is empty

    RowShare<T, kRowThreads, kPacks, kAligned> share;
    share.load(in.data() + row * in.leading_dimension(), cols, thread);
    const Range range = group_merge<kScheme, kRowThreads, kRows>(share.template range<kScheme>());
    const Parameters parameters = parameters_of<kScheme>(range);
    std::int8_t* const out_row = out.data() + row * out.leading_dimension();
    if constexpr (kScheme == Scheme::kSymmetric) {
        share.template store<Reader::kNobody>(out_row, cols, thread, AbsmaxQuantizer(parameters.scale));
    } else {
        share.template store<Reader::kNobody>(out_row, cols, thread, Quantizer::make<kScheme>(parameters));
    }
    if (thread == 0 && row < in.rows()) {
        scale[row] = parameters.scale;
        if (zero_point != nullptr) zero_point[row] = parameters.zero_point;
    }
}

// --- Launchers -------------------------------------------------------------------------------------------------------

template <auto kValue>
struct Constant {
    static constexpr auto value = kValue;
};

// Calls function(scheme, granularity, aligned) with constants for the values.
template <class Function>
void with_constants(Method method, bool aligned, const Function& function) {
    const auto with_aligned = [&](auto scheme, auto granularity) {
        if (aligned) {
            function(scheme, granularity, Constant<true>{});
        } else {
            function(scheme, granularity, Constant<false>{});
        }
    };
    const auto with_granularity = [&](auto scheme) {
        switch (method.granularity) {
            case Granularity::kTensor:
                return with_aligned(scheme, Constant<Granularity::kTensor>{});
            case Granularity::kRow:
                return with_aligned(scheme, Constant<Granularity::kRow>{});
            case Granularity::kColumn:
                return with_aligned(scheme, Constant<Granularity::kColumn>{});
        }
    };
    if (method.scheme == Scheme::kSymmetric) {
        with_granularity(Constant<Scheme::kSymmetric>{});
    } else {
        with_granularity(Constant<Scheme::kAsymmetric>{});
    }
}

// Throws std::invalid_argument unless there are as many parameters as groups, away from the matrix. `zero_point` may be empty where it
// has no meaning.
template <class T, class Scale, class ZeroPoint>
void check_parameters(std::string_view function, Method method, DeviceMatrix<T> matrix, Scale scale,
                      ZeroPoint zero_point) {
    const std::size_t groups = group_count({matrix.rows(), matrix.cols(), method});
    require_size(Argument{function, "scale"}, scale.size(), groups);
    if (method.scheme == Scheme::kAsymmetric || !zero_point.empty())
        require_size(Argument{function, "zero_point"}, zero_point.size(), groups);
    require_apart(Argument{function, "scale"}, scale, "zero_point", zero_point);
}

template <class T>
void check_arguments(std::string_view function, Method method, DeviceMatrix<const T> in,
                     DeviceMatrix<std::int8_t> out, DeviceSpan<float> scale,
                     DeviceSpan<std::int32_t> zero_point) {
    require_shape(Argument{function, "out"}, out, in.rows(), in.cols());
    check_parameters(function, method, in, scale, zero_point);
    require_apart(Argument{function, "out"}, out, "in", in);
    require_apart(Argument{function, "scale"}, scale, "in", in);
    require_apart(Argument{function, "zero_point"}, zero_point, "in", in);
    require_apart(Argument{function, "out"}, out, "scale", scale);
    require_apart(Argument{function, "out"}, out, "zero_point", zero_point);
}

// Rows that follow one another without a gap are one long row to those who do not care for rows.
template <class T>
DeviceMatrix<T> as_one_row(DeviceMatrix<T> m) {
    if (m.leading_dimension() != m.cols()) return m;
    return {extent(m), 1, m.rows() * m.cols()};
}

template <class T>
void launch_two_passes(Method method, DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                       DeviceSpan<float> scale, DeviceSpan<std::int32_t> zero_point, cudaStream_t stream) {
    check_arguments("quantize", method, in, out, scale, zero_point);
    find_parameters(method, in, scale, zero_point, stream);
    quantize_with<T>(method, in, scale, zero_point, out, stream);
}

std::string rows_that_fit(const Problem& problem) {
    if (problem.method.granularity != Granularity::kRow) return "quantises rows, not " + name(problem.method);
    if (problem.cols > kLongestRow)
        return "keeps up to " + std::to_string(kLongestRow) + " columns, not " + std::to_string(problem.cols);
    return "";
}

// Calls function(threads, a constant) with the fewest threads, a power of two, that can keep a row of `cols`.
template <int kRowThreads = course::kWarpSize, class Function>
void with_row_threads(std::size_t cols, const Function& function) {
    if constexpr (kRowThreads < 1024) {
        if (cols > std::size_t{kRowThreads} * kPacks * kOctet)
            return with_row_threads<2 * kRowThreads>(cols, function);
    }
    function(Constant<kRowThreads>{});
}

template <class T>
void launch_row_in_registers(Method method, DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                             DeviceSpan<float> scale, DeviceSpan<std::int32_t> zero_point,
                             cudaStream_t stream) {
    const std::string reason = rows_that_fit({in.rows(), in.cols(), method});
    course::require(reason.empty(), "quantize: this version ", reason);
    check_arguments("quantize", method, in, out, scale, zero_point);
    if (in.rows() == 0) return;
    const bool aligned = rows_are_aligned(in, 16) && rows_are_aligned(out, 8);
    with_row_threads(in.cols(), [&](auto threads) {
        with_constants(method, aligned, [&](auto scheme, auto granularity, auto is_aligned) {
            if constexpr (granularity.value == Granularity::kRow) {
                constexpr int kBlock = std::max(threads.value, kFewestThreads);
                const unsigned blocks = course::blocks_for(in.rows(), kBlock / threads.value);
                row_in_registers<T, scheme.value, is_aligned.value, threads.value>
                    <<<blocks, kBlock, 0, stream>>>(in, out, scale.data(),
                                                    zero_point.empty() ? nullptr : zero_point.data());
                CUDA_CHECK_LAUNCH();
            }
        });
    });
}

template <class T>
void launch_chosen(Method method, DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                   DeviceSpan<float> scale, DeviceSpan<std::int32_t> zero_point, cudaStream_t stream) {
    const bool fits = rows_that_fit({in.rows(), in.cols(), method}).empty();
    const auto launch = fits ? launch_row_in_registers<T> : launch_two_passes<T>;
    launch(method, in, out, scale, zero_point, stream);
}

// Each input is read once, each output written once; a product and a rounding for each element.
template <class T>
course::Work work(const Problem& problem) {
    const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.cols);
    const double written =
        elements + static_cast<double>(group_count(problem)) * static_cast<double>(sizeof(float));
    return {.bytes = sizeof(T) * elements + written, .written = written, .flops = 2 * elements};
}

}  // namespace

// --- What is asked for ---------------------------------------------------------------------------------------------------

std::string name(Method method) {
    const std::string scheme = method.scheme == Scheme::kSymmetric ? "symmetric" : "asymmetric";
    return scheme + (method.granularity == Granularity::kTensor ? " per tensor"
                     : method.granularity == Granularity::kRow  ? " per row"
                                                                : " per column");
}

std::size_t group_count(const Problem& problem) {
    switch (problem.method.granularity) {
        case Granularity::kTensor:
            return 1;
        case Granularity::kRow:
            return problem.rows;
        case Granularity::kColumn:
            return problem.cols;
    }
    return 0;
}

template <class T>
void find_parameters(Method method, DeviceMatrix<const T> given, DeviceSpan<float> scale,
                     DeviceSpan<std::int32_t> zero_point, cudaStream_t stream) {
    check_parameters("find_parameters", method, given, scale, zero_point);
    require_apart("find_parameters: scale", scale, "in", given);
    require_apart("find_parameters: zero_point", zero_point, "in", given);
    if (scale.empty()) return;
    const DeviceMatrix<const T> in = method.granularity == Granularity::kTensor ? as_one_row(given) : given;
    CUDA_CHECK(cudaMemsetAsync(scale.data(), 0, scale.size() * sizeof(float), stream));
    if (!zero_point.empty())
        CUDA_CHECK(cudaMemsetAsync(zero_point.data(), 0, zero_point.size() * sizeof(std::int32_t), stream));

    const bool empty = in.rows() == 0 || in.cols() == 0;
    with_constants(method, rows_are_aligned(in, 16), [&](auto scheme, auto granularity, auto aligned) {
        if (empty) {
            // The range of nothing is 0, which is there already.
        } else if constexpr (granularity.value == Granularity::kColumn) {
            const std::size_t tiles = course::ceil_div<std::size_t>(in.cols(), kColumnTile);
            const std::size_t chunks = course::ceil_div(in.rows(), kColumnChunk);
            find_column_ranges<T, scheme.value, aligned.value>
                <<<course::blocks_for(tiles * chunks, 1), kThreads, 0, stream>>>(
                    in, static_cast<unsigned>(tiles), scale.data(), zero_point.data());
        } else {
            const std::size_t chunks = course::ceil_div(in.cols(), kChunk);
            find_row_ranges<T, scheme.value, granularity.value, aligned.value>
                <<<course::blocks_for(in.rows() * chunks, 1), kThreads, 0, stream>>>(
                    in, static_cast<unsigned>(chunks), scale.data(), zero_point.data());
        }
        CUDA_CHECK_LAUNCH();
        finish_parameters<scheme.value><<<course::blocks_for(scale.size(), kThreads), kThreads, 0, stream>>>(
            scale.data(), zero_point.data(), scale.size());
        CUDA_CHECK_LAUNCH();
    });
}

template <class T>
void quantize_with(Method method, DeviceMatrix<const T> in, DeviceSpan<const float> scale,
                   DeviceSpan<const std::int32_t> zero_point, DeviceMatrix<std::int8_t> out,
                   cudaStream_t stream) {
    require_shape("quantize_with: out", out, in.rows(), in.cols());
    check_parameters("quantize_with", method, in, scale, zero_point);
    require_apart("quantize_with: out", out, "in", in);
    require_apart("quantize_with: out", out, "scale", scale);
    require_apart("quantize_with: out", out, "zero_point", zero_point);
    if (in.rows() == 0 || in.cols() == 0) return;
    const std::size_t octets = course::ceil_div<std::size_t>(in.cols(), kOctet);
    const bool aligned = rows_are_aligned(in, 16) && rows_are_aligned(out, 8);
    with_constants(method, aligned, [&](auto scheme, auto granularity, auto is_aligned) {
        quantize_octets<T, scheme.value, granularity.value, is_aligned.value>
            <<<course::blocks_for(in.rows() * octets, kThreads), kThreads, 0, stream>>>(
                in, out, {scale.data(), zero_point.data()}, octets);
        CUDA_CHECK_LAUNCH();
    });
}

template <class T>
void dequantize(Method method, DeviceMatrix<const std::int8_t> in, DeviceSpan<const float> scale,
                DeviceSpan<const std::int32_t> zero_point, DeviceMatrix<T> out, cudaStream_t stream) {
    require_shape("dequantize: out", out, in.rows(), in.cols());
    check_parameters("dequantize", method, in, scale, zero_point);
    require_apart("dequantize: out", out, "in", in);
    require_apart("dequantize: out", out, "scale", scale);
    require_apart("dequantize: out", out, "zero_point", zero_point);
    require_apart("dequantize: out", out, "zero_point", zero_point);
    if (in.rows() == 0 || in.cols() == 0) return;
    const std::size_t octets = course::ceil_div<std::size_t>(in.cols(), kOctet);
    const bool aligned = rows_are_aligned(in, 8) && rows_are_aligned(out, 16);
    with_constants(method, aligned, [&](auto scheme, auto granularity, auto is_aligned) {
        dequantize_octets<T, scheme.value, granularity.value, is_aligned.value>
            <<<course::blocks_for(in.rows() * octets, kThreads), kThreads, 0, stream>>>(
                in, out, {scale.data(), zero_point.data()}, octets);
        CUDA_CHECK_LAUNCH();
    });
}

// Correct, and what a first attempt looks like: each kernel in a function of its own that takes and gives host memory. Everything
// crosses the bus, the zeros are written over, and cudaMalloc and cudaFree wait for the device.
template <class T>
void quantize_rows_of_host(std::size_t rows, std::size_t cols, std::span<const T> in,
                           std::span<std::int8_t> out, std::span<float> scale) {
    require_size("quantize_rows_of_host: in", in.size(), rows * cols);
    require_size("quantize_rows_of_host: out", out.size(), rows * cols);
    require_size("quantize_rows_of_host: scale", scale.size(), rows);
    const Method method{Scheme::kSymmetric, Granularity::kRow};
    {
        course::DeviceBuffer<T> x(in);
        course::DeviceBuffer<float> s(rows);
        CUDA_CHECK(cudaMemset(s.data(), 0, s.bytes()));
        find_parameters<T>(method, x.matrix(rows, cols), s.span(), {}, nullptr);
        s.copy_to(scale);
    }
    course::DeviceBuffer<T> x(in);
    course::DeviceBuffer<float> s{std::span<const float>(scale)};
    course::DeviceBuffer<std::int8_t> q(rows * cols);
    CUDA_CHECK(cudaMemset(q.data(), 0, q.bytes()));
    quantize_with<T>(method, x.matrix(rows, cols), s.span(), {}, q.matrix(rows, cols), nullptr);
    q.copy_to(out);
}

template <class T>
std::span<const Quantize<T>> variants() {
    static const std::array<Quantize<T>, 3> list = {{
        {"two_passes", "the range first, then quantise", launch_two_passes<T>, work<T>},
        {"row_in_registers", "a row stays in registers between the two", launch_row_in_registers<T>, work<T>,
         rows_that_fit},
        {"auto", "registers where rows fit", launch_chosen<T>, work<T>},
    }};
    return list;
}

#define DAY30_INSTANTIATE(T)                                                                                 \
    template void find_parameters<T>(Method, DeviceMatrix<const T>, DeviceSpan<float>,                       \
                                     DeviceSpan<std::int32_t>, cudaStream_t);                                \
    template void quantize_with<T>(Method, DeviceMatrix<const T>, DeviceSpan<const float>,                   \
                                   DeviceSpan<const std::int32_t>, DeviceMatrix<std::int8_t>, cudaStream_t); \
    template void dequantize<T>(Method, DeviceMatrix<const std::int8_t>, DeviceSpan<const float>,            \
                                DeviceSpan<const std::int32_t>, DeviceMatrix<T>, cudaStream_t);              \
    template void quantize_rows_of_host<T>(std::size_t, std::size_t, std::span<const T>,                     \
                                           std::span<std::int8_t>, std::span<float>);                        \
    template std::span<const Quantize<T>> variants<T>();
DAY30_INSTANTIATE(float)
DAY30_INSTANTIATE(__half)
#undef DAY30_INSTANTIATE

}  // namespace day30
