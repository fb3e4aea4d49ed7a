// A cache of keys and values that grows by a token, or a few, with each step of decoding. Its
// sequences differ in length: one may end and give its place to a new one while others continue.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "decoding_attention.hpp"

namespace day29 {

// T: __half, __nv_bfloat16.
template <class T>
class KvCache {
  public:
    // Room for `capacity` tokens of each of `batch` sequences, all empty. Nothing is allocated
    // later, so that a captured graph stays valid. Throws CudaError.
    KvCache(std::size_t batch, std::size_t heads_kv, std::size_t capacity, std::size_t dim);

    // Queues the append of `tokens` tokens to each sequence; k and v: [batch, heads_kv, tokens,
    // dim]. Throws std::invalid_argument if k or v has another size, or a sequence no room.
    void append(course::DeviceSpan<const T> k, course::DeviceSpan<const T> v, std::size_t tokens,
                cudaStream_t stream);

    // The same for one sequence, as for its prompt; k and v: [heads_kv, tokens, dim].
    void append_to(std::size_t sequence, course::DeviceSpan<const T> k, course::DeviceSpan<const T> v,
                   std::size_t tokens, cudaStream_t stream);

    // Queues that the sequence is empty again. Throws std::invalid_argument if there is none.
    void clear(std::size_t sequence, cudaStream_t stream);

    // `queries` queries of each sequence against all that has been appended to it.
    Decoding<T> decoding(course::DeviceSpan<const T> q, course::DeviceSpan<T> out, std::size_t heads,
                         std::size_t queries, float scale) const;

    std::size_t length(std::size_t sequence) const { return known_lengths_.at(sequence); }
    std::size_t capacity() const { return extents_.capacity; }

  private:
    // To the sequences [first, first + count).
    void append_rows(std::size_t first, std::size_t count, course::DeviceSpan<const T> k,
                     course::DeviceSpan<const T> v, std::size_t tokens, cudaStream_t stream);

    Shape extents_;
    course::DeviceBuffer<T> k_;
    course::DeviceBuffer<T> v_;
    course::DeviceBuffer<int> lengths_;
    std::vector<std::size_t> known_lengths_;  // as the device will have them once the stream is done
};

}  // namespace day29
