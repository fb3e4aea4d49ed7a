#include "masked_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/data_pattern.hpp"
#include "common/device_buffer.hpp"
#include "common/guarded_buffer.hpp"
#include "common/random.hpp"
#include "common/verify.hpp"
#include "masked.hpp"

namespace day45 {
namespace {

using course::DeviceBuffer;

constexpr float kFill = -std::numeric_limits<float>::infinity();

// `count` matrices of rows x cols, each of them transposed.
std::vector<float> each_transposed(const std::vector<float>& matrices, std::size_t rows, std::size_t cols) {
    std::vector<float> others(matrices.size());
    for (std::size_t e = 0; e < matrices.size(); ++e) {
        const std::size_t in_matrix = e % (rows * cols);
        others[e - in_matrix + in_matrix % cols * rows + in_matrix / cols] = matrices[e];
    }
    return others;
}

// `count` matrices that follow each other.
template <class T>
Batch<T> batch_of(const course::DeviceSpan<T>& all, std::size_t count, std::size_t rows, std::size_t cols) {
    return {.first = {all, rows, cols}, .count = count, .stride = rows * cols};
}

struct Data {
    // `keep`: a byte for each element of all products.
    Data(const course::Dims& dims, const std::vector<std::uint8_t>& keep)
        : shape{.count = dims[0], .m = dims[1], .n = dims[2], .k = dims[3]},
          alpha(1 / std::sqrt(static_cast<float>(shape.k))),
          c(keep.size()) {
        shape.kept = keep.size() - static_cast<std::size_t>(std::ranges::count(keep, 0));
        const auto a =
            course::make_data<float>(shape.count * shape.m * shape.k, course::DataPattern::kNormal, 1);
        const auto b =
            course::make_data<float>(shape.count * shape.k * shape.n, course::DataPattern::kNormal, 2);
        expected = multiply_masked_on_cpu(shape, alpha, a, b, keep, kFill);
        queries = DeviceBuffer<float>(std::span<const float>(a));
        keys = DeviceBuffer<float>(std::span<const float>(each_transposed(b, shape.k, shape.n)));
    }

    MaskedMatmul matmul(const Mask& mask) {
        return {.factors = {.a = batch_of(std::as_const(queries).span(), shape.count, shape.m, shape.k),
                            .b = batch_of(std::as_const(keys).span(), shape.count, shape.n, shape.k),
                            .op_b = Op::kTranspose},
                .c = batch_of(c.span(), shape.count, shape.m, shape.n),
                .mask = mask,
                .alpha = alpha,
                .fill = kFill};
    }

    course::VerifyResult verify() const {
        course::VerifyResult result = course::verify(
            c.to_host(), expected.values, {.terms = shape.k + 1, .growth = course::Growth::kSquareRoot},
            expected.magnitudes, shape.n);
        result.damage = c.damage();
        return result;
    }

    MaskedShape shape;
    float alpha;
    DeviceBuffer<float> queries, keys;
    course::GuardedBuffer<float> c;
    MaskedOnCpu expected;
};

course::Case make_case(const std::string& name, const course::Dims& dims, const std::shared_ptr<Data>& data) {
    course::Case result{.problem = fmt::format("{} {}x{}x{}x{}", name, dims[0], dims[1], dims[2], dims[3]),
                        .dtype = "float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->verify(); };
    return result;
}

bool is_size(const course::Dims& dims) {
    return dims.size() == 4;
}

}  // namespace

course::Case make_masked_case(const course::Dims& dims) {
    if (!is_size(dims)) return {};
    const std::vector<std::uint8_t> of_one = band_as_bytes(Mask::causal(), dims[1], dims[2]);
    std::vector<std::uint8_t> keep;
    for (std::size_t i = 0; i < dims[0]; ++i)
        keep.insert(keep.end(), of_one.begin(), of_one.end());
    const auto data = std::make_shared<Data>(dims, keep);
    course::Case result = make_case("causal_scores", dims, data);
    for (const Masked& variant : masked_variants()) {
        result.contestants.push_back({.name = variant.name,
                                      .launch =
                                          [data, &variant](cudaStream_t stream) {
                                              variant.launcher.launch(data->matmul(Mask::causal()), stream);
                                          },
                                      .work = variant.work(data->shape)});
    }
    return result;
}

course::Case make_masked_by_array_case(const course::Dims& dims) {
    if (!is_size(dims)) return {};
    constexpr std::size_t kPiece = 64;
    const std::size_t in_product = dims[1] * dims[2];
    std::vector<std::uint8_t> keep(dims[0] * in_product);
    for (std::size_t e = 0; e < keep.size(); ++e) {
        const std::size_t row = e / dims[2];  // of all products
        const std::size_t piece = row / kPiece * (dims[2] / kPiece + 1) + e % dims[2] / kPiece;
        keep[e] = static_cast<std::uint8_t>(course::Random(3, piece).below(2));
    }
    const auto data = std::make_shared<Data>(dims, keep);
    data->shape.mask_bytes = keep.size();
    const auto bytes = std::make_shared<DeviceBuffer<std::uint8_t>>(std::span<const std::uint8_t>(keep));
    const auto arrays = batch_of(std::as_const(*bytes).span(), dims[0], dims[1], dims[2]);
    course::Case result = make_case("masked_by_array", dims, data);
    const auto add = [&](const Masked& variant, bool builds) {
        const auto levels = std::make_shared<MaskLevels>(variant.launcher, arrays);
        levels->build(nullptr);
        MaskedShape shape = data->shape;
        if (!builds) shape.mask_bytes = 0;
        result.contestants.push_back({.name = variant.name + (builds ? "" : "_with_levels"),
                                      .launch =
                                          [data, bytes, levels, builds, &variant](cudaStream_t stream) {
                                              if (builds) levels->build(stream);
                                              variant.launcher.launch(data->matmul(levels->mask()), stream);
                                          },
                                      .work = variant.work(shape)});
    };
    for (const Masked& variant : masked_variants())
        add(variant, true);
    for (const Masked& variant : masked_variants()) {
        if (variant.launcher.levels_size(arrays) != 0) add(variant, false);
    }
    return result;
}

}  // namespace day45
