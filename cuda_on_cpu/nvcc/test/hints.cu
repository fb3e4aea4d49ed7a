// What suggests that results are wrong, and what does not. usage: hints CASE
#include <sys/mman.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

// ---- Mistakes that a GPU nearly always hides ----------------------------------------------------

__global__ void sum_rows_too_early(float* a, float* out) {  // 64 columns of 64, column-major; 256 threads
    for (int i = threadIdx.x; i < 4096; i += 256)
        a[i] = 2 * a[i];
    // __syncthreads() is missing
    if (threadIdx.x < 64) {
        float sum = 0;
        for (int i = threadIdx.x; i < 4096; i += 64)
            sum += a[i];
        out[threadIdx.x] = sum;
    }
}
__device__ float block_reduce(float value) {
    __shared__ float sums[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int d = 16; d > 0; d /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, d);
    if (lane == 0) sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < warps ? sums[lane] : 0;
        for (int d = 16; d > 0; d /= 2)
            value += __shfl_xor_sync(0xffffffffu, value, d);
        if (lane == 0) sums[0] = value;
    }
    __syncthreads();
    return sums[0];  // the next call overwrites it
}
__global__ void reduce_twice(float* out) {
    const float first = block_reduce(1);
    out[threadIdx.x] = block_reduce(first);
}
__global__ void read_the_next_block(int* data) {
    if (threadIdx.x == 0) data[blockIdx.x] = data[blockIdx.x + 1] + 1;
}

__global__ void reuse_an_index(int* data) {  // 1024 elements
    __shared__ int begin[1];
    if (threadIdx.x == 0) begin[0] = 0;
    __syncthreads();
    const int first = begin[0];
    // __syncthreads() is missing
    if (threadIdx.x == 0) begin[0] = 2023;
    data[first + threadIdx.x] = 1;
}

// ---- Unwritten memory ---------------------------------------------------------------------------

__global__ void subtract_neighbours(const short* x, short* differences) {
    differences[threadIdx.x] = x[threadIdx.x + 1] - x[threadIdx.x];
}
__global__ void add_to_unwritten(float* sum) {
    *sum += 1;
}
__global__ void read_unwritten_shared(double* out) {
    __shared__ double values[32];
    out[threadIdx.x] = -2 * values[threadIdx.x];
}

// ---- Right --------------------------------------------------------------------------------------

__global__ void append(int* out, int* count) {
    out[atomicAdd(count, 1)] = threadIdx.x;
}
__global__ void add_in_any_order(float* sum) {
    atomicAdd(sum, 0.1f * threadIdx.x);
}
__global__ void take_turns(int* lock, float* value) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *value = *value * 0.5f + threadIdx.x;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
__global__ void note_clock(long long* out) {
    out[threadIdx.x] = clock64();
}
__global__ void keep_places(void** places) {
    cudaMalloc(&places[threadIdx.x], 16);
}
__global__ void keep_objects(int** places) {
    for (int round = 0; round < 2; ++round) {
        if (round == 0) continue;
        places[threadIdx.x] = new int(threadIdx.x);
    }
}
__device__ void* memory_of_the_device() {
    return malloc(16);
}
__global__ void keep_memory(void** places) {
    places[threadIdx.x] = memory_of_the_device();
}
__global__ void reduce(const float* in, float* out) {
    __shared__ float values[256];
    const unsigned t = threadIdx.x;
    values[t] = in[t];
    for (unsigned d = 128; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) values[t] += values[t + d];
    }
    if (t == 0) out[blockIdx.x] = values[0];
}
__global__ void print_once() {
    if (threadIdx.x == 0) printf("from the kernel\n");
}
__global__ void add(float* data, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] += 1;
}

__global__ void count_threads(int* counter) {
    atomicAdd(counter, 1);
}
__global__ void tell_failure(bool* failure, bool is_wrong) {
    if (is_wrong) *failure = true;
}

// The rows of threads add to the same element: each order of warps gives the same sum.
__global__ void add_in_rows(float* sums, int n) {
    for (int i = 0; i < n; ++i)
        sums[threadIdx.x] += 1;
}
// The same in variables.
__device__ float row_sums[32];
__device__ float total;
__device__ float own_sums[256];
__device__ int place, places[256];
__global__ void add_in_variable(float* out) {
    row_sums[threadIdx.x] += 1;
    out[threadIdx.x] = row_sums[threadIdx.x];
}
__global__ void add_in_number() {
    total += 1;
}
__global__ void add_to_own_in_variable() {
    own_sums[threadIdx.y * blockDim.x + threadIdx.x] += 1;
}
__global__ void append_to_variable() {
    places[atomicAdd(&place, 1)] = threadIdx.y;
}
// Each warp has elements of its own.
__global__ void add_to_own(float* sums, int n) {
    for (int i = 0; i < n; ++i)
        sums[threadIdx.y * blockDim.x + threadIdx.x] += 1;
}
// The warps exchange values, in as many rounds as are asked for.
__global__ void rotate(float* data, int rounds, bool right) {
    __shared__ float row[128];
    const unsigned i = threadIdx.x;
    row[i] = static_cast<float>(i);
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        const float next = row[(i + 1) % 128];
        if (right) __syncthreads();
        row[i] = next;
        __syncthreads();
        if (round % 8 == 0) data[i] = next;
    }
    data[i] = row[i];
}

struct Vector {
    float* values;
    int size;
};
__global__ void double_it(Vector vector) {
    vector.values[0] *= 2;
}

// ---- Structures of which a part is unset ---------------------------------------------------------

struct Extents {
    float* data;
    long sizes[25];
    int count;
};
__global__ void use_extents(Extents extents) {
    extents.data[0] = static_cast<float>(extents.sizes[0]);
}
struct Buffer {
    char bytes[4000];
};
__global__ void use_buffer(Buffer buffer, float* out) {
    out[0] = buffer.bytes[0];
}
class Tensor {  // no aggregate
  public:
    explicit Tensor(float* data) : data_(data) { sizes_[0] = 7; }
    __device__ void set() const { data_[0] = static_cast<float>(sizes_[0]); }
    long* sizes() { return sizes_; }

  private:
    float* data_;
    long sizes_[25];
};
__global__ void use_tensor(Tensor tensor) {
    tensor.set();
}
struct Nested {
    int number;
    struct {
        double factor;
        const float* values[3];
    } inner;
    long unset;
};
__global__ void use_nested(Nested nested, float* out) {
    out[0] = static_cast<float>(nested.inner.factor);
}
void test_structures(const char* way, float* out, float* host) {
    const long unset = reinterpret_cast<long>(host);  // what the stack held before
    if (std::strcmp(way, "unset_integers") == 0) {
        Extents extents{out, {7}, 1};
        extents.sizes[9] = unset;
        use_extents<<<1, 1>>>(extents);
    } else if (std::strcmp(way, "unset_buffer") == 0) {
        Buffer buffer{};
        std::memcpy(buffer.bytes + 64, &unset, sizeof unset);
        use_buffer<<<1, 1>>>(buffer, out);
    } else if (std::strcmp(way, "unset_tensor") == 0) {
        Tensor tensor(out);
        tensor.sizes()[12] = unset;
        use_tensor<<<1, 1>>>(tensor);
    } else if (std::strcmp(way, "unset_nested") == 0) {
        use_nested<<<1, 1>>>({1, {2, {out, out}}, unset}, out);
    } else if (std::strcmp(way, "host_extents") == 0) {
        use_extents<<<1, 1>>>({host, {7}, 1});
    } else if (std::strcmp(way, "host_nested") == 0) {
        use_nested<<<1, 1>>>({1, {2, {out, host}}, 0}, out);
    }
    cudaDeviceSynchronize();
}

// ---- Virtual functions --------------------------------------------------------------------------

class Shape {
  public:
    __host__ __device__ virtual float area() const = 0;
    __host__ __device__ virtual ~Shape() {}
};
class Named {
  public:
    virtual void name() {}
};
class Square : public Named, public Shape {
  public:
    __host__ __device__ explicit Square(float side) : side_(side) {}
    __host__ __device__ float area() const override { return side_ * side_; }

  private:
    float side_;
};
struct Numbered {
    int number;
    Square square;
};
struct Numbers {  // with the same words, but for the table's address
    long list[sizeof(Numbered) / sizeof(long)];
};
__global__ void measure(const Numbered* shape, float* out) {
    *out = shape->square.area();
}
__global__ void measure_copy(Square shape, float* out) {
    *out = shape.area();
}
__global__ void make_shape(Shape** shape) {
    *shape = new Square(2);
}
__global__ void measure_made(Shape** shape, const Numbers*, float* out) {
    *out = (*shape)->area();
    delete *shape;
}
void test_virtual_functions(const char* way, float* out) {
    if (std::strcmp(way, "virtual_copied") == 0) {
        const Numbered host[2] = {{1, Square(3)}, {2, Square(4)}};
        Numbered* device = nullptr;
        cudaMalloc(&device, sizeof host);
        cudaMemcpy((void*)device, (const void*)host, sizeof host, cudaMemcpyHostToDevice);
        measure<<<1, 1>>>(device, out);
    } else if (std::strcmp(way, "virtual_argument") == 0) {
        measure_copy<<<1, 1>>>(Square(3), out);
    } else if (std::strcmp(way, "virtual_managed") == 0) {
        Numbered* managed = nullptr;
        cudaMallocManaged(&managed, sizeof *managed);
        new (managed) Numbered{1, Square(3)};
        measure<<<1, 1>>>(managed, out);
    } else if (std::strcmp(way, "virtual_of_the_device") == 0) {
        Shape** shape = nullptr;
        cudaMallocManaged(&shape, sizeof *shape);
        Numbers host{}, *device = nullptr;
        cudaMalloc(&device, sizeof host);
        cudaMemcpy(device, &host, sizeof host, cudaMemcpyHostToDevice);
        make_shape<<<1, 1>>>(shape);
        measure_made<<<1, 1>>>(shape, device, out);
    }
    cudaDeviceSynchronize();
}

// Products and sums of NaNs of both signs.
__global__ void combine_nans(float* data, float* out) {
    __shared__ float turned[64];
    const int i = threadIdx.x;
    turned[i] = i % 3 == 0 ? -data[i] : data[i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 64; ++k)
        sum += turned[k] * data[(i + k) % 64];
    __syncthreads();
    turned[i] = sum - data[i];
    __syncthreads();
    out[i] = turned[63 - i] + sum * turned[i ^ 1];
}

int main(int count, char** values) {
    const auto is = [&](const char* name) { return count > 1 && std::strcmp(values[1], name) == 0; };
    constexpr int kFloats = 8192;
    static float host[kFloats];
    for (float& each : host)
        each = 1;
    float* data = nullptr;
    cudaMalloc(&data, sizeof host);
    float* const out = data + 4096;
    cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
    if (count > 1) test_virtual_functions(values[1], out);
    float* const of_the_host = new float[4]();
    if (count > 1) test_structures(values[1], out, of_the_host);
    if (is("missing_barrier")) sum_rows_too_early<<<1, 256>>>(data, out);
    if (is("reused_shared_memory")) reduce_twice<<<1, 64>>>(out);
    if (is("other_order_of_blocks")) read_the_next_block<<<8, 32>>>(reinterpret_cast<int*>(data));
    if (is("unwritten_counter") || is("counter") || is("freed_counter")) {
        int* counter = nullptr;
        cudaMallocManaged(&counter, sizeof *counter);
        if (is("counter")) *counter = 0;
        count_threads<<<3, 32>>>(counter);
        cudaDeviceSynchronize();
        if (is("freed_counter")) cudaFree(counter);
    }
    if (is("same_sum")) add_in_rows<<<1, dim3(32, 8)>>>(data, 10);
    if (is("same_sum_in_variable")) add_in_variable<<<1, dim3(32, 8)>>>(data);
    if (is("same_sum_in_number")) {
        cudaMemcpyToSymbol(total, host, sizeof total);
        add_in_number<<<1, dim3(32, 8)>>>();
    }
    if (is("own_sums_in_variable")) add_to_own_in_variable<<<1, dim3(32, 8)>>>();
    if (is("list_in_variable")) append_to_variable<<<1, dim3(32, 8)>>>();
    if (is("own_sums")) add_to_own<<<1, dim3(32, 8)>>>(data, 10);
    if (is("long_launch") || is("long_and_right")) rotate<<<1, 128>>>(data, 30000, is("long_and_right"));
    if (is("long_blocks")) rotate<<<8, 128>>>(data, 10000, false);
    if (is("many_threads") || is("many_and_right")) rotate<<<4096, 128>>>(data, 2, is("many_and_right"));
    if (is("unwritten_flag")) {
        bool* failure = nullptr;
        cudaMallocManaged(&failure, sizeof *failure);
        tell_failure<<<1, 32>>>(failure, false);
        cudaDeviceSynchronize();
        if (*failure) return 3;
    }
    if (is("host_pointer") || is("device_pointer")) {
        float on_host = 1;
        double_it<<<1, 1>>>({is("host_pointer") ? &on_host : data, 1});
        cudaDeviceSynchronize();
    }
    if (is("racy_index")) {
        cudaMalloc(&data, 4096);
        reuse_an_index<<<1, 32>>>(reinterpret_cast<int*>(data));
        return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
    }
    if (is("nans")) {
        const float some[] = {NAN, -NAN, INFINITY, -INFINITY, 1, 0, -0.0f};
        float signs[64];
        for (int i = 0; i < 64; ++i)
            signs[i] = some[i * i % 7];
        cudaMemcpy(data, signs, sizeof signs, cudaMemcpyHostToDevice);
        combine_nans<<<1, 64>>>(data, out);
        cudaDeviceSynchronize();
    }
    if (is("append")) {
        cudaMemset(data, 0, 4);
        append<<<2, 100>>>(reinterpret_cast<int*>(out), reinterpret_cast<int*>(data));
    }
    if (is("sum_in_any_order")) add_in_any_order<<<4, 64>>>(data);
    if (is("lock")) {
        cudaMemset(data, 0, 4);
        take_turns<<<4, 32>>>(reinterpret_cast<int*>(data), out);
    }
    if (is("clock")) note_clock<<<1, 32>>>(reinterpret_cast<long long*>(data));
    if (is("places")) keep_places<<<1, 32>>>(reinterpret_cast<void**>(data));
    if (is("objects")) keep_objects<<<1, 32>>>(reinterpret_cast<int**>(data));
    if (is("memory")) keep_memory<<<1, 32>>>(reinterpret_cast<void**>(data));
    if (is("reduction")) reduce<<<4, 256>>>(data, out);
    if (is("printing")) print_once<<<1, 32>>>();
    if (is("large")) {
        float* large = nullptr;
        cudaMalloc(&large, 24 << 20);
        cudaMemset(large, 0, 24 << 20);
        add<<<64, 256>>>(large, 6 << 20);
    }
    if (is("short_host_array")) {  // two pages are asked for, one is there
        auto* const pages = static_cast<char*>(
            mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(pages + 4096, 4096, PROT_NONE);
        cudaMalloc(&data, 8192);
        cudaMemcpy(data, pages, 8192, cudaMemcpyHostToDevice);
    }
    if (is("unwritten_tail")) {
        cudaFree(data);
        cudaMalloc(&data, sizeof host);
        cudaMemset(data, 0, 40 * sizeof(float));
        add<<<1, 32>>>(data, 40);
    }
    if (is("shorts_of_minus_three")) {
        short numbers[33];
        for (int i = 0; i < 33; ++i)
            numbers[i] = static_cast<short>(i % 10 < 4 ? -3 * i : i);
        cudaMemcpy(data, numbers, sizeof numbers, cudaMemcpyHostToDevice);
        subtract_neighbours<<<1, 32>>>(reinterpret_cast<short*>(data), reinterpret_cast<short*>(data) + 64);
        cudaMemcpy(numbers, reinterpret_cast<short*>(data) + 64, 32 * sizeof(short), cudaMemcpyDeviceToHost);
        return 0;
    }
    if (is("unwritten_float") || is("unwritten_shared_double")) {
        cudaFree(data);
        cudaMalloc(&data, sizeof host);
        if (is("unwritten_float")) {
            add_to_unwritten<<<1, 1>>>(data);
            cudaMemcpy(host, data, sizeof(float), cudaMemcpyDeviceToHost);
        } else {
            read_unwritten_shared<<<1, 32>>>(reinterpret_cast<double*>(data));
            cudaMemcpy(host, data, 32 * sizeof(double), cudaMemcpyDeviceToHost);
        }
        return 0;
    }
    cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) return 1;
    if (is("assertion")) {
        add<<<1, 32>>>(data, 32);
        assert(host[0] == 12345);
    }
    if (is("failure")) {
        add<<<1, 32>>>(data, 32);
        return 3;
    }
    return 0;
}
