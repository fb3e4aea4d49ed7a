// The checks of arguments that all launchers begin with, and the least work of a problem.
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "attention_backward.hpp"

namespace day34 {
namespace {

using course::attention::memory_of;

[[noreturn]] void refuse(const std::string& reason) {
    throw std::invalid_argument("attention backward: " + reason);
}

template <class View>
void require_same(const char* name, const View& view, const char* other, const Extents& expected) {
    if (!course::attention::same(view.extents(), expected))
        refuse(fmt::format("{} is {} and {} {}; expected the same", name, text(view.extents()), other,
                           text(expected)));
}

}  // namespace

template <class T>
bool check_arguments(const Gradient<T>& g) {
    const Extents q = g.q.extents();
    const Extents k = g.k.extents();
    require_same("out", g.out, "q", q);
    require_same("d_out", g.d_out, "q", q);
    require_same("dq", g.dq, "q", q);
    require_same("v", g.v, "k", k);
    require_same("dk", g.dk, "k", k);
    require_same("dv", g.dv, "k", k);
    if (q.batch != k.batch || q.heads != k.heads || q.dim != k.dim)
        refuse(fmt::format("q is {} and k {}; expected the same batch, heads and dim", text(q), text(k)));
    if (g.lse.size() != q.batch * q.heads * q.length)
        refuse(fmt::format("lse has {} elements; expected {}, one for each row of q", g.lse.size(),
                           q.batch * q.heads * q.length));
    if (q.dim > course::attention::kMaxDim)
        refuse(fmt::format("dim is {}; expected at most {}", q.dim, course::attention::kMaxDim));
    constexpr std::size_t kMost = (std::size_t{1} << 30) - 1;
    if (q.length > kMost || k.length > kMost)
        refuse(fmt::format("lengths are {} and {}; expected at most {}", q.length, k.length, kMost));
    if (!std::isfinite(g.scale) || g.scale <= 0)
        refuse(fmt::format("scale is {}; expected a finite number above 0", g.scale));

    const auto check_output = [&](const char* name, const HeadsView<T>& view, const auto&... others) {
        if (!empty(view.extents()) && !elements_are_distinct(view.extents(), view.strides()))
            refuse(
                fmt::format("elements of {} coincide; expected strides under which each has a place of "
                            "its own",
                            name));
        const auto memory = memory_of(view);
        if (overlap(memory, g.lse) || (overlap(memory, memory_of(others)) || ...))
            refuse(fmt::format("{} overlaps another argument; expected memory of its own", name));
    };
    check_output("dq", g.dq, g.q, g.k, g.v, g.out, g.d_out, g.dk, g.dv);
    check_output("dk", g.dk, g.q, g.k, g.v, g.out, g.d_out, g.dv);
    check_output("dv", g.dv, g.q, g.k, g.v, g.out, g.d_out);
    return !empty(q) || !empty(k);
}
template bool check_arguments(const Gradient<float>&);
template bool check_arguments(const Gradient<__half>&);
template bool check_arguments(const Gradient<__nv_bfloat16>&);

template <class T>
course::Work work(const Shape& shape) {
    const auto elements = [](const Extents& e) {
        return static_cast<double>(e.batch) * static_cast<double>(e.heads) * static_cast<double>(e.length) *
               static_cast<double>(e.dim);
    };
    const double q = elements(shape.q());
    const double kv = elements(shape.kv());
    // The forward pass has two products of the same scores.
    return {.bytes = sizeof(T) * (4 * q + 4 * kv),
            .written = sizeof(T) * (q + 2 * kv),
            .flops = 2.5 * course::attention::work<T>(shape).flops,
            .arithmetic = course::Arithmetic::kOther};
}
template course::Work work<float>(const Shape&);
template course::Work work<__half>(const Shape&);
template course::Work work<__nv_bfloat16>(const Shape&);

}  // namespace day34
