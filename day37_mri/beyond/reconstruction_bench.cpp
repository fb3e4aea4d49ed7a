#include "beyond/reconstruction_bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "beyond/gridding.hpp"
#include "beyond/gridding_verify.hpp"
#include "beyond/reconstruction.hpp"
#include "beyond/reconstruction_verify.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "mri_peer.hpp"
#include "mri_verify.hpp"

namespace day37 {

Problem problem_of(const course::Dims& size) {
    if (size.size() != 4)
        throw std::invalid_argument("size has " + std::to_string(size.size()) +
                                    " numbers; expected four, voxels in x, y and z, and samples, for "
                                    "example 64x64x64x2000");
    return {Grid{size[0], size[1], size[2]}, size[3]};
}

std::string name_of(const Grid& grid) {
    return std::to_string(grid.nx) + "x" + std::to_string(grid.ny) + "x" + std::to_string(grid.nz) +
           " voxels";
}

std::string why_no_gridding(const Grid& grid) {
    for (const std::size_t n : {grid.nx, grid.ny, grid.nz})
        if (n < 1 || n > Gridding::kMostExtent) return "gridding is for 1 to 2048 voxels along each axis";
    if (16 * grid.count() > Gridding::kMostPoints) return "gridding is for at most 2^26 voxels";
    return why_no_fft();
}

namespace {

using course::DeviceBuffer;
using course::Work;

constexpr std::size_t kCompared = 4096;
constexpr std::size_t kFewSamples = 64;
constexpr int kSteps = 10;
constexpr std::size_t kMostPoints = std::size_t{1} << 28;

bool is_for(const Problem& problem) {
    return problem.samples >= 1 && problem.samples <= kMostDirect &&
           std::ranges::all_of(std::array{problem.grid.nx, problem.grid.ny, problem.grid.nz},
                               [](std::size_t n) { return n >= 1 && n <= NormalOperator::kMostExtent; });
}

std::size_t stride_of(std::size_t count) {
    return count / kCompared | 1;
}

// Why a case does not run, or "": the arrays of such a grid do not fit into the memory of a usual
// GPU.
std::string why_too_large(const char* what, const Grid& grid) {
    if (grid.count() <= kMostPoints) return "";
    return std::string(what) + " have " + std::to_string(grid.count()) +
           " points; the program runs up to 2^28";
}

// Data that the first contestant to run makes, so that a run of other versions does without.
template <class Data>
struct OnDemand {
    std::shared_ptr<Data> get() {
        if (!data) data = std::make_shared<Data>(problem.grid, problem.samples);
        return data;
    }

    Problem problem;
    std::shared_ptr<Data> data{};
};

// A case of such data, which have verify() and spoil().
template <class Data>
course::UsualCase<OnDemand<Data>> case_on_demand(const std::string& name, const Problem& problem) {
    course::UsualCase<OnDemand<Data>> usual(name, "float",
                                            std::make_shared<OnDemand<Data>>(OnDemand<Data>{problem}));
    usual.also_spoil([](OnDemand<Data>& shared) { shared.data->spoil(); });
    usual.result.verify = [shared = usual.data] { return shared->data->verify(); };
    return usual;
}

struct PointSpread {
    PointSpread(const Grid& voxels, std::size_t samples)
        : grid(voxels),
          differences(differences_of(grid)),
          k(with_d_phi(random_samples(samples, grid, 37))),
          on_device(k),
          stride(stride_of(differences.count())),
          expected(sums_on_cpu(k, difference_positions(grid, stride))),
          workspace({differences, samples}),
          re(differences.count()),
          im(differences.count()) {}

    void spoil() {
        re.spoil();
        im.spoil();
    }
    course::VerifyResult verify(const ErrorOfTerm& error = {}) const {
        const std::vector<float> all_re = re.to_host();
        const std::vector<float> all_im = im.to_host();
        course::VerifyResult result =
            verify_sums(every(all_re, stride), every(all_im, stride), expected, k.size(), error);
        result.damage += unwritten_values(all_re) + unwritten_values(all_im) + re.damage() + im.damage();
        return result;
    }

    Grid grid, differences;
    HostSamples k;
    SamplesOnDevice on_device;
    std::size_t stride;
    Expected expected;
    Workspace workspace;
    course::GuardedBuffer<float> re, im;
};

// An image F^H d of a few samples. Of random numbers, F^H F would leave next to nothing: an image
// of a million voxels has hardly a part that 64 samples see, and the result would be smaller than
// the errors that rounding may cause.
struct Operator {
    Operator(const Grid& voxels, std::size_t samples)
        : grid(voxels),
          k(random_samples(std::min(samples, kFewSamples), grid, 37)),
          on_device(k),
          image(image_on_cpu(k, grid)),
          x(std::span<const float2>(image)),
          out(grid.count()) {}

    Grid grid;
    HostSamples k;
    SamplesOnDevice on_device;
    std::vector<float2> image;
    DeviceBuffer<float2> x;
    course::GuardedBuffer<float2> out;
};

struct Product : Operator {
    Product(const Grid& voxels, std::size_t samples)
        : Operator(voxels, samples),
          expected(product_on_cpu(k, grid)),
          allowed(product_error(k, grid, image)) {}

    void spoil() { out.spoil(); }
    course::VerifyResult verify() const {
        course::VerifyResult result = verify_image(out.to_host(), expected, allowed);
        result.damage += out.damage();
        return result;
    }

    std::vector<float2> expected;
    double allowed;
};

// Of a product: x and the transform of Q are read, the result is written. A transform of L points
// takes 5 L log2 L operations. Along x only lines with voxels count, along y those of planes with
// voxels; the transforms are there and back.
Work product_work(const Grid& grid, const Grid& padded) {
    const auto lines = [](std::size_t length, std::size_t count) {
        return 10 * static_cast<double>(length * count) * std::log2(static_cast<double>(length));
    };
    const auto image = static_cast<double>(grid.count() * sizeof(float2));
    const auto points = static_cast<double>(padded.count());
    return {.bytes = 2 * image + sizeof(float) * points,
            .written = image,
            .flops = lines(padded.nx, grid.ny * grid.nz) + lines(padded.ny, padded.nx * grid.nz) +
                     lines(padded.nz, padded.nx * padded.ny) + 2 * points};
}

struct Equation : Operator {
    Equation(const Grid& voxels, std::size_t samples)
        : Operator(voxels, samples),
          lambda(static_cast<float>(grid.count()) / 8),
          check(k, grid, image, lambda, kSteps),
          normal(grid, on_device.k(), nullptr),
          gradients(grid),
          residuals(kSteps + 1) {}

    void spoil() {
        out.spoil();
        residuals.spoil();
    }
    course::VerifyResult verify() const {
        course::VerifyResult result = check.verify(out.to_host(), residuals.to_host());
        result.damage += out.damage() + residuals.damage();
        return result;
    }

    float lambda;  // so small that the last step still changes x by more than rounding may
    GradientsCheck check;
    NormalOperator normal;
    ConjugateGradients gradients;
    course::GuardedBuffer<double> residuals;
};

}  // namespace

course::Case make_point_spread_case(const course::Dims& size) {
    const Problem problem = problem_of(size);
    if (!is_for(problem)) return {};
    auto usual = case_on_demand<PointSpread>(
        "mri point spread " + name_of(problem.grid) + " " + std::to_string(problem.samples) + " samples",
        problem);
    const Grid differences = differences_of(problem.grid);
    const auto count = static_cast<double>(differences.count());
    const auto samples = static_cast<double>(problem.samples);
    // A wave: three multiply-adds for the phase, sine and cosine, and two multiply-adds, because mu
    // is real.
    const Work work{.bytes = sizeof(float) * (5 * samples + 2 * count),
                    .written = 2 * sizeof(float) * count,
                    .flops = 12 * count * samples,
                    .arithmetic = course::Arithmetic::kOther};
    const std::string too_large = why_too_large("the differences", differences);
    usual.add({.name = "separable",
               .work = work,
               .cannot_run = too_large,
               .prepare = [shared = usual.data](course::Contestant& contestant) {
                   const auto data = shared->get();
                   contestant.launch = [data](cudaStream_t stream) {
                       point_spread(data->on_device.k(), data->grid, {data->re.span(), data->im.span()},
                                    data->workspace, stream);
                   };
               }});
    for (const int width : {4, 6}) {
        // Gridding does not compute all waves, so these are not counted as its operations.
        usual.add({.name = "gridded_w" + std::to_string(width),
                   .work = {.bytes = work.bytes, .written = work.written},
                   .cannot_run = too_large.empty() ? why_no_gridding(differences) : too_large,
                   .prepare = [shared = usual.data, width](course::Contestant& contestant) {
                       const auto data = shared->get();
                       const auto gridding =
                           std::make_shared<Gridding>(data->differences, data->grid, data->k.size(), width);
                       const Grid points = gridding->extents();
                       const ErrorOfTerm error = gridding_error(
                           spread_on_cpu(data->k, data->differences, data->grid, points, width), points,
                           data->k.size(), width, data->expected.weight.front());
                       contestant.launch = [data, gridding](cudaStream_t stream) {
                           point_spread(data->on_device.k(), data->grid, *gridding,
                                        {data->re.span(), data->im.span()}, data->workspace, stream);
                       };
                       contestant.verify = [data, error] { return data->verify(error); };
                   }});
    }
    return usual.result;
}

course::Case make_product_case(const course::Dims& size) {
    const Problem problem = problem_of(size);
    if (!is_for(problem)) return {};
    auto usual = case_on_demand<Product>("mri product " + name_of(problem.grid), problem);
    const Grid padded = padded_of(problem.grid);
    const Work work = product_work(problem.grid, padded);
    const std::string too_large = why_too_large("the transforms", padded);
    usual.add({.name = "fft_lines",
               .work = work,
               .cannot_run = too_large,
               .prepare = [shared = usual.data](course::Contestant& contestant) {
                   const auto data = shared->get();
                   const auto normal =
                       std::make_shared<NormalOperator>(data->grid, data->on_device.k(), nullptr);
                   contestant.launch = [data, normal](cudaStream_t stream) {
                       normal->apply(data->x.span(), data->out.span(), stream);
                   };
               }});
    usual.add({.name = "cufft",
               .role = course::Role::kPeer,
               .work = work,
               .cannot_run = too_large.empty() ? why_no_fft() : too_large,
               .prepare = [shared = usual.data, padded](course::Contestant& contestant) {
                   const auto data = shared->get();
                   contestant.launch = make_cufft_product(data->grid, padded, data->on_device.k(),
                                                          data->x.span(), data->out.span());
               }});
    return usual.result;
}

course::Case make_gradients_case(const course::Dims& size) {
    const Problem problem = problem_of(size);
    if (!is_for(problem)) return {};
    auto usual = case_on_demand<Equation>(
        "mri gradients " + name_of(problem.grid) + " " + std::to_string(kSteps) + " steps", problem);
    // Of all steps together b and the transform of Q are read once, and the image is written once.
    // A step has a product, two dot products, and four multiply-adds of vectors. A complex number
    // takes four operations.
    const Grid padded = padded_of(problem.grid);
    Work work = product_work(problem.grid, padded);
    work.flops = kSteps * (work.flops + 6 * 4 * static_cast<double>(problem.grid.count()));
    usual.add({.name = "conjugate_gradients",
               .work = work,
               .cannot_run = why_too_large("the transforms", padded),
               .prepare = [shared = usual.data](course::Contestant& contestant) {
                   const auto data = shared->get();
                   contestant.launch = [data](cudaStream_t stream) {
                       data->gradients.solve(data->normal, data->x.span(), data->lambda, kSteps,
                                             data->out.span(), data->residuals.span(), stream);
                   };
               }});
    return usual.result;
}

}  // namespace day37
