// The two texts that the preprocessor makes of a .cu file, without __CUDA_ARCH__ and with it,
// become one.
#include "merge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using translator::merge_passes;
using translator::Warning;

// Without blanks and line markers.
std::string dense(std::string_view text) {
    std::string result;
    bool line_start = true;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (line_start && text.substr(i, 2) == "# ") i = std::min(text.find('\n', i), text.size() - 1);
        line_start = text[i] == '\n';
        if (text[i] != ' ' && text[i] != '\n') result += text[i];
    }
    return result;
}

struct Merged {
    std::string text;
    std::vector<Warning> warnings;
};

Merged merge(std::string_view host, std::string_view device) {
    Merged merged;
    merged.text = merge_passes(host, device, merged.warnings);
    return merged;
}

void expect_merged(std::string_view host, std::string_view device, std::string_view expected) {
    const Merged merged = merge(host, device);
    EXPECT_EQ(dense(merged.text), dense(expected)) << host;
    EXPECT_TRUE(merged.warnings.empty()) << merged.warnings.front().message;
}

// Both bodies of a function, one of which is chosen at run time.
std::string both(const std::string& device, const std::string& host) {
    return "{ if (::cuda_on_cpu::in_kernel()) { " + device + " } else { " + host + " } }";
}

TEST(Merge, LeavesEqualTextsAlone) {
    const std::string text = "# 1 \"a.cu\"\n__device__ int f() { return 1; }\n";
    EXPECT_EQ(merge(text, text).text, text);
    EXPECT_EQ(merge(text, "# 1 \"a.cu\"\n\n__device__ int f() {\n return 1; }\n").text, text);
}

TEST(Merge, TakesDeviceFunctionsFromTheTextWithTheMacro) {
    expect_merged("__global__ void k(int* x) { }", "__global__ void k(int* x) { *x = 1; }",
                  "__global__ void k(int* x) { *x = 1; }");
    expect_merged("static __device__ int f() { return 0; } int g();",
                  "static __device__ int f() { return 1; } int g();",
                  "static __device__ int f() { return 1; } int g();");
    expect_merged("template <class T, int N = (3 > 2)> __device__ T f(T x) { return x; }",
                  "template <class T, int N = (3 > 2)> __device__ T f(T x) { return -x; }",
                  "template <class T, int N = (3 > 2)> __device__ T f(T x) { return -x; }");
}

TEST(Merge, TakesTheLaunchBoundsOfDeviceCode) {
    expect_merged("__global__ void __launch_bounds__(1024, 1) k(int* x) { }",
                  "__global__ void __launch_bounds__(1024, 2) k(int* x) { }",
                  "__global__ void __launch_bounds__(1024, 2) k(int* x) { }");
}

TEST(Merge, TakesHostFunctionsFromTheTextWithoutIt) {
    expect_merged("int f() { return 0; }", "int f() { return 1; }", "int f() { return 0; }");
    expect_merged("struct S { int f() { return 0; } };", "struct S { int f() { return 1; } };",
                  "struct S { int f() { return 0; } };");
}

TEST(Merge, GivesFunctionsOfBothSidesBothBodies) {
    const std::string head = "__host__ __device__ inline int f(int x) noexcept ";
    expect_merged(head + "{ return 0; } int g();", head + "{ return 1; } int g();",
                  head + both("return 1;", "return 0;") + " int g();");
    expect_merged(
        "constexpr int f() { return 0; }", "constexpr int f() { return 1; }",
        "constexpr int f() { if (__builtin_is_constant_evaluated() ? false : ::cuda_on_cpu::in_kernel()) "
        "{ return 1; } else { return 0; } }");
    expect_merged("int side() { return 0; }", "__device__ int side() { return 1; }",
                  "int side() " + both("return 1;", "return 0;"));
    expect_merged("struct S { int x; __host__ __device__ S() : x{1} { x = 2; } };",
                  "struct S { int x; __host__ __device__ S() : x{1} { x = 3; } };",
                  "struct S { int x; __host__ __device__ S() : x{1} " + both("x = 3;", "x = 2;") + " };");
    expect_merged("namespace n { extern \"C\" { __host__ __device__ int f() { return 0; } } }",
                  "namespace n { extern \"C\" { __host__ __device__ int f() { return 1; } } }",
                  "namespace n { extern \"C\" { __host__ __device__ int f() " +
                      both("return 1;", "return 0;") + " } }");
}

TEST(Merge, KeepsWhatOneTextHasAlone) {
    expect_merged("int a; int b;", "int a; __device__ int f() { return 1; } int b;",
                  "int a; __device__ int f() { return 1; } int b;");
    expect_merged("int a; struct Host { ~Host(); }; int b;", "int a; int b;",
                  "int a; struct Host { ~Host(); }; int b;");
    expect_merged("struct S { ~S() { free(); } };", "struct S { };", "struct S { ~S() { free(); } };");
}

TEST(Merge, LeavesOutADeviceFunctionThatDeviceCodeDoesNotHave) {
    expect_merged("int a; __device__ double atomicAdd(double* p, double v) { return 0; } int b;",
                  "int a; int b;", "int a; int b;");
}

TEST(Merge, GivesConstantsAndTypesASecondName) {
    expect_merged("constexpr int kN = 0; __device__ int f() { return kN; } int g() { return kN; }",
                  "constexpr int kN = 9; __device__ int f() { return kN; } int g() { return kN; }",
                  "constexpr int kN = 0; constexpr int kN_on_device_ = 9; "
                  "__device__ int f() { return kN_on_device_; } int g() { return kN; }");
    expect_merged("const int a = 1; const int b = 2 * a; __host__ __device__ int f() { return b; }",
                  "const int a = 3; const int b = 2 * a; __host__ __device__ int f() { return b; }",
                  "const int a = 1; const int a_on_device_ = 3; const int b = 2 * a; "
                  "const int b_on_device_ = 2 * a_on_device_; __host__ __device__ int f() " +
                      both("return b_on_device_;", "return b;"));
    expect_merged("using Real = double; struct S { static constexpr int kN = 1; };",
                  "using Real = float; struct S { static constexpr int kN = 2; };",
                  "using Real = double; using Real_on_device_ = float; "
                  "struct S { static constexpr int kN = 1; static constexpr int kN_on_device_ = 2; };");
}

TEST(Merge, LooksIntoLambdasOfHostFunctions) {
    expect_merged("int main() { run([=] __device__(int x) { return x; }); return 0; }",
                  "int main() { run([=] __device__(int x) { return 2 * x; }); return 1; }",
                  "int main() { run([=] __device__(int x) { return 2 * x; }); return 0; }");
    expect_merged(
        "int main() { run([] __host__ __device__(int x) { return x; }); }",
        "int main() { run([] __host__ __device__(int x) { return -x; }); }",
        "int main() { run([] __host__ __device__(int x) " + both("return -x;", "return x;") + "); }");
}

TEST(Merge, WarnsWhereItCannotDecide) {
    const Merged member =
        merge("# 1 \"a.cuh\"\nstruct S {\n  int x[1];\n};\n", "# 1 \"a.cuh\"\nstruct S {\n  int x[2];\n};\n");
    EXPECT_EQ(dense(member.text), dense("struct S { int x[2]; };"));
    ASSERT_EQ(member.warnings.size(), 1u);
    EXPECT_EQ(member.warnings[0].file, "a.cuh");
    EXPECT_EQ(member.warnings[0].line, 2);
    EXPECT_NE(member.warnings[0].message.find("__CUDA_ARCH__"), std::string::npos);
    const Merged kernel =
        merge("# 1 \"a.cu\"\n__global__ void old() { }\nint a;\n", "# 1 \"a.cu\"\n\nint a;\n");
    EXPECT_NE(kernel.text.find("void old()"), std::string::npos) << "host code may launch it";
    EXPECT_EQ(kernel.warnings.size(), 1u);
}

// The line that a text is on, as line markers tell.
int line_of(const std::string& text, std::string_view part) {
    int line = 1;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view now = std::string_view(text).substr(begin, end - begin);
        if (now.starts_with("# ")) {
            line = std::stoi(std::string(now.substr(2)));
        } else {
            if (now.find(part) != now.npos) return line;
            ++line;
        }
        begin = end + 1;
    }
    return -1;
}

// Only a body can be chosen when the function is called.
TEST(Merge, WarnsWhereTheHeadOfAFunctionOfBothSidesDiffers) {
    const auto of = [](std::string_view way) { return "constexpr int kWay = " + std::string(way) + ";\n"; };
    const std::string uses_it = "template <int N = kWay> __host__ __device__ int way() { return N; }";
    const Merged used = merge(of("0") + uses_it, of("1") + uses_it);
    EXPECT_NE(dense(used.text).find("template<intN=kWay_on_device_>__host____device__intway()"),
              std::string::npos)
        << used.text;
    ASSERT_EQ(used.warnings.size(), 1u);
    EXPECT_EQ(used.warnings[0].line, 2u);
    EXPECT_NE(used.warnings[0].message.find("template arguments"), std::string::npos);

    const Merged constructor = merge("struct S { __host__ __device__ S() : a(1) { } int a; };",
                                     "struct S { __host__ __device__ S() : a(2) { } int a; };");
    EXPECT_EQ(dense(constructor.text),
              dense("struct S { __host__ __device__ S() : a(2) " + both("", "") + " int a; };"));
    EXPECT_EQ(constructor.warnings.size(), 1u);

    const Merged attributes = merge("__host__ __device__ int f() { return 1; }",
                                    "__forceinline__ __host__ __device__ int f() { return 2; }");
    EXPECT_TRUE(attributes.warnings.empty());
}

TEST(Merge, KeepsLines) {
    const std::string host =
        "# 1 \"a.cu\"\n__host__ __device__ int f() {\n\n\n\n return 5;\n}\nint after;\n__global__ void k() "
        "{\n\n\n}\nint last;\n";
    const std::string device =
        "# 1 \"a.cu\"\n__host__ __device__ int f() {\n\n return 3;\n\n\n}\nint after;\n__global__ void k() "
        "{\n\n int ten;\n}\nint "
        "last;\n";
    const std::string text = merge(host, device).text;
    EXPECT_EQ(line_of(text, "return 3"), 3);
    EXPECT_EQ(line_of(text, "return 5"), 5);
    EXPECT_EQ(line_of(text, "after"), 7);
    EXPECT_EQ(line_of(text, "ten"), 10);
    EXPECT_EQ(line_of(text, "last"), 12);
}

// One long text with a change at its front and one at its end: found without comparing everything
// with everything.
TEST(Merge, TakesLittleTimeForLongTexts) {
    std::string middle;
    for (int i = 0; i < 20000; ++i)
        middle += "int function_" + std::to_string(i) + "(int x);\nstruct { };\n";
    const std::string host = "int before() { return 0; }\n" + middle + "__device__ int f() { return 0; }\n";
    const std::string device = "int before() { return 1; }\n" + middle + "__device__ int f() { return 1; }\n";
    EXPECT_EQ(dense(merge(host, device).text),
              dense("int before() { return 0; }\n" + middle + "__device__ int f() { return 1; }\n"));
}

// Algorithms of Thrust run on the host: a functor with a text for each side is reported.
TEST(Merge, TellsOfFunctorsThatThrustCalls) {
    const auto functor = [](const std::string& body) {
        return "# 1 \"a.cu\"\nnamespace thrust { int x; }\nstruct F {\n__host__ __device__ int "
               "operator()(int a) const { " +
               body + " }\n};\n";
    };
    const auto told = merge(functor("return 1;"), functor("return 2;"));
    ASSERT_EQ(told.warnings.size(), 1u);
    EXPECT_EQ(told.warnings[0].line, 3);
    EXPECT_NE(told.warnings[0].message.find("Thrust"), std::string::npos);
    EXPECT_TRUE(merge(functor("return 1;"), functor("return 1;")).warnings.empty());

    const auto without_thrust = [&](std::string text) {
        return text.replace(text.find("thrust"), 6, "others");
    };
    EXPECT_TRUE(
        merge(without_thrust(functor("return 1;")), without_thrust(functor("return 2;"))).warnings.empty());
    const auto function = [&](std::string text) { return text.replace(text.find("operator()"), 10, "call"); };
    EXPECT_TRUE(merge(function(functor("return 1;")), function(functor("return 2;"))).warnings.empty());
}

// Whatever the texts are: it ends, and what both have stays.
TEST(Merge, TakesAnything) {
    static constexpr const char* kWords[] = {"{",
                                             "}",
                                             "(",
                                             ")",
                                             "[",
                                             "]",
                                             "<",
                                             ">",
                                             ";",
                                             ":",
                                             "::",
                                             "=",
                                             ",",
                                             "~",
                                             "&",
                                             "*",
                                             "operator",
                                             "template",
                                             "class",
                                             "struct",
                                             "enum",
                                             "namespace",
                                             "using",
                                             "typedef",
                                             "extern",
                                             "\"C\"",
                                             "const",
                                             "constexpr",
                                             "static",
                                             "__host__",
                                             "__device__",
                                             "__global__",
                                             "__launch_bounds__",
                                             "int",
                                             "f",
                                             "x",
                                             "1",
                                             "\n",
                                             "\n# 3 \"a.cu\"\n",
                                             "public",
                                             "[=] __device__ (int x) { }"};
    std::mt19937 random(7);
    const auto word = [&] { return std::string(kWords[random() % std::size(kWords)]) + " "; };
    for (int round = 0; round < 2000; ++round) {
        std::string host, device;
        for (int i = 0; i < 40; ++i) {
            const std::string common = word();
            host += random() % 10 == 0 ? word() : common;
            device += random() % 10 == 0 ? word() : common;
        }
        const std::string merged = merge(host, device).text;
        EXPECT_LE(merged.size(), 40 * (host.size() + device.size()) + 10000);
    }
}

}  // namespace
