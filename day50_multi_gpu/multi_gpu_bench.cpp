// Day 50's program: every version on all GPUs, verified and timed, beside one GPU alone.
//
//     day50_multi_gpu --size NXxNYxNZxSTEPS [--ranks N]
//     day50_multi_gpu --timeline FILE
//     day50_multi_gpu --jacobi --size COLUMNSxROWSxSTEPS [--every N] [--tolerance T]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "beyond/jacobi.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/require.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/device_buffer.hpp"
#include "domain.hpp"
#include "multi_gpu.hpp"
#include "timeline.hpp"

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

// The right bits of each slab, on the GPU of its rank: a grid of 4 GiB is compared there.
class ExpectedSlabs {
  public:
    explicit ExpectedSlabs(const Domain& domain) : domain_(domain) {
        for (const day50::Rank& rank : domain.ranks()) {
            const day50::OnDevice on(rank.device);
            of_rank_.emplace_back(rank.slab.planes * domain.extents().plane());
        }
    }

    void copy_from(const std::vector<float>& grid) {
        for (std::size_t r = 0; r < of_rank_.size(); ++r)
            of_rank_[r].copy_from(bits(grid).subspan(first_cell(r), of_rank_[r].size()));
    }
    // From `out` of a domain of one rank, from GPU to GPU.
    void copy_from(const Domain& one) {
        const day50::Rank& from = one.ranks()[0];
        const float* const own = from.out + day50::kRadius * one.extents().plane();
        for (std::size_t r = 0; r < of_rank_.size(); ++r)
            CUDA_CHECK(cudaMemcpyPeer(of_rank_[r].data(), domain_.ranks()[r].device, own + first_cell(r),
                                      from.device, of_rank_[r].bytes()));
    }

    // Bit for bit. The first rank that is wrong is reported.
    course::VerifyResult verify() const {
        course::VerifyResult result;
        for (std::size_t r = 0; r < of_rank_.size() && result.ok(); ++r) {
            const day50::Rank& rank = domain_.ranks()[r];
            const day50::OnDevice on(rank.device);
            const float* const own = rank.out + day50::kRadius * domain_.extents().plane();
            const auto got = course::DeviceSpan<const std::uint32_t>::from_device_pointer(
                reinterpret_cast<const std::uint32_t*>(own), of_rank_[r].size());
            const std::size_t before = result.compared;
            result = course::verify_exact_on_device(got, of_rank_[r].span());
            result.compared += before;
        }
        return result;
    }

  private:
    std::size_t first_cell(std::size_t r) const {
        return domain_.ranks()[r].slab.first * domain_.extents().plane();
    }

    const Domain& domain_;
    std::vector<course::DeviceBuffer<std::uint32_t>> of_rank_;
};

struct Data {
    Data(const Extents& e, unsigned s, std::size_t ranks)
        : extents(e),
          steps(s),
          one(e, devices_for(1)),
          all(e, devices_for(ranks)),
          expected_of_one(one),
          expected_of_all(all) {
        const std::vector<float> in =
            course::make_data<float>(e.cells(), course::DataPattern::kSignedUniform, 50);
        one.copy_from(in);
        all.copy_from(in);
        if (static_cast<double>(e.cells()) * steps <= kMostOnCpu) {
            const std::vector<float> grid = day50::steps_on_cpu(e, in, steps);
            expected_of_one.copy_from(grid);
            expected_of_all.copy_from(grid);
        } else {
            course::find_version(day50::versions(), "one_gpu").launcher(one, steps, nullptr);
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
            expected_of_one.copy_from(one);
            expected_of_all.copy_from(one);
        }
    }
    Domain& domain_of(const std::string& version) { return version == "one_gpu" ? one : all; }

    course::VerifyResult verify(const std::string& version) {
        return version == "one_gpu" ? expected_of_one.verify() : expected_of_all.verify();
    }

    Extents extents;
    unsigned steps;
    Domain one;
    Domain all;
    ExpectedSlabs expected_of_one;
    ExpectedSlabs expected_of_all;
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
    usual.add(
        {.name = "no_exchange",
         .role = course::Role::kLimit,
         .launch =
             [data](cudaStream_t stream) { day50::sweep_without_exchange(data->all, data->steps, stream); },
         .work = day50::versions()[0].work(all)});
    return usual.result;
}

// --- The picture of overlap ----------------------------------------------------------------------

// Three steps of the versions whose sweeps and copies the host launches. An array for each of them:
// [rank, stream, what, begin, end], in us.
void write_timeline(const std::string& file, const course::Dims& size, std::size_t ranks) {
    Domain domain({size[0], size[1], size[2]}, devices_for(ranks));
    domain.copy_from(
        course::make_data<float>(domain.extents().cells(), course::DataPattern::kSignedUniform, 50));
    nlohmann::ordered_json versions;
    for (const char* name : {"peer_copy", "peer_copy_overlapped", "direct_stores"}) {
        const day50::Version& version = course::find_version(day50::versions(), name);
        if (!version.cannot_run(day50::problem_of(domain, 3)).empty()) continue;
        version.launcher(domain, 3, nullptr);
        CUDA_CHECK(cudaStreamSynchronize(nullptr));
        day50::Timeline timeline(domain);
        version.launcher(domain, 3, nullptr);
        for (const day50::Timeline::Bar& bar : timeline.bars())
            versions[name].push_back({bar.rank, bar.stream, bar.what, bar.begin, bar.end});
    }
    const nlohmann::ordered_json all{{"grid", {size[0], size[1], size[2]}}, {"versions", versions}};
    course::write_file(file, all.dump() + "\n");
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
    std::string timeline;
    JacobiOptions jacobi;
    course::Program program{
        .day = "day50_multi_gpu",
        .title = "steps of a 25-point stencil over a grid of nx x ny x nz floats on several GPUs",
        .default_size = {64, 48, 40, 4},
        // Cubes, and for weak scaling twice as many planes.
        .bench_sizes = {{128, 128, 128, 100},
                        {128, 128, 256, 100},
                        {256, 256, 256, 100},
                        {256, 256, 512, 100},
                        {512, 512, 512, 20},
                        {512, 512, 1024, 20},
                        {1024, 1024, 1024, 5},
                        {1024, 1024, 2048, 5}},
        .make_cases = {[&ranks](const course::Dims& size) { return make_case(size, ranks); }},
        .add_options = [&ranks, &timeline, &jacobi](CLI::App& app, course::Program& shown) {
            app.add_option("--ranks", ranks, "how many slabs; 0: one for each GPU")->check(CLI::Range(0, 64));
            app.add_option("--timeline", timeline,
                           "write when sweeps and copies run, as JSON (scripts/plot_gpus.py draws it)");
            app.callback([&app, &shown, &timeline, &ranks] {
                if (timeline.empty()) return;
                const course::Dims size =
                    app.count("--size") == 0
                        ? shown.default_size
                        : course::parse_dims(app.get_option("--size")->as<std::string>());
                shown.finish = [size, &timeline, &ranks] { write_timeline(timeline, size, ranks); };
            });
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
