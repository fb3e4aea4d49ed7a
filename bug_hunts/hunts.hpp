// The bug hunts: twenty-two small programs. Here is their host API; each has a file of its own,
// <name>.cu, and a wrong twin with the same API in broken_kernels/. No kernels here.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace hunts {

using course::DeviceMatrix;
using course::DeviceSpan;

// Each queues its work on `stream`. All lengths and leading dimensions are legal, 0 included (of
// `details`, `halves` and `rods` up to 65,535 blocks of columns), and any alignment of 4 bytes.
// Throws std::invalid_argument when shapes do not match, or an output overlaps an input; CudaError
// when CUDA refuses.

// out(r, c) = the sum of weights[3 i + j] in(r + i - 1, c + j - 1), i and j from 0 to 2; outside
// the matrix stands 0. `out` is as large as `in`; there are 9 weights, those of a row after
// another.
void filter(DeviceMatrix<const float> in, DeviceSpan<const float> weights, DeviceMatrix<float> out,
            cudaStream_t stream);

// out[i] = in[floor(i * in.size() / out.size())]: a signal stretched or shrunk, without
// interpolation. Both have less than 2^32 elements; `in` may be empty only if `out` is.
void resample(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out[c] = the sum of x[r] a(r, c) over all rows r: the product of a row vector and a matrix.
void vector_matrix(DeviceMatrix<const float> a, DeviceSpan<const float> x, DeviceSpan<float> out,
                   cudaStream_t stream);

// out[i] = (in[i] + in[i + 1]) / 2. `in` has one element more than `out`.
void midpoints(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out[i] = the sum of in[32 i] to in[32 i + 31], the last one of what is left. `out` has a 32nd as
// many elements as `in`, rounded up.
void warp_sums(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out(r, c) = in(r, c) - the mean of row r. `out` is as large as `in`.
void centre_rows(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream);

// out[c] = the sum of in(r, c) over all rows r.
void column_sums(DeviceMatrix<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out(r, c) = factors[r] in(r, c). `out` is as large as `in`.
void scale_rows(DeviceMatrix<const float> in, DeviceSpan<const float> factors, DeviceMatrix<float> out,
                cudaStream_t stream);

// out(c, r) = in(r, c).
void transpose(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream);

// A row is a rod. In a step, each cell becomes the mean of itself and the two beside it; the first
// and the last of a rod keep their values. `out` is `in`, two steps later, and as large as `in`.
void rods(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream);

// out[p] = in[p] + in[p + period] + in[p + 2 period]..., the period being out.size(): a signal
// folded upon itself. `out` may be empty only if `in` is.
void fold(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out(r, c) = in(r, 0) + ... + in(r, c). `out` is as large as `in`.
void running_sums(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream);

// A shelf has 128 neighbours of `in`, the last one what is left; in[i] is a box with number i i mod
// 256. `out` has the boxes of each shelf in order of their numbers; of equal numbers, the one first
// that is first in `in`. `out` is as long as `in`.
void shelves(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out[i] = in[0] + ... + in[i]. `out` is as long as `in`. Memory comes from the device's pool
// (cudaMallocAsync).
void relay(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out[b] = how many of in[0] to in[256 b - 1] are positive: where the blocks of a filter begin.
// `out` has a 256th as many elements as `in`, rounded up. Calls must not run at the same time.
void places(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// Water comes in from the left, through the cells that are greater than -0.5. out(r, c) = the step
// in which it reaches a cell: 0 in the first column, then from each cell to the four beside it, one
// in each step. 9: not in 8 steps, or never. `out` is as large as `in`.
void flood(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream);

// Heat in a plate, two steps: in each one a cell becomes the mean of itself and the ones above and
// below it; the first row and the last one keep their values. `out` is as large as `in`.
void halves(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream);

// The backward pass of a 3 x 3 convolution with stride 2 and padding 1. Its forward pass makes of x
// a y(r, c) = the sum of weights[3 i + j] x(2 r + i - 1, 2 c + j - 1), i and j from 0 to 2; outside
// x stands 0. `in` is the gradient with respect to y. `out` is the one with respect to x, with
// twice as many rows and columns. There are 9 weights, those of a row after another.
void gradient(DeviceMatrix<const float> in, DeviceSpan<const float> weights, DeviceMatrix<float> out,
              cudaStream_t stream);

// out = 2 in, by way of buffers of the host. Returns when `out` is complete: no graph can record
// it.
void letters(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// out = in - blur(blur(in)): a blur makes of each pixel the mean of itself and the two beside it;
// the first pixel and the last one of a row keep their values. `out` is as large as `in`. Memory
// comes from the device's pool.
void details(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream);

// Two recordings in order of time: sample i of row 0 was recorded at time i / 4, sample j of row 1
// at time j / 3, rounded down. At the same time, those of row 0 come first. `in` has two rows,
// `out` as many elements as both together.
void recordings(DeviceMatrix<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// Points at (in(0, i), in(1, i)), in the square from -1 to 1; those beyond an edge count as at it,
// NaN as -1. The square is divided into four if it has more than 32 points, so are these, and so
// on, up to eight times. out[i] = how many points are in the square, not divided further, of point
// i. Memory comes from the device's pool. `in` has two rows, as long as `out`.
void squares(DeviceMatrix<const float> in, DeviceSpan<float> out, cudaStream_t stream);

// --- The list ------------------------------------------------------------------------------------

struct Shape {
    std::size_t rows = 0;
    std::size_t cols = 0;

    std::size_t size() const { return rows * cols; }
};

// What all of them take. Data without rows is a matrix of one row, whose leading dimension does not
// matter.
struct Operands {
    DeviceMatrix<const float> in;
    DeviceSpan<const float> vector;  // weights, x or factors
    DeviceMatrix<float> out;
};

// The operands that a hunt has for a problem of rows x cols.
struct Layout {
    Shape in;
    Shape out;
    std::size_t vector = 0;  // elements; 0: it has none
    std::size_t terms = 1;   // of the sum behind one element of the result
};

struct Kernel {
    void (*launch)(const Operands& operands, cudaStream_t stream);
    Layout (*layout)(const Shape& problem);
    // The reference: plain loops in double. `in` and `vector` are packed, row after row, and so is
    // what comes out: the result, and the sum of the magnitudes of its terms, which bounds the
    // rounding errors.
    void (*on_cpu)(const Layout& layout, std::span<const float> in, std::span<const float> vector,
                   std::span<double> out, std::span<double> magnitude);
};

using Hunt = course::Version<Kernel, Shape>;

// In the order of the exercises.
std::span<const Hunt> hunts();

}  // namespace hunts
