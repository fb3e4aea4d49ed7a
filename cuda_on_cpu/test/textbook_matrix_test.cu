// Matrices, dense and sparse: transpose and what shared memory makes of it, products by tiles,
// matrix times vector, breadth-first search as sparse algebra's neighbour.
#include <cmath>
#include <queue>
#include <utility>
#include <vector>

#include "textbook.cuh"

namespace {

// ---- Transpose ----------------------------------------------------------------------------------

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // a block of 32 x 8 threads moves a tile of 32 x 32

template <class T>
__global__ void transpose_naive(const T* in, T* out, int rows, int columns) {
    const int column = blockIdx.x * kTile + threadIdx.x;
    for (int y = threadIdx.y; y < kTile; y += kTileRows) {
        const int row = blockIdx.y * kTile + y;
        if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
    }
}

// kPadding = 1 puts the elements of a column of the tile into different banks.
template <class T, int kPadding>
__global__ void transpose_tiled(const T* in, T* out, int rows, int columns) {
    __shared__ T tile[kTile][kTile + kPadding];
    int column = blockIdx.x * kTile + threadIdx.x;
    int row = blockIdx.y * kTile + threadIdx.y;
    for (int y = 0; y < kTile; y += kTileRows) {
        if (row + y < rows && column < columns)
            tile[threadIdx.y + y][threadIdx.x] = in[(row + y) * columns + column];
    }
    __syncthreads();
    column = blockIdx.y * kTile + threadIdx.x;
    row = blockIdx.x * kTile + threadIdx.y;
    for (int y = 0; y < kTile; y += kTileRows) {
        if (row + y < columns && column < rows)
            out[(row + y) * rows + column] = tile[threadIdx.x][threadIdx.y + y];
    }
}

// Without padding: each row of the tile is stored in an order of its own.
template <class T>
__global__ void transpose_swizzled(const T* in, T* out, int rows, int columns) {
    __shared__ T tile[kTile * kTile];
    const auto place = [](int row, int column) { return row * kTile + (column ^ row); };
    for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
        const int row = blockIdx.y * kTile + y;
        const int column = blockIdx.x * kTile + threadIdx.x;
        if (row < rows && column < columns) tile[place(y, threadIdx.x)] = in[row * columns + column];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
        const int row = blockIdx.x * kTile + y;
        const int column = blockIdx.y * kTile + threadIdx.x;
        if (row < columns && column < rows) out[row * rows + column] = tile[place(threadIdx.x, y)];
    }
}

template <class T>
void expect_transposes(void (*kernel)(const T*, T*, int, int)) {
    const std::vector<std::pair<int, int>> shapes = {{1, 1},   {1, 100}, {31, 33},
                                                     {32, 32}, {65, 97}, {130, 63}};
    for (const auto& shape : shapes) {
        const int rows = shape.first;
        const int columns = shape.second;
        SCOPED_TRACE(testing::Message() << rows << " x " << columns);
        std::vector<T> in;
        for (const int value : random_ints(rows * columns, 100))
            in.push_back(static_cast<T>(value));
        std::vector<T> expected(in.size());
        for (int row = 0; row < rows; ++row) {
            for (int column = 0; column < columns; ++column)
                expected[column * rows + row] = in[row * columns + column];
        }
        T* const device_in = upload(in);
        T* const device_out = device_array<T>(in.size());
        const dim3 grid(ceil_div(columns, kTile), ceil_div(rows, kTile));
        const dim3 block(kTile, kTileRows);
        kernel<<<grid, block>>>(device_in, device_out, rows, columns);
        expect_same(download(device_out, in.size()), expected);
        release(device_in, device_out);
    }
}

TEST(TextbookTranspose, Naive) {
    expect_transposes<float>(transpose_naive);
}
TEST(TextbookTranspose, Tiled) {
    expect_transposes<float>(transpose_tiled<float, 0>);
}
TEST(TextbookTranspose, Padded) {
    expect_transposes(transpose_tiled<double, 1>);
}
TEST(TextbookTranspose, Swizzled) {
    expect_transposes<int>(transpose_swizzled<int>);
}

// ---- Dense product ------------------------------------------------------------------------------

// Row-major, with a leading dimension of its own.
template <class T>
struct Matrix {
    int rows;
    int columns;
    int stride;
    T* elements;

    __device__ T& operator()(int row, int column) { return elements[row * stride + column]; }
    __device__ T at_or_zero(int row, int column) const {
        return row < rows && column < columns ? elements[row * stride + column] : T(0);
    }
};

template <int kSide, class T>
__global__ void multiply_tiled(Matrix<T> a, Matrix<T> b, Matrix<T> c) {
    __shared__ T tile_a[kSide][kSide], tile_b[kSide][kSide];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * kSide + y;
    const int column = blockIdx.x * kSide + x;
    T sum = 0;
    for (int k0 = 0; k0 < a.columns; k0 += kSide) {
        tile_a[y][x] = a.at_or_zero(row, k0 + x);
        tile_b[y][x] = b.at_or_zero(k0 + y, column);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kSide; ++k)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    if (row < c.rows && column < c.columns) c(row, column) = sum;
}

// Each thread keeps TM x TN sums in registers.
template <int BM, int BN, int BK, int TM, int TN, class T>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
    multiply_in_registers(Matrix<T> a, Matrix<T> b, Matrix<T> c) {
    static_assert(BM % TM == 0 && BN % TN == 0, "threads share a block tile evenly");
    constexpr int kThreads = (BM / TM) * (BN / TN);
    __shared__ T tile_a[BK][BM];
    __shared__ T tile_b[BK][BN];
    const int row0 = blockIdx.y * BM;
    const int column0 = blockIdx.x * BN;
    const int thread_row = threadIdx.x / (BN / TN);
    const int thread_column = threadIdx.x % (BN / TN);
    T sums[TM][TN] = {};
    for (int k0 = 0; k0 < a.columns; k0 += BK) {
        for (int i = threadIdx.x; i < BM * BK; i += kThreads)
            tile_a[i % BK][i / BK] = a.at_or_zero(row0 + i / BK, k0 + i % BK);
        for (int i = threadIdx.x; i < BK * BN; i += kThreads)
            tile_b[i / BN][i % BN] = b.at_or_zero(k0 + i / BN, column0 + i % BN);
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            T left[TM], right[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                left[i] = tile_a[k][thread_row * TM + i];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                right[j] = tile_b[k][thread_column * TN + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sums[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + thread_row * TM + i;
            const int column = column0 + thread_column * TN + j;
            if (row < c.rows && column < c.columns) c(row, column) = sums[i][j];
        }
    }
}

// Launches with whatever tile a kernel has; compares with plain loops. Whole numbers: exact in any
// order.
template <class T, class Launch>
void expect_product(Launch launch) {
    struct Shape {
        int m, n, k;
    };
    for (const Shape shape : {Shape{1, 1, 1}, Shape{16, 16, 16}, Shape{33, 65, 17}, Shape{100, 31, 50}}) {
        SCOPED_TRACE(testing::Message() << shape.m << " x " << shape.n << " x " << shape.k);
        std::vector<T> a, b;
        for (const int value : random_ints(shape.m * shape.k, 9))
            a.push_back(static_cast<T>(value));
        for (const int value : random_ints(shape.k * shape.n, 9, kSeed + 1))
            b.push_back(static_cast<T>(value));
        std::vector<T> expected(shape.m * shape.n, T(0));
        for (int i = 0; i < shape.m; ++i) {
            for (int k = 0; k < shape.k; ++k) {
                for (int j = 0; j < shape.n; ++j)
                    expected[i * shape.n + j] += a[i * shape.k + k] * b[k * shape.n + j];
            }
        }
        const Matrix<T> device_a = {shape.m, shape.k, shape.k, upload(a)};
        const Matrix<T> device_b = {shape.k, shape.n, shape.n, upload(b)};
        const Matrix<T> device_c = {shape.m, shape.n, shape.n, device_array<T>(expected.size())};
        launch(device_a, device_b, device_c);
        expect_same(download(device_c.elements, expected.size()), expected);
        release(device_a.elements, device_b.elements, device_c.elements);
    }
}

TEST(TextbookProduct, Tiled) {
    expect_product<float>([](Matrix<float> a, Matrix<float> b, Matrix<float> c) {
        const dim3 grid(ceil_div(c.columns, 16), ceil_div(c.rows, 16));
        multiply_tiled<16><<<grid, dim3(16, 16)>>>(a, b, c);
    });
}

TEST(TextbookProduct, InRegisters) {
    expect_product<double>([](Matrix<double> a, Matrix<double> b, Matrix<double> c) {
        const dim3 grid(ceil_div(c.columns, 32), ceil_div(c.rows, 64));
        multiply_in_registers<64, 32, 8, 4, 2><<<grid, (64 / 4) * (32 / 2)>>>(a, b, c);
    });
}

// A warp per row; four loads at a time where the row allows it.
__global__ void matrix_vector(const float* __restrict__ matrix, const float* __restrict__ vector,
                              float* __restrict__ out, int rows, int columns) {
    const int warps_per_block = blockDim.x / warpSize;
    const int lane = threadIdx.x & (warpSize - 1);
    for (int row = blockIdx.x * warps_per_block + threadIdx.x / warpSize; row < rows;
         row += gridDim.x * warps_per_block) {
        const float* const own = matrix + static_cast<size_t>(row) * columns;
        float sum = 0.0f;
        if (columns % 4 == 0) {
            const float4* const packed = reinterpret_cast<const float4*>(own);
            for (int c = lane; c < columns / 4; c += warpSize) {
                const float4 m = __ldg(&packed[c]);
                const float4 v = reinterpret_cast<const float4*>(vector)[c];
                sum += m.x * v.x + m.y * v.y + m.z * v.z + m.w * v.w;
            }
        } else {
            for (int c = lane; c < columns; c += warpSize)
                sum = fmaf(own[c], vector[c], sum);
        }
        for (int mask = 16; mask; mask >>= 1)
            sum += __shfl_xor_sync(0xffffffff, sum, mask);
        if (lane == 0) out[row] = sum;
    }
}

TEST(TextbookProduct, MatrixVectorWithAWarpPerRow) {
    constexpr int kRows = 27;
    for (const int columns : {1, 31, 32, 33, 128, 1000}) {
        SCOPED_TRACE(columns);
        const std::vector<float> matrix = random_floats(kRows * columns);
        const std::vector<float> vector = random_floats(columns, kSeed + 1);
        std::vector<double> expected(kRows);
        for (int i = 0; i < kRows * columns; ++i)
            expected[i / columns] += static_cast<double>(matrix[i]) * vector[i % columns];
        float* const device_matrix = upload(matrix);
        float* const device_vector = upload(vector);
        float* const device_out = device_array<float>(kRows);
        matrix_vector<<<3, 128>>>(device_matrix, device_vector, device_out, kRows, columns);
        expect_near(download(device_out, kRows), expected, 1e-6 * columns + 1e-6);
        release(device_matrix, device_vector, device_out);
    }
}

// ---- Sparse: compressed rows --------------------------------------------------------------------

struct Csr {
    std::vector<int> row_begin;  // one more than there are rows
    std::vector<int> column;
    std::vector<float> value;
};

// Rows of very different lengths, empty ones among them.
Csr random_csr(int rows, int columns) {
    Random random;
    Csr matrix;
    matrix.row_begin.push_back(0);
    for (int row = 0; row < rows; ++row) {
        const int length = row % 7 == 0 ? 0 : row % 11 == 0 ? 100 : random.below(10);
        for (int i = 0; i < length; ++i) {
            matrix.column.push_back(random.below(columns));
            matrix.value.push_back(random.real());
        }
        matrix.row_begin.push_back(static_cast<int>(matrix.column.size()));
    }
    return matrix;
}

__global__ void spmv_scalar(int rows, const int* row_begin, const int* column, const float* value,
                            const float* x, float* y) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int i = row_begin[row]; i < row_begin[row + 1]; ++i)
            sum += value[i] * x[column[i]];
        y[row] = sum;
    }
}

// kLanes threads share a row; a warp takes 32 / kLanes rows. Bell and Garland, "Implementing sparse
// matrix-vector multiplication on throughput-oriented processors", 2009.
template <int kLanes>
__global__ void spmv_vector(int rows, const int* row_begin, const int* column, const float* value,
                            const float* x, float* y) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = thread / kLanes;
    const int lane = thread % kLanes;
    float sum = 0.0f;
    if (row < rows) {
        for (int i = row_begin[row] + lane; i < row_begin[row + 1]; i += kLanes)
            sum += value[i] * x[column[i]];
    }
    for (int offset = kLanes / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset, kLanes);
    if (lane == 0 && row < rows) y[row] = sum;
}

TEST(TextbookSparse, MatrixVector) {
    constexpr int kColumns = 301;
    for (const int rows : {1, 31, 128, 500}) {
        SCOPED_TRACE(rows);
        const Csr matrix = random_csr(rows, kColumns);
        const std::vector<float> x = random_floats(kColumns, kSeed + 1);
        std::vector<double> expected(rows);
        for (int row = 0; row < rows; ++row) {
            for (int i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i) {
                expected[row] += static_cast<double>(matrix.value[i]) * x[matrix.column[i]];
            }
        }
        int* const row_begin = upload(matrix.row_begin);
        int* const column = device_array<int>(matrix.column.size() + 1);  // the matrix may be empty
        float* const value = device_array<float>(matrix.value.size() + 1);
        CUDA_CHECK(cudaMemcpy(column, matrix.column.data(), matrix.column.size() * sizeof(int),
                              cudaMemcpyHostToDevice));
        CUDA_CHECK(
            cudaMemcpy(value, matrix.value.data(), matrix.value.size() * sizeof(float), cudaMemcpyDefault));
        float* const device_x = upload(x);
        float* const y = device_array<float>(rows);
        spmv_scalar<<<ceil_div(rows, 128), 128>>>(rows, row_begin, column, value, device_x, y);
        expect_near(download(y, rows), expected, 1e-4);
        spmv_vector<32><<<ceil_div(rows * 32, 128), 128>>>(rows, row_begin, column, value, device_x, y);
        expect_near(download(y, rows), expected, 1e-4);
        spmv_vector<4><<<ceil_div(rows * 4, 96), 96>>>(rows, row_begin, column, value, device_x, y);
        expect_near(download(y, rows), expected, 1e-4);
        release(row_begin, column, value, device_x, y);
    }
}

// ---- Breadth-first search, level by level, with a queue for the frontier ------------------------

constexpr int kUnreached = -1;
constexpr int kLocalQueue = 64;

// Vertices found by a block gather in shared memory first: one reservation in the global queue for
// all of them.
__global__ void expand_frontier(const int* row_begin, const int* neighbour, int* level, const int* frontier,
                                int frontier_size, int* next, int* next_size, int depth) {
    __shared__ int found[kLocalQueue];
    __shared__ int found_count;
    __shared__ int base;
    if (threadIdx.x == 0) found_count = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < frontier_size) {
        const int vertex = frontier[i];
        for (int edge = row_begin[vertex]; edge < row_begin[vertex + 1]; ++edge) {
            const int other = neighbour[edge];
            if (atomicCAS(&level[other], kUnreached, depth) != kUnreached) continue;
            const int place = atomicAdd(&found_count, 1);
            if (place < kLocalQueue) {
                found[place] = other;
            } else {
                next[atomicAdd(next_size, 1)] = other;
            }
        }
    }
    __syncthreads();
    const int count = min(found_count, kLocalQueue);
    if (threadIdx.x == 0) base = atomicAdd(next_size, count);
    __syncthreads();
    for (int k = threadIdx.x; k < count; k += blockDim.x)
        next[base + k] = found[k];
}

TEST(TextbookSparse, BreadthFirstSearch) {
    constexpr int kVertices = 900;
    Csr graph = random_csr(kVertices, kVertices);
    std::vector<int> expected(kVertices, kUnreached);
    constexpr int kStart = 11;  // has 100 neighbours
    std::queue<int> queue({kStart});
    expected[kStart] = 0;
    while (!queue.empty()) {
        const int vertex = queue.front();
        queue.pop();
        for (int edge = graph.row_begin[vertex]; edge < graph.row_begin[vertex + 1]; ++edge) {
            const int other = graph.column[edge];
            if (expected[other] != kUnreached) continue;
            expected[other] = expected[vertex] + 1;
            queue.push(other);
        }
    }

    std::vector<int> level(kVertices, kUnreached);
    level[kStart] = 0;
    int* const row_begin = upload(graph.row_begin);
    int* const neighbour = upload(graph.column);
    int* const device_level = upload(level);
    int* frontier = device_array<int>(kVertices);
    int* next = device_array<int>(kVertices);
    int* const next_size = device_array<int>(1);
    int size = 1;
    CUDA_CHECK(cudaMemcpy(frontier, &kStart, sizeof(int), cudaMemcpyHostToDevice));
    int depth = 0;
    while (size > 0) {
        ++depth;
        CUDA_CHECK(cudaMemset(next_size, 0, sizeof(int)));
        expand_frontier<<<ceil_div(size, 64), 64>>>(row_begin, neighbour, device_level, frontier, size, next,
                                                    next_size, depth);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpy(&size, next_size, sizeof(int), cudaMemcpyDeviceToHost));
        std::swap(frontier, next);
    }
    EXPECT_GT(depth, 2);
    expect_same(download(device_level, kVertices), expected);
    release(row_begin, neighbour, device_level, frontier, next, next_size);
}

// ---- N-body: every thread walks over all bodies, a tile in shared memory at a time --------------

__device__ float3 attraction(float4 on, float4 by, float3 sum) {
    const float3 d = make_float3(by.x - on.x, by.y - on.y, by.z - on.z);
    const float distance2 = d.x * d.x + d.y * d.y + d.z * d.z + 0.01f;  // softened
    const float inverse = rsqrtf(distance2);
    const float scale = by.w * inverse * inverse * inverse;
    return make_float3(sum.x + d.x * scale, sum.y + d.y * scale, sum.z + d.z * scale);
}

__global__ void accelerations(const float4* bodies, float4* out, int n) {
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 sum = {0.0f, 0.0f, 0.0f};
    for (int start = 0; start < n; start += blockDim.x) {
        const int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : float4{0.0f, 0.0f, 0.0f, 0.0f};  // no mass: no attraction
        __syncthreads();
        for (unsigned k = 0; k < blockDim.x; ++k)
            sum = attraction(own, tile[k], sum);
        __syncthreads();
    }
    if (i < n) out[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}

TEST(TextbookProduct, NBody) {
    constexpr int kThreads = 64;
    for (const int n : {1, 63, 200}) {
        SCOPED_TRACE(n);
        Random random;
        std::vector<float4> bodies;
        for (int i = 0; i < n; ++i)
            bodies.push_back({random.real(), random.real(), random.real(), 1.0f + random.real()});
        std::vector<double> expected;
        for (const float4& on : bodies) {
            double sum[3] = {0.0, 0.0, 0.0};
            for (const float4& by : bodies) {
                const double d[3] = {by.x - on.x, by.y - on.y, by.z - on.z};
                const double distance2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01;
                for (int axis = 0; axis < 3; ++axis)
                    sum[axis] += by.w * d[axis] / (distance2 * std::sqrt(distance2));
            }
            expected.insert(expected.end(), sum, sum + 3);
        }
        float4* const device_bodies = upload(bodies);
        float4* const device_out = device_array<float4>(n);
        accelerations<<<ceil_div(n, kThreads), kThreads, kThreads * sizeof(float4)>>>(device_bodies,
                                                                                      device_out, n);
        std::vector<float> got;
        for (const float4& a : download(device_out, n))
            got.insert(got.end(), {a.x, a.y, a.z});
        expect_near(got, expected, 2e-5 * n + 1e-5);
        release(device_bodies, device_out);
    }
}

}  // namespace
