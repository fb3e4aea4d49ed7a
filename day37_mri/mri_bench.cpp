// Day 37's program: every version verified, at some of the voxels, and timed.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/gridding.hpp"
#include "beyond/gridding_verify.hpp"
#include "beyond/reconstruction_bench.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "mri.hpp"
#include "mri_peer.hpp"
#include "mri_plain_loop.hpp"
#include "mri_verify.hpp"

namespace {

using course::DeviceBuffer;
using day37::Grid;

// The reference takes seconds for a million voxels, so at most so many are compared; fewer if there
// are many samples.
constexpr std::size_t kCompared = 4096;
constexpr std::size_t kComparedWaves = 100'000'000;

std::size_t compared_voxels(std::size_t samples) {
    return std::clamp<std::size_t>(kComparedWaves / std::max<std::size_t>(samples, 1), 64, kCompared);
}

struct Data {
    Data(const Grid& voxel_grid, std::size_t samples)
        : grid(voxel_grid),
          k(day37::random_samples(samples, grid, 37)),
          positions(day37::grid_positions(grid)),
          stride(positions.size() / compared_voxels(samples) | 1),
          re(positions.size()),
          im(positions.size()),
          workspace({grid, samples <= day37::kMostDirect ? samples : 0}) {
        for (const auto* values : {&k.kx, &k.ky, &k.kz, &k.phi_re, &k.phi_im, &k.d_re, &k.d_im})
            of_samples.emplace_back(std::span(*values));
        for (const auto* values : {&positions.x, &positions.y, &positions.z})
            of_voxels.emplace_back(std::span(*values));
        expected = day37::sums_on_cpu(
            k, day37::HostPositions{day37::every(positions.x, stride), day37::every(positions.y, stride),
                                    day37::every(positions.z, stride)});
    }

    day37::KSpace kspace() const {
        const auto& a = of_samples;
        return {a[0].span(), a[1].span(), a[2].span(), a[3].span(), a[4].span(), a[5].span(), a[6].span()};
    }
    day37::Voxels voxels() const {
        return {of_voxels[0].span(), of_voxels[1].span(), of_voxels[2].span(), grid};
    }

    Grid grid;
    day37::HostSamples k;
    day37::HostPositions positions;
    std::size_t stride;
    day37::Expected expected;
    std::vector<DeviceBuffer<float>> of_samples, of_voxels;
    course::GuardedBuffer<float> re, im;
    day37::Workspace workspace;
};

// `rotation` has a larger bound (beyond/runs.cuh), which is good for all versions.
constexpr day37::ErrorOfTerm kErrorOfVersions{.fixed = 10 + 30};

course::VerifyResult verify(const Data& data, const std::vector<float>& re, const std::vector<float>& im,
                            const day37::Expected& expected,
                            const day37::ErrorOfTerm& error = kErrorOfVersions) {
    course::VerifyResult result = day37::verify_sums(
        day37::every(re, data.stride), day37::every(im, data.stride), expected, data.k.size(), error);
    result.damage += day37::unwritten_values(re) + day37::unwritten_values(im);
    return result;
}

std::string name_of(const day37::Problem& problem) {
    return day37::name_of(problem.grid) + " " + std::to_string(problem.samples) + " samples";
}

// The bound of a sum is that of its terms times the sum of |mu|, which grows with their number. The
// sums of random samples grow with its root, and so do their errors, each of which has a phase of
// its own: six standard deviations take the place of the sum. Otherwise the bound for a million
// samples would be larger than the results.
day37::Expected with_weight_of_random_errors(day37::Expected expected, const day37::HostSamples& k) {
    double squares = 0;
    for (std::size_t m = 0; m < k.size(); ++m)
        squares += (std::norm(std::complex<double>(k.phi_re[m], k.phi_im[m])) *
                    std::norm(std::complex<double>(k.d_re[m], k.d_im[m])));
    for (std::size_t n = 0; n < expected.weight.size(); ++n) {
        const double share = std::min(1.0, 6 * std::sqrt(squares) / expected.weight[n]);
        expected.weight[n] *= share;
        expected.phase_weight[n] *= share;
    }
    return expected;
}

// Approximate sums (beyond/gridding.cuh), by windows of kWidth points, within the bound of the
// window. They are not counted as operations of all waves, which would be more than a GPU can do.
template <int kWidth>
course::Case make_gridded_case(const course::Dims& size) {
    const day37::Problem problem = day37::problem_of(size);
    const Grid& grid = problem.grid;
    course::UsualCase<Data> usual("mri gridded w" + std::to_string(kWidth) + " " + name_of(problem), "float",
                                  std::make_shared<Data>(grid, problem.samples));
    usual.also_spoil([](Data& data) {
        data.re.spoil();
        data.im.spoil();
    });
    const course::Work work = day37::versions().front().work(problem);
    const auto expected = std::make_shared<std::optional<day37::SpreadOnCpu>>();
    // The points are eight times the voxels, so they are made only for a version that runs.
    for (const day37::NamedSpreading& spreading : day37::kSpreadings)
        usual.add(
            {.name = spreading.name,
             .work = {.bytes = work.bytes, .written = work.written},
             .cannot_run = day37::why_no_gridding(grid),
             .prepare = [data = usual.data, how = spreading.how, expected](course::Contestant& contestant) {
                 const auto gridding =
                     std::make_shared<day37::Gridding>(data->grid, data->grid, data->k.size(), kWidth);
                 contestant.launch = [data, gridding, how](cudaStream_t stream) {
                     gridding->sum(data->kspace(), how, {data->re.span(), data->im.span()}, stream);
                 };
                 contestant.verify = [data, expected, points = gridding->extents()] {
                     if (!*expected)
                         *expected = day37::spread_on_cpu(data->k, data->grid, data->grid, points, kWidth);
                     const day37::Expected sums = with_weight_of_random_errors(data->expected, data->k);
                     const day37::ErrorOfTerm error = day37::gridding_error(
                         **expected, points, data->k.size(), kWidth, sums.weight.front());
                     course::VerifyResult result =
                         verify(*data, data->re.to_host(), data->im.to_host(), sums, error);
                     result.damage += data->re.damage() + data->im.damage();
                     return result;
                 };
             }});
    usual.result.derive_figures = [samples = problem.samples](std::span<course::Record> records) {
        for (course::Record& record : records)
            if (record.measurement)
                record.figures.push_back({"million samples/s", static_cast<double>(samples) * 1e-3 /
                                                                   record.measurement->ms.median});
    };
    return usual.result;
}

course::Case make_case(const course::Dims& size) {
    const day37::Problem problem = day37::problem_of(size);
    const Grid& grid = problem.grid;
    const std::size_t samples = problem.samples;
    course::UsualCase<Data> usual("mri " + name_of(problem), "float", std::make_shared<Data>(grid, samples));
    usual.output(&Data::re, [](Data& data, const std::vector<float>& re) {
        course::VerifyResult result = verify(data, re, data.im.to_host(), data.expected);
        result.damage += data.im.damage();
        return result;
    });
    usual.also_spoil([](Data& data) { data.im.spoil(); });
    usual.versions(day37::versions(), problem, [](const auto& version, Data& data, cudaStream_t stream) {
        version.launcher(data.kspace(), data.voxels(), {data.re.span(), data.im.span()}, data.workspace,
                         stream);
    });
    const course::Work work = day37::versions().front().work(problem);
    usual.add({.name = "cublas_separable",
               .role = course::Role::kPeer,
               .work = work,
               .cannot_run = day37::why_no_cublas(),
               .prepare = [data = usual.data](course::Contestant& contestant) {
                   contestant.launch =
                       day37::make_cublas_sum(data->kspace(), data->grid, {data->re.span(), data->im.span()});
               }});
    usual.plain_loop(
        work, static_cast<double>(grid.count()) * static_cast<double>(samples) * 10e-9,
        [count = grid.count()] { return course::unwritten<float>(2 * count); },
        [](const Data& data, std::span<float> out, int threads) {
            const std::size_t count = out.size() / 2;
            day37::sum_plainly(data.k, data.positions, out.first(count), out.last(count), threads);
        },
        [](const Data& data, const std::vector<float>& out) {
            const auto middle = out.begin() + static_cast<std::ptrdiff_t>(out.size() / 2);
            return verify(data, {out.begin(), middle}, {middle, out.end()}, data.expected);
        });
    if (samples > day37::kMostDirect)
        for (course::Contestant& contestant : usual.result.contestants)
            contestant.cannot_run =
                "more than " + std::to_string(day37::kMostDirect) + " samples would take long";
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day37_mri",
        .title = "sums of the waves of M samples at each voxel of a grid",
        .default_size = {16, 16, 4, 1200},
        .bench_sizes = {{64, 64, 64, 3000}, {128, 128, 128, 3000}, {64, 64, 64, 1'000'000}},
        .make_cases = {make_case, make_gridded_case<4>, make_gridded_case<6>, day37::make_point_spread_case,
                       day37::make_product_case, day37::make_gradients_case}};
    return course::run_program(program, argc, argv);
}
