// cuSPARSE: products, systems and conversions against plain loops over the dense matrix, and the
// errors.
#include <cusparse.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace {

template <class T>
class Device {
  public:
    explicit Device(const std::vector<T>& values) : size_(values.size()) {
        cudaMalloc(reinterpret_cast<void**>(&pointer_), std::max<std::size_t>(1, size_) * sizeof(T));
        cudaMemcpy(pointer_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~Device() { cudaFree(pointer_); }
    Device(const Device&) = delete;
    T* data() const { return pointer_; }
    std::vector<T> values() const {
        std::vector<T> all(size_);
        EXPECT_EQ(cudaMemcpy(all.data(), pointer_, size_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return all;
    }

  private:
    std::size_t size_;
    T* pointer_ = nullptr;
};

template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType kType<std::complex<float>> = CUDA_C_32F;
template <>
constexpr cudaDataType kType<std::complex<double>> = CUDA_C_64F;

// Numbers without a regular pattern, never 0.
template <class T>
T number(int i) {
    const double real = std::fmod(i * 0.618034 + 0.15, 1.0) + 0.5;
    if constexpr (std::is_arithmetic_v<T>) {
        return static_cast<T>(i % 3 == 0 ? -real : real);
    } else {
        using R = typename T::value_type;
        return T(static_cast<R>(real), static_cast<R>(0.3 * (i % 5) - 0.5));
    }
}

constexpr int kRows = 7, kColumns = 5;
// Row 3 and column 1 are empty.
bool is_stored(int row, int column) {
    return row != 3 && column != 1 && (row * 3 + column) % 4 != 0;
}
template <class T>
std::vector<T> dense_matrix() {  // by rows
    std::vector<T> all(kRows * kColumns);
    for (int i = 0; i < kRows * kColumns; ++i)
        if (is_stored(i / kColumns, i % kColumns)) all[i] = number<T>(i);
    return all;
}

template <class T, class Index>
struct Arrays {
    std::vector<Index> outer, inner;
    std::vector<T> values;
};
// The matrix in a format, with indices from `base`.
template <class T, class Index>
Arrays<T, Index> arrays_of(cusparseFormat_t format, int base) {
    const std::vector<T> dense = dense_matrix<T>();
    Arrays<T, Index> all;
    const bool by_columns = format == CUSPARSE_FORMAT_CSC;
    const int outers = by_columns ? kColumns : kRows, inners = by_columns ? kRows : kColumns;
    for (int outer = 0; outer < outers; ++outer) {
        if (format != CUSPARSE_FORMAT_COO) all.outer.push_back(static_cast<Index>(all.values.size()) + base);
        for (int inner = 0; inner < inners; ++inner) {
            const T value = by_columns ? dense[inner * kColumns + outer] : dense[outer * kColumns + inner];
            if (value == T{}) continue;
            if (format == CUSPARSE_FORMAT_COO) all.outer.push_back(outer + base);
            all.inner.push_back(inner + base);
            all.values.push_back(value);
        }
    }
    if (format != CUSPARSE_FORMAT_COO) all.outer.push_back(static_cast<Index>(all.values.size()) + base);
    return all;
}

class Sparse : public testing::Test {
  public:
    Sparse() { EXPECT_EQ(cusparseCreate(&handle_), CUSPARSE_STATUS_SUCCESS); }
    ~Sparse() override { EXPECT_EQ(cusparseDestroy(handle_), CUSPARSE_STATUS_SUCCESS); }
    cusparseHandle_t handle_ = nullptr;
};

template <class T, class Index>
struct SparseMatrix {
    SparseMatrix(cusparseFormat_t format, cusparseIndexBase_t base)
        : arrays(arrays_of<T, Index>(format, base)),
          outer(arrays.outer),
          inner(arrays.inner),
          values(arrays.values) {
        constexpr cusparseIndexType_t kIndex = sizeof(Index) == 8 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
        const auto nnz = static_cast<int64_t>(arrays.values.size());
        cusparseStatus_t status = CUSPARSE_STATUS_INTERNAL_ERROR;
        if (format == CUSPARSE_FORMAT_CSR)
            status = cusparseCreateCsr(&matrix, kRows, kColumns, nnz, outer.data(), inner.data(),
                                       values.data(), kIndex, kIndex, base, kType<T>);
        if (format == CUSPARSE_FORMAT_CSC)
            status = cusparseCreateCsc(&matrix, kRows, kColumns, nnz, outer.data(), inner.data(),
                                       values.data(), kIndex, kIndex, base, kType<T>);
        if (format == CUSPARSE_FORMAT_COO)
            status = cusparseCreateCoo(&matrix, kRows, kColumns, nnz, outer.data(), inner.data(),
                                       values.data(), kIndex, base, kType<T>);
        EXPECT_EQ(status, CUSPARSE_STATUS_SUCCESS);
    }
    ~SparseMatrix() { cusparseDestroySpMat(matrix); }
    Arrays<T, Index> arrays;
    Device<Index> outer, inner;
    Device<T> values;
    cusparseSpMatDescr_t matrix = nullptr;
};

template <class T>
T op(cusparseOperation_t operation, T value) {
    if constexpr (!std::is_arithmetic_v<T>) {
        if (operation == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE) return std::conj(value);
    }
    return value;
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& expected, const std::string& what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_LE(std::abs(got[i] - expected[i]), 1e-5) << what << ", element " << i;
}

constexpr cusparseOperation_t kOperations[] = {CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE,
                                               CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE};
constexpr cusparseFormat_t kFormats[] = {CUSPARSE_FORMAT_CSR, CUSPARSE_FORMAT_CSC, CUSPARSE_FORMAT_COO};

// y = alpha op(A) x + beta y. If beta is 0, y contains NaN before.
template <class T, class Index>
void test_spmv(cusparseHandle_t handle, bool scalars_on_device) {
    const std::vector<T> A = dense_matrix<T>();
    for (const cusparseFormat_t format : kFormats) {
        for (const cusparseIndexBase_t base : {CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_INDEX_BASE_ONE}) {
            const SparseMatrix<T, Index> sparse(format, base);
            for (const cusparseOperation_t operation : kOperations) {
                for (const T beta : {T{}, T(0.5)}) {
                    const bool plain = operation == CUSPARSE_OPERATION_NON_TRANSPOSE;
                    const int n = plain ? kColumns : kRows, m = plain ? kRows : kColumns;
                    const T alpha = number<T>(77);
                    std::vector<T> x(n), y(m, T(NAN)), expected(m);
                    for (int i = 0; i < n; ++i)
                        x[i] = number<T>(i + 100);
                    for (int i = 0; i < m; ++i) {
                        if (beta != T{}) y[i] = number<T>(i + 50);
                        for (int k = 0; k < n; ++k)
                            expected[i] +=
                                op(operation, plain ? A[i * kColumns + k] : A[k * kColumns + i]) * x[k];
                        expected[i] = alpha * expected[i] + (beta == T{} ? T{} : beta * y[i]);
                    }
                    const Device<T> device_x(x), device_y(y), scalars({alpha, beta});
                    cusparseDnVecDescr_t vx, vy;
                    ASSERT_EQ(cusparseCreateDnVec(&vx, n, device_x.data(), kType<T>),
                              CUSPARSE_STATUS_SUCCESS);
                    ASSERT_EQ(cusparseCreateDnVec(&vy, m, device_y.data(), kType<T>),
                              CUSPARSE_STATUS_SUCCESS);
                    cusparseSetPointerMode(handle, scalars_on_device ? CUSPARSE_POINTER_MODE_DEVICE
                                                                     : CUSPARSE_POINTER_MODE_HOST);
                    const T* const a = scalars_on_device ? scalars.data() : &alpha;
                    const T* const b = scalars_on_device ? scalars.data() + 1 : &beta;
                    size_t size = 0;
                    EXPECT_EQ(cusparseSpMV_bufferSize(handle, operation, a, sparse.matrix, vx, b, vy,
                                                      kType<T>, CUSPARSE_SPMV_ALG_DEFAULT, &size),
                              CUSPARSE_STATUS_SUCCESS);
                    const Device<char> buffer{std::vector<char>(size)};
                    EXPECT_EQ(cusparseSpMV_preprocess(handle, operation, a, sparse.matrix, vx, b, vy,
                                                      kType<T>, CUSPARSE_SPMV_ALG_DEFAULT, buffer.data()),
                              CUSPARSE_STATUS_SUCCESS);
                    EXPECT_EQ(cusparseSpMV(handle, operation, a, sparse.matrix, vx, b, vy, kType<T>,
                                           CUSPARSE_SPMV_ALG_DEFAULT, buffer.data()),
                              CUSPARSE_STATUS_SUCCESS);
                    expect_near(
                        device_y.values(), expected,
                        "format " + std::to_string(format) + ", operation " + std::to_string(operation));
                    cusparseDestroyDnVec(vx);
                    cusparseDestroyDnVec(vy);
                }
            }
        }
    }
}
TEST_F(Sparse, TimesVector) {
    test_spmv<float, int>(handle_, false);
    test_spmv<double, int64_t>(handle_, false);
    test_spmv<std::complex<float>, int64_t>(handle_, true);
    test_spmv<std::complex<double>, int>(handle_, false);
    test_spmv<float, int>(handle_, true);
}

// C = alpha op(A) op(B) + beta C, with B and C in both orders, and with gaps between their columns
// or rows.
template <class T>
void test_spmm(cusparseHandle_t handle) {
    constexpr int kWidth = 3, kMore = 2;
    const std::vector<T> A = dense_matrix<T>();
    for (const cusparseFormat_t format : kFormats) {
        const SparseMatrix<T, int> sparse(format, CUSPARSE_INDEX_BASE_ZERO);
        for (const cusparseOperation_t a_op : kOperations) {
            for (const cusparseOperation_t b_op : kOperations) {
                for (const cusparseOrder_t order : {CUSPARSE_ORDER_ROW, CUSPARSE_ORDER_COL}) {
                    for (const T beta : {T{}, T(-2)}) {
                        const bool a_plain = a_op == CUSPARSE_OPERATION_NON_TRANSPOSE;
                        const bool b_plain = b_op == CUSPARSE_OPERATION_NON_TRANSPOSE;
                        const int m = a_plain ? kRows : kColumns, k = a_plain ? kColumns : kRows;
                        const int b_rows = b_plain ? k : kWidth, b_columns = b_plain ? kWidth : k;
                        const bool by_rows = order == CUSPARSE_ORDER_ROW;
                        const int ldb = (by_rows ? b_columns : b_rows) + kMore;
                        const int ldc = (by_rows ? kWidth : m) + kMore;
                        const auto at = [&](int row, int column, int leading) {
                            return by_rows ? row * leading + column : column * leading + row;
                        };
                        std::vector<T> B((by_rows ? b_rows : b_columns) * ldb, T(NAN));
                        std::vector<T> C((by_rows ? m : kWidth) * ldc, T(7));
                        for (int i = 0; i < b_rows * b_columns; ++i)
                            B[at(i / b_columns, i % b_columns, ldb)] = number<T>(i + 9);
                        std::vector<T> expected = C;
                        const T alpha = number<T>(3);
                        for (int i = 0; i < m * kWidth; ++i) {
                            const int row = i / kWidth, column = i % kWidth;
                            T sum{};
                            for (int j = 0; j < k; ++j)
                                sum += op(a_op, a_plain ? A[row * kColumns + j] : A[j * kColumns + row]) *
                                       op(b_op, b_plain ? B[at(j, column, ldb)] : B[at(column, j, ldb)]);
                            T& c = expected[at(row, column, ldc)];
                            c = alpha * sum + beta * c;
                            if (beta == T{}) C[at(row, column, ldc)] = T(NAN);
                        }
                        const Device<T> device_B(B), device_C(C);
                        cusparseDnMatDescr_t mb, mc;
                        ASSERT_EQ(cusparseCreateDnMat(&mb, b_rows, b_columns, ldb, device_B.data(), kType<T>,
                                                      order),
                                  CUSPARSE_STATUS_SUCCESS);
                        ASSERT_EQ(cusparseCreateDnMat(&mc, m, kWidth, ldc, device_C.data(), kType<T>, order),
                                  CUSPARSE_STATUS_SUCCESS);
                        EXPECT_EQ(cusparseSpMM(handle, a_op, b_op, &alpha, sparse.matrix, mb, &beta, mc,
                                               kType<T>, CUSPARSE_SPMM_ALG_DEFAULT, nullptr),
                                  CUSPARSE_STATUS_SUCCESS);
                        expect_near(device_C.values(), expected,
                                    "operations " + std::to_string(a_op) + " and " + std::to_string(b_op) +
                                        ", order " + std::to_string(order));
                        cusparseDestroyDnMat(mb);
                        cusparseDestroyDnMat(mc);
                    }
                }
            }
        }
    }
}
TEST_F(Sparse, TimesMatrix) {
    test_spmm<float>(handle_);
    test_spmm<std::complex<double>>(handle_);
}

// op(A) y = alpha x with the lower or the upper triangle of a matrix that has both.
TEST_F(Sparse, TriangularSystems) {
    constexpr int n = 5;
    std::vector<double> A(n * n);
    std::vector<int> offsets{0}, columns;
    std::vector<double> values;
    for (int row = 0; row < n; ++row) {
        for (int column = 0; column < n; ++column) {
            if ((row + 2 * column) % 3 == 1 && row != column) continue;
            A[row * n + column] = number<double>(row * n + column) + (row == column ? 3 : 0);
            columns.push_back(column);
            values.push_back(A[row * n + column]);
        }
        offsets.push_back(static_cast<int>(columns.size()));
    }
    const Device<int> device_offsets(offsets), device_columns(columns);
    const Device<double> device_values(values);
    cusparseSpMatDescr_t matrix;
    ASSERT_EQ(cusparseCreateCsr(&matrix, n, n, static_cast<int64_t>(values.size()), device_offsets.data(),
                                device_columns.data(), device_values.data(), CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
              CUSPARSE_STATUS_SUCCESS);
    for (cusparseFillMode_t fill : {CUSPARSE_FILL_MODE_LOWER, CUSPARSE_FILL_MODE_UPPER}) {
        for (cusparseDiagType_t diagonal : {CUSPARSE_DIAG_TYPE_NON_UNIT, CUSPARSE_DIAG_TYPE_UNIT}) {
            for (const cusparseOperation_t operation : kOperations) {
                cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill);
                cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal);
                const Device<double> x({1, -2, 3, 4, -5}), y(std::vector<double>(n, NAN));
                cusparseDnVecDescr_t vx, vy;
                cusparseCreateDnVec(&vx, n, x.data(), CUDA_R_64F);
                cusparseCreateDnVec(&vy, n, y.data(), CUDA_R_64F);
                cusparseSpSVDescr_t descriptor;
                cusparseSpSV_createDescr(&descriptor);
                const double alpha = 1.5;
                EXPECT_EQ(cusparseSpSV_solve(handle_, operation, &alpha, matrix, vx, vy, CUDA_R_64F,
                                             CUSPARSE_SPSV_ALG_DEFAULT, descriptor),
                          CUSPARSE_STATUS_INVALID_VALUE)
                    << "not analysed";
                EXPECT_EQ(cusparseSpSV_analysis(handle_, operation, &alpha, matrix, vx, vy, CUDA_R_64F,
                                                CUSPARSE_SPSV_ALG_DEFAULT, descriptor, nullptr),
                          CUSPARSE_STATUS_SUCCESS);
                EXPECT_EQ(cusparseSpSV_solve(handle_, operation, &alpha, matrix, vx, vy, CUDA_R_64F,
                                             CUSPARSE_SPSV_ALG_DEFAULT, descriptor),
                          CUSPARSE_STATUS_SUCCESS);
                const std::vector<double> solution = y.values();
                std::vector<double> product(n), right = x.values();
                for (int i = 0; i < n * n; ++i) {
                    int row = i / n, column = i % n;
                    const bool in_triangle = fill == CUSPARSE_FILL_MODE_LOWER ? column < row : column > row;
                    const double value = row == column && diagonal == CUSPARSE_DIAG_TYPE_UNIT ? 1 : A[i];
                    if (!in_triangle && row != column) continue;
                    if (operation != CUSPARSE_OPERATION_NON_TRANSPOSE) std::swap(row, column);
                    product[row] += value * solution[column];
                }
                for (double& each : right)
                    each *= alpha;
                expect_near(product, right,
                            "fill " + std::to_string(fill) + ", diagonal " + std::to_string(diagonal));
                cusparseSpSV_destroyDescr(descriptor);
                cusparseDestroyDnVec(vx);
                cusparseDestroyDnVec(vy);
            }
        }
    }
    cusparseDestroySpMat(matrix);
}

TEST_F(Sparse, ToDenseAndBack) {
    const std::vector<float> A = dense_matrix<float>();
    for (const cusparseFormat_t format : kFormats) {
        const SparseMatrix<float, int> sparse(format, CUSPARSE_INDEX_BASE_ONE);
        const Device<float> dense(std::vector<float>(A.size(), NAN));
        cusparseDnMatDescr_t matrix;
        cusparseCreateDnMat(&matrix, kRows, kColumns, kColumns, dense.data(), CUDA_R_32F, CUSPARSE_ORDER_ROW);
        EXPECT_EQ(cusparseSparseToDense(handle_, sparse.matrix, matrix, CUSPARSE_SPARSETODENSE_ALG_DEFAULT,
                                        nullptr),
                  CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(dense.values(), A);

        // As programs do it: offsets first, then the amount of memory that the analysis returns.
        const auto& expected = sparse.arrays;
        const bool is_coo = format == CUSPARSE_FORMAT_COO;
        const Device<int> outer(std::vector<int>(expected.outer.size(), -1));
        cusparseSpMatDescr_t back;
        const auto create = format == CUSPARSE_FORMAT_CSC ? cusparseCreateCsc : cusparseCreateCsr;
        if (is_coo) {
            cusparseCreateCoo(&back, kRows, kColumns, 0, nullptr, nullptr, nullptr, CUSPARSE_INDEX_32I,
                              CUSPARSE_INDEX_BASE_ONE, CUDA_R_32F);
        } else {
            create(&back, kRows, kColumns, 0, outer.data(), nullptr, nullptr, CUSPARSE_INDEX_32I,
                   CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ONE, CUDA_R_32F);
        }
        EXPECT_EQ(cusparseDenseToSparse_analysis(handle_, matrix, back, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
                                                 nullptr),
                  CUSPARSE_STATUS_SUCCESS);
        int64_t rows = 0, columns = 0, nnz = 0;
        cusparseSpMatGetSize(back, &rows, &columns, &nnz);
        ASSERT_EQ(nnz, static_cast<int64_t>(expected.values.size()));
        const Device<int> inner{std::vector<int>(nnz)};
        const Device<float> values{std::vector<float>(nnz)};
        const auto set = is_coo                          ? cusparseCooSetPointers
                         : format == CUSPARSE_FORMAT_CSC ? cusparseCscSetPointers
                                                         : cusparseCsrSetPointers;
        EXPECT_EQ(set(back, outer.data(), inner.data(), values.data()), CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(
            cusparseDenseToSparse_convert(handle_, matrix, back, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, nullptr),
            CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(outer.values(), expected.outer);
        EXPECT_EQ(inner.values(), expected.inner);
        EXPECT_EQ(values.values(), expected.values);
        cusparseDestroySpMat(back);
        cusparseDestroyDnMat(matrix);
    }
}

TEST_F(Sparse, FromRowsToColumnsAndFromOffsetsToIndices) {
    for (const int base : {0, 1}) {
        const auto index_base = static_cast<cusparseIndexBase_t>(base);
        const auto rows = arrays_of<float, int>(CUSPARSE_FORMAT_CSR, base);
        const auto columns = arrays_of<float, int>(CUSPARSE_FORMAT_CSC, base);
        const auto pairs = arrays_of<float, int>(CUSPARSE_FORMAT_COO, base);
        const int nnz = static_cast<int>(rows.values.size());
        const Device<int> offsets(rows.outer), indices(rows.inner),
            to_offsets(std::vector<int>(kColumns + 1)), to_indices{std::vector<int>(nnz)},
            row_indices{std::vector<int>(nnz)}, row_offsets(std::vector<int>(kRows + 1));
        const Device<float> values(rows.values), to_values{std::vector<float>(nnz)};
        EXPECT_EQ(
            cusparseCsr2cscEx2(handle_, kRows, kColumns, nnz, values.data(), offsets.data(), indices.data(),
                               to_values.data(), to_offsets.data(), to_indices.data(), CUDA_R_32F,
                               CUSPARSE_ACTION_NUMERIC, index_base, CUSPARSE_CSR2CSC_ALG1, nullptr),
            CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(to_offsets.values(), columns.outer);
        EXPECT_EQ(to_indices.values(), columns.inner);
        EXPECT_EQ(to_values.values(), columns.values);
        EXPECT_EQ(cusparseXcsr2coo(handle_, offsets.data(), nnz, kRows, row_indices.data(), index_base),
                  CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(row_indices.values(), pairs.outer);
        EXPECT_EQ(cusparseXcoo2csr(handle_, row_indices.data(), nnz, kRows, row_offsets.data(), index_base),
                  CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(row_offsets.values(), rows.outer);
    }
}

// --- Sparse vectors, products of sparse matrices, systems with several right sides -------------------

template <class T>
void test_sparse_vectors(cusparseHandle_t handle) {
    constexpr int kSize = 11;
    for (const int base : {0, 1}) {
        std::vector<int64_t> indices;
        std::vector<T> values, y, expected;
        for (const int i : {7, 0, 10, 3}) {
            indices.push_back(i + base);
            values.push_back(number<T>(i));
        }
        for (int i = 0; i < kSize; ++i)
            y.push_back(number<T>(20 + i));
        const Device<int64_t> device_indices(indices);
        const Device<T> x_values(values), y_values(y);
        cusparseSpVecDescr_t x;
        cusparseDnVecDescr_t dense;
        ASSERT_EQ(cusparseCreateSpVec(&x, kSize, 4, device_indices.data(), x_values.data(),
                                      CUSPARSE_INDEX_64I, static_cast<cusparseIndexBase_t>(base), kType<T>),
                  CUSPARSE_STATUS_SUCCESS);
        ASSERT_EQ(cusparseCreateDnVec(&dense, kSize, y_values.data(), kType<T>), CUSPARSE_STATUS_SUCCESS);

        const T alpha = number<T>(3), beta = number<T>(5);
        expected = y;
        for (T& value : expected)
            value *= beta;
        for (int i = 0; i < 4; ++i)
            expected[indices[i] - base] += alpha * values[i];
        ASSERT_EQ(cusparseAxpby(handle, &alpha, x, &beta, dense), CUSPARSE_STATUS_SUCCESS);
        expect_near(y_values.values(), expected, "Axpby");

        y = y_values.values();
        for (const cusparseOperation_t operation : kOperations) {
            T sum{}, got{};
            for (int i = 0; i < 4; ++i)
                sum += (operation == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? op(operation, values[i])
                                                                            : values[i]) *
                       y[indices[i] - base];
            size_t size = 0;
            ASSERT_EQ(cusparseSpVV_bufferSize(handle, operation, x, dense, &got, kType<T>, &size),
                      CUSPARSE_STATUS_SUCCESS);
            ASSERT_EQ(cusparseSpVV(handle, operation, x, dense, &got, kType<T>, nullptr),
                      CUSPARSE_STATUS_SUCCESS);
            expect_near(std::vector<T>{got}, std::vector<T>{sum}, "SpVV");
        }

        ASSERT_EQ(cusparseScatter(handle, x, dense), CUSPARSE_STATUS_SUCCESS);
        for (int i = 0; i < 4; ++i)
            y[indices[i] - base] = values[i];
        EXPECT_EQ(y_values.values(), y);
        const Device<T> gathered(std::vector<T>(4, T(NAN)));
        ASSERT_EQ(cusparseSpVecSetValues(x, gathered.data()), CUSPARSE_STATUS_SUCCESS);
        ASSERT_EQ(cusparseGather(handle, dense, x), CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(gathered.values(), values);

        const T c = number<T>(1), s = number<T>(2);
        ASSERT_EQ(cusparseRot(handle, &c, &s, x, dense), CUSPARSE_STATUS_SUCCESS);
        std::vector<T> rotated = values;
        for (int i = 0; i < 4; ++i) {
            T& other = y[indices[i] - base];
            rotated[i] = c * values[i] + s * other;
            other = c * other - op(CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE, s) * values[i];
        }
        expect_near(gathered.values(), rotated, "Rot, x");
        expect_near(y_values.values(), y, "Rot, y");

        int64_t size = 0, nnz = 0;
        void *found_indices = nullptr, *found_values = nullptr;
        cusparseIndexType_t index_type;
        cusparseIndexBase_t index_base;
        cudaDataType type;
        ASSERT_EQ(
            cusparseSpVecGet(x, &size, &nnz, &found_indices, &found_values, &index_type, &index_base, &type),
            CUSPARSE_STATUS_SUCCESS);
        EXPECT_EQ(size, kSize);
        EXPECT_EQ(nnz, 4);
        EXPECT_EQ(found_indices, device_indices.data());
        EXPECT_EQ(found_values, gathered.data());
        EXPECT_EQ(index_base, base);
        EXPECT_EQ(type, kType<T>);
        cusparseDestroySpVec(x);
        cusparseDestroyDnVec(dense);
    }
}
TEST_F(Sparse, Vectors) {
    test_sparse_vectors<float>(handle_);
    test_sparse_vectors<double>(handle_);
    test_sparse_vectors<std::complex<float>>(handle_);
    test_sparse_vectors<std::complex<double>>(handle_);
}

TEST_F(Sparse, AnIndexOutsideTheVectorIsReported) {
    const Device<int> indices({1, 5});
    const Device<float> values({1, 2}), y{std::vector<float>(5)};
    cusparseSpVecDescr_t x;
    cusparseDnVecDescr_t dense;
    cusparseCreateSpVec(&x, 5, 2, indices.data(), values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                        CUDA_R_32F);
    cusparseCreateDnVec(&dense, 5, y.data(), CUDA_R_32F);
    testing::internal::CaptureStderr();
    EXPECT_EQ(cusparseScatter(handle_, x, dense), CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_NE(
        told.find("cusparseScatter: element 1 of the indices of the sparse vector is 5; expected 0 to 4"),
        std::string::npos)
        << told;
    cudaDeviceReset();
    cudaGetLastError();
    cusparseDestroySpVec(x);
    cusparseDestroyDnVec(dense);
}

// A matrix of any shape in CSR, with the entries that `stored` names; and dense, by rows.
template <class T>
struct Csr {
    template <class Stored>
    Csr(int rows_, int columns_, int base, int seed, Stored stored)
        : rows(rows_), columns(columns_), dense(rows * columns) {
        std::vector<int> offsets{base}, indices;
        std::vector<T> all;
        for (int row = 0; row < rows; ++row) {
            for (int column = 0; column < columns; ++column) {
                if (!stored(row, column)) continue;
                dense[row * columns + column] = number<T>(row * columns + column + seed);
                indices.push_back(column + base);
                all.push_back(dense[row * columns + column]);
            }
            offsets.push_back(static_cast<int>(indices.size()) + base);
        }
        outer = std::make_unique<Device<int>>(offsets);
        inner = std::make_unique<Device<int>>(indices);
        values = std::make_unique<Device<T>>(all);
        EXPECT_EQ(cusparseCreateCsr(&matrix, rows, columns, static_cast<int64_t>(all.size()), outer->data(),
                                    inner->data(), values->data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                    static_cast<cusparseIndexBase_t>(base), kType<T>),
                  CUSPARSE_STATUS_SUCCESS);
    }
    ~Csr() { cusparseDestroySpMat(matrix); }
    Csr(const Csr&) = delete;
    int rows, columns;
    std::vector<T> dense;
    std::unique_ptr<Device<int>> outer, inner;
    std::unique_ptr<Device<T>> values;
    cusparseSpMatDescr_t matrix = nullptr;
};

template <class T>
void test_spgemm(cusparseHandle_t handle, int base, bool reuse) {
    constexpr int kM = 6, kK = 5, kN = 7;
    // Row 2 of A is empty, as is column 3 of B; A B has a place whose products cancel in no type.
    const Csr<T> A(kM, kK, base, 0, [](int row, int column) { return row != 2 && (row + column) % 2 == 0; });
    const Csr<T> B(kK, kN, 1 - base, 9,
                   [](int row, int column) { return column != 3 && (row * 2 + column) % 3 != 1; });
    const T alpha = number<T>(4), zero{};
    const Device<int> offsets(std::vector<int>(kM + 1, -1));
    cusparseSpMatDescr_t C;
    ASSERT_EQ(cusparseCreateCsr(&C, kM, kN, 0, offsets.data(), nullptr, nullptr, CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_32I, static_cast<cusparseIndexBase_t>(base), kType<T>),
              CUSPARSE_STATUS_SUCCESS);
    cusparseSpGEMMDescr_t descriptor;
    ASSERT_EQ(cusparseSpGEMM_createDescr(&descriptor), CUSPARSE_STATUS_SUCCESS);
    constexpr auto kN_ = CUSPARSE_OPERATION_NON_TRANSPOSE;
    constexpr auto kAlgorithm = CUSPARSE_SPGEMM_DEFAULT;
    size_t sizes[4] = {};
    if (reuse) {
        ASSERT_EQ(cusparseSpGEMMreuse_workEstimation(handle, kN_, kN_, A.matrix, B.matrix, C, kAlgorithm,
                                                     descriptor, &sizes[0], nullptr),
                  CUSPARSE_STATUS_SUCCESS);
        const Device<char> buffer{std::vector<char>(sizes[0])};
        ASSERT_EQ(cusparseSpGEMMreuse_workEstimation(handle, kN_, kN_, A.matrix, B.matrix, C, kAlgorithm,
                                                     descriptor, &sizes[0], buffer.data()),
                  CUSPARSE_STATUS_SUCCESS);
        for (void* const each : {static_cast<char*>(nullptr), buffer.data()}) {
            ASSERT_EQ(cusparseSpGEMMreuse_nnz(handle, kN_, kN_, A.matrix, B.matrix, C, kAlgorithm, descriptor,
                                              &sizes[1], each, &sizes[2], each, &sizes[3], each),
                      CUSPARSE_STATUS_SUCCESS);
        }
    } else {
        testing::internal::CaptureStderr();
        EXPECT_EQ(cusparseSpGEMM_copy(handle, kN_, kN_, &alpha, A.matrix, B.matrix, &zero, C, kType<T>,
                                      kAlgorithm, descriptor),
                  CUSPARSE_STATUS_INVALID_VALUE);
        EXPECT_NE(testing::internal::GetCapturedStderr().find("expected cusparseSpGEMM_compute before"),
                  std::string::npos);
        ASSERT_EQ(cusparseSpGEMM_workEstimation(handle, kN_, kN_, &alpha, A.matrix, B.matrix, &zero, C,
                                                kType<T>, kAlgorithm, descriptor, &sizes[0], nullptr),
                  CUSPARSE_STATUS_SUCCESS);
        const Device<char> buffer{std::vector<char>(sizes[0])};
        ASSERT_EQ(cusparseSpGEMM_workEstimation(handle, kN_, kN_, &alpha, A.matrix, B.matrix, &zero, C,
                                                kType<T>, kAlgorithm, descriptor, &sizes[0], buffer.data()),
                  CUSPARSE_STATUS_SUCCESS);
        for (void* const each : {static_cast<char*>(nullptr), buffer.data()}) {
            ASSERT_EQ(cusparseSpGEMM_compute(handle, kN_, kN_, &alpha, A.matrix, B.matrix, &zero, C, kType<T>,
                                             kAlgorithm, descriptor, &sizes[1], each),
                      CUSPARSE_STATUS_SUCCESS);
        }
    }
    // The plain product, and where it has entries.
    std::vector<T> product(kM * kN);
    std::vector<int> expected_offsets{base}, expected_columns;
    int64_t products = 0;
    for (int row = 0; row < kM; ++row) {
        for (int column = 0; column < kN; ++column) {
            bool any = false;
            for (int k = 0; k < kK; ++k) {
                const T a = A.dense[row * kK + k], b = B.dense[k * kN + column];
                if (a == T{} || b == T{}) continue;
                any = true;
                ++products;
                product[row * kN + column] += a * b;
            }
            if (any) expected_columns.push_back(column + base);
        }
        expected_offsets.push_back(static_cast<int>(expected_columns.size()) + base);
    }
    int64_t rows = 0, columns = 0, nnz = 0, counted = 0;
    cusparseSpMatGetSize(C, &rows, &columns, &nnz);
    ASSERT_EQ(nnz, static_cast<int64_t>(expected_columns.size()));
    ASSERT_EQ(cusparseSpGEMM_getNumProducts(descriptor, &counted), CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(counted, products);
    const Device<int> inner(std::vector<int>(nnz, -1));
    const Device<T> values(std::vector<T>(nnz, T(NAN)));
    ASSERT_EQ(cusparseCsrSetPointers(C, offsets.data(), inner.data(), values.data()),
              CUSPARSE_STATUS_SUCCESS);
    if (reuse) {
        size_t size5 = 0;
        const Device<char> buffer{std::vector<char>(1)};
        ASSERT_EQ(cusparseSpGEMMreuse_copy(handle, kN_, kN_, A.matrix, B.matrix, C, kAlgorithm, descriptor,
                                           &size5, buffer.data()),
                  CUSPARSE_STATUS_SUCCESS);
        ASSERT_EQ(cusparseSpGEMMreuse_compute(handle, kN_, kN_, &alpha, A.matrix, B.matrix, &zero, C,
                                              kType<T>, kAlgorithm, descriptor),
                  CUSPARSE_STATUS_SUCCESS);
    } else {
        ASSERT_EQ(cusparseSpGEMM_copy(handle, kN_, kN_, &alpha, A.matrix, B.matrix, &zero, C, kType<T>,
                                      kAlgorithm, descriptor),
                  CUSPARSE_STATUS_SUCCESS);
    }
    EXPECT_EQ(offsets.values(), expected_offsets);
    EXPECT_EQ(inner.values(), expected_columns);
    std::vector<T> expected;
    for (int row = 0; row < kM; ++row)
        for (int i = expected_offsets[row] - base; i < expected_offsets[row + 1] - base; ++i)
            expected.push_back(alpha * product[row * kN + expected_columns[i] - base]);
    expect_near(values.values(), expected, "A B");
    if (reuse) {  // once more, with beta
        const T beta = number<T>(8);
        ASSERT_EQ(cusparseSpGEMMreuse_compute(handle, kN_, kN_, &alpha, A.matrix, B.matrix, &beta, C,
                                              kType<T>, kAlgorithm, descriptor),
                  CUSPARSE_STATUS_SUCCESS);
        for (T& value : expected)
            value += beta * value;
        expect_near(values.values(), expected, "A B + beta C");
    }
    cusparseSpGEMM_destroyDescr(descriptor);
    cusparseDestroySpMat(C);
}
TEST_F(Sparse, TimesSparse) {
    for (const int base : {0, 1}) {
        for (const bool reuse : {false, true}) {
            test_spgemm<float>(handle_, base, reuse);
            test_spgemm<double>(handle_, base, reuse);
            test_spgemm<std::complex<double>>(handle_, base, reuse);
        }
    }
}

template <class T>
void test_spsm(cusparseHandle_t handle) {
    constexpr int kN = 6, kWidth = 3;
    const Csr<T> A(kN, kN, 1, 0,
                   [](int row, int column) { return row == column || (row + 2 * column) % 3 != 1; });
    for (cusparseFillMode_t fill : {CUSPARSE_FILL_MODE_LOWER, CUSPARSE_FILL_MODE_UPPER}) {
        cusparseSpMatSetAttribute(A.matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill);
        for (const cusparseOperation_t a_op : kOperations) {
            for (const cusparseOperation_t b_op :
                 {CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE}) {
                for (const cusparseOrder_t order : {CUSPARSE_ORDER_COL, CUSPARSE_ORDER_ROW}) {
                    const bool plain = b_op == CUSPARSE_OPERATION_NON_TRANSPOSE;
                    const bool by_rows = order == CUSPARSE_ORDER_ROW;
                    const int b_rows = plain ? kN : kWidth, b_columns = plain ? kWidth : kN;
                    const int ldb = (by_rows ? b_columns : b_rows) + 2, ldc = (by_rows ? kWidth : kN) + 1;
                    const auto at = [by_rows](int row, int column, int leading) {
                        return by_rows ? row * leading + column : column * leading + row;
                    };
                    std::vector<T> B((by_rows ? b_rows : b_columns) * ldb, T(NAN)), right(kN * kWidth);
                    std::vector<T> C((by_rows ? kN : kWidth) * ldc, T(7));
                    for (int row = 0; row < kN; ++row) {
                        for (int column = 0; column < kWidth; ++column) {
                            right[row * kWidth + column] = number<T>(row * 5 + column);
                            B[plain ? at(row, column, ldb) : at(column, row, ldb)] =
                                right[row * kWidth + column];
                        }
                    }
                    const Device<T> device_B(B), device_C(C);
                    cusparseDnMatDescr_t mb, mc;
                    cusparseCreateDnMat(&mb, b_rows, b_columns, ldb, device_B.data(), kType<T>, order);
                    cusparseCreateDnMat(&mc, kN, kWidth, ldc, device_C.data(), kType<T>, order);
                    cusparseSpSMDescr_t descriptor;
                    cusparseSpSM_createDescr(&descriptor);
                    const T alpha = number<T>(2);
                    size_t size = 0;
                    EXPECT_EQ(cusparseSpSM_solve(handle, a_op, b_op, &alpha, A.matrix, mb, mc, kType<T>,
                                                 CUSPARSE_SPSM_ALG_DEFAULT, descriptor),
                              CUSPARSE_STATUS_INVALID_VALUE)
                        << "not analysed";
                    ASSERT_EQ(cusparseSpSM_bufferSize(handle, a_op, b_op, &alpha, A.matrix, mb, mc, kType<T>,
                                                      CUSPARSE_SPSM_ALG_DEFAULT, descriptor, &size),
                              CUSPARSE_STATUS_SUCCESS);
                    ASSERT_EQ(cusparseSpSM_analysis(handle, a_op, b_op, &alpha, A.matrix, mb, mc, kType<T>,
                                                    CUSPARSE_SPSM_ALG_DEFAULT, descriptor, nullptr),
                              CUSPARSE_STATUS_SUCCESS);
                    ASSERT_EQ(cusparseSpSM_solve(handle, a_op, b_op, &alpha, A.matrix, mb, mc, kType<T>,
                                                 CUSPARSE_SPSM_ALG_DEFAULT, descriptor),
                              CUSPARSE_STATUS_SUCCESS);
                    const std::vector<T> got = device_C.values();
                    std::vector<T> product(kN * kWidth);
                    using Real = decltype(std::abs(T{}));
                    Real most = 1;
                    for (int i = 0; i < kN * kN; ++i) {
                        int row = i / kN, column = i % kN;
                        if (fill == CUSPARSE_FILL_MODE_LOWER ? column > row : column < row) continue;
                        if (a_op != CUSPARSE_OPERATION_NON_TRANSPOSE) std::swap(row, column);
                        for (int j = 0; j < kWidth; ++j) {
                            product[row * kWidth + j] += op(a_op, A.dense[i]) * got[at(column, j, ldc)];
                            most = std::max<Real>(most, std::abs(got[at(column, j, ldc)]));
                        }
                    }
                    for (int i = 0; i < kN * kWidth; ++i)  // each product has kN terms of at most 2 * most
                        EXPECT_LE(std::abs(product[i] - alpha * right[i]),
                                  8 * kN * most * std::numeric_limits<Real>::epsilon())
                            << i << ", fill " << fill << ", operations " << a_op << b_op << ", order "
                            << order;
                    EXPECT_EQ(got[at(by_rows ? 0 : kN, by_rows ? kWidth : 0, ldc)], T(7))
                        << "the padding stays";
                    cusparseSpSM_destroyDescr(descriptor);
                    cusparseDestroyDnMat(mb);
                    cusparseDestroyDnMat(mc);
                }
            }
        }
    }
}
TEST_F(Sparse, TriangularSystemsWithSeveralRightSides) {
    testing::internal::CaptureStderr();
    test_spsm<float>(handle_);
    test_spsm<std::complex<double>>(handle_);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("expected cusparseSpSM_analysis before"),
              std::string::npos);
}

TEST_F(Sparse, NewValuesForASystemThatWasAnalysed) {
    const Csr<double> A(3, 3, 0, 0, [](int row, int column) { return column <= row; });
    const Device<double> x({1, 2, 3}), y(std::vector<double>(3, NAN));
    cusparseDnVecDescr_t vx, vy;
    cusparseCreateDnVec(&vx, 3, x.data(), CUDA_R_64F);
    cusparseCreateDnVec(&vy, 3, y.data(), CUDA_R_64F);
    cusparseSpSVDescr_t descriptor;
    cusparseSpSV_createDescr(&descriptor);
    const double alpha = 1;
    constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const Device<double> all({1, 2, 4, 1, 1, 8}), diagonal({2, 2, 2});
    ASSERT_EQ(cusparseSpSV_analysis(handle_, kPlain, &alpha, A.matrix, vx, vy, CUDA_R_64F,
                                    CUSPARSE_SPSV_ALG_DEFAULT, descriptor, nullptr),
              CUSPARSE_STATUS_SUCCESS);
    ASSERT_EQ(cusparseSpSV_updateMatrix(handle_, descriptor, all.data(), CUSPARSE_SPSV_UPDATE_GENERAL),
              CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(A.values->values(), all.values());
    ASSERT_EQ(cusparseSpSV_updateMatrix(handle_, descriptor, diagonal.data(), CUSPARSE_SPSV_UPDATE_DIAGONAL),
              CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(A.values->values(), (std::vector<double>{2, 2, 2, 1, 1, 2}));
    ASSERT_EQ(cusparseSpSV_solve(handle_, kPlain, &alpha, A.matrix, vx, vy, CUDA_R_64F,
                                 CUSPARSE_SPSV_ALG_DEFAULT, descriptor),
              CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(y.values(), (std::vector<double>{0.5, 0.5, 1}));
    cusparseSpSV_destroyDescr(descriptor);
    cusparseDestroyDnVec(vx);
    cusparseDestroyDnVec(vy);
}

TEST_F(Sparse, ProductsOfDenseMatricesWhereSparseOnesHaveEntries) {
    constexpr int kM = 5, kK = 4, kN = 6;
    using T = std::complex<double>;
    for (const cusparseOperation_t a_op : kOperations) {
        for (const cusparseOperation_t b_op : kOperations) {
            const Csr<T> C(kM, kN, 1, 3,
                           [](int row, int column) { return row != 1 && (row + column) % 2 == 1; });
            const bool a_plain = a_op == CUSPARSE_OPERATION_NON_TRANSPOSE;
            const bool b_plain = b_op == CUSPARSE_OPERATION_NON_TRANSPOSE;
            const int a_rows = a_plain ? kM : kK, a_columns = a_plain ? kK : kM;
            const int b_rows = b_plain ? kK : kN, b_columns = b_plain ? kN : kK;
            std::vector<T> a(a_rows * a_columns), b(b_rows * b_columns);  // by rows, and by columns
            for (std::size_t i = 0; i < a.size(); ++i)
                a[i] = number<T>(static_cast<int>(i));
            for (std::size_t i = 0; i < b.size(); ++i)
                b[i] = number<T>(static_cast<int>(i) + 30);
            const Device<T> da(a), db(b);
            cusparseDnMatDescr_t ma, mb;
            cusparseCreateDnMat(&ma, a_rows, a_columns, a_columns, da.data(), kType<T>, CUSPARSE_ORDER_ROW);
            cusparseCreateDnMat(&mb, b_rows, b_columns, b_rows, db.data(), kType<T>, CUSPARSE_ORDER_COL);
            const T alpha = number<T>(1), beta = number<T>(2);
            std::vector<T> expected;
            for (int row = 0; row < kM; ++row) {
                for (int column = 0; column < kN; ++column) {
                    if (row == 1 || (row + column) % 2 != 1) continue;
                    T sum{};
                    for (int k = 0; k < kK; ++k)
                        sum += op(a_op, a[a_plain ? row * kK + k : k * kM + row]) *
                               op(b_op, b[b_plain ? column * kK + k : k * kN + column]);
                    expected.push_back(alpha * sum + beta * C.dense[row * kN + column]);
                }
            }
            size_t size = 0;
            ASSERT_EQ(cusparseSDDMM_bufferSize(handle_, a_op, b_op, &alpha, ma, mb, &beta, C.matrix, kType<T>,
                                               CUSPARSE_SDDMM_ALG_DEFAULT, &size),
                      CUSPARSE_STATUS_SUCCESS);
            ASSERT_EQ(cusparseSDDMM(handle_, a_op, b_op, &alpha, ma, mb, &beta, C.matrix, kType<T>,
                                    CUSPARSE_SDDMM_ALG_DEFAULT, nullptr),
                      CUSPARSE_STATUS_SUCCESS);
            expect_near(C.values->values(), expected, "SDDMM");
            cusparseDestroyDnMat(ma);
            cusparseDestroyDnMat(mb);
        }
    }
}

TEST_F(Sparse, DescriptorsGiveBackWhatTheyHold) {
    const SparseMatrix<float, int> sparse(CUSPARSE_FORMAT_CSR, CUSPARSE_INDEX_BASE_ONE);
    int64_t rows = 0, columns = 0, nnz = 0;
    void *outer = nullptr, *inner = nullptr, *values = nullptr;
    cusparseIndexType_t outer_type, inner_type;
    cusparseIndexBase_t base;
    cudaDataType type;
    ASSERT_EQ(cusparseCsrGet(sparse.matrix, &rows, &columns, &nnz, &outer, &inner, &values, &outer_type,
                             &inner_type, &base, &type),
              CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(rows, kRows);
    EXPECT_EQ(columns, kColumns);
    EXPECT_EQ(nnz, static_cast<int64_t>(sparse.arrays.values.size()));
    EXPECT_EQ(outer, sparse.outer.data());
    EXPECT_EQ(inner, sparse.inner.data());
    EXPECT_EQ(values, sparse.values.data());
    EXPECT_EQ(base, CUSPARSE_INDEX_BASE_ONE);
    testing::internal::CaptureStderr();
    EXPECT_EQ(cusparseCooGet(sparse.matrix, &rows, &columns, &nnz, &outer, &inner, &values, &inner_type,
                             &base, &type),
              CUSPARSE_STATUS_INVALID_VALUE);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("the format of the matrix is 1; expected 3"),
              std::string::npos);
}

// --- Errors --------------------------------------------------------------------------------------

// The status and the messages of a product with this matrix and these vectors of `n` values.
struct End {
    cusparseStatus_t status;
    cudaError_t error;
    std::string told;
};
End product(cusparseHandle_t handle, cusparseSpMatDescr_t matrix, int x_size, float* x, float* y) {
    cusparseDnVecDescr_t vx, vy;
    cusparseCreateDnVec(&vx, x_size, x, CUDA_R_32F);
    cusparseCreateDnVec(&vy, kRows, y, CUDA_R_32F);
    const float alpha = 1, beta = 0;
    testing::internal::CaptureStderr();
    End end;
    end.status = cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, matrix, vx, &beta, vy,
                              CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
    end.error = cudaDeviceSynchronize();
    end.told = testing::internal::GetCapturedStderr();
    cudaDeviceReset();
    cudaGetLastError();
    cusparseDestroyDnVec(vx);
    cusparseDestroyDnVec(vy);
    return end;
}

TEST_F(Sparse, ErrorsAreReported) {
    const SparseMatrix<float, int> sparse(CUSPARSE_FORMAT_CSR, CUSPARSE_INDEX_BASE_ZERO);
    const Device<float> x{std::vector<float>(kColumns)}, y{std::vector<float>(kRows)};
    std::vector<float> host(kColumns);

    End end = product(nullptr, sparse.matrix, kColumns, x.data(), y.data());
    EXPECT_EQ(end.status, CUSPARSE_STATUS_NOT_INITIALIZED);
    EXPECT_NE(end.told.find("cusparseSpMV: the handle is null"), std::string::npos) << end.told;

    end = product(handle_, sparse.matrix, kRows, x.data(), y.data());
    EXPECT_EQ(end.status, CUSPARSE_STATUS_INVALID_VALUE);
    EXPECT_NE(end.told.find("the size of x is 7; expected 5"), std::string::npos) << end.told;

    end = product(handle_, sparse.matrix, kColumns, host.data(), y.data());
    EXPECT_EQ(end.error, cudaErrorIllegalAddress);
    EXPECT_NE(end.told.find("x"), std::string::npos) << end.told;

    // The error of a program that counts from 1 but declares a base of 0.
    const SparseMatrix<float, int> from_one(CUSPARSE_FORMAT_COO, CUSPARSE_INDEX_BASE_ONE);
    cusparseSpMatDescr_t wrong;
    cusparseCreateCoo(&wrong, kRows, kColumns, static_cast<int64_t>(from_one.arrays.values.size()),
                      from_one.outer.data(), from_one.inner.data(), from_one.values.data(),
                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
    end = product(handle_, wrong, kColumns, x.data(), y.data());
    EXPECT_EQ(end.status, CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(end.error, cudaErrorIllegalAddress);
    EXPECT_NE(end.told.find("of the column indices of the sparse matrix is 5; expected 0 to 4"),
              std::string::npos)
        << end.told;
    cusparseDestroySpMat(wrong);
}

TEST_F(Sparse, WorkGoesToTheStream) {
    cudaStream_t stream, back = nullptr;
    cudaStreamCreate(&stream);
    EXPECT_EQ(cusparseSetStream(handle_, stream), CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(cusparseGetStream(handle_, &back), CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(back, stream);
    // A captured product runs with the graph.
    const SparseMatrix<float, int> sparse(CUSPARSE_FORMAT_CSR, CUSPARSE_INDEX_BASE_ZERO);
    const Device<float> x(std::vector<float>(kColumns, 1)), y(std::vector<float>(kRows, -1));
    cusparseDnVecDescr_t vx, vy;
    cusparseCreateDnVec(&vx, kColumns, x.data(), CUDA_R_32F);
    cusparseCreateDnVec(&vy, kRows, y.data(), CUDA_R_32F);
    const float alpha = 0, beta = 0;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    EXPECT_EQ(cusparseSpMV(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, sparse.matrix, vx, &beta, vy,
                           CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr),
              CUSPARSE_STATUS_SUCCESS);
    cudaStreamEndCapture(stream, &graph);
    EXPECT_EQ(y.values(), std::vector<float>(kRows, -1));
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(y.values(), std::vector<float>(kRows, 0));
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cusparseDestroyDnVec(vx);
    cusparseDestroyDnVec(vy);
}

// ILU(0) by its definition: where A stores an element, L U has the same value.
template <class T, class Functions>
void expect_factors(int base, const Functions& functions) {
    constexpr int kN = 9;
    const auto stored = [](int row, int column) { return row == column || (row * 7 + column * 3) % 5 < 3; };
    std::vector<int> offsets{base}, columns;
    std::vector<T> values;
    for (int row = 0; row < kN; ++row) {
        for (int column = 0; column < kN; ++column) {
            if (!stored(row, column)) continue;
            columns.push_back(column + base);
            values.push_back(number<T>(row * kN + column) + (row == column ? T(4) : T(0)));
        }
        offsets.push_back(static_cast<int>(columns.size()) + base);
    }
    const int nnz = static_cast<int>(columns.size());
    const Device<int> device_offsets(offsets), device_columns(columns);
    const Device<T> device(values);
    cusparseHandle_t handle = nullptr;
    cusparseMatDescr_t descriptor = nullptr;
    csrilu02Info_t info = nullptr;
    ASSERT_EQ(cusparseCreate(&handle), CUSPARSE_STATUS_SUCCESS);
    ASSERT_EQ(cusparseCreateMatDescr(&descriptor), CUSPARSE_STATUS_SUCCESS);
    ASSERT_EQ(cusparseSetMatIndexBase(descriptor, static_cast<cusparseIndexBase_t>(base)),
              CUSPARSE_STATUS_SUCCESS);
    ASSERT_EQ(cusparseCreateCsrilu02Info(&info), CUSPARSE_STATUS_SUCCESS);
    functions(handle, nnz, kN, descriptor, device.data(), device_offsets.data(), device_columns.data(), info);
    int position = 0;
    EXPECT_EQ(cusparseXcsrilu02_zeroPivot(handle, info, &position), CUSPARSE_STATUS_SUCCESS);
    EXPECT_EQ(position, -1);

    const std::vector<T> factors = device.values();
    std::vector<std::complex<double>> lower(kN * kN), upper(kN * kN);
    for (int row = 0; row < kN; ++row) {
        lower[row * kN + row] = 1;
        for (int i = offsets[row] - base; i < offsets[row + 1] - base; ++i) {
            const int column = columns[i] - base;
            (column < row ? lower : upper)[row * kN + column] = std::complex<double>(factors[i]);
        }
    }
    for (int row = 0, i = 0; row < kN; ++row) {
        for (int column = 0; column < kN; ++column) {
            if (!stored(row, column)) continue;
            std::complex<double> sum = 0;
            for (int k = 0; k < kN; ++k)
                sum += lower[row * kN + k] * upper[k * kN + column];
            EXPECT_LE(std::abs(sum - std::complex<double>(values[i++])), 1e-5) << row << ", " << column;
        }
    }
    cusparseDestroyCsrilu02Info(info);
    cusparseDestroyMatDescr(descriptor);
    cusparseDestroy(handle);
}

#define EXPECT_FACTORS(letter, T, Number, base)                                                              \
    expect_factors<T>(base, [](auto handle, int nnz, int n, auto descriptor, T* values, const int* offsets,  \
                               const int* columns, auto info) {                                              \
        auto* const numbers = reinterpret_cast<Number*>(values);                                             \
        int bytes = 0;                                                                                       \
        ASSERT_EQ(cusparse##letter##csrilu02_bufferSize(handle, n, nnz, descriptor, numbers, offsets,        \
                                                        columns, info, &bytes),                              \
                  CUSPARSE_STATUS_SUCCESS);                                                                  \
        const Device<char> buffer(std::vector<char>(static_cast<std::size_t>(bytes)));                       \
        constexpr auto kPolicy = CUSPARSE_SOLVE_POLICY_NO_LEVEL;                                             \
        EXPECT_EQ(cusparse##letter##csrilu02(handle, n, nnz, descriptor, numbers, offsets, columns, info,    \
                                             kPolicy, buffer.data()),                                        \
                  CUSPARSE_STATUS_INVALID_VALUE); /* not analysed */                                         \
        ASSERT_EQ(cusparse##letter##csrilu02_analysis(handle, n, nnz, descriptor, numbers, offsets, columns, \
                                                      info, kPolicy, buffer.data()),                         \
                  CUSPARSE_STATUS_SUCCESS);                                                                  \
        ASSERT_EQ(cusparse##letter##csrilu02(handle, n, nnz, descriptor, numbers, offsets, columns, info,    \
                                             kPolicy, buffer.data()),                                        \
                  CUSPARSE_STATUS_SUCCESS);                                                                  \
    })

TEST(Cusparse, IncompleteLuKeepsWhatIsStored) {
    EXPECT_FACTORS(S, float, float, 0);
    EXPECT_FACTORS(D, double, double, 1);
    EXPECT_FACTORS(C, std::complex<float>, cuComplex, 1);
    EXPECT_FACTORS(Z, std::complex<double>, cuDoubleComplex, 0);
}

TEST(Cusparse, IncompleteLuTellsAPivotOfZeroAndCanBoostIt) {
    // 2 4 0
    // 1 2 1   its pivot becomes 2 - 4 / 2 = 0
    // 0 0 3
    const Device<int> offsets({1, 3, 6, 7}), columns({1, 2, 1, 2, 3, 3});
    const std::vector<double> values{2, 4, 1, 2, 1, 3};
    cusparseHandle_t handle = nullptr;
    cusparseMatDescr_t descriptor = nullptr;
    csrilu02Info_t info = nullptr;
    ASSERT_EQ(cusparseCreate(&handle), CUSPARSE_STATUS_SUCCESS);
    ASSERT_EQ(cusparseCreateMatDescr(&descriptor), CUSPARSE_STATUS_SUCCESS);
    cusparseSetMatIndexBase(descriptor, CUSPARSE_INDEX_BASE_ONE);
    ASSERT_EQ(cusparseCreateCsrilu02Info(&info), CUSPARSE_STATUS_SUCCESS);
    for (const bool boosts : {false, true}) {
        const Device<double> matrix(values);
        double tolerance = 1e-9, boost = 0.5;
        ASSERT_EQ(cusparseDcsrilu02_numericBoost(handle, info, boosts, &tolerance, &boost),
                  CUSPARSE_STATUS_SUCCESS);
        cusparseDcsrilu02_analysis(handle, 3, 6, descriptor, matrix.data(), offsets.data(), columns.data(),
                                   info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr);
        ASSERT_EQ(cusparseDcsrilu02(handle, 3, 6, descriptor, matrix.data(), offsets.data(), columns.data(),
                                    info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr),
                  CUSPARSE_STATUS_SUCCESS);
        int position = -2;
        EXPECT_EQ(cusparseXcsrilu02_zeroPivot(handle, info, &position),
                  boosts ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ZERO_PIVOT);
        EXPECT_EQ(position, boosts ? -1 : 2);  // in the index base of the matrix
        EXPECT_EQ(matrix.values()[3], boosts ? 0.5 : 0.0);
    }
    cusparseDestroyCsrilu02Info(info);
    cusparseDestroyMatDescr(descriptor);
    cusparseDestroy(handle);
}

}  // namespace
