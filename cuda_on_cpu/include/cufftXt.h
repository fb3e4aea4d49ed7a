// cuFFT plans whose types are given as data types. Float and double are provided, real and complex;
// half precision and several GPUs are not. Callbacks run as host code, one element after the other.
#pragma once

#include "cufft.h"

#ifdef __cplusplus
extern "C" {
#endif

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long* n, long long* inembed,
                                long long istride, long long idist, cudaDataType input, long long* onembed,
                                long long ostride, long long odist, cudaDataType output, long long batch,
                                size_t* work_size, cudaDataType execution);
// `direction` is used only for complex-to-complex transforms.
cufftResult cufftXtExec(cufftHandle plan, void* input, void* output, int direction);

typedef enum cufftXtCallbackType_t {
    CUFFT_CB_LD_COMPLEX = 0,
    CUFFT_CB_LD_COMPLEX_DOUBLE = 1,
    CUFFT_CB_LD_REAL = 2,
    CUFFT_CB_LD_REAL_DOUBLE = 3,
    CUFFT_CB_ST_COMPLEX = 4,
    CUFFT_CB_ST_COMPLEX_DOUBLE = 5,
    CUFFT_CB_ST_REAL = 6,
    CUFFT_CB_ST_REAL_DOUBLE = 7,
    CUFFT_CB_UNDEFINED = 8
} cufftXtCallbackType;

// `offset` is that of the element, counted in elements from the start of the data.
typedef cufftComplex (*cufftCallbackLoadC)(void* data, size_t offset, void* caller_info, void* shared);
typedef cufftDoubleComplex (*cufftCallbackLoadZ)(void* data, size_t offset, void* caller_info, void* shared);
typedef cufftReal (*cufftCallbackLoadR)(void* data, size_t offset, void* caller_info, void* shared);
typedef cufftDoubleReal (*cufftCallbackLoadD)(void* data, size_t offset, void* caller_info, void* shared);
typedef void (*cufftCallbackStoreC)(void* data, size_t offset, cufftComplex element, void* caller_info,
                                    void* shared);
typedef void (*cufftCallbackStoreZ)(void* data, size_t offset, cufftDoubleComplex element, void* caller_info,
                                    void* shared);
typedef void (*cufftCallbackStoreR)(void* data, size_t offset, cufftReal element, void* caller_info,
                                    void* shared);
typedef void (*cufftCallbackStoreD)(void* data, size_t offset, cufftDoubleReal element, void* caller_info,
                                    void* shared);

// The lists have one item for each GPU; only the first is used.
cufftResult cufftXtSetCallback(cufftHandle plan, void** callbacks, cufftXtCallbackType type,
                               void** caller_infos);
cufftResult cufftXtClearCallback(cufftHandle plan, cufftXtCallbackType type);
cufftResult cufftXtSetCallbackSharedSize(cufftHandle plan, cufftXtCallbackType type, size_t bytes);

#ifdef __cplusplus
}
#endif
