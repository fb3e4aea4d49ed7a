// Day 41's program: every version and cuBLAS, for bfloat16 and half, with results in FP32 and in 16
// bits, verified and timed side by side. Size: m x n x k.
//
//     day41_hopper_matmul --sweep       200 random shapes, for the last version and cuBLAS
#include <cstdlib>
#include <memory>
#include <vector>

#include "beyond/rounded_result_bench.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/half_matmul_program.hpp"
#include "common/bench/program.hpp"
#include "common/bench/random_products.hpp"
#include "hopper_matmul.hpp"

namespace {

template <class T>
course::Case make_case(const course::Dims& size) {
    return course::half_matmul::make_case<T>(day41::versions(), size, false);
}

// The last version, which chooses a tile and takes any alignment.
course::Case make_sweep_case(const course::Dims& size) {
    const day41::Shape shape = course::matmul_shape(size);
    const auto data = std::make_shared<course::RandomProducts<__nv_bfloat16>>(
        course::ProductShape{1, shape.m, shape.n, shape.k});
    const auto gemm = [data] {
        return course::half_matmul::Gemm<__nv_bfloat16>{.a = data->a(), .b = data->b(), .c = data->c()};
    };
    course::Case result =
        course::half_matmul::make_case_of<__nv_bfloat16>(day41::versions().last(1), shape, gemm);
    result.spoil = [data] { data->spoil(); };
    result.verify = [data] { return data->verify(); };
    return result;
}

course::RandomProblem random_product(course::Draw& draw) {
    const auto [kind, size] = course::draw_product(draw);
    return {kind, size, [size = size] { return make_sweep_case(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day41_hopper_matmul",
        .title = "C = A B with TMA and wgmma, 16-bit operands; size: m x n x k",
        .default_size = {256, 256, 256},
        .bench_sizes = course::squares({512, 1024, 2048, 4096, 8192}),
        .sweep_sizes = course::random_matmuls(),
        .make_cases = {make_case<__nv_bfloat16>, make_case<__half>, day41::make_rounded_case<__nv_bfloat16>,
                       day41::make_rounded_case<__half>},
        .sweep_cases = {make_sweep_case},
        .sweep_repeats = course::kSweepRepeats,
        .distributions = {{.name = "bfloat16",
                           .text = course::kProductsText,
                           .most = std::size_t{1} << 38,
                           .most_on_cpu = 1 << 22,
                           .ours = {day41::versions().back().name},
                           .draw = random_product}}};
    return course::run_program(program, argc, argv);
}
