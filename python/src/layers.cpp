// Sparse matrices (day 35) and convolutional layers (day 28).
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "arguments.hpp"
#include "call.hpp"
#include "conv_layers.hpp"
#include "modules.hpp"
#include "spmv.hpp"

namespace course_python {
namespace {

namespace nb = nanobind;
using nb::handle;

// --- Sparse matrices -----------------------------------------------------------------------------

// A matrix, on the device in the format that day 35 chooses for it.
class SparseMatrix {
  public:
    // From CSR in host memory, which is copied: row_start of int64, cols of int32, values of
    // float32.
    SparseMatrix(std::size_t rows, std::size_t cols, handle row_start, handle columns, handle values)
        : csr_(make(rows, cols, row_start, columns, values)) {}

    std::pair<std::size_t, std::size_t> shape() const {
        return {static_cast<std::size_t>(csr_.shape().rows), static_cast<std::size_t>(csr_.shape().cols)};
    }
    std::size_t entries() const { return static_cast<std::size_t>(csr_.entries()); }

    void multiply(handle x, handle out, std::uintptr_t stream) {
        Call call("spmv", stream);
        const Tensor& from = call.input("x", x);
        const Tensor& to = call.output("out", out);
        const auto in = from.vector<const float>(static_cast<std::size_t>(csr_.shape().cols));
        const auto result = to.vector<float>(static_cast<std::size_t>(csr_.shape().rows));
        call.run(
            [&](cudaStream_t on) {
                int device = 0;
                CUDA_CHECK(cudaGetDevice(&device));
                const std::lock_guard one_at_a_time(mutex_);
                // An operator holds partial sums, so that each stream has one of its own.
                auto& kept = operators_[{device, on}];
                if (!kept) {
                    kept = course::find_version(day35::versions(), "auto")
                               .launcher(csr_, day35::OffsetRule::kAsNeeded);
                }
                kept->multiply(in, result, on);
            },
            [&] {
                const day35::Reference expected = day35::multiply_on_cpu(csr_, host(in));
                for (std::size_t row = 0; row < result.size(); ++row)
                    result.data()[row] = static_cast<float>(expected.y[row]);
            });
    }

  private:
    template <class T>
    static std::vector<T> copied(const char* name, handle object, std::size_t size) {
        const Tensor tensor(name, object, Access::kRead);
        const auto values = tensor.vector<const T>(size);
        if (tensor.on_gpu()) tensor.refuse("on " + tensor.place(), "the CPU");
        return {values.data(), values.data() + size};
    }
    static day35::CsrMatrix make(std::size_t rows, std::size_t cols, handle row_start, handle columns,
                                 handle values) {
        constexpr std::size_t kMost = std::numeric_limits<day35::Index>::max();
        if (rows > kMost || cols > kMost) {
            throw std::invalid_argument(
                fmt::format("matrix is of shape ({}, {}); expected at most {} of each", rows, cols, kMost));
        }
        std::vector<day35::Offset> start = copied<day35::Offset>("matrix.indptr", row_start, rows + 1);
        const std::size_t entries = static_cast<std::size_t>(std::max<day35::Offset>(start.back(), 0));
        return {{static_cast<day35::Index>(rows), static_cast<day35::Index>(cols)},
                std::move(start),
                copied<day35::Index>("matrix.indices", columns, entries),
                copied<float>("matrix.data", values, entries)};
    }

    day35::CsrMatrix csr_;
    std::mutex mutex_;
    std::map<std::pair<int, cudaStream_t>, std::unique_ptr<day35::Operator>> operators_;
};

// --- Convolutional layers ------------------------------------------------------------------------

int as_int(const Tensor& tensor, std::size_t extent) {
    if (extent > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        tensor.refuse("of shape " + tensor.shape_text(), "extents below 2^31");
    return static_cast<int>(extent);
}

day28::Shape layer_shape(const Tensor& x, const Tensor& w, int padding, int stride) {
    if (x.shape().size() != 4) x.refuse("of shape " + x.shape_text(), "four dimensions: (N, C, H, W)");
    if (w.shape().size() != 4) w.refuse("of shape " + w.shape_text(), "four dimensions: (K, C, R, S)");
    if (w.shape()[1] != x.shape()[1]) {
        w.refuse("of shape " + w.shape_text(), fmt::format("{} channels, as x has", x.shape()[1]));
    }
    if (padding < 0) throw std::invalid_argument(fmt::format("padding is {}; expected 0 or more", padding));
    if (stride < 1) throw std::invalid_argument(fmt::format("stride is {}; expected 1 or more", stride));
    const auto of_x = [&](std::size_t i) { return as_int(x, x.shape()[i]); };
    const auto of_w = [&](std::size_t i) { return as_int(w, w.shape()[i]); };
    const day28::Shape shape{of_x(0), of_x(1), of_x(2), of_x(3), of_w(0), of_w(2), of_w(3), padding, stride};
    static_cast<void>(day28::outputs(shape));  // throws for a shape that no version runs
    return shape;
}

const day28::Version& convolution_for(const std::string& algorithm, const day28::Shape& shape) {
    const auto versions = day28::versions(day28::Pass::kForward);
    if (algorithm == "auto") return first_that_runs(versions, shape, {"implicit_gemm", "implicit_tiled"});
    const day28::Version& version = course::find_version(versions, algorithm);
    const std::string reason = version.cannot_run(shape);
    if (!reason.empty()) {
        throw std::invalid_argument(
            fmt::format("algorithm is '{}', which {}; expected another one", algorithm, reason));
    }
    return version;
}

std::size_t conv2d_workspace(const std::string& algorithm, handle x, handle w, int padding, int stride) {
    const Tensor image("x", x, Access::kRead), filters("w", w, Access::kRead);
    const day28::Shape shape = layer_shape(image, filters, padding, stride);
    return convolution_for(algorithm, shape).launcher.scratch_floats(shape) * sizeof(float);
}

void conv2d(const std::string& algorithm, handle x, handle w, int padding, int stride, handle out,
            handle workspace, std::uintptr_t stream) {
    Call call("conv2d", stream);
    const Tensor& image = call.input("x", x);
    const Tensor& filters = call.input("w", w);
    const Tensor& to = call.output("out", out);
    const day28::Shape shape = layer_shape(image, filters, padding, stride);
    const auto extent = [](int value) { return static_cast<std::size_t>(value); };
    const auto a = image.packed<const float>(image.shape());
    const auto b = filters.packed<const float>(filters.shape());
    const auto y = to.packed<float>({extent(shape.n), extent(shape.k), extent(shape.p()), extent(shape.q())});
    // A name is checked although the reference has only one algorithm.
    if (algorithm != "auto") static_cast<void>(convolution_for(algorithm, shape));
    const std::size_t floats = call.is_left_to_the_reference()
                                   ? 0
                                   : convolution_for(algorithm, shape).launcher.scratch_floats(shape);
    const auto scratch = call.scratch_of<float>(workspace, floats);
    call.run(
        [&](cudaStream_t on) { convolution_for(algorithm, shape).launcher.run(shape, a, b, y, scratch, on); },
        [&] {
            const day28::Expected expected =
                day28::pass_on_cpu(day28::Pass::kForward, shape, host(a), host(b));
            for (std::size_t i = 0; i < y.size(); ++i)
                y.data()[i] = static_cast<float>(expected.values[i]);
        });
}

}  // namespace

void define_layers(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<SparseMatrix>(module, "SparseMatrix")
        .def(nb::init<std::size_t, std::size_t, handle, handle, handle>(), "rows"_a, "cols"_a, "row_start"_a,
             "columns"_a, "values"_a)
        .def("shape", &SparseMatrix::shape)
        .def("entries", &SparseMatrix::entries)
        .def("multiply", &SparseMatrix::multiply, "x"_a, "out"_a, "stream"_a);
    module.def("conv2d_workspace", &conv2d_workspace, "algorithm"_a, "x"_a, "w"_a, "padding"_a, "stride"_a);
    module.def("conv2d", &conv2d, "algorithm"_a, "x"_a, "w"_a, "padding"_a, "stride"_a, "out"_a,
               "workspace"_a.none(), "stream"_a);
}

}  // namespace course_python
