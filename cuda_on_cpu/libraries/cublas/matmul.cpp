// cublasLtMatmul.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "cublasLt.h"
#include "level3.hpp"
#include "products.hpp"

struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cudaDataType scale;
    std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
    std::int32_t transa = CUBLAS_OP_N, transb = CUBLAS_OP_N;
    std::int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    // Read, or written by an epilogue that computes its gradient.
    void* bias = nullptr;
    std::int64_t bias_stride = 0;
    std::int32_t bias_type = -1;
    void* auxiliary = nullptr;
    std::int64_t auxiliary_leading = 0, auxiliary_stride = 0;
    std::int32_t auxiliary_type = -1;
    // Kept, to be given back.
    std::int32_t sm_count = 0;
    std::int8_t fast_accumulation = 0;
    const void *a_scale = nullptr, *b_scale = nullptr, *c_scale = nullptr, *d_scale = nullptr;
};

struct cublasLtMatrixLayoutOpaque_t {
    cudaDataType type;
    std::uint64_t rows, columns;
    std::int64_t leading;
    std::int32_t order = CUBLASLT_ORDER_COL;
    std::int32_t batch = 1;
    std::int64_t stride = 0;
};

// Kept, to be given back: there is one algorithm.
struct cublasLtMatmulPreferenceOpaque_t {
    std::map<int, std::vector<char>> attributes;
};

namespace cuda_on_cpu::blas {
namespace {

using Description = cublasLtMatmulDescOpaque_t;
using Layout = cublasLtMatrixLayoutOpaque_t;

cublasStatus_t refuse(cublasStatus_t status, const char* function, const char* sentence) {
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function, sentence, cublasGetStatusName(status));
    return status;
}

template <class T>
cublasStatus_t assign(const char* function, T& field, const void* value, std::size_t bytes) {
    if (value == nullptr || bytes != sizeof field)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, function,
                      "the value is null, or has not the attribute's size");
    std::memcpy(&field, value, sizeof field);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t give(const char* function, const T& field, void* value, std::size_t bytes,
                    std::size_t* written) {
    if (written != nullptr) *written = sizeof field;
    if (bytes == 0 && written != nullptr) return CUBLAS_STATUS_SUCCESS;
    if (value == nullptr || bytes < sizeof field)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, function,
                      "the value is null, or smaller than the attribute");
    std::memcpy(value, &field, sizeof field);
    return CUBLAS_STATUS_SUCCESS;
}

// Calls `use` with the field of an attribute.
template <class Use>
cublasStatus_t with_field(const char* function, cublasLtMatmulDescOpaque_t* description,
                          cublasLtMatmulDescAttributes_t attribute, Use set) {
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
            return set(description->compute);
        case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
            return set(description->scale);
        case CUBLASLT_MATMUL_DESC_POINTER_MODE:
            return set(description->pointer_mode);
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return set(description->transa);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return set(description->transb);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return set(description->epilogue);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
            return set(description->bias);
        case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
            return set(description->bias_stride);
        case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
            return set(description->bias_type);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
            return set(description->auxiliary);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
            return set(description->auxiliary_leading);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
            return set(description->auxiliary_stride);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
            return set(description->auxiliary_type);
        case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
            return set(description->a_scale);
        case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
            return set(description->b_scale);
        case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
            return set(description->c_scale);
        case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
            return set(description->d_scale);
        case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
            return set(description->sm_count);
        case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
            return set(description->fast_accumulation);
        default:
            return refuse(CUBLAS_STATUS_NOT_SUPPORTED, function, "this attribute does not exist here");
    }
}

template <class Use>
cublasStatus_t with_field(const char* function, cublasLtMatrixLayoutOpaque_t* layout,
                          cublasLtMatrixLayoutAttribute_t attribute, Use set) {
    switch (attribute) {
        case CUBLASLT_MATRIX_LAYOUT_TYPE:
            return set(layout->type);
        case CUBLASLT_MATRIX_LAYOUT_ORDER:
            return set(layout->order);
        case CUBLASLT_MATRIX_LAYOUT_ROWS:
            return set(layout->rows);
        case CUBLASLT_MATRIX_LAYOUT_COLS:
            return set(layout->columns);
        case CUBLASLT_MATRIX_LAYOUT_LD:
            return set(layout->leading);
        case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
            return set(layout->batch);
        case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
            return set(layout->stride);
        default:
            return refuse(CUBLAS_STATUS_NOT_SUPPORTED, function, "this attribute does not exist here");
    }
}

// The matrices of one call and the operations on them. A copy, because the descriptors may be
// destroyed before the work runs.
struct MatmulTask {
    Description description;
    const void *A, *B, *C;
    void* D;
    Layout a, b, c, d;
    int m, n, k;
    int batch;
};

Shape stored_shape(const Layout& layout) {
    const Shape shape{static_cast<int>(layout.rows), static_cast<int>(layout.columns)};
    return layout.order == CUBLASLT_ORDER_ROW ? Shape{shape.columns, shape.rows} : shape;
}

std::size_t position(const Layout& layout, std::size_t row, std::size_t column) {
    return layout.order == CUBLASLT_ORDER_ROW ? column + row * layout.leading : row + column * layout.leading;
}

Region region(const char* name, const Layout& layout, const void* pointer) {
    const Shape shape = stored_shape(layout);
    const std::size_t size = size_of(layout.type);
    if (shape.rows <= 0 || shape.columns <= 0) return {name, pointer, 0};
    return {name, pointer, size * shape.rows, static_cast<std::size_t>(shape.columns), size * layout.leading};
}

const void* moved(const void* pointer, const Layout& layout, int batch) {
    return static_cast<const char*>(pointer) +
           batch * layout.stride * static_cast<std::int64_t>(size_of(layout.type));
}

// Returns op(matrix), rows x columns, densely packed by columns.
template <class T>
std::vector<T> dense(const Layout& layout, const void* pointer, std::int32_t operation, int rows,
                     int columns) {
    std::vector<T> all(static_cast<std::size_t>(rows) * columns);
    for (int column = 0; column < columns; ++column) {
        for (int row = 0; row < rows; ++row) {
            const bool plain = operation == CUBLAS_OP_N;
            all[row + static_cast<std::size_t>(column) * rows] =
                load<T>(layout.type, pointer, position(layout, plain ? row : column, plain ? column : row));
        }
    }
    return all;
}

template <class T>
T gelu(T x) {
    return T(0.5) * x * (1 + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
}
template <class T>
T gelu_derivative(T x) {
    const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x), t = std::tanh(inner);
    return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * T(0.7978845608028654) * (1 + T(0.134145) * x * x);
}

// A vector besides the matrices: the bias or its gradient.
struct Side {
    cudaDataType type;
    char* pointer;
    Region region(const char* name, std::size_t count) const {
        return {name, pointer, size_of(type) * count};
    }
};

template <class T>
bool multiply_one(const char* function, const MatmulTask& task, int batch, T alpha, T beta) {
    const Description& p = task.description;
    const auto scale = [](const void* pointer) {
        return pointer == nullptr ? T(1) : T(*static_cast<const float*>(pointer));
    };
    const void *A = moved(task.A, task.a, batch), *B = moved(task.B, task.b, batch),
               *C = moved(task.C, task.c, batch);
    void* D = const_cast<void*>(moved(task.D, task.d, batch));
    const int m = task.m, n = task.n, k = task.k;
    const int epilogue = p.epilogue;
    const cudaDataType output = task.d.type;
    const Side bias{p.bias_type < 0 ? output : static_cast<cudaDataType>(p.bias_type), nullptr};
    char* bias_pointer =
        static_cast<char*>(p.bias) + batch * p.bias_stride * static_cast<std::int64_t>(size_of(bias.type));
    Layout aux_layout{p.auxiliary_type < 0 ? output : static_cast<cudaDataType>(p.auxiliary_type),
                      static_cast<std::uint64_t>(m), static_cast<std::uint64_t>(n), p.auxiliary_leading};
    aux_layout.stride = p.auxiliary_stride;
    void* aux = const_cast<void*>(moved(p.auxiliary, aux_layout, batch));
    const bool adds_bias = (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0, uses_aux = (epilogue & 128) != 0;
    const bool bias_of_columns = epilogue == CUBLASLT_EPILOGUE_BGRADB;
    const bool writes_bias = (epilogue & (16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB)) != 0;
    const Region bias_region{"the bias", bias_pointer,
                             size_of(bias.type) * static_cast<std::size_t>(bias_of_columns ? n : m)};

    if (!reachable(function, region("A", task.a, A)) || !reachable(function, region("B", task.b, B)) ||
        !reachable(function, region("D", task.d, D)) ||
        (beta != T{} && !reachable(function, region("C", task.c, C))) ||
        ((adds_bias || writes_bias) && !reachable(function, bias_region)) ||
        (uses_aux && !reachable(function, region("the auxiliary matrix", aux_layout, aux))))
        return false;

    const std::vector<T> left = dense<T>(task.a, A, p.transa, m, k),
                         right = dense<T>(task.b, B, p.transb, k, n);
    std::vector<T> sums(static_cast<std::size_t>(m) * n);
    multiply(CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, T{1}, left.data(), std::max(m, 1), right.data(),
             std::max(k, 1), T{}, sums.data(), std::max(m, 1));
    alpha *= scale(p.a_scale) * scale(p.b_scale);
    std::vector<T> gradients(static_cast<std::size_t>(bias_of_columns ? n : m));
    for (int column = 0; column < n; ++column) {
        for (int row = 0; row < m; ++row) {
            T value = alpha * sums[row + static_cast<std::size_t>(column) * m];
            if (beta != T{})
                value += beta * scale(p.c_scale) * load<T>(task.c.type, C, position(task.c, row, column));
            if (adds_bias) value += load<T>(bias.type, bias_pointer, row);
            const std::size_t at = position(aux_layout, row, column);
            if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) {
                if (uses_aux) store(aux_layout.type, aux, at, value);
                value = gelu(value);
            }
            if ((epilogue & 64) != 0) value *= gelu_derivative(load<T>(aux_layout.type, aux, at));
            if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) value = value > 0 ? value : T{};
            if ((epilogue & 16) != 0) gradients[row] += value;
            store(output, D, position(task.d, row, column), value * scale(p.d_scale));
        }
    }
    for (int l = 0; l < k; ++l) {
        for (int row = 0; epilogue == CUBLASLT_EPILOGUE_BGRADA && row < m; ++row)
            gradients[row] += left[row + static_cast<std::size_t>(l) * m];
        for (int column = 0; epilogue == CUBLASLT_EPILOGUE_BGRADB && column < n; ++column)
            gradients[column] += right[l + static_cast<std::size_t>(column) * k];
    }
    for (std::size_t i = 0; writes_bias && i < gradients.size(); ++i)
        store(bias.type, bias_pointer, i, gradients[i]);
    note_written(region("D", task.d, D));
    if (writes_bias) note_written(bias_region);
    if (uses_aux && (epilogue & 64) == 0) note_written(region("", aux_layout, aux));
    return true;
}

bool epilogue_exists(std::int32_t epilogue) {
    switch (epilogue) {
        case CUBLASLT_EPILOGUE_DEFAULT:
        case CUBLASLT_EPILOGUE_RELU:
        case CUBLASLT_EPILOGUE_BIAS:
        case CUBLASLT_EPILOGUE_RELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU:
        case CUBLASLT_EPILOGUE_GELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU_AUX:
        case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
        case CUBLASLT_EPILOGUE_DGELU:
        case CUBLASLT_EPILOGUE_DGELU_BGRAD:
        case CUBLASLT_EPILOGUE_BGRADA:
        case CUBLASLT_EPILOGUE_BGRADB:
            return true;
        default:
            return false;
    }
}

cublasStatus_t check(const char* function, const Description& p, const Layout& a, const Layout& b,
                     const Layout& c, const Layout& d) {
    const auto rows = [](const Layout& layout, std::int32_t op) {
        return op == CUBLAS_OP_N ? layout.rows : layout.columns;
    };
    const auto columns = [](const Layout& layout, std::int32_t op) {
        return op == CUBLAS_OP_N ? layout.columns : layout.rows;
    };
    if (rows(a, p.transa) != d.rows || columns(b, p.transb) != d.columns ||
        columns(a, p.transa) != rows(b, p.transb) || c.rows != d.rows || c.columns != d.columns)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, function,
                      "the shapes of A, B, C and D do not go together");
    for (const Layout* layout : {&a, &b, &c, &d}) {
        if (layout->order != CUBLASLT_ORDER_COL && layout->order != CUBLASLT_ORDER_ROW)
            return refuse(CUBLAS_STATUS_NOT_SUPPORTED, function,
                          "a matrix is neither in column nor in row order");
        if (layout->leading < std::max(1, stored_shape(*layout).rows))
            return refuse(CUBLAS_STATUS_INVALID_VALUE, function,
                          "a leading dimension is smaller than its matrix");
        if (is_complex(layout->type))
            return refuse(CUBLAS_STATUS_NOT_SUPPORTED, function, "a matrix is complex; expected real types");
    }
    Product product{};
    product.a.type = a.type;
    product.b.type = b.type;
    product.c.type = d.type;
    product.compute = p.compute;
    product.scale = p.scale;
    if (!is_supported(product))
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, function,
                      "the types of A, B and D do not go together with this compute type");
    if (!epilogue_exists(p.epilogue))
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, function, "this epilogue does not exist here");
    if (p.pointer_mode > CUBLASLT_POINTER_MODE_DEVICE)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, function, "alpha is a vector; expected one number");
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cuda_on_cpu::blas

using namespace cuda_on_cpu;
using namespace cuda_on_cpu::blas;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    return cublasCreate(handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return cublasDestroy(handle);
}
size_t cublasLtGetVersion(void) {
    return CUBLAS_VERSION;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType scale) {
    if (description == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *description = new cublasLtMatmulDescOpaque_t{.compute = compute, .scale = scale};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
    delete description;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
    if (description == nullptr)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, __func__, "the description is null");
    return with_field(__func__, description, attribute, [&, function = __func__](auto& field) {
        return assign(function, field, value, bytes);
    });
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, void* value,
                                              size_t bytes, size_t* written) {
    if (description == nullptr)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, __func__, "the description is null");
    return with_field(__func__, description, attribute, [&, function = __func__](auto& field) {
        return give(function, field, value, bytes, written);
    });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (size_of(type) == 0)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, __func__, "this type of elements does not exist here");
    if (rows > INT32_MAX || columns > INT32_MAX || leading > INT32_MAX)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, __func__, "an extent is 2^31 or more");
    *layout =
        new cublasLtMatrixLayoutOpaque_t{.type = type, .rows = rows, .columns = columns, .leading = leading};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
    if (layout == nullptr) return refuse(CUBLAS_STATUS_INVALID_VALUE, __func__, "the layout is null");
    return with_field(__func__, layout, attribute, [&, function = __func__](auto& field) {
        return assign(function, field, value, bytes);
    });
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, void* value,
                                                size_t bytes, size_t* written) {
    if (layout == nullptr) return refuse(CUBLAS_STATUS_INVALID_VALUE, __func__, "the layout is null");
    return with_field(__func__, layout, attribute, [&, function = __func__](auto& field) {
        return give(function, field, value, bytes, written);
    });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    if (preference == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *preference = new cublasLtMatmulPreferenceOpaque_t;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}
// There is one algorithm, and it needs no workspace, so every preference is satisfied.
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
    if (preference == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    const char* const first = static_cast<const char*>(value);
    preference->attributes[attribute].assign(first, first + bytes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void* value, size_t bytes, size_t* written) {
    if (preference == nullptr) return refuse(CUBLAS_STATUS_INVALID_VALUE, __func__, "the preference is null");
    const auto found = preference->attributes.find(attribute);
    if (found == preference->attributes.end())
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, __func__,
                      "this attribute has not been set, and has no value here");
    if (written != nullptr) *written = found->second.size();
    if (bytes == 0 && written != nullptr) return CUBLAS_STATUS_SUCCESS;
    if (value == nullptr || bytes < found->second.size())
        return refuse(CUBLAS_STATUS_INVALID_VALUE, __func__,
                      "the value is null, or smaller than the attribute");
    std::copy(found->second.begin(), found->second.end(), static_cast<char*>(value));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
    Call call(handle, __func__);
    call.given("the description", description).given("the layout of A", a).given("the layout of B", b);
    call.given("the layout of C", c)
        .given("the layout of D", d)
        .at_least("the number of algorithms", requested, 1);
    call.given("the results", results).given("the number of results", returned);
    if (!call.ok()) return call.status();
    *returned = 0;
    const cublasStatus_t status = check(__func__, *description, *a, *b, *c, *d);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    *returned = 1;
    results[0] = {};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t a, const void* B,
                              cublasLtMatrixLayout_t b, const void* beta, const void* C,
                              cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
    Call call(handle, __func__);
    call.given("the description", description).given("the layout of A", a).given("the layout of B", b);
    call.given("the layout of C", c).given("the layout of D", d).given("alpha", alpha).given("beta", beta);
    if (!call.ok()) return call.status();
    const char* function = __func__;
    if (const cublasStatus_t status = check(function, *description, *a, *b, *c, *d);
        status != CUBLAS_STATUS_SUCCESS)
        return status;
    const MatmulTask task{*description,
                          A,
                          B,
                          C,
                          D,
                          *a,
                          *b,
                          *c,
                          *d,
                          static_cast<int>(d->rows),
                          static_cast<int>(d->columns),
                          static_cast<int>(description->transa == CUBLAS_OP_N ? a->columns : a->rows),
                          d->batch};
    const cudaDataType scale = description->scale;
    const bool on_device = description->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
    if (!on_device) {
        call.expect_host("alpha", alpha).expect_host("beta", beta);
        if (!call.ok()) return call.status();
    }
    const double host_alpha = on_device ? 0 : load<double>(scale, alpha, 0);
    const double host_beta = on_device ? 0 : load<double>(scale, beta, 0);
    const bool in_double = scale == CUDA_R_64F || a->type == CUDA_R_8I;
    const auto work = [=] {
        double factor = host_alpha, keep = host_beta;
        if (on_device) {
            if (!reachable(function, {"alpha", alpha, size_of(scale)}) ||
                !reachable(function, {"beta", beta, size_of(scale)}))
                return cudaSuccess;
            factor = load<double>(scale, alpha, 0);
            keep = load<double>(scale, beta, 0);
        }
        if (task.m == 0 || task.n == 0) return cudaSuccess;
        for (int i = 0; i < task.batch; ++i) {
            const bool done = in_double ? multiply_one<double>(function, task, i, factor, keep)
                                        : multiply_one<float>(function, task, i, static_cast<float>(factor),
                                                              static_cast<float>(keep));
            // Reported at the next synchronisation.
            if (!done) break;
        }
        return cudaSuccess;
    };
    return submit(stream, function, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                         : CUBLAS_STATUS_EXECUTION_FAILED;
}
