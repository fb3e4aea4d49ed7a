// SYRK, SYMM and TRMM beside the full product by the ladder's dispatcher (step 14), and cuBLAS.
//
//     gemm_ladder_structured --size 1024
//     gemm_ladder_structured --bench --json structured.jsonl
#include <fmt/format.h>

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../scratch.hpp"
#include "../sgemm.hpp"
#include "../sgemm_device_reference.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "structured.hpp"
#include "structured_peer.hpp"

namespace {

using course::DeviceBuffer;

// C = left right, all n x n, and what the routine reads: `stored` has NaN where it must not read.
struct Data {
    Data(std::size_t extent, const std::vector<float>& l, const std::vector<float>& r,
         const std::vector<float>& s, bool one_triangle)
        : n(extent),
          left(std::span<const float>(l)),
          right(std::span<const float>(r)),
          stored(std::span<const float>(s)),
          c(extent * extent),
          product(extent * extent),
          magnitude(extent * extent) {
        gemm::multiply_on_device({n, n, n}, 1, std::as_const(left).span(), std::as_const(right).span(), 0,
                                 product, magnitude);
        expected = product;
        for (std::size_t row = 0; row < n && one_triangle; ++row) {
            for (std::size_t col = row + 1; col < n; ++col)
                expected[row * n + col] = std::numeric_limits<double>::quiet_NaN();
        }
    }

    course::VerifyResult verify(std::span<const double> values) {
        // The narrow bound: with the wide one, 2 eps K |A| |B|, a missing product would pass.
        course::VerifyResult result = course::verify(
            c.to_host(), values, {.terms = n, .growth = course::Growth::kSquareRoot}, magnitude, n);
        result.damage = c.damage();
        return result;
    }

    std::size_t n;
    DeviceBuffer<float> left, right, stored;
    course::GuardedBuffer<float> c;
    std::vector<double> product, magnitude;
    std::vector<double> expected;  // NaN where the routine writes nothing
};

std::vector<float> transposed(const std::vector<float>& matrix, std::size_t n) {
    std::vector<float> result(matrix.size());
#pragma omp parallel for
    for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t col = 0; col < n; ++col)
            result[col * n + row] = matrix[row * n + col];
    }
    return result;
}

std::vector<float> random_matrix(std::size_t n, std::uint64_t seed) {
    return course::make_data<float>(n * n, course::DataPattern::kSignedUniform, seed);
}

// `flops`: of the routine. The full product needs 2 n^3.
course::Case make_case(const std::string& name, const std::shared_ptr<Data>& data, double flops) {
    const auto n = static_cast<double>(data->n);
    course::Case result{.problem = fmt::format("{} {}x{}", name, data->n, data->n), .dtype = "float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->verify(data->expected); };

    const gemm::Kernel& kernel = course::find_version(gemm::beyond(), "14_dispatcher").launcher;
    const auto scratch = std::make_shared<gemm::ScratchMemory>(kernel.scratch({data->n, data->n, data->n}));
    result.contestants.push_back(
        {.name = "full_product",
         .launch =
             [data, scratch, launch = kernel.launch](cudaStream_t stream) {
                 launch({.a = std::as_const(data->left).matrix(data->n, data->n),
                         .b = std::as_const(data->right).matrix(data->n, data->n),
                         .c = data->c.matrix(data->n, data->n),
                         .scratch = scratch->view()},
                        stream);
             },
         .work = {.bytes = 3 * sizeof(float) * n * n, .written = sizeof(float) * n * n, .flops = flops},
         .verify = [data] { return data->verify(data->product); }});
    return result;
}

void add(course::Case& into, const std::string& name, const std::function<void(cudaStream_t)>& launch,
         course::Role role = course::Role::kOurs) {
    into.contestants.push_back({.name = name,
                                .role = role,
                                .launch = launch,
                                .work = into.contestants.front().work,
                                .cannot_run = launch ? "" : gemm::why_no_structured_peer()});
}

std::size_t extent_of(const course::Dims& size) {
    if (size.size() != 1) throw std::invalid_argument("expected n, for example 1024");
    return size[0];
}

course::Case make_syrk(const course::Dims& size) {
    const std::size_t n = extent_of(size);
    const auto a = random_matrix(n, 1);
    const auto a_transposed = transposed(a, n);
    const auto data = std::make_shared<Data>(n, a, a_transposed, a_transposed, true);
    const auto extent = static_cast<double>(n);
    course::Case result = make_case("syrk", data, extent * extent * (extent + 1));
    const gemm::Syrk problem{.a = std::as_const(data->left).matrix(n, n), .c = data->c.matrix(n, n)};
    const gemm::Syrk of_transposed{.a = std::as_const(data->stored).matrix(n, n),
                                   .c = data->c.matrix(n, n),
                                   .op_a = course::Op::kTranspose};
    add(result, "syrk", [data, problem](cudaStream_t stream) { gemm::syrk(problem, stream); });
    add(result, "syrk_of_transposed",
        [data, of_transposed](cudaStream_t stream) { gemm::syrk(of_transposed, stream); });
    add(result, "cublas", gemm::make_cublas_syrk(problem), course::Role::kPeer);
    add(result, "cublas_of_transposed", gemm::make_cublas_syrk(of_transposed), course::Role::kPeer);
    return result;
}

// A with one triangle: in `stored` the other one is NaN; in `left` it is what it stands for.
course::Case make_square(const course::Dims& size, bool symmetric) {
    const std::size_t n = extent_of(size);
    auto stored = random_matrix(n, 1);
    auto left = stored;
    for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t col = row + 1; col < n; ++col) {
            stored[row * n + col] = std::numeric_limits<float>::quiet_NaN();
            left[row * n + col] = symmetric ? left[col * n + row] : 0;
        }
    }
    const auto data = std::make_shared<Data>(n, left, random_matrix(n, 2), stored, false);
    const auto extent = static_cast<double>(n);
    course::Case result =
        make_case(symmetric ? "symm" : "trmm", data,
                  symmetric ? 2 * extent * extent * extent : extent * extent * (extent + 1));
    const auto a = std::as_const(data->stored).matrix(n, n);
    const auto b = std::as_const(data->right).matrix(n, n);
    if (symmetric) {
        const gemm::Symm problem{.a = a, .b = b, .c = data->c.matrix(n, n)};
        add(result, "symm", [data, problem](cudaStream_t stream) { gemm::symm(problem, stream); });
        add(result, "cublas", gemm::make_cublas_symm(problem), course::Role::kPeer);
    } else {
        const gemm::Trmm problem{.a = a, .b = b, .c = data->c.matrix(n, n)};
        add(result, "trmm", [data, problem](cudaStream_t stream) { gemm::trmm(problem, stream); });
        add(result, "cublas", gemm::make_cublas_trmm(problem), course::Role::kPeer);
    }
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "gemm_ladder_structured",
        .title = "SYRK, SYMM and TRMM of n x n matrices, FP32, row-major; size: n",
        .default_size = {200},
        .bench_sizes = {{1024}, {2048}, {4096}, {8192}},
        .make_cases = {make_syrk, [](const course::Dims& size) { return make_square(size, true); },
                       [](const course::Dims& size) { return make_square(size, false); }}};
    return course::run_program(program, argc, argv);
}
