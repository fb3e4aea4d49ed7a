// course::fused_attention: the fastest FP32 version for days that use attention and do not teach
// it.
#include <algorithm>

#include "common/check/require.hpp"
#include "common/device/fused_attention.hpp"
#include "fused_attention.hpp"

namespace course {
namespace {

using day26::HeadsView;

template <class T>
void require_shape(const char* name, const DeviceMatrix<T>& matrix, std::size_t rows, std::size_t cols) {
    require(matrix.rows() == rows && matrix.cols() == cols, "fused attention: ", name, " is ",
            DeviceMatrix<const T>(matrix), "; expected ", rows, " x ", cols);
}

// From the first element to the last.
template <class T>
DeviceSpan<T> memory_of(const DeviceMatrix<T>& matrix) {
    const bool none = matrix.rows() == 0 || matrix.cols() == 0;
    return DeviceSpan<T>::from_device_pointer(
        matrix.data(), none ? 0 : (matrix.rows() - 1) * matrix.leading_dimension() + matrix.cols());
}

// Rows [first, first + length) of every batch, of `rows` each.
template <class T>
HeadsView<T> heads_of(const DeviceMatrix<T>& matrix, const TokenAttention& a, std::size_t rows,
                      std::size_t first, std::size_t length) {
    const std::size_t ld = matrix.leading_dimension();
    const DeviceSpan<T> all = memory_of(matrix);
    const std::size_t offset = length == 0 || all.empty() ? 0 : first * ld;
    return {all.subspan(offset, length == 0 ? 0 : all.size() - offset),
            {a.batch, a.heads, length, a.width},
            {rows * ld, a.width, ld}};
}

}  // namespace

void fused_attention(const TokenAttention& attention, cudaStream_t stream) {
    const auto& [q, k, v, out, batch, heads, queries, keys, width, scale, causal] = attention;
    require_shape("q", q, batch * queries, heads * width);
    require_shape("k", k, batch * keys, heads * width);
    require_shape("v", v, batch * keys, heads * width);
    require_shape("out", out, batch * queries, heads * width);
    const auto result = memory_of(out);
    require(
        !overlap(result, memory_of(q)) && !overlap(result, memory_of(k)) && !overlap(result, memory_of(v)),
        "fused attention: out overlaps an input; expected memory of its own");

    const auto versions = day26::versions<float>();
    const auto version = std::find_if(versions.rbegin(), versions.rend(),
                                      [](const auto& candidate) { return candidate.cannot_run({}).empty(); });
    const auto launch = [&](std::size_t first, std::size_t count, std::size_t key_count, bool masked) {
        version->launcher(
            {heads_of(q, attention, queries, first, count), heads_of(k, attention, keys, 0, key_count),
             heads_of(v, attention, keys, 0, key_count), heads_of(out, attention, queries, first, count),
             scale, masked},
            stream);
    };
    // The versions align a causal mask to the last query and key, PyTorch to the first. On the
    // square of the first queries and keys the two agree; the queries after it see all keys, and no
    // query sees the keys after it.
    const std::size_t square = causal ? std::min(queries, keys) : 0;
    if (square > 0) launch(0, square, square, true);
    if (square < queries) launch(square, queries - square, keys, false);
}

}  // namespace course
