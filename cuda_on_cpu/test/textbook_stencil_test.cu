// Stencils and what works like them: halo cells in shared memory, coefficients in constant memory,
// cellular automata.
#include <algorithm>
#include <utility>
#include <vector>

#include "textbook.cuh"

namespace {

// ---- 1D: a block and its halo in shared memory --------------------------------------------------

constexpr int kRadius = 3;
__constant__ float weights[2 * kRadius + 1];

template <int kThreads>
__global__ void stencil_1d(const float* in, float* out, int n) {
    __shared__ float tile[kThreads + 2 * kRadius];
    const int global = blockIdx.x * kThreads + threadIdx.x;
    const int local = threadIdx.x + kRadius;
    tile[local] = global < n ? in[global] : 0.0f;
    if (threadIdx.x < kRadius) {
        const int left = global - kRadius;
        const int right = global + kThreads;
        tile[local - kRadius] = left >= 0 && left < n ? in[left] : 0.0f;
        tile[local + kThreads] = right < n ? in[right] : 0.0f;
    }
    __syncthreads();
    if (global >= n) return;
    float sum = 0.0f;
#pragma unroll
    for (int offset = -kRadius; offset <= kRadius; ++offset)
        sum += weights[kRadius + offset] * tile[local + offset];
    out[global] = sum;
}

TEST(TextbookStencil, OneDimension) {
    const std::vector<float> host_weights = random_floats(2 * kRadius + 1, kSeed + 7);
    CUDA_CHECK(cudaMemcpyToSymbol(weights, host_weights.data(), sizeof weights));
    constexpr int kThreads = 64;
    for (const int n : {1, 2, 63, 64, 65, 127, 128, 129, 1013}) {
        SCOPED_TRACE(n);
        const std::vector<float> in = random_floats(n);
        std::vector<double> expected(in.size());
        for (int i = 0; i < n; ++i) {
            for (int offset = -kRadius; offset <= kRadius; ++offset) {
                if (i + offset < 0 || i + offset >= n) continue;
                expected[i] += static_cast<double>(host_weights[kRadius + offset]) * in[i + offset];
            }
        }
        float* const device_in = upload(in);
        float* const device_out = device_array<float>(in.size());
        stencil_1d<kThreads><<<ceil_div(n, kThreads), kThreads>>>(device_in, device_out, n);
        expect_near(download(device_out, in.size()), expected, 1e-5);
        release(device_in, device_out);
    }
}

// ---- 2D convolution, filter in constant memory, tile with halo, any image size ------------------

constexpr int kFilter = 5;
__constant__ float filter[kFilter][kFilter];

__device__ int clamp_to(int value, int size) {
    return max(0, min(value, size - 1));
}

template <int kTile>
__global__ void convolve_2d(const float* __restrict__ in, float* __restrict__ out, int rows, int columns,
                            size_t pitch) {
    constexpr int kHalo = kFilter / 2;
    constexpr int kSide = kTile + 2 * kHalo;
    __shared__ float tile[kSide][kSide];
    for (int y = threadIdx.y; y < kSide; y += kTile) {
        for (int x = threadIdx.x; x < kSide; x += kTile) {
            const int row = clamp_to(static_cast<int>(blockIdx.y) * kTile + y - kHalo, rows);
            const int column = clamp_to(static_cast<int>(blockIdx.x) * kTile + x - kHalo, columns);
            tile[y][x] = in[row * pitch + column];
        }
    }
    __syncthreads();
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int column = blockIdx.x * kTile + threadIdx.x;
    if (row >= rows || column >= columns) return;
    float sum = 0.0f;
    for (int y = 0; y < kFilter; ++y) {
        for (int x = 0; x < kFilter; ++x)
            sum += filter[y][x] * tile[threadIdx.y + y][threadIdx.x + x];
    }
    out[row * columns + column] = sum;
}

TEST(TextbookStencil, ConvolutionOfAPitchedImage) {
    constexpr int kTile = 16;
    const std::vector<float> host_filter = random_floats(kFilter * kFilter, kSeed + 3);
    CUDA_CHECK(cudaMemcpyToSymbol(filter, host_filter.data(), sizeof(filter)));
    const std::vector<std::pair<int, int>> shapes = {{1, 1}, {3, 50}, {15, 17}, {16, 16}, {47, 33}};
    for (const auto& shape : shapes) {
        const int rows = shape.first;
        const int columns = shape.second;
        SCOPED_TRACE(testing::Message() << rows << " x " << columns);
        const std::vector<float> in = random_floats(rows * columns);
        const auto at = [&](int row, int column) {
            return static_cast<double>(in[std::min(std::max(row, 0), rows - 1) * columns +
                                          std::min(std::max(column, 0), columns - 1)]);
        };
        std::vector<double> expected;
        for (int row = 0; row < rows; ++row) {
            for (int column = 0; column < columns; ++column) {
                double sum = 0.0;
                for (int y = 0; y < kFilter; ++y) {
                    for (int x = 0; x < kFilter; ++x)
                        sum += host_filter[y * kFilter + x] * at(row + y - 2, column + x - 2);
                }
                expected.push_back(sum);
            }
        }
        float* device_in = nullptr;
        size_t pitch = 0;
        const size_t width = columns * sizeof(float);
        CUDA_CHECK(cudaMallocPitch(&device_in, &pitch, width, rows));
        CUDA_CHECK(cudaMemcpy2D(device_in, pitch, in.data(), width, width, rows, cudaMemcpyHostToDevice));
        float* const device_out = device_array<float>(in.size());
        const dim3 grid(ceil_div(columns, kTile), ceil_div(rows, kTile));
        convolve_2d<kTile>
            <<<grid, dim3(kTile, kTile)>>>(device_in, device_out, rows, columns, pitch / sizeof(float));
        expect_near(download(device_out, in.size()), expected, 1e-4);
        release(device_in, device_out);
    }
}

// ---- 3D: tiles in x and y, the third dimension walked with three planes in registers ------------

struct Extent {
    int x, y, z;

    __host__ __device__ int volume() const { return x * y * z; }
    __host__ __device__ int operator()(int i, int j, int k) const { return (k * y + j) * x + i; }
};

__global__ void stencil_3d(const float* in, float* out, Extent extent) {
    constexpr int kTile = 8;
    __shared__ float plane[kTile + 2][kTile + 2];
    const int i = blockIdx.x * kTile + threadIdx.x;
    const int j = blockIdx.y * kTile + threadIdx.y;
    const int x = threadIdx.x + 1;
    const int y = threadIdx.y + 1;
    const auto load = [&](int a, int b, int c) {
        const bool inside = a >= 0 && a < extent.x && b >= 0 && b < extent.y && c >= 0 && c < extent.z;
        return inside ? in[extent(a, b, c)] : 0.0f;
    };
    float below = 0.0f;
    float here = load(i, j, 0);
    for (int k = 0; k < extent.z; ++k) {
        const float above = load(i, j, k + 1);
        __syncthreads();
        plane[y][x] = here;
        if (x == 1) plane[y][0] = load(i - 1, j, k);
        if (x == kTile) plane[y][kTile + 1] = load(i + 1, j, k);
        if (y == 1) plane[0][x] = load(i, j - 1, k);
        if (y == kTile) plane[kTile + 1][x] = load(i, j + 1, k);
        __syncthreads();
        if (i < extent.x && j < extent.y) {
            out[extent(i, j, k)] = below + above + plane[y][x - 1] + plane[y][x + 1] + plane[y - 1][x] +
                                   plane[y + 1][x] - 6.0f * here;
        }
        below = here;
        here = above;
    }
}

TEST(TextbookStencil, ThreeDimensions) {
    for (const Extent extent : {Extent{1, 1, 1}, Extent{8, 8, 3}, Extent{9, 7, 5}, Extent{17, 16, 4}}) {
        SCOPED_TRACE(testing::Message() << extent.x << " x " << extent.y << " x " << extent.z);
        const std::vector<float> in = random_floats(extent.volume());
        std::vector<double> expected(in.size());
        for (int k = 0; k < extent.z; ++k) {
            for (int j = 0; j < extent.y; ++j) {
                for (int i = 0; i < extent.x; ++i) {
                    double sum = -6.0 * in[extent(i, j, k)];
                    if (i > 0) sum += in[extent(i - 1, j, k)];
                    if (i + 1 < extent.x) sum += in[extent(i + 1, j, k)];
                    if (j > 0) sum += in[extent(i, j - 1, k)];
                    if (j + 1 < extent.y) sum += in[extent(i, j + 1, k)];
                    if (k > 0) sum += in[extent(i, j, k - 1)];
                    if (k + 1 < extent.z) sum += in[extent(i, j, k + 1)];
                    expected[extent(i, j, k)] = sum;
                }
            }
        }
        float* const device_in = upload(in);
        float* const device_out = device_array<float>(in.size());
        stencil_3d<<<dim3(ceil_div(extent.x, 8), ceil_div(extent.y, 8)), dim3(8, 8)>>>(device_in, device_out,
                                                                                       extent);
        expect_near(download(device_out, in.size()), expected, 1e-5);
        release(device_in, device_out);
    }
}

// ---- Game of life on a torus --------------------------------------------------------------------

__host__ __device__ unsigned char next_cell(bool alive, int neighbours) {
    return neighbours == 3 || (alive && neighbours == 2) ? 1 : 0;
}

// Threads of the halo load and do nothing else: a block of 16 x 16 threads makes 14 x 14 cells.
__global__ void life(const unsigned char* now, unsigned char* next, int rows, int columns) {
    __shared__ unsigned char cells[16][16];
    const int row = static_cast<int>(blockIdx.y) * 14 + static_cast<int>(threadIdx.y) - 1;
    const int column = static_cast<int>(blockIdx.x) * 14 + static_cast<int>(threadIdx.x) - 1;
    cells[threadIdx.y][threadIdx.x] = now[(row + rows) % rows * columns + (column + columns) % columns];
    __syncthreads();
    const bool halo = threadIdx.x == 0 || threadIdx.x == 15 || threadIdx.y == 0 || threadIdx.y == 15;
    if (halo || row >= rows || column >= columns) return;
    int neighbours = -cells[threadIdx.y][threadIdx.x];
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx)
            neighbours += cells[threadIdx.y + dy][threadIdx.x + dx];
    }
    next[row * columns + column] = next_cell(cells[threadIdx.y][threadIdx.x], neighbours);
}

TEST(TextbookStencil, GameOfLife) {
    constexpr int kRows = 37;
    constexpr int kColumns = 29;
    std::vector<unsigned char> cells;
    Random random;
    for (int i = 0; i < kRows * kColumns; ++i)
        cells.push_back(random.below(3) == 0 ? 1 : 0);
    unsigned char* now = upload(cells);
    unsigned char* next = device_array<unsigned char>(cells.size());
    for (int generation = 0; generation < 10; ++generation) {
        life<<<dim3(ceil_div(kColumns, 14), ceil_div(kRows, 14)), dim3(16, 16)>>>(now, next, kRows, kColumns);
        std::swap(now, next);
        std::vector<unsigned char> expected(cells.size());
        for (int row = 0; row < kRows; ++row) {
            for (int column = 0; column < kColumns; ++column) {
                int neighbours = 0;
                for (int i = 0; i < 9; ++i) {
                    if (i == 4) continue;
                    neighbours += cells[(row + i / 3 - 1 + kRows) % kRows * kColumns +
                                        (column + i % 3 - 1 + kColumns) % kColumns];
                }
                expected[row * kColumns + column] =
                    next_cell(cells[row * kColumns + column] != 0, neighbours);
            }
        }
        cells = expected;
    }
    expect_same(download(now, cells.size()), cells);
    release(now, next);
}

// ---- Mandelbrot: every pixel by itself, in its own time -----------------------------------------

struct Complex {
    double real, imaginary;

    __host__ __device__ Complex operator+(Complex other) const {
        return {real + other.real, imaginary + other.imaginary};
    }
    __host__ __device__ Complex operator*(Complex other) const {
        return {real * other.real - imaginary * other.imaginary,
                real * other.imaginary + imaginary * other.real};
    }
    __host__ __device__ double norm() const { return real * real + imaginary * imaginary; }
};

__host__ __device__ int escape_time(int x, int y, int width, int height, int limit) {
    const Complex c = {-2.0 + 3.0 * x / width, -1.25 + 2.5 * y / height};
    Complex z = {0.0, 0.0};
    int steps = 0;
    while (steps < limit && z.norm() <= 4.0) {
        z = z * z + c;
        ++steps;
    }
    return steps;
}

__global__ void mandelbrot(uchar4* image, int width, int height, int limit) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const int steps = escape_time(x, y, width, height, limit);
    image[y * width + x] = make_uchar4(steps & 0xff, steps >> 8, 0, 255);
}

TEST(TextbookStencil, Mandelbrot) {
    constexpr int kWidth = 67;
    constexpr int kHeight = 41;
    constexpr int kLimit = 300;
    uchar4* const image = device_array<uchar4>(kWidth * kHeight);
    const dim3 block(32, 8);
    const dim3 grid((kWidth + block.x - 1) / block.x, (kHeight + block.y - 1) / block.y);
    mandelbrot<<<grid, block>>>(image, kWidth, kHeight, kLimit);
    const std::vector<uchar4> got = download(image, kWidth * kHeight);
    int different = 0;
    int whole = 0;
    for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
            const uchar4 pixel = got[y * kWidth + x];
            const int expected = escape_time(x, y, kWidth, kHeight, kLimit);
            different += pixel.x + 256 * pixel.y != expected || pixel.w != 255 ? 1 : 0;
            whole += expected == kLimit ? 1 : 0;
        }
    }
    EXPECT_LE(different, kWidth * kHeight / 100);  // chaos at the edge: one rounding more or less shows
    EXPECT_GT(whole, 100);
    release(image);
}

// ---- Jacobi iteration: interior and borders on streams of their own, ordered by events ----------

// Rows [first, last) of the average of the four neighbours; the outermost cells stay as they are.
__global__ void jacobi_rows(const double* from, double* to, int columns, int first, int last) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int row = first + blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= columns - 1 || row >= last) return;
    const int i = row * columns + column;
    to[i] = 0.25 * (from[i - 1] + from[i + 1] + from[i - columns] + from[i + columns]);
}

class Stream {
  public:
    Stream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

class Event {
  public:
    Event() { CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
    ~Event() { cudaEventDestroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    operator cudaEvent_t() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

TEST(TextbookStencil, JacobiWithStreamsAndEvents) {
    constexpr int kRows = 45;
    constexpr int kColumns = 39;
    constexpr int kIterations = 30;
    constexpr int kMiddle = 20;  // rows of the upper half
    std::vector<double> grid(kRows * kColumns, 0.0);
    for (int column = 0; column < kColumns; ++column)
        grid[column] = 100.0;
    double* now = upload(grid);
    double* next = upload(grid);

    const Stream upper;
    const Stream lower;
    const Event upper_done;
    const Event lower_done;
    const dim3 block(16, 16);
    const dim3 blocks(ceil_div(kColumns - 2, 16), ceil_div(kRows, 16));
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        jacobi_rows<<<blocks, block, 0, upper>>>(now, next, kColumns, 1, kMiddle);
        jacobi_rows<<<blocks, block, 0, lower>>>(now, next, kColumns, kMiddle, kRows - 1);
        CUDA_CHECK(cudaEventRecord(upper_done, upper));
        CUDA_CHECK(cudaEventRecord(lower_done, lower));
        CUDA_CHECK(cudaStreamWaitEvent(upper, lower_done, 0));
        CUDA_CHECK(cudaStreamWaitEvent(lower, upper_done, 0));
        std::swap(now, next);
    }
    std::vector<double> expected = grid;
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        const std::vector<double> from = expected;
        for (int row = 1; row < kRows - 1; ++row) {
            for (int column = 1; column < kColumns - 1; ++column) {
                const int i = row * kColumns + column;
                expected[i] = 0.25 * (from[i - 1] + from[i + 1] + from[i - kColumns] + from[i + kColumns]);
            }
        }
    }
    expect_near(download(now, grid.size()), expected, 1e-12);
    release(now, next);
}

// The same iteration captured once as a graph of two steps, launched many times.
TEST(TextbookStencil, JacobiAsAGraph) {
    constexpr int kRows = 21;
    constexpr int kColumns = 34;
    constexpr int kPairs = 12;
    std::vector<double> grid(kRows * kColumns, 0.0);
    for (int row = 0; row < kRows; ++row)
        grid[row * kColumns] = row;
    double* const a = upload(grid);
    double* const b = upload(grid);

    const Stream stream;
    const dim3 block(32, 4);
    const dim3 blocks(ceil_div(kColumns - 2, 32), ceil_div(kRows - 2, 4));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    jacobi_rows<<<blocks, block, 0, stream>>>(a, b, kColumns, 1, kRows - 1);
    jacobi_rows<<<blocks, block, 0, stream>>>(b, a, kColumns, 1, kRows - 1);
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
    for (int pair = 0; pair < kPairs; ++pair)
        CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaGraphExecDestroy(executable));

    std::vector<double> expected = grid;
    for (int iteration = 0; iteration < 2 * kPairs; ++iteration) {
        const std::vector<double> from = expected;
        for (int row = 1; row < kRows - 1; ++row) {
            for (int column = 1; column < kColumns - 1; ++column) {
                const int i = row * kColumns + column;
                expected[i] = 0.25 * (from[i - 1] + from[i + 1] + from[i - kColumns] + from[i + kColumns]);
            }
        }
    }
    expect_near(download(a, grid.size()), expected, 1e-12);
    release(a, b);
}

}  // namespace
