// cuFFT over FFTW: transforms against sums in double precision, layouts, and the errors.
#include <cufftXt.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

namespace {

using C = std::complex<float>;
using Z = std::complex<double>;

template <class T>
class Device {
  public:
    explicit Device(const std::vector<T>& values) : size_(values.size()) {
        cudaMalloc(reinterpret_cast<void**>(&pointer_), size_ * sizeof(T));
        cudaMemcpy(pointer_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~Device() { cudaFree(pointer_); }
    Device(const Device&) = delete;
    template <class U>
    U* as() const {
        return reinterpret_cast<U*>(pointer_);
    }
    std::vector<T> values() const {
        std::vector<T> all(size_);
        EXPECT_EQ(cudaMemcpy(all.data(), pointer_, size_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return all;
    }

  private:
    std::size_t size_;
    T* pointer_ = nullptr;
};

// Numbers without a regular pattern.
double number(std::size_t i) {
    return std::fmod(i * 0.618034 + 0.1, 1.0) - 0.5;
}
template <class T>
std::vector<T> numbers(std::size_t count) {
    std::vector<T> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (sizeof(T) == sizeof(float)) {
            all[i] = static_cast<float>(number(i));
        } else {
            all[i] = T(number(2 * i), number(2 * i + 1));
        }
    }
    return all;
}

// The definition, rows x columns.
std::vector<Z> transformed(const std::vector<Z>& x, int rows, int columns, int direction) {
    std::vector<Z> all(x.size());
    for (int k = 0; k < rows; ++k) {
        for (int l = 0; l < columns; ++l) {
            for (int i = 0; i < rows; ++i) {
                for (int j = 0; j < columns; ++j) {
                    const double turns = double(k * i) / rows + double(l * j) / columns;
                    all[k * columns + l] +=
                        x[i * columns + j] * std::polar(1.0, direction * 2 * M_PI * turns);
                }
            }
        }
    }
    return all;
}

template <class Got>
void expect_near(const std::vector<Got>& got, const std::vector<Z>& expected, const char* what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_LE(std::abs(Z(got[i]) - expected[i]), 1e-4) << what << ", element " << i;
}

template <class T>
std::vector<Z> wide(const std::vector<T>& x) {
    return std::vector<Z>(x.begin(), x.end());
}

TEST(Cufft, TransformsComplexNumbersInBothPrecisions) {
    const int n = 7;
    const std::vector<C> x = numbers<C>(2 * n);
    Device<C> device(x);
    cufftHandle plan = 0;
    ASSERT_EQ(cufftPlan1d(&plan, n, CUFFT_C2C, 2), CUFFT_SUCCESS);
    EXPECT_EQ(cufftExecC2C(plan, device.as<cufftComplex>(), device.as<cufftComplex>(), CUFFT_FORWARD),
              CUFFT_SUCCESS);
    std::vector<Z> expected = transformed({x.begin(), x.begin() + n}, 1, n, -1);
    for (const Z value : transformed({x.begin() + n, x.end()}, 1, n, -1))
        expected.push_back(value);
    expect_near(device.values(), expected, "two transforms, in place");
    EXPECT_EQ(cufftExecC2C(plan, device.as<cufftComplex>(), device.as<cufftComplex>(), CUFFT_INVERSE),
              CUFFT_SUCCESS);
    std::vector<Z> scaled = wide(x);
    for (Z& value : scaled)
        value *= n;
    expect_near(device.values(), scaled, "back, not normalised");
    EXPECT_EQ(cufftDestroy(plan), CUFFT_SUCCESS);
    EXPECT_EQ(cufftDestroy(plan), CUFFT_INVALID_PLAN);

    const std::vector<Z> y = numbers<Z>(3 * 4);
    Device<Z> input(y), output(std::vector<Z>(12));
    ASSERT_EQ(cufftPlan2d(&plan, 3, 4, CUFFT_Z2Z), CUFFT_SUCCESS);
    EXPECT_EQ(
        cufftExecZ2Z(plan, input.as<cufftDoubleComplex>(), output.as<cufftDoubleComplex>(), CUFFT_INVERSE),
        CUFFT_SUCCESS);
    expect_near(output.values(), transformed(y, 3, 4, 1), "two dimensions");
    cufftDestroy(plan);
}

TEST(Cufft, TransformsRealNumbersAndBack) {
    const int rows = 3, columns = 6, half = columns / 2 + 1;
    const std::vector<float> x = numbers<float>(rows * columns);
    const std::vector<Z> full = transformed(wide(x), rows, columns, -1);
    std::vector<Z> expected;
    for (int i = 0; i < rows; ++i)
        expected.insert(expected.end(), full.begin() + i * columns, full.begin() + i * columns + half);
    cufftHandle forward = 0, backward = 0;
    ASSERT_EQ(cufftPlan2d(&forward, rows, columns, CUFFT_R2C), CUFFT_SUCCESS);
    ASSERT_EQ(cufftPlan2d(&backward, rows, columns, CUFFT_C2R), CUFFT_SUCCESS);
    Device<float> input(x), back(std::vector<float>(rows * columns));
    Device<C> output(std::vector<C>(rows * half));
    EXPECT_EQ(cufftExecR2C(forward, input.as<float>(), output.as<cufftComplex>()), CUFFT_SUCCESS);
    expect_near(output.values(), expected, "R2C");
    EXPECT_EQ(input.values(), x) << "the input is kept";
    EXPECT_EQ(cufftExecC2R(backward, output.as<cufftComplex>(), back.as<float>()), CUFFT_SUCCESS);
    expect_near(output.values(), expected, "the input of C2R is kept");
    for (int i = 0; i < rows * columns; ++i)
        EXPECT_NEAR(back.values()[i], rows * columns * x[i], 1e-4);

    std::vector<float> padded(rows * 2 * half);
    for (int i = 0; i < rows * columns; ++i)
        padded[i / columns * 2 * half + i % columns] = x[i];
    Device<float> same(padded);
    EXPECT_EQ(cufftExecR2C(forward, same.as<float>(), same.as<cufftComplex>()), CUFFT_SUCCESS);
    const std::vector<float> pairs = same.values();
    std::vector<Z> got;
    for (int i = 0; i < rows * half; ++i)
        got.emplace_back(pairs[2 * i], pairs[2 * i + 1]);
    expect_near(got, expected, "in place, rows are padded");
    cufftDestroy(forward);
    cufftDestroy(backward);
}

TEST(Cufft, StridesAndStreams) {
    int n[] = {4}, embed[] = {4};
    const int batch = 3;
    const std::vector<C> x = numbers<C>(4 * batch);  // element i of transform b at i * batch + b
    Device<C> device(x);
    cufftHandle plan = 0;
    ASSERT_EQ(cufftPlanMany(&plan, 1, n, embed, batch, 1, embed, batch, 1, CUFFT_C2C, batch), CUFFT_SUCCESS);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    EXPECT_EQ(cufftSetStream(plan, stream), CUFFT_SUCCESS);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    EXPECT_EQ(cufftExecC2C(plan, device.as<cufftComplex>(), device.as<cufftComplex>(), CUFFT_FORWARD),
              CUFFT_SUCCESS);
    cudaStreamEndCapture(stream, &graph);
    EXPECT_EQ(device.values(), x) << "a capture notes the work";
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    std::vector<Z> expected(x.size());
    for (int b = 0; b < batch; ++b) {
        std::vector<Z> one;
        for (int i = 0; i < 4; ++i)
            one.emplace_back(x[i * batch + b]);
        const std::vector<Z> result = transformed(one, 1, 4, -1);
        for (int i = 0; i < 4; ++i)
            expected[i * batch + b] = result[i];
    }
    expect_near(device.values(), expected, "strided");
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cufftDestroy(plan);
}

// On the stand-in a callback is a function of the host.
cufftComplex twice(void* data, std::size_t offset, void* factor, void*) {
    const cufftComplex z = static_cast<cufftComplex*>(data)[offset];
    const float f = *static_cast<float*>(factor);
    return {f * z.x, f * z.y};
}
void store_negated(void* data, std::size_t offset, cufftComplex z, void*, void*) {
    static_cast<cufftComplex*>(data)[offset] = {-z.x, -z.y};
}
void store_scaled(void* data, std::size_t offset, float value, void* factor, void*) {
    static_cast<float*>(data)[offset] = value * *static_cast<float*>(factor);
}

TEST(Cufft, CallbacksLoadAndStoreEachElement) {
    constexpr int kRows = 3, kColumns = 5;
    const std::vector<C> x = numbers<C>(kRows * kColumns);
    const Device<C> device(x);
    const Device<float> factor({2.0F});
    cufftHandle plan = 0;
    ASSERT_EQ(cufftPlan2d(&plan, kRows, kColumns, CUFFT_C2C), CUFFT_SUCCESS);
    void* load = reinterpret_cast<void*>(twice);
    void* store = reinterpret_cast<void*>(store_negated);
    void* info = factor.as<void>();
    EXPECT_EQ(cufftXtSetCallback(plan, &load, CUFFT_CB_LD_REAL, &info), CUFFT_INVALID_TYPE);
    ASSERT_EQ(cufftXtSetCallback(plan, &load, CUFFT_CB_LD_COMPLEX, &info), CUFFT_SUCCESS);
    ASSERT_EQ(cufftXtSetCallback(plan, &store, CUFFT_CB_ST_COMPLEX, nullptr), CUFFT_SUCCESS);
    auto* const data = device.as<cufftComplex>();
    ASSERT_EQ(cufftExecC2C(plan, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
    std::vector<Z> expected = transformed(wide(x), kRows, kColumns, -1);
    for (Z& z : expected)
        z *= -2.0;
    expect_near(device.values(), expected, "twice, negated");

    ASSERT_EQ(cufftXtClearCallback(plan, CUFFT_CB_LD_COMPLEX), CUFFT_SUCCESS);
    ASSERT_EQ(cufftXtClearCallback(plan, CUFFT_CB_ST_COMPLEX), CUFFT_SUCCESS);
    ASSERT_EQ(cufftExecC2C(plan, data, data, CUFFT_INVERSE), CUFFT_SUCCESS);
    std::vector<Z> back = wide(x);
    for (Z& z : back)
        z *= -2.0 * kRows * kColumns;
    expect_near(device.values(), back, "without callbacks");
    cufftDestroy(plan);
}

// In place, the rows of the real side are padded: a callback is called for the elements, but not
// for the padding.
TEST(Cufft, CallbacksOfPaddedRows) {
    constexpr int kRows = 2, kSize = 5, kPadded = 6;
    std::vector<C> x(kRows * kPadded / 2);
    x[0] = C(1, 0);  // the transform of a constant
    const Device<C> device(x);
    const Device<float> factor({0.5F});
    cufftHandle plan = 0;
    ASSERT_EQ(cufftPlan2d(&plan, kRows, kSize, CUFFT_C2R), CUFFT_SUCCESS);
    void* store = reinterpret_cast<void*>(store_scaled);
    void* info = factor.as<void>();
    ASSERT_EQ(cufftXtSetCallback(plan, &store, CUFFT_CB_ST_REAL, &info), CUFFT_SUCCESS);
    ASSERT_EQ(cufftExecC2R(plan, device.as<cufftComplex>(), device.as<float>()), CUFFT_SUCCESS);
    const std::vector<C> got = device.values();
    const float* const values = reinterpret_cast<const float*>(got.data());
    for (int row = 0; row < kRows; ++row)
        for (int i = 0; i < kSize; ++i)
            EXPECT_FLOAT_EQ(values[row * kPadded + i], 0.5F) << "row " << row << ", element " << i;
    cufftDestroy(plan);
}

TEST(Cufft, ArgumentsAreChecked) {
    cufftHandle plan = 0;
    EXPECT_EQ(cufftPlan1d(&plan, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
    EXPECT_EQ(cufftPlan1d(&plan, 4, static_cast<cufftType>(1), 1), CUFFT_INVALID_TYPE);
    EXPECT_EQ(cufftPlan1d(&plan, 4, CUFFT_C2C, 0), CUFFT_INVALID_SIZE);
    EXPECT_EQ(cufftExecC2C(999, nullptr, nullptr, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
    ASSERT_EQ(cufftPlan1d(&plan, 4, CUFFT_C2C, 1), CUFFT_SUCCESS);
    Device<C> small(numbers<C>(3));
    EXPECT_EQ(cufftExecC2C(plan, small.as<cufftComplex>(), small.as<cufftComplex>(), 0), CUFFT_INVALID_VALUE);
    std::vector<C> host(4);
    for (cufftComplex* wrong : {reinterpret_cast<cufftComplex*>(host.data()), small.as<cufftComplex>()}) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(cufftExecC2C(plan, wrong, wrong, CUFFT_FORWARD), CUFFT_SUCCESS);
        EXPECT_NE(testing::internal::GetCapturedStderr().find("cufftExecC2C: the input is"),
                  std::string::npos);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
        cudaDeviceReset();
    }
    cufftDestroy(plan);
}

}  // namespace
