// Day 50's program: every version on all GPUs, verified and timed, beside one GPU alone.
//
//     day50_multi_gpu --size NXxNYxNZxSTEPS [--ranks N]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/require.hpp"
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

}  // namespace

int main(int argc, char** argv) {
    std::size_t ranks = 0;
    course::Program program{
        .day = "day50_multi_gpu",
        .title = "steps of a 25-point stencil over a grid of nx x ny x nz floats on several GPUs",
        .default_size = {64, 48, 40, 4},
        .bench_sizes = {{128, 128, 128, 100},
                        {256, 256, 256, 100},
                        {512, 512, 512, 20},
                        {1024, 1024, 1024, 10}},
        .make_cases = {[&ranks](const course::Dims& size) { return make_case(size, ranks); }},
        .add_options = [&ranks](CLI::App& app, course::Program&) {
            app.add_option("--ranks", ranks, "how many slabs; 0: one for each GPU")->check(CLI::Range(0, 64));
        }};
    return course::run_program(program, argc, argv);
}
