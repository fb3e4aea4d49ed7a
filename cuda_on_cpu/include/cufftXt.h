// Plans of cuFFT whose types are given as data types. Of these float and double exist, real and
// complex; neither half precision, several GPUs nor callbacks.
#pragma once

#include "cufft.h"

#ifdef __cplusplus
extern "C" {
#endif

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long* n, long long* inembed,
                                long long istride, long long idist, cudaDataType input, long long* onembed,
                                long long ostride, long long odist, cudaDataType output, long long batch,
                                size_t* work_size, cudaDataType execution);
// `direction` counts for transforms between complex numbers.
cufftResult cufftXtExec(cufftHandle plan, void* input, void* output, int direction);

#ifdef __cplusplus
}
#endif
