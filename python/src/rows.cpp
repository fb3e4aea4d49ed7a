// Functions of rows and arrays: softmax (day 21), prefix sums (day 16), sort (day 19).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "arguments.hpp"
#include "beyond/radix_sort.hpp"
#include "call.hpp"
#include "modules.hpp"
#include "scan.hpp"
#include "softmax_rows.hpp"

namespace course_python {
namespace {

namespace nb = nanobind;
using nb::handle;

// --- Softmax -------------------------------------------------------------------------------------

day21::Output output_of(const std::string& kind) {
    static constexpr std::array<std::pair<const char*, day21::Output>, 2> kKinds = {
        {{"softmax", day21::Output::kSoftmax}, {"log_softmax", day21::Output::kLogSoftmax}}};
    return choose("kind", kind, kKinds);
}

std::size_t softmax_workspace(std::size_t rows, std::size_t cols) {
    return day21::workspace_size(rows, cols) * sizeof(day21::MaxSum);
}

void softmax(const std::string& kind, handle x, handle out, handle workspace, std::uintptr_t stream) {
    const day21::Output output = output_of(kind);
    Call call(kind.c_str(), stream);
    const Tensor& from = call.input("x", x);
    const Tensor& to = call.output("out", out);
    to.require_shape(from.shape());
    const auto in = from.rows<const float>();
    const auto result = to.rows<float>();
    const auto scratch =
        call.scratch_of<day21::MaxSum>(workspace, day21::workspace_size(in.rows(), in.cols()));
    call.run(
        [&](cudaStream_t on) {
            course::find_version(day21::versions(), "auto").launcher(output, in, result, scratch, on);
        },
        [&] {
            std::vector<double> values(in.rows() * in.cols());
            day21::softmax_on_cpu({in.rows(), in.cols(), output}, packed_rows(in), values);
            write_rows(std::span<const double>(values), result);
        });
}

// --- Prefix sums ---------------------------------------------------------------------------------

template <class T>
void scan_of(Call& call, const Tensor& from, const Tensor& to, bool exclusive) {
    static Workspaces<day16::Workspace> workspaces;
    const std::size_t size = from.shape().front();
    const auto in = from.vector<const T>(size);
    const auto result = to.vector<T>(size);
    call.run(
        [&](cudaStream_t on) {
            workspaces.with(
                on, 0, [&](const day16::Workspace& kept) { return kept.capacity() >= size; },
                [&] { return std::make_unique<day16::Workspace>(size + size / 4); },
                [&](day16::Workspace& workspace) {
                    (exclusive ? day16::exclusive_scan<T> : day16::inclusive_scan<T>)(in, result, workspace,
                                                                                      on);
                });
        },
        [&] {
            // In double, or wrapping.
            using Sum = std::conditional_t<std::is_same_v<T, float>, double, std::uint32_t>;
            Sum sum = 0;
            for (std::size_t i = 0; i < size; ++i) {
                const Sum before = sum;
                sum += static_cast<Sum>(in.data()[i]);
                result.data()[i] = static_cast<T>(exclusive ? before : sum);
            }
        });
}

void scan(handle x, handle out, bool exclusive, std::uintptr_t stream) {
    Call call("scan", stream);
    const Tensor& from = call.input("x", x);
    const Tensor& to = call.output("out", out);
    if (from.shape().size() != 1) from.refuse("of shape " + from.shape_text(), "one dimension");
    if (from.type() == type_name<float>()) return scan_of<float>(call, from, to, exclusive);
    if (from.type() == type_name<std::int32_t>()) return scan_of<std::int32_t>(call, from, to, exclusive);
    if (from.type() == type_name<std::uint32_t>()) return scan_of<std::uint32_t>(call, from, to, exclusive);
    from.refuse_type("float32, int32 or uint32");
}

// --- Sort ----------------------------------------------------------------------------------------

constexpr std::size_t kMostKeys = std::size_t{1} << 31;  // so that the number of a key fits in int32

// Behind the others NaN, whatever its sign; -0 before 0: the order of day 19.
template <class T>
bool is_before(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
        if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
    }
    return a < b;
}

template <class T>
void sort_on_cpu(std::span<const T> keys, const std::uint32_t* values, std::span<T> out,
                 std::uint32_t* values_out, bool descending) {
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return descending ? is_before(keys[b], keys[a]) : is_before(keys[a], keys[b]);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
        out[i] = keys[order[i]];
        if (values != nullptr) values_out[i] = values[order[i]];
    }
}

struct SortTensors {
    const Tensor& keys;
    const Tensor& keys_out;
    const Tensor* values;  // none: only keys
    const Tensor* values_out;
};

template <class T>
void sort_of(Call& call, const SortTensors& tensors, bool descending) {
    using Kind = std::pair<std::size_t, bool>;
    static Workspaces<day19::RadixWorkspace, Kind> workspaces;
    const std::size_t size = tensors.keys.shape().front();
    const auto in = tensors.keys.vector<const T>(size);
    const auto result = tensors.keys_out.vector<T>(size);
    const bool pairs = tensors.values != nullptr;
    // Values are moved as they are: numbers of 32 bits.
    course::DeviceSpan<const std::uint32_t> values;
    course::DeviceSpan<std::uint32_t> values_out;
    if (pairs) {
        const auto given = tensors.values->vector<const std::int32_t>(size);
        const auto moved = tensors.values_out->vector<std::int32_t>(size);
        values = course::DeviceSpan<const std::uint32_t>::from_device_pointer(
            reinterpret_cast<const std::uint32_t*>(given.data()), size);
        values_out = course::DeviceSpan<std::uint32_t>::from_device_pointer(
            reinterpret_cast<std::uint32_t*>(moved.data()), size);
    }
    const auto direction = descending ? day19::Direction::kDescending : day19::Direction::kAscending;
    call.run(
        [&](cudaStream_t on) {
            workspaces.with(
                on, Kind{sizeof(T), pairs},
                [&](const day19::RadixWorkspace& kept) { return kept.capacity() >= size; },
                [&] { return std::make_unique<day19::RadixWorkspace>(size + size / 4, sizeof(T), pairs); },
                [&](day19::RadixWorkspace& workspace) {
                    if (pairs) {
                        day19::sort_pairs<T>(in, values, result, values_out, direction, workspace, on);
                    } else {
                        day19::sort_keys<T>(in, result, direction, workspace, on);
                    }
                });
        },
        [&] {
            sort_on_cpu<T>(host(in), pairs ? values.data() : nullptr, host(result),
                           pairs ? values_out.data() : nullptr, descending);
        });
}

void sort(handle x, handle values, handle out, handle values_out, bool descending, std::uintptr_t stream) {
    Call call("sort", stream);
    const bool pairs = !values.is_none();
    const Tensor& from = call.input("x", x);
    const Tensor& to = call.output("out", out);
    const SortTensors tensors{from, to, pairs ? &call.input("values", values) : nullptr,
                              pairs ? &call.output("out.values", values_out) : nullptr};
    if (from.shape().size() != 1) from.refuse("of shape " + from.shape_text(), "one dimension");
    if (from.shape().front() > kMostKeys) {
        from.refuse("of shape " + from.shape_text(), fmt::format("at most {} elements", kMostKeys));
    }
    const std::string& type = from.type();
    if (type == type_name<float>()) return sort_of<float>(call, tensors, descending);
    if (type == type_name<double>()) return sort_of<double>(call, tensors, descending);
    if (type == type_name<std::int32_t>()) return sort_of<std::int32_t>(call, tensors, descending);
    if (type == type_name<std::uint32_t>()) return sort_of<std::uint32_t>(call, tensors, descending);
    if (type == type_name<std::int64_t>()) return sort_of<std::int64_t>(call, tensors, descending);
    if (type == type_name<std::uint64_t>()) return sort_of<std::uint64_t>(call, tensors, descending);
    from.refuse_type("float32, float64, int32, uint32, int64 or uint64");
}

}  // namespace

void define_rows(nb::module_& module) {
    using namespace nb::literals;
    module.def("softmax_workspace", &softmax_workspace, "rows"_a, "cols"_a);
    module.def("softmax", &softmax, "kind"_a, "x"_a, "out"_a, "workspace"_a.none(), "stream"_a);
    module.def("scan", &scan, "x"_a, "out"_a, "exclusive"_a, "stream"_a);
    module.def("sort", &sort, "x"_a, "values"_a.none(), "out"_a, "values_out"_a.none(), "descending"_a,
               "stream"_a);
}

}  // namespace course_python
