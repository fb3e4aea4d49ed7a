// Who frees a sparse matrix? Reference counting beside one owner with views, on COO, whose matrix
// has three arrays.
//
//   nvcc owners.cu -o owners && ./owners
//   ./course run day35_spmv/beyond/owners.cu
//   ./course run day35_spmv/beyond/owners.cu -- dangling    # a view whose owner is gone
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

constexpr int kBlock = 256;

std::size_t bytes_allocated = 0;  // and not freed yet

template <class T>
T* copy_to_device(const std::vector<T>& host) {
    T* data = nullptr;
    CUDA_CHECK(cudaMalloc(&data, host.size() * sizeof(T)));
    bytes_allocated += host.size() * sizeof(T);
    CUDA_CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return data;
}

// For destructors, which must not end the program: the error stays for the next cudaGetLastError().
template <class T>
void free_on_device(T* data, std::size_t size) {
    static_cast<void>(cudaFree(data));
    bytes_allocated -= size * sizeof(T);
}

struct HostCoo {
    std::vector<int> rows;
    std::vector<int> cols;
    std::vector<float> values;
};

// --- 1. Reference counting: every copy is an owner, the last one frees ----------------------------

template <class T>
class SharedBuffer {
  public:
    explicit SharedBuffer(const std::vector<T>& host)
        : data_(copy_to_device(host)), size_(host.size()), owners_(new std::atomic<int>(1)) {}
    SharedBuffer(const SharedBuffer& other) : data_(other.data_), size_(other.size_), owners_(other.owners_) {
        owners_->fetch_add(1, std::memory_order_relaxed);
    }
    SharedBuffer& operator=(SharedBuffer other) {  // which frees what this was
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(owners_, other.owners_);
        return *this;
    }
    ~SharedBuffer() {
        if (owners_->fetch_sub(1, std::memory_order_acq_rel) > 1) return;
        free_on_device(data_, size_);
        delete owners_;
    }
    __host__ __device__ std::size_t size() const { return size_; }
    __device__ const T& operator[](std::size_t i) const { return data_[i]; }
    int owners() const { return *owners_; }

  private:
    T* data_;
    std::size_t size_;
    std::atomic<int>* owners_;  // in the host's memory
};

struct SharedCoo {
    explicit SharedCoo(const HostCoo& host) : rows(host.rows), cols(host.cols), values(host.values) {}
    SharedBuffer<int> rows;
    SharedBuffer<int> cols;
    SharedBuffer<float> values;
};

// --- 2. One owner, and views that own nothing -----------------------------------------------------

template <class T>
struct View {
    T* data;
    std::size_t count;
    __host__ __device__ std::size_t size() const { return count; }
    __device__ T& operator[](std::size_t i) const { return data[i]; }
};

template <class T>
class UniqueBuffer {
  public:
    explicit UniqueBuffer(const std::vector<T>& host) : data_(copy_to_device(host)), size_(host.size()) {}
    UniqueBuffer(UniqueBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    UniqueBuffer& operator=(UniqueBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~UniqueBuffer() {
        if (data_ != nullptr) free_on_device(data_, size_);
    }
    View<T> view() { return {data_, size_}; }
    View<const T> view() const { return {data_, size_}; }

  private:
    T* data_;
    std::size_t size_;
};

struct CooView {
    View<const int> rows;
    View<const int> cols;
    View<const float> values;
};

struct UniqueCoo {
    explicit UniqueCoo(const HostCoo& host) : rows(host.rows), cols(host.cols), values(host.values) {}
    CooView view() const { return {rows.view(), cols.view(), values.view()}; }
    UniqueBuffer<int> rows;
    UniqueBuffer<int> cols;
    UniqueBuffer<float> values;
};

// What the compiler knows: the first may be copied, with work; the second may only be moved; the
// view is copied byte by byte, as arguments of kernels are.
static_assert(std::is_copy_constructible_v<SharedCoo> && !std::is_trivially_copyable_v<SharedCoo>);
static_assert(!std::is_copy_constructible_v<UniqueCoo> && std::is_move_constructible_v<UniqueCoo>);
static_assert(std::is_trivially_copyable_v<CooView>);

// --- The same kernel for both ---------------------------------------------------------------------

// y += A x: a thread for each entry. Coo: SharedCoo, which the launch copies, or CooView.
template <class Coo>
__global__ void multiply(Coo a, const float* x, float* y) {
    const std::size_t i = blockIdx.x * std::size_t{kBlock} + threadIdx.x;
    if (i < a.values.size()) atomicAdd(&y[a.rows[i]], a.values[i] * x[a.cols[i]]);
}

// Returns whether y = A x is right. All values are whole numbers, so that every order of the
// additions has the same sum.
template <class Coo>
bool multiplies(const Coo& a, const HostCoo& host, int n) {
    std::vector<float> x(n), expected(n), y(n);
    for (int i = 0; i < n; ++i)
        x[i] = static_cast<float>(i % 10);
    for (std::size_t i = 0; i < host.values.size(); ++i)
        expected[host.rows[i]] += host.values[i] * x[host.cols[i]];
    const UniqueBuffer<float> x_d(x);
    UniqueBuffer<float> y_d(y);
    const unsigned blocks = static_cast<unsigned>((host.values.size() + kBlock - 1) / kBlock);
    float* const y_data = y_d.view().data;
    multiply<<<blocks, kBlock>>>(a, x_d.view().data, y_data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(y.data(), y_data, n * sizeof(float), cudaMemcpyDeviceToHost));
    return y == expected;
}

// --- What a copy costs ----------------------------------------------------------------------------

int owners_inside(SharedCoo a) {
    return a.values.owners();
}

// Called through a pointer that the compiler cannot follow.
template <class Coo>
std::size_t entries(Coo a) {
    return a.values.size();
}

template <class Coo>
double nanoseconds_per_call(const Coo& a) {
    constexpr int kCalls = 1000000;
    std::size_t (*volatile call)(Coo) = entries<Coo>;
    std::size_t sum = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i)
        sum += call(a);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return sum == kCalls * entries(a) ? time.count() / kCalls : -1;
}

// --- The program ----------------------------------------------------------------------------------

// n x n: 4 on the diagonal, -1 beside it.
HostCoo tridiagonal(int n) {
    HostCoo a;
    for (int row = 0; row < n; ++row) {
        for (int col = row > 0 ? row - 1 : 0; col <= row + 1 && col < n; ++col) {
            a.rows.push_back(row);
            a.cols.push_back(col);
            a.values.push_back(row == col ? 4.0f : -1.0f);
        }
    }
    return a;
}

bool show_shared(const HostCoo& host, int n) {
    const SharedCoo a(host);
    const int before = a.values.owners();
    const int inside = owners_inside(a);
    const bool right = multiplies(a, host, n);
    CUDA_CHECK(cudaDeviceSynchronize());
    printf("reference counting: y is %s; owners of the values: %d, in a function %d, after the launch %d\n",
           right ? "right" : "WRONG", before, inside, a.values.owners());
    printf("reference counting: an argument of a kernel has %zu bytes, a call by value takes %.1f ns\n",
           sizeof a, nanoseconds_per_call(a));
    return right;
}

bool show_unique(const HostCoo& host, int n) {
    UniqueCoo a(host);
    const bool right = multiplies(a.view(), host, n);
    const UniqueCoo b = std::move(a);
    printf("one owner: y is %s; after a move the old owner has %zu entries, the new one %zu\n",
           right ? "right" : "WRONG", a.view().values.size(), b.view().values.size());
    printf("one owner: an argument of a kernel has %zu bytes, a call by value takes %.1f ns\n",
           sizeof(CooView), nanoseconds_per_call(b.view()));
    return right;
}

int main(int argc, char** argv) {
    constexpr int kRows = 1000;
    const bool dangling = argc == 2 && std::strcmp(argv[1], "dangling") == 0;
    if (argc > 1 && !dangling) {
        fprintf(stderr, "usage: owners [dangling]\nthe argument is '%s'; expected dangling, or none\n",
                argv[1]);
        return 2;
    }
    const HostCoo host = tridiagonal(kRows);
    if (dangling) {
        const CooView view = UniqueCoo(host).view();  // the owner goes at the end of this line
        const bool right = multiplies(view, host, kRows);
        printf("a view without its owner: y is %s\n", right ? "right, by chance" : "WRONG");
        return 1;
    }
    bool right = show_shared(host, kRows);
    printf("reference counting: %zu bytes are left\n", bytes_allocated);
    right = show_unique(host, kRows) && right;
    printf("one owner: %zu bytes are left\n", bytes_allocated);

    // Any copy keeps the memory, also one that has been forgotten.
    std::vector<SharedCoo> cache;
    {
        const SharedCoo a(host);
        SharedCoo b(tridiagonal(10));
        b = a;  // frees what b was
        cache.push_back(b);
    }
    printf("reference counting, with a copy in a cache: %zu bytes are left\n", bytes_allocated);
    cache.clear();
    printf("when the cache is empty: %zu bytes are left\n", bytes_allocated);
    CUDA_CHECK(cudaGetLastError());  // of a destructor, too
    return right ? 0 : 1;
}
