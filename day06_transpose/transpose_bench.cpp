// Day 6's program: every version verified and timed on words and on 16-bit elements, beside cuBLAS
// and a copy of the same bytes.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "transpose.hpp"
#include "transpose_peer.hpp"
#include "transpose_plain_loop.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

// Numbers from -1000 to 1000, as floats, as cuBLAS may do arithmetic with them; and 16 random bits.
template <class T>
std::vector<T> make_elements(std::size_t count) {
    course::Random random(6);
    std::vector<T> elements(count);
    for (T& element : elements) {
        if constexpr (sizeof(T) == 4)
            element = std::bit_cast<T>(static_cast<float>(random.integer(-1000, 1000)));
        else
            element = static_cast<T>(random.next());
    }
    return elements;
}

template <class T>
struct Data {
    Data(std::size_t rows_of_in, std::size_t cols_of_in)
        : rows(rows_of_in),
          cols(cols_of_in),
          elements(make_elements<T>(rows * cols)),
          expected(rows * cols),
          in(rows * cols),
          copy(rows * cols),
          out(rows * cols) {
        in.copy_from(elements);
        day06::transpose_on_cpu(elements, rows, cols, expected);
    }

    DeviceMatrix<const T> in_view() const { return in.matrix(rows, cols); }
    DeviceMatrix<T> out_view() { return out.matrix(cols, rows); }

    std::size_t rows, cols;
    std::vector<T> elements, expected;
    DeviceBuffer<T> in, copy;
    course::GuardedBuffer<T> out;
};

template <class T>
course::Case make_case(const course::Dims& size) {
    if (size.size() != 2) throw std::invalid_argument("expected rows x columns, for example 512x384");
    using Inputs = Data<T>;
    const auto data = std::make_shared<Inputs>(size[0], size[1]);
    const day06::Problem problem = day06::problem_of<T>(data->in_view(), data->out_view());
    course::UsualCase<Inputs> usual("transpose " + std::to_string(size[0]) + "x" + std::to_string(size[1]) +
                                        (sizeof(T) == 2 ? " 16-bit" : ""),
                                    sizeof(T) == 2 ? "uint16" : "uint32", data);
    const auto verify = [](const Inputs& d, const auto& got) {
        return course::verify_exact(got, d.expected, d.rows);
    };
    usual.output(&Inputs::out, verify);
    const auto launch = [](const auto& version, Inputs& d, cudaStream_t stream) {
        version.launcher(d.in_view(), d.out_view(), stream);
    };
    usual.versions(day06::versions(), problem, launch);
    if (std::min(size[0], size[1]) <= 32) usual.versions(day06::skinny_versions(), problem, launch);
    if constexpr (sizeof(T) == 4) {
        course::Contestant geam =
            day06::cublas_geam({course::DeviceSpan<const float>::from_device_pointer(
                                    reinterpret_cast<const float*>(data->in.data()), data->in.size()),
                                size[0], size[1]},
                               {course::DeviceSpan<float>::from_device_pointer(
                                    reinterpret_cast<float*>(data->out.data()), data->out.size()),
                                size[1], size[0]});
        geam.work = day06::versions().front().work(problem);
        usual.add(geam);
    }
    const std::size_t count = size[0] * size[1];
    usual.plain_loop(
        day06::versions().front().work(problem), static_cast<double>(count) * 5e-9,
        [count] { return course::unwritten<T>(count); },
        [](const Inputs& d, std::span<T> out, int threads) {
            day06::transpose_plainly(d.elements, d.rows, d.cols, out, threads);
        },
        verify);
    usual.limit_copy(&Inputs::in, &Inputs::copy);
    return usual.result;
}

course::RandomProblem random_matrix(course::Draw& draw) {
    const auto [kind, size] = course::draw_matrix(draw);
    if (draw.one_of({true, false}))
        return {kind, size, [size = size] { return make_case<std::uint32_t>(size); }};
    return {kind, size, [size = size] { return make_case<std::uint16_t>(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day06_transpose",
        .title = "out[col][row] = in[row][col]; size: rows x columns of in",
        .default_size = {401, 999},
        .bench_sizes = {{1024, 1024},
                        {8192, 8192},
                        {4001, 9999},
                        {1000003, 37},
                        {37, 1000003},
                        {10000019, 3},
                        {3, 10000019}},
        .make_cases = {make_case<std::uint32_t>, make_case<std::uint16_t>},
        .distributions = {
            {.name = "matrices",
             .text = "rows x columns of 32 or 16 bits: any, square, few long rows, many short rows, odd",
             .most = std::size_t{1} << 27,
             .most_on_cpu = 1 << 18,
             .ours = {"skinny", day06::versions().back().name},
             .draw = random_matrix,
             .beside = course::Role::kLimit}}};
    return course::run_program(program, argc, argv);
}
