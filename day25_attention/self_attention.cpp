// Day 25, part 2: self-attention from parts. No kernels here: they are in attention.cuh.
//
//   Q, K, V   a row per token; the columns of a head are neighbours
//
//   1  scores  = scale Q K^T       queries x keys, for each head of each batch             a product
//   2  weights = softmax(scores)   row by row, masked, in place; one launch for all heads  memory
//   3  out     = weights V         queries x value_width                                   a product
//
// A backend that cannot read B transposed gets K^T, transposed once for all heads of a batch. The
// scores are stored once, loaded and stored by the softmax, and loaded again.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "attention.hpp"
#include "beyond/ladder_backend.hpp"
#include "common/check/require.hpp"
#include "common/device/fused_attention.hpp"
#include "common/device/grid.hpp"

namespace day25 {
namespace {

using course::DeviceMatrix;

// --- Backends of the products --------------------------------------------------------------------

// An entry of product_versions(): no scratch memory.
template <std::size_t INDEX>
class Tiled : public MatmulBackend {
  public:
    void multiply(const Product& product, cudaStream_t stream) override {
        product_versions()[INDEX].launcher(product, stream);
    }
    bool takes_transposed() const override { return true; }
};

template <std::size_t INDEX>
std::unique_ptr<MatmulBackend> make_tiled(std::span<const ProductShape>) {
    return std::make_unique<Tiled<INDEX>>();
}

std::string fused_constraint(const AttentionTask& task) {
    if (task.padding) return "has no mask for padding";
    if (task.width > course::kMostFusedColumns || task.width != task.value_width) {
        return "needs heads of at most " + std::to_string(course::kMostFusedColumns) +
               " columns, as many of values as of keys, not " + std::to_string(task.width) + " and " +
               std::to_string(task.value_width);
    }
    return "";
}

// --- Self-attention ------------------------------------------------------------------------------

// Rows of scores and of transposed keys are 16-byte aligned, so that they can be loaded as float4.
std::size_t padded(std::size_t keys) {
    return (keys + 3) / 4 * 4;
}

void require_shape(const char* name, const DeviceMatrix<const float>& matrix, std::size_t rows,
                   std::size_t cols) {
    course::require(matrix.rows() == rows && matrix.cols() == cols, "day25: self-attention: ", name, " is ",
                    matrix, "; expected ", rows, " x ", cols);
}

}  // namespace

std::span<const Version> versions() {
    static const std::array<Version, 4> list = {{
        {product_versions()[0].name, product_versions()[0].idea, {make_tiled<0>}},
        {product_versions()[1].name, product_versions()[1].idea, {make_tiled<1>}},
        {"ladder",
         "the ladder's last steps; K is transposed for them",
         {make_ladder, false, course::Arithmetic::kOther}},
        {"fused",
         "day 26: scores are never written; the ladder for projections",
         {make_ladder, true, course::Arithmetic::kOther},
         nullptr,
         fused_constraint},
    }};
    return list;
}

course::Work AttentionShape::work() const {
    const auto in = static_cast<double>(batch * heads * (queries * width + keys * (width + value_width)));
    const auto out = static_cast<double>(batch * heads * queries * value_width);
    const auto pairs = static_cast<double>(batch * heads * queries) * static_cast<double>(keys);
    return {.bytes = sizeof(float) * (in + out),
            .written = sizeof(float) * out,
            .flops = 2 * pairs * static_cast<double>(width + value_width)};
}

SelfAttention::SelfAttention(const Version& version, const AttentionShape& shape)
    : version_(version), largest_(shape) {
    const std::string reason = version.cannot_run({shape.width, shape.value_width});
    course::require(reason.empty(), "day25: self-attention: ", version.name, " ", reason);
    if (version.launcher.fused) return;
    scores_ = course::DeviceBuffer<float>(shape.score_rows().count() * padded(shape.keys));
    const std::vector<ProductShape> shapes = {{shape.queries, shape.keys, shape.width},
                                              {shape.queries, shape.value_width, shape.keys}};
    backend_ = version.launcher.make_backend(shapes);
    if (!backend_->takes_transposed())
        keys_transposed_ = course::DeviceBuffer<float>(shape.heads * shape.width * padded(shape.keys));
}

void SelfAttention::operator()(DeviceMatrix<const float> q, DeviceMatrix<const float> k,
                               DeviceMatrix<const float> v, DeviceMatrix<float> out, float scale,
                               const Mask& mask, cudaStream_t stream) {
    (*this)(largest_, q, k, v, out, scale, mask, stream);
}

void SelfAttention::operator()(const AttentionShape& shape, DeviceMatrix<const float> q,
                               DeviceMatrix<const float> k, DeviceMatrix<const float> v,
                               DeviceMatrix<float> out, float scale, const Mask& mask, cudaStream_t stream) {
    const auto [batch, heads, queries, keys, width, value_width] = shape;
    course::require(
        batch <= largest_.batch && queries <= largest_.queries && keys <= largest_.keys &&
            heads == largest_.heads && width == largest_.width && value_width == largest_.value_width,
        "day25: self-attention: batch ", batch, ", heads ", heads, ", queries ", queries, ", keys ", keys,
        ", width ", width, ", value width ", value_width, "; expected at most batch ", largest_.batch,
        ", queries ", largest_.queries, ", keys ", largest_.keys, ", and heads ", largest_.heads, ", width ",
        largest_.width, ", value width ", largest_.value_width);
    require_shape("q", q, batch * queries, heads * width);
    require_shape("k", k, batch * keys, heads * width);
    require_shape("v", v, batch * keys, heads * value_width);
    require_shape("out", out, batch * queries, heads * value_width);
    course::require(!overlap(out, q) && !overlap(out, k) && !overlap(out, v),
                    "day25: self-attention: out overlaps q, k or v; expected that it does not");
    course::require(mask.padding.empty() || mask.padding.size() == batch * keys,
                    "day25: self-attention: padding has ", mask.padding.size(),
                    " elements; expected none or batch x keys = ", batch * keys);
    const std::string reason = version_.cannot_run({width, value_width, !mask.padding.empty()});
    course::require(reason.empty(), "day25: self-attention: ", version_.name, " ", reason);
    if (batch * heads * queries == 0) return;
    if (version_.launcher.fused) {
        course::fused_attention({q, k, v, out, batch, heads, queries, keys, width, scale, mask.causal},
                                stream);
        return;
    }

    const DeviceMatrix<float> scores(scores_.span(), shape.score_rows().count(), keys, padded(keys));
    const bool transposed = backend_->takes_transposed();
    for (std::size_t b = 0; b < batch; ++b) {
        const auto q_of_batch = piece(q, b * queries, queries, 0, q.cols());
        const auto k_of_batch = piece(k, b * keys, keys, 0, k.cols());
        const DeviceMatrix<float> k_columns(keys_transposed_.span(), transposed ? 0 : k.cols(), keys,
                                            padded(keys));
        if (!transposed) transpose(k_of_batch, k_columns, stream);
        for (std::size_t h = 0; h < heads; ++h) {
            backend_->multiply(
                {.a = piece(q_of_batch, 0, queries, h * width, width),
                 .b = transposed ? piece(k_of_batch, 0, keys, h * width, width)
                                 : piece(DeviceMatrix<const float>(k_columns), h * width, width, 0, keys),
                 .c = piece(scores, (b * heads + h) * queries, queries, 0, keys),
                 .transpose_b = transposed,
                 .alpha = scale},
                stream);
        }
    }
    masked_softmax(scores, shape.score_rows(), mask, stream);
    for (std::size_t b = 0; b < batch; ++b) {
        for (std::size_t h = 0; h < heads; ++h) {
            backend_->multiply(
                {.a = piece(DeviceMatrix<const float>(scores), (b * heads + h) * queries, queries, 0, keys),
                 .b = piece(v, b * keys, keys, h * value_width, value_width),
                 .c = piece(out, b * queries, queries, h * value_width, value_width)},
                stream);
        }
    }
}

}  // namespace day25
