// Device-wide primitives of CUB: differences of adjacent items, sorts of segments, and loops. As in
// device.h they are plain loops on the host, in their stream.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <functional>

#include "cuda_on_cpu/cub/device.h"

namespace cub {

// out[i] = op(in[i], in[i - 1]) or op(in[i], in[i + 1]); the first, or last, item is copied.
struct DeviceAdjacentDifference {
    template <class Input, class Output, class Operator = std::minus<>>
    static cudaError_t SubtractLeftCopy(void* storage, std::size_t& bytes, Input in, Output out,
                                        std::ptrdiff_t count, Operator op = {},
                                        cudaStream_t stream = nullptr) {
        return subtract("cub::DeviceAdjacentDifference::SubtractLeftCopy", storage, bytes, in, out, count, op,
                        stream, true);
    }
    template <class Iterator, class Operator = std::minus<>>
    static cudaError_t SubtractLeft(void* storage, std::size_t& bytes, Iterator items, std::ptrdiff_t count,
                                    Operator op = {}, cudaStream_t stream = nullptr) {
        return subtract("cub::DeviceAdjacentDifference::SubtractLeft", storage, bytes, items, items, count,
                        op, stream, true);
    }
    template <class Input, class Output, class Operator = std::minus<>>
    static cudaError_t SubtractRightCopy(void* storage, std::size_t& bytes, Input in, Output out,
                                         std::ptrdiff_t count, Operator op = {},
                                         cudaStream_t stream = nullptr) {
        return subtract("cub::DeviceAdjacentDifference::SubtractRightCopy", storage, bytes, in, out, count,
                        op, stream, false);
    }
    template <class Iterator, class Operator = std::minus<>>
    static cudaError_t SubtractRight(void* storage, std::size_t& bytes, Iterator items, std::ptrdiff_t count,
                                     Operator op = {}, cudaStream_t stream = nullptr) {
        return subtract("cub::DeviceAdjacentDifference::SubtractRight", storage, bytes, items, items, count,
                        op, stream, false);
    }

  private:
    template <class Input, class Output, class Operator>
    static cudaError_t subtract(const char* function, void* storage, std::size_t& bytes, Input in, Output out,
                                std::ptrdiff_t count, Operator op, cudaStream_t stream, bool left) {
        const std::size_t n = static_cast<std::size_t>(count);
        return device::run(function, storage, bytes, stream,
                           {device::array("the input", in, n), device::array("the output", out, n)}, [=] {
                               const std::vector<device::ValueOf<Input>> all(in, in + count);
                               for (std::ptrdiff_t i = 0; i < count; ++i) {
                                   const std::ptrdiff_t other = left ? i - 1 : i + 1;
                                   if (other < 0 || other >= count)
                                       out[i] = all[i];
                                   else
                                       out[i] = op(all[i], all[other]);
                               }
                           });
    }
};

namespace device {

// Sorts the items [begins[s], ends[s]) of each segment by bits of the keys; items outside the
// segments stay as they were in the output. The keys' order is that of a radix sort.
template <class Key, class Value, class Begins, class Ends>
cudaError_t sort_segments(const char* function, void* storage, std::size_t& bytes, const Key* keys_in,
                          Key* keys_out, const Value* values_in, Value* values_out, std::ptrdiff_t count,
                          std::ptrdiff_t segments, Begins begins, Ends ends, int begin_bit, int end_bit,
                          bool descending, cudaStream_t stream) {
    const std::size_t n = static_cast<std::size_t>(count), s = static_cast<std::size_t>(segments);
    const std::size_t values = values_in == nullptr ? 0 : n;
    return run(function, storage, bytes, stream,
               {array("the keys", keys_in, n), array("the sorted keys", keys_out, n),
                array("the values", values_in, values), array("the sorted values", values_out, values),
                array("the begins of the segments", begins, s), array("the ends of the segments", ends, s)},
               [=] {
                   const std::vector<Key> keys(keys_in, keys_in + count);
                   std::vector<Value> old;
                   if (values != 0) old.assign(values_in, values_in + count);
                   for (std::ptrdiff_t segment = 0; segment < segments; ++segment) {
                       const auto begin = static_cast<std::ptrdiff_t>(begins[segment]);
                       const auto end = static_cast<std::ptrdiff_t>(ends[segment]);
                       if (begin < 0 || end > count) {
                           std::fprintf(stderr,
                                        "cuda_on_cpu: %s: segment %td is [%td, %td); expected a part of [0, "
                                        "%td), which num_items names\n",
                                        function, segment, begin, end, count);
                           continue;
                       }
                       std::vector<std::pair<std::uint64_t, std::ptrdiff_t>> order;
                       for (std::ptrdiff_t i = begin; i < end; ++i)
                           order.emplace_back(radix_of(keys[i], begin_bit, end_bit), i);
                       std::stable_sort(order.begin(), order.end(), [=](const auto& a, const auto& b) {
                           return descending ? b.first < a.first : a.first < b.first;
                       });
                       for (std::ptrdiff_t i = begin; i < end; ++i) {
                           keys_out[i] = keys[order[i - begin].second];
                           if (values != 0) values_out[i] = old[order[i - begin].second];
                       }
                   }
               });
}

}  // namespace device

// Stable. With double buffers the result is in the current buffer.
struct DeviceSegmentedRadixSort {
#define CUDA_ON_CPU_CUB_SORT(Name, descending)                                                               \
    template <class Key, class Begins, class Ends>                                                           \
    static cudaError_t SortKeys##Name(void* storage, std::size_t& bytes, const Key* in, Key* out,            \
                                      std::ptrdiff_t count, std::ptrdiff_t segments, Begins begins,          \
                                      Ends ends, int begin_bit = 0, int end_bit = 8 * sizeof(Key),           \
                                      cudaStream_t stream = nullptr) {                                       \
        return device::sort_segments<Key, NullType>(                                                         \
            "cub::DeviceSegmentedRadixSort::SortKeys" #Name, storage, bytes, in, out, nullptr, nullptr,      \
            count, segments, begins, ends, begin_bit, end_bit, descending, stream);                          \
    }                                                                                                        \
    template <class Key, class Begins, class Ends>                                                           \
    static cudaError_t SortKeys##Name(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,            \
                                      std::ptrdiff_t count, std::ptrdiff_t segments, Begins begins,          \
                                      Ends ends, int begin_bit = 0, int end_bit = 8 * sizeof(Key),           \
                                      cudaStream_t stream = nullptr) {                                       \
        return SortKeys##Name(storage, bytes, keys.Current(), keys.Current(), count, segments, begins, ends, \
                              begin_bit, end_bit, stream);                                                   \
    }                                                                                                        \
    template <class Key, class Value, class Begins, class Ends>                                              \
    static cudaError_t SortPairs##Name(void* storage, std::size_t& bytes, const Key* keys_in, Key* keys_out, \
                                       const Value* values_in, Value* values_out, std::ptrdiff_t count,      \
                                       std::ptrdiff_t segments, Begins begins, Ends ends, int begin_bit = 0, \
                                       int end_bit = 8 * sizeof(Key), cudaStream_t stream = nullptr) {       \
        return device::sort_segments("cub::DeviceSegmentedRadixSort::SortPairs" #Name, storage, bytes,       \
                                     keys_in, keys_out, values_in, values_out, count, segments, begins,      \
                                     ends, begin_bit, end_bit, descending, stream);                          \
    }                                                                                                        \
    template <class Key, class Value, class Begins, class Ends>                                              \
    static cudaError_t SortPairs##Name(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,           \
                                       DoubleBuffer<Value>& values, std::ptrdiff_t count,                    \
                                       std::ptrdiff_t segments, Begins begins, Ends ends, int begin_bit = 0, \
                                       int end_bit = 8 * sizeof(Key), cudaStream_t stream = nullptr) {       \
        return SortPairs##Name(storage, bytes, keys.Current(), keys.Current(), values.Current(),             \
                               values.Current(), count, segments, begins, ends, begin_bit, end_bit, stream); \
    }
    CUDA_ON_CPU_CUB_SORT(, false)
    CUDA_ON_CPU_CUB_SORT(Descending, true)
#undef CUDA_ON_CPU_CUB_SORT
};

struct DeviceSegmentedSort {
#define CUDA_ON_CPU_CUB_SORT(Name)                                                                          \
    template <class Key, class Begins, class Ends>                                                          \
    static cudaError_t Sort##Name(void* storage, std::size_t& bytes, const Key* in, Key* out,               \
                                  std::ptrdiff_t count, std::ptrdiff_t segments, Begins begins, Ends ends,  \
                                  cudaStream_t stream = nullptr) {                                          \
        return DeviceSegmentedRadixSort::Sort##Name(storage, bytes, in, out, count, segments, begins, ends, \
                                                    0, 8 * sizeof(Key), stream);                            \
    }                                                                                                       \
    template <class Key, class Begins, class Ends>                                                          \
    static cudaError_t Sort##Name(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,               \
                                  std::ptrdiff_t count, std::ptrdiff_t segments, Begins begins, Ends ends,  \
                                  cudaStream_t stream = nullptr) {                                          \
        return DeviceSegmentedRadixSort::Sort##Name(storage, bytes, keys, count, segments, begins, ends, 0, \
                                                    8 * sizeof(Key), stream);                               \
    }                                                                                                       \
    template <class... Arguments>                                                                           \
    static cudaError_t StableSort##Name(void* storage, std::size_t& bytes, Arguments&&... arguments) {      \
        return Sort##Name(storage, bytes, std::forward<Arguments>(arguments)...);                           \
    }
    CUDA_ON_CPU_CUB_SORT(Keys)
    CUDA_ON_CPU_CUB_SORT(KeysDescending)
#undef CUDA_ON_CPU_CUB_SORT
#define CUDA_ON_CPU_CUB_SORT(Name)                                                                         \
    template <class Key, class Value, class Begins, class Ends>                                            \
    static cudaError_t Sort##Name(void* storage, std::size_t& bytes, const Key* keys_in, Key* keys_out,    \
                                  const Value* values_in, Value* values_out, std::ptrdiff_t count,         \
                                  std::ptrdiff_t segments, Begins begins, Ends ends,                       \
                                  cudaStream_t stream = nullptr) {                                         \
        return DeviceSegmentedRadixSort::Sort##Name(storage, bytes, keys_in, keys_out, values_in,          \
                                                    values_out, count, segments, begins, ends, 0,          \
                                                    8 * sizeof(Key), stream);                              \
    }                                                                                                      \
    template <class Key, class Value, class Begins, class Ends>                                            \
    static cudaError_t Sort##Name(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,              \
                                  DoubleBuffer<Value>& values, std::ptrdiff_t count,                       \
                                  std::ptrdiff_t segments, Begins begins, Ends ends,                       \
                                  cudaStream_t stream = nullptr) {                                         \
        return DeviceSegmentedRadixSort::Sort##Name(storage, bytes, keys, values, count, segments, begins, \
                                                    ends, 0, 8 * sizeof(Key), stream);                     \
    }                                                                                                      \
    template <class... Arguments>                                                                          \
    static cudaError_t StableSort##Name(void* storage, std::size_t& bytes, Arguments&&... arguments) {     \
        return Sort##Name(storage, bytes, std::forward<Arguments>(arguments)...);                          \
    }
    CUDA_ON_CPU_CUB_SORT(Pairs)
    CUDA_ON_CPU_CUB_SORT(PairsDescending)
#undef CUDA_ON_CPU_CUB_SORT
};

// Each function also exists with temporary storage.
struct DeviceFor {
    template <class Count, class Function>
    static cudaError_t Bulk(Count count, Function function, cudaStream_t stream = nullptr) {
        char storage = 0;
        std::size_t bytes = 1;
        return Bulk(&storage, bytes, count, function, stream);
    }
    template <class Count, class Function>
    static cudaError_t Bulk(void* storage, std::size_t& bytes, Count count, Function function,
                            cudaStream_t stream = nullptr) {
        return device::run("cub::DeviceFor::Bulk", storage, bytes, stream, {}, [=] {
            Function each = function;
            for (Count i = 0; i < count; ++i)
                each(i);
        });
    }
#define CUDA_ON_CPU_CUB_FOR(Name)                                                                      \
    template <class Iterator, class Count, class Function>                                             \
    static cudaError_t Name##N(void* storage, std::size_t& bytes, Iterator first, Count count,         \
                               Function function, cudaStream_t stream = nullptr) {                     \
        return device::run("cub::DeviceFor::" #Name "N", storage, bytes, stream,                       \
                           {device::array("the items", first, static_cast<std::size_t>(count))}, [=] { \
                               Function each = function;                                               \
                               for (Count i = 0; i < count; ++i)                                       \
                                   each(first[i]);                                                     \
                           });                                                                         \
    }                                                                                                  \
    template <class Iterator, class Count, class Function>                                             \
    requires(!std::is_void_v<std::remove_pointer_t<Iterator>> &&                                       \
             std::is_integral_v<Count>) static cudaError_t Name##N(Iterator first, Count count,        \
                                                                   Function function,                  \
                                                                   cudaStream_t stream = nullptr) {    \
        char storage = 0;                                                                              \
        std::size_t bytes = 1;                                                                         \
        return Name##N(&storage, bytes, first, count, function, stream);                               \
    }                                                                                                  \
    template <class Iterator, class Function>                                                          \
    static cudaError_t Name(void* storage, std::size_t& bytes, Iterator first, Iterator last,          \
                            Function function, cudaStream_t stream = nullptr) {                        \
        return Name##N(storage, bytes, first, last - first, function, stream);                         \
    }                                                                                                  \
    template <class Iterator, class Function>                                                          \
    static cudaError_t Name(Iterator first, Iterator last, Function function,                          \
                            cudaStream_t stream = nullptr) {                                           \
        return Name##N(first, last - first, function, stream);                                         \
    }
    CUDA_ON_CPU_CUB_FOR(ForEach)
    CUDA_ON_CPU_CUB_FOR(ForEachCopy)
#undef CUDA_ON_CPU_CUB_FOR
};

}  // namespace cub

#include "cuda_on_cpu/macros_back.h"
