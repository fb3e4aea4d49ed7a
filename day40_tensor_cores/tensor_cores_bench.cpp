// Day 40's program: every version and cuBLAS, for bfloat16 and half, verified and timed side by
// side. Size: m x n x k.
#include "common/bench/half_matmul_program.hpp"
#include "common/bench/program.hpp"
#include "tensor_cores.hpp"

namespace {

template <class T>
course::Case make_case(const course::Dims& size) {
    return course::half_matmul::make_case<T>(day40::versions(), size, true);
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "day40_tensor_cores",
                                  .title = "C = A B on tensor cores, 16-bit operands; size: m x n x k",
                                  .default_size = {256, 256, 256},
                                  .bench_sizes = course::squares({512, 1024, 2048, 4096, 8192}),
                                  .make_cases = {make_case<__nv_bfloat16>, make_case<__half>}};
    return course::run_program(program, argc, argv);
}
