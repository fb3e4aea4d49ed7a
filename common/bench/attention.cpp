// Views, argument checks, and the minimum work of a problem.
#include "common/bench/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "common/check/require.hpp"

namespace course::attention {
namespace {

// The number of elements from the first to the last; returns false if it overflows std::size_t.
bool reach(const Extents& extents, const Strides& strides, std::size_t& elements) {
    elements = extents.dim;
    const std::array<std::array<std::size_t, 2>, 3> steps = {
        {{extents.batch, strides.batch}, {extents.heads, strides.head}, {extents.length, strides.row}}};
    for (const auto [count, stride] : steps) {
        std::size_t way = 0;
        if (__builtin_mul_overflow(count - 1, stride, &way) ||
            __builtin_add_overflow(elements, way, &elements))
            return false;
    }
    return true;
}

[[noreturn]] void refuse(const std::string& reason) {
    throw std::invalid_argument("fused attention: " + reason);
}

}  // namespace

std::string text(const Extents& e) {
    return shape_text(e.batch, e.heads, e.length, e.dim);
}

bool same(const Extents& a, const Extents& b) {
    return a.batch == b.batch && a.heads == b.heads && a.length == b.length && a.dim == b.dim;
}

bool empty(const Extents& e) {
    return e.batch == 0 || e.heads == 0 || e.length == 0 || e.dim == 0;
}

// In ascending order, each stride must be at least the extent that the smaller ones span.
bool elements_are_distinct(const Extents& extents, const Strides& strides) {
    std::array<std::array<std::size_t, 2>, 3> steps = {
        {{strides.batch, extents.batch}, {strides.head, extents.heads}, {strides.row, extents.length}}};
    std::sort(steps.begin(), steps.end());
    std::size_t reached = extents.dim;
    for (const auto [stride, count] : steps) {
        if (count == 1) continue;
        if (stride < reached) return false;
        reached += stride * (count - 1);
    }
    return true;
}

template <class T>
DeviceSpan<T> memory_of(const HeadsView<T>& view) {
    std::size_t elements = 0;
    if (!empty(view.extents())) static_cast<void>(reach(view.extents(), view.strides(), elements));
    return DeviceSpan<T>::from_device_pointer(view.data(), elements);
}

Strides packed(const Extents& extents) {
    return {extents.heads * extents.length * extents.dim, extents.length * extents.dim, extents.dim};
}

template <class T>
HeadsView<T>::HeadsView(DeviceSpan<T> span, const Extents& extents, const Strides& strides)
    : data_(span.data()), extents_(extents), strides_(strides) {
    std::size_t elements = 0;
    if (!empty(extents) && (!reach(extents, strides, elements) || elements > span.size())) {
        throw std::invalid_argument(
            fmt::format("HeadsView: {} with strides {}, {}, {} does not fit in a span of {} elements",
                        text(extents), strides.batch, strides.head, strides.row, span.size()));
    }
}

#define COURSE_ATTENTION_MEMORY_OF(T)                      \
    template DeviceSpan<T> memory_of(const HeadsView<T>&); \
    template DeviceSpan<const T> memory_of(const HeadsView<const T>&);
COURSE_ATTENTION_MEMORY_OF(float)
COURSE_ATTENTION_MEMORY_OF(__half)
COURSE_ATTENTION_MEMORY_OF(__nv_bfloat16)
#undef COURSE_ATTENTION_MEMORY_OF

template class HeadsView<float>;
template class HeadsView<const float>;
template class HeadsView<__half>;
template class HeadsView<const __half>;
template class HeadsView<__nv_bfloat16>;
template class HeadsView<const __nv_bfloat16>;
template class HeadsView<__nv_fp8_e4m3>;
template class HeadsView<const __nv_fp8_e4m3>;

std::string name(const Shape& shape) {
    const auto pair = [](std::size_t a, std::size_t b) {
        return a == b ? std::to_string(a) : fmt::format("{}:{}", a, b);
    };
    return fmt::format("{}x{}x{}x{}{}", shape.batch, pair(shape.heads, shape.heads_kv),
                       pair(shape.length_q, shape.length_k), shape.dim, shape.causal ? " causal" : "");
}

template <class T>
bool check_arguments(const Attention<T>& attention) {
    const Extents q = attention.q.extents();
    const Extents k = attention.k.extents();
    if (!same(k, attention.v.extents()))
        refuse(fmt::format("k is {} and v {}; expected the same", text(k), text(attention.v.extents())));
    if (!same(q, attention.out.extents()))
        refuse(fmt::format("q is {} and out {}; expected the same", text(q), text(attention.out.extents())));
    if (q.batch != k.batch || q.dim != k.dim)
        refuse(fmt::format("q is {} and k {}; expected the same batch and dim", text(q), text(k)));
    if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0)
        refuse(fmt::format("q has {} heads and k {}; expected a multiple of k's", q.heads, k.heads));
    if (q.dim > kMaxDim) refuse(fmt::format("dim is {}; expected at most {}", q.dim, kMaxDim));
    constexpr std::size_t kMost = (std::size_t{1} << 30) - 1;
    if (q.length > kMost || k.length > kMost)
        refuse(fmt::format("lengths are {} and {}; expected at most {}", q.length, k.length, kMost));
    if (!std::isfinite(attention.scale) || attention.scale <= 0)
        refuse(fmt::format("scale is {}; expected a finite number above 0", attention.scale));
    if (empty(q)) return false;
    if (!elements_are_distinct(q, attention.out.strides()))
        refuse("elements of out coincide; expected strides under which each has a place of its own");
    const auto out = memory_of(attention.out);
    if (overlap(out, memory_of(attention.q)) || overlap(out, memory_of(attention.k)) ||
        overlap(out, memory_of(attention.v)))
        refuse("out overlaps an input; expected memory of its own");
    return true;
}

template bool check_arguments(const Attention<float>&);
template bool check_arguments(const Attention<__half>&);
template bool check_arguments(const Attention<__nv_bfloat16>&);

template <class T>
Work work(const Shape& shape) {
    double pairs = 0;
    for (std::size_t row = 0; row < shape.length_q; ++row)
        pairs += static_cast<double>(visible_keys(row, shape.length_q, shape.length_k, shape.causal));
    const auto elements = [](const Extents& e) {
        return static_cast<double>(e.batch) * static_cast<double>(e.heads) * static_cast<double>(e.length) *
               static_cast<double>(e.dim);
    };
    const double heads = static_cast<double>(shape.batch * shape.heads);
    return {.bytes = 2 * sizeof(T) * (elements(shape.q()) + elements(shape.kv())),
            .written = sizeof(T) * elements(shape.q()),
            .flops = 4 * heads * pairs * static_cast<double>(shape.dim),
            .arithmetic = Arithmetic::kOther};
}

template Work work<float>(const Shape&);
template Work work<__half>(const Shape&);
template Work work<__nv_bfloat16>(const Shape&);

}  // namespace course::attention
