// Batched products of BF16 matrices, by every version of batched_bfloat16.hpp and by cuBLAS.
#include "batched_bfloat16_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batched_bfloat16.hpp"
#include "common/bench/random_products.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/expected_products.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "fused_matmul_peer.hpp"

namespace day45 {
namespace {

std::vector<float> as_floats(std::span<const __nv_bfloat16> values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](__nv_bfloat16 x) { return static_cast<float>(x); });
    return floats;
}

std::vector<__nv_bfloat16> as_bfloat16(std::span<const float> values) {
    return {values.begin(), values.end()};
}

// Of op(A) and op(B), packed: numbers that BF16 holds.
struct Products {
    Products(const Shape& s, course::Op of_a, course::Op of_b)
        : Products(s, of_a, of_b, make(s.count * s.m * s.k, 1), make(s.count * s.k * s.n, 2)) {}

    Products(const Shape& s, course::Op of_a, course::Op of_b, const std::vector<float>& a_host,
             const std::vector<float>& b_host)
        : shape(s),
          op_a(of_a),
          op_b(of_b),
          a(as_bfloat16(op_a == course::Op::kNone ? a_host : course::each_transposed(a_host, s.m, s.k))),
          b(as_bfloat16(op_b == course::Op::kNone ? b_host : course::each_transposed(b_host, s.k, s.n))),
          c(s.count * s.m * s.n),
          expected(s, 1, a_host, b_host) {}

    static std::vector<float> make(std::size_t size, std::uint64_t seed) {
        return as_floats(course::make_data<__nv_bfloat16>(size, course::DataPattern::kSignedUniform, seed));
    }

    Bfloat16Matmul matmul() {
        const auto batch = [&](auto& buffer, course::Op op, std::size_t rows, std::size_t cols) {
            return course::Batch<const __nv_bfloat16>{.first = op == course::Op::kNone
                                                                   ? std::as_const(buffer).matrix(rows, cols)
                                                                   : std::as_const(buffer).matrix(cols, rows),
                                                      .count = shape.count,
                                                      .stride = rows * cols};
        };
        return {
            .operands = {batch(a, op_a, shape.m, shape.k), batch(b, op_b, shape.k, shape.n), op_a, op_b},
            .c = {.first = c.matrix(shape.m, shape.n), .count = shape.count, .stride = shape.m * shape.n}};
    }

    Shape shape;
    course::Op op_a, op_b;
    course::DeviceBuffer<__nv_bfloat16> a, b;
    course::GuardedBuffer<float> c;
    course::ExpectedProducts expected;
};

std::string problem_text(const Shape& shape, course::Op op_a, course::Op op_b) {
    const auto letter = [](course::Op op) { return op == course::Op::kNone ? "N" : "T"; };
    return fmt::format("batched_bfloat16 {}x{}x{}x{} {}{}", shape.count, shape.m, shape.n, shape.k,
                       letter(op_a), letter(op_b));
}

}  // namespace

course::Case make_batched_bfloat16_case(const course::Dims& dims, course::Op op_a, course::Op op_b) {
    if (dims.size() != 4) return {};
    const Shape shape{dims[0], dims[1], dims[2], dims[3]};
    const auto data = std::make_shared<Products>(shape, op_a, op_b);
    course::Case result{.problem = problem_text(shape, op_a, op_b), .dtype = "bfloat16 to float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->expected.verify(data->c); };
    const course::Work work = bfloat16_versions().front().work(shape);
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = make_cublas(data->matmul()),
                                  .work = work,
                                  .cannot_run = why_no_cublas()});
    for (const BatchedBfloat16& version : bfloat16_versions()) {
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, &version](cudaStream_t stream) { version.launcher(data->matmul(), stream); },
             .work = work,
             .cannot_run = version.cannot_run(shape)});
    }
    return result;
}

std::vector<course::Dims> sweep_of_batches() {
    std::vector<course::Dims> shapes = course::random_matmuls({.most = 11});
    course::Random random(45);
    for (course::Dims& shape : shapes)
        shape.insert(shape.begin(), std::size_t{2} << random.below(6));
    return shapes;
}

course::Case make_batched_bfloat16_sweep(const course::Dims& dims) {
    if (dims.size() != 4) return {};
    const Shape shape{dims[0], dims[1], dims[2], dims[3]};
    // Any rule that takes all layouts.
    const std::size_t layout = (shape.m + shape.n + shape.k) / 64 % 4;
    const course::Op op_a = layout < 2 ? course::Op::kNone : course::Op::kTranspose;
    const course::Op op_b = layout % 2 == 0 ? course::Op::kNone : course::Op::kTranspose;
    const auto data = std::make_shared<course::RandomProducts<__nv_bfloat16>>(shape, op_a, op_b);
    const auto matmul = [data, shape, op_a, op_b] {
        const auto batch = [&](const course::DeviceMatrix<const __nv_bfloat16>& first) {
            return course::Batch<const __nv_bfloat16>{
                .first = first, .count = shape.count, .stride = first.rows() * first.cols()};
        };
        return Bfloat16Matmul{.operands = {batch(data->a()), batch(data->b()), op_a, op_b},
                              .c = {.first = data->c(), .count = shape.count, .stride = shape.m * shape.n}};
    };
    course::Case result{.problem = problem_text(shape, op_a, op_b), .dtype = "bfloat16 to float"};
    result.spoil = [data] { data->spoil(); };
    result.verify = [data] { return data->verify(); };
    const BatchedBfloat16& version = bfloat16_versions().back();
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = make_cublas(matmul()),
                                  .work = version.work(shape),
                                  .cannot_run = why_no_cublas()});
    result.contestants.push_back(
        {.name = version.name,
         .launch = [matmul, &version](cudaStream_t stream) { version.launcher(matmul(), stream); },
         .work = version.work(shape),
         .cannot_run = version.cannot_run(shape)});
    return result;
}

}  // namespace day45
