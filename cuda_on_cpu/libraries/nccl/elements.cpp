#include "elements.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace cuda_on_cpu::nccl {
namespace {

// The type in which values are summed. Signed integers wrap, as on a GPU.
template <class T>
struct SumOf {
    using type = float;
};
template <>
struct SumOf<double> {
    using type = double;
};
template <class T>
requires std::is_integral_v<T>
struct SumOf<T> {
    using type = T;
};

template <class T>
T wrapped(T a, T b, bool product) {
    if constexpr (std::is_integral_v<T>) {
        const auto x = static_cast<std::uint64_t>(a);
        const auto y = static_cast<std::uint64_t>(b);
        return static_cast<T>(product ? x * y : x + y);
    } else {
        return product ? a * b : a + b;
    }
}

template <class T>
T combine(T a, T b, ncclRedOp_t op) {
    switch (op) {
        case ncclProd:
            return wrapped(a, b, true);
        case ncclMax:
            return a < b ? b : a;
        case ncclMin:
            return b < a ? b : a;
        default:
            return wrapped(a, b, false);
    }
}

template <class T>
void reduce_as(void* to, const std::vector<const void*>& from, std::size_t count, ncclRedOp_t op) {
    using Sum = typename SumOf<T>::type;
    for (std::size_t i = 0; i < count; ++i) {
        auto sum = static_cast<Sum>(static_cast<const T*>(from[0])[i]);
        for (std::size_t rank = 1; rank < from.size(); ++rank)
            sum = combine(sum, static_cast<Sum>(static_cast<const T*>(from[rank])[i]), op);
        if (op == ncclAvg) sum = static_cast<Sum>(sum / static_cast<Sum>(from.size()));
        static_cast<T*>(to)[i] = static_cast<T>(sum);
    }
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
        case ncclFloat8e4m3:
        case ncclFloat8e5m2:
            return 1;
        case ncclFloat16:
        case ncclBfloat16:
            return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32:
            return 4;
        default:
            return 8;
    }
}

const char* name_of(ncclDataType_t type) {
    static constexpr const char* kNames[] = {
        "ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
        "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
    return type >= 0 && type < ncclNumTypes ? kNames[type] : "no type";
}

const char* name_of(ncclRedOp_t op) {
    static constexpr const char* kNames[] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin", "ncclAvg"};
    return op >= 0 && op < ncclNumOps ? kNames[op] : "no reduction";
}

void reduce(void* to, const std::vector<const void*>& from, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op) {
    switch (type) {
        case ncclInt8:
            return reduce_as<std::int8_t>(to, from, count, op);
        case ncclUint8:
            return reduce_as<std::uint8_t>(to, from, count, op);
        case ncclInt32:
            return reduce_as<std::int32_t>(to, from, count, op);
        case ncclUint32:
            return reduce_as<std::uint32_t>(to, from, count, op);
        case ncclInt64:
            return reduce_as<std::int64_t>(to, from, count, op);
        case ncclUint64:
            return reduce_as<std::uint64_t>(to, from, count, op);
        case ncclFloat16:
            return reduce_as<__half>(to, from, count, op);
        case ncclFloat32:
            return reduce_as<float>(to, from, count, op);
        case ncclFloat64:
            return reduce_as<double>(to, from, count, op);
        case ncclBfloat16:
            return reduce_as<__nv_bfloat16>(to, from, count, op);
        case ncclFloat8e4m3:
            return reduce_as<__nv_fp8_e4m3>(to, from, count, op);
        case ncclFloat8e5m2:
            return reduce_as<__nv_fp8_e5m2>(to, from, count, op);
        default:
            return;
    }
}

}  // namespace cuda_on_cpu::nccl
