// Function definitions in C++ text that does its best to look like something else.
#include "functions.hpp"

#include <gtest/gtest.h>

#include "exercise_sheet.hpp"

namespace course::tool {
namespace {

std::vector<std::string> bodies(const std::string& text, const std::string& name) {
    std::vector<std::string> found;
    for (const FunctionDefinition& function : find_functions(text, name))
        found.push_back(text.substr(function.body_begin, function.body_end - function.body_begin));
    return found;
}

using Bodies = std::vector<std::string>;

TEST(FindFunctions, FindsADefinitionAndNoDeclarationCallOrLaunch) {
    const std::string text = R"(
__global__ void f(int* a, int n);
__global__ void f(int* a, int n) { a[0] = n; }
void g() {
    f<<<1, 32, 0, stream>>>(a, 3);
    f(a, 3);
    if (f(a, 3)) { return; }
    for (int i : f(a)) { use(i); }
    while (x) f(a, 3);
    { f(a, 3); }
    if (y) return f(a, 3) * scale{2};
    return f(a), [&] { return 1; }();
}
const Kernel kernels[] = {{"f", f}, {"g", f}};
struct f_like { void f_(int) {} };
void my_f(int) {}
void f2(int) {}
)";
    EXPECT_EQ(bodies(text, "f"), Bodies{"{ a[0] = n; }"});
}

TEST(FindFunctions, CommentsStringsAndCharactersAreNoCode) {
    const std::string text = R"x(
// void f() { this is a comment }
/* void f() { } { */
const char* s = "void f() { \" {";
const char* r = R"(void f() { " )" "}";
const char* d = R"aa(void f() { )" )aa";
#define F void f() { {
#define G(x) \
    void f() { {
void f() {
    const char a = '{', b = '\'', c = '"', e = u8'}';
    const int n = 1'000'000;  // }
    const auto s = "}" R"(})";
    /* } */
}
)x";
    ASSERT_EQ(bodies(text, "f").size(), 1U);
    EXPECT_TRUE(bodies(text, "f")[0].ends_with("/* } */\n}"));
}

TEST(FindFunctions, EveryShapeOfADefinition) {
    for (const char* head : {
             "void f()",
             "template <int N, class T = std::vector<int>>\n__global__ __launch_bounds__(N / 2 * 3) void f(T "
             "x)",
             "__device__ __forceinline__ float f(int a = g(1, {2}), const char* s = \"){\")",
             "template <>\n__global__ void f<float, (1 > 2), 16>(float x)",
             "template <>\n__global__ void f<std::pair<int, int>>(int)",
             "[[nodiscard]] constexpr auto f(int x) noexcept -> std::size_t",
             "inline int f() noexcept(noexcept(g()))",
             "__global__ void __launch_bounds__(kBlock, kBlocks(1))\n    f(int n)",
             "template <int N>\n__device__ int __attribute__((noinline)) f(int n)",
             "std::vector<int> f()",
             "int* f()",
             "const int& f()",
             "static inline float4 f(float (&a)[4])",
             "template <class T>\n    requires(sizeof(T) == 4)\nvoid f(T)",
             "__global__ void\nf(int n)",
         }) {
        const std::string text = std::string("int before;\n") + head + " { body; }\nint after() { f(1); }\n";
        EXPECT_EQ(bodies(text, "f"), Bodies{"{ body; }"}) << head;
    }
}

TEST(FindFunctions, EveryOverloadInOrder) {
    const std::string text =
        "void f(int) { 1; }\nvoid g() {}\nvoid f(float) { { 2; } }\ntemplate <> void f<3>(char) { 3; }\n";
    EXPECT_EQ(bodies(text, "f"), (Bodies{"{ 1; }", "{ { 2; } }", "{ 3; }"}));
}

TEST(FindFunctions, MembersOfOneTypeAlone) {
    const std::string text = R"(
struct A final : Base<int> { __device__ int load(int i) const { return 1; } };
class B {
  public:
    int load(int i) const override;
};
int B::load(int i) const { return 2; }
int load(int i) { return 3; }
)";
    EXPECT_EQ(bodies(text, "A::load"), Bodies{"{ return 1; }"});
    EXPECT_EQ(bodies(text, "B::load"), Bodies{"{ return 2; }"});
    EXPECT_EQ(bodies(text, "C::load"), Bodies{});
    EXPECT_EQ(bodies(text, "load").size(), 3U);
}

TEST(FindFunctions, KnowsWhatReturnsNothing) {
    const auto nothing = [](const std::string& text) {
        return find_functions(text, "f").at(0).returns_nothing;
    };
    EXPECT_TRUE(nothing("__global__ void f() {}"));
    EXPECT_TRUE(nothing("auto f() -> void {}"));
    EXPECT_TRUE(nothing("void A::f() {}"));
    EXPECT_TRUE(nothing("__global__ void __launch_bounds__(32) f() {}"));
    EXPECT_FALSE(nothing("__device__ int __attribute__((noinline)) f() {}"));
    EXPECT_FALSE(nothing("void* f() {}"));
    EXPECT_FALSE(nothing("auto f() {}"));
    EXPECT_FALSE(nothing("float f(void (*g)()) {}"));
}

TEST(FindFunctions, TheCommentAboveBelongsToIt) {
    const std::string text =
        "int x;  // not this\n\n// nor this\n\n// Idea: one.\n// Two.\ntemplate <int N>\nvoid f() {}\n";
    const FunctionDefinition function = find_functions(text, "f").at(0);
    EXPECT_TRUE(text.substr(function.begin).starts_with("// Idea: one.\n// Two.\ntemplate"));
    EXPECT_TRUE(text.substr(function.head).starts_with("template <int N>"));
    const std::string bare = "int x;  // not this\nvoid f() {}\n";
    EXPECT_EQ(bare.substr(find_functions(bare, "f").at(0).begin), "void f() {}\n");
    const std::string after_include = "#include <a>\n// this\nvoid f() {}\n";
    EXPECT_TRUE(after_include.substr(find_functions(after_include, "f").at(0).begin).starts_with("// this"));
}

TEST(FindFunctions, BracketsThatDoNotMatchAreRefused) {
    for (const char* text :
         {"void f() { if (x { }", "void f() { } }", "void f() { (] }", "void f() {", "void f( { )"}) {
        EXPECT_THROW(find_functions(text, "f"), ExerciseError) << text;
    }
    EXPECT_TRUE(find_functions("", "f").empty());
}

TEST(KernelBodies, AreThoseOfDefinitions) {
    const std::string text =
        "// __global__ void no() {}\n__global__ void declared(int n);\n"
        "template <int N> __global__ void __launch_bounds__(N) a(float* x) { *x = N; }\n"
        "extern \"C\" __global__ void b(int f = int{}) {}\n";
    std::vector<std::string> found;
    for (const std::size_t body : kernel_bodies(text))
        found.push_back(text.substr(body, 5));
    EXPECT_EQ(found, (std::vector<std::string>{"{ *x ", "{}\n"}));
}

TEST(WithBodies, PutsBackWhatWasThere) {
    const std::string lesson =
        "void f(int) { 1; }\n// between {\nint g() { return 2; }\nvoid f(char) { 3; }\n";
    const std::string blank = "void f(int) {}\n// between {\nint g() { return {}; }\nvoid f(char) {}\n";
    EXPECT_EQ(with_bodies_from(blank, lesson, {"f", "g"}), lesson);
    EXPECT_EQ(with_bodies_from(lesson, blank, {"g", "f"}), blank);
    EXPECT_EQ(with_bodies_from(blank, lesson, {"g"}),
              "void f(int) {}\n// between {\nint g() { return 2; }\nvoid f(char) {}\n");
    EXPECT_EQ(with_bodies_from("int mine;\n" + blank, lesson, {"f", "g"}), "int mine;\n" + lesson);
}

TEST(WithBodies, RefusesWhatHasLostADefinition) {
    const std::string lesson = "void f(int) { 1; }\nvoid f(char) { 3; }\n";
    EXPECT_THROW(with_bodies_from("void f(int) {}\n", lesson, {"f"}), ExerciseError);
    EXPECT_THROW(with_bodies_from("void h(int) {}\n", lesson, {"h"}), ExerciseError);
    EXPECT_THROW(with_bodies_from("void f(int) {\n", lesson, {"f"}), ExerciseError);
}

}  // namespace
}  // namespace course::tool
