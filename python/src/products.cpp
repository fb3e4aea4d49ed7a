// Batched matrix products and what is fused with them: days 45 to 48.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "arguments.hpp"
#include "beyond/batched_bfloat16.hpp"
#include "beyond/k_means.hpp"
#include "beyond/k_means_step.hpp"
#include "call.hpp"
#include "fused_matmul.hpp"
#include "hopper_matmul.hpp"
#include "masked_matmul.hpp"
#include "modules.hpp"
#include "reduce_in_matmul.hpp"
#include "tensor_cores.hpp"
#include "top_k.hpp"

namespace course_python {
namespace {

namespace nb = nanobind;
using nb::handle;

// --- Operands ------------------------------------------------------------------------------------

// A and B, of which one may be a single matrix beside a batch of the other.
template <class T>
course::OperandsOf<T> operands_of(const Tensor& a, const Tensor& b) {
    const auto left = a.matrices<const T>();
    const auto right = b.matrices<const T>();
    course::OperandsOf<T> operands{left.batch, right.batch, left.op, right.op};
    const std::size_t count = left.is_batch ? left.batch.count : right.batch.count;
    if (left.is_batch && right.is_batch && right.batch.count != count) {
        b.refuse("of shape " + b.shape_text(), fmt::format("{} matrices, as many as a has", count));
    }
    operands.a.count = operands.b.count = count;
    const std::size_t depth =
        operands.op_b == course::Op::kNone ? operands.b.first.rows() : operands.b.first.cols();
    if (depth != operands.k()) {
        b.refuse("of shape " + b.shape_text(),
                 fmt::format("{} rows, as many as a has columns", operands.k()));
    }
    return operands;
}

// The shape of results for each product: (count, ...), or (...) where neither operand is a batch.
std::vector<std::size_t> result_shape(const Tensor& a, const Tensor& b, std::size_t count,
                                      std::initializer_list<std::size_t> of_one) {
    std::vector<std::size_t> shape(of_one);
    if (a.shape().size() == 3 || b.shape().size() == 3) shape.insert(shape.begin(), count);
    return shape;
}

// C, the results of the products, row-major.
course::Batch<float> results_of(const Tensor& out, const std::vector<std::size_t>& shape) {
    out.require_shape(shape);
    const auto matrices = out.matrices<float>();
    if (matrices.op != course::Op::kNone) {
        out.refuse("a transposed matrix", "a row-major one: its transpose is b.T @ a.T");
    }
    return matrices.batch;
}

// op(A) or op(B) of one product, row-major, for references. The views are of host memory.
template <class T>
std::vector<float> packed_operand(const course::Batch<const T>& batch, course::Op op, std::size_t product) {
    const course::DeviceMatrix<const T> matrix = batch.first.at(batch.first.data() + product * batch.stride);
    const bool transposed = op == course::Op::kTranspose;
    const std::size_t rows = transposed ? matrix.cols() : matrix.rows();
    const std::size_t cols = transposed ? matrix.rows() : matrix.cols();
    std::vector<float> values(rows * cols);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t col = 0; col < cols; ++col)
            values[row * cols + col] =
                static_cast<float>(matrix.data()[transposed ? col * matrix.leading_dimension() + row
                                                            : row * matrix.leading_dimension() + col]);
    return values;
}

// The sums of one product in double.
template <class T>
std::vector<double> product_on_cpu(const course::OperandsOf<T>& operands, std::size_t product) {
    const std::vector<float> a = packed_operand(operands.a, operands.op_a, product);
    const std::vector<float> b = packed_operand(operands.b, operands.op_b, product);
    std::vector<double> sums(operands.m() * operands.n());
    for (std::size_t i = 0; i < operands.m(); ++i)
        for (std::size_t k = 0; k < operands.k(); ++k)
            for (std::size_t j = 0; j < operands.n(); ++j)
                sums[i * operands.n() + j] += static_cast<double>(a[i * operands.k() + k]) *
                                              static_cast<double>(b[k * operands.n() + j]);
    return sums;
}

course::DeviceMatrix<float> matrix_of(const course::Batch<float>& batch, std::size_t product) {
    return batch.first.at(batch.first.data() + product * batch.stride);
}

course::Metric metric_of(const std::string& metric) {
    using course::Metric;
    static constexpr std::array<std::pair<const char*, Metric>, 4> kMetrics = {
        {{"dot", Metric::kDot},
         {"squared_l2", Metric::kSquaredL2},
         {"differences", Metric::kDifferences},
         {"cosine", Metric::kCosine}}};
    return choose("metric", metric, kMetrics);
}

// Indices are written as std::uint32_t, below 2^31: what other libraries know as int32.
course::DeviceSpan<std::uint32_t> indices_of(const Tensor& tensor, const std::vector<std::size_t>& shape) {
    const auto span = tensor.packed<std::int32_t>(shape);
    return course::DeviceSpan<std::uint32_t>::from_device_pointer(
        reinterpret_cast<std::uint32_t*>(span.data()), span.size());
}

course::DistancesOnCpu distances_of(course::Metric metric, const course::Operands& operands,
                                    std::size_t product) {
    return course::distances_on_cpu(metric, operands.m(), operands.n(), operands.k(),
                                    packed_operand(operands.a, operands.op_a, product),
                                    packed_operand(operands.b, operands.op_b, product));
}

// --- Products ------------------------------------------------------------------------------------

template <class T, class Launch>
void bmm_of(Call& call, const Tensor& a, const Tensor& b, const Tensor& out, float alpha, float beta,
            const Launch& launch) {
    const course::OperandsOf<T> operands = operands_of<T>(a, b);
    const course::Batch<float> c =
        results_of(out, result_shape(a, b, operands.count(), {operands.m(), operands.n()}));
    const day45::BatchedMatmulOf<T> matmul{operands, c, alpha, beta};
    call.run([&](cudaStream_t on) { launch(matmul, on); },
             [&] {
                 for (std::size_t product = 0; product < operands.count(); ++product) {
                     const std::vector<double> sums = product_on_cpu(operands, product);
                     const course::DeviceMatrix<float> to = matrix_of(c, product);
                     for (std::size_t i = 0; i < to.rows(); ++i) {
                         float* const row = to.data() + i * to.leading_dimension();
                         for (std::size_t j = 0; j < to.cols(); ++j) {
                             const double sum = alpha * sums[i * to.cols() + j];
                             row[j] = static_cast<float>(beta == 0 ? sum : sum + beta * row[j]);
                         }
                     }
                 }
             });
}

// Transposed matrices in one launch, by day 45. Days 40 and 41 multiply one pair of row-major
// matrices, so that each product is a launch.
void launch_half_products(const day45::HalfMatmul& matmul, cudaStream_t stream) {
    const course::OperandsOf<__half>& operands = matmul.operands;
    if (operands.op_a != course::Op::kNone || operands.op_b != course::Op::kNone) {
        const auto& version = course::find_version(day45::half_versions(), "pipelined");
        const std::string reason =
            version.cannot_run({operands.count(), operands.m(), operands.n(), operands.k()});
        if (!reason.empty()) throw std::invalid_argument("bmm of float16 " + reason);
        return version.launcher(matmul, stream);
    }
    const course::half_matmul::Shape shape{operands.m(), operands.n(), operands.k()};
    const auto& hopper = course::find_version(day41::versions(), "realigned");
    const auto& version = hopper.cannot_run(shape).empty()
                              ? hopper
                              : course::find_version(day40::versions(), "fragments_ahead");
    const std::string reason = version.cannot_run(shape);
    if (!reason.empty()) throw std::invalid_argument("bmm of float16 " + reason);
    const auto of = [](const auto& batch, std::size_t product) {
        return batch.first.at(batch.first.data() + product * batch.stride);
    };
    for (std::size_t product = 0; product < operands.count(); ++product) {
        version.launcher.half.launch({of(operands.a, product), of(operands.b, product), of(matmul.c, product),
                                      matmul.alpha, matmul.beta},
                                     stream);
    }
}

void bmm(handle a, handle b, handle out, float alpha, float beta, std::uintptr_t stream) {
    Call call("bmm", stream);
    const Tensor& left = call.input("a", a);
    const Tensor& right = call.input("b", b);
    const Tensor& to = call.output("out", out);
    if (left.type() == type_name<float>()) {
        return bmm_of<float>(call, left, right, to, alpha, beta,
                             course::find_version(day45::versions(), "fitted").launcher);
    }
    if (left.type() == type_name<__nv_bfloat16>()) {
        return bmm_of<__nv_bfloat16>(
            call, left, right, to, alpha, beta, [](const day45::Bfloat16Matmul& matmul, cudaStream_t on) {
                const day45::Shape shape{matmul.operands.count(), matmul.operands.m(), matmul.operands.n(),
                                         matmul.operands.k()};
                const auto& version = course::find_version(day45::bfloat16_versions(), "wgmma");
                const std::string reason = version.cannot_run(shape);
                if (!reason.empty()) throw std::invalid_argument("bmm of bfloat16 " + reason);
                version.launcher(matmul, on);
            });
    }
    if (left.type() == type_name<__half>()) {
        return bmm_of<__half>(call, left, right, to, alpha, beta, launch_half_products);
    }
    left.refuse_type("float32, bfloat16 or float16");
}

// --- Reductions ----------------------------------------------------------------------------------

day46::Reduction reduction_of(const std::string& reduction) {
    using day46::Reduction;
    static constexpr std::array<std::pair<const char*, Reduction>, 4> kReductions = {
        {{"min", Reduction::kMin},
         {"max", Reduction::kMax},
         {"sum", Reduction::kSum},
         {"logsumexp", Reduction::kLogSumExp}}};
    return choose("reduction", reduction, kReductions);
}

const day46::Reduce& reducer_for(const day46::ReduceShape& shape) {
    return first_that_runs(day46::reduce_versions(), shape, {"fused_wgmma", "fused", "unfused"});
}

// `along_rows`: a result for each row of the product. Bytes of scratch memory, on the current
// device.
std::size_t bmm_reduce_workspace(const std::string& reduction, bool along_rows, const std::string& metric,
                                 std::size_t m, std::size_t n, std::size_t d, std::size_t count) {
    const day46::ReduceShape shape{m,
                                   n,
                                   d,
                                   count,
                                   metric_of(metric),
                                   reduction_of(reduction),
                                   along_rows ? day46::Along::kRows : day46::Along::kColumns};
    return reducer_for(shape).launcher.scratch_size(shape) * sizeof(std::uint64_t);
}

void bmm_reduce(const char* function, const std::string& reduction, bool along_rows,
                const std::string& metric, handle a, handle b, handle values, handle indices,
                handle workspace, std::uintptr_t stream) {
    Call call(function, stream);
    const Tensor& left = call.input("a", a);
    const Tensor& right = call.input("b", b);
    const Tensor& to = call.output("out", values);
    const Tensor* to_indices = indices.is_none() ? nullptr : &call.output("out.indices", indices);
    const course::Operands operands = operands_of<float>(left, right);
    day46::ReducedMatmul matmul;
    matmul.operands = operands;
    matmul.metric = metric_of(metric);
    matmul.reduction = reduction_of(reduction);
    matmul.along = along_rows ? day46::Along::kRows : day46::Along::kColumns;
    const auto shape =
        result_shape(left, right, operands.count(), {along_rows ? operands.m() : operands.n()});
    if ((along_rows ? operands.n() : operands.m()) == 0 &&
        (matmul.reduction == day46::Reduction::kMin || matmul.reduction == day46::Reduction::kMax)) {
        const Tensor& empty = along_rows ? right : left;
        empty.refuse("of shape " + empty.shape_text(), "at least one element for a " + reduction);
    }
    matmul.values = to.packed<float>(shape);
    if (to_indices != nullptr) matmul.indices = indices_of(*to_indices, shape);
    const day46::ReduceShape problem{operands.m(),  operands.n(),     operands.k(), operands.count(),
                                     matmul.metric, matmul.reduction, matmul.along};
    matmul.scratch = call.scratch_of<std::uint64_t>(
        workspace, call.is_left_to_the_reference() ? 0 : reducer_for(problem).launcher.scratch_size(problem));
    call.run([&](cudaStream_t on) { reducer_for(problem).launcher.launch(matmul, on); },
             [&] {
                 const std::size_t results = along_rows ? operands.m() : operands.n();
                 for (std::size_t product = 0; product < operands.count(); ++product) {
                     const day46::ReducedOnCpu expected =
                         day46::reduce_on_cpu(matmul.reduction, matmul.along, operands.m(), operands.n(),
                                              distances_of(matmul.metric, operands, product));
                     for (std::size_t i = 0; i < results; ++i) {
                         matmul.values.data()[product * results + i] = static_cast<float>(expected.values[i]);
                         if (to_indices != nullptr)
                             matmul.indices.data()[product * results + i] = expected.indices[i];
                     }
                 }
             });
}

// --- The k best ----------------------------------------------------------------------------------

const day48::TopK& top_k_for(const day48::TopKShape& shape, bool product) {
    // Where there is nothing to multiply, the matrix is there already.
    if (!product) return course::find_version(day48::top_k_versions(), "unfused");
    return first_that_runs(day48::top_k_versions(), shape, {"fused_wgmma", "fused"});
}

void require_k(std::size_t k, std::size_t columns) {
    const std::size_t most = std::min(day48::kMostBest, columns);
    if (k < 1 || k > most) {
        throw std::invalid_argument(
            fmt::format("k is {}; expected 1 to {}, for there are {} elements to choose from, and {} are the "
                        "most that are sorted",
                        k, most, columns, day48::kMostBest));
    }
}

std::size_t bmm_topk_workspace(std::size_t m, std::size_t n, std::size_t d, std::size_t count, std::size_t k,
                               const std::string& metric, bool product) {
    require_k(k, n);
    const day48::TopKShape shape{m, n, d, count, k, metric_of(metric)};
    return top_k_for(shape, product).launcher.scratch_size(shape) * sizeof(std::uint64_t);
}

// A 1 in the memory of the current device, for the life of the process.
const float* one_on_device() {
    static std::mutex one_at_a_time;
    static std::map<int, course::DeviceBuffer<float>> kept;
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    const std::lock_guard lock(one_at_a_time);
    course::DeviceBuffer<float>& one = kept[device];
    if (one.size() == 0) {
        const AllocationIsAllowed allowed;
        one = course::DeviceBuffer<float>(std::span<const float>(std::array<float, 1>{1.0f}));
    }
    return one.data();
}

// The k best of the rows of all products, into `values` and `indices` of count x m x k. Without a
// `product`, A is a 1 for each.
void select_best(Call& call, const course::Operands& operands, course::Metric metric, bool largest,
                 std::size_t k, bool product, course::DeviceSpan<float> values,
                 course::DeviceSpan<std::uint32_t> indices, handle workspace) {
    const auto order = largest ? day48::Order::kLargest : day48::Order::kSmallest;
    const day48::TopKShape shape{operands.m(), operands.n(), operands.k(), operands.count(), k,
                                 metric,       order};
    day48::TopKMatmul matmul{operands, metric, order, k, values, indices};
    matmul.scratch = call.scratch_of<std::uint64_t>(
        workspace,
        call.is_left_to_the_reference() ? 0 : top_k_for(shape, product).launcher.scratch_size(shape));
    call.run(
        [&](cudaStream_t on) {
            if (!product) matmul.operands.a.first = matmul.operands.a.first.at(one_on_device());
            top_k_for(shape, product).launcher.launch(matmul, on);
        },
        [&] {
            for (std::size_t i = 0; i < operands.count(); ++i) {
                const day48::TopKOnCpu expected = day48::top_k_on_cpu(order, k, operands.m(), operands.n(),
                                                                      distances_of(metric, operands, i));
                for (std::size_t j = 0; j < expected.values.size(); ++j) {
                    values.data()[i * expected.values.size() + j] = static_cast<float>(expected.values[j]);
                    indices.data()[i * expected.values.size() + j] = expected.indices[j];
                }
            }
        });
}

void bmm_topk(handle a, handle b, std::size_t k, const std::string& metric, bool largest, handle values,
              handle indices, handle workspace, std::uintptr_t stream) {
    Call call("bmm_topk", stream);
    const Tensor& left = call.input("a", a);
    const Tensor& right = call.input("b", b);
    const Tensor& to = call.output("out.values", values);
    const Tensor& to_indices = call.output("out.indices", indices);
    const course::Operands operands = operands_of<float>(left, right);
    require_k(k, operands.n());
    const auto shape = result_shape(left, right, operands.count(), {operands.m(), k});
    select_best(call, operands, metric_of(metric), largest, k, true, to.packed<float>(shape),
                indices_of(to_indices, shape), workspace);
}

// The rows of x, each a product of a matrix of one 1 and the row.
void topk(handle x, std::size_t k, bool largest, handle values, handle indices, handle workspace,
          std::uintptr_t stream) {
    Call call("topk", stream);
    const Tensor& from = call.input("x", x);
    const Tensor& to = call.output("out.values", values);
    const Tensor& to_indices = call.output("out.indices", indices);
    const auto rows = from.rows<const float>();
    require_k(k, rows.cols());
    std::vector<std::size_t> shape = from.shape();
    shape.back() = k;
    course::Operands operands;
    // The address of the 1 is known once the device is the current one; on the host it is here.
    static const float kOne = 1;
    const auto unit = [](const float* one) {
        return course::DeviceMatrix<const float>(course::DeviceSpan<const float>::from_device_pointer(one, 1),
                                                 1, 1);
    };
    operands.a = {.first = unit(&kOne), .count = rows.rows()};
    const auto row = course::DeviceSpan<const float>::from_device_pointer(rows.data(), rows.cols());
    operands.b = {.first = {row, 1, rows.cols()}, .count = rows.rows(), .stride = rows.leading_dimension()};
    select_best(call, operands, course::Metric::kDot, largest, k, false, to.packed<float>(shape),
                indices_of(to_indices, shape), workspace);
}

// --- Masks ---------------------------------------------------------------------------------------

const day47::Masked& masked_for(const std::string& skip) {
    static constexpr std::array<std::pair<const char*, const char*>, 3> kVersions = {
        {{"tile", "skip_tiles"}, {"element", "element_mask"}, {"thread", "thread_per_element"}}};
    return course::find_version(day47::masked_versions(), choose("skip", skip, kVersions));
}

course::Batch<const std::uint8_t> bytes_of(const Tensor& mask) {
    const auto matrices = mask.type() == "bool" ? mask.bytes_of_bool() : mask.matrices<const std::uint8_t>();
    if (matrices.op != course::Op::kNone) mask.refuse("a transposed matrix", "a row-major one");
    return matrices.batch;
}

std::size_t bmm_masked_workspace(const std::string& skip, handle mask) {
    if (mask.is_none()) return 0;
    const Tensor bytes("mask", mask, Access::kRead);
    return masked_for(skip).launcher.levels_size(bytes_of(bytes)) * sizeof(std::uint32_t);
}

void bmm_masked(handle a, handle b, handle mask, std::optional<std::int64_t> below,
                std::optional<std::int64_t> above, const std::string& skip, float alpha, float fill,
                handle out, handle workspace, std::uintptr_t stream) {
    Call call("bmm_masked", stream);
    const Tensor& left = call.input("a", a);
    const Tensor& right = call.input("b", b);
    const Tensor& to = call.output("out", out);
    const Tensor* array = mask.is_none() ? nullptr : &call.input("mask", mask);
    const day47::Masked& version = masked_for(skip);
    day47::MaskedMatmul matmul;
    matmul.operands = operands_of<float>(left, right);
    const std::size_t m = matmul.operands.m(), n = matmul.operands.n(), count = matmul.operands.count();
    matmul.c = results_of(to, result_shape(left, right, count, {m, n}));
    matmul.alpha = alpha;
    matmul.fill = fill;
    std::size_t levels = 0;
    if (array != nullptr) {
        const auto bytes = bytes_of(*array);
        if (bytes.first.rows() != m || bytes.first.cols() != n ||
            (array->shape().size() == 3 && bytes.count != count)) {
            array->refuse("of shape " + array->shape_text(),
                          fmt::format("({0}, {1}) or ({2}, {0}, {1})", m, n, count));
        }
        matmul.mask = day47::Mask::array(bytes);
        levels = version.launcher.levels_size(bytes);
    } else {
        matmul.mask =
            day47::Mask::banded(below.value_or(day47::Mask::kFar), above.value_or(day47::Mask::kFar));
    }
    matmul.mask.levels = call.scratch_of<std::uint32_t>(workspace, levels);
    call.run(
        [&](cudaStream_t on) {
            if (levels != 0) version.launcher.build_levels(matmul.mask.bytes, matmul.mask.levels, on);
            version.launcher.launch(matmul, on);
        },
        [&] {
            const bool is_array = array != nullptr;
            for (std::size_t product = 0; product < count; ++product) {
                const std::vector<double> sums = product_on_cpu(matmul.operands, product);
                const course::DeviceMatrix<float> c = matrix_of(matmul.c, product);
                const auto& bytes = matmul.mask.bytes;
                const auto keeps = [&](std::size_t i, std::size_t j) {
                    if (is_array)
                        return bytes.first.data()[product * bytes.stride +
                                                  i * bytes.first.leading_dimension() + j] != 0;
                    const auto offset = static_cast<std::int64_t>(j) - static_cast<std::int64_t>(i);
                    return -matmul.mask.below <= offset && offset <= matmul.mask.above;
                };
                for (std::size_t i = 0; i < m; ++i)
                    for (std::size_t j = 0; j < n; ++j)
                        c.data()[i * c.leading_dimension() + j] =
                            keeps(i, j) ? static_cast<float>(alpha * sums[i * n + j]) : fill;
            }
        });
}

// --- k-means -------------------------------------------------------------------------------------

const day46::Reduce& k_means_reducer(const day46::KMeansShape& shape) {
    const day46::ReduceShape problem{.m = shape.n, .n = shape.k, .d = shape.d, .metric = shape.metric};
    return first_that_runs(day46::reduce_versions(), problem, {"fused", "unfused"});
}

course::Metric k_means_metric(const std::string& metric) {
    static constexpr std::array<std::pair<const char*, course::Metric>, 2> kMetrics = {
        {{"squared_l2", course::Metric::kSquaredL2}, {"differences", course::Metric::kDifferences}}};
    return choose("metric", metric, kMetrics);
}

std::size_t kmeans_workspace(std::size_t n, std::size_t k, std::size_t d, const std::string& metric) {
    const day46::KMeansShape shape{n, k, d, k_means_metric(metric)};
    return day46::step_scratch_size(k_means_reducer(shape), shape) * sizeof(std::uint64_t);
}

// Floats of 8 bytes each: how many an iteration's progress is, an inertia and a count after each
// other.
std::size_t kmeans_progress_parts(std::size_t n) {
    return day46::progress_parts(n);
}

// On the CPU, in a build for a GPU: the same rules in double.
void kmeans_step_on_cpu(const day46::KMeansStep& step) {
    const std::size_t n = step.points.rows(), k = step.centres.rows(), d = step.points.cols();
    std::vector<double> sums(k * d);
    std::vector<std::size_t> members(k);
    day46::Progress all{0, 0};
    for (std::size_t i = 0; i < n; ++i) {
        double nearest = std::numeric_limits<double>::infinity();
        std::uint32_t own = 0;
        for (std::size_t c = 0; c < k; ++c) {
            double sum = 0;
            for (std::size_t j = 0; j < d; ++j) {
                const double difference = static_cast<double>(step.points.data()[i * d + j]) -
                                          static_cast<double>(step.centres.data()[c * d + j]);
                sum += difference * difference;
            }
            if (sum < nearest) {
                nearest = sum;
                own = static_cast<std::uint32_t>(c);
            }
        }
        all.inertia += nearest;
        all.changed += own != step.before.data()[i];
        step.assignment.data()[i] = own;
        step.squared_distances.data()[i] = static_cast<float>(nearest);
        ++members[own];
        for (std::size_t j = 0; j < d; ++j)
            sums[own * d + j] += static_cast<double>(step.points.data()[i * d + j]);
    }
    for (std::size_t i = 0; i < k * d; ++i)
        step.moved.data()[i] = members[i / d] == 0
                                   ? step.centres.data()[i]
                                   : static_cast<float>(sums[i] / static_cast<double>(members[i / d]));
    for (std::size_t part = 0; part < step.progress.size(); ++part)
        step.progress.data()[part] = part == 0 ? all : day46::Progress{0, 0};
}

void kmeans_step(handle points, handle centres, float largest, const std::string& metric, handle before,
                 handle assignment, handle squared_distances, handle progress, handle moved, handle workspace,
                 std::uintptr_t stream) {
    Call call("kmeans", stream);
    const Tensor& from = call.input("points", points);
    const Tensor& start = call.input("centres", centres);
    const Tensor& assigned_before = call.input("before", before);
    const Tensor& assigned = call.output("assignment", assignment);
    const Tensor& distances = call.output("squared_distances", squared_distances);
    const Tensor& parts = call.output("progress", progress);
    const Tensor& to = call.output("moved", moved);
    const auto all = from.matrix<const float>();
    const std::size_t n = all.rows(), d = all.cols();
    const auto first = start.matrix<const float>();
    const std::size_t k = first.rows();
    static_cast<void>(start.packed<const float>({k, d}));
    static_cast<void>(from.packed<const float>({n, d}));
    const day46::KMeansShape shape{n, k, d, k_means_metric(metric)};
    const auto numbers = assigned_before.packed<const std::int32_t>({n});
    const auto bytes = parts.packed<double>({2 * day46::progress_parts(n)});
    static_assert(sizeof(day46::Progress) == 2 * sizeof(double));
    day46::KMeansStep step;
    step.points = all;
    step.centres = first;
    step.largest = largest;
    step.metric = shape.metric;
    step.before = course::DeviceSpan<const std::uint32_t>::from_device_pointer(
        reinterpret_cast<const std::uint32_t*>(numbers.data()), n);
    step.assignment = indices_of(assigned, {n});
    step.squared_distances = distances.packed<float>({n});
    step.progress = course::DeviceSpan<day46::Progress>::from_device_pointer(
        reinterpret_cast<day46::Progress*>(bytes.data()), day46::progress_parts(n));
    step.moved = to.matrix<float>(k, d);
    const std::size_t words =
        call.is_left_to_the_reference() ? 0 : day46::step_scratch_size(k_means_reducer(shape), shape);
    step.scratch = call.scratch_of<std::uint64_t>(workspace, words);
    call.run([&](cudaStream_t on) { day46::launch_step(k_means_reducer(shape), step, on); },
             [&] { kmeans_step_on_cpu(step); });
}

}  // namespace

void define_products(nb::module_& module) {
    using namespace nb::literals;
    module.attr("most_best") = day48::kMostBest;
    module.def("bmm", &bmm, "a"_a, "b"_a, "out"_a, "alpha"_a, "beta"_a, "stream"_a);
    module.def("bmm_reduce_workspace", &bmm_reduce_workspace, "reduction"_a, "along_rows"_a, "metric"_a,
               "m"_a, "n"_a, "d"_a, "count"_a);
    module.def("bmm_reduce", &bmm_reduce, "function"_a, "reduction"_a, "along_rows"_a, "metric"_a, "a"_a,
               "b"_a, "values"_a, "indices"_a.none(), "workspace"_a.none(), "stream"_a);
    module.def("bmm_topk_workspace", &bmm_topk_workspace, "m"_a, "n"_a, "d"_a, "count"_a, "k"_a, "metric"_a,
               "product"_a);
    module.def("bmm_topk", &bmm_topk, "a"_a, "b"_a, "k"_a, "metric"_a, "largest"_a, "values"_a, "indices"_a,
               "workspace"_a.none(), "stream"_a);
    module.def("topk", &topk, "x"_a, "k"_a, "largest"_a, "values"_a, "indices"_a, "workspace"_a.none(),
               "stream"_a);
    module.def("bmm_masked_workspace", &bmm_masked_workspace, "skip"_a, "mask"_a.none());
    module.def("bmm_masked", &bmm_masked, "a"_a, "b"_a, "mask"_a.none(), "below"_a.none(), "above"_a.none(),
               "skip"_a, "alpha"_a, "fill"_a, "out"_a, "workspace"_a.none(), "stream"_a);
    module.def("kmeans_workspace", &kmeans_workspace, "n"_a, "k"_a, "d"_a, "metric"_a);
    module.def("kmeans_progress_parts", &kmeans_progress_parts, "n"_a);
    module.def("kmeans_step", &kmeans_step, "points"_a, "centres"_a, "largest"_a, "metric"_a, "before"_a,
               "assignment"_a, "squared_distances"_a, "progress"_a, "moved"_a, "workspace"_a.none(),
               "stream"_a);
}

}  // namespace course_python
