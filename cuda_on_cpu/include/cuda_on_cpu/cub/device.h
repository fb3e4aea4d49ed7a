// Device-wide primitives of CUB. A call with null for the temporary storage returns the number of
// bytes it needs; the second call submits plain loops on the host to the stream. Arrays that are
// passed as pointers must be device memory.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "cuda_on_cpu/cub/types.h"
#include "cuda_on_cpu/host_work.h"

namespace cub {
namespace device {

template <class Iterator>
using ValueOf = std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<Iterator>())>>;

// An argument of the call that can be checked because it is a pointer.
struct Array {
    const char* name;
    const void* pointer = nullptr;
    std::size_t bytes = 0;
};
template <class T>
Array array(const char* name, T* pointer, std::size_t count) {
    if constexpr (std::is_void_v<T>) {
        return {name, pointer, count};
    } else {
        return {name, pointer, count * sizeof(T)};
    }
}
template <class Iterator>
requires(!std::is_pointer_v<Iterator>) Array array(const char* name, Iterator, std::size_t) {
    return {name};
}

// The two-call protocol of all functions.
template <class Work>
cudaError_t run(const char* function, void* storage, std::size_t& bytes, cudaStream_t stream,
                std::vector<Array> arrays, Work work) {
    // No temporary storage is used, but null must be wrong in the second call.
    constexpr std::size_t kBytes = 1;
    if (storage == nullptr) {
        bytes = kBytes;
        return cudaSuccess;
    }
    if (bytes < kBytes) return cudaErrorInvalidValue;
    return cuda_on_cpu::submit_host_work(stream, function, [function, arrays, work] {
        for (const Array& it : arrays) {
            if (it.bytes != 0 && !cuda_on_cpu::check_device_memory(function, it.name, it.pointer, it.bytes))
                return;
        }
        work();
    });
}

template <class Input, class Operator, class T>
T fold(Input in, std::ptrdiff_t begin, std::ptrdiff_t end, Operator combine, T sum) {
    for (std::ptrdiff_t i = begin; i < end; ++i)
        sum = combine(sum, in[i]);
    return sum;
}

}  // namespace device

struct DeviceReduce {
    template <class Input, class Output, class Operator, class T>
    static cudaError_t Reduce(void* storage, std::size_t& bytes, Input in, Output out, std::ptrdiff_t count,
                              Operator combine, T initial, cudaStream_t stream = nullptr, bool = false) {
        return run("cub::DeviceReduce", storage, bytes, stream, in, out, count,
                   [=] { *out = device::fold(in, 0, count, combine, initial); });
    }
    template <class Input, class Output, class Operator, class Function, class T>
    static cudaError_t TransformReduce(void* storage, std::size_t& bytes, Input in, Output out,
                                       std::ptrdiff_t count, Operator combine, Function function, T initial,
                                       cudaStream_t stream = nullptr) {
        return run("cub::DeviceReduce::TransformReduce", storage, bytes, stream, in, out, count, [=] {
            T sum = initial;
            for (std::ptrdiff_t i = 0; i < count; ++i)
                sum = combine(sum, function(in[i]));
            *out = sum;
        });
    }
    template <class Input, class Output>
    static cudaError_t Sum(void* storage, std::size_t& bytes, Input in, Output out, std::ptrdiff_t count,
                           cudaStream_t stream = nullptr, bool = false) {
        using T = device::ValueOf<Input>;
        return Reduce(storage, bytes, in, out, count, cub::Sum(), T{}, stream);
    }
    template <class Input, class Output>
    static cudaError_t Min(void* storage, std::size_t& bytes, Input in, Output out, std::ptrdiff_t count,
                           cudaStream_t stream = nullptr, bool = false) {
        using T = device::ValueOf<Input>;
        return Reduce(storage, bytes, in, out, count, cub::Min(), greatest<T>(), stream);
    }
    template <class Input, class Output>
    static cudaError_t Max(void* storage, std::size_t& bytes, Input in, Output out, std::ptrdiff_t count,
                           cudaStream_t stream = nullptr, bool = false) {
        using T = device::ValueOf<Input>;
        return Reduce(storage, bytes, in, out, count, cub::Max(), std::numeric_limits<T>::lowest(), stream);
    }
    // *out is a pair of a position and a value.
    template <class Input, class Output>
    static cudaError_t ArgMin(void* storage, std::size_t& bytes, Input in, Output out, int count,
                              cudaStream_t stream = nullptr, bool = false) {
        return run("cub::DeviceReduce::ArgMin", storage, bytes, stream, in, out, count, [=] {
            const auto best = position(in, count, cub::ArgMin(), greatest<device::ValueOf<Input>>());
            *out = {best.key, best.value};
        });
    }
    template <class Input, class Output>
    static cudaError_t ArgMax(void* storage, std::size_t& bytes, Input in, Output out, int count,
                              cudaStream_t stream = nullptr, bool = false) {
        return run("cub::DeviceReduce::ArgMax", storage, bytes, stream, in, out, count, [=] {
            const auto best =
                position(in, count, cub::ArgMax(), std::numeric_limits<device::ValueOf<Input>>::lowest());
            *out = {best.key, best.value};
        });
    }
    // The value and its position as separate outputs.
    template <class Input, class Output, class Index>
    static cudaError_t ArgMin(void* storage, std::size_t& bytes, Input in, Output out, Index* index,
                              std::ptrdiff_t count, cudaStream_t stream = nullptr) {
        return run("cub::DeviceReduce::ArgMin", storage, bytes, stream, in, out, count, [=] {
            const auto best = position(in, count, cub::ArgMin(), greatest<device::ValueOf<Input>>());
            *index = static_cast<Index>(best.key);
            *out = best.value;
        });
    }
    template <class Input, class Output, class Index>
    static cudaError_t ArgMax(void* storage, std::size_t& bytes, Input in, Output out, Index* index,
                              std::ptrdiff_t count, cudaStream_t stream = nullptr) {
        return run("cub::DeviceReduce::ArgMax", storage, bytes, stream, in, out, count, [=] {
            const auto best =
                position(in, count, cub::ArgMax(), std::numeric_limits<device::ValueOf<Input>>::lowest());
            *index = static_cast<Index>(best.key);
            *out = best.value;
        });
    }
    // For each run of equal keys: the key and the combined values.
    template <class Keys, class Unique, class Values, class Aggregates, class Count, class Operator>
    static cudaError_t ReduceByKey(void* storage, std::size_t& bytes, Keys keys, Unique unique, Values values,
                                   Aggregates aggregates, Count runs, Operator combine, std::ptrdiff_t count,
                                   cudaStream_t stream = nullptr, bool = false) {
        const std::size_t n = static_cast<std::size_t>(count);
        return device::run("cub::DeviceReduce::ReduceByKey", storage, bytes, stream,
                           {device::array("the keys", keys, n), device::array("the values", values, n),
                            device::array("the number of runs", runs, 1)},
                           [=] {
                               std::ptrdiff_t run = 0;
                               for (std::ptrdiff_t begin = 0; begin < count; ++run) {
                                   std::ptrdiff_t end = begin + 1;
                                   while (end < count && keys[end] == keys[begin])
                                       ++end;
                                   using T = device::ValueOf<Values>;
                                   const T sum =
                                       device::fold(values, begin + 1, end, combine, T(values[begin]));
                                   unique[run] = keys[begin];
                                   aggregates[run] = sum;
                                   begin = end;
                               }
                               *runs = static_cast<device::ValueOf<Count>>(run);
                           });
    }

  private:
    template <class T>
    static T greatest() {
        return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                    : std::numeric_limits<T>::max();
    }
    template <class Input, class Operator, class T>
    static KeyValuePair<int, T> position(Input in, std::ptrdiff_t count, Operator better, T otherwise) {
        KeyValuePair<int, T> best{count == 0 ? 1 : 0, count == 0 ? otherwise : T(in[0])};
        for (std::ptrdiff_t i = 1; i < count; ++i)
            best = better(best, KeyValuePair<int, T>{static_cast<int>(i), in[i]});
        return best;
    }
    template <class Input, class Output, class Work>
    static cudaError_t run(const char* function, void* storage, std::size_t& bytes, cudaStream_t stream,
                           Input in, Output out, std::ptrdiff_t count, Work work) {
        return device::run(function, storage, bytes, stream,
                           {device::array("the input", in, static_cast<std::size_t>(count)),
                            device::array("the output", out, 1)},
                           work);
    }
};

struct DeviceSegmentedReduce {
    template <class Input, class Output, class Begins, class Ends, class Operator, class T>
    static cudaError_t Reduce(void* storage, std::size_t& bytes, Input in, Output out,
                              std::ptrdiff_t segments, Begins begins, Ends ends, Operator combine, T initial,
                              cudaStream_t stream = nullptr, bool = false) {
        const std::size_t n = static_cast<std::size_t>(segments);
        return device::run("cub::DeviceSegmentedReduce", storage, bytes, stream,
                           {device::array("the output", out, n), device::array("the begins", begins, n),
                            device::array("the ends", ends, n)},
                           [=] {
                               for (std::ptrdiff_t i = 0; i < segments; ++i)
                                   out[i] = device::fold(in, begins[i], ends[i], combine, initial);
                           });
    }
    template <class Input, class Output, class Begins, class Ends>
    static cudaError_t Sum(void* storage, std::size_t& bytes, Input in, Output out, std::ptrdiff_t segments,
                           Begins begins, Ends ends, cudaStream_t stream = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Sum(), device::ValueOf<Input>{},
                      stream);
    }
    template <class Input, class Output, class Begins, class Ends>
    static cudaError_t Max(void* storage, std::size_t& bytes, Input in, Output out, std::ptrdiff_t segments,
                           Begins begins, Ends ends, cudaStream_t stream = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Max(),
                      std::numeric_limits<device::ValueOf<Input>>::lowest(), stream);
    }
    template <class Input, class Output, class Begins, class Ends>
    static cudaError_t Min(void* storage, std::size_t& bytes, Input in, Output out, std::ptrdiff_t segments,
                           Begins begins, Ends ends, cudaStream_t stream = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Min(),
                      std::numeric_limits<device::ValueOf<Input>>::max(), stream);
    }
};

// In-place scans are allowed.
struct DeviceScan {
    template <class Input, class Output, class Operator>
    static cudaError_t InclusiveScan(void* storage, std::size_t& bytes, Input in, Output out,
                                     Operator combine, std::ptrdiff_t count, cudaStream_t stream = nullptr,
                                     bool = false) {
        return run("cub::DeviceScan::InclusiveScan", storage, bytes, stream, in, out, count, [=] {
            if (count == 0) return;
            device::ValueOf<Input> sum = in[0];
            out[0] = sum;
            for (std::ptrdiff_t i = 1; i < count; ++i) {
                sum = combine(sum, in[i]);
                out[i] = sum;
            }
        });
    }
    template <class Input, class Output, class Operator, class T>
    static cudaError_t ExclusiveScan(void* storage, std::size_t& bytes, Input in, Output out,
                                     Operator combine, T initial, std::ptrdiff_t count,
                                     cudaStream_t stream = nullptr, bool = false) {
        return run("cub::DeviceScan::ExclusiveScan", storage, bytes, stream, in, out, count, [=] {
            T sum = initial;
            for (std::ptrdiff_t i = 0; i < count; ++i) {
                const T next = combine(sum, in[i]);
                out[i] = sum;
                sum = next;
            }
        });
    }
    template <class Input, class Output>
    static cudaError_t InclusiveSum(void* storage, std::size_t& bytes, Input in, Output out,
                                    std::ptrdiff_t count, cudaStream_t stream = nullptr, bool = false) {
        return InclusiveScan(storage, bytes, in, out, Sum(), count, stream);
    }
    template <class Input, class Output>
    static cudaError_t ExclusiveSum(void* storage, std::size_t& bytes, Input in, Output out,
                                    std::ptrdiff_t count, cudaStream_t stream = nullptr, bool = false) {
        return ExclusiveScan(storage, bytes, in, out, Sum(), device::ValueOf<Input>{}, count, stream);
    }
    template <class Data>
    static cudaError_t InclusiveSum(void* storage, std::size_t& bytes, Data data, std::ptrdiff_t count,
                                    cudaStream_t stream = nullptr) {
        return InclusiveSum(storage, bytes, data, data, count, stream);
    }
    template <class Data>
    static cudaError_t ExclusiveSum(void* storage, std::size_t& bytes, Data data, std::ptrdiff_t count,
                                    cudaStream_t stream = nullptr) {
        return ExclusiveSum(storage, bytes, data, data, count, stream);
    }

  private:
    template <class Input, class Output, class Work>
    static cudaError_t run(const char* function, void* storage, std::size_t& bytes, cudaStream_t stream,
                           Input in, Output out, std::ptrdiff_t count, Work work) {
        const std::size_t n = static_cast<std::size_t>(count);
        return device::run(function, storage, bytes, stream,
                           {device::array("the input", in, n), device::array("the output", out, n)}, work);
    }
};

// Stable. With double buffers the result is in the current buffer.
struct DeviceRadixSort {
#define CUDA_ON_CPU_CUB_SORT(Name, descending)                                                               \
    template <class Key>                                                                                     \
    static cudaError_t SortKeys##Name(                                                                       \
        void* storage, std::size_t& bytes, const Key* in, Key* out, std::ptrdiff_t count, int begin_bit = 0, \
        int end_bit = 8 * sizeof(Key), cudaStream_t stream = nullptr, bool = false) {                        \
        return sort<Key, NullType>(storage, bytes, in, out, nullptr, nullptr, count, begin_bit, end_bit,     \
                                   stream, descending);                                                      \
    }                                                                                                        \
    template <class Key>                                                                                     \
    static cudaError_t SortKeys##Name(                                                                       \
        void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys, std::ptrdiff_t count, int begin_bit = 0, \
        int end_bit = 8 * sizeof(Key), cudaStream_t stream = nullptr, bool = false) {                        \
        return SortKeys##Name(storage, bytes, keys.Current(), keys.Current(), count, begin_bit, end_bit,     \
                              stream);                                                                       \
    }                                                                                                        \
    template <class Key, class Value>                                                                        \
    static cudaError_t SortPairs##Name(void* storage, std::size_t& bytes, const Key* keys_in, Key* keys_out, \
                                       const Value* values_in, Value* values_out, std::ptrdiff_t count,      \
                                       int begin_bit = 0, int end_bit = 8 * sizeof(Key),                     \
                                       cudaStream_t stream = nullptr, bool = false) {                        \
        return sort(storage, bytes, keys_in, keys_out, values_in, values_out, count, begin_bit, end_bit,     \
                    stream, descending);                                                                     \
    }                                                                                                        \
    template <class Key, class Value>                                                                        \
    static cudaError_t SortPairs##Name(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,           \
                                       DoubleBuffer<Value>& values, std::ptrdiff_t count, int begin_bit = 0, \
                                       int end_bit = 8 * sizeof(Key), cudaStream_t stream = nullptr,         \
                                       bool = false) {                                                       \
        return SortPairs##Name(storage, bytes, keys.Current(), keys.Current(), values.Current(),             \
                               values.Current(), count, begin_bit, end_bit, stream);                         \
    }
    CUDA_ON_CPU_CUB_SORT(, false)
    CUDA_ON_CPU_CUB_SORT(Descending, true)
#undef CUDA_ON_CPU_CUB_SORT

  private:
    template <class Key, class Value>
    static cudaError_t sort(void* storage, std::size_t& bytes, const Key* keys_in, Key* keys_out,
                            const Value* values_in, Value* values_out, std::ptrdiff_t count, int begin_bit,
                            int end_bit, cudaStream_t stream, bool descending) {
        const std::size_t n = static_cast<std::size_t>(count);
        const std::size_t values = values_in == nullptr ? 0 : n;
        return device::run(
            "cub::DeviceRadixSort", storage, bytes, stream,
            {device::array("the keys", keys_in, n), device::array("the sorted keys", keys_out, n),
             device::array("the values", values_in, values),
             device::array("the sorted values", values_out, values)},
            [=] {
                std::vector<std::pair<std::uint64_t, std::size_t>> order;
                for (std::size_t i = 0; i < n; ++i)
                    order.emplace_back(radix_of(keys_in[i], begin_bit, end_bit), i);
                std::stable_sort(order.begin(), order.end(), [=](const auto& a, const auto& b) {
                    return descending ? b.first < a.first : a.first < b.first;
                });
                const std::vector<Key> keys(keys_in, keys_in + n);
                for (std::size_t i = 0; i < n; ++i)
                    keys_out[i] = keys[order[i].second];
                if (values == 0) return;
                const std::vector<Value> old(values_in, values_in + n);
                for (std::size_t i = 0; i < n; ++i)
                    values_out[i] = old[order[i].second];
            });
    }
};

// Stable sorts by comparison.
struct DeviceMergeSort {
    template <class Keys, class Compare>
    static cudaError_t SortKeys(void* storage, std::size_t& bytes, Keys keys, std::ptrdiff_t count,
                                Compare less, cudaStream_t stream = nullptr, bool = false) {
        return device::run("cub::DeviceMergeSort::SortKeys", storage, bytes, stream,
                           {device::array("the keys", keys, static_cast<std::size_t>(count))},
                           [=] { std::stable_sort(keys, keys + count, less); });
    }
    template <class Keys, class Compare>
    static cudaError_t StableSortKeys(void* storage, std::size_t& bytes, Keys keys, std::ptrdiff_t count,
                                      Compare less, cudaStream_t stream = nullptr, bool = false) {
        return SortKeys(storage, bytes, keys, count, less, stream);
    }
    template <class Keys, class Values, class Compare>
    static cudaError_t SortPairs(void* storage, std::size_t& bytes, Keys keys, Values values,
                                 std::ptrdiff_t count, Compare less, cudaStream_t stream = nullptr,
                                 bool = false) {
        const std::size_t n = static_cast<std::size_t>(count);
        return device::run("cub::DeviceMergeSort::SortPairs", storage, bytes, stream,
                           {device::array("the keys", keys, n), device::array("the values", values, n)}, [=] {
                               using Pair = std::pair<device::ValueOf<Keys>, device::ValueOf<Values>>;
                               std::vector<Pair> all;
                               for (std::size_t i = 0; i < n; ++i)
                                   all.emplace_back(keys[i], values[i]);
                               std::stable_sort(all.begin(), all.end(), [=](const Pair& a, const Pair& b) {
                                   return less(a.first, b.first);
                               });
                               for (std::size_t i = 0; i < n; ++i) {
                                   keys[i] = all[i].first;
                                   values[i] = all[i].second;
                               }
                           });
    }
};

// Selected items keep their order.
struct DeviceSelect {
    template <class Input, class Output, class Count, class Predicate>
    static cudaError_t If(void* storage, std::size_t& bytes, Input in, Output out, Count selected,
                          std::ptrdiff_t count, Predicate predicate, cudaStream_t stream = nullptr,
                          bool = false) {
        return run("cub::DeviceSelect::If", storage, bytes, stream, in, selected, count, [=] {
            select(in, out, selected, count, [&](std::ptrdiff_t i) { return predicate(in[i]); });
        });
    }
    template <class Input, class Flags, class Output, class Count>
    static cudaError_t Flagged(void* storage, std::size_t& bytes, Input in, Flags flags, Output out,
                               Count selected, std::ptrdiff_t count, cudaStream_t stream = nullptr,
                               bool = false) {
        return run("cub::DeviceSelect::Flagged", storage, bytes, stream, in, selected, count, [=] {
            select(in, out, selected, count, [&](std::ptrdiff_t i) { return bool(flags[i]); });
        });
    }
    // The first of each run of equal elements.
    template <class Input, class Output, class Count>
    static cudaError_t Unique(void* storage, std::size_t& bytes, Input in, Output out, Count selected,
                              std::ptrdiff_t count, cudaStream_t stream = nullptr, bool = false) {
        return run("cub::DeviceSelect::Unique", storage, bytes, stream, in, selected, count, [=] {
            select(in, out, selected, count,
                   [&](std::ptrdiff_t i) { return i == 0 || !(in[i] == in[i - 1]); });
        });
    }

  private:
    template <class Input, class Output, class Count, class Chosen>
    static void select(Input in, Output out, Count selected, std::ptrdiff_t count, Chosen chosen) {
        std::ptrdiff_t next = 0;
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            if (chosen(i)) out[next++] = in[i];
        }
        *selected = static_cast<device::ValueOf<Count>>(next);
    }
    template <class Input, class Count, class Work>
    static cudaError_t run(const char* function, void* storage, std::size_t& bytes, cudaStream_t stream,
                           Input in, Count selected, std::ptrdiff_t count, Work work) {
        return device::run(function, storage, bytes, stream,
                           {device::array("the input", in, static_cast<std::size_t>(count)),
                            device::array("the number of selected elements", selected, 1)},
                           work);
    }
};

// The selected elements come first, the others behind them, in reverse order.
struct DevicePartition {
    template <class Input, class Output, class Count, class Predicate>
    static cudaError_t If(void* storage, std::size_t& bytes, Input in, Output out, Count selected,
                          std::ptrdiff_t count, Predicate predicate, cudaStream_t stream = nullptr,
                          bool = false) {
        return split("cub::DevicePartition::If", storage, bytes, stream, in, out, selected, count,
                     [=](std::ptrdiff_t i) { return bool(predicate(in[i])); });
    }
    template <class Input, class Flags, class Output, class Count>
    static cudaError_t Flagged(void* storage, std::size_t& bytes, Input in, Flags flags, Output out,
                               Count selected, std::ptrdiff_t count, cudaStream_t stream = nullptr,
                               bool = false) {
        return split("cub::DevicePartition::Flagged", storage, bytes, stream, in, out, selected, count,
                     [=](std::ptrdiff_t i) { return bool(flags[i]); });
    }

  private:
    template <class Input, class Output, class Count, class Chosen>
    static cudaError_t split(const char* function, void* storage, std::size_t& bytes, cudaStream_t stream,
                             Input in, Output out, Count selected, std::ptrdiff_t count, Chosen chosen) {
        const std::size_t n = static_cast<std::size_t>(count);
        return device::run(function, storage, bytes, stream,
                           {device::array("the input", in, n), device::array("the output", out, n),
                            device::array("the number of selected elements", selected, 1)},
                           [=] {
                               std::ptrdiff_t front = 0, back = count;
                               for (std::ptrdiff_t i = 0; i < count; ++i)
                                   out[chosen(i) ? front++ : --back] = in[i];
                               *selected = static_cast<device::ValueOf<Count>>(front);
                           });
    }
};

struct DeviceRunLengthEncode {
    template <class Input, class Unique, class Lengths, class Count>
    static cudaError_t Encode(void* storage, std::size_t& bytes, Input in, Unique unique, Lengths lengths,
                              Count runs, std::ptrdiff_t count, cudaStream_t stream = nullptr, bool = false) {
        return DeviceReduce::ReduceByKey(storage, bytes, in, unique, ConstantInputIterator<int>(1), lengths,
                                         runs, Sum(), count, stream);
    }
};

struct DeviceHistogram {
    // `levels` boundaries at equal distances from lower to upper make levels - 1 bins. Other
    // samples are ignored.
    template <class Samples, class Counter, class Level>
    static cudaError_t HistogramEven(void* storage, std::size_t& bytes, Samples samples, Counter* histogram,
                                     int levels, Level lower, Level upper, std::ptrdiff_t count,
                                     cudaStream_t stream = nullptr, bool = false) {
        return run(storage, bytes, stream, samples, histogram, levels, count, [=](auto sample) {
            if (sample < lower || !(sample < upper)) return -1;
            if constexpr (std::is_integral_v<Level>) {
                const auto offset = static_cast<std::uint64_t>(sample - lower);
                return static_cast<int>(offset * static_cast<std::uint64_t>(levels - 1) /
                                        static_cast<std::uint64_t>(upper - lower));
            } else {
                return static_cast<int>((sample - lower) * ((levels - 1) / (upper - lower)));
            }
        });
    }
    // Bin i is [boundaries[i], boundaries[i + 1]).
    template <class Samples, class Counter, class Level>
    static cudaError_t HistogramRange(void* storage, std::size_t& bytes, Samples samples, Counter* histogram,
                                      int levels, const Level* boundaries, std::ptrdiff_t count,
                                      cudaStream_t stream = nullptr, bool = false) {
        return run(storage, bytes, stream, samples, histogram, levels, count, [=](auto sample) {
            const auto bin = std::upper_bound(boundaries, boundaries + levels, sample) - boundaries - 1;
            return bin < levels - 1 ? static_cast<int>(bin) : -1;
        });
    }

  private:
    template <class Samples, class Counter, class Bin>
    static cudaError_t run(void* storage, std::size_t& bytes, cudaStream_t stream, Samples samples,
                           Counter* histogram, int levels, std::ptrdiff_t count, Bin bin_of) {
        return device::run("cub::DeviceHistogram", storage, bytes, stream,
                           {device::array("the samples", samples, static_cast<std::size_t>(count)),
                            device::array("the histogram", histogram, static_cast<std::size_t>(levels - 1))},
                           [=] {
                               std::fill_n(histogram, levels - 1, Counter{});
                               for (std::ptrdiff_t i = 0; i < count; ++i) {
                                   if (const int bin = bin_of(samples[i]); bin >= 0) ++histogram[bin];
                               }
                           });
    }
};

// Allocates with cudaMalloc and caches nothing.
struct CachingDeviceAllocator {
    explicit CachingDeviceAllocator(bool = false, bool = false) {}
    CachingDeviceAllocator(unsigned, unsigned, unsigned, std::size_t, bool = false, bool = false) {}
    cudaError_t DeviceAllocate(void** pointer, std::size_t bytes, cudaStream_t = nullptr) {
        return cudaMalloc(pointer, bytes);
    }
    cudaError_t DeviceFree(void* pointer) { return cudaFree(pointer); }
    cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub

#include "cuda_on_cpu/macros_back.h"
