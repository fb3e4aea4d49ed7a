// The translator, text to text: what it must leave alone, what it must change, and that lines stay where they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

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
void expect_translation(std::string_view input, std::string_view expected) {
    EXPECT_EQ(dense(gnu(input)), dense(expected)) << input;
}

// ---- Left alone --------------------------------------------------------------------------------------------------------

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

// ---- Launches ----------------------------------------------------------------------------------------------------------

TEST(Launch, BecomesACallAndAConfiguration) {
    expect_translation("k<<<1, 2>>>(x, y);", "k(x, y), ::cuda_on_cpu::launch(1, 2);");
    expect_translation("k<<<grid, dim3(1, 2), n * sizeof(int), s>>>();",
                       "k(), ::cuda_on_cpu::launch(grid, dim3(1, 2), n * sizeof(int), s);");
    expect_translation("a::k<b<c<int>>><<<1, f<g<int>>(2)>>>(x);",
                       "a::k<b<c<int>>>(x), ::cuda_on_cpu::launch(1, f<g<int>>(2));");
    expect_translation("k<(N >> 1)><<<n >> 2, m << 1>>>(x);",
                       "k<(N >> 1)>(x), ::cuda_on_cpu::launch(n >> 2, m << 1);");
    expect_translation("(*p)<<<1, 1>>>(x[1], {2, 3});", "(*p)(x[1], {2, 3}), ::cuda_on_cpu::launch(1, 1);");
    expect_translation("k<<<[&] { return 1; }(), 2>>>(x);",
                       "k(x), ::cuda_on_cpu::launch([&] { return 1; }(), 2);");
}

TEST(Launch, InsideAnArgumentOfAnother) {
    expect_translation("f([&] { k<<<1, 2>>>(x); });", "f([&] { k(x), ::cuda_on_cpu::launch(1, 2); });");
    expect_translation("a<<<1, 2>>>(x), b<<<3, 4>>>(y);",
                       "a(x), ::cuda_on_cpu::launch(1, 2), b(y), ::cuda_on_cpu::launch(3, 4);");
}

TEST(Launch, KeepsLinesAndDirectives) {
    const std::string text =
        "k<<<\n# 7 \"file.cu\"\n  grid, // the grid\n  block>>>(\n  x,\n# 9 \"file.cu\"\n  y\n);\nnext();\n";
    const std::string translated = gnu(text);
    EXPECT_EQ(lines_of(translated), lines_of(text));
    EXPECT_TRUE(contains(translated, "\n# 7 \"file.cu\"\n"));
    EXPECT_TRUE(contains(translated, "\n# 9 \"file.cu\"\n"));
    EXPECT_TRUE(contains(translated, "launch(grid, block);")) << translated;
    EXPECT_TRUE(translated.ends_with(";\nnext();\n"));
}

// ---- Kernels -----------------------------------------------------------------------------------------------------------

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

// ---- Shared memory -------------------------------------------------------------------------------------------------------

TEST(Shared, ArraysMayHaveGapsAroundThem) {
    const auto in_gaps = [](std::string_view input) {
        return dense(translate(input, Dialect::gnu, translator::SharedArrays::in_gaps));
    };
    const std::string one = in_gaps("void f() { alignas(16) __shared__ float tile[32][33]; }");
    EXPECT_TRUE(contains(one,
                         "staticthread_localstruct{charbefore_[256];alignas(16)floattile[32][33];"
                         "charbehind_[256];}in_gaps_"))
        << one;
    EXPECT_TRUE(contains(one, "auto&tile=in_gaps_")) << one;
    EXPECT_TRUE(contains(one, "tile_shared_.enter(tile,\"tile\",256);")) << one;
    const std::string two = in_gaps("void f() { __shared__ int a, b[4]; }");
    EXPECT_TRUE(contains(two, "inta,b[4];charbehind_[256];")) << two;
    EXPECT_TRUE(contains(two, "b_shared_.enter(b,\"b\",256);")) << two;
    const std::string outside = in_gaps("__shared__ int a;");
    EXPECT_FALSE(contains(outside, "before_")) << "a variable of the namespace keeps its place";
    const std::string dynamic = in_gaps("void f() { extern __shared__ float s[]; }");
    EXPECT_FALSE(contains(dynamic, "before_")) << "it lies at a guard page";
}

TEST(Shared, IsThreadLocalAndRegisteredWhereItIsDeclared) {
    const std::string one = gnu("void f() { __shared__ float tile[32][33]; }");
    EXPECT_TRUE(contains(one, "static thread_local float tile[32][33];")) << one;
    EXPECT_TRUE(contains(one, "tile_shared_.enter(tile, \"tile\");")) << one;

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

TEST(Shared, OutsideFunctionsIsOnlyThreadLocal) {
    EXPECT_EQ(gnu("__shared__ int x;"), "static thread_local int x;");
    EXPECT_EQ(gnu("namespace n { __shared__ int x[4]; }"), "namespace n { static thread_local int x[4]; }");
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

// ---- Words -----------------------------------------------------------------------------------------------------------------

TEST(Unroll, IsSpelledAsTheCompilerWantsIt) {
    EXPECT_EQ(gnu("#pragma unroll 4\nfor (;;) f();\n"), "#pragma GCC unroll 4\nfor (;;) f();\n");
    EXPECT_EQ(gnu("x #pragma unroll(8)\n"), "x #pragma unroll(8)\n") << "a directive starts its line";
    EXPECT_EQ(gnu("#pragma unroll(8)\n"), "#pragma GCC unroll 8\n");
    EXPECT_EQ(gnu("# pragma unroll\n"), "#pragma GCC unroll 32\n");
    EXPECT_EQ(gnu("#pragma unroll kN\n"), "#pragma GCC unroll 32\n");
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
                             "void f(int* p) { for (;;) if (*p) break; }"}) {
        const std::string translated = gnu(loop);
        EXPECT_TRUE(contains(translated, "::cuda_on_cpu::poll()")) << translated;
        EXPECT_EQ(lines_of(translated), lines_of(loop));
    }
    // They count, store, go on from where they were, or call who knows what.
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

TEST(CastsOfKernels, AreRemoved) {
    expect_translation("cudaFuncSetAttribute((const void*)k<int>, a, 3);",
                       "cudaFuncSetAttribute(k<int>, a, 3);");
    expect_translation("cudaLaunchKernel((void*)k, g, b, (void**)args);",
                       "cudaLaunchKernel(k, g, b, (void**)args);");
    expect_translation("cudaFuncGetAttributes(&a, reinterpret_cast<const void*>(k));",
                       "cudaFuncGetAttributes(&a, (k));");
}

// ---- Errors ------------------------------------------------------------------------------------------------------------------

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

TEST(Errors, InlinePtxIsNamed) {
    for (const char* source :
         {"__global__ void k(int* x) { asm(\"add.s32 %0, %0, 1;\" : \"+r\"(*x)); }",
          "void f() { asm volatile(\"bar.sync 0;\"); }",
          "void f() { __asm__ __volatile__(\"{\\n\" \"mov.u32 %0, %%laneid;\\n}\" : \"=r\"(x)); }"})
        EXPECT_TRUE(text_of_error(source).starts_with("asm with PTX: this build runs kernels on the CPU"))
            << source;
    EXPECT_EQ(line_of_error("void f() {\n  int x;\n  asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(x));\n}\n"), 3);
}

TEST(Errors, TheHostsOwnAssemblyIsLeftAlone) {
    for (const char* source :
         {"void f() { asm volatile(\"pause\" ::: \"memory\"); }",
          "extern int f() __asm__(\"\" \"__isoc99_scanf\");", "int f() asm(\"f@GLIBC_2.2.5\");",
          "void f() { asm(\"movl $1, %0\" : \"=r\"(x)); }", "void f() { asm(\".byte 0x90\"); }",
          "void f() { asm(\"\" :: \"r\"(a.b)); }"})
        EXPECT_EQ(text_of_error(source), "no error") << source;
}

TEST(Errors, CountFromTheLineMarker) {
    EXPECT_EQ(line_of_error(
                  "# 1 \"a.cu\"\n# 1 \"header.h\" 1\nint x;\n# 40 \"a.cu\" 2\nint y;\n\n__global__ int z;\n"),
              42);
    EXPECT_EQ(line_of_error("/* a\n b */ R\"(\n\n)\"; __global__ int z;\n"), 4);
}

// ---- Anything ------------------------------------------------------------------------------------------------------------------

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
