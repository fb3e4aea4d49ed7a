// Handles, and descriptors of matrices and vectors.
#include "sparse.hpp"

namespace cuda_on_cpu::sparse {
namespace {

cusparseStatus_t create(const char* function, cusparseSpMatDescr_t* made, const Matrix& matrix) {
    CUSPARSE_TRY(check_given(function, made));
    CUSPARSE_TRY(check_type(function, "the values", matrix.type));
    if (matrix.rows < 0 || matrix.columns < 0 || matrix.nnz < 0)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function,
                      "%lld x %lld elements, of which %lld are stored; expected at least 0",
                      static_cast<long long>(matrix.rows), static_cast<long long>(matrix.columns),
                      static_cast<long long>(matrix.nnz));
    if (index_size(matrix.outer_type) == 0 || index_size(matrix.inner_type) == 0)
        return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function,
                      "the types of the indices are %d and %d; expected CUSPARSE_INDEX_32I or 64I",
                      matrix.outer_type, matrix.inner_type);
    *made = new Matrix(matrix);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t set_pointers(const char* function, cusparseFormat_t format, cusparseSpMatDescr_t matrix,
                              void* outer, void* inner, void* values) {
    CUSPARSE_TRY(check_given(function, matrix));
    if (matrix->format != format)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "the format of the matrix is %d; expected %d",
                      matrix->format, format);
    matrix->outer = outer;
    matrix->inner = inner;
    matrix->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cuda_on_cpu::sparse

using namespace cuda_on_cpu::sparse;
using cuda_on_cpu::Region;

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
    if (handle == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
    *handle = new cusparseContext;
    const std::scoped_lock lock(mutex);
    handles().insert(*handle);
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    const std::scoped_lock lock(mutex);
    handles().erase(handle);
    delete handle;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseGetVersion(cusparseHandle_t, int* version) {
    if (version == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
    *version = CUSPARSE_VERSION;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr || type > PATCH_LEVEL) return CUSPARSE_STATUS_INVALID_VALUE;
    constexpr int kVersion[] = {CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH};
    *value = kVersion[type];
    return CUSPARSE_STATUS_SUCCESS;
}
const char* cusparseGetErrorName(cusparseStatus_t status) {
    return text_of(status).name;
}
const char* cusparseGetErrorString(cusparseStatus_t status) {
    return text_of(status).text;
}

// A setting of a handle, which is stored and can be read back.
#define CUSPARSE_SETTING(Name, Type, field)                                    \
    cusparseStatus_t cusparseSet##Name(cusparseHandle_t handle, Type value) {  \
        CUSPARSE_TRY(check_handle(__func__, handle));                          \
        handle->field = value;                                                 \
        return CUSPARSE_STATUS_SUCCESS;                                        \
    }                                                                          \
    cusparseStatus_t cusparseGet##Name(cusparseHandle_t handle, Type* value) { \
        CUSPARSE_TRY(check_handle(__func__, handle));                          \
        CUSPARSE_TRY(check_given(__func__, value));                            \
        *value = handle->field;                                                \
        return CUSPARSE_STATUS_SUCCESS;                                        \
    }
CUSPARSE_SETTING(Stream, cudaStream_t, stream)
CUSPARSE_SETTING(PointerMode, cusparsePointerMode_t, pointer_mode)
#undef CUSPARSE_SETTING

cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t* descriptor) {
    CUSPARSE_TRY(check_given(__func__, descriptor));
    *descriptor = new cusparseMatDescr;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t descriptor) {
    delete descriptor;
    return CUSPARSE_STATUS_SUCCESS;
}
#define CUSPARSE_SETTING(Name, Type, field)                                            \
    cusparseStatus_t cusparseSetMat##Name(cusparseMatDescr_t descriptor, Type value) { \
        CUSPARSE_TRY(check_given(__func__, descriptor));                               \
        descriptor->field = value;                                                     \
        return CUSPARSE_STATUS_SUCCESS;                                                \
    }                                                                                  \
    Type cusparseGetMat##Name(cusparseMatDescr_t descriptor) {                         \
        return descriptor->field;                                                      \
    }
CUSPARSE_SETTING(Type, cusparseMatrixType_t, type)
CUSPARSE_SETTING(FillMode, cusparseFillMode_t, fill)
CUSPARSE_SETTING(DiagType, cusparseDiagType_t, diagonal)
CUSPARSE_SETTING(IndexBase, cusparseIndexBase_t, base)
#undef CUSPARSE_SETTING

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nnz,
                                   void* row_offsets, void* column_indices, void* values,
                                   cusparseIndexType_t offsets_type, cusparseIndexType_t indices_type,
                                   cusparseIndexBase_t base, cudaDataType type) {
    return create(__func__, matrix,
                  {CUSPARSE_FORMAT_CSR, rows, columns, nnz, row_offsets, column_indices, values, offsets_type,
                   indices_type, base, type});
}
cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                        int64_t nnz, const void* row_offsets, const void* column_indices,
                                        const void* values, cusparseIndexType_t offsets_type,
                                        cusparseIndexType_t indices_type, cusparseIndexBase_t base,
                                        cudaDataType type) {
    return create(__func__, const_cast<cusparseSpMatDescr_t*>(matrix),
                  {CUSPARSE_FORMAT_CSR, rows, columns, nnz, const_cast<void*>(row_offsets),
                   const_cast<void*>(column_indices), const_cast<void*>(values), offsets_type, indices_type,
                   base, type});
}
cusparseStatus_t cusparseCreateCsc(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nnz,
                                   void* column_offsets, void* row_indices, void* values,
                                   cusparseIndexType_t offsets_type, cusparseIndexType_t indices_type,
                                   cusparseIndexBase_t base, cudaDataType type) {
    return create(__func__, matrix,
                  {CUSPARSE_FORMAT_CSC, rows, columns, nnz, column_offsets, row_indices, values, offsets_type,
                   indices_type, base, type});
}
cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nnz,
                                   void* row_indices, void* column_indices, void* values,
                                   cusparseIndexType_t indices_type, cusparseIndexBase_t base,
                                   cudaDataType type) {
    return create(__func__, matrix,
                  {CUSPARSE_FORMAT_COO, rows, columns, nnz, row_indices, column_indices, values, indices_type,
                   indices_type, base, type});
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
    delete matrix;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void* row_offsets, void* column_indices,
                                        void* values) {
    return set_pointers(__func__, CUSPARSE_FORMAT_CSR, matrix, row_offsets, column_indices, values);
}
cusparseStatus_t cusparseCscSetPointers(cusparseSpMatDescr_t matrix, void* column_offsets, void* row_indices,
                                        void* values) {
    return set_pointers(__func__, CUSPARSE_FORMAT_CSC, matrix, column_offsets, row_indices, values);
}
cusparseStatus_t cusparseCooSetPointers(cusparseSpMatDescr_t matrix, void* row_indices, void* column_indices,
                                        void* values) {
    return set_pointers(__func__, CUSPARSE_FORMAT_COO, matrix, row_indices, column_indices, values);
}
cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                      int64_t* nnz) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz));
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetFormat(cusparseConstSpMatDescr_t matrix, cusparseFormat_t* format) {
    CUSPARSE_TRY(check_given(__func__, matrix, format));
    *format = matrix->format;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t matrix, cusparseIndexBase_t* base) {
    CUSPARSE_TRY(check_given(__func__, matrix, base));
    *base = matrix->base;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetValues(cusparseSpMatDescr_t matrix, void** values) {
    CUSPARSE_TRY(check_given(__func__, matrix, values));
    *values = matrix->values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void* values) {
    CUSPARSE_TRY(check_given(__func__, matrix));
    matrix->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute,
                                           void* value, size_t size) {
    CUSPARSE_TRY(check_given(__func__, matrix, value));
    CUSPARSE_TRY(check_size(__func__, "the size of the value", static_cast<int64_t>(size), sizeof(int)));
    if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
        std::memcpy(&matrix->fill, value, size);
    } else {
        std::memcpy(&matrix->diagonal, value, size);
    }
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t matrix,
                                           cusparseSpMatAttribute_t attribute, void* value, size_t size) {
    CUSPARSE_TRY(check_given(__func__, matrix, value));
    CUSPARSE_TRY(check_size(__func__, "the size of the value", static_cast<int64_t>(size), sizeof(int)));
    if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
        std::memcpy(value, &matrix->fill, size);
    } else {
        std::memcpy(value, &matrix->diagonal, size);
    }
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* vector, int64_t size, void* values,
                                     cudaDataType type) {
    CUSPARSE_TRY(check_given(__func__, vector));
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    if (size < 0)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the size is %lld; expected at least 0",
                      static_cast<long long>(size));
    *vector = new Vector{size, values, type};
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstDnVec(cusparseConstDnVecDescr_t* vector, int64_t size, const void* values,
                                          cudaDataType type) {
    return cusparseCreateDnVec(const_cast<cusparseDnVecDescr_t*>(vector), size, const_cast<void*>(values),
                               type);
}
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) {
    delete vector;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnVecGet(cusparseDnVecDescr_t vector, int64_t* size, void** values,
                                  cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, vector, size, values, type));
    *size = vector->size;
    *values = vector->values;
    *type = vector->type;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnVecGetValues(cusparseDnVecDescr_t vector, void** values) {
    CUSPARSE_TRY(check_given(__func__, vector, values));
    *values = vector->values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vector, void* values) {
    CUSPARSE_TRY(check_given(__func__, vector));
    vector->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns,
                                     int64_t leading, void* values, cudaDataType type,
                                     cusparseOrder_t order) {
    CUSPARSE_TRY(check_given(__func__, matrix));
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    const int64_t least = order == CUSPARSE_ORDER_ROW ? columns : rows;
    if (rows < 0 || columns < 0 || leading < least)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__,
                      "%lld x %lld elements, and the leading dimension is %lld; expected at least %lld",
                      static_cast<long long>(rows), static_cast<long long>(columns),
                      static_cast<long long>(leading), static_cast<long long>(least));
    *matrix = new Dense{rows, columns, leading, values, type, order};
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* matrix, int64_t rows, int64_t columns,
                                          int64_t leading, const void* values, cudaDataType type,
                                          cusparseOrder_t order) {
    return cusparseCreateDnMat(const_cast<cusparseDnMatDescr_t*>(matrix), rows, columns, leading,
                               const_cast<void*>(values), type, order);
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
    delete matrix;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnMatGetValues(cusparseDnMatDescr_t matrix, void** values) {
    CUSPARSE_TRY(check_given(__func__, matrix, values));
    *values = matrix->values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t matrix, void* values) {
    CUSPARSE_TRY(check_given(__func__, matrix));
    matrix->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}
