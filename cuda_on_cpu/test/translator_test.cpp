// The translator, text to text: what it must leave alone, what it must change, and that lines stay
// where they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokens.hpp"
#include "translate.hpp"

namespace {

using translator::Dialect;
using translator::translate;
using translator::TranslationError;

std::string gnu(std::string_view input) {
    return translate(input, Dialect::gnu);
}

auto lines_of(std::string_view text) {
    return std::count(text.begin(), text.end(), '\n');
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// The text without blanks: how the translator spaces its words is its own affair.
std::string dense(std::string_view text) {
    std::string result;
    std::copy_if(text.begin(), text.end(), std::back_inserter(result),
                 [](char c) { return c != ' ' && c != '\n' && c != '\t'; });
    return result;
}

// Input and output on the GNU dialect, blanks apart.
void expect_translation(const std::string& input, const std::string& expected) {
    EXPECT_EQ(dense(gnu(input)), dense(expected)) << input;
}

// ---- Left alone ---------------------------------------------------------------------------------

constexpr const char* kUntouched[] = {
    "",
    "\n",
    "x",
    "int main() { return 0; }\n",
    "# 1 \"file.cu\"\nint x;\n# 2 \"other.h\" 1 3 4\nint y;\n",
    "// comment with __global__ void k() { and <<<1, 2>>>(\nint x;\n",
    "/* __shared__ int x; \n <<< */ int x; // \\\n continued __shared__\n",
    "const char* s = \"kernel<<<1, 1>>>(x) __shared__ \\\" // no comment\";\n",
    "const char* s = R\"(kernel<<<1, 1>>>(\") __global__ \\)\";\n",
    "const char* s = R\"xy()\" __shared__ )xy\" \"tail\";\nauto t = u8R\"(/*)\"; auto u = "
    "LR\"(\n\n)\";\n",
    "char c = '\"'; char d = '\\''; char e = '\\\\'; char f = L'<'; int after = '{';\n",
    "long n = 1'000'000; double d = 1.5e-10; auto h = 0x1.8p+3f; int b = 0b1'0; auto u = 10'0'0ull;\n",
    "auto operators = a << b; c <<= d; e >> f >= g; h < i; bool x = a<b>>c;\n",
    "template <class T> std::ostream& operator<<<T>(std::ostream&, const T&);\nauto f = "
    "&X::operator<<<int>;\n",
    "std::vector<std::vector<std::vector<int>>> v(3); f<g<h<int>>>(x);\n",
    "do { work(); } while (more());\n",
    "void f() { do work(); while (more()); }\n",
    "void f() { do if (a) b(); else c(); while (d()); }\n",
    "void f() { do for (;;) { break; } while (d()); }\n",
    "void f() { do { do x(); while (y); } while (d()); }\n",
    "void f() { do if constexpr (a) { b(); } else if (c) for (;;) e(); else while (g) h(); while (d()); "
    "i(); }\n",
    "void f() { while (x) { y(); } for (int i = 0; i < 3; ++i) z(i); }\n",
    "__attribute__((__noinline__)) void f(); __attribute__((cold, __noinline__)) void g();\n",
    "#pragma omp parallel for\nfor (int i = 0; i < 3; ++i) f(i);\n#pragma GCC unroll 4\nfor (;;) f();\n",
    "#pragma GCC diagnostic ignored \"-Wloop-unroll\"\n",
    "struct S { int __shared; int global__; int launch_bounds; };\n",
    "extern \"C\" { int f(); }\nextern \"C\" int g();\nextern int x[];\n",
    "cudaMemcpy((void*)to, (const void*)from, 4);\n"};

TEST(Untouched, ComesBackByteForByte) {
    for (const char* text : kUntouched) {
        EXPECT_EQ(translate(text, Dialect::gnu), text);
        EXPECT_EQ(translate(text, Dialect::clang), text);
    }
}

// ---- Rows of threads ----------------------------------------------------------------------------

std::string with_loops(std::string_view input, Dialect dialect = Dialect::gnu) {
    return translate(input, dialect, translator::SharedArrays::plain, translator::DeviceVariables::own,
                     nullptr, translator::ThreadLoops::on);
}

// Parameters and body of a kernel of which each thread only computes.
constexpr const char* kOnlyCompute[] = {
    "float* x, float a) { x[threadIdx.x] *= a; }",
    "const float* __restrict__ x, float* __restrict__ y, float a, int n) { int i = blockIdx.x * blockDim.x + "
    "threadIdx.x; if (i >= n) return; y[i] = a * x[i] + y[i]; }",
    "const float* x, float* y, std::size_t n) { const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + "
    "threadIdx.x, j = i + 1; if (j < n) y[i] = fmaxf(x[j], 0.0f) - std::size_t(1); }",
    "const float4* x, float4* y) { const float4 v = x[threadIdx.x]; y[threadIdx.x] = {v.x, v.y, v.z, v.w}; "
    "(y + 1)->x = reinterpret_cast<const float*>(x)[0]; }",
    "unsigned char* x, const double* y) { auto* p = x + threadIdx.y; *p = y[gridDim.z] > 0.5 ? kScale : 1; }",
    "float* x) { x[threadIdx.x] = table[threadIdx.x % 4]; }",
    "int* x) {\n# 7 \"file.cu\"\n    x[threadIdx.x] = sizeof(int);\n}",
    "int* x) { if (x[threadIdx.x] > 0) counter = warps[1]; }",
    "int* x) { x[0] = x[1] << x[2]; }",
    "int* x) { }",
};

TEST(Rows, AreMadeOfKernelsThatOnlyCompute) {
    const std::string before =
        "constexpr int kScale = 3; __constant__ float table[4]; __device__ int counter; static __device__ "
        "unsigned char warps[2]; ";
    for (const char* rest : kOnlyCompute) {
        for (const std::string head :
             {"__global__ void k(", "template <class T, int kN = 3> __global__ void k("}) {
            const std::string input = before + head + rest;
            const std::string translated = with_loops(input);
            EXPECT_TRUE(contains(translated, "prepare_rows<::cuda_on_cpu::all_plain<")) << translated;
            EXPECT_EQ(lines_of(translated), lines_of(input));
            EXPECT_FALSE(contains(gnu(input), "prepare_rows"));  // where nothing asks for loops
        }
    }
    const std::string one =
        with_loops("template <class T> __global__ void k(T* x) { x[threadIdx.x] = T(1); }");
    EXPECT_TRUE(contains(one, "all_plain<T>")) << one;
    EXPECT_TRUE(contains(one, "x[cuda_on_cpu_place_.threadIdx.x] = T(1)")) << one;
    EXPECT_TRUE(contains(one, "mutable __attribute__((always_inline)) {")) << one;
    EXPECT_TRUE(contains(with_loops("__global__ void k(int* x) { *x = 1; }", Dialect::clang),
                         "__attribute__((always_inline)) mutable {"));
}

// All else runs thread by thread.
constexpr const char* kMoreThanComputes[] = {
    "float* x) { x[threadIdx.x] = 1; __syncthreads(); }",
    "float* x) { x[0] = __shfl_down_sync(~0u, x[threadIdx.x], 1); }",
    "int* x) { x[threadIdx.x] = atomicAdd(x, 1); }",
    "int* x) { atomicAdd(x, 1); }",
    "int* x) { printf(\"%d\\n\", x[0]); }",
    "int* x) { assert(x[0] > 0); }",
    "int* x) { x[threadIdx.x] = other_function(x[0]); }",
    "int* x) { x[threadIdx.x] = fmaxf(1, 2) + own::fmaxf(1, 2); }",
    "int* x) { x[threadIdx.x] = fminf(1, 2); }",
    "int* x) { __shared__ int s; s = 1; x[threadIdx.x] = s; }",
    "int* x) { extern __shared__ int s[]; x[threadIdx.x] = s[0]; }",
    "int* x) { while (x[0] == 0) x[1] = 1; }",
    "volatile int* x) { x[threadIdx.x] = 1; }",
    "int* x) { *(volatile int*)x = 1; }",
    "int* x) { for (int i = 0; i < 3; ++i) x[i] = 1; }",
    "int* x) { do x[0] = 1; while (x[1]); }",
    "int* x) { again: if (x[0]) goto again; }",
    "int* x) { int local[4]; local[x[1]] = 1; x[0] = local[0]; }",
    "int* x) { asm(\"bar.sync 0;\"); x[0] = 1; }",
    "int* x) { const auto f = [] { return 1; }; x[0] = f(); }",
    "int* x) { x[0] = [&] { return x[1]; }(); }",
    "int* x) { static int count; x[0] = count; }",
    "int* x) { x[0] = flag; }",
    "int* x) { x[0] = *place; }",
    "int* x) { x[0] = of_host; }",
    "Own x) { x[threadIdx.x] = 1; }",
    "int* x, Own y) { x[threadIdx.x] = 1; }",
    "int* x) { Own own; x[threadIdx.x] = 1; }",
    "int* x) { x[threadIdx.x] = Own{}[3]; }",
    "int* x) { x[threadIdx.x] = ::Own::value; }",
    "int (*x)(int)) { x(1); }",
    "const Own* x, int* y) { y[0] = x->value; }",
    "int& x) { x = 1; }",
    "int* x) { k<<<1, 1>>>(x); }",
    "int* x) { int* p = new int; *p = 1; x[0] = *p; }",
    "int* x) { throw 1; }",
    "int* x) { struct { int y; } s; x[0] = s.y; }",
    "float2* x) { x[0] = x[1] * x[2]; }",
    "int* x) { if (int own = Own(3)) x[0] = own; }",
};

TEST(Rows, AreNotMadeOfOtherKernels) {
    const std::string before =
        "struct Own { int value; }; __device__ volatile int flag; __device__ int* place; int of_host; float "
        "fminf(float a, float b) { "
        "__syncthreads(); return a; } __device__ float2 operator*(float2 a, float2 b) { return a; } ";
    for (const char* rest : kMoreThanComputes) {
        const std::string translated = with_loops(before + "__global__ void k(" + rest);
        EXPECT_FALSE(contains(translated, "prepare_rows")) << translated;
    }
    for (const char* head :
         {"__global__ __launch_bounds__(64) void k(", "template <class... T> __global__ void k(",
          "template <template <class> class T> __global__ void k("}) {
        const std::string translated = with_loops(std::string(head) + "int* x) { x[threadIdx.x] = 1; }");
        EXPECT_FALSE(contains(translated, "prepare_rows")) << translated;
    }
    // The name of a constant that is something else elsewhere in the file.
    EXPECT_FALSE(contains(with_loops("namespace a { constexpr int kOne = 1; } namespace b { Own kOne; } "
                                     "__global__ void k(int* x) { x[0] = kOne; }"),
                          "prepare_rows"));
}

// ---- Functions of the program's own in loops -----------------------------------------------------

// Functions whose value depends on their arguments alone.
constexpr const char* kOwnFunctions[] = {
    "__device__ int own(int a, int b) { return a > b ? a : b; }",
    "__host__ __device__ int own(const int a, int b) { int k; if (a <= b) k = b; else k = a; return k; }",
    "static __device__ inline double own(float a, double b) { return sqrtf(a) / 2.0f * float(b); }"
    " int other() { int own = 3; return own; } struct S { int own(int); };",
    "namespace { __attribute__((always_inline)) inline __device__ bool own(float x, float y) { return x < y "
    "&& !(y > 3) || x - y < 1.0f; } } float on_host() { return own(1, 2) + own(2, 1); }",
};

// All else: it may do more than compute, or another function may be meant.
constexpr const char* kNoOwnFunctions[] = {
    "int own(int a, int b) { return a + b; }",
    "__device__ int own(int a, int b);",
    "__device__ int own(int a, int b); __device__ int own(int a, int b) { return a + b; }",
    "__device__ int own(int a, int b) { return a + b; } __device__ float own(float a, float b) { return a; }",
    "__device__ int own(int a, int b) { return a + b; } extern \"C\" { float own(float a, float b); }",
    "__device__ int own(int a, int b) { return a + b; } namespace n { float own(float, float); } using "
    "namespace n;",
    "__device__ int own(int a, int b) { return a + b; } using n::own;",
    "template <class T> __device__ T own(T a, T b) { return a + b; }",
    "__device__ int own(int a, int b = 3) { return a + b; }",
    "__device__ int own(int& a, int b) { return ++a; }",
    "__device__ int own(const int& a, int b) { return a; }",
    "__device__ int own(int* a, int b) { return *a; }",
    "__device__ int own(int a, Own b) { return a; }",
    "__device__ auto own(int a, int b) { return a; }",
    "__device__ int& own(int a, int b) { return counter; }",
    "__device__ volatile int own(int a, int b) { return a; }",
    "__device__ int own(int a, int b) { return a > 0 ? own(a - 1, b) : b; }",
    "__device__ int own(int a, int b) { __syncthreads(); return a; }",
    "__device__ int own(int a, int b) { return __shfl_sync(~0u, a, b); }",
    "__device__ int own(int a, int b) { return a + threadIdx.x; }",
    "__device__ int own(int a, int b) { return counter; }",
    "__device__ int own(int a, int b) { counter = a; return b; }",
    "__device__ int own(int a, int b) { static int calls; return ++calls; }",
    "__device__ int own(int a, int b) { for (; a > 0; --a) b += a; return b; }",
    "__device__ int own(int a, int b) { while (a) --a; return b; }",
    "__device__ int own(int a, int b) { again: if (a--) goto again; return b; }",
    "__device__ int own(int a, int b) { int list[2] = {a, b}; return list[a]; }",
    "__device__ int own(int a, int b) { return *(&a + b); }",
    "__device__ int own(int a, int b) { return (long)&a; }",
    "__device__ int own(int a, int b) { int& r = a; r = 3; return a; }",
    "__device__ int own(int a, int b) { int* r = (int*)0; return r != 0; }",
    "__device__ int own(int a, int b) { return a / b; }",
    "__device__ int own(int a, int b) { return a % b; }",
    "__device__ int own(int a, int b) { printf(\"%d\", a); return b; }",
    "__device__ int own(int a, int b) { return unknown(a); }",
    "__device__ int own(int a, int b) { return [=] { return a; }(); }",
    "__device__ int own(int a, int b) { asm(\"membar.gl;\"); return a; }",
    "__device__ int own(int a, int b) { throw a; }",
    "__device__ int own(int a, int b) try { return a; } catch (...) { return b; }",
    "__device__ int own(int a, int b) { return 3_km; }",
    "__device__ __noinline__ int own(int a, int b) { return a; }",
    "struct S { static __device__ int own(int a, int b) { return a; } };",
    "__device__ int (*own)(int, int);",
    "#define own(a, b) other(a)\n",
};

TEST(OwnFunctions, AreCalledInLoops) {
    const std::string kernels[] = {
        "__global__ void k(int* x) { x[threadIdx.x] = own(x[1], 2); }",
        "__global__ void k(int* x) { __shared__ int s[32]; s[threadIdx.x] = own(own(x[1], 2), 3); "
        "__syncthreads(); for (int i = 0; i < own(1, 3); ++i) { __syncthreads(); x[i] += s[3]; } }"};
    for (const char* function : kOwnFunctions) {
        for (const std::string& kernel : kernels) {
            const std::string translated = with_loops(function + (" " + kernel));
            EXPECT_TRUE(contains(translated, "::cuda_on_cpu::all_plain<> && ::cuda_on_cpu::is_only<"))
                << translated;
            EXPECT_TRUE(contains(translated, ">(own, 0)>(")) << translated;
            EXPECT_TRUE(contains(translated, "__attribute__((__always_inline__, __used__)) ")) << translated;
            EXPECT_FALSE(contains(translated, "inline inline"));
        }
        EXPECT_FALSE(contains(with_loops(function), "__used__"));
    }
    for (const char* function : kNoOwnFunctions) {
        for (const std::string& kernel : kernels) {
            const std::string translated =
                with_loops("struct Own {}; __device__ int counter; " + std::string(function) + " " + kernel);
            EXPECT_FALSE(contains(translated, "prepare_rows")) << translated;
            EXPECT_FALSE(contains(translated, "prepare_regions")) << translated;
        }
    }
}

TEST(OwnFunctions, AreNotWhatHasTheirNameInTheKernel) {
    const std::string own = "__device__ int own(int a, int b) { return a + b; } ";
    for (const char* kernel : {"__global__ void k(int (*own)(int, int), int* x) { x[0] = own(1, 2); }",
                               "template <class own> __global__ void k(int* x) { x[0] = own(1, 2); }",
                               "__global__ void k(int* x) { int own = 3; x[0] = own(1, 2); }",
                               "__global__ void k(int* x) { float own(float, float); x[0] = own(1, 2); }",
                               "__global__ void k(int* x) { x[0] = n::own(1, 2); }",
                               "__global__ void k(int* x) { x[0] = ::own(1, 2); }",
                               "__global__ void k(int* x) { x[0] = own<3>(1, 2); }",
                               "__global__ void k(int* x) { auto f = own; x[0] = f(1, 2); }"}) {
        const std::string translated = with_loops(own + kernel);
        EXPECT_FALSE(contains(translated, "is_only") || contains(translated, "__used__")) << translated;
        EXPECT_FALSE(contains(translated, "prepare_rows<::cuda_on_cpu::all_plain<>>")) << translated;
    }
}

// ---- Regions ------------------------------------------------------------------------------------

// Parameters and body of a kernel that the threads of a block run region by region.
constexpr const char* kInRegions[] = {
    "float* x) { __shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = "
    "s[63 - threadIdx.x]; }",
    "float* x, int n) { extern __shared__ float s[]; float own = x[threadIdx.x]; for (int i = 0; i < n; ++i) "
    "{ "
    "s[threadIdx.x] = own; __syncthreads(); own += s[0]; __syncthreads(); } x[threadIdx.x] = own; }",
    "int* x, int n) { __shared__ int s[2]; int i, j = 1, *p = x; for (i = n; i > 0; i >>= 1) { "
    "for (j = 0; j < i; ++j) s[j % 2] += j; __syncthreads(); } x[threadIdx.x] = i + j + p[1]; }",
    "int* x, int n) { if (n > blockDim.x) { x[0] = 1; __syncthreads(); } else if (n) { __syncthreads(); x[1] "
    "= 2; "
    "} else { x[2] = 2; } if (threadIdx.x < n) return; x[3] = 4; }",
    "int* x) {\n#pragma unroll\n for (int i = 0; i < 4; ++i) {\n __syncthreads();\n if (i == kScale) "
    "break;\n "
    "x[i] = 1; while (x[i] < 9) { if (x[i] == 3) break; ++x[i]; } } }",
    "int* x) { { const int own = x[threadIdx.x], other = own; __syncthreads(); x[threadIdx.x] = own + other; "
    "} "
    "{ int own = 1 << threadIdx.x; __syncthreads(); x[threadIdx.x] += own; } }",
    "int* x) { __syncthreads(); }",
    "int* x, int n) { for (int i = 0; i < n; ++i) { __shared__ int s[64]; s[threadIdx.x] = i; "
    "__syncthreads(); "
    "x[threadIdx.x] += s[3] & n && x; if (x[1]) (*x)++; (*x) += 1; x[2] &= i; int* p = &x[3]; *p = 1; } }",
    "float* x) { float *own = x + x[0] > x ? x : x + 1, value = *own; __syncthreads(); *own = value; }",
};

TEST(Regions, AreWhatLiesBetweenBarriers) {
    const std::string before = "constexpr int kScale = 3; ";
    for (const char* rest : kInRegions) {
        for (const std::string head :
             {"__global__ void k(", "template <class T, int kN = 3> __global__ void k("}) {
            const std::string input = before + head + rest;
            const std::string translated = with_loops(input);
            EXPECT_TRUE(contains(translated, "prepare_regions<::cuda_on_cpu::all_plain<")) << translated;
            EXPECT_TRUE(contains(translated, "if constexpr (CudaOnCpuThreads::kAlone) __syncthreads();"))
                << translated;
            EXPECT_EQ(lines_of(translated), lines_of(input)) << translated;
            EXPECT_FALSE(contains(gnu(input), "prepare_regions"));
        }
    }
    const std::string one = with_loops(
        "__global__ void k(float* x) { float sum = 0, y; const int i = threadIdx.x; y = x[i]; "
        "__syncthreads(); "
        "x[i] = sum + y; }");
    EXPECT_TRUE(contains(one, "x[i] = sum + y; }); }")) << one;
    EXPECT_TRUE(contains(one, "auto& sum = CudaOnCpuThreads::kept(")) << one;
    const std::string stars = with_loops(
        "__global__ void k(float* x) { const float *own, value = x[0]; own = x; __syncthreads(); x[1] = *own "
        "+ value; }");
    EXPECT_TRUE(contains(stars, "RowOf<CudaOnCpuThreads, const float *> own_row_")) << stars;
    EXPECT_TRUE(contains(stars, "RowOf<CudaOnCpuThreads, const float > value_row_")) << stars;
    const std::string loaded =
        with_loops("__global__ void k(int* x, int n) { const bool b = n&&*x; __syncthreads(); x[1] = b; }");
    EXPECT_TRUE(contains(loaded, "RowOf<CudaOnCpuThreads, const bool > b_row_")) << loaded;
    std::string many;
    for (int i = 0; i < 17; ++i)
        many += "int a" + std::to_string(i) + " = x[" + std::to_string(i) + "]; ";
    std::string sum;
    for (int i = 0; i < 17; ++i)
        sum += " + a" + std::to_string(i);
    const std::string begin = "__global__ void k(int* x) { ";
    EXPECT_FALSE(
        contains(with_loops(begin + many + "__syncthreads(); x[0] = 0" + sum + "; }"), "prepare_regions"));
    EXPECT_TRUE(contains(with_loops(begin + many + "__syncthreads(); x[0] = a3; }"), "prepare_regions"));
    EXPECT_TRUE(contains(one, "{ const int i = cuda_on_cpu_place_.threadIdx.x;") ||
                contains(one, " const int i = cuda_on_cpu_place_.threadIdx.x;"))
        << one;
}

// All else runs thread by thread.
constexpr const char* kNotInRegions[] = {
    "int* x) { if (threadIdx.x < 3) { __syncthreads(); } }",
    "int* x) { if (x[0]) { __syncthreads(); } }",
    "int* x, const int* n) { for (int i = 0; i < *n; ++i) { __syncthreads(); } }",
    "int* x, const int* n) { for (int i = 0; i < (int)*n; ++i) { __syncthreads(); } }",
    "int* x, const int2* n) { for (int i = 0; i < n->x; ++i) { __syncthreads(); } }",
    "int* x) { for (int i = 0; i < counter; ++i) { __syncthreads(); } }",
    "int* x) { __shared__ int s; for (int i = 0; i < s; ++i) { __syncthreads(); } }",
    "int* x) { for (int i = threadIdx.x; i < 99; i += 32) { __syncthreads(); } }",
    "int* x) { int n = threadIdx.y; for (int i = 0; i < n; ++i) { __syncthreads(); } }",
    "int* x) { int n = 3; n += x[0]; for (int i = 0; i < n; ++i) { __syncthreads(); } }",
    "int* x) { for (int i = 0; i < 3; ++i) { __syncthreads(); i += x[0]; } }",
    "int* x) { int i; for (i = 0; i < 3; ++i) { __syncthreads(); if (x[0]) ++i; } }",
    "int* x) { int j = 0; for (int i = 0; i < 3; ++i, ++j) { __syncthreads(); } x[0] = j; }",
    "int* x) { for (int i = 0; ; ++i) { __syncthreads(); if (i == 9) break; } }",
    "int* x) { for (int i = 0; i < 9; ++i) { __syncthreads(); if (x[0]) break; } }",
    "int* x) { for (int i = 0; i < 9; ++i) { if (x[0]) continue; __syncthreads(); } }",
    "int* x) { int n = 3; while (n > 0) { __syncthreads(); n -= x[0]; } }",
    "int* x) { while (x[0]) { __syncthreads(); } }",
    "int* x) { int n = 3; while (n-- > 0) { __syncthreads(); } }",
    "int* x) { do { __syncthreads(); } while (x[0]); }",
    "int* x) { for (int i = 0; i < 3; ++i) __syncthreads(); }",
    "int* x) { if (x[0] == 0) return; __syncthreads(); }",
    "int* x) { for (int i = 0; i < 3; ++i) { __syncthreads(); if (x[0] == i) return; } }",
    "int* x, int n) { n += 1; __syncthreads(); x[0] = n; }",
    "int* x, int n) { ++n; __syncthreads(); x[0] = n; }",
    "int* x, int n) { int* p = &n; *p = 1; __syncthreads(); x[0] = n; }",
    "int* x) { int own[2]; own[0] = 1; __syncthreads(); x[0] = own[0]; }",
    "int* x) { auto own = x[1]; __syncthreads(); x[0] = own; }",
    "int* x) { int own{x[1]}; __syncthreads(); x[0] = own; }",
    "int* x) { x[0] = __syncthreads_count(x[1]); __syncthreads(); }",
    "int* x) { __syncwarp(); __syncthreads(); }",
    "int* x) { atomicAdd(x, 1); __syncthreads(); }",
    "int* x) { x[0] = other_function(1); __syncthreads(); }",
    "volatile int* x) { x[0] = 1; __syncthreads(); }",
    "int* x) { __shared__ volatile int s[32]; s[threadIdx.x] = 1; __syncthreads(); }",
    "int* x) { __shared__ Own s[32]; __syncthreads(); }",
    "int* x) { static int own; own = 1; __syncthreads(); }",
    "int* x) { int x_ = x[1]; { int x_ = 3; __syncthreads(); x[0] = x_; } }",
    "Own x) { __syncthreads(); x[0] = 1; }",
    "int* x) { again: __syncthreads(); if (x[0]) goto again; }",
    "int* x) { if (x[0]) { __shared__ int s; s = 1; } __syncthreads(); }",
    "int* x) { int i = threadIdx.x; int* p = &i; x[i] = 1; __syncthreads(); x[1] = *p; }",
    "int* x) { int i = x[1]; int* p = &(i); __syncthreads(); x[1] = *p; }",
    "int* x) { int c = 0; (c)++; __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { int c = 0; ++(c); __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { int c = 0; (c) += x[0]; __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { int c = 0; (c) <<= x[0]; __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { int c = 0; if (x[0]) (c) = 1; __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { int c = 0; (*x, c) = 1; __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { int c = 0; int d = 1; (*x ? c : d) = 1; __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { int c = 0; ++(*x, c); __syncthreads(); x[threadIdx.x] = c; }",
    "float* x) { float2 v = float2{1.0f, 2.0f}; (v).x = x[0]; __syncthreads(); x[threadIdx.x] = v.x; }",
    "float* x) { float2 v = float2{1.0f, 2.0f}; (v).x++; __syncthreads(); x[threadIdx.x] = v.x; }",
    "int* x) { int* p = x; { int* __restrict__ & r = p; r += x[0]; } __syncthreads(); p[0] = 1; }",
    "int* x) { int c = 0; if (x[0]) x[1] = 1; else &c; __syncthreads(); x[threadIdx.x] = c; }",
    "int* x) { float f = threadIdx.x; reinterpret_cast<unsigned&>(f) = 1; __syncthreads(); x[0] = f; }",
    "int* x) { int y = threadIdx.x; { int r = 1; x[y] = r; } { int& r = y; r += 5; } __syncthreads(); x[1] = "
    "y; }",
    "int* x) { constexpr int n = kTable[1]; x[n] = 1; __syncthreads(); x[2] = n; }",
    "int* x) { const int n = kTable[1]; __shared__ int s[n]; s[0] = 1; __syncthreads(); x[2] = s[0]; }",
    "int* x) { int r = threadIdx.x * kN; for (int kN = 0; kN < 4; ++kN) { x[r] = kN; __syncthreads(); } }",
    "int* x) { __shared__ float4 s[64]; x[0] = (s[0] + s[1]).x; __syncthreads(); }",
};

TEST(Regions, AreNotMadeOfOtherKernels) {
    for (const char* rest : kNotInRegions) {
        const std::string translated = with_loops(
            "struct Own { int value; }; __device__ int counter; constexpr int kTable[2] = {1, 2}; constexpr "
            "int kN = 8; __device__ float4 operator+(float4 a, float4 b) { return a; } __global__ void k(" +
            std::string(rest));
        EXPECT_FALSE(contains(translated, "prepare_regions")) << translated;
        EXPECT_FALSE(contains(translated, "prepare_rows")) << translated;
    }
}

// Of variables that all threads change alike the block has one.
TEST(Regions, HaveUniformVariables) {
    for (const char* change :
         {"for (int i = 2; i <= 64; i *= 2) if (n >= i) left = i;", "left = n;",
          "left <<= n; { ++left; left--; }",
          "if (n > 3) left = 5; else if (blockIdx.x != kN) left -= gridDim.y, left += 2; else { left = last; "
          "}",
          "int j = 1; for (j = 0; j < n && j < kN; ++j) left += j; for (j = 0; j < 4; ++j) x[j] = 1;",
          "last = own(left, n); left = min(last, static_cast<int>(blockDim.x)) * 2;",
          "{ int left = 2; x[left] = 1; } left = 3;",
          "for (int step = 1; step < left; step *= 2) { left -= step; __syncthreads(); last += step; }"}) {
        const std::string translated = with_loops(
            "constexpr int kN = 8; __device__ int own(int a, int b) { return a < b ? a : b; } "
            "__global__ void k(int* x, int n) { int left = 4; int last = n; " +
            std::string(change) +
            " const int mine = left + threadIdx.x; while (left > 1) { left /= 2; __syncthreads(); x[mine] = "
            "left; } }");
        EXPECT_TRUE(contains(translated, "prepare_regions")) << translated;
        EXPECT_TRUE(contains(translated, "while (left > 1) { left /= 2; if constexpr (Cuda")) << translated;
        EXPECT_TRUE(contains(translated, "mine_row_")) << translated;
    }
}

// Threads may change these apart.
TEST(Regions, HaveNoUniformVariablesThatThreadsChangeApart) {
    for (const char* change : {"if (threadIdx.x < 3) left = 2;",
                               "if (x[0]) left = 2;",
                               "left = x[0];",
                               "left += *x;",
                               "left = threadIdx.x;",
                               "left -= mine;",
                               "int t = threadIdx.x; left -= t;",
                               "left = s[0];",
                               "left = s[0][0];",
                               "left = counter;",
                               "last = x[1]; left = last;",
                               "last = left; left = mine; last++;",
                               "for (int i = 0; i < threadIdx.x; ++i) left = i;",
                               "for (int i = 0; i < x[0]; ++i) left = i;",
                               "for (int i = x[0]; i < 3; ++i) left = i;",
                               "for (int i = 0; i < 3; i += x[0]) left = i;",
                               "while (x[0] > 3) --left;",
                               "if (left-- > x[0]) x[1] = 1;",
                               "x[left++] = 1;",
                               "const int next = left++ + x[0]; x[next] = 1;",
                               "{ int left = threadIdx.x; ++left; x[left] = 1; }",
                               "int none; none = 4; left = none;",
                               "int none, zero = 0; left = zero;",
                               "for (int i = 0; i < 4; ++i) { if (i == x[0]) break; left = i; }",
                               "for (int i = 0; i < 4; ++i) { if (i == x[0]) continue; left = i; }",
                               "int j = x[0]; if (n) for (j = 0; j < 3; ++j) left = j; left = j;",
                               "int j = x[0]; if (n) for (j = 0; j < 3; ++j) left = j;",
                               "int j = x[0]; for (; j < 3; ++j) left = j;",
                               "left = own(x[0], n);",
                               "left = own(mine, n);",
                               "left = (mine > 3 ? 1 : 2);",
                               "left = last = x[0];",
                               "left = (last = mine);",
                               "left = mine++;",
                               "if (n) left = 1; else left = x[0];",
                               "if (n) { left = 1; x[0] = 2; }",
                               "left = n, x[0] = left;",
                               "left = int2{n, mine}.x;",
                               "float f = x[0]; left = f;",
                               "auto other = n; left = other;",
                               "int* p = x + n; left = *p;",
                               "int* p = x + n; left = p[0];",
                               "int* p = x + n; left = p - x;",
                               "n_ = mine; left = n_;",
                               "for (int last = 0; last < 3; ++last) left = last;",
                               "for (int i = 0, j = mine; i < 3; ++i) left = j;",
                               "for (int i = 0; left < 4; ++i, left += mine) ;",
                               "if (n) return; left = 1;",
                               "left = sizeof(x[0]);",
                               "do left = 1; while (x[0]);"}) {
        const std::string translated = with_loops(
            "__device__ int counter; __device__ int own(int a, int b) { return a < b ? a : b; } "
            "__global__ void k(int* x, int n) { __shared__ int s[4]; int mine = threadIdx.x; ++mine; int "
            "left = "
            "4; int last = n; int n_ = 3; " +
            std::string(change) + " while (left > 1) { left /= 2; __syncthreads(); x[mine] = left; } }");
        EXPECT_FALSE(contains(translated, "prepare_regions")) << change << "\n" << translated;
    }
}

// ---- Launches -----------------------------------------------------------------------------------

TEST(Launch, BecomesACallAndAConfiguration) {
    expect_translation("k<<<1, 2>>>(x, y);",
                       "(::cuda_on_cpu::configuration(1, 2) << (k(x, y), ::cuda_on_cpu::Prepared()));");
    expect_translation("k<<<grid, dim3(1, 2), n * sizeof(int), s>>>();",
                       "(::cuda_on_cpu::configuration(grid, dim3(1, 2), n * sizeof(int), s) << (k(), "
                       "::cuda_on_cpu::Prepared()));");
    expect_translation("a::k<b<c<int>>><<<1, f<g<int>>(2)>>>(x);",
                       "(::cuda_on_cpu::configuration(1, f<g<int>>(2)) << (a::k<b<c<int>>>(x), "
                       "::cuda_on_cpu::Prepared()));");
    expect_translation(
        "k<(N >> 1)><<<n >> 2, m << 1>>>(x);",
        "(::cuda_on_cpu::configuration(n >> 2, m << 1) << (k<(N >> 1)>(x), ::cuda_on_cpu::Prepared()));");
    expect_translation(
        "(*p)<<<1, 1>>>(x[1], {2, 3});",
        "(::cuda_on_cpu::configuration(1, 1) << ((*p)(x[1], {2, 3}), ::cuda_on_cpu::Prepared()));");
    expect_translation(
        "k<<<[&] { return 1; }(), 2>>>(x);",
        "(::cuda_on_cpu::configuration([&] { return 1; }(), 2) << (k(x), ::cuda_on_cpu::Prepared()));");
}

TEST(Launch, BracketsMayHaveBlanks) {
    expect_translation("k << < 1, 2 >> > (x);",
                       "(::cuda_on_cpu::configuration(1, 2) << (k(x), ::cuda_on_cpu::Prepared()));");
    expect_translation("k<< <1, 2>> >(x);",
                       "(::cuda_on_cpu::configuration(1, 2) << (k(x), ::cuda_on_cpu::Prepared()));");
    expect_translation("k< <<1, n >> 2> >>(x);",
                       "(::cuda_on_cpu::configuration(1, n >> 2) << (k(x), ::cuda_on_cpu::Prepared()));");
    expect_translation(
        "k<<<1, f<g<h<int> > >(2)>>>(x);",
        "(::cuda_on_cpu::configuration(1, f<g<h<int> > >(2)) << (k(x), ::cuda_on_cpu::Prepared()));");
}

TEST(Launch, InsideAnArgumentOfAnother) {
    expect_translation(
        "f([&] { k<<<1, 2>>>(x); });",
        "f([&] { (::cuda_on_cpu::configuration(1, 2) << (k(x), ::cuda_on_cpu::Prepared())); });");
    expect_translation("a<<<1, 2>>>(x), b<<<3, 4>>>(y);",
                       "(::cuda_on_cpu::configuration(1, 2) << (a(x), ::cuda_on_cpu::Prepared())), "
                       "(::cuda_on_cpu::configuration(3, 4) << (b(y), ::cuda_on_cpu::Prepared()));");
}

TEST(Launch, InsideTheConfigurationOfAnother) {
    expect_translation(
        "a<<<[&] { b<<<1, 2>>>(y); return 1; }(), 3>>>(x);",
        "(::cuda_on_cpu::configuration([&] { (::cuda_on_cpu::configuration(1, 2) << (b(y), "
        "::cuda_on_cpu::Prepared())); return 1; }(), 3) << (a(x), ::cuda_on_cpu::Prepared()));");
}

TEST(Launch, OfAKernelMayShiftInItsConfiguration) {
    const std::string translated = gnu("__global__ void k(int n) { k<<<1 << n, 32>>>(n); }");
    EXPECT_TRUE(
        contains(translated, "(::cuda_on_cpu::configuration(1 <<  ::cuda_on_cpu::shift_amount(n), 32) << (k"))
        << translated;
}

// What is in front of <<< comes behind the configuration, whole.
TEST(Launch, TakesTheWholeExpressionInFront) {
    const auto expect_callee = [](const std::string& before, const std::string& callee) {
        expect_translation(before + callee + "<<<1, 2>>>(x);",
                           before + "(::cuda_on_cpu::configuration(1, 2) << (" + callee +
                               "(x), ::cuda_on_cpu::Prepared()));");
    };
    for (const char* before : {"", "if (a) ", "if constexpr (f(a)) ", "else ", "return ", "for (int i : a) ",
                               "b, ", "a ? ", "(void)", "a > ", "case 1: ", "default: ", "} ", "do "}) {
        for (const char* callee : {"k", "k<int, (N > 1)>", "a::b<c>::k<d>", "a::template k<b>", "::k",
                                   "::a::k", "e.kernel", "list[i].kernel", "p->q->kernel", "find(x)",
                                   "find<int>(x)[2]", "list[i][j]", "e.find(x)->kernel"})
            expect_callee(before, callee);
        expect_callee(std::string(before) == "(void)" ? "" : before, "(*p)");
    }
}

TEST(Launch, KeepsLinesAndDirectives) {
    const std::string text =
        "k<<<\n# 7 \"file.cu\"\n  grid, // the grid\n  block>>>(\n  x,\n# 9 \"file.cu\"\n  y\n);\nnext();\n";
    const std::string translated = gnu(text);
    EXPECT_EQ(lines_of(translated), lines_of(text));
    EXPECT_TRUE(contains(translated, "\n# 7 \"file.cu\"\n"));
    EXPECT_TRUE(contains(translated, "\n# 9 \"file.cu\"\n"));
    EXPECT_TRUE(contains(translated, "configuration(grid, block) << (k\n")) << translated;
    EXPECT_TRUE(translated.ends_with(";\nnext();\n"));
}

// ---- Kernels ------------------------------------------------------------------------------------

struct KernelCase {
    const char* source;
    const char* constructor;  // of the Kernel object
    const char* arguments;    // that are handed to prepare() behind the closure
};

constexpr KernelCase kKernels[] = {
    {"__global__ void k() { f(); }", "__PRETTY_FUNCTION__", ""},
    {"__global__ void k(int a, float* b) { f(); }", "__PRETTY_FUNCTION__", ", a, b"},
    {"static __global__\nvoid k(const T* __restrict__ a,\n std::size_t n = 3)\n{ f(); }\n",
     "__PRETTY_FUNCTION__", ", a, n"},
    {"void __global__ k(int (*f)(int), int x) { f(x); }", "__PRETTY_FUNCTION__", ", f, x"},
    {"__global__ void k(int, float*, const double, T, a::b, int* __restrict__) {}", "__PRETTY_FUNCTION__",
     ""},
    {"template <class... T> __global__ void k(int* out, T... v) { f(v...); }", "__PRETTY_FUNCTION__",
     ", out, v..."},
    {"__global__ void k(std::pair<int, float> p, std::array<int, 3> q = {1, 2, 3}, unsigned "
     "long long n) {}",
     "__PRETTY_FUNCTION__", ", p, q, n"},
    {"__global__ void __launch_bounds__(256) k(int a) {}",
     "__PRETTY_FUNCTION__, ::cuda_on_cpu::first_of(256)", ", a"},
    {"__global__ __launch_bounds__(N * 2, 3) void k(int a) {}",
     "__PRETTY_FUNCTION__, ::cuda_on_cpu::first_of(N * 2, 3)", ", a"},
    {"__launch_bounds__(f<1, 2>(3), 1, 2) __global__ void k(int a) {}",
     "__PRETTY_FUNCTION__, ::cuda_on_cpu::first_of(f<1, 2>(3), 1, 2)", ", a"},
    {"__global__ void __cluster_dims__(2, 1, 1) k(int a) {}",
     "__PRETTY_FUNCTION__, ::cuda_on_cpu::first_of(1024), dim3(2, 1, 1)", ", a"},
    {"__global__ void __cluster_dims__(2) __launch_bounds__(64) k(int a) { if (a) { return; } }",
     "__PRETTY_FUNCTION__, ::cuda_on_cpu::first_of(64), dim3(2)", ", a"},
    {"extern \"C\" __global__ void k(float4 a[], int b) {}", "__PRETTY_FUNCTION__", ", a, b"}};

TEST(Kernels, BecomeClosuresOverTheirParameters) {
    for (const KernelCase& kernel : kKernels) {
        const std::string translated = gnu(kernel.source);
        EXPECT_TRUE(
            contains(translated, std::string("Kernel cuda_on_cpu_kernel_(") + kernel.constructor + ");"))
            << translated;
        EXPECT_TRUE(contains(translated, std::string("}") + kernel.arguments + ");}")) << translated;
        const std::string names = std::string(kernel.arguments).empty() ? "" : kernel.arguments + 2;
        EXPECT_TRUE(contains(translated, ".prepare(\"" + names + "\", [=]")) << translated;
        for (const char* word : {"__global__", "__launch_bounds__", "__cluster_dims__"}) {
            EXPECT_FALSE(contains(translated, word)) << translated;
        }
        EXPECT_EQ(lines_of(translated), lines_of(kernel.source)) << translated;
    }
}

TEST(KernelDeclarations, AreDeclarationsOnly) {
    expect_translation("__global__ void k(int a = 3);", " void k(int a = 3);");
    expect_translation("template __global__ void k<int, 3>(int*);", "template void k<int, 3>(int*);");
    expect_translation("__global__ void __launch_bounds__(32) k();", " void k();");
    EXPECT_EQ(lines_of(gnu("__global__ void __launch_bounds__(sizeof(R\"(\n)\")) k();\n")), 2);
}

// ---- Shared memory ------------------------------------------------------------------------------

TEST(Kernels, TellOfGridConstantsWhereTheFileAsks) {
    const std::string kernel = "__global__ void k(int a, const __grid_constant__ int b) {";
    const std::string told = "GridConstants cuda_on_cpu_grid_constants_(b);";
    EXPECT_FALSE(contains(gnu(kernel + "}"), told));
    EXPECT_TRUE(contains(gnu(kernel + "} void f(void* p) { __isLocal(p); }"), told));
    EXPECT_TRUE(contains(
        gnu(kernel + "} void f(long p) { asm(\"{.reg .pred q; isspacep.local q, %0;}\" :: \"l\"(p)); }"),
        told));
    EXPECT_FALSE(contains(gnu(kernel + "} unsigned int __isLocal(const void* p);"), told));
}

TEST(Shared, AVariableByItselfHasUnusedBytesOnEachSide) {
    const std::string one = dense(gnu("void f() { __shared__ alignas(64) float tile[32]; }"));
    const std::size_t before = one.find("::cuda_on_cpu::SharedGapgap_");
    const std::size_t variable = one.find("alignas(64)");
    const std::size_t behind = one.rfind("::cuda_on_cpu::SharedGapgap_");
    EXPECT_TRUE(before < variable && variable < behind && behind != one.npos) << one;
    EXPECT_TRUE(contains(one, "staticthread_localfloattile[32]")) << one;
    EXPECT_FALSE(contains(gnu("void f() { __shared__ int a, b[4]; }"), "SharedGap"));
    EXPECT_FALSE(contains(gnu("__shared__ int a;"), "SharedGap"));
}

TEST(Shared, ArraysMayHaveGapsAroundThem) {
    const auto in_gaps = [](std::string_view input) {
        return dense(translate(input, Dialect::gnu, translator::SharedArrays::in_gaps));
    };
    const std::string one = in_gaps("void f() { alignas(16) __shared__ float tile[32][33]; }");
    EXPECT_TRUE(contains(one,
                         "staticthread_localstruct{charbefore_[256];alignas(16)floattile[32][33]"
                         "__attribute__((aligned(32)));charbehind_[256];}in_gaps_"))
        << one;
    EXPECT_TRUE(contains(one, "auto&tile=in_gaps_")) << one;
    EXPECT_TRUE(contains(one, "tile_shared_.enter(tile,\"tile\",256,true);")) << one;
    const std::string two = in_gaps("void f() { __shared__ int a, b[4]; }");
    EXPECT_TRUE(
        contains(two, "inta__attribute__((aligned(32))),b[4]__attribute__((aligned(32)));charbehind_[256];"))
        << two;
    EXPECT_TRUE(contains(two, "b_shared_.enter(b,\"b\",256);")) << two;
    const std::string outside = in_gaps("__shared__ int a;");
    EXPECT_FALSE(contains(outside, "before_")) << "a variable of the namespace keeps its place";
    const std::string dynamic = in_gaps("void f() { extern __shared__ float s[]; }");
    EXPECT_FALSE(contains(dynamic, "before_")) << "it lies at a guard page";
}

TEST(Shared, IsThreadLocalAndRegisteredWhereItIsDeclared) {
    const std::string one = gnu("void f() { __shared__ float tile[32][33]; }");
    EXPECT_TRUE(contains(one, "static thread_local float tile[32][33] __attribute__((aligned(64)));")) << one;
    EXPECT_TRUE(contains(one, "tile_shared_.enter(tile, \"tile\", gap_")) << one;

    const std::string many = gnu("void f() { __shared__ int a, b[4], *c; }");
    for (const char* name : {"a", "b", "c"}) {
        EXPECT_TRUE(contains(many, std::string(name) + "_shared_.enter(" + name + ", \"" + name + "\");"))
            << many;
    }
    EXPECT_TRUE(contains(gnu("void f() { static __shared__ std::array<int, 4> x; }"), "x_shared_.enter(x, "));
    EXPECT_TRUE(
        contains(gnu("void f() { __shared__ struct { int a; float b; } x; }"), "x_shared_.enter(x, "));
    EXPECT_TRUE(contains(gnu("void f() { __shared__ typename C<T, 3>::Storage x; }"), "x_shared_.enter(x, "));
    EXPECT_TRUE(
        contains(gnu("void f() { __shared__ alignas(16) char x[4]; }"), "alignas(16) static thread_local"));
}

TEST(Shared, IsAlignedForTensorCores) {
    for (const char* declaration :
         {"half a[N][8]", "volatile unsigned char a[4]", "const float b, a[2]", "T a[4]",
          "alignas(128) half a[4]", "std::array<half, 64> a", "Tile a", "float a", "decltype(b) a[4]"})
        EXPECT_TRUE(contains(gnu("void f() { __shared__ " + std::string(declaration) + "; }"),
                             " __attribute__((aligned(64)));"))
            << declaration;
}

TEST(Shared, ATypeMayBeThatOfAnExpression) {
    for (const char* declaration :
         {"decltype(f(1, 2)) x", "decltype(a + b) x[4]", "const decltype(a) *x", "__typeof__(a) x[2][3]",
          "std::remove_cv_t<decltype(a)> x[4]", "decltype(a) y, x[3]", "typename decltype(a)::Type x"})
        EXPECT_TRUE(contains(gnu("void f() { __shared__ " + std::string(declaration) + "; }"),
                             "x_shared_.enter(x, \"x\""))
            << declaration;
    EXPECT_TRUE(contains(dense(gnu("void f() { extern __shared__ decltype(a + b) s[]; }")),
                         "decltype(a+b)(&s)[]=*reinterpret_cast<decltype(a+b)(*)[]>"));
    EXPECT_TRUE(contains(gnu("__global__ void k(decltype(a) x) {}"), "}, x);"));
}

TEST(Shared, OutsideFunctionsIsEnteredWhereItIsUsed) {
    for (const char* declaration : {"__shared__ int x;", "__device__ __shared__ int x;",
                                    "__shared__ __device__ int x;", "static __device__ __shared__ int x;"}) {
        const std::string translated = gnu(declaration);
        EXPECT_TRUE(contains(dense(translated),
                             "staticthread_localintx__attribute__((aligned(64)));[[maybe_unused]]staticvoid"
                             "cuda_on_cpu_enter_x_(){"))
            << translated;
        EXPECT_FALSE(contains(translated, "used))")) << translated;
    }
    const std::string used = gnu(
        "namespace n { namespace { __shared__ int x[4], y; } int f() { return x[0]; } }\n"
        "int g() { return n::x[0] + n::y; } int own(int x) { return x; } int member(S s) { return s.x; }\n"
        "constexpr int c() { return sizeof n::x; } int before; int other() { return before; }\n");
    EXPECT_EQ(lines_of(used), 3);
    EXPECT_TRUE(contains(used, "int f() { ::n::cuda_on_cpu_enter_x_();")) << used;
    EXPECT_TRUE(contains(used, "int g() { ::n::cuda_on_cpu_enter_x_(); ::n::cuda_on_cpu_enter_y_();"))
        << used;
    for (const char* same :
         {"int own(int x) { return", "int member(S s) { return", "int c() { return", "int other() { return"})
        EXPECT_TRUE(contains(used, same)) << used;
    EXPECT_FALSE(contains(gnu("template <class T> __shared__ T x[4];"), "enter"));
}

TEST(Shared, DynamicVariableTemplateIsAFunction) {
    const std::string translated =
        gnu("template <class T> extern __shared__ __attribute__((aligned(16))) T s[];\n"
            "template <class T> void f() { T* p = s<T>; g(s<A<T, 2>>[1], s < 3); h.s<T>; }\n");
    EXPECT_EQ(lines_of(translated), 2);
    EXPECT_TRUE(contains(dense(translated), "template<classT>[[maybe_unused]]inline")) << translated;
    EXPECT_TRUE(contains(dense(translated), "(&s())[]{return*reinterpret_cast<")) << translated;
    EXPECT_TRUE(contains(translated, "T* p = s<T>(); g(s<A<T, 2>>()[1], s < 3); h.s<T>;")) << translated;
}

// ---- Names of the device in host code -----------------------------------------------------------

TEST(HostNames, VariablesAsArgumentsBecomeTheHostsOwn) {
    const std::string file = "__device__ int a[4], b; __device__ int c;\n";
    const auto expect = [&](const std::string& input, const std::string& expected) {
        std::vector<translator::Warning> warnings;
        const std::string text = translate(file + input, Dialect::gnu, translator::SharedArrays::plain,
                                           translator::DeviceVariables::own, &warnings);
        EXPECT_EQ(text.substr(text.find('\n') + 1), expected);
        EXPECT_EQ(warnings.empty(), input == expected) << input;
    };
    expect("void f() { cudaMemcpy(a, h, 4, k); }",
           "void f() { cudaMemcpy(::cuda_on_cpu::host_value(a, \"a\"), h, 4, k); }");
    expect("void f() { cudaMemset((void*)&c, 0, 4); }",
           "void f() { cudaMemset((void*)&::cuda_on_cpu::host_shadow(c, \"c\"), 0, 4); }");
    expect("namespace n { __device__ int g; } void f() { cudaMemcpy(&n::g, h, 4, k); }",
           "namespace n { static __attribute__((used)) int g; } void f() { "
           "cudaMemcpy(&::cuda_on_cpu::host_shadow(n::g, \"n::g\"), h, 4, k); }");
    expect("void f() { cudaMemset(&::c, 0, 4); }",
           "void f() { cudaMemset(&::cuda_on_cpu::host_shadow(::c, \"::c\"), 0, 4); }");
    for (const char* same :
         {"namespace n { int a[4]; } void f() { cudaMemcpy(n::a, h, 4, k); }",
          "struct S { static int a[4]; }; void f() { cudaMemcpy(S::a, h, 4, k); }",
          "void f() { cudaMemcpyToSymbol(a, h, 4); g(a); }", "void f(int* a) { cudaMemcpy(a, h, 4, k); }",
          "void f() { int* a = g(); cudaMemcpy(a, h, 4, k); }",
          "void f() { cudaMemcpy(p, h, sizeof(a), k); cudaMemcpy(s.a, n::a, 4, k); }",
          "void S::f() { cudaMemcpy(x, h, 4, k); }",
          "struct S { int* a; void f() { cudaMemcpy(a, h, 4, k); } };"})
        expect(same, same);
}

TEST(HostNames, VariablesInDeviceCodeStay) {
    const std::string text =
        dense(gnu("__device__ int a[4];\n__device__ void f() { k<<<1, 1>>>(a, &a[1]); }"));
    EXPECT_TRUE(contains(text, "k(a,&a[1])")) << text;
}

TEST(HostNames, FunctionsAreNamed) {
    const std::string file =
        "__device__ float f(float x) { return x; } __device__ int g(); __host__ __device__ int h(); "
        "namespace "
        "n { __device__ int i() { return 1; } } struct S { static __device__ int s() { return 1; } };"
        "template <class T> __device__ T c(T x) { return x; }\n";
    const auto warnings_of = [&](const std::string& input) {
        std::vector<translator::Warning> warnings;
        translate(file + input, Dialect::gnu, translator::SharedArrays::plain,
                  translator::DeviceVariables::own, &warnings);
        return warnings.size();
    };
    for (const char* wrong :
         {"void t() { P p = f; }", "void t() { P p = &f; P q = f; }", "void t() { P p[] = {g}; }",
          "void t() { P p = n::i; }", "void t() { P p = &S::s; }", "void t() { P p = &c<int>; }",
          "void t() { P p = ::f; }", "P t(bool b) { return b ? f : nullptr; }",
          "P t(bool b) { return b ? nullptr : &f; }", "P t() { return f; }", "void t() { use(1, f); }"})
        EXPECT_EQ(warnings_of(wrong), 1u) << wrong;
    for (const char* right :
         {"__device__ P p = f;", "__device__ P p[] = {f, g};", "__device__ P p[2]{&f};",
          "struct S { P p; }; __constant__ S s = {f};",
          "namespace s __attribute__((visibility(\"default\"))) { enum class E : int { a, f, b }; }",
          "void t() { P p = m::f; int s = 1; use(s, S::t); }", "void t() { bool b = c < 3; }",
          "void t() { P p = m::f; }", "void t() { P p = b ? h : m::f; }",
          "void t() { switch (n) { case f: break; } }", "void t() { for (P f : all) use(1); }",
          "__device__ void t() { P p = f; }", "void t() { k<f><<<1, 1>>>(); k<1, f>(2); }",
          "void t() { P p = h; decltype(f) q; use(sizeof(f)); }", "void t(P f) { P p = f; }",
          "void t() { auto f = 1; use(f); }", "void t() { s.f = 1; use(s.f); n::f(f_of(1)); }"})
        EXPECT_EQ(warnings_of(right), 0u) << right;
}

// ---- Names that g++ does not find ---------------------------------------------------------------

TEST(LooseNames, MemberTemplatesOfDependentTypesGetTheirKeyword) {
    const std::string declaration =
        "template <class T> struct C { template <int N> static void f(T); template <int N> void g(T); int m; "
        "};\n";
    const auto expect = [&](const std::string& input, const std::string& expected) {
        EXPECT_EQ(gnu(declaration + input), declaration + expected);
    };
    expect("template <class T> void a(T x) { C<T>::f<3>(x); }",
           "template <class T> void a(T x) { C<T>::template f<3>(x); }");
    expect(
        "template <class T> void a(T x) { T::f<3>(x); x.g<1>(2); x->g<1>(2); }",
        "template <class T> void a(T x) { T::template f<3>(x); x.template g<1>(2); x->template g<1>(2); }");
    for (const char* same :
         {"void a() { C<int>::f<3>(1); }", "template <class T> void a(T x) { C<T>::template f<3>(x); }",
          "template <class T> bool a(T x) { return C<T>::m < 3 && x > (2); }",
          "template <class T> bool a(T x) { return x.f < 3; }",
          "template <class T> void a(T x) { n::f<3>(x); }",
          "template <class T> bool a(int y) { return y > ::f<3>(y); }"})
        expect(same, same);
}

TEST(LooseNames, ATypeWhoseNameAMemberTakesIsQualified) {
    const std::string types = "template <class T> struct A { T t; }; namespace n { struct B { int b; }; }\n";
    const auto expect = [&](const std::string& input, const std::string& expected) {
        EXPECT_EQ(gnu(types + input), types + expected);
    };
    expect("template <class T> struct S { using A = A<T>; A a; };",
           "template <class T> struct S { using A = ::A<T>; A a; };");
    expect("struct S { typedef A<int> A; };", "struct S { typedef ::A<int> A; };");
    expect(
        "namespace n { struct S { B B; }; struct U { B* B; }; struct V { const B& B(int); }; }",
        "namespace n { struct S { ::n::B B; }; struct U { ::n::B* B; }; struct V { const ::n::B& B(int); }; "
        "}");
    for (const char* same :
         {"using D = A<int>;", "struct S { using A = n::A<int>; using C = A<int>; A<int> a; };",
          "typedef struct E { int e; } E;", "struct S { typedef struct A A; S(); A(); struct B B; };",
          "void f() { A<int> A; }", "struct S { using X = X<int>; };"})
        expect(same, same);
}

TEST(Shared, DynamicIsAReferenceIntoTheBlocksMemory) {
    const std::string translated =
        gnu("void f() { extern __shared__ __attribute__((aligned(16))) float4 tile[]; g(tile); }");
    EXPECT_TRUE(contains(dense(translated),
                         "float4(&tile)[]=*reinterpret_cast<float4(*)[]>(::cuda_on_cpu::dynamic_shared());"))
        << translated;
    EXPECT_FALSE(contains(translated, "extern"));
    EXPECT_TRUE(contains(gnu("void f() { extern __shared__ int rows[][4]; }"), "(&rows)[][4]"));
}

TEST(Shared, WordsMayComeInAnyOrder) {
    for (const char* declaration : {"extern double __shared__ s[];", "__shared__ extern double s[];",
                                    "extern __shared__ double s[];", "double extern __shared__ s[];"}) {
        const std::string translated = gnu("void f() { " + std::string(declaration) + " g(s); }");
        EXPECT_TRUE(contains(dense(translated), "double(&s)[]=*reinterpret_cast<double(*)[]>")) << translated;
        EXPECT_FALSE(contains(translated, "extern")) << translated;
    }
    const std::string own = gnu("void f() { float __shared__ tile[4]; g(tile); }");
    EXPECT_TRUE(contains(own, "float static thread_local tile[4] __attribute__((aligned(64)));")) << own;
    EXPECT_TRUE(contains(own, "tile_shared_.enter(tile, \"tile\", gap_")) << own;
}

TEST(Shared, DynamicAtFileScopeGivesWayToAnotherOfItsName) {
    const std::string translated =
        gnu("__shared__ extern int s[];\nvoid uses() { s[0] = 1; }\nint parameter(int* s) { return s[0]; }\n"
            "void local() { __shared__ int s[4]; s[0] = 1; }\nint inner() { { int s = 1; } return s[0]; }\n");
    EXPECT_TRUE(contains(translated, "void uses() { [[maybe_unused]]")) << translated;
    EXPECT_TRUE(contains(translated, "int parameter(int* s) { return")) << translated;
    EXPECT_TRUE(contains(translated, "; static thread_local int s[4]")) << translated;
    EXPECT_TRUE(contains(translated, "int inner() { [[maybe_unused]]")) << translated;
}

TEST(Shared, DynamicAtFileScopeIsDeclaredWhereItIsUsed) {
    const std::string translated =
        gnu("extern __shared__ float tile[];\nvoid uses() {\n tile[0] = 1; }\nvoid does_not() { other(); }\n"
            "namespace n { void uses_too() { tile[1] = 2; } }\n");
    EXPECT_EQ(lines_of(translated), 5);
    EXPECT_TRUE(contains(translated, "void uses() { [[maybe_unused]]")) << translated;
    EXPECT_TRUE(contains(translated, "void uses_too() { [[maybe_unused]]")) << translated;
    EXPECT_TRUE(contains(translated, "void does_not() { other(); }")) << translated;
    EXPECT_TRUE(contains(translated, "namespace n { void")) << translated;
}

// ---- Words --------------------------------------------------------------------------------------

TEST(DeviceWords, AreRemoved) {
    expect_translation(
        "__host__ __device__ inline int f() { return [=] __device__(int x) { return x; }(1); }",
        "inline int f() { return [=](int x) { return x; }(1); }");
    expect_translation("struct S { __device__ int f(); static __constant__ int x; };",
                       "struct S { int f(); static int x; };");
    expect_translation("__device__\nvoid f();", "void f();");
    EXPECT_EQ(lines_of(gnu("__device__\nvoid f();")), 1);
}

TEST(DeviceVariables, AreTheFilesOwn) {
    const std::string own = "static __attribute__((used))";
    for (const char* rest : {" int x;", " float* p;", " unsigned int x = 3;", " int (*f)(int) = g;",
                             " struct { int a; } x;", " const int x = f(3);"}) {
        for (const char* word : {"__device__", "__constant__", "__managed__"}) {
            EXPECT_EQ(gnu(word + std::string(rest)), own + rest);
            EXPECT_EQ(gnu("namespace n { " + (word + std::string(rest)) + " }"),
                      "namespace n { " + own + rest + " }");
            EXPECT_EQ(dense(translate(word + std::string(rest), Dialect::gnu, translator::SharedArrays::plain,
                                      translator::DeviceVariables::shared)),
                      dense(rest))
                << "-rdc=true";
        }
    }
    expect_translation("const __device__ __constant__ int x = 3;", "const" + own + " int x = 3;");
}

// The translation without the gaps and what is behind them.
std::string without_gaps(const std::string& translation) {
    static const std::regex before(R"(static __attribute__\(\(used\)\)[^;]*gap_\d+_before_[^;]*; )");
    static const std::regex behind(R"( static __attribute__\(\(used\)\)[^;]*gap_\d+_behind_[^;]*; [^;]*;)");
    return std::regex_replace(std::regex_replace(translation, before, ""), behind, "");
}

TEST(DeviceVariables, WithElementsLieBetweenGaps) {
    const std::string own = "static __attribute__((used))";
    for (const char* rest : {" float table[3] = {1, 2, 3};", " S s{};", " float4 v;", " a::B<int, 3> v;",
                             " const float* rows[4];"}) {
        const std::string translation = gnu("__device__" + std::string(rest));
        EXPECT_EQ(without_gaps(translation), own + rest);
        EXPECT_TRUE(contains(translation, "gap_")) << translation;
        EXPECT_EQ(lines_of(translation), 0);
    }
    EXPECT_EQ(dense(without_gaps(gnu("__device__ int a[2] = {1}, b[3];"))),
              dense(own + " int a[2] = {1}; " + own + " int b[3];"));
    // Each variable of a declaration lies between its own gaps, so none lies in those of another.
    const std::string mixed = gnu("__device__ int n, b[3];");
    EXPECT_EQ(dense(without_gaps(mixed)), dense(own + " int n; " + own + " int b[3];"));
    EXPECT_TRUE(contains(mixed, "(n, \"n\", gap_") && contains(mixed, "(b, \"b\", gap_")) << mixed;
    // Beside variables with values the gaps have one, too.
    const std::string filled = "{::cuda_on_cpu::kVariableCanary}; ";
    EXPECT_TRUE(contains(gnu("__device__ int a[2] = {1};"), filled));
    EXPECT_TRUE(contains(gnu("__device__ const int a[2] = {};"), filled));
    EXPECT_FALSE(contains(gnu("__device__ int a[2] = {0, 0};"), filled));
    EXPECT_FALSE(contains(gnu("__device__ int a[2];"), filled));
    for (const char* no_gaps :
         {"struct S { static __device__ int a[2]; };", "extern __device__ int a[];",
          "__device__ int a[2], *b;", "__device__ int *a[2], b[2];", "__device__ int *p, a[2];",
          "__device__ int n, m;", "template <int n> __device__ int a[n];", "__device__ int f(int a[2]);",
          "__device__ struct { int a[2]; } s;"})
        EXPECT_FALSE(contains(gnu(no_gaps), "gap_")) << no_gaps;
}

TEST(DeviceVariables, KeepALinkageThatIsWritten) {
    expect_translation("__device__ static int x;", "__attribute__((used)) static int x;");
    EXPECT_EQ(without_gaps(gnu("static __constant__ int x[4];")), "static __attribute__((used)) int x[4];");
    expect_translation("static __device__ int f() { return 0; }", "static int f() { return 0; }");
    for (const char* rest :
         {"extern int x[];", "inline int x;", "int f();", "int f() { return 0; }", "int S::x = 3;",
          "int S::f() const { return 0; }", "S operator+(S a, S b) { return a; }", "struct S { int x; };"}) {
        expect_translation("__device__ " + std::string(rest), rest);
    }
    expect_translation("template <class T> __device__ T zero = T();", "template <class T> T zero = T();");
    expect_translation("extern __constant__ int x; __constant__ int x = 3;", "extern int x; int x = 3;");
}

TEST(DeviceFunctions, OfOtherFilesNeedAnOption) {
    const auto warnings_of = [](const std::string& file, translator::DeviceVariables variables) {
        std::vector<translator::Warning> warnings;
        translate(file, Dialect::gnu, translator::SharedArrays::plain, variables, &warnings);
        return warnings;
    };
    const std::string call = "\n__global__ void k(int* x) { *x = f(*x); }\n";
    for (const char* declaration : {"__device__ int f(int);", "extern __device__ int f(int x) noexcept;",
                                    "__host__ __device__ int f(int);", "extern \"C\" __device__ int f(int);",
                                    "namespace n { __device__ int f(int); } using n::f;"}) {
        const auto warnings = warnings_of(declaration + call, translator::DeviceVariables::own);
        ASSERT_EQ(warnings.size(), 1U) << declaration;
        EXPECT_EQ(warnings[0].line, 2);
        EXPECT_TRUE(contains(warnings[0].message, "'f'") && contains(warnings[0].message, "-rdc=true"));
        EXPECT_TRUE(warnings_of(declaration + call, translator::DeviceVariables::shared).empty());
    }
    for (const char* right :
         {"__device__ int f(int x) { return x; }", "__device__ auto f(int x) -> int { return x; }",
          "__device__ int f(int); __device__ int f(int x) noexcept { return x; }", "int f(int);",
          "template <class T> __device__ T f(T);", "struct S { __device__ int f(int); };",
          "__device__ int other(int);", "__device__ int (*f)(int) = g;", "__device__ S f(3);"}) {
        const std::string file = std::string(right) == "__device__ S f(3);" ? right : right + call;
        EXPECT_TRUE(warnings_of(file, translator::DeviceVariables::own).empty()) << right;
    }
}

TEST(DeviceHeap, IsWhereDeviceCodeAllocates) {
    const auto in_kernel = [](const std::string& statement) {
        const std::string translation = dense(gnu("__device__ void f() { " + statement + " }"));
        const std::string begin = dense("void f() { ::cuda_on_cpu::order_may_show = true;");
        return translation.starts_with(begin) ? translation.substr(begin.size())
                                              : translation.substr(dense("void f() {").size());
    };
    const auto expect_statement = [&](const std::string& statement, const std::string& expected) {
        EXPECT_EQ(in_kernel(statement), dense(expected + "}")) << statement;
    };
    const std::string on_heap = "::new (::cuda_on_cpu::OnHeap()) ";
    expect_statement("p = malloc(n);", "p = ::cuda_on_cpu::heap_malloc(n);");
    expect_statement("p = (T*)std::malloc(n);", "p = (T*)::cuda_on_cpu::heap_malloc(n);");
    expect_statement("p = a ? b : ::malloc(n);", "p = a ? b : ::cuda_on_cpu::heap_malloc(n);");
    expect_statement("free(p); std::free(q);", "::cuda_on_cpu::heap_free(p); ::cuda_on_cpu::heap_free(q);");
    expect_statement("p = new T[n];", "p = " + on_heap + "T[n];");
    expect_statement("return ::new T(a, b);", "return " + on_heap + "T(a, b);");
    expect_statement("delete p; delete[] q->r[i];",
                     "delete ::cuda_on_cpu::leaving_heap(p); delete[] "
                     "::cuda_on_cpu::leaving_heap(q->r[i]);");
    expect_statement("if (a) delete (b)p, delete q;",
                     "if (a) delete ::cuda_on_cpu::leaving_heap((b)p), delete "
                     "::cuda_on_cpu::leaving_heap(q);");
    for (const char* other : {"new (place) T();", "pool.malloc(n);", "pool->free(p);", "my::malloc(n);"})
        expect_statement(other, other);
    for (const char* host : {"void f() { p = malloc(n); free(p); delete new T; }",
                             "struct S { void* operator new(size_t); };", "struct S { S() = delete; };"})
        expect_translation(host, host);
    expect_translation("struct S { void* operator new(size_t); }; __device__ void f() { delete p; }",
                       "struct S { void* operator new(size_t); }; void f() { delete p; }");
    expect_translation(
        "struct S { void* operator new(size_t); }; __device__ void f() { p = new T(a); new (q) S; }",
        "struct S { void* operator new(size_t); }; void f() { ::cuda_on_cpu::order_may_show = true; p = "
        "::cuda_on_cpu::OwnNew() ->* "
        "new T(a); new (q) S; }");
}

TEST(Shifts, OfDeviceCodeMarkTheirAmounts) {
    const auto in_kernel = [](const std::string& statement) {
        return dense(gnu("__device__ void f() { " + statement + " }"));
    };
    const auto expect_shift = [&](const std::string& statement, const std::string& expected) {
        EXPECT_EQ(in_kernel(statement), dense("void f() { " + expected + " }"));
    };
    const std::string mark = "::cuda_on_cpu::shift_amount";
    expect_shift("a = v << n;", "a = v << " + mark + "(n);");
    expect_shift("a = v >> 2 * n + 1 & 3;", "a = v >> " + mark + "(2 * n + 1) & 3;");
    expect_shift("a = (1 << n) - 1;", "a = (1 << " + mark + "(n)) - 1;");
    expect_shift("a = v << b[i].c->d << e::f;", "a = v << " + mark + "(b[i].c->d) << " + mark + "(e::f);");
    expect_shift("a = v << static_cast<int>(n) == 3;", "a = v << " + mark + "(static_cast<int>(n)) == 3;");
    expect_shift("a = static_cast<int>(v) >> n;", "a = static_cast<int>(v) >> " + mark + "(n);");
    expect_shift("v <<= n | m;", "v <<= " + mark + "(n | m);");
    expect_shift("x.y >>= n;", "x.y = (x.y) >> " + mark + "(n);");
    for (const char* same : {"a = v << 3;", "A<B<C>> x;", "f<g<h>>(1);", "A<B<C>, D<E>> x;",
                             "a = f(b < c, d > e);", "x[i]().y <<= n;", "a = v << f<3>(n);"})
        expect_shift(same, same);
    EXPECT_EQ(gnu("int f() { return a << n; }"), "int f() { return a << n; }") << "host code";
    expect_translation("__device__ int f(); int g() { return a << n; }",
                       "int f(); int g() { return a << n; }");
    expect_translation(
        "int g() { h([=] __device__(int n) { return 1 << n; }); return 1 << n; }",
        "int g() { h([=](int n) { return 1 << ::cuda_on_cpu::shift_amount(n); }); return 1 << n; }");
}

TEST(PointerCasts, OfWatchedDeviceCodeAreTold) {
    const auto in_kernel = [](const std::string& statement, translator::SharedArrays arrays) {
        return dense(translate("__device__ void f() { " + statement + " }", Dialect::gnu, arrays));
    };
    const auto expect_casts = [&](std::string marked) {
        std::string plain = marked;
        for (std::size_t at; (at = plain.find('@')) != std::string::npos;) {
            plain.erase(at, 1);
            marked.replace(marked.find('@'), 1, "::cuda_on_cpu::cast_to(");
        }
        for (std::size_t at; (at = plain.find('#')) != std::string::npos;) {
            plain.erase(at, 1);
            marked.replace(marked.find('#'), 1, ")");
        }
        EXPECT_EQ(in_kernel(plain, translator::SharedArrays::in_gaps), dense("void f() { " + marked + " }"));
        EXPECT_EQ(in_kernel(plain, translator::SharedArrays::plain), dense("void f() { " + plain + " }"));
    };
    expect_casts("a = *@(float4*)&x[i]# + 1;");
    expect_casts("a = *@(const int * const)(tile + 1)#;");
    expect_casts("a = (@(A<B, 2>*)p->q.r(1)[2]#)[3];");
    expect_casts("return @(unsigned long long*)a::b<c>(d)#;");
    expect_casts("f(@(T**)p#, @(int*)0#);");
    expect_casts("a = @(int*)(void*)(b + 1)#;");
    expect_casts("a = @(int*)(size_t)b#;");
    expect_casts("a = @reinterpret_cast<float4*>(x)#[i];");
    expect_casts("a = @reinterpret_cast<float4&>(x[i])#;");
    expect_casts("a = @static_cast<int*>(x)#;");
    for (const char* same :
         {"a = (a * b);", "a = (void*)p;", "a = (int)b * c;", "int n = sizeof(int*);", "void g(int*);",
          "auto g = [](int* p) { return p; };", "a = static_cast<int>(b);",
          "a = reinterpret_cast<size_t>(b);", "void (*g)(int*) = h;", "a = static_cast<T&&>(b);",
          "using F = int(int*);", "a = (int*)b++;"})
        expect_casts(same);
    const std::string with_new = "a = (int*)new char[4];";
    EXPECT_EQ(in_kernel(with_new, translator::SharedArrays::in_gaps),
              in_kernel(with_new, translator::SharedArrays::plain));
    EXPECT_EQ(translate("int* f() { return (int*)p; }", Dialect::gnu, translator::SharedArrays::in_gaps),
              "int* f() { return (int*)p; }")
        << "host code";
}

TEST(RemovedProperties, AreNamedOnce) {
    std::vector<translator::Warning> warnings;
    static_cast<void>(translate(
        "void f() {\n p.clockRate;\n p->clockRate; q.deviceOverlap; int computeMode; }", Dialect::gnu,
        translator::SharedArrays::plain, translator::DeviceVariables::own, &warnings));
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_EQ(warnings[0].line, 2);
    EXPECT_TRUE(contains(warnings[1].message, "asyncEngineCount"));
}

TEST(AtomicFunctions, AreMarkedWhereTheirResultIsNotUsed) {
    const auto marked = [](const std::string& call) {
        return "::cuda_on_cpu::result_unused=true," + call + ",::cuda_on_cpu::result_unused=false;";
    };
    expect_translation("void f() { atomicAdd(p, 1); }", "void f() {" + marked("atomicAdd(p,1)") + "}");
    expect_translation("void f() { if (a) atomicMax_block(&p[i], min(x, 3)); else atomicSub(p, 1); }",
                       "void f() { if (a) " + marked("atomicMax_block(&p[i], min(x, 3))") + " else " +
                           marked("atomicSub(p, 1)") + "}");
    expect_translation("void f() { atomicExch(p, 1); }", "void f() {" + marked("atomicExch(p,1)") + "}");
    for (const char* const unchanged :
         {"void f() { i = atomicAdd(p, 1); }", "void f() { i = atomicExch(p, 1); }",
          "void f() { return atomicAdd(p, 1); }", "void f() { (void)atomicAdd(p, 1); }",
          "void f() { g(atomicAdd(p, 1)); }", "void f() { atomicAdd(p, 1) == 0; }",
          "void f() { atomicAdd(p, g(1)); }", "void f() { atomicAdd(&p[atomicAdd(n, 1)], 1); }",
          "void f() { atomicCAS(p, 0, 1); }", "float atomicAdd(float* p, float x);",
          "float atomicAdd(float* p, float x) { return x; }"})
        expect_translation(unchanged, unchanged);
}

TEST(Main, MayReturnNothing) {
    std::vector<translator::Warning> warnings;
    const std::string text =
        "# 1 \"a.cu\"\nint main() {\n if (x) return;\n auto f = [] { return; };\n return;\n}\n"
        "void other() { return; }\n";
    const std::string translated = translate(text, Dialect::gnu, translator::SharedArrays::plain,
                                             translator::DeviceVariables::own, &warnings);
    EXPECT_EQ(dense(translated), dense("# 1 \"a.cu\"\nint main() { if (x) return 0; auto f = [] { return; };"
                                       " return 0; } void other() { return; }"));
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_EQ(warnings[0].file, "a.cu");
    EXPECT_EQ(warnings[0].line, 2);
    EXPECT_EQ(warnings[1].line, 4);
}

TEST(Unroll, IsSpelledAsTheCompilerWantsIt) {
    EXPECT_EQ(gnu("#pragma unroll 4\nfor (;;) f();\n"), "#pragma GCC unroll 4\nfor (;;) f();\n");
    EXPECT_EQ(gnu("x #pragma unroll(8)\n"), "x #pragma unroll(8)\n") << "a directive starts its line";
    EXPECT_EQ(gnu("#pragma unroll(8)\n"), "#pragma GCC unroll 8\n");
    EXPECT_EQ(gnu("# pragma unroll\n"), "#pragma GCC unroll 8\n");
    EXPECT_EQ(gnu("#pragma unroll kN\n"), "#pragma GCC unroll 8\n");
    EXPECT_EQ(gnu("#pragma unroll 16\n"), "#pragma GCC unroll 8\n");
    EXPECT_EQ(gnu("#pragma unroll 9\n"), "#pragma GCC unroll 8\n");
    EXPECT_EQ(gnu("#pragma unroll 1\n"), "#pragma GCC unroll 1\n");
    EXPECT_EQ(translate("#pragma unroll 4\n", Dialect::clang), "#pragma unroll 4\n");
}

TEST(Noinline, IsAnAttribute) {
    EXPECT_EQ(gnu("__noinline__ void f();"), "__attribute__((noinline)) void f();");
}

TEST(EmptyLoops, LetOthersRun) {
    for (const char* loop : {"void f() { while (*flag == 0); }", "void f() { while (*flag == 0) {} }",
                             "void f() { for (; *flag == 0;) ; }", "void f() { for (;;) {\n} }"}) {
        const std::string translated = gnu(loop);
        EXPECT_TRUE(contains(translated, "::cuda_on_cpu::empty_loop();")) << translated;
        EXPECT_EQ(lines_of(translated), lines_of(loop));
    }
}

TEST(VolatileLoops, LetOthersRun) {
    for (const char* loop : {"void f(volatile int* flag) { while (*flag == 0) n++; }",
                             "void f() { volatile int flag = 0; for (;;) { if (flag) break; } }",
                             "void f(int* p) { do { n++; } while (*(volatile int*)p == 0); }",
                             "void f(volatile int* flag) {\n for (int i = 0;\n *flag == i; ++i)\n n++; }"}) {
        const std::string translated = gnu(loop);
        EXPECT_TRUE(contains(translated, "::cuda_on_cpu::poll()")) << translated;
        EXPECT_EQ(lines_of(translated), lines_of(loop));
    }
    EXPECT_FALSE(contains(gnu("void f(int* flag) { while (*flag == 0) n++; }"), "poll"));
}

TEST(WaitingLoops, LetOthersRun) {
    for (const char* loop : {"void f(int* p) { int v; do { v = *p; } while (v == 0); }",
                             "void f(int* p) { for (;;) { int v = p[1]; if (v != 0) break; } }",
                             "void f(int* p) { again: if (*p == 0) goto again; }",
                             "int flag; void f() { bool v; do { v = flag; } while (!v); }",
                             "void f(int* p) { for (;;) if (*p) break; }"}) {
        const std::string translated = gnu(loop);
        EXPECT_TRUE(contains(translated, "::cuda_on_cpu::poll()")) << translated;
        EXPECT_EQ(lines_of(translated), lines_of(loop));
    }
    // They count, store, go on from where they were, or call an unknown function.
    for (const char* loop :
         {"void f(int* p) { int v; do { v = *p; ++v; } while (v == 0); }",
          "void f(int* p) { do { *p = 1; } while (*p == 0); }",
          "void f(Node* p) { while (p) { p = p->next; } }",
          "void f(float x) { while (x > 1) { x *= 0.5f; } }",
          "void f(float x) { float y; do { y = g(x); } while (y > 1); }",
          "void f(int lo, int hi) { while (lo < hi) { int m = (lo + hi) / 2; if (a[m] <= b) lo = m; else hi "
          "= m - 1; } }"}) {
        EXPECT_FALSE(contains(gnu(loop), "poll")) << gnu(loop);
    }
}

TEST(WaitingLoops, LoadWithAHintForTheCache) {
    for (const char* loop : {"void f(int* p) { do { n++; } while (__ldcg(p) == 0); }",
                             "void f(int* p) { for (;;) { g(); if (__ldg(p)) break; } }",
                             "int g(int* p) { return __ldca(p); } void f(int* p) { while (g(p) == 0) n++; }",
                             "void f(int* p) { again: n++; if (__ldcs(p) == 0) goto again; }"}) {
        EXPECT_TRUE(contains(gnu(loop), "::cuda_on_cpu::load_in_loop(p)")) << gnu(loop);
    }
    for (const char* loop : {"void f(int* p) { for (int i = 0; i < n; ++i) s += __ldg(p + i); }",
                             "int g(int* p) { return __ldg(p); } void f(int* p) { n = g(p); }"}) {
        EXPECT_EQ(gnu(loop), loop);
    }
}

std::vector<translator::Warning> warnings_of(const std::string& text) {
    std::vector<translator::Warning> warnings;
    translator::translate(text, translator::Dialect::gnu, translator::SharedArrays::plain,
                          translator::DeviceVariables::own, &warnings);
    return warnings;
}

TEST(WarpSynchronousCode, IsNamedAndCanRunInStep) {
    const std::string loop =
        "__device__ void f(volatile int* s, int t) { for (int d = 16; d > 0; d /= 2) s[t] += s[t + d]; }";
    for (const std::string& text : std::initializer_list<std::string>{
             "__device__ void f(volatile int* s, int t) {\n s[t] += s[t + "
             "2];\n if (kMany) s[t] += s[t + 1]; }",
             "__global__ void k() {\n __shared__ volatile int s[64]; int t = "
             "0; s[t] = 1;\n s[t + 1] = s[t] + "
             "1; }",
             "__global__ void k() {\n __shared__ int s[64]; s[t] = 1; __threadfence_block();\n s[t] += s[t - "
             "1]; __threadfence_block(); s[t] += s[t - 2]; }",
             "__global__ void k() {\n if (a) { __shared__ float s[64]; s[t] = 1; __threadfence();\n s[t] = "
             "s[t ^ 1]; } }",
             "\n\n" + loop}) {
        const auto warnings = warnings_of(text);
        ASSERT_EQ(warnings.size(), 1u) << text;
        EXPECT_EQ(warnings[0].line, 3);
        EXPECT_TRUE(contains(warnings[0].message, "__syncwarp")) << warnings[0].message;
        EXPECT_TRUE(contains(warnings[0].message, "CUDA_ON_CPU_LOCKSTEP")) << warnings[0].message;
        EXPECT_EQ(lines_of(gnu(text)), lines_of(text));
    }
    EXPECT_TRUE(contains(gnu(loop), "s[t] = ::cuda_on_cpu::value_in_step(s[t] + ( s[t + d]), ")) << gnu(loop);
}

TEST(WarpSynchronousCode, IsNotWhatSynchronisesOrWaits) {
    for (const char* text :
         {"__device__ void f(volatile int* s, int t) { s[t] += s[t + 2]; __syncwarp(); s[t] += s[t + 1]; }",
          "__device__ void f(volatile int* s, int t) { s[t] += s[t + 2]; tile.sync(); s[t] += s[t + 1]; }",
          "__device__ void f(volatile int* s, int t) { for (;;) { s[t] += s[t + d]; __syncthreads(); } }",
          "__device__ void f(volatile int* s, int t) { s[t] = s[t + 32]; }",
          "__device__ void f(int* s, int t) { s[t] += s[t + 2]; s[t] += s[t + 1]; }",
          "__global__ void k() { __shared__ int s[64]; s[t] = 1; s[t] += s[t - 1]; }",
          "__global__ void k() { __shared__ int s[64]; s[t] = 1; __threadfence_block(); __syncwarp(); "
          "s[t] += s[t - 1]; }",
          "__global__ void k() { __shared__ int s[64]; s[t] = 1; __threadfence_block(); "
          "b.arrive_and_wait(); s[t] += s[t - 1]; }",
          "__global__ void k() { __shared__ int s[64]; s[t] = 1; __threadfence_block(); s[t] += 1; }",
          "__device__ void f(volatile int* flags, int b) { while (flags[b - 1] == 0); flags[b] = 1; }"}) {
        EXPECT_TRUE(warnings_of(text).empty()) << text;
        EXPECT_FALSE(contains(gnu(text), "in_step")) << gnu(text);
    }
}

TEST(LaneExchanges, ThroughPlainSharedMemoryAreNamed) {
    const std::string begin = "__global__ void k(int* out) { __shared__ int s[64]; ";
    for (const char* body :
         {"int t = threadIdx.x; s[t] = t;\n int left = t ? s[t - 1] : 0; s[t] = left + 1; }",
          "const unsigned t = threadIdx.x % 32; s[t] = t;\n int a = s[t ^ 1]; s[t] = a; }",
          "int lane = static_cast<int>(threadIdx.x) & 31; s[lane] = 1;\n out[lane] = s[(lane + 1) % 32]; }",
          "s[threadIdx.x] = 1;\n out[threadIdx.x] = s[31 - threadIdx.x]; }",
          "auto t = threadIdx.y * blockDim.x + threadIdx.x; s[t] = 1; if (t >= 1)\n s[t] += s[t - 1]; }",
          "int t = threadIdx.x; if (t < 16) s[t] += s[t + 16]; if (t < 8)\n s[t] += s[t + 8]; }",
          "int t = threadIdx.x; for (int d = 16; d > 0; d /= 2) if (t < d)\n s[t] += s[t + d]; }",
          "int t = threadIdx.x; s[t] = t; __syncthreads(); for (int d = 1; d < 32; d <<= 1) {\n int v = t >= "
          "d "
          "? s[t - d] : 0; s[t] += v; } }"}) {
        const std::string text = begin + body;
        const auto warnings = warnings_of(text);
        ASSERT_EQ(warnings.size(), 1u) << text;
        EXPECT_EQ(warnings[0].line, 2) << text;
        EXPECT_TRUE(contains(warnings[0].message, "the shared 's' without __syncwarp()"))
            << warnings[0].message;
        EXPECT_TRUE(contains(gnu(text), "value_in_step")) << gnu(text);
    }
}

TEST(LaneExchanges, AreNotWhatOneThreadDoesOrWhatIsSynchronised) {
    for (const char* body :
         {"s[t] = t; __syncwarp(); out[t] = s[t - 1];",
          "s[t] = t; tile.sync(); out[t] = s[t - 1];",
          "s[t] = t; asm volatile(\"bar.sync 0;\"); out[t] = s[t - 1];",
          "s[t] = t; meet(); out[t] = s[t - 1];",
          "s[t] = t; out[t] = s[t];",
          "int a = s[t - 1]; s[t] = a;",
          "s[t] += s[t + 16];",
          "s[t] = 1; s[t] += s[t + blockDim.x];",
          "s[t] = 1; s[t + 16] = 2; out[t] = s[t + 16];",
          "s[t] = 1; out[t] = s[t + 32];",
          "s[t] = 1; t += 16; out[t] = s[t - 16];",
          "s[t] = 1; t ^= 1; out[t] = s[t ^ 1];",
          "if (t == 0) { s[t] = 1; out[t] = s[t + 1]; }",
          "if (t % 2) { s[t] = 1; out[t] = s[t - 1]; }",
          "if (leads) { s[t] = 1; out[t] = s[t + 1]; }",
          "if (t < 8) { s[t] += s[t + 8]; out[t] = s[t + 8]; }",
          "for (int i = 1; i < 32; ++i) { s[i] = i; s[i] += s[i - 1]; }",
          "for (int d = 16; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }",
          "for (int d = 32; d < 96; d += 32) s[t] += s[t + d];",
          "const int b = 4 * threadIdx.x; s[b] = 1; out[b] = s[b + 1];",
          "const int b = starts[threadIdx.x]; s[b] = 1; out[b] = s[b + 1];",
          "const int w = threadIdx.x / 32; s[w] = 1; out[w] = s[w + 1];",
          "s[t] = 1; auto before = [&] { return s[t - 1]; }; __syncthreads(); out[t] = before();",
          "s[t] = 1; load(&s[t - 1]);",
          "if (t < n) { s[t] = 1; __syncthreads(); } else { s[t] = 0; } out[t] = s[t - 1];"}) {
        const std::string text =
            "__global__ void k(int* out) { __shared__ int s[128]; int t = threadIdx.x; " + std::string(body) +
            " }";
        EXPECT_TRUE(warnings_of(text).empty()) << text;
    }
}

TEST(UnsetVariables, AreNamedWhereTheyAreChangedFirst) {
    for (const char* text :
         {"__global__ void k(float* x, int n) {\n float sum; for (int i = 0; i < n; ++i)\n sum += x[i]; *x = "
          "sum; }",
          "__global__ void k(int* x, int n) {\n unsigned long count; while (n-- > 0)\n if (x[n]) ++count; *x "
          "= "
          "count; }",
          "__device__ void f(int* x) { if (x) {\n int a = 0, h[8]; for (int i = 0; i < 8; ++i)\n h[x[i] & "
          "7]++; "
          "use(h); } }",
          "__global__ void k(float* d, int n) {\n float c[2][4]; for (int i = 0; i < n; ++i)\n "
          "asm volatile(\"mma %0;\" : \"+f\"(c[0][1]) : \"r\"(n)); d[0] = c[0][1]; }",
          "__global__ void k(float* d) {\n nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, "
          "float> c;\n "
          "wmma::mma_sync(c, a, b, c); wmma::store_matrix_sync(d, c, 16, wmma::mem_row_major); }"}) {
        const auto warnings = warnings_of(text);
        ASSERT_EQ(warnings.size(), 1u) << text;
        EXPECT_EQ(warnings[0].line, 3) << text;
        EXPECT_TRUE(contains(warnings[0].message, "nothing has set it")) << warnings[0].message;
    }
}

TEST(UnsetVariables, AreNotThoseThatSomethingSets) {
    for (const char* text :
         {"__global__ void k(float* x) { float sum = 0, all{}; sum += x[0]; all += sum; }",
          "__global__ void k(float* x, int n) { float s; for (int i = 0; i < n; ++i) { if (i > 0) s += x[i]; "
          "else s = "
          "x[0]; } }",
          "__global__ void k(float* x, int n) { float s; clear(&s); s += x[0]; }",
          "__global__ void k(float* x, int n) { float s[4]; clear(s); s[1] += x[0]; }",
          "__global__ void k(int n) { int s; for (int i = 0; i < n; ++i) { if (i > 0) s++; else set(s); } }",
          "__global__ void k(int n) { __shared__ int s[4]; s[threadIdx.x] += 1; }",
          "__device__ void f() { struct Sum { float s; void add(float x) { s += x; } }; }",
          "__device__ int s; __global__ void k() { s += 1; }",
          "__global__ void k(int* x) { int d; asm(\"add %0;\" : \"=r\"(d) : \"r\"(*x)); d += 1; }",
          "__global__ void k() { wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; "
          "wmma::fill_fragment(c, 0); "
          "wmma::mma_sync(c, a, b, c); }",
          "__global__ void k() { wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; wmma::mma_sync(c, "
          "a, b, "
          "zero); wmma::mma_sync(c, a, b, c); }",
          "__global__ void k(int n) { int s; { int s = 0; s += 1; } }",
          "void host(int n) { int s; s += n; }"}) {
        EXPECT_TRUE(warnings_of(text).empty()) << text << warnings_of(text)[0].message;
    }
}

TEST(CastsOfKernels, AreRemoved) {
    expect_translation("cudaFuncSetAttribute((const void*)k<int>, a, 3);",
                       "cudaFuncSetAttribute(k<int>, a, 3);");
    expect_translation("cudaLaunchKernel((void*)k, g, b, (void**)args);",
                       "cudaLaunchKernel(k, g, b, (void**)args);");
    expect_translation("cudaFuncGetAttributes(&a, reinterpret_cast<const void*>(k));",
                       "cudaFuncGetAttributes(&a, (k));");
}

// ---- Errors -------------------------------------------------------------------------------------

std::string file_of_error(std::string_view input) {
    try {
        static_cast<void>(gnu(input));
    } catch (const TranslationError& error) {
        return error.file;
    }
    return "no error";
}

TEST(Errors, NameTheFileThatTheLineMarkerBeforeThemNames) {
    EXPECT_EQ(file_of_error("__global__ int x;\n"), "");
    EXPECT_EQ(
        file_of_error("# 1 \"a.cu\"\nint a;\n# 7 \"/my dir/a.cuh\" 1\n__global__ int x;\n# 2 \"a.cu\" 2\n"),
        "/my dir/a.cuh");
    EXPECT_EQ(file_of_error("# 7 \"a.cuh\" 1\nint a;\n# 2 \"a.cu\" 2\n#pragma once\n__global__ int x;\n"),
              "a.cu");
}

int line_of_error(std::string_view input) {
    try {
        static_cast<void>(gnu(input));
    } catch (const TranslationError& error) {
        EXPECT_GT(std::string(error.what()).size(), 5u);
        return error.line;
    }
    ADD_FAILURE() << "no error for: " << input;
    return -1;
}

TEST(Errors, NameTheLine) {
    EXPECT_EQ(line_of_error("\n\nk<<<1, 2;\n"), 3);
    EXPECT_EQ(line_of_error("k<<<1, 2>>>;\n"), 1);
    EXPECT_EQ(line_of_error("\n__global__ int x;\n"), 2);
    EXPECT_EQ(line_of_error("\n__global__ void k(\n"), 2);
    EXPECT_EQ(line_of_error("void f() {\n\n extern __shared__ int x;\n}\n"), 3);
    EXPECT_EQ(line_of_error("void f() {\n __shared__ int\n"), 2);
    EXPECT_EQ(line_of_error("k<<<\nf(R\"(\n)\"), 1>>>();\n"), 2);
}

std::string text_of_error(std::string_view input) {
    try {
        static_cast<void>(gnu(input));
    } catch (const TranslationError& error) {
        return error.what();
    }
    return "no error";
}

TEST(TextureReferences, AreVariablesOfTheFileAndHaveTheirNames) {
    for (const char* program :
         {"texture<float> image;", "static texture<float, 2> image;", "::texture<float4, 1> image;",
          "texture<unsigned char, 2, cudaReadModeNormalizedFloat> image(1, cudaFilterModeLinear);",
          "namespace n { texture<float> image, other; }", "texture<ns::pixel, cudaTextureType2D> image;"}) {
        const std::string translated = gnu(program);
        EXPECT_TRUE(contains(translated, "static")) << translated;
        EXPECT_TRUE(contains(translated, "cuda_on_cpu::TextureReference<")) << translated;
        EXPECT_TRUE(contains(translated, "NameOfTexture cuda_on_cpu_name_of_image(image, \"image\");"))
            << translated;
        EXPECT_FALSE(contains(translated, "static static")) << translated;
    }
    EXPECT_TRUE(contains(gnu("namespace n { texture<float> image, other; }"), "(other, \"other\");"));
    EXPECT_EQ(lines_of(gnu("texture<float,\n 2>\nimage;\n")), lines_of("texture<float,\n 2>\nimage;\n"));
}

TEST(TextureReferences, OtherUsesOfTheTypeAreTranslatedToo) {
    for (const char* program :
         {"void bind(const texture<float, 2>& t);", "extern texture<float> image;",
          "template <class T> struct Of { texture<T>* t; };", "void f() { g<texture<float>>(); }"}) {
        const std::string translated = gnu(program);
        EXPECT_TRUE(contains(translated, "::cuda_on_cpu::TextureReference<")) << translated;
        EXPECT_FALSE(contains(translated, "NameOfTexture")) << translated;
        EXPECT_FALSE(contains(translated, "static")) << translated;
    }
}

TEST(TextureReferences, AProgramsOwnTextureStays) {
    for (const char* program :
         {"template <class T> struct texture {};\ntexture<float> own;", "sf::texture<float> own;",
          "template <class T> using texture = T;\ntexture<float> own;", "bool b = texture < 3 && x > y;",
          "int f(int texture, int n) { return texture < n; }", "bool g(S s) { return s.texture<float>(0); }",
          "template <class texture> void f(texture t);", "bool h() { return texture < a.x || b > c; }"}) {
        EXPECT_FALSE(contains(gnu(program), "TextureReference")) << program;
    }
}

TEST(Errors, ALaunchOfAFunctionThatIsNoKernelNamesItAndItsDefinition) {
    EXPECT_EQ(
        text_of_error("void f(int x) {}\nint main() {\n f<<<1, 1>>>(3);\n}\n"),
        "'f' is launched with <<<...>>> and is no kernel: its definition in line 1 has no __global__. Write "
        "__global__ void f(...), or call it without <<<...>>>");
    EXPECT_EQ(line_of_error("void f(int x) {}\nint main() {\n f<<<1, 1>>>(3);\n}\n"), 3);
    EXPECT_TRUE(
        contains(text_of_error("# 7 \"a.cuh\" 1\nvoid f() {}\n# 2 \"a.cu\" 2\nvoid g() { f<<<1, 1>>>(); }\n"),
                 "its definition in a.cuh:7 has no __global__"));
    EXPECT_TRUE(
        contains(text_of_error("namespace n { namespace {\ntemplate <class T>\nT* g(T* x) { return x; }\n} "
                               "void h() { g<float><<<1, 1>>>(x); } }\n"),
                 "'g' is launched"));
}

TEST(Errors, WhatMayBeAKernelIsLaunched) {
    for (const char* source :
         {"__global__ void f() {} void g() { f<<<1, 1>>>(); }",
          "__global__ void f(); void g() { f<<<1, 1>>>(); }",
          "__global__ void f(int) {} void f(float) {} void g() { f<<<1, 1>>>(); }",
          "template <class F> void g(F f) { f<<<1, 1>>>(); } void f() {}",
          "void f() {} void g(void (*f)()) { f<<<1, 1>>>(); }",
          "void f() {} void g() { auto f = k; f<<<1, 1>>>(); }",
          "struct S { void f() {} }; void g() { f<<<1, 1>>>(); }", "void g() { f<<<1, 1>>>(); }"})
        EXPECT_EQ(text_of_error(source), "no error") << source;
}

TEST(Errors, AKernelIsCalledWithoutAConfiguration) {
    EXPECT_EQ(text_of_error("__global__ void k(int* p) {}\nvoid g() {\n k(p);\n}\n"),
              "the kernel 'k' is called without <<<...>>>: expected k<<<grid, block>>>(...)");
    EXPECT_EQ(
        line_of_error("template <class T> __global__ void k(T) {}\nvoid g() {\n if (x) k<float>(1);\n}\n"),
        3);
    for (const char* source : {"__global__ void k(int) {} void g() { k<<<1, 1>>>(3); }",
                               "__global__ void k(int); __global__ void k(int) {}",
                               "template <class T> __global__ void k(T) {} void g() { k<int><<<1, 1>>>(3); }",
                               "__global__ void k(int) {} void k(float) {} void g() { k(3.0f); }",
                               "__global__ void k(int) {} void g() { auto k = [](int) {}; k(3); }",
                               "__global__ void k(int) {} struct S { void k() {} void g() { k(); } };",
                               "__global__ void fill(int*, int) {} void g() { fill(v.begin(), v.end(), 5); }",
                               "__global__ void k(int) {} void g() { s.k(3); n::k(4); kernel_of(k); }"})
        EXPECT_EQ(text_of_error(source), "no error") << source;
}

TEST(Errors, AKernelReturnsAValue) {
    EXPECT_EQ(text_of_error("__global__ int k(int* p) { return 1; }"),
              "a kernel returns nothing: expected __global__ void");
    for (const char* source :
         {"template <int N> void __global__ k(int* p) {}", "using V = void; __global__ V k(int) {}"})
        EXPECT_EQ(text_of_error(source), "no error") << source;
}

TEST(Errors, ASharedVariableHasAnInitialiser) {
    for (const char* source :
         {"__global__ void k() {\n __shared__ int n = 0;\n}\n", "\n__shared__ float s[2] = {1, 2};\n",
          "__device__ void f() {\n __shared__ int m, n{};\n}\n"}) {
        EXPECT_TRUE(contains(text_of_error(source), "has an initialiser, which CUDA does not allow"))
            << source;
        EXPECT_EQ(line_of_error(source), 2) << source;
    }
    for (const char* source :
         {"__global__ void k() { __shared__ int n[sizeof(S{}) == 4 ? 1 : 2]; n[0] = 0; }",
          "__global__ void k() { __shared__ struct { int a, b; } s; __shared__ cuda::barrier<block> b; }",
          "__global__ void k() { __shared__ union { float f[N]; int i; } u; int n = 0; }"})
        EXPECT_EQ(text_of_error(source), "no error") << source;
}

TEST(Errors, ADecorationEndsABracketThatBeganBeforeIt) {
    const char* source = "(;\nextern __shared__ alignas) T tile[4];\n}\n";
    EXPECT_TRUE(contains(text_of_error(source), "expected '(' before this")) << text_of_error(source);
    EXPECT_EQ(line_of_error(source), 2);
}

TEST(OneSideOnly, DeviceVariablesInHostCodeAreNamedOnce) {
    for (const char* use : {"int h = counter;", "counter = 3;", "++counter;", "printf(\"%d\", counter);",
                            "out << counter;", "if (counter > 2) return;", "a[0] = counter[1] + 2;"}) {
        const auto warnings =
            warnings_of("__device__ int counter;\nvoid g() {\n" + std::string(use) + use + "\n}\n");
        ASSERT_EQ(warnings.size(), 1u) << use;
        EXPECT_EQ(warnings[0].line, 3);
        EXPECT_TRUE(contains(warnings[0].message, "'counter'") &&
                    contains(warnings[0].message, "cudaMemcpyFromSymbol"));
    }
}
// An attribute with arguments is neither a function's parameters nor a part of the namespace's
// name.
TEST(Namespaces, MayHaveAttributes) {
    for (const char* head :
         {"namespace [[deprecated(\"x\")]] old", "inline namespace [[gnu::visibility(\"x\")]] n",
          "namespace __attribute__((visibility(\"x\"))) n", "namespace n __attribute__((visibility(\"x\")))",
          "namespace a::b", "namespace"}) {
        const std::string open = std::string(head) + " { ";
        EXPECT_EQ(gnu(open + "__device__ int x; }"), open + "static __attribute__((used)) int x; }");
        EXPECT_TRUE(
            warnings_of(open + "__device__ int f() { return 1; } } __global__ void k() { f(); }").empty())
            << head;
        EXPECT_TRUE(warnings_of("__device__ int n; " + open + "__device__ int m = n; }").empty()) << head;
        EXPECT_EQ(warnings_of(open + "int f() { return 1; } } __global__ void k() { f(); }").size(), 1U)
            << head;
    }
    EXPECT_TRUE(
        contains(gnu("namespace [[deprecated(\"x\")]] old { __shared__ int s[4]; __global__ void k() { "
                     "s[0] = 1; } }"),
                 "::old::"));
    EXPECT_EQ(warnings_of("__device__ int n; void g() [[gnu::cold]] { n = 3; }").size(), 1U);
}

TEST(OneSideOnly, WhatMayBeMeantOtherwiseIsNotNamed) {
    for (const char* source :
         {"__device__ int n; __global__ void k() { n = 3; }",
          "__device__ int n; __device__ int f() { return n; }",
          "__device__ int n; __host__ __device__ int f() { return n; }",
          "__device__ int n; void g() { cudaMemcpyToSymbol(n, &h, 4); check(cudaMemcpyFromSymbol(&h, n, 4)); "
          "}",
          "__device__ int n; void g() { void* p = &n; int n = 2; f(n); }",
          "__device__ int n; void g(int n) { h = n; }", "__device__ int n; __device__ int* p = n;",
          "__managed__ int n; void g() { n = 3; }", "__device__ __managed__ int n; void g() { n = 3; }",
          "__constant__ const int n = 4; void g() { h = n; }",
          "__device__ int n; struct S { int n; void g() { n = 3; s.n = 4; N::n = 5; } };",
          "__device__ int n; void g() { each([=] __device__(int i) { n = i; }); }"})
        EXPECT_TRUE(warnings_of(source).empty()) << source;
}
TEST(OneSideOnly, HostFunctionsInDeviceCodeAreNamedOnce) {
    const auto warnings = warnings_of(
        "float half_of(float x) { return x / 2; }\n__global__ void k(float* p) {\n p[0] = half_of(p[1]) + "
        "half_of(2);\n}\n");
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0].line, 3);
    EXPECT_TRUE(contains(warnings[0].message, "'half_of', a function of the host"));
    for (const char* source :
         {"__device__ float f(float x) { return x; } __global__ void k() { f(1); }",
          "constexpr int f(int x) { return x; } __global__ void k() { f(1); }",
          "float f(float x) { return x; } __device__ int f(int x) { return x; } __global__ void k() { f(1); "
          "}",
          "float f(float x) { return x; } void g() { f(1); } __global__ void k() { s.f(1); N::f(2); }",
          "float f(float x) { return x; } __global__ void k() { auto f = [](float x) { return x; }; f(1); }",
          "# 1 \"/usr/include/a.h\" 1 3\nfloat f(float x) { return x; }\n# 2 \"a.cu\" 2\n__global__ void k() "
          "{ f(1); }"})
        EXPECT_TRUE(warnings_of(source).empty()) << source;
}
TEST(OneSideOnly, ParametersOfKernelsThatAreReferences) {
    const auto warnings = warnings_of("__global__ void k(float* p,\n const S<int&>& s) {}\n");
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0].line, 2);
    EXPECT_TRUE(warnings_of("__global__ void k(void (*f)(int&), S<int&> s, int n) { int& m = n; }").empty());
}

TEST(Errors, TheHostsOwnAssemblyIsLeftAlone) {
    for (const char* source :
         {"void f() { asm volatile(\"pause\" ::: \"memory\"); }",
          "extern int f() __asm__(\"\" \"__isoc99_scanf\");", "int f() asm(\"f@GLIBC_2.2.5\");",
          "void f() { asm(\"movl $1, %0\" : \"=r\"(x)); }", "void f() { asm(\".byte 0x90\"); }",
          "void f() { asm(\"\" :: \"r\"(a.b)); }"}) {
        EXPECT_EQ(text_of_error(source), "no error") << source;
        EXPECT_EQ(gnu(source), source);
    }
}

TEST(Errors, CountFromTheLineMarker) {
    EXPECT_EQ(line_of_error(
                  "# 1 \"a.cu\"\n# 1 \"header.h\" 1\nint x;\n# 40 \"a.cu\" 2\nint y;\n\n__global__ int z;\n"),
              42);
    EXPECT_EQ(line_of_error("/* a\n b */ R\"(\n\n)\"; __global__ int z;\n"), 4);
}

// ---- Inline PTX ---------------------------------------------------------------------------------

// What the instructions of an asm statement become, without what declares its operands.
std::string ptx(const std::string& asm_arguments) {
    const std::string text = gnu("void f() { asm volatile(" + asm_arguments + "); }");
    const std::size_t begin = text.find("{ namespace isa_ = ::cuda_on_cpu::ptx::isa;");
    return begin == std::string::npos ? text : text.substr(begin);
}
// Why an instruction is refused: what the compiler says where it makes code of it.
std::string refusal(const std::string& asm_arguments) {
    const std::string text = gnu("void f() { asm volatile(" + asm_arguments + "); }");
    const std::string begin = "__attribute__((error(\"";
    const std::size_t at = text.find(begin);
    if (at == std::string::npos) return "no refusal: " + text;
    return text.substr(at + begin.size(), text.find("\")))", at) - at - begin.size());
}

TEST(Ptx, BecomesCallsOfFunctions) {
    EXPECT_EQ(dense(gnu("void f(int& x) { asm(\"add.s32 %0, %0, 1;\" : \"+r\"(x)); }")),
              dense("void f(int& x) { { namespace isa_ = ::cuda_on_cpu::ptx::isa; auto&& ptx_0_ = (x); "
                    "[[maybe_unused]] std::uint32_t ptx_0 = isa_::read<'r'>(ptx_0_); "
                    "{ { ptx_0 = isa_::add<isa_::s32>(ptx_0, 1u); } } isa_::write<'r'>(ptx_0_, ptx_0); } }"));
    for (
        const auto& [given, expected] : std::initializer_list<std::pair<const char*, const char*>>{
            {R"("mov.u32 %0, %%tid.x;" : "=r"(x))", "ptx_0 = isa_::mov<isa_::u32>(isa_::tid_x());"},
            {R"("mov.u64 %0, %globaltimer;" : "=l"(x))",
             "ptx_0 = isa_::mov<isa_::u64>(isa_::globaltimer());"},
            {R"("fma.rn.ftz.f32 %0, %1, -1.5, 0f3F800000;" : "=f"(x) : "f"(y))",
             "isa_::fma<isa_::f32, isa_::flag::rn | isa_::flag::ftz>(ptx_1, 3217031168u, 1065353216u);"},
            {R"("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, _}, [%1+8];" : "=r"(x) : "l"(p))",
             "std::uint32_t d_[2]; isa_::ld_vector<isa_::u32, 2, isa_::Space::global, 0, isa_::Scope::gpu>"
             "(d_, std::uint64_t{ptx_1 + 8ull}); ptx_0 = d_[0];"},
            {R"("ld.shared::cta.u8 %0, [%1];" : "=r"(x) : "r"(p))",
             "isa_::widen<isa_::u8>(ptx_0, isa_::ld<isa_::u8, isa_::Space::shared, 0, isa_::Scope::gpu>"
             "(std::uint64_t{ptx_1}));"},
            {R"("shfl.sync.up.b32 %0, %1, 1, 0, %2;" : "=r"(x) : "r"(y), "n"(-1))",
             "ptx_0 = isa_::shfl<isa_::Mode::up>(ptx_1, 1u, 0u, static_cast<std::uint32_t>(ptx_2));"},
            {R"("mov.b64 {%0, %1}, %2;" : "=r"(x), "=r"(y) : "l"(z))",
             "std::uint32_t d_[2]; isa_::unpack<isa_::b64, isa_::b32, 2>(d_, ptx_2); ptx_0 = d_[0]; ptx_1 = "
             "d_[1];"},
            {R"("cp.async.wait_group %0;" ::"n"(kStages - 2))",
             "isa_::cp_async_wait_group(static_cast<std::uint32_t>(ptx_0));"},
            {R"("bar.sync 0;")", "isa_::bar_sync(0u);"},
            {R"("add.s32 %0, %1, %2;" : "=r"(x) : "r"(y) "r"(z))",  // nvcc does without the comma
             "ptx_0 = isa_::add<isa_::s32>(ptx_1, ptx_2);"},
            {R"("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 1;")"
             R"( : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b))",
             "isa_::wgmma_of_halves<isa_::f16, 8>(isa_::Places<4>{{&ptx_0_, &ptx_1_, &ptx_2_, &ptx_3_}}, "
             "ptx_4, "
             "ptx_5, true, 1u, 1u, 0u, 1u);"},
            {R"("trap;")", "isa_::trap();"}})
        EXPECT_TRUE(contains(dense(ptx(given)), dense(expected))) << given << "\n" << ptx(given);
}

TEST(Ptx, LiteralsScopesPredicatesAndLabels) {
    const std::string text =
        dense(ptx("\"{\\n\\t.reg .pred p, %%q<2>; // \\\"comment;\\\"\\n\"\n R\"(/* ; */ again: setp.ne.s32 "
                  "p|%%q1, %0, 0;)\"\n"
                  "\"@!p mov.b32 %0, 0x1F; @%%q1 bra.uni again;}\" : \"+r\"(x) :: \"memory\""));
    for (const char* expected :
         {"{ __label__ label_again; [[maybe_unused]] bool r_p = isa_::undefined<1>();",
          "bool r_p_q0 =", "label_again: __attribute__((unused));",
          "bool d0_; bool d1_; isa_::setp2<isa_::s32, isa_::Compare::ne, 0>(d0_, d1_, ptx_0, 0u); r_p = d0_; "
          "r_p_q1 = d1_;",
          "if (!r_p) { ptx_0 = isa_::mov<isa_::b32>(31u); }",
          "if (r_p_q1) { ::cuda_on_cpu::poll(); goto label_again; }"})
        EXPECT_TRUE(contains(text, dense(expected))) << expected << "\n" << text;
    // Braces of an inner scope; its names hide those outside.
    EXPECT_TRUE(contains(dense(ptx(R"("{.reg .b32 a; {.reg .b16 a; mov.b16 a, 1;} mov.b32 a, 2;}")")),
                         dense("{ r_a = isa_::mov<isa_::b16>(1u); } } { r_a = isa_::mov<isa_::b32>(2u); }")));
}

TEST(Ptx, KeepsLinesAndStatements) {
    const std::string source =
        "void f() {\n  if (a)\n    asm volatile(\"mov.u32 %0, \"\n    \"%1;\"\n : \"=r\"(x)\n : "
        "\"r\"(\ny));\n  else g();\n}\n";
    const std::string text = gnu(source);
    EXPECT_EQ(lines_of(text), lines_of(source));
    EXPECT_TRUE(contains(dense(text), "if(a){namespace")) << text;
    EXPECT_TRUE(contains(dense(text), "}elseg();")) << text;
    // Operands are translated, too.
    EXPECT_TRUE(contains(gnu("__global__ void k() { asm volatile(\"nanosleep.u32 %0;\" :: \"r\"(1 << n)); }"),
                         "shift_amount("));
    // The word volatile in asm makes no loop one that polls.
    EXPECT_FALSE(contains(gnu("void f() { while (n--) asm volatile(\"bar.sync 0;\"); }"), "poll()"));
}

TEST(Ptx, WhatIsNotProvidedIsNamed) {
    for (const auto& [given, expected] : std::initializer_list<std::pair<const char*, const char*>>{
             {R"("foo.s32 %0, 1;" : "=r"(x))", "PTX instruction \\\"foo.s32\\\": not provided on the CPU."},
             {R"("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%0}, {%0}, {%0}, {%0};" : "+r"(x))",
              "PTX instruction \\\"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16\\\": the modifier .f16 is "
              "not "
              "provided here; expected one of .rn, .f64"},
             {R"("add.foo.s32 %0, 1, 2;" : "=r"(x))",
              "the modifier .foo is not provided here; expected one of"},
             {R"("add.s32 %0, 1;" : "=r"(x))", "2 operands; expected 3"},
             {R"("add.s32 %0, %1, 2;" : "=r"(x) : "l"(y))",
              "operand 2, \\\"%1\\\", has 64 bits; expected 32 bits"},
             {R"("add.f32 %0, %0, 2;" : "+f"(x))",
              "operand 3, 2, is an integer; expected a floating-point number"},
             {R"("mov.u32 %0, %1;" : "=r"(x))", "there is no operand %1; the asm statement has 1"},
             {R"("mov.u32 %0, %%envreg1;" : "=r"(x))", "the register %envreg1 is not provided on the CPU"},
             {R"("mov.u32 %0, other;" : "=r"(x))", "\\\"other\\\", is no register of this asm statement"},
             {R"("ld.global.v4.f32 {%0}, [%1];" : "=f"(x) : "l"(p))", "operand 1 has 1 elements; expected 4"},
             {R"("ld.global.f32 %0, %1;" : "=f"(x) : "l"(p))",
              "operand 2: expected an address, such as [%0]"},
             {R"("selp.b32 %0, 1, 2, %0;" : "+r"(x))",
              "operand 4, \\\"%0\\\", has 32 bits; expected a predicate"},
             {R"("bra.uni there;")", "the label there is not in this asm statement"},
             {R"("mov.u32 %0, 1" : "=r"(x))", "the text ends before it does; expected ';'"},
             {R"("{ mov.u32 %0, 1;" : "=r"(x))", "the text ends in a block; expected '}'"},
             {R"(".shared .b32 x; mov.u32 %0, 1;" : "=r"(x))", "PTX directive .shared is not provided"},
             {R"("mov.u32 %0, 1;" : "=x"(x))", "operand %0 has the constraint \\\"=x\\\"; expected"}})
        EXPECT_TRUE(contains(refusal(given), expected)) << given << "\n" << refusal(given);
}

// ---- Anything -----------------------------------------------------------------------------------

constexpr const char* kVocabulary[] = {"__global__",
                                       "__shared__",
                                       "extern",
                                       "void",
                                       "int",
                                       "float*",
                                       "k",
                                       "x",
                                       "tile",
                                       "volatile",
                                       "while",
                                       "for",
                                       "do",
                                       "if",
                                       "else",
                                       "template <class T>",
                                       "namespace n",
                                       "struct S",
                                       "__launch_bounds__",
                                       "__cluster_dims__",
                                       "alignas",
                                       "__noinline__",
                                       "cudaFuncSetAttribute",
                                       "(void*)",
                                       "reinterpret_cast<const void*>",
                                       "static",
                                       "const",
                                       "typename",
                                       "operator",
                                       "...",
                                       "<<<",
                                       ">>>",
                                       "(",
                                       ")",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       "<",
                                       ">",
                                       ",",
                                       ";",
                                       ";",
                                       "=",
                                       "*",
                                       "&",
                                       "::",
                                       ":",
                                       "1",
                                       "1'000",
                                       "'c'",
                                       "\"text\"",
                                       "R\"(raw\n)\"",
                                       "R\"x(",
                                       "'",
                                       "\"",
                                       "\\",
                                       "/* c \n */",
                                       "/*",
                                       "// c\n",
                                       "\n",
                                       "\n",
                                       " ",
                                       "\n# 12 \"a.cu\"\n",
                                       "\n#pragma unroll\n",
                                       "\n#pragma unroll 4\n",
                                       "\n# 3 \"b.h\" 1 3\n",
                                       "#",
                                       "$",
                                       "u8",
                                       "noexcept",
                                       "requires",
                                       "decltype",
                                       "__attribute__((aligned(8)))",
                                       "k<<<1, 2>>>(x);",
                                       "__global__ void k(int a) {",
                                       "}\n"};

// Translates; every line must stay a line.
void expect_survives(const std::string& text, std::uint64_t seed) {
    for (const Dialect dialect : {Dialect::gnu, Dialect::clang}) {
        try {
            const std::string translated = translate(text, dialect);
            ASSERT_EQ(lines_of(translated), lines_of(text)) << "seed " << seed << "\n"
                                                            << text << "\n---\n"
                                                            << translated;
        } catch (const TranslationError&) {
            // refused: as good
        }
    }
}

TEST(Tokens, ALineMarkerWithoutAUsableNumberChangesNoLine) {
    const translator::Tokens tokens("# 99999999999999999999 \"p.cu\"\nx");
    EXPECT_EQ(tokens[tokens.size() - 1].line, 2);
}

TEST(Fuzz, TokenSoupNeitherCrashesNorMovesLines) {
    constexpr std::uint64_t kSeed = 20240607;
    RecordProperty("seed", std::to_string(kSeed));
    for (std::uint64_t seed = kSeed; seed < kSeed + 20000; ++seed) {
        std::mt19937_64 generator(seed);
        std::string text;
        for (auto tokens = generator() % 60; tokens > 0; --tokens) {
            text += kVocabulary[generator() % std::size(kVocabulary)];
            if (generator() % 2 == 0) text += ' ';
        }
        expect_survives(text, seed);
        if (HasFatalFailure()) return;
    }
}

constexpr std::string_view kProgram = R"source(# 1 "p.cu"
namespace n {
template <class T, int kN = 4>
__global__ void __launch_bounds__(kN * 32, 2) k(const T* __restrict__ in, T (*f)(T), volatile int* flag) {
    __shared__ alignas(16) T tile[kN][kN + 1], *p;
    extern __shared__ float dynamic[];
#pragma unroll kN
    for (int i = 0; i < kN; ++i) {
        tile[i][0] = f(in[i]);
    }
    __syncthreads();
    while (*flag == 0) {
    }
    do p = nullptr; while (flag[1] != 0);
}
}  // namespace n
extern __shared__ unsigned char bytes[];
__device__ int g() { return bytes[0] + '"' + 1'000; }
int main() {
    n::k<float><<<dim3(1, 2), 32,
                  sizeof(float) * 4>>>(nullptr, nullptr, nullptr);
    cudaFuncSetAttribute((const void*)n::k<float>, a, 3);
}
)source";

TEST(Fuzz, ProgramsWithAHoleNeitherCrashNorMoveLines) {
    constexpr std::uint64_t kSeed = 7;
    RecordProperty("seed", std::to_string(kSeed));
    expect_survives(std::string(kProgram), 0);
    for (std::size_t begin = 0; begin < kProgram.size(); ++begin) {
        for (const std::size_t length : {1, 2, 5, 20}) {
            std::string text(kProgram);
            text.erase(begin, length);
            expect_survives(text, begin);
            if (HasFatalFailure()) return;
        }
    }
    std::mt19937_64 generator(kSeed);
    for (int i = 0; i < 3000; ++i) {  // a piece of it somewhere else
        std::string text(kProgram);
        const std::size_t from = generator() % text.size();
        text.insert(generator() % text.size(), text.substr(from, generator() % 40));
        expect_survives(text, kSeed);
        if (HasFatalFailure()) return;
    }
}

}  // namespace
