// Level 1: operations on vectors.
#pragma once

#include <array>
#include <cmath>

#include "call.hpp"
#include "host_blas.hpp"

namespace cuda_on_cpu::blas {

template <class T>
cublasStatus_t axpy(Call call, int n, const T* alpha, const T* x, int incx, T* y, int incy) {
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] { Cblas<T>::axpy(n, by_value(a()), x, incx, y, incy); });
}

template <class T>
cublasStatus_t copy(Call call, int n, const T* x, int incx, T* y, int incy) {
    call.reads("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] { Cblas<T>::copy(n, x, incx, y, incy); });
}

template <class T>
cublasStatus_t swap(Call call, int n, T* x, int incx, T* y, int incy) {
    call.writes("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] { Cblas<T>::swap(n, x, incx, y, incy); });
}

// A plain loop, because BLAS libraries differ in the result of 0 times NaN.
template <class A, class T>
cublasStatus_t scal(Call call, int n, const A* alpha, T* x, int incx) {
    const auto a = call.scalar("alpha", alpha);
    const int count = incx > 0 ? n : 0;
    call.writes("x", x, count, incx);
    return call.run([=] {
        const Vector<T> v(x, count, incx);
        for (int i = 0; i < count; ++i)
            v[i] *= a();
    });
}

// The position, counted from 1, of the first of the best elements according to `better`; 0 if there
// is none.
template <class T, class Better>
int position(int n, const T* x, int incx, Better better) {
    const auto size = [](T value) { return std::abs(std::real(value)) + std::abs(std::imag(value)); };
    if (n < 1 || incx < 1) return 0;
    int best = 0;
    for (int i = 1; i < n; ++i) {
        if (better(size(x[static_cast<std::ptrdiff_t>(i) * incx]),
                   size(x[static_cast<std::ptrdiff_t>(best) * incx])))
            best = i;
    }
    return best + 1;
}

template <class T>
cublasStatus_t amax(Call call, int n, const T* x, int incx, int* result) {
    call.result("result", result).reads("x", x, incx > 0 ? n : 0, incx);
    return call.run([=] { *result = position(n, x, incx, [](auto a, auto b) { return a > b; }); });
}

template <class T>
cublasStatus_t amin(Call call, int n, const T* x, int incx, int* result) {
    call.result("result", result).reads("x", x, incx > 0 ? n : 0, incx);
    return call.run([=] { *result = position(n, x, incx, [](auto a, auto b) { return a < b; }); });
}

template <class T>
cublasStatus_t asum(Call call, int n, const T* x, int incx, Real<T>* result) {
    call.result("result", result).reads("x", x, incx > 0 ? n : 0, incx);
    return call.run([=] { *result = n > 0 && incx > 0 ? Cblas<T>::asum(n, x, incx) : 0; });
}

template <class T>
cublasStatus_t nrm2(Call call, int n, const T* x, int incx, Real<T>* result) {
    call.result("result", result).reads("x", x, incx > 0 ? n : 0, incx);
    return call.run([=] { *result = n > 0 && incx > 0 ? Cblas<T>::nrm2(n, x, incx) : 0; });
}

template <class T>
cublasStatus_t dot(Call call, int n, const T* x, int incx, const T* y, int incy, T* result) {
    call.result("result", result).reads("x", x, n, incx).reads("y", y, n, incy);
    return call.run([=] { *result = Cblas<T>::dot(n, x, incx, y, incy); });
}

template <class T>
cublasStatus_t dotu(Call call, int n, const T* x, int incx, const T* y, int incy, T* result) {
    call.result("result", result).reads("x", x, n, incx).reads("y", y, n, incy);
    return call.run([=] {
        *result = 0;
        if (n > 0) Cblas<T>::dotu(n, x, incx, y, incy, result);
    });
}

template <class T>
cublasStatus_t dotc(Call call, int n, const T* x, int incx, const T* y, int incy, T* result) {
    call.result("result", result).reads("x", x, n, incx).reads("y", y, n, incy);
    return call.run([=] {
        *result = 0;
        if (n > 0) Cblas<T>::dotc(n, x, incx, y, incy, result);
    });
}

template <class T, class S>
cublasStatus_t rot(Call call, int n, T* x, int incx, T* y, int incy, const Real<T>* c, const S* s) {
    const auto cosine = call.scalar("c", c);
    const auto sine = call.scalar("s", s);
    call.writes("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] {
        const Vector<T> a(x, n, incx), b(y, n, incy);
        for (int i = 0; i < n; ++i) {
            const T first = cosine() * a[i] + sine() * b[i];
            b[i] = cosine() * b[i] - conjugate(sine()) * a[i];
            a[i] = first;
        }
    });
}

// For complex numbers c is real, and c^2 + |s|^2 = 1.
template <class T>
cublasStatus_t rotg(Call call, T* a, T* b, Real<T>* c, T* s) {
    call.result("a", a).result("b", b).result("c", c).result("s", s);
    return call.run([=] {
        if constexpr (!kComplex<T>) {
            Cblas<T>::rotg(a, b, c, s);
        } else if (*a == T{}) {
            *c = 0;
            *s = 1;
            *a = *b;
        } else {
            const Real<T> norm = std::hypot(std::abs(*a), std::abs(*b));
            const T direction = *a / std::abs(*a);
            *c = std::abs(*a) / norm;
            *s = direction * std::conj(*b) / norm;
            *a = direction * norm;
        }
    });
}

template <class T>
cublasStatus_t rotm(Call call, int n, T* x, int incx, T* y, int incy, const T* param) {
    call.given("param", param).writes("x", x, n, incx).writes("y", y, n, incy);
    if (!call.ok()) return call.status();
    std::array<T, 5> host{};
    if (call.on_device()) {
        call.reads("param", param, 5, 1);
    } else {
        std::copy_n(param, 5, host.begin());
    }
    return call.run([=, on_device = call.on_device()] {
        Cblas<T>::rotm(n, x, incx, y, incy, on_device ? param : host.data());
    });
}

template <class T>
cublasStatus_t rotmg(Call call, T* d1, T* d2, T* x1, const T* y1, T* param) {
    call.result("d1", d1).result("d2", d2).result("x1", x1).result("param", param, 5);
    const auto y = call.scalar("y1", y1);
    return call.run([=] { Cblas<T>::rotmg(d1, d2, x1, y(), param); });
}

}  // namespace cuda_on_cpu::blas
