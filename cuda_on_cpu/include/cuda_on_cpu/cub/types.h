// Parts that the primitives of CUB share: operators, pairs, iterators, buffers, and the order of
// keys.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

#define CUB_RUNTIME_FUNCTION
#define CUB_PTX_WARP_THREADS 32
#define CUB_MIN(a, b) (((a) > (b)) ? (b) : (a))
#define CUB_MAX(a, b) (((a) > (b)) ? (a) : (b))
#define CubDebug(error) (error)
#define CubDebugExit(error)                                                                     \
    do {                                                                                        \
        if (const cudaError_t cub_error = (error); cub_error != cudaSuccess) {                  \
            std::fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", cub_error, __FILE__, __LINE__, \
                         cudaGetErrorString(cub_error));                                        \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

namespace cub {

struct NullType {};
template <int Value>
struct Int2Type {
    static constexpr int VALUE = Value;
};

template <class Key, class Value>
struct KeyValuePair {
    using Key_ = Key;
    Key key;
    Value value;
    bool operator!=(const KeyValuePair& other) const { return key != other.key || value != other.value; }
};

// --- Operators ---------------------------------------------------------------------------------------------------------

struct Sum {
    template <class T, class U>
    __host__ __device__ auto operator()(const T& a, const U& b) const {
        return static_cast<std::common_type_t<T, U>>(a + b);
    }
};
struct Difference {
    template <class T>
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return a - b;
    }
};
struct Max {
    template <class T>
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return a < b ? b : a;
    }
};
struct Min {
    template <class T>
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return b < a ? b : a;
    }
};
// For pairs of a position and a value; among equal values the first position is chosen.
struct ArgMax {
    template <class Key, class T>
    __host__ __device__ KeyValuePair<Key, T> operator()(const KeyValuePair<Key, T>& a,
                                                        const KeyValuePair<Key, T>& b) const {
        return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <class Key, class T>
    __host__ __device__ KeyValuePair<Key, T> operator()(const KeyValuePair<Key, T>& a,
                                                        const KeyValuePair<Key, T>& b) const {
        return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};
struct Equality {
    template <class T, class U>
    __host__ __device__ bool operator()(const T& a, const U& b) const {
        return a == b;
    }
};
struct Inequality {
    template <class T, class U>
    __host__ __device__ bool operator()(const T& a, const U& b) const {
        return a != b;
    }
};

// --- Iterators -----------------------------------------------------------------------------------------------------------

// Implements a random access iterator on top of `Derived`, which dereferences a position.
template <class Derived, class T>
class PositionIterator {
  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = T;
    using pointer = void;

    explicit PositionIterator(difference_type position = 0) : position_(position) {}
    T operator*() const { return derived().at(position_); }
    T operator[](difference_type n) const { return derived().at(position_ + n); }
    Derived& operator++() { return *this += 1; }
    Derived operator++(int) {
        Derived before = derived();
        *this += 1;
        return before;
    }
    Derived& operator+=(difference_type n) {
        position_ += n;
        return static_cast<Derived&>(*this);
    }
    friend Derived operator+(Derived it, difference_type n) {
        it += n;
        return it;
    }
    friend Derived operator-(Derived it, difference_type n) {
        it += -n;
        return it;
    }
    friend difference_type operator-(const Derived& a, const Derived& b) { return a.position_ - b.position_; }
    friend bool operator==(const Derived& a, const Derived& b) { return a.position_ == b.position_; }
    friend bool operator!=(const Derived& a, const Derived& b) { return a.position_ != b.position_; }

  private:
    const Derived& derived() const { return static_cast<const Derived&>(*this); }
    difference_type position_;
};

template <class T, class Offset = std::ptrdiff_t>
class CountingInputIterator : public PositionIterator<CountingInputIterator<T, Offset>, T> {
  public:
    explicit CountingInputIterator(T first) : first_(first) {}
    T at(std::ptrdiff_t n) const { return static_cast<T>(first_ + n); }

  private:
    T first_;
};

template <class T, class Offset = std::ptrdiff_t>
class ConstantInputIterator : public PositionIterator<ConstantInputIterator<T, Offset>, T> {
  public:
    explicit ConstantInputIterator(T value) : value_(value) {}
    T at(std::ptrdiff_t) const { return value_; }

  private:
    T value_;
};

template <class T, class Function, class Input, class Offset = std::ptrdiff_t>
class TransformInputIterator
    : public PositionIterator<TransformInputIterator<T, Function, Input, Offset>, T> {
  public:
    TransformInputIterator(Input input, Function function) : input_(input), function_(function) {}
    T at(std::ptrdiff_t n) const { return function_(input_[n]); }

  private:
    Input input_;
    Function function_;
};

template <class Input, class Offset = std::ptrdiff_t,
          class T = typename std::iterator_traits<Input>::value_type>
class ArgIndexInputIterator
    : public PositionIterator<ArgIndexInputIterator<Input, Offset, T>, KeyValuePair<Offset, T>> {
  public:
    explicit ArgIndexInputIterator(Input input) : input_(input) {}
    KeyValuePair<Offset, T> at(std::ptrdiff_t n) const { return {static_cast<Offset>(n), input_[n]}; }

  private:
    Input input_;
};

// Cache modifiers have no effect here.
enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };
template <CacheLoadModifier, class T, class Offset = std::ptrdiff_t>
using CacheModifiedInputIterator = const T*;
template <CacheLoadModifier, class Iterator>
__device__ auto ThreadLoad(Iterator it) {
    return *it;
}
template <CacheStoreModifier, class Iterator, class T>
__device__ void ThreadStore(Iterator it, T value) {
    *it = value;
}

// --- Buffers of which one is current ---------------------------------------------------------------------------------------

template <class T>
struct DoubleBuffer {
    T* d_buffers[2] = {};
    int selector = 0;
    DoubleBuffer() = default;
    DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
    T* Current() { return d_buffers[selector]; }
    T* Alternate() { return d_buffers[selector ^ 1]; }
};

// --- Keys of a radix sort ----------------------------------------------------------------------------------------------------

template <std::size_t Size>
using UnsignedOfSize =
    std::conditional_t<Size == 1, std::uint8_t,
                       std::conditional_t<Size == 2, std::uint16_t,
                                          std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;

// A key's bits [begin, end) as a number with the same order as the keys. A floating-point -0 is
// treated as +0.
template <class Key>
std::uint64_t radix_of(const Key& key, int begin, int end) {
    using Bits = UnsignedOfSize<sizeof(Key)>;
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Key) - 1));
    constexpr bool kFloating =
        std::is_floating_point_v<Key> || std::is_same_v<Key, __half> || std::is_same_v<Key, __nv_bfloat16>;
    Bits bits;
    std::memcpy(&bits, &key, sizeof bits);
    if constexpr (kFloating) {
        if (bits == kSign) bits = 0;
        bits = static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
    } else if constexpr (std::is_signed_v<Key>) {
        bits ^= kSign;
    }
    const std::uint64_t shifted = static_cast<std::uint64_t>(bits) >> begin;
    const int width = end - begin;
    return width >= 64 ? shifted : shifted & ((std::uint64_t{1} << width) - 1);
}

// --- What a type is ------------------------------------------------------------------------------------------------------------

enum Category { NOT_A_NUMBER, SIGNED_INTEGER, UNSIGNED_INTEGER, FLOATING_POINT };

// UnsignedBits has the type's size; TwiddleIn gives numbers in whose order the values are,
// TwiddleOut the values again.
template <Category kCategory, bool kPrimitive, bool kNull, class Bits, class T>
struct BaseTraits {
    using UnsignedBits = Bits;
    static constexpr Category CATEGORY = kCategory;
    static constexpr bool PRIMITIVE = kPrimitive;
    static constexpr bool NULL_TYPE = kNull;
};
template <Category kCategory, class Bits, class T>
struct NumberTraits : BaseTraits<kCategory, true, false, Bits, T> {
    static constexpr Bits HIGH_BIT = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    static constexpr Bits LOWEST_KEY = kCategory == UNSIGNED_INTEGER ? Bits{0}
                                       : kCategory == SIGNED_INTEGER ? HIGH_BIT
                                                                     : static_cast<Bits>(-1);
    static constexpr Bits MAX_KEY = kCategory == UNSIGNED_INTEGER
                                        ? static_cast<Bits>(-1)
                                        : static_cast<Bits>(static_cast<Bits>(-1) ^ HIGH_BIT);
    __host__ __device__ static Bits TwiddleIn(Bits key) {
        if constexpr (kCategory == UNSIGNED_INTEGER) return key;
        if constexpr (kCategory == SIGNED_INTEGER) return static_cast<Bits>(key ^ HIGH_BIT);
        return static_cast<Bits>(key ^ ((key & HIGH_BIT) != 0 ? static_cast<Bits>(-1) : HIGH_BIT));
    }
    __host__ __device__ static Bits TwiddleOut(Bits key) {
        if constexpr (kCategory == UNSIGNED_INTEGER) return key;
        if constexpr (kCategory == SIGNED_INTEGER) return static_cast<Bits>(key ^ HIGH_BIT);
        return static_cast<Bits>(key ^ ((key & HIGH_BIT) != 0 ? HIGH_BIT : static_cast<Bits>(-1)));
    }
    // Of a half and a bfloat16 the largest finite numbers.
    __host__ __device__ static T Max() { return limit(false); }
    __host__ __device__ static T Lowest() { return limit(true); }

  private:
    __host__ __device__ static T limit(bool lowest) {
        if constexpr (std::is_arithmetic_v<T>) {
            return lowest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
        } else {
            constexpr std::uint16_t kLargest = std::is_same_v<T, __half> ? 0x7bff : 0x7f7f;
            const auto bits = static_cast<std::uint16_t>(kLargest | (lowest ? 0x8000 : 0));
            T value;
            std::memcpy(&value, &bits, sizeof value);
            return value;
        }
    }
};

template <class T>
constexpr Category kCategoryOf =
    std::is_floating_point_v<T> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>
        ? FLOATING_POINT
    : !std::is_integral_v<T> ? NOT_A_NUMBER
    : std::is_signed_v<T>    ? SIGNED_INTEGER
                             : UNSIGNED_INTEGER;

template <class T, bool kNumber = kCategoryOf<T> != NOT_A_NUMBER>
struct NumericTraits : BaseTraits<NOT_A_NUMBER, false, std::is_same_v<T, NullType>, T, T> {};
template <class T>
struct NumericTraits<T, true> : NumberTraits<kCategoryOf<T>, UnsignedOfSize<sizeof(T)>, T> {};
template <class T>
struct Traits : NumericTraits<std::remove_cv_t<T>> {};

}  // namespace cub

#include "cuda_on_cpu/macros_back.h"
