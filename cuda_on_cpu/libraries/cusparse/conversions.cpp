// Conversions from one format to another.
#include "sparse.hpp"

namespace cuda_on_cpu::sparse {
namespace {

// Sorted by row, or by column.
struct Place {
    int64_t outer, inner, from;
};

void store_offsets(const std::vector<Place>& places, int64_t extent, cusparseIndexType_t type,
                   cusparseIndexBase_t base, void* offsets) {
    std::vector<int64_t> counts(extent + 1);
    for (const Place& place : places)
        ++counts[place.outer + 1];
    for (int64_t i = 0; i < extent; ++i)
        counts[i + 1] += counts[i];
    for (int64_t i = 0; i <= extent; ++i)
        store_index(type, offsets, i, counts[i] + base);
}

// The positions of the non-zero elements of A, in the order of B's format.
template <class T>
std::vector<Place> places_in(const Dense& A, const Matrix& B) {
    std::vector<Place> places;
    for (int64_t outer = 0; outer < outer_extent(B); ++outer) {
        for (int64_t inner = 0; inner < inner_extent(B); ++inner) {
            const bool by_columns = B.format == CUSPARSE_FORMAT_CSC;
            const std::size_t i = by_columns ? element(A, inner, outer) : element(A, outer, inner);
            if (static_cast<const T*>(A.values)[i] != T{})
                places.push_back({outer, inner, static_cast<int64_t>(i)});
        }
    }
    return places;
}

cusparseStatus_t check_conversion(const char* function, cusparseHandle_t handle, const Matrix* sparse,
                                  const Dense* dense) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, sparse, dense));
    CUSPARSE_TRY(check_same_type(function, "the dense matrix", dense->type, sparse->type));
    CUSPARSE_TRY(check_size(function, "the number of the dense matrix' rows", dense->rows, sparse->rows));
    return check_size(function, "the number of the dense matrix' columns", dense->columns, sparse->columns);
}

}  // namespace
}  // namespace cuda_on_cpu::sparse

using namespace cuda_on_cpu::sparse;
using cuda_on_cpu::Region;

cusparseStatus_t cusparseSparseToDense_bufferSize(cusparseHandle_t handle, cusparseConstSpMatDescr_t A,
                                                  cusparseDnMatDescr_t B, cusparseSparseToDenseAlg_t,
                                                  size_t* size) {
    CUSPARSE_TRY(check_conversion(__func__, handle, A, B));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSparseToDense(cusparseHandle_t handle, cusparseConstSpMatDescr_t A,
                                       cusparseDnMatDescr_t B, cusparseSparseToDenseAlg_t, void*) {
    CUSPARSE_TRY(check_conversion(__func__, handle, A, B));
    std::vector<Region> regions = regions_of(*A);
    regions.push_back(region_of("the dense matrix", *B, true));
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, __func__, std::move(regions), [=, function = __func__, A = *A, B = *B] {
            T* to = static_cast<T*>(B.values);
            for (int64_t i = 0; i < B.rows * B.columns; ++i)
                to[element(B, i / B.columns, i % B.columns)] = T{};
            return entries<T>(function, A, [&](int64_t row, int64_t column, T value) {
                to[element(B, row, column)] = value;
            });
        });
    });
}
cusparseStatus_t cusparseDenseToSparse_bufferSize(cusparseHandle_t handle, cusparseConstDnMatDescr_t A,
                                                  cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t,
                                                  size_t* size) {
    CUSPARSE_TRY(check_conversion(__func__, handle, B, A));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseDenseToSparse_analysis(cusparseHandle_t handle, cusparseConstDnMatDescr_t A,
                                                cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t, void*) {
    CUSPARSE_TRY(check_conversion(__func__, handle, B, A));
    std::vector<Region> regions = {region_of("the dense matrix", *A)};
    const bool has_offsets = B->format != CUSPARSE_FORMAT_COO;
    if (has_offsets)
        regions.push_back(
            region_of(outer_name(*B), B->outer, index_size(B->outer_type) * outer_count(*B), true));
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        const auto work = [=, A = *A] {
            const std::vector<Place> places = places_in<T>(A, *B);
            if (has_offsets) store_offsets(places, outer_extent(*B), B->outer_type, B->base, B->outer);
            B->nnz = static_cast<int64_t>(places.size());
            return true;
        };
        return run(handle, __func__, std::move(regions), work, true);
    });
}
cusparseStatus_t cusparseDenseToSparse_convert(cusparseHandle_t handle, cusparseConstDnMatDescr_t A,
                                               cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t, void*) {
    CUSPARSE_TRY(check_conversion(__func__, handle, B, A));
    std::vector<Region> regions = regions_of(*B);
    for (Region& region : regions)
        region.written = true;
    regions.push_back(region_of("the dense matrix", *A));
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, __func__, std::move(regions), [=, function = __func__, A = *A, B = *B] {
            const std::vector<Place> places = places_in<T>(A, B);
            if (static_cast<int64_t>(places.size()) != B.nnz) {
                fail_in_stream(
                    function,
                    "the dense matrix has %zu values that are not zero, and the sparse one %lld; expected "
                    "cusparseDenseToSparse_analysis before",
                    places.size(), static_cast<long long>(B.nnz));
                return false;
            }
            for (std::size_t i = 0; i < places.size(); ++i) {
                store_index(B.inner_type, B.inner, i, places[i].inner + B.base);
                if (B.format == CUSPARSE_FORMAT_COO)
                    store_index(B.outer_type, B.outer, i, places[i].outer + B.base);
                static_cast<T*>(B.values)[i] = static_cast<const T*>(A.values)[places[i].from];
            }
            if (B.format != CUSPARSE_FORMAT_COO)
                store_offsets(places, outer_extent(B), B.outer_type, B.base, B.outer);
            return true;
        });
    });
}

cusparseStatus_t cusparseCsr2cscEx2_bufferSize(cusparseHandle_t handle, int, int, int, const void*,
                                               const int*, const int*, void*, int*, int*, cudaDataType type,
                                               cusparseAction_t, cusparseIndexBase_t, cusparseCsr2CscAlg_t,
                                               size_t* size) {
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseCsr2cscEx2(cusparseHandle_t handle, int rows, int columns, int nnz,
                                    const void* csr_values, const int* csr_offsets, const int* csr_indices,
                                    void* csc_values, int* csc_offsets, int* csc_indices, cudaDataType type,
                                    cusparseAction_t action, cusparseIndexBase_t base, cusparseCsr2CscAlg_t,
                                    void*) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    const bool numeric = action == CUSPARSE_ACTION_NUMERIC;
    const Matrix from{CUSPARSE_FORMAT_CSR,
                      rows,
                      columns,
                      nnz,
                      const_cast<int*>(csr_offsets),
                      const_cast<int*>(csr_indices),
                      const_cast<void*>(csr_values),
                      CUSPARSE_INDEX_32I,
                      CUSPARSE_INDEX_32I,
                      base,
                      type};
    std::vector<Region> regions = regions_of(from);
    if (!numeric) regions.pop_back();
    regions.push_back(
        region_of("the column offsets", csc_offsets, sizeof(int) * (columns + std::size_t{1}), true));
    regions.push_back(region_of("the row indices", csc_indices, sizeof(int) * nnz, true));
    if (numeric)
        regions.push_back(region_of("the values of the result", csc_values, size_of(type) * nnz, true));
    return with_type(type, [&](auto value) {
        using T = decltype(value);
        return run(handle, __func__, std::move(regions), [=, function = __func__] {
            std::vector<Place> places;
            int64_t i = 0;
            Matrix pattern = from;
            std::vector<T> none(numeric ? 0 : nnz);
            if (!numeric) pattern.values = none.data();
            if (!entries<T>(function, pattern, [&](int64_t row, int64_t column, T) {
                    places.push_back({column, row, i++});
                }))
                return false;
            std::stable_sort(places.begin(), places.end(),
                             [](const Place& a, const Place& b) { return a.outer < b.outer; });
            const int64_t first = load_index(CUSPARSE_INDEX_32I, csr_offsets, 0) - base;
            for (std::size_t to = 0; to < places.size(); ++to) {
                csc_indices[to] = static_cast<int>(places[to].inner) + base;
                if (numeric)
                    static_cast<T*>(csc_values)[to] =
                        static_cast<const T*>(csr_values)[first + places[to].from];
            }
            store_offsets(places, columns, CUSPARSE_INDEX_32I, base, csc_offsets);
            return true;
        });
    });
}
cusparseStatus_t cusparseXcoo2csr(cusparseHandle_t handle, const int* row_indices, int nnz, int rows,
                                  int* row_offsets, cusparseIndexBase_t base) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    return run(handle, __func__,
               {region_of("the row indices", row_indices, sizeof(int) * nnz),
                region_of("the row offsets", row_offsets, sizeof(int) * (rows + std::size_t{1}), true)},
               [=] {
                   for (int row = 0; row <= rows; ++row) {
                       const int* const first = std::lower_bound(row_indices, row_indices + nnz, row + base);
                       row_offsets[row] = static_cast<int>(first - row_indices) + base;
                   }
                   return true;
               });
}
cusparseStatus_t cusparseXcsr2coo(cusparseHandle_t handle, const int* row_offsets, int nnz, int rows,
                                  int* row_indices, cusparseIndexBase_t base) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    return run(handle, __func__,
               {region_of("the row offsets", row_offsets, sizeof(int) * (rows + std::size_t{1})),
                region_of("the row indices", row_indices, sizeof(int) * nnz, true)},
               [=, function = __func__] {
                   for (int row = 0; row < rows; ++row) {
                       const int begin = row_offsets[row] - base, end = row_offsets[row + 1] - base;
                       if (begin < 0 || end < begin || end > nnz) {
                           fail_in_stream(function,
                                          "row %d begins at %d and ends at %d; there are %d entries", row,
                                          begin, end, nnz);
                           return false;
                       }
                       std::fill(row_indices + begin, row_indices + end, row + base);
                   }
                   return true;
               });
}
#undef CUSPARSE_TRY
