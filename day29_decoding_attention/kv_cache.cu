// The kernels that make the cache grow.
#include <algorithm>
#include <limits>

#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "kv_cache.hpp"

namespace day29 {
namespace {

using course::require;

constexpr int kBlock = 256;

// Idea: a thread for each pair of new elements, which it copies to the end of the existing tokens.
// from: [count, heads_kv, tokens, dim].
template <class T>
__global__ void append_rows_kernel(const T* k, const T* v, T* k_cache, T* v_cache, const int* lengths,
                                   Shape cache, std::size_t tokens, std::size_t elements) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i >= elements) return;
    const std::size_t col = i % cache.dim;
    const std::size_t token = i / cache.dim % tokens;
    const std::size_t head = i / cache.dim / tokens;  // of K, of all sequences here
    const auto length = static_cast<std::size_t>(lengths[head / cache.heads_kv]);
    const std::size_t to = (head * cache.capacity + length + token) * cache.dim + col;
    k_cache[to] = k[i];
    v_cache[to] = v[i];
}

// This needs a separate kernel, because all blocks of the previous one read the old lengths.
__global__ void add_to_lengths(int* lengths, std::size_t count, int tokens) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i < count) lengths[i] += tokens;
}

}  // namespace

template <class T>
KvCache<T>::KvCache(std::size_t batch, std::size_t heads_kv, std::size_t capacity, std::size_t dim)
    : extents_{.batch = batch, .heads = heads_kv, .heads_kv = heads_kv, .capacity = capacity, .dim = dim},
      k_(extents_.cache_elements()),
      v_(extents_.cache_elements()),
      lengths_(std::span<const int>(std::vector<int>(batch))),
      known_lengths_(batch) {}

template <class T>
void KvCache<T>::append(course::DeviceSpan<const T> k, course::DeviceSpan<const T> v, std::size_t tokens,
                        cudaStream_t stream) {
    append_rows(0, extents_.batch, k, v, tokens, stream);
}

template <class T>
void KvCache<T>::append_to(std::size_t sequence, course::DeviceSpan<const T> k, course::DeviceSpan<const T> v,
                           std::size_t tokens, cudaStream_t stream) {
    require(sequence < extents_.batch, "KvCache: sequence is ", sequence, "; expected one below ",
            extents_.batch);
    append_rows(sequence, 1, k, v, tokens, stream);
}

template <class T>
void KvCache<T>::append_rows(std::size_t first, std::size_t count, course::DeviceSpan<const T> k,
                             course::DeviceSpan<const T> v, std::size_t tokens, cudaStream_t stream) {
    const std::size_t elements = count * extents_.heads_kv * tokens * extents_.dim;
    require(k.size() == elements && v.size() == elements, "KvCache: k has ", k.size(), " and v ", v.size(),
            " elements; expected ", elements);
    for (std::size_t i = first; i < first + count; ++i)
        require(tokens <= extents_.capacity - known_lengths_[i], "KvCache: sequence ", i, " has ",
                known_lengths_[i], " tokens and should get ", tokens, " more; expected at most ",
                extents_.capacity, " together");
    if (elements == 0) return;
    const std::size_t offset = first * extents_.heads_kv * extents_.capacity * extents_.dim;
    append_rows_kernel<<<course::blocks_for(elements, kBlock), kBlock, 0, stream>>>(
        k.data(), v.data(), k_.data() + offset, v_.data() + offset, lengths_.data() + first, extents_, tokens,
        elements);
    CUDA_CHECK_LAUNCH();
    add_to_lengths<<<course::blocks_for(count, kBlock), kBlock, 0, stream>>>(lengths_.data() + first, count,
                                                                             static_cast<int>(tokens));
    CUDA_CHECK_LAUNCH();
    for (std::size_t i = first; i < first + count; ++i)
        known_lengths_[i] += tokens;
}

template <class T>
void KvCache<T>::clear(std::size_t sequence, cudaStream_t stream) {
    require(sequence < extents_.batch, "KvCache: sequence is ", sequence, "; expected one below ",
            extents_.batch);
    CUDA_CHECK(cudaMemsetAsync(lengths_.data() + sequence, 0, sizeof(int), stream));
    known_lengths_[sequence] = 0;
}

template <class T>
Decoding<T> KvCache<T>::decoding(course::DeviceSpan<const T> q, course::DeviceSpan<T> out, std::size_t heads,
                                 std::size_t queries, float scale) const {
    Shape shape = extents_;
    shape.heads = heads;
    shape.queries = queries;
    return {shape, q, k_.span(), v_.span(), lengths_.span(), out, scale};
}

template class KvCache<__half>;
template class KvCache<__nv_bfloat16>;

}  // namespace day29
