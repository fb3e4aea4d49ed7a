// Day 50's program: every version on all GPUs, verified and timed, beside one GPU alone.
//
//     day50_multi_gpu --size NXxNYxNZxSTEPS [--ranks N]
//     day50_multi_gpu --jacobi --size COLUMNSxROWSxSTEPS [--every N] [--tolerance T]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/require.hpp"
#include "jacobi.hpp"
#include "multi_gpu.hpp"

namespace {

using day50::Domain;
using day50::Extents;

// On the CPU, before the stand-in reads it: two devices.
const int devices_are_set = setenv("CUDA_ON_CPU_DEVICES", "2", 0);

std::vector<int> devices_for(std::size_t ranks) {
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    std::vector<int> devices(ranks == 0 ? static_cast<std::size_t>(count) : ranks);
    for (std::size_t r = 0; r < devices.size(); ++r)
        devices[r] = static_cast<int>(r) % count;
    return devices;
}

// Updates of a cell. With more of them, one GPU is the reference, as a CPU would take minutes.
constexpr double kMostOnCpu = 2e9;

std::span<const std::uint32_t> bits(const std::vector<float>& values) {
    return {reinterpret_cast<const std::uint32_t*>(values.data()), values.size()};
}

struct Data {
    Data(const Extents& e, unsigned s, std::size_t ranks)
        : extents(e), steps(s), one(e, devices_for(1)), all(e, devices_for(ranks)) {
        const std::vector<float> in =
            course::make_data<float>(e.cells(), course::DataPattern::kSignedUniform, 50);
        one.copy_from(in);
        all.copy_from(in);
        if (static_cast<double>(e.cells()) * steps <= kMostOnCpu) {
            expected = day50::steps_on_cpu(e, in, steps);
        } else {
            course::find_version(day50::versions(), "one_gpu").launcher(one, steps, nullptr);
            expected = one.to_host();
        }
    }
    Domain& domain_of(const std::string& version) { return version == "one_gpu" ? one : all; }

    // Bit for bit.
    course::VerifyResult verify(const std::string& version) {
        const std::vector<float> got = domain_of(version).to_host();
        return course::verify_exact(bits(got), bits(expected));
    }

    Extents extents;
    unsigned steps;
    Domain one;
    Domain all;
    std::vector<float> expected;
};

course::Case make_case(const course::Dims& size, std::size_t ranks) {
    course::require(size.size() == 4 && size[3] >= 1 && size[3] <= 1000, "size has ", size.size(),
                    " numbers; expected four, nx x ny x nz x steps with 1 to 1000 steps, for example "
                    "64x64x64x4");
    const Extents extents{size[0], size[1], size[2]};
    const auto steps = static_cast<unsigned>(size[3]);
    const auto data = std::make_shared<Data>(extents, steps, ranks);
    course::UsualCase<Data> usual(fmt::format("25-point {}x{}x{}x{} on {} GPUs", extents.nx, extents.ny,
                                              extents.nz, steps, data->all.ranks().size()),
                                  "float", data);
    usual.also_spoil([](Data& d) {
        d.one.spoil();
        d.all.spoil();
    });
    const day50::Problem one = day50::problem_of(data->one, steps);
    const day50::Problem all = day50::problem_of(data->all, steps);
    for (const day50::Version& version : day50::versions()) {
        const std::vector<day50::Version> list{version};
        usual.versions(
            list, version.name == "one_gpu" ? one : all,
            [](const day50::Version& v, Data& d, cudaStream_t stream) {
                v.launcher(d.domain_of(v.name), d.steps, stream);
            },
            [](const day50::Version& v, Data& d) { return d.verify(v.name); });
    }
    return usual.result;
}

// --- Jacobi's method -----------------------------------------------------------------------------

struct JacobiOptions {
    unsigned every = 10;
    double tolerance = 0.05;
};

// A plate whose first row is hot.
std::vector<float> plate(const Extents& e) {
    std::vector<float> grid(e.cells());
    std::fill_n(grid.begin(), e.nx, 1.0f);
    return grid;
}

struct JacobiData {
    JacobiData(const Extents& e, const day50::Stop& s, std::size_t ranks)
        : stop(s), one(e, devices_for(1)), all(e, devices_for(ranks)), sums_of_one(one), sums_of_all(all) {
        const std::vector<float> in = plate(e);
        one.copy_from(in);
        all.copy_from(in);
        if (static_cast<double>(e.cells()) * s.most_steps <= kMostOnCpu) {
            grid = in;
            expected = day50::jacobi_on_cpu(e, grid, s);
        } else {
            expected = day50::jacobi_versions().front().launcher(one, sums_of_one, s, nullptr);
            grid = one.to_host();
        }
    }
    Domain& domain_of(const day50::JacobiVersion& version) {
        return &version == &day50::jacobi_versions().front() ? one : all;
    }

    void run(const day50::JacobiVersion& version) {
        Domain& domain = domain_of(version);
        result = version.launcher(domain, &domain == &one ? sums_of_one : sums_of_all, stop, nullptr);
        CUDA_CHECK(cudaStreamSynchronize(nullptr));
    }

    // Bit for bit. The number of steps is compared as one more element.
    course::VerifyResult verify(const day50::JacobiVersion& version) {
        const auto with_steps = [](const std::vector<float>& values, unsigned steps) {
            std::vector<std::uint32_t> elements(bits(values).begin(), bits(values).end());
            elements.push_back(steps);
            return elements;
        };
        return course::verify_exact(with_steps(domain_of(version).to_host(), result.steps),
                                    with_steps(grid, expected.steps));
    }

    day50::Stop stop;
    Domain one;
    Domain all;
    day50::RowSums sums_of_one;
    day50::RowSums sums_of_all;
    day50::JacobiResult expected;
    day50::JacobiResult result;
    std::vector<float> grid;
};

// The host waits for norms, so its clock is used.
course::Case make_jacobi_case(const course::Dims& size, std::size_t ranks, const JacobiOptions& options) {
    course::require(size.size() == 3 && size[2] >= 1 && size[2] <= 1'000'000, "size has ", size.size(),
                    " numbers; expected three, columns x rows x steps with 1 to 1000000 steps, for example "
                    "64x48x400");
    const auto data = std::make_shared<JacobiData>(
        day50::grid_2d(size[0], size[1]),
        day50::Stop{static_cast<unsigned>(size[2]), options.every, options.tolerance}, ranks);
    course::UsualCase<JacobiData> usual(
        fmt::format("Jacobi {}x{}x{} on {} GPUs", size[0], size[1], size[2], data->all.ranks().size()),
        "float", data);
    usual.also_spoil([](JacobiData& d) {
        d.one.spoil();
        d.all.spoil();
        d.result = {};
    });
    for (const day50::JacobiVersion& version : day50::jacobi_versions()) {
        const day50::Problem problem = day50::problem_of(data->domain_of(version), data->expected.steps);
        usual.add({.name = version.name,
                   .launch = [data, &version](cudaStream_t) { data->run(version); },
                   .work = version.work(problem),
                   .cannot_run = version.cannot_run(problem),
                   .on_host = true,
                   .drives_device = true,
                   .verify = [data, &version] { return data->verify(version); }});
    }
    usual.result.comment = [data](std::span<const course::Record>) {
        return fmt::format("Stopped after {} of at most {} steps: the norm of the residual is {:.4g}.\n",
                           data->expected.steps, data->stop.most_steps, data->expected.norm);
    };
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t ranks = 0;
    JacobiOptions jacobi;
    course::Program program{
        .day = "day50_multi_gpu",
        .title = "steps of a 25-point stencil over a grid of nx x ny x nz floats on several GPUs",
        .default_size = {64, 48, 40, 4},
        .bench_sizes = {{128, 128, 128, 100},
                        {256, 256, 256, 100},
                        {512, 512, 512, 20},
                        {1024, 1024, 1024, 10}},
        .make_cases = {[&ranks](const course::Dims& size) { return make_case(size, ranks); }},
        .add_options = [&ranks, &jacobi](CLI::App& app, course::Program& shown) {
            app.add_option("--ranks", ranks, "how many slabs; 0: one for each GPU")->check(CLI::Range(0, 64));
            app.add_flag_callback(
                "--jacobi",
                [&] {
                    shown.title = "Jacobi's method on a grid of columns x rows floats on several GPUs";
                    shown.default_size = {64, 48, 400};
                    shown.bench_sizes = {{1024, 1024, 1000}, {4096, 4096, 1000}, {16384, 16384, 200}};
                    shown.make_cases = {
                        [&](const course::Dims& size) { return make_jacobi_case(size, ranks, jacobi); }};
                },
                "Jacobi's method, which stops by itself, instead of the 25-point stencil");
            app.add_option("--every", jacobi.every, "with --jacobi: a norm in each N-th step")
                ->check(CLI::Range(1u, 1'000'000u));
            app.add_option("--tolerance", jacobi.tolerance, "with --jacobi: the norm at which it stops")
                ->check(CLI::NonNegativeNumber);
        }};
    return course::run_program(program, argc, argv);
}
