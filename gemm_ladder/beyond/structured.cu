// SYRK, SYMM and TRMM, host code: argument checks, and what the two operands are. The kernel is in
// structured.cuh.
#include "common/check/require.hpp"
#include "common/device/pack.cuh"
#include "structured.cuh"

namespace gemm {
namespace {

using course::DeviceMatrix;
using course::Op;
using Order = StructuredTiles::Order;

// The kernel has no more tiles than a wave of `Large` holds: then smaller ones keep more SMs busy.
using Large = course::SquareTile;
using Small = course::SmallTile;
constexpr int kLargeBlocks = 2;
constexpr int kSmallBlocks = 6;

void check_pitch(const char* routine, const char* name, const DeviceMatrix<const float>& matrix) {
    constexpr std::size_t kLongest = (std::size_t{1} << 26) - 1;
    course::require(matrix.leading_dimension() <= kLongest, routine, ": the leading dimension of ", name,
                    " is ", matrix.leading_dimension(), "; expected at most 2^26 - 1");
}

StructuredOperand general(const DeviceMatrix<const float>& matrix, bool k_major) {
    return {.matrix = matrix,
            .k_major = k_major,
            .in_packs = course::is_aligned(matrix.data(), 16) && matrix.leading_dimension() % 4 == 0 &&
                        matrix.cols() % 4 == 0};
}

// A square A. On the left its element (e, k) is op(A)(e, k), on the right op(A)(k, e).
StructuredOperand square(const DeviceMatrix<const float>& a, Form form, Side side, Triangle triangle, Op op,
                         Diagonal diagonal) {
    const bool k_major = (side == Side::kLeft) == (op == Op::kNone);
    StructuredOperand operand = general(a, k_major || form == Form::kSymmetric);
    operand.form = form;
    // Lower: stored where the column is at most the row. K-major: where k <= e.
    operand.below = (triangle == Triangle::kLower) == operand.k_major;
    operand.unit = diagonal == Diagonal::kUnit;
    return operand;
}

template <class T>
StructuredTiles tiles_of(const StructuredProduct& product, Order order) {
    return {order, static_cast<unsigned>(course::ceil_div<std::size_t>(product.c.rows(), T::BM)),
            static_cast<unsigned>(course::ceil_div<std::size_t>(product.c.cols(), T::BN))};
}

// Large tiles, if there are enough of them for a wave.
template <Layout LEFT, Layout RIGHT>
void launch(StructuredProduct product, Order order, cudaStream_t stream) {
    if (product.c.rows() == 0 || product.c.cols() == 0) return;
    if (product.alpha == 0) product.depth = 0;
    product.tiles = tiles_of<Large>(product, order);
    if (product.tiles.count() >= std::size_t{kLargeBlocks} * course::multiprocessors()) {
        launch_multiply_structured<Large, kLargeBlocks, LEFT, RIGHT>(product, stream);
    } else {
        product.tiles = tiles_of<Small>(product, order);
        launch_multiply_structured<Small, kSmallBlocks, LEFT, RIGHT>(product, stream);
    }
}

void check_square(const char* routine, const DeviceMatrix<const float>& a, const DeviceMatrix<const float>& b,
                  const DeviceMatrix<float>& c, Side side) {
    const std::size_t extent = side == Side::kLeft ? c.rows() : c.cols();
    course::require(a.rows() == extent && a.cols() == extent, routine, ": A is ", a, " and C is ", c,
                    "; expected A: ", extent, " x ", extent);
    course::require(b.rows() == c.rows() && b.cols() == c.cols(), routine, ": B is ", b, " and C is ", c,
                    "; expected the same shape");
    course::require(!overlap(a, c), routine, ": C overlaps A; expected no common element");
    course::require(!overlap(b, c), routine, ": C overlaps B; expected no common element");
    check_pitch(routine, "A", a);
    check_pitch(routine, "B", b);
    check_pitch(routine, "C", c);
}

// A on one side, B on the other.
void launch_square(StructuredProduct product, const StructuredOperand& a, const DeviceMatrix<const float>& b,
                   Side side, cudaStream_t stream) {
    product.depth = a.matrix.rows();
    // Of a triangle, the rows or columns of tiles with the longest sums come first.
    const bool last_is_longest = a.form == Form::kTriangular && a.below;
    const bool first_is_longest = a.form == Form::kTriangular && !a.below;
    if (side == Side::kLeft) {
        product.left = a;
        product.right = general(b, false);
        launch<Layout::kSquare, Layout::kColumns>(product, last_is_longest ? Order::kLastRow : Order::kRows,
                                                  stream);
    } else {
        product.left = general(b, true);
        product.right = a;
        launch<Layout::kRows, Layout::kSquare>(product,
                                               last_is_longest    ? Order::kLastCol
                                               : first_is_longest ? Order::kFirstCol
                                                                  : Order::kRows,
                                               stream);
    }
}

}  // namespace

void syrk(const Syrk& problem, cudaStream_t stream) {
    const auto& [a, c, op_a, triangle, alpha, beta] = problem;
    const std::size_t n = op_a == Op::kNone ? a.rows() : a.cols();
    course::require(c.rows() == n && c.cols() == n, "syrk: op(A) has ", n, " rows and C is ", c,
                    "; expected C: ", n, " x ", n);
    course::require(!overlap(a, c), "syrk: C overlaps A; expected no common element");
    check_pitch("syrk", "A", a);
    check_pitch("syrk", "C", c);
    StructuredProduct product{.c = c, .alpha = alpha, .beta = beta};
    product.left = product.right = general(a, op_a == Op::kNone);
    product.depth = op_a == Op::kNone ? a.cols() : a.rows();
    const Order order = triangle == Triangle::kLower ? Order::kLower : Order::kUpper;
    if (op_a == Op::kNone) {
        launch<Layout::kRows, Layout::kRows>(product, order, stream);
    } else {
        launch<Layout::kColumns, Layout::kColumns>(product, order, stream);
    }
}

void symm(const Symm& problem, cudaStream_t stream) {
    const auto& [a, b, c, side, triangle, alpha, beta] = problem;
    check_square("symm", a, b, c, side);
    launch_square({.c = c, .alpha = alpha, .beta = beta},
                  square(a, Form::kSymmetric, side, triangle, Op::kNone, Diagonal::kStored), b, side, stream);
}

void trmm(const Trmm& problem, cudaStream_t stream) {
    const auto& [a, b, c, side, triangle, op_a, diagonal, alpha, beta] = problem;
    check_square("trmm", a, b, c, side);
    launch_square({.c = c, .alpha = alpha, .beta = beta},
                  square(a, Form::kTriangular, side, triangle, op_a, diagonal), b, side, stream);
}

}  // namespace gemm
