#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "beyond/cufft_plan.hpp"
#include "beyond/reconstruction.hpp"
#include "beyond/separable.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "mri_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include "common/check/check_cublas.hpp"
#endif
#if defined(COURSE_HAS_CUDA_LIBRARIES) || defined(COURSE_HAS_CUFFT)

namespace day37 {
namespace {

using course::DeviceBuffer;

constexpr int kBlock = 256;

unsigned blocks_for_each(std::size_t count) {
    return course::blocks_for(count, kBlock);
}

}  // namespace
}  // namespace day37

#endif

#ifdef COURSE_HAS_CUDA_LIBRARIES

namespace day37 {
namespace {

// exp(i 2 pi k (i - (n - 1) / 2) / n) for voxel i of n and sample m, at waves[i * samples + m], so
// that adjacent threads, which have adjacent samples, load adjacent waves in row_waves.
__global__ void axis_waves(const float* k, std::size_t samples, std::size_t n, float2* waves) {
    const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= samples * n) return;
    const double from_middle = static_cast<double>(at / samples) - (static_cast<double>(n) - 1) / 2;
    double sine, cosine;
    sincospi(2 * static_cast<double>(k[at % samples]) * from_middle / static_cast<double>(n), &sine, &cosine);
    waves[at] = make_float2(static_cast<float>(cosine), static_cast<float>(sine));
}

__device__ float2 times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// rows[row * samples + m]: mu times the waves along y and z.
__global__ void row_waves(const float* mu_re, const float* mu_im, const float2* along_y,
                          const float2* along_z, std::size_t samples, Grid grid, float2* rows) {
    const std::size_t m = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (m >= samples) return;
    for (std::size_t row = blockIdx.y; row < grid.rows(); row += gridDim.y) {
        const float2 wave = times(along_y[row % grid.ny * samples + m], along_z[row / grid.ny * samples + m]);
        rows[row * samples + m] = times(make_float2(mu_re[m], mu_im[m]), wave);
    }
}

__global__ void split(const float2* values, std::size_t count, float* re, float* im) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    re[i] = values[i].x;
    im[i] = values[i].y;
}

struct Matrices {
    Matrices(const Grid& grid, std::size_t samples)
        : mu(2 * samples),
          x(samples * grid.nx),
          y(samples * grid.ny),
          z(samples * grid.nz),
          rows(grid.rows() * samples),
          sums(grid.count()) {}

    DeviceBuffer<float> mu;
    DeviceBuffer<float2> x, y, z, rows, sums;
};

}  // namespace

std::string why_no_cublas() {
    return "";
}

std::function<void(cudaStream_t)> make_cublas_sum(const KSpace& k, const Grid& grid, const Image& out) {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    const std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    return [=, all = std::make_shared<Matrices>(grid, k.kx.size())](cudaStream_t stream) {
        const std::size_t samples = k.kx.size();
        float* const mu_re = all->mu.data();
        float* const mu_im = mu_re + samples;
        multiply_mu(k, mu_re, mu_im, stream);
        const auto waves = [&](const float* of_axis, std::size_t n, float2* to) {
            axis_waves<<<blocks_for_each(samples * n), kBlock, 0, stream>>>(of_axis, samples, n, to);
        };
        waves(k.kx.data(), grid.nx, all->x.data());
        waves(k.ky.data(), grid.ny, all->y.data());
        waves(k.kz.data(), grid.nz, all->z.data());
        const dim3 blocks(blocks_for_each(samples),
                          static_cast<unsigned>(std::min<std::size_t>(grid.rows(), 65535)));
        row_waves<<<blocks, kBlock, 0, stream>>>(mu_re, mu_im, all->y.data(), all->z.data(), samples, grid,
                                                 all->rows.data());
        CUDA_CHECK_LAUNCH();
        // cuBLAS is column-major: sums (x by rows) = the transpose of the waves along x (samples by
        // x) times those of the rows (samples by rows).
        const cuComplex one = make_cuComplex(1, 0);
        const cuComplex zero = make_cuComplex(0, 0);
        const auto number = [](std::size_t n) { return static_cast<std::int64_t>(n); };
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasCgemm_64(handle.get(), CUBLAS_OP_T, CUBLAS_OP_N, number(grid.nx),
                                    number(grid.rows()), number(samples), &one, all->x.data(),
                                    number(samples), all->rows.data(), number(samples), &zero,
                                    all->sums.data(), number(grid.nx)));
        split<<<blocks_for_each(grid.count()), kBlock, 0, stream>>>(all->sums.data(), grid.count(),
                                                                    out.re.data(), out.im.data());
        CUDA_CHECK_LAUNCH();
    };
}

}  // namespace day37

#else

namespace day37 {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas_sum(const KSpace&, const Grid&, const Image&) {
    return {};
}

}  // namespace day37

#endif

#ifdef COURSE_HAS_CUFFT

namespace day37 {
namespace {

__global__ void pad(const float2* image, Grid grid, float2* out, Grid padded) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= padded.count()) return;
    const std::size_t x = i % padded.nx;
    const std::size_t y = i / padded.nx % padded.ny;
    const std::size_t z = i / padded.nx / padded.ny;
    const bool inside = x < grid.nx && y < grid.ny && z < grid.nz;
    out[i] = inside ? image[(z * grid.ny + y) * grid.nx + x] : make_float2(0, 0);
}

__global__ void scale_each(float2* spectrum, const float* filter, std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    spectrum[i] = make_float2(filter[i] * spectrum[i].x, filter[i] * spectrum[i].y);
}

__global__ void crop(const float2* in, Grid padded, float2* image, Grid grid) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= grid.count()) return;
    const std::size_t x = i % grid.nx;
    const std::size_t y = i / grid.nx % grid.ny;
    const std::size_t z = i / grid.nx / grid.ny;
    image[i] = in[(z * padded.ny + y) * padded.nx + x];
}

struct Product {
    Product(const Grid& image_grid, const Grid& padded_grid, const KSpace& k)
        : grid(image_grid),
          padded(padded_grid),
          plan(padded),
          spectrum(padded.count()),
          filter(std::span<const float>(filter_of(k))) {}

    // The transform of Q, which is real, with the factor of the inverse transform.
    std::vector<float> filter_of(const KSpace& k) {
        const Grid all = differences_of(grid);
        DeviceBuffer<float> re(all.count());
        DeviceBuffer<float> im(all.count());
        Workspace workspace({all, k.kx.size()});
        point_spread(k, grid, {re.span(), im.span()}, workspace, nullptr);
        const std::vector<float> q_re = re.to_host();
        const std::vector<float> q_im = im.to_host();
        std::vector<float2> wrapped(padded.count(), make_float2(0, 0));
        const auto place = [](std::size_t at, std::size_t n, std::size_t period) {
            return (at + period - (n - 1)) % period;  // difference at - (n - 1)
        };
        for (std::size_t i = 0; i < all.count(); ++i) {
            const std::size_t x = place(i % all.nx, grid.nx, padded.nx);
            const std::size_t y = place(i / all.nx % all.ny, grid.ny, padded.ny);
            const std::size_t z = place(i / all.nx / all.ny, grid.nz, padded.nz);
            wrapped[(z * padded.ny + y) * padded.nx + x] = make_float2(q_re[i], q_im[i]);
        }
        spectrum.copy_from(wrapped);
        plan.run(spectrum.data(), CUFFT_FORWARD, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        std::vector<float> values;
        values.reserve(padded.count());
        for (const float2 value : spectrum.to_host())
            values.push_back(value.x / static_cast<float>(padded.count()));
        return values;
    }

    Grid grid, padded;
    CufftPlan plan;
    DeviceBuffer<float2> spectrum;
    DeviceBuffer<float> filter;
};

}  // namespace

std::function<void(cudaStream_t)> make_cufft_product(const Grid& grid, const Grid& padded, const KSpace& k,
                                                     course::DeviceSpan<const float2> x,
                                                     course::DeviceSpan<float2> out) {
    return [=, product = std::make_shared<Product>(grid, padded, k)](cudaStream_t stream) {
        float2* const spectrum = product->spectrum.data();
        const std::size_t count = padded.count();
        pad<<<blocks_for_each(count), kBlock, 0, stream>>>(x.data(), grid, spectrum, padded);
        product->plan.run(spectrum, CUFFT_FORWARD, stream);
        scale_each<<<blocks_for_each(count), kBlock, 0, stream>>>(spectrum, product->filter.data(), count);
        product->plan.run(spectrum, CUFFT_INVERSE, stream);
        crop<<<blocks_for_each(grid.count()), kBlock, 0, stream>>>(spectrum, padded, out.data(), grid);
        CUDA_CHECK_LAUNCH();
    };
}

}  // namespace day37

#else

namespace day37 {

std::function<void(cudaStream_t)> make_cufft_product(const Grid&, const Grid&, const KSpace&,
                                                     course::DeviceSpan<const float2>,
                                                     course::DeviceSpan<float2>) {
    return {};
}

}  // namespace day37

#endif
