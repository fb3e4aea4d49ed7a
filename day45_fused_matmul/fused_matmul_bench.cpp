// Day 45's program: batched products beside cuBLAS, in FP32 and in BF16.
//
//     day45_fused_matmul --size 8x256x256x64      8 products of 256 x 256 x 64, in each of the four layouts
//     day45_fused_matmul --sweep                  200 random shapes in BF16
//     day45_fused_matmul --plot                   128 products, square ones and those with K = 128
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/batched_bfloat16_bench.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/program.hpp"
#include "common/bench/random_products.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/expected_products.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "fused_matmul.hpp"
#include "fused_matmul_peer.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::Op;

struct Products {
    Products(const day45::Shape& s, Op op_a, Op op_b)
        : Products(s, op_a, op_b,
                   course::make_data<float>(s.count * s.m * s.k, DataPattern::kSignedUniform, 1),
                   course::make_data<float>(s.count * s.k * s.n, DataPattern::kSignedUniform, 2)) {}

    // Of op(A) and op(B), packed.
    Products(const day45::Shape& s, Op op_a, Op op_b, const std::vector<float>& a,
             const std::vector<float>& b)
        : shape(s),
          ops{op_a, op_b},
          a_device(std::span<const float>(op_a == Op::kNone ? a : course::each_transposed(a, s.m, s.k))),
          b_device(std::span<const float>(op_b == Op::kNone ? b : course::each_transposed(b, s.k, s.n))),
          c(s.count * s.m * s.n),
          expected(s, 1, a, b) {}

    day45::BatchedMatmul matmul() {
        const auto& [count, m, n, k] = shape;
        const auto batch = [&](auto& buffer, Op op, std::size_t rows, std::size_t cols) {
            return course::Batch<const float>{.first = op == Op::kNone
                                                           ? std::as_const(buffer).matrix(rows, cols)
                                                           : std::as_const(buffer).matrix(cols, rows),
                                              .count = count,
                                              .stride = rows * cols};
        };
        return {.operands = {batch(a_device, ops.a, m, k), batch(b_device, ops.b, k, n), ops.a, ops.b},
                .c = {.first = c.matrix(m, n), .count = count, .stride = m * n}};
    }

    struct Ops {
        Op a, b;
    };

    day45::Shape shape;
    Ops ops;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c;
    course::ExpectedProducts expected;
};

course::Case make_batched(const course::Dims& size, Op op_a, Op op_b) {
    const auto data =
        std::make_shared<Products>(day45::Shape{size[0], size[1], size[2], size[3]}, op_a, op_b);
    const day45::Shape& s = data->shape;
    const auto letter = [](Op op) { return op == Op::kNone ? "N" : "T"; };
    course::Case result{.problem = "batched " + std::to_string(s.count) + "x" + std::to_string(s.m) + "x" +
                                   std::to_string(s.n) + "x" + std::to_string(s.k) + " " + letter(op_a) +
                                   letter(op_b),
                        .dtype = "float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->expected.verify(data->c); };
    const course::Work work = day45::versions().front().work(s);
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = day45::make_cublas(data->matmul()),
                                  .work = work,
                                  .cannot_run = day45::why_no_cublas()});
    for (const day45::Batched& version : day45::versions()) {
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, &version](cudaStream_t stream) { version.launcher(data->matmul(), stream); },
             .work = work,
             .cannot_run = version.cannot_run(s)});
    }
    return result;
}

// The operands come from the device, which also verifies all elements.
course::Case make_plotted(const course::Dims& size) {
    const day45::Shape s{size[0], size[1], size[2], size[3]};
    const auto data = std::make_shared<course::RandomProducts<float>>(s);
    const auto matmul = [data, s] {
        const auto batch = [&](const auto& first) {
            return course::Batch<const float>{
                .first = first, .count = s.count, .stride = first.rows() * first.cols()};
        };
        return day45::BatchedMatmul{.operands = {batch(data->a()), batch(data->b())},
                                    .c = {.first = data->c(), .count = s.count, .stride = s.m * s.n}};
    };
    course::Case result{.problem = "batched " + std::to_string(s.count) + "x" + std::to_string(s.m) + "x" +
                                   std::to_string(s.n) + "x" + std::to_string(s.k) + " NN",
                        .dtype = "float"};
    result.spoil = [data] { data->spoil(); };
    result.verify = [data] { return data->verify(); };
    const course::Work work = day45::versions().front().work(s);
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = day45::make_cublas(matmul()),
                                  .work = work,
                                  .cannot_run = day45::why_no_cublas()});
    for (const day45::Batched& version : day45::versions()) {
        if (version.name != "tile_each" && version.name != "fitted") continue;
        result.contestants.push_back(
            {.name = version.name,
             .launch = [matmul, &version](cudaStream_t stream) { version.launcher(matmul(), stream); },
             .work = work,
             .cannot_run = version.cannot_run(s)});
    }
    return result;
}

course::Distribution batches(const std::string& name, const std::string& ours,
                             course::Case (*make)(const course::Dims&)) {
    return {.name = name,
            .text = "count x m x n x k: heads of attention, any, many tiny, odd",
            .most = std::size_t{1} << 36,
            .most_on_cpu = 1 << 16,
            .ours = {ours},
            .draw = [make](course::Draw& draw) -> course::RandomProblem {
                const auto [kind, size] = course::draw_batch(draw);
                return {kind, size, [size = size, make] { return make(size); }};
            }};
}

// Square products, and those of K = 128; sizes between the powers of two, too, which fill the tiles
// less well.
std::vector<course::Dims> sizes_of_plots() {
    std::vector<course::Dims> sizes;
    for (const std::size_t n : {32, 64, 96, 128, 192, 256, 384, 512, 768, 1024})
        sizes.push_back({128, n, n, n});
    for (const std::size_t n : {32, 64, 96, 192, 256, 384, 512, 768, 1024, 1536})
        sizes.push_back({128, n, n, 128});
    return sizes;
}

course::Dims count_m_n_k(const course::Dims& size) {
    if (size.size() != 4) throw std::invalid_argument("expected count x m x n x k, for example 8x256x256x64");
    return size;
}

}  // namespace

int main(int argc, char** argv) {
    course::Program program{
        .day = "day45_fused_matmul",
        .title = "batched matrix products",
        .default_size = {2, 200, 200, 64},
        .bench_sizes = {{1024, 128, 128, 128},
                        {256, 256, 256, 256},
                        {64, 512, 512, 512},
                        {128, 1024, 1024, 64},
                        {128, 1024, 1024, 128}},
        .sweep_sizes = day45::sweep_of_batches(),
        .plot_sizes = sizes_of_plots(),
        .make_cases = {},  // below
        .sweep_cases = {day45::make_batched_bfloat16_sweep},
        .sweep_repeats = course::kSweepRepeats,
        .plot_cases = {[](const course::Dims& size) { return make_plotted(count_m_n_k(size)); }},
        .distributions = {batches("float", "fitted", make_plotted),
                          batches("bfloat16", "wgmma", day45::make_batched_bfloat16_sweep)}};
    for (const Op op_a : {Op::kNone, Op::kTranspose}) {
        for (const Op op_b : {Op::kNone, Op::kTranspose}) {
            program.make_cases.push_back(
                [=](const course::Dims& size) { return make_batched(count_m_n_k(size), op_a, op_b); });
            program.make_cases.push_back([=](const course::Dims& size) {
                return day45::make_batched_bfloat16_case(size, op_a, op_b);
            });
        }
    }
    return course::run_program(program, argc, argv);
}
