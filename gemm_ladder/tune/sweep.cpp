// Step 12 with many sets of parameters (BM BN BK, WM WN, TM TN, stages): which of them matter?
// scripts/draw_tiles.py draws the records.
//
//     gemm_ladder_tiles --size 130x260x68
//     gemm_ladder_tiles --bench --json docs/measurements/h200/gemm_ladder_tiles.jsonl
//     gemm_ladder_tiles --size 2048x2048x2048 --json tiles_2048.jsonl
#include "sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../sgemm_device_reference.hpp"
#include "common/bench/occupancy.hpp"
#include "common/bench/program.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"

namespace {

// All parts of the sweep: CMakeLists.txt says how many there are, and the step between their sets.
template <std::size_t... PART>
std::vector<gemm::SweptTile> all_parts(std::index_sequence<PART...>) {
    std::vector<gemm::SweptTile> tiles;
    const auto add = [&](std::vector<gemm::SweptTile> part) {
        std::ranges::move(part, std::back_inserter(tiles));
    };
    (add(gemm::part_of_sweep<int{PART}, COURSE_SWEEP_STEP>()), ...);
    return tiles;
}

const std::vector<gemm::SweptTile>& swept_tiles() {
    static const auto tiles = all_parts(std::make_index_sequence<COURSE_SWEEP_PARTS>());
    return tiles;
}

struct Data {
    explicit Data(const gemm::Shape& s) : shape(s), c(s.m * s.n), product(s.m * s.n), magnitude(s.m * s.n) {
        // Small whole numbers: every sum is exact, so only equal is right.
        const auto make = [](std::size_t size, std::uint64_t seed) {
            course::Random random(seed);
            std::vector<float> values(size);
            for (float& value : values)
                value = static_cast<float>(random.integer(-8, 8));
            return course::DeviceBuffer<float>(std::span<const float>(values));
        };
        a = make(s.m * s.k, 1);
        b = make(s.k * s.n, 2);
        gemm::multiply_on_device(shape, 1, std::as_const(a).span(), std::as_const(b).span(), 0, product,
                                 magnitude);
    }

    gemm::Sgemm gemm() {
        return {.a = std::as_const(a).matrix(shape.m, shape.k),
                .b = std::as_const(b).matrix(shape.k, shape.n),
                .c = c.matrix(shape.m, shape.n)};
    }

    course::VerifyResult verify() {
        course::VerifyResult result = course::verify(c.to_host(), product, {.factor = 0}, magnitude, shape.n);
        result.damage = c.damage();
        return result;
    }

    gemm::Shape shape;
    course::DeviceBuffer<float> a, b;
    course::GuardedBuffer<float> c;
    std::vector<double> product, magnitude;
};

std::string why_not(const gemm::SweptTile& tile) {
    const std::size_t most = course::multiprocessor_limits().shared_bytes_of_block;
    if (tile.shared_bytes <= most) return "";
    return fmt::format("needs {} bytes of shared memory; a block of this GPU has at most {}",
                       tile.shared_bytes, most);
}

course::Case make_case(const course::Dims& size) {
    if (size.size() != 3) throw std::invalid_argument("expected m x n x k, for example 512x512x512");
    constexpr std::size_t kMostExact = std::size_t{1} << 18;  // 64 k <= 2^24
    if (size[1] % 4 != 0 || size[2] % 4 != 0 || size[2] > kMostExact) {
        throw std::invalid_argument(
            fmt::format("{}: expected an n and a k that are multiples of 4, and k at most {}",
                        fmt::join(size, "x"), kMostExact));
    }
    const auto data = std::make_shared<Data>(gemm::Shape{size[0], size[1], size[2]});
    const course::Work work = gemm::steps().front().work(data->shape);
    course::Case result{.problem = fmt::format("sgemm {}", fmt::join(size, "x")), .dtype = "float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->verify(); };
    for (const gemm::SweptTile& tile : swept_tiles()) {
        result.contestants.push_back(
            {.name = tile.name,
             .launch = [data, &tile](cudaStream_t stream) { tile.kernel.launch(data->gemm(), stream); },
             .work = work,
             .cannot_run = why_not(tile),
             .resources = tile.kernel.resources});
    }
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "gemm_ladder_tiles",
                                  .title = "Step 12 with other tiles: C = A B, FP32; size: m x n x k",
                                  .default_size = {130, 260, 68},
                                  .bench_sizes = {{4096, 4096, 4096}},
                                  .make_cases = {make_case}};
    return course::run_program(program, argc, argv);
}
