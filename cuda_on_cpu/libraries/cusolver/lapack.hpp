// The host's LAPACK under names without the letter of the type: Lapack<float>::getrf is sgetrf_.
// Its functions are those of Fortran: all arguments are addresses, and the lengths of characters
// follow behind the others.
#pragma once

#include <complex>
#include <cstddef>

extern "C" {
#define CUDA_ON_CPU_LAPACK(x, T, R)                                                                          \
    void x##getrf_(const int*, const int*, T*, const int*, int*, int*);                                      \
    void x##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*,    \
                   int*, std::size_t);                                                                       \
    void x##potrf_(const char*, const int*, T*, const int*, int*, std::size_t);                              \
    void x##potrs_(const char*, const int*, const int*, const T*, const int*, T*, const int*, int*,          \
                   std::size_t);                                                                             \
    void x##potri_(const char*, const int*, T*, const int*, int*, std::size_t);                              \
    void x##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*,      \
                  const T*, const int*, T*, const int*, std::size_t, std::size_t, std::size_t, std::size_t); \
    void x##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);
#define CUDA_ON_CPU_LAPACK_REAL(x, T)                                                                        \
    CUDA_ON_CPU_LAPACK(x, T, T)                                                                              \
    void x##ormqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*,       \
                   const T*, T*, const int*, T*, const int*, int*, std::size_t, std::size_t);                \
    void x##orgqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);      \
    void x##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,           \
                   const int*, int*, std::size_t, std::size_t);                                              \
    void x##sygvd_(const int*, const char*, const char*, const int*, T*, const int*, T*, const int*, T*, T*, \
                   const int*, int*, const int*, int*, std::size_t, std::size_t);                            \
    void x##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, \
                   const int*, T*, const int*, int*, std::size_t, std::size_t);
#define CUDA_ON_CPU_LAPACK_COMPLEX(x, T, R)                                                                  \
    CUDA_ON_CPU_LAPACK(x, T, R)                                                                              \
    void x##unmqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*,       \
                   const T*, T*, const int*, T*, const int*, int*, std::size_t, std::size_t);                \
    void x##ungqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);      \
    void x##heevd_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, const int*, \
                   int*, const int*, int*, std::size_t, std::size_t);                                        \
    void x##hegvd_(const int*, const char*, const char*, const int*, T*, const int*, T*, const int*, R*, T*, \
                   const int*, R*, const int*, int*, const int*, int*, std::size_t, std::size_t);            \
    void x##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, \
                   const int*, T*, const int*, R*, int*, std::size_t, std::size_t);
CUDA_ON_CPU_LAPACK_REAL(s, float)
CUDA_ON_CPU_LAPACK_REAL(d, double)
CUDA_ON_CPU_LAPACK_COMPLEX(c, std::complex<float>, float)
CUDA_ON_CPU_LAPACK_COMPLEX(z, std::complex<double>, double)
#undef CUDA_ON_CPU_LAPACK_COMPLEX
#undef CUDA_ON_CPU_LAPACK_REAL
#undef CUDA_ON_CPU_LAPACK
}

namespace cuda_on_cpu::solver {

template <class T>
struct Lapack;

#define CUDA_ON_CPU_LAPACK(T, x, q, e)            \
    template <>                                   \
    struct Lapack<T> {                            \
        static constexpr auto* getrf = x##getrf_; \
        static constexpr auto* getrs = x##getrs_; \
        static constexpr auto* potrf = x##potrf_; \
        static constexpr auto* potrs = x##potrs_; \
        static constexpr auto* potri = x##potri_; \
        static constexpr auto* trsm = x##trsm_;   \
        static constexpr auto* geqrf = x##geqrf_; \
        static constexpr auto* mqr = q##mqr_;     \
        static constexpr auto* gqr = q##gqr_;     \
        static constexpr auto* evd = e##evd_;     \
        static constexpr auto* gvd = e##gvd_;     \
        static constexpr auto* gesvd = x##gesvd_; \
    };
CUDA_ON_CPU_LAPACK(float, s, sor, ssy)
CUDA_ON_CPU_LAPACK(double, d, dor, dsy)
CUDA_ON_CPU_LAPACK(std::complex<float>, c, cun, che)
CUDA_ON_CPU_LAPACK(std::complex<double>, z, zun, zhe)
#undef CUDA_ON_CPU_LAPACK

}  // namespace cuda_on_cpu::solver
