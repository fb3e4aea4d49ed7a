#include "beyond/reconstruction_bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "beyond/gridding.hpp"
#include "beyond/gridding_verify.hpp"
#include "beyond/reconstruction.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
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
constexpr double kEps = 0x1p-23;

bool is_for(const Grid& grid) {
    return std::ranges::all_of(std::array{grid.nx, grid.ny, grid.nz},
                               [](std::size_t n) { return n >= 1 && n <= NormalOperator::kMostExtent; });
}

std::size_t stride_of(std::size_t count) {
    return count / kCompared | 1;
}

template <class T>
std::vector<T> every(const std::vector<T>& values, std::size_t stride) {
    std::vector<T> some;
    for (std::size_t i = 0; i < values.size(); i += stride)
        some.push_back(values[i]);
    return some;
}

struct OnDevice {
    explicit OnDevice(const HostSamples& k) {
        for (const auto* values : {&k.kx, &k.ky, &k.kz, &k.phi_re, &k.phi_im})
            arrays.emplace_back(std::span(*values));
    }
    KSpace k() const {
        const auto& a = arrays;
        return {a[0].span(), a[1].span(), a[2].span(), a[3].span(), a[4].span(), {}, {}};
    }
    std::vector<DeviceBuffer<float>> arrays;
};

// With d = phi, mu is |phi|^2, whose sums are Q.
HostSamples with_d_phi(HostSamples k) {
    k.d_re = k.phi_re;
    k.d_im = k.phi_im;
    return k;
}

struct PointSpread {
    PointSpread(const Grid& voxels, std::size_t samples)
        : grid(voxels),
          differences(differences_of(grid)),
          k(with_d_phi(random_samples(samples, grid, 37))),
          on_device(k),
          stride(stride_of(differences.count())),
          expected(sums_on_cpu(k, difference_positions(grid, stride))),
          re(differences.count()),
          im(differences.count()) {}

    course::VerifyResult verify(const ErrorOfTerm& error) const {
        const std::vector<float> all_re = re.to_host();
        const std::vector<float> all_im = im.to_host();
        course::VerifyResult result =
            verify_sums(every(all_re, stride), every(all_im, stride), expected, k.size(), error);
        const auto is_nan = [](float value) { return std::isnan(value); };
        if (std::ranges::any_of(all_re, is_nan) || std::ranges::any_of(all_im, is_nan))
            result.damage += " there are NaN in the result";
        result.damage += re.damage() + im.damage();
        return result;
    }

    Grid grid, differences;
    HostSamples k;
    OnDevice on_device;
    std::size_t stride;
    Expected expected;
    course::GuardedBuffer<float> re, im;
};

std::vector<float2> random_image(std::size_t count) {
    course::Random random(37);
    std::vector<float2> image;
    image.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        const float re = random.uniform(-1, 1);
        image.push_back(make_float2(re, random.uniform(-1, 1)));
    }
    return image;
}

double norm_of(const std::vector<float2>& image) {
    double sum = 0;
    for (const float2 v : image)
        sum += static_cast<double>(v.x) * static_cast<double>(v.x) +
               static_cast<double>(v.y) * static_cast<double>(v.y);
    return std::sqrt(sum);
}

// An image of random numbers, and an operator of a few samples. `rounding` bounds the error of a
// value of the product, as the test of the operator derives it: that of Q, of a sum of M terms and
// their tables, and that of the transforms.
struct Operator {
    Operator(const Grid& voxels, std::size_t samples)
        : grid(voxels),
          k(random_samples(std::min(samples, kFewSamples), grid, 37)),
          on_device(k),
          image(random_image(grid.count())),
          x(std::span<const float2>(image)),
          normal(grid, on_device.k(), nullptr) {
        for (std::size_t m = 0; m < k.size(); ++m)
            weight += static_cast<double>(k.phi_re[m]) * static_cast<double>(k.phi_re[m]) +
                      static_cast<double>(k.phi_im[m]) * static_cast<double>(k.phi_im[m]);
        double one_norm = 0;
        for (const float2 v : image)
            one_norm += std::hypot(static_cast<double>(v.x), static_cast<double>(v.y));
        const auto count = static_cast<double>(differences_of(grid).count());
        const double of_q = (5 + 2 * std::sqrt(static_cast<double>(k.size()))) * weight * one_norm;
        stages = std::log2(count) + 3;
        rounding = of_q + 6 * stages * weight * std::sqrt(count) * norm_of(image);
    }

    Grid grid;
    HostSamples k;
    OnDevice on_device;
    std::vector<float2> image;
    DeviceBuffer<float2> x;
    NormalOperator normal;
    double weight = 0;
    double stages = 0;
    double rounding = 0;  // in eps
};

struct Product : Operator {
    Product(const Grid& voxels, std::size_t samples) : Operator(voxels, samples), out(grid.count()) {}

    course::GuardedBuffer<float2> out;
};

course::VerifyResult verify_product(const Operator& data, const std::vector<std::complex<double>>& expected,
                                    const std::vector<float2>& got) {
    std::vector<float> re, im;
    std::vector<double> expected_re, expected_im;
    for (const float2 value : every(got, stride_of(got.size()))) {
        re.push_back(value.x);
        im.push_back(value.y);
    }
    for (const std::complex<double> value : expected) {
        expected_re.push_back(value.real());
        expected_im.push_back(value.imag());
    }
    const std::vector<double> allowed(re.size(), data.rounding);
    course::VerifyResult result = course::verify(re, expected_re, {.factor = 1}, allowed);
    const course::VerifyResult imaginary = course::verify(im, expected_im, {.factor = 1}, allowed);
    if (!imaginary.ok()) result.damage += " imaginary parts: " + imaginary.message();
    if (std::ranges::any_of(got, [](float2 value) { return std::isnan(value.x) || std::isnan(value.y); }))
        result.damage += " there are NaN in the result";
    return result;
}

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
          out(grid.count()),
          lambda(static_cast<float>(grid.count()) / 2),
          gradients(grid),
          residuals(kSteps + 1) {}

    // The residual of the result, in double and of all voxels, relative to that of 0. Steps of
    // conjugate gradients leave at most 2 sqrt(kappa) rho^steps of it, where kappa is the largest
    // eigenvalue by the smallest, which is lambda or more, and rho = (sqrt(kappa) - 1) /
    // (sqrt(kappa) + 1). Rounding in each step adds that of a product, relative to lambda.
    course::VerifyResult verify(const std::vector<float2>& got) const {
        const auto of_lambda = static_cast<double>(lambda);
        const std::vector<std::complex<double>> product = normal_on_cpu(k, grid, got, of_lambda);
        double squares = 0;
        for (std::size_t n = 0; n < got.size(); ++n)
            squares += std::norm(product[n] - std::complex<double>(static_cast<double>(image[n].x),
                                                                   static_cast<double>(image[n].y)));
        const double residual = std::sqrt(squares) / norm_of(image);
        const double kappa = (most_of_normal(k, grid) + of_lambda) / of_lambda;
        const double rho = (std::sqrt(kappa) - 1) / (std::sqrt(kappa) + 1);
        const double of_steps = 2 * std::sqrt(kappa) * std::pow(rho, kSteps);
        const double allowed = of_steps + kSteps * 6 * stages * kappa * kEps;
        const std::vector<float> relative{static_cast<float>(residual)};
        course::VerifyResult result =
            course::verify(relative, std::vector<double>{0}, {.factor = 1}, std::vector{allowed / kEps});
        result.damage += residuals.damage();
        const double last = std::sqrt(residuals.to_host().back()) / norm_of(image);
        if (!(std::abs(last - residual) <= allowed))
            result.damage += " the device has a residual of " + std::to_string(last) + "; expected " +
                             std::to_string(residual);
        return result;
    }

    course::GuardedBuffer<float2> out;
    float lambda;
    ConjugateGradients gradients;
    course::GuardedBuffer<double> residuals;
};

}  // namespace

course::Case make_point_spread_case(const course::Dims& size) {
    const Problem problem = problem_of(size);
    if (!is_for(problem.grid) || problem.samples < 1) return {};
    course::UsualCase<PointSpread> usual(
        "mri point spread " + name_of(problem.grid) + " " + std::to_string(problem.samples) + " samples",
        "float", std::make_shared<PointSpread>(problem.grid, problem.samples));
    usual.output_in_place(&PointSpread::re, [](const PointSpread& data) { return data.verify({}); });
    usual.also_spoil([](PointSpread& data) { data.im.spoil(); });
    const Grid& differences = usual.data->differences;
    const auto count = static_cast<double>(differences.count());
    const auto samples = static_cast<double>(problem.samples);
    // A wave: three multiply-adds for the phase, sine and cosine, and two multiply-adds, because mu
    // is real.
    const Work work{.bytes = sizeof(float) * (5 * samples + 2 * count),
                    .written = 2 * sizeof(float) * count,
                    .flops = 12 * count * samples,
                    .arithmetic = course::Arithmetic::kOther};
    usual.add(
        {.name = "separable",
         .launch =
             [data = usual.data](cudaStream_t stream) {
                 point_spread(data->on_device.k(), data->grid, {data->re.span(), data->im.span()}, stream);
             },
         .work = work});
    const std::string reason = why_no_gridding(differences);
    for (const int width : {4, 6}) {
        const auto gridding =
            reason.empty() ? std::make_shared<Gridding>(differences, problem.grid, problem.samples, width)
                           : nullptr;
        const auto error_of = [](const PointSpread& data, const Grid& points, int w) {
            return gridding_error(spread_on_cpu(data.k, data.differences, data.grid, points, w), points,
                                  data.k.size(), w, data.expected.weight.front());
        };
        // Gridding does not compute all waves, so these are not counted as its operations.
        usual.add({.name = "gridded_w" + std::to_string(width),
                   .launch =
                       [data = usual.data, gridding](cudaStream_t stream) {
                           point_spread(data->on_device.k(), data->grid, *gridding,
                                        {data->re.span(), data->im.span()}, stream);
                       },
                   .work = {.bytes = work.bytes, .written = work.written},
                   .cannot_run = reason,
                   .verify =
                       [data = usual.data, gridding, width, error_of,
                        error = std::make_shared<std::optional<ErrorOfTerm>>()] {
                           if (!*error) *error = error_of(*data, gridding->extents(), width);
                           return data->verify(**error);
                       }});
    }
    return usual.result;
}

course::Case make_product_case(const course::Dims& size) {
    const Problem problem = problem_of(size);
    if (!is_for(problem.grid) || problem.samples < 1) return {};
    course::UsualCase<Product> usual("mri product " + name_of(problem.grid), "float",
                                     std::make_shared<Product>(problem.grid, problem.samples));
    const auto& data = usual.data;
    const std::vector<std::complex<double>> expected =
        normal_on_cpu(data->k, data->grid, data->image, 0, stride_of(data->image.size()));
    usual.output(&Product::out, [expected](const Product& d, const std::vector<float2>& got) {
        return verify_product(d, expected, got);
    });
    const Work work = product_work(data->grid, data->normal.padded());
    usual.add(
        {.name = "fft_lines",
         .launch =
             [data](cudaStream_t stream) { data->normal.apply(data->x.span(), data->out.span(), stream); },
         .work = work});
    const std::string reason = why_no_fft();
    usual.add({.name = "cufft",
               .role = course::Role::kPeer,
               .launch = reason.empty()
                             ? make_cufft_product(data->grid, data->normal.padded(), data->on_device.k(),
                                                  data->x.span(), data->out.span())
                             : std::function<void(cudaStream_t)>{},
               .work = work,
               .cannot_run = reason});
    return usual.result;
}

course::Case make_gradients_case(const course::Dims& size) {
    const Problem problem = problem_of(size);
    if (!is_for(problem.grid) || problem.samples < 1) return {};
    course::UsualCase<Equation> usual(
        "mri gradients " + name_of(problem.grid) + " " + std::to_string(kSteps) + " steps", "float",
        std::make_shared<Equation>(problem.grid, problem.samples));
    const auto& data = usual.data;
    usual.output(&Equation::out,
                 [](const Equation& d, const std::vector<float2>& got) { return d.verify(got); });
    usual.also_spoil([](Equation& d) { d.residuals.spoil(); });
    // A step: a product, whose vectors and transform of Q are read and written once, two dot
    // products, and four multiply-adds of vectors. A complex number takes four operations.
    Work work = product_work(data->grid, data->normal.padded());
    work.bytes *= kSteps;
    work.written *= kSteps;
    work.flops = kSteps * (work.flops + 6 * 4 * static_cast<double>(data->grid.count()));
    usual.add({.name = "conjugate_gradients",
               .launch =
                   [data](cudaStream_t stream) {
                       data->gradients.solve(data->normal, data->x.span(), data->lambda, kSteps,
                                             data->out.span(), data->residuals.span(), stream);
                   },
               .work = work});
    return usual.result;
}

}  // namespace day37
