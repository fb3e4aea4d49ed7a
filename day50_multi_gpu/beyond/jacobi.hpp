// Jacobi's method in two dimensions on several GPUs, with a stopping criterion: the host API. The
// kernel is in jacobi.cuh, the versions in jacobi.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "multi_gpu.hpp"

namespace day50 {

// A grid of `rows` rows is a domain of planes of a single row.
inline Extents grid_2d(std::size_t columns, std::size_t rows) {
    return {.nx = columns, .ny = 1, .nz = rows};
}

// The method stops after `most_steps`, or as soon as the norm of the residual is at most
// `tolerance`. The norm is computed in each `every`-th step, and in the last one.
struct Stop {
    unsigned most_steps = 1;
    unsigned every = 1;
    double tolerance = 0;
};

struct JacobiResult {
    unsigned steps = 0;  // done
    double norm = 0;     // of the residual in the last of them
};

// Memory for the norm: for each rank, on its GPU, the sums of its rows and room for those of all
// ranks; and pinned memory for the host's copy.
class RowSums {
  public:
    explicit RowSums(const Domain& domain);
    ~RowSums();
    RowSums(const RowSums&) = delete;
    RowSums& operator=(const RowSums&) = delete;

    // `rows` sums. Those of other ranks' rows are 0.
    double* own(std::size_t rank) { return on_devices_[rank].data(); }
    // `rows` sums, for the result of an all-reduce.
    double* all(std::size_t rank) { return on_devices_[rank].data() + rows_; }
    double* on_host() { return on_host_; }
    std::size_t rows() const { return rows_; }
    std::size_t ranks() const { return on_devices_.size(); }

  private:
    std::size_t rows_;
    std::vector<course::DeviceBuffer<double>> on_devices_;
    double* on_host_ = nullptr;
};

// Solves Laplace's equation: in each step a cell becomes the mean of its four neighbours. Cells at
// the edge of the whole grid keep their values. Steps start after the work that `stream` already
// has. The call returns when the host knows that the method has stopped; later work in `stream`
// finds the grid after the last step in `out`. Grid, steps and norm have the same bits on any
// number of ranks. Throws std::invalid_argument for a domain that is not a grid_2d(), the RowSums
// of another one, no step, or where cannot_run() has a reason; CudaError when a call fails.
using JacobiLauncher = JacobiResult (*)(Domain& domain, RowSums& sums, const Stop& stop, cudaStream_t stream);
using JacobiVersion = course::Version<JacobiLauncher, Problem>;
std::span<const JacobiVersion> jacobi_versions();

// The reference: plain loops. `grid` becomes the grid after the last step.
JacobiResult jacobi_on_cpu(const Extents& extents, std::vector<float>& grid, const Stop& stop);

}  // namespace day50
