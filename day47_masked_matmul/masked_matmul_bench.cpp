// Day 47's program: products of which a mask keeps a part.
//
//     day47_masked_matmul --size 4x512x512x64      4 heads: the scores of causal attention, and a mask in an array
//     day47_masked_matmul --plot                   causal scores, from K = 16 to 512 and from 1 to 256 heads

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/cublas_sgemm.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/expected_products.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "masked_matmul.hpp"
#include "masked_matmul_peer.hpp"

namespace day47 {
namespace {

using course::DeviceBuffer;

constexpr float kFill = -std::numeric_limits<float>::infinity();

// `count` matrices that follow each other.
template <class T>
course::Batch<T> batch_of(const course::DeviceSpan<T>& all, std::size_t count, std::size_t rows,
                          std::size_t cols) {
    return {.first = {all, rows, cols}, .count = count, .stride = rows * cols};
}

struct Data {
    // `keep`: a byte for each element of all products, or of one, for all the same.
    Data(const course::Dims& dims, const std::vector<std::uint8_t>& keep)
        : Data({.count = dims[0], .m = dims[1], .n = dims[2], .k = dims[3]}, keep,
               course::make_data<float>(dims[0] * dims[1] * dims[3], course::DataPattern::kNormal, 1),
               course::make_data<float>(dims[0] * dims[3] * dims[2], course::DataPattern::kNormal, 2)) {}

    Data(const MaskedShape& s, const std::vector<std::uint8_t>& keep, const std::vector<float>& a,
         const std::vector<float>& b)
        : shape(s),
          alpha(1 / std::sqrt(static_cast<float>(s.k))),
          queries(std::span<const float>(a)),
          keys(std::span<const float>(course::each_transposed(b, s.k, s.n))),
          c(s.count * s.m * s.n),
          expected({s.count, s.m, s.n, s.k}, alpha, a, b) {
        const std::size_t dropped = static_cast<std::size_t>(std::ranges::count(keep, 0));
        shape.kept = (keep.size() - dropped) * (c.size() / keep.size());
        expected.fill_dropped(keep, kFill);
    }

    MaskedMatmul matmul(const Mask& mask) {
        return {.operands = {.a = batch_of(std::as_const(queries).span(), shape.count, shape.m, shape.k),
                             .b = batch_of(std::as_const(keys).span(), shape.count, shape.n, shape.k),
                             .op_b = course::Op::kTranspose},
                .c = batch_of(c.span(), shape.count, shape.m, shape.n),
                .mask = mask,
                .alpha = alpha,
                .fill = kFill};
    }

    MaskedShape shape;
    float alpha;
    DeviceBuffer<float> queries, keys;
    course::GuardedBuffer<float> c;
    course::ExpectedProducts expected;
};

course::Case make_case(const std::string& name, const course::Dims& dims, const std::shared_ptr<Data>& data) {
    course::Case result{.problem = fmt::format("{} {}x{}x{}x{}", name, dims[0], dims[1], dims[2], dims[3]),
                        .dtype = "float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->expected.verify(data->c); };
    return result;
}

// Q K^T / sqrt(k), and -Inf above the diagonal: the scores of causal attention, for `count` heads.
course::Case make_causal_case(const course::Dims& dims, const std::shared_ptr<Data>& data) {
    course::Case result = make_case("causal_scores", dims, data);
    for (const Masked& version : masked_versions()) {
        result.contestants.push_back({.name = version.name,
                                      .launch =
                                          [data, &version](cudaStream_t stream) {
                                              version.launcher.launch(data->matmul(Mask::causal()), stream);
                                          },
                                      .work = version.work(data->shape),
                                      .cannot_run = version.cannot_run(data->shape)});
    }
    return result;
}

std::shared_ptr<Data> make_causal_data(const course::Dims& dims) {
    return std::make_shared<Data>(dims, band_as_bytes(Mask::causal(), dims[1], dims[2]));
}

// A few of the versions, beside cuBLAS and the pass that fills.
course::Case make_plotted(const course::Dims& dims) {
    const auto data = make_causal_data(dims);
    course::Case result = make_causal_case(dims, data);
    std::erase_if(result.contestants, [](const course::Contestant& each) {
        return each.name != "unfused" && each.name != "skip_tiles" && each.name != "skip_tiles_mma";
    });
    result.contestants.insert(result.contestants.begin(),
                              {.name = "cublas_then_fill",
                               .role = course::Role::kPeer,
                               .launch = [data, work = make_cublas_then_fill(data->matmul(Mask::causal()))](
                                             cudaStream_t stream) { work(stream); },
                               .work = masked_versions().front().work(data->shape),
                               .cannot_run = course::why_no_cublas()});
    return result;
}

std::vector<course::Dims> sizes_of_plots() {
    std::vector<course::Dims> sizes;
    for (const std::size_t k : {16, 32, 64, 128, 256, 512})
        sizes.push_back({64, 1024, 1024, k});
    for (const std::size_t heads : {1, 2, 4, 8, 16, 32, 128, 256})
        sizes.push_back({heads, 1024, 1024, 64});
    return sizes;
}

// An array for each product, in which each piece of 64 x 64 is kept or is not, one as likely as the
// other. The levels are built each time; last comes what is left of that time when they are known.
course::Case make_array_case(const course::Dims& dims) {
    constexpr std::size_t kPiece = 64;
    const std::size_t in_product = dims[1] * dims[2];
    std::vector<std::uint8_t> keep(dims[0] * in_product);
#pragma omp parallel for
    for (std::size_t row = 0; row < dims[0] * dims[1]; ++row) {  // of all products
        for (std::size_t col = 0; col < dims[2]; ++col) {
            const std::size_t piece = row / kPiece * (dims[2] / kPiece + 1) + col / kPiece;
            keep[row * dims[2] + col] = static_cast<std::uint8_t>(course::Random(3, piece).below(2));
        }
    }
    const auto data = std::make_shared<Data>(dims, keep);
    data->shape.mask_bytes = keep.size();
    const auto bytes = std::make_shared<DeviceBuffer<std::uint8_t>>(std::span<const std::uint8_t>(keep));
    const auto arrays = batch_of(std::as_const(*bytes).span(), dims[0], dims[1], dims[2]);
    course::Case result = make_case("masked_by_array", dims, data);
    const auto add = [&](const Masked& version, bool builds) {
        const auto levels = std::make_shared<MaskLevels>(version.launcher, arrays);
        levels->build(nullptr);
        MaskedShape shape = data->shape;
        if (!builds) shape.mask_bytes = 0;
        result.contestants.push_back({.name = version.name + (builds ? "" : "_with_levels"),
                                      .launch =
                                          [data, bytes, levels, builds, &version](cudaStream_t stream) {
                                              if (builds) levels->build(stream);
                                              version.launcher.launch(data->matmul(levels->mask()), stream);
                                          },
                                      .work = version.work(shape),
                                      .cannot_run = version.cannot_run(shape)});
    };
    for (const Masked& version : masked_versions())
        add(version, true);
    for (const Masked& version : masked_versions()) {
        if (version.launcher.levels_size(arrays) != 0) add(version, false);
    }
    return result;
}

// Masks are for products of as many rows as columns; of small ones there are no tiles to skip.
course::Dims count_n_n_k(const course::Dims& size) {
    const std::size_t least = course::is_cpu_stand_in() ? 1 : 512;
    if (size.size() != 4 || size[1] != size[2] || size[1] < least) {
        throw std::invalid_argument(
            fmt::format("expected count x n x n x k, n at least {}, for example 4x512x512x64", least));
    }
    return size;
}

}  // namespace
}  // namespace day47

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day47_masked_matmul",
        .title = "matrix products of which a mask keeps a part",
        .default_size = {2, 200, 200, 64},
        .bench_sizes = {{64, 512, 512, 512}, {128, 1024, 1024, 64}, {128, 1024, 1024, 128}},
        .plot_sizes = day47::sizes_of_plots(),
        .make_cases = {
            [](const course::Dims& size) {
                day47::count_n_n_k(size);
                return day47::make_causal_case(size, day47::make_causal_data(size));
            },
            [](const course::Dims& size) { return day47::make_array_case(day47::count_n_n_k(size)); }},
        .plot_cases = {
            [](const course::Dims& size) { return day47::make_plotted(day47::count_n_n_k(size)); }}};
    return course::run_program(program, argc, argv);
}
