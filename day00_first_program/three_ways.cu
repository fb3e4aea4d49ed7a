// c = a + b three ways: OpenMP threads, processes, CUDA threads. Which worker adds which element?
//
//   nvcc -Xcompiler -fopenmp three_ways.cu -o three_ways && ./three_ways 10 4
//   ./course run day00 --program three_ways 10 4
#include <cuda_runtime.h>
#include <omp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

// Most CUDA functions return an error code. This ends the program at the first call that fails.
#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

constexpr long kMostElements = 1 << 26;
constexpr int kMostWorkers = 64;
constexpr int kThreadsPerBlock = 256;

// c = a + b, and by[i]: the number of the worker that has added element i.
struct Arrays {
    const float* a;
    const float* b;
    float* c;
    int* by;
};

// The share of one of several workers: the elements from first(worker) to first(worker + 1). The
// shares differ by one element at most.
long first(int worker, int workers, long n) {
    return n * worker / workers;
}

// --- 1. OpenMP: threads of one process, which share its memory ------------------------------------

// Returns how many threads there were. `#pragma omp parallel for` would divide the loop by itself.
int add_with_openmp(const Arrays& x, long n, int workers) {
    int threads = 0;
#pragma omp parallel num_threads(workers)
    {
        const int worker = omp_get_thread_num();
        const int all = omp_get_num_threads();
        for (long i = first(worker, all, n); i < first(worker + 1, all, n); ++i) {
            x.c[i] = x.a[i] + x.b[i];
            x.by[i] = worker;
        }
        if (worker == 0) threads = all;
    }
    return threads;
}

// --- 2. Processes: each has its own memory, except what is mapped as shared -----------------------

// fork() makes a copy of this process. It returns 0 in the copy, and the copy's number here.
void add_with_processes(const Arrays& x, long n, int workers) {
    pid_t children[kMostWorkers];
    for (int worker = 0; worker < workers; ++worker) {
        children[worker] = fork();
        if (children[worker] < 0) {
            perror("fork");
            exit(1);
        }
        if (children[worker] > 0) continue;
        for (long i = first(worker, workers, n); i < first(worker + 1, workers, n); ++i) {
            x.c[i] = x.a[i] + x.b[i];
            x.by[i] = worker;
        }
        _exit(0);
    }
    for (int worker = 0; worker < workers; ++worker) {
        int status = 0;
        if (waitpid(children[worker], &status, 0) < 0 || status != 0) {
            fprintf(stderr, "process %d failed\n", worker);
            exit(1);
        }
    }
}

// --- 3. CUDA: one thread for each element ---------------------------------------------------------

__global__ void add(const float* a, const float* b, float* c, int* by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
        by[i] = i;
    }
}

// Returns how many blocks there were.
int add_with_cuda(const Arrays& x, long n) {
    const size_t bytes = n * sizeof(float);
    static_assert(sizeof(int) == sizeof(float));
    float *a_d = nullptr, *b_d = nullptr, *c_d = nullptr;
    int* by_d = nullptr;
    CUDA_CHECK(cudaMalloc(&a_d, bytes));
    CUDA_CHECK(cudaMalloc(&b_d, bytes));
    CUDA_CHECK(cudaMalloc(&c_d, bytes));
    CUDA_CHECK(cudaMalloc(&by_d, bytes));
    CUDA_CHECK(cudaMemcpy(a_d, x.a, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(b_d, x.b, bytes, cudaMemcpyHostToDevice));
    const int blocks = static_cast<int>((n + kThreadsPerBlock - 1) / kThreadsPerBlock);
    add<<<blocks, kThreadsPerBlock>>>(a_d, b_d, c_d, by_d, static_cast<int>(n));
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(x.c, c_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(x.by, by_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(a_d));
    CUDA_CHECK(cudaFree(b_d));
    CUDA_CHECK(cudaFree(c_d));
    CUDA_CHECK(cudaFree(by_d));
    return blocks;
}

// --- The program ----------------------------------------------------------------------------------

// Memory that this process and the copies that fork() makes of it have in common, all zeros.
void* shared_memory(size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) return memory;
    perror("mmap");
    exit(1);
}

// Whether all of c is right. Prints the workers, and prepares c and by for the next way.
bool check(const char* way, const Arrays& x, long n) {
    for (long i = 0; i < n; ++i) {
        if (x.c[i] != x.a[i] + x.b[i]) {
            fprintf(stderr, "%s: c[%ld] is %g; expected %g\n", way, i, x.c[i], x.a[i] + x.b[i]);
            return false;
        }
    }
    printf("%s: %ld elements are right. Element 0 is by worker %d, the last one by worker %d\n", way, n,
           x.by[0], x.by[n - 1]);
    if (n <= 20) {
        printf("    workers:");
        for (long i = 0; i < n; ++i)
            printf(" %d", x.by[i]);
        printf("\n");
    }
    fflush(stdout);  // or each copy of this process would have the text, too
    for (long i = 0; i < n; ++i) {
        x.c[i] = -1;
        x.by[i] = -1;
    }
    return true;
}

// The whole number in `text`; ends the program if it is none, or not from 1 to `most`.
long number(const char* name, const char* text, long most) {
    char* end = nullptr;
    const long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= 1 && value <= most) return value;
    fprintf(stderr, "usage: three_ways [N [WORKERS]]\n%s is '%s'; expected a whole number from 1 to %ld\n",
            name, text, most);
    exit(2);
}

int main(int argc, char** argv) {
    if (argc > 3) {
        fprintf(stderr, "usage: three_ways [N [WORKERS]]\n");
        return 2;
    }
    const long n = number("N", argc > 1 ? argv[1] : "1000000", kMostElements);
    const int workers = static_cast<int>(number("WORKERS", argc > 2 ? argv[2] : "4", kMostWorkers));

    const size_t bytes = n * sizeof(float);
    float* a = static_cast<float*>(shared_memory(bytes));
    float* b = static_cast<float*>(shared_memory(bytes));
    const Arrays x{a, b, static_cast<float*>(shared_memory(bytes)), static_cast<int*>(shared_memory(bytes))};
    for (long i = 0; i < n; ++i) {
        a[i] = 0.5f * static_cast<float>(i % 1000) + 1.0f;
        b[i] = 3.0f - 0.25f * static_cast<float>(i % 7);
    }

    // First the processes: a copy of a process has neither its other threads nor its use of the
    // GPU.
    char way[80];
    add_with_processes(x, n, workers);
    snprintf(way, sizeof way, "processes, %d", workers);
    if (!check(way, x, n)) return 1;

    const int threads = add_with_openmp(x, n, workers);
    snprintf(way, sizeof way, "OpenMP, %d threads", threads);
    if (!check(way, x, n)) return 1;

    const int blocks = add_with_cuda(x, n);
    snprintf(way, sizeof way, "CUDA, %d blocks of %d threads", blocks, kThreadsPerBlock);
    if (!check(way, x, n)) return 1;
}
