// Attention: day 26 (fused), day 29 (decoding), day 34 (gradients) and day 25 (the layer).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>

#include "arguments.hpp"
#include "attention_backward.hpp"
#include "attention_layer.hpp"
#include "attention_reference.hpp"
#include "call.hpp"
#include "decoding_attention.hpp"
#include "fused_attention.hpp"
#include "modules.hpp"

namespace course_python {
namespace {

namespace nb = nanobind;
using course::attention::HeadsView;
using nb::handle;

// function(T()) with the T that the tensor's elements are.
template <class Function>
void with_attention_type(const Tensor& tensor, const Function& function) {
    if (tensor.type() == type_name<float>()) return function(float{});
    if (tensor.type() == type_name<__half>()) return function(__half{});
    if (tensor.type() == type_name<__nv_bfloat16>()) return function(__nv_bfloat16{});
    tensor.refuse_type("float32, float16 or bfloat16");
}

void require_scale(float scale) {
    if (!(scale > 0) || !std::isfinite(scale))
        throw std::invalid_argument(fmt::format("scale is {}; expected a finite number above 0", scale));
}

// K and V beside Q: their heads, lengths and dim.
void require_keys(const Tensor& q, const Tensor& k, const Tensor& v, bool grouped) {
    const auto& of_q = q.shape();
    const auto& of_k = k.shape();
    v.require_shape(of_k);
    if (of_q[3] > course::attention::kMaxDim) {
        q.refuse("of shape " + q.shape_text(),
                 fmt::format("at most {} elements in a row", course::attention::kMaxDim));
    }
    const bool groups = grouped ? of_k[1] != 0 && of_q[1] % of_k[1] == 0 : of_k[1] == of_q[1];
    if (of_k[0] != of_q[0] || of_k[3] != of_q[3] || !(groups || of_q[1] == 0)) {
        k.refuse("of shape " + k.shape_text(),
                 fmt::format("batch {}, {} {} heads, and dim {}, as q has", of_q[0],
                             grouped ? "a divisor of" : "as many as", of_q[1], of_q[3]));
    }
}

// Rows of one head of a view of host memory, packed.
template <class T>
std::vector<std::remove_const_t<T>> packed_head(const HeadsView<T>& view, std::size_t batch,
                                                std::size_t head) {
    const auto& extents = view.extents();
    const auto& strides = view.strides();
    std::vector<std::remove_const_t<T>> values;
    values.reserve(extents.length * extents.dim);
    for (std::size_t row = 0; row < extents.length; ++row) {
        const T* const begin = view.data() + batch * strides.batch + head * strides.head + row * strides.row;
        values.insert(values.end(), begin, begin + extents.dim);
    }
    return values;
}

template <class T>
void write_row(const std::vector<double>& values, const HeadsView<T>& view, std::size_t batch,
               std::size_t head, std::size_t row) {
    const auto& strides = view.strides();
    T* const to = view.data() + batch * strides.batch + head * strides.head + row * strides.row;
    std::transform(values.begin(), values.end(), to,
                   [](double value) { return static_cast<T>(static_cast<float>(value)); });
}

// --- Forward -------------------------------------------------------------------------------------

template <class T>
const day26::Version<T>& attention_version(const course::attention::Shape& shape) {
    const auto versions = day26::versions<T>();
    for (std::size_t i = versions.size(); i-- > 0;)
        if (versions[i].cannot_run(shape).empty()) return versions[i];
    throw std::invalid_argument("q is of a type that " + versions.back().cannot_run(shape) +
                                "; expected float32, which does not");
}

template <class T>
void attention_on_cpu(const day26::Attention<T>& a) {
    const auto& q = a.q.extents();
    const auto& kv = a.k.extents();
    const std::size_t dim = q.dim;
    for (std::size_t batch = 0; batch < q.batch; ++batch)
        for (std::size_t head = 0; head < q.heads; ++head) {
            const std::size_t group = head / (q.heads / kv.heads);
            const std::vector<T> queries = packed_head(a.q, batch, head);
            const std::vector<T> keys = packed_head(a.k, batch, group),
                                 values = packed_head(a.v, batch, group);
            for (std::size_t row = 0; row < q.length; ++row) {
                const std::size_t seen = course::attention::visible_keys(row, q.length, kv.length, a.causal);
                const auto expected = course::attention::reference_row<T>(
                    std::span(queries).subspan(row * dim, dim), std::span(keys).first(seen * dim),
                    std::span(values).first(seen * dim), seen, static_cast<double>(a.scale),
                    course::attention::Precision{});
                write_row(expected.value, a.out, batch, head, row);
            }
        }
}

void attention(handle q, handle k, handle v, handle out, float scale, bool causal, std::uintptr_t stream) {
    Call call("attention", stream);
    const Tensor& queries = call.input("q", q);
    const Tensor& keys = call.input("k", k);
    const Tensor& values = call.input("v", v);
    const Tensor& to = call.output("out", out);
    require_scale(scale);
    with_attention_type(queries, [&](auto value) {
        using T = decltype(value);
        const day26::Attention<T> problem{queries.heads<const T>(),
                                          keys.heads<const T>(),
                                          values.heads<const T>(),
                                          to.heads<T>(),
                                          scale,
                                          causal};
        require_keys(queries, keys, values, true);
        to.require_shape(queries.shape());
        const auto& extents = problem.q.extents();
        const course::attention::Shape shape{extents.batch,
                                             extents.heads,
                                             problem.k.extents().heads,
                                             extents.length,
                                             problem.k.extents().length,
                                             extents.dim,
                                             causal};
        call.run([&](cudaStream_t on) { attention_version<T>(shape).launcher(problem, on); },
                 [&] { attention_on_cpu(problem); });
    });
}

// --- Decoding ------------------------------------------------------------------------------------

template <class T>
void decode_of(Call& call, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lengths,
               const Tensor& out, float scale) {
    static Workspaces<day29::Workspace> workspaces;
    if (q.shape().size() != 4)
        q.refuse("of shape " + q.shape_text(), "four dimensions: batch, heads, length and dim");
    if (k.shape().size() != 4)
        k.refuse("of shape " + k.shape_text(), "four dimensions: batch, heads, capacity and dim");
    const auto& e = q.shape();
    const day29::Shape shape{e[0], e[1], k.shape()[1], e[2], k.shape()[2], e[3]};
    if (shape.dim != 64 && shape.dim != 128)
        q.refuse("of shape " + q.shape_text(), "64 or 128 elements in a row");
    require_keys(q, k, v, true);
    if (shape.heads_kv != 0 && shape.rows() > day29::kMostRows) {
        q.refuse("of shape " + q.shape_text(),
                 fmt::format("at most {} queries for each head of k, which are heads / {} x length",
                             day29::kMostRows, shape.heads_kv));
    }
    const day29::Decoding<T> decoding{shape,
                                      q.packed<const T>(q.shape()),
                                      k.packed<const T>(k.shape()),
                                      v.packed<const T>(k.shape()),
                                      lengths.packed<const std::int32_t>({shape.batch}),
                                      out.packed<T>(q.shape()),
                                      scale};
    for (const Tensor* tensor : {&q, &k, &v, &out}) {
        if (!course::is_aligned(tensor->data(), 16)) {
            tensor->refuse(fmt::format("at address {}", tensor->data()), "a multiple of 16 bytes");
        }
    }
    call.run(
        [&](cudaStream_t on) {
            workspaces.with(
                on, 0,
                [&](const day29::Workspace& kept) {
                    const day29::Shape& of = kept.shape();
                    return of.batch == shape.batch && of.heads == shape.heads &&
                           of.heads_kv == shape.heads_kv && of.queries == shape.queries &&
                           of.capacity == shape.capacity && of.dim == shape.dim;
                },
                [&] { return std::make_unique<day29::Workspace>(shape); },
                [&](day29::Workspace& workspace) { day29::attend<T>(decoding, workspace, on); });
        },
        [&] {
            const std::size_t group = shape.heads / std::max<std::size_t>(shape.heads_kv, 1);
            const std::size_t row = shape.dim;
            for (std::size_t i = 0; i < shape.batch * shape.heads * shape.queries; ++i) {
                const std::size_t query = i % shape.queries, head = i / shape.queries % shape.heads;
                const std::size_t batch = i / shape.queries / shape.heads;
                const auto cached = static_cast<std::size_t>(std::clamp<std::int64_t>(
                    decoding.lengths.data()[batch], 0, static_cast<std::int64_t>(shape.capacity)));
                const std::size_t hidden = shape.queries - 1 - query;
                const std::size_t seen = cached > hidden ? cached - hidden : 0;
                const std::size_t first = (batch * shape.heads_kv + head / group) * shape.capacity * row;
                const auto expected = day29::reference_row<T>(
                    std::span(decoding.q.data() + i * row, row),
                    std::span(decoding.k.data() + first, seen * row),
                    std::span(decoding.v.data() + first, seen * row), seen, static_cast<double>(scale), {});
                for (std::size_t j = 0; j < row; ++j)
                    decoding.out.data()[i * row + j] = static_cast<T>(static_cast<float>(expected.value[j]));
            }
        });
}

void decode_attention(handle q, handle k, handle v, handle lengths, handle out, float scale,
                      std::uintptr_t stream) {
    Call call("decode_attention", stream);
    const Tensor& queries = call.input("q", q);
    const Tensor& keys = call.input("k_cache", k);
    const Tensor& values = call.input("v_cache", v);
    const Tensor& of_sequences = call.input("lengths", lengths);
    const Tensor& to = call.output("out", out);
    require_scale(scale);
    if (queries.type() == type_name<__half>())
        return decode_of<__half>(call, queries, keys, values, of_sequences, to, scale);
    if (queries.type() == type_name<__nv_bfloat16>())
        return decode_of<__nv_bfloat16>(call, queries, keys, values, of_sequences, to, scale);
    queries.refuse_type("float16 or bfloat16: day 29 has no kernel for other types");
}

// --- With a gradient -----------------------------------------------------------------------------

// `out` and, for the gradient, the logarithm of the sum of exponentials of each row.
void attention_with_lse(handle q, handle k, handle v, handle out, handle lse, float scale, bool causal,
                        std::uintptr_t stream) {
    Call call("attention_with_lse", stream);
    const Tensor& queries = call.input("q", q);
    const Tensor& keys = call.input("k", k);
    const Tensor& values = call.input("v", v);
    const Tensor& to = call.output("out", out);
    const Tensor& to_lse = call.output("lse", lse);
    require_scale(scale);
    with_attention_type(queries, [&](auto value) {
        using T = decltype(value);
        day34::Gradient<T> problem;
        problem.q = queries.heads<const T>();
        problem.k = keys.heads<const T>();
        problem.v = values.heads<const T>();
        problem.scale = scale;
        problem.causal = causal;
        require_keys(queries, keys, values, false);
        to.require_shape(queries.shape());
        const auto result = to.heads<T>();
        const auto& e = problem.q.extents();
        const auto sums = to_lse.packed<float>({e.batch, e.heads, e.length});
        call.run(
            [&](cudaStream_t on) { day34::forward<T>(problem, result, sums, on); },
            [&] {
                attention_on_cpu<T>({problem.q, problem.k, problem.v, result, scale, causal});
                for (std::size_t head = 0; head < e.batch * e.heads; ++head) {
                    const auto rows = packed_head(problem.q, head / e.heads, head % e.heads);
                    const auto cols = packed_head(problem.k, head / e.heads, head % e.heads);
                    for (std::size_t i = 0; i < e.length; ++i) {
                        const std::size_t seen =
                            course::attention::visible_keys(i, e.length, problem.k.extents().length, causal);
                        std::vector<double> scores(seen);
                        for (std::size_t j = 0; j < seen; ++j)
                            for (std::size_t c = 0; c < e.dim; ++c)
                                scores[j] += static_cast<double>(scale) *
                                             static_cast<double>(static_cast<float>(rows[i * e.dim + c])) *
                                             static_cast<double>(static_cast<float>(cols[j * e.dim + c]));
                        const double most = seen == 0 ? 0 : *std::max_element(scores.begin(), scores.end());
                        double sum = 0;
                        for (const double score : scores)
                            sum += std::exp(score - most);
                        sums.data()[head * e.length + i] = static_cast<float>(most + std::log(sum));
                    }
                }
            });
    });
}

template <class T>
const day34::Version<T>& gradient_version(const day34::Shape& shape, bool deterministic) {
    const auto versions = day34::versions<T>();
    if constexpr (std::is_same_v<T, float>) {
        return deterministic ? first_that_runs(versions, shape, {"one_pass_ordered", "recompute", "naive"})
                             : first_that_runs(versions, shape, {"one_pass_atomic", "recompute", "naive"});
    } else {
        // tensor_cores has no atomics either.
        return deterministic ? first_that_runs(versions, shape, {"hopper_ordered", "tensor_cores"})
                             : first_that_runs(versions, shape, {"hopper", "tensor_cores"});
    }
}

template <class T>
void gradient_on_cpu(const day34::Gradient<T>& g, const day34::Shape& shape) {
    const auto& e = g.q.extents();
    const double scale = static_cast<double>(g.scale);
    for (std::size_t head = 0; head < e.batch * e.heads; ++head) {
        const std::size_t b = head / e.heads, h = head % e.heads;
        const auto q = packed_head(g.q, b, h), k = packed_head(g.k, b, h), v = packed_head(g.v, b, h);
        const auto out = packed_head(g.out, b, h), d_out = packed_head(g.d_out, b, h);
        const day34::Head<T> one{q, k, v, out, d_out, host(g.lse).subspan(head * e.length, e.length)};
        for (std::size_t row = 0; row < shape.length_q; ++row)
            write_row(day34::query_gradient<T>(one, shape, scale, {}, row).value, g.dq, b, h, row);
        for (std::size_t key = 0; key < shape.length_k; ++key) {
            const day34::KeyGradient gradient = day34::key_gradient<T>(one, shape, scale, {}, key);
            write_row(gradient.dk.value, g.dk, b, h, key);
            write_row(gradient.dv.value, g.dv, b, h, key);
        }
    }
}

void attention_gradient(handle q, handle k, handle v, handle out, handle d_out, handle lse, handle dq,
                        handle dk, handle dv, float scale, bool causal, bool deterministic,
                        std::uintptr_t stream) {
    Call call("attention_gradient", stream);
    const Tensor& queries = call.input("q", q);
    const Tensor& keys = call.input("k", k);
    const Tensor& values = call.input("v", v);
    const Tensor& result = call.input("out", out);
    const Tensor& of_result = call.input("d_out", d_out);
    const Tensor& sums = call.input("lse", lse);
    const Tensor& to_q = call.output("dq", dq);
    const Tensor& to_k = call.output("dk", dk);
    const Tensor& to_v = call.output("dv", dv);
    require_scale(scale);
    with_attention_type(queries, [&](auto value) {
        using T = decltype(value);
        const auto rows = queries.heads<const T>();
        const auto& e = rows.extents();
        const auto cols = keys.heads<const T>();
        require_keys(queries, keys, values, false);
        for (const Tensor* tensor : {&result, &of_result, &to_q})
            tensor->require_shape(queries.shape());
        to_k.require_shape(keys.shape());
        to_v.require_shape(keys.shape());
        const day34::Gradient<T> gradient{rows,
                                          cols,
                                          values.heads<const T>(),
                                          result.heads<const T>(),
                                          of_result.heads<const T>(),
                                          sums.packed<const float>({e.batch, e.heads, e.length}),
                                          to_q.heads<T>(),
                                          to_k.heads<T>(),
                                          to_v.heads<T>(),
                                          scale,
                                          causal};
        const day34::Shape shape{e.batch, e.heads, e.heads, e.length, cols.extents().length, e.dim, causal};
        call.run(
            [&](cudaStream_t on) {
                const auto& version = gradient_version<T>(shape, deterministic);
                const std::string reason = version.cannot_run(shape);
                if (!reason.empty()) {
                    throw std::invalid_argument(fmt::format(
                        "q is {}, whose gradient {}; expected that, or float32", queries.type(), reason));
                }
                version.launcher(gradient, on);
            },
            [&] { gradient_on_cpu(gradient, shape); });
    });
}

// --- The layer -----------------------------------------------------------------------------------

// Day 25's layer, which owns its memory: for the largest number of tokens seen so far.
class Layer {
  public:
    Layer(std::size_t width, std::size_t heads, bool bias) : config_{width, heads, bias} {
        day25::check_config(config_);
    }

    // Copies. in_weight: 3 width x width; out_weight: width x width; biases of 3 width and width,
    // or None. Tensors of the CPU.
    void set_weights(handle in_weight, handle out_weight, handle in_bias, handle out_bias) {
        const std::size_t width = config_.width;
        const auto copy = [](const char* name, handle object, const std::vector<std::size_t>& shape) {
            const Tensor tensor(name, object, Access::kRead);
            const auto values = tensor.packed<const float>(shape);
            if (tensor.on_gpu()) tensor.refuse("on " + tensor.place(), "the CPU");
            return std::vector<float>(values.data(), values.data() + values.size());
        };
        weights_.in_weight = copy("in_proj_weight", in_weight, {3 * width, width});
        weights_.out_weight = copy("out_proj.weight", out_weight, {width, width});
        if (config_.bias) {
            weights_.in_bias = copy("in_proj_bias", in_bias, {3 * width});
            weights_.out_bias = copy("out_proj.bias", out_bias, {width});
        }
        must_copy_ = true;
    }

    // query and out: batch x queries x width; key, value: batch x keys x width.
    void forward(handle query, handle key, handle value, handle padding, handle out, bool causal,
                 std::uintptr_t stream) {
        Call call("attention_layer", stream);
        const Tensor& queries = call.input("query", query);
        const Tensor& keys = call.input("key", key);
        const Tensor& values = call.input("value", value);
        const Tensor* hidden = padding.is_none() ? nullptr : &call.input("key_padding_mask", padding);
        const Tensor& to = call.output("out", out);
        const std::size_t width = config_.width;
        for (const Tensor* tensor : {&queries, &keys}) {
            if (tensor->shape().size() != 3 || tensor->shape()[2] != width) {
                tensor->refuse("of shape " + tensor->shape_text(),
                               fmt::format("three dimensions: batch, tokens and {}", width));
            }
        }
        const day25::TokenCounts counts{queries.shape()[0], queries.shape()[1], keys.shape()[1]};
        keys.require_shape({counts.batch, counts.keys, width});
        values.require_shape(keys.shape());
        to.require_shape(queries.shape());
        const auto q = queries.rows<const float>(), k = keys.rows<const float>(),
                   v = values.rows<const float>();
        const auto result = to.rows<float>();
        day25::Mask mask{causal, {}};
        if (hidden != nullptr) mask.padding = hidden->packed<const std::uint8_t>({counts.batch, counts.keys});
        call.run(
            [&](cudaStream_t on) {
                int device = 0;
                CUDA_CHECK(cudaGetDevice(&device));
                const std::lock_guard one_at_a_time(mutex_);
                prepare(counts, device, hidden != nullptr);
                layer_->forward(q, k, v, result, counts, mask, on);
            },
            [&] {
                day25::AttentionLayerOnCpu on_cpu(config_, 0);
                on_cpu.set_weights(weights_);
                const std::vector<float> packed_q = packed_rows(q), packed_k = packed_rows(k),
                                         packed_v = packed_rows(v);
                const day25::Bounded expected =
                    on_cpu.forward(packed_q, packed_k, packed_v, counts, causal, host(mask.padding));
                write_rows(std::span<const double>(expected.value), result);
            });
    }

  private:
    // A layer on this device, for that many tokens, with the weights.
    void prepare(const day25::TokenCounts& counts, int device, bool padding) {
        const std::size_t head = config_.heads == 0 ? 0 : config_.width / config_.heads;
        const auto versions = day25::versions();
        const day25::AttentionTask task{head, head, padding};
        const day25::Version& version = first_that_runs(versions, task, {"fused", "ladder"});
        if (!layer_ || device != device_ || counts.batch > most_.batch || counts.queries > most_.queries ||
            counts.keys > most_.keys || version_ != &version) {
            most_ = {std::max(most_.batch, counts.batch), std::max(most_.queries, counts.queries),
                     std::max(most_.keys, counts.keys)};
            layer_.reset();
            layer_ = std::make_unique<day25::AttentionLayer>(config_, most_, version, 0);
            version_ = &version;
            device_ = device;
            must_copy_ = true;
        }
        if (must_copy_) {
            CUDA_CHECK(cudaDeviceSynchronize());  // forward() may be running with other weights
            layer_->set_weights(weights_);
        }
        must_copy_ = false;
    }

    std::mutex mutex_;
    day25::AttentionConfig config_;
    day25::AttentionWeights weights_;
    bool must_copy_ = true;
    day25::TokenCounts most_{0, 0, 0};
    int device_ = 0;
    const day25::Version* version_ = nullptr;
    std::unique_ptr<day25::AttentionLayer> layer_;
};

}  // namespace

void define_attention(nb::module_& module) {
    using namespace nb::literals;
    module.def("attention", &attention, "q"_a, "k"_a, "v"_a, "out"_a, "scale"_a, "causal"_a, "stream"_a);
    module.def("decode_attention", &decode_attention, "q"_a, "k_cache"_a, "v_cache"_a, "lengths"_a, "out"_a,
               "scale"_a, "stream"_a);
    module.def("attention_with_lse", &attention_with_lse, "q"_a, "k"_a, "v"_a, "out"_a, "lse"_a, "scale"_a,
               "causal"_a, "stream"_a);
    module.def("attention_gradient", &attention_gradient, "q"_a, "k"_a, "v"_a, "out"_a, "d_out"_a, "lse"_a,
               "dq"_a, "dk"_a, "dv"_a, "scale"_a, "causal"_a, "deterministic"_a, "stream"_a);
    nb::class_<Layer>(module, "AttentionLayer")
        .def(nb::init<std::size_t, std::size_t, bool>(), "width"_a, "heads"_a, "bias"_a)
        .def("set_weights", &Layer::set_weights, "in_weight"_a, "out_weight"_a, "in_bias"_a.none(),
             "out_bias"_a.none())
        .def("forward", &Layer::forward, "query"_a, "key"_a, "value"_a, "padding"_a.none(), "out"_a,
             "causal"_a, "stream"_a);
}

}  // namespace course_python
