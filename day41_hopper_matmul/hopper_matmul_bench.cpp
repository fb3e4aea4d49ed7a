// Day 41's program: every version and cuBLAS, for bfloat16 and half, verified and timed side by
// side. Size: m x n x k.
//
//     day41_hopper_matmul --sweep       twenty shapes, for `realigned` and cuBLAS
#include <vector>

#include "common/bench/half_matmul_program.hpp"
#include "common/bench/program.hpp"
#include "hopper_matmul.hpp"

namespace {

template <class T>
course::Case make_case(const course::Dims& size) {
    return course::half_matmul::make_case<T>(day41::versions(), size, false);
}

// The last version, which chooses a tile and takes any alignment.
course::Case make_sweep_case(const course::Dims& size) {
    return course::half_matmul::make_case<__nv_bfloat16>(day41::versions().last(1), size, false);
}

// Squares; layers of language models; few rows, where a matrix is read once; long and short sums;
// no round number.
const std::vector<course::Dims> kSweepSizes = {
    {512, 512, 512},    {1024, 1024, 1024},  {1536, 1536, 1536}, {2048, 2048, 2048},  {3072, 3072, 3072},
    {4096, 4096, 4096}, {6144, 6144, 6144},  {8192, 8192, 8192}, {2048, 6144, 4096},  {4096, 14336, 4096},
    {64, 4096, 4096},   {128, 8192, 8192},   {256, 4096, 14336}, {1024, 1024, 16384}, {2048, 2048, 8192},
    {4096, 4096, 512},  {4096, 4096, 14336}, {3000, 3000, 3000}, {1000, 2000, 3000},  {2047, 2049, 2051}};

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "day41_hopper_matmul",
                                  .title = "C = A B with TMA and wgmma, 16-bit factors; size: m x n x k",
                                  .default_size = {256, 256, 256},
                                  .bench_sizes = course::squares({512, 1024, 2048, 4096, 8192}),
                                  .sweep_sizes = kSweepSizes,
                                  .make_cases = {make_case<__nv_bfloat16>, make_case<__half>},
                                  .sweep_cases = {make_sweep_case}};
    return course::run_program(program, argc, argv);
}
