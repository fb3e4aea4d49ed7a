#include <fftw3.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cufftXt.h"
#include "library_arguments.hpp"
#include "stream.hpp"

namespace cuda_on_cpu::fft {
namespace {

// FFTW under names without a precision.
struct Single {
    using Real = float;
    using Complex = fftwf_complex;
    using Number = cufftComplex;
    using Plan = fftwf_plan;
    static constexpr auto* plan_c2c = fftwf_plan_many_dft;
    static constexpr auto* plan_r2c = fftwf_plan_many_dft_r2c;
    static constexpr auto* plan_c2r = fftwf_plan_many_dft_c2r;
    static constexpr auto* execute = fftwf_execute;
    static constexpr auto* destroy = fftwf_destroy_plan;
};
struct Double {
    using Real = double;
    using Complex = fftw_complex;
    using Number = cufftDoubleComplex;
    using Plan = fftw_plan;
    static constexpr auto* plan_c2c = fftw_plan_many_dft;
    static constexpr auto* plan_r2c = fftw_plan_many_dft_r2c;
    static constexpr auto* plan_c2r = fftw_plan_many_dft_c2r;
    static constexpr auto* execute = fftw_execute;
    static constexpr auto* destroy = fftw_destroy_plan;
};

enum class Form { complex, to_complex, to_real };

Form form(cufftType type) {
    if (type == CUFFT_R2C || type == CUFFT_D2Z) return Form::to_complex;
    return type == CUFFT_C2R || type == CUFFT_Z2D ? Form::to_real : Form::complex;
}

bool is_double(cufftType type) {
    return type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D;
}

// The positions of the elements of one side, in elements.
struct Layout {
    // Extents of the memory; the first one is ignored.
    std::vector<int> embed;
    int stride = 1;
    int distance = 0;
};

// A program's function that loads or stores elements.
struct Callback {
    void* function = nullptr;
    void* caller_info = nullptr;
};

struct Plan {
    // std::nullopt: cufftMakePlan has not been called.
    std::optional<cufftType> type{};
    std::vector<int> extents{};
    int batch = 1;
    // std::nullopt: densely packed.
    std::optional<Layout> input{}, output{};
    cudaStream_t stream = nullptr;
    Callback load{}, store{};
};

std::mutex mutex;
std::mutex planner_mutex;  // FFTW's planner is not thread-safe
int next_handle = 1;

std::map<cufftHandle, Plan>& plans() {
    static auto* alive = new std::map<cufftHandle, Plan>;  // usable until the last static destructor
    return *alive;
}

[[gnu::format(printf, 3, 4)]] cufftResult refuse(cufftResult result, const char* function, const char* format,
                                                 ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[512];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (cufftResult %d)\n", function, message,
                 static_cast<int>(result));
    return result;
}

cufftResult no_plan(const char* function, cufftHandle handle) {
    return refuse(CUFFT_INVALID_PLAN, function, "plan %d does not exist (any more)", handle);
}

// The extents of one side, in elements. Between real and complex elements, the complex side is
// about half as long in the last dimension; in place the real side is padded to its length.
std::vector<int> side_extents(const Plan& plan, bool complex_side) {
    std::vector<int> all = plan.extents;
    if (complex_side && form(*plan.type) != Form::complex) all.back() = all.back() / 2 + 1;
    return all;
}

Layout dense(const Plan& plan, bool complex_side, bool in_place) {
    Layout layout{.embed = side_extents(plan, complex_side)};
    if (!complex_side && in_place) layout.embed.back() = 2 * (plan.extents.back() / 2 + 1);
    layout.distance = 1;
    for (const int extent : layout.embed)
        layout.distance *= extent;
    return layout;
}

// The position of the last element, plus 1.
std::size_t elements(const Plan& plan, const Layout& layout, bool complex_side) {
    const std::vector<int> extents = side_extents(plan, complex_side);
    std::size_t last = 0;
    for (std::size_t i = 0; i < extents.size(); ++i)
        last = (i == 0 ? 0 : last * layout.embed[i]) + static_cast<std::size_t>(extents[i] - 1);
    return static_cast<std::size_t>(plan.batch - 1) * layout.distance + last * layout.stride + 1;
}

// The position of each element of a side, in memory order.
std::vector<std::size_t> positions(const Plan& plan, const Layout& layout, bool complex_side) {
    const std::vector<int> extents = side_extents(plan, complex_side);
    std::vector<std::size_t> found;
    for (int batch = 0; batch < plan.batch; ++batch) {
        std::vector<int> index(extents.size(), 0);
        for (std::size_t dimension = extents.size(); dimension > 0;) {
            std::size_t place = 0;
            for (std::size_t i = 0; i < extents.size(); ++i)
                place = (i == 0 ? 0 : place * layout.embed[i]) + static_cast<std::size_t>(index[i]);
            found.push_back(static_cast<std::size_t>(batch) * layout.distance + place * layout.stride);
            for (dimension = extents.size();
                 dimension > 0 && ++index[dimension - 1] == extents[dimension - 1]; --dimension)
                index[dimension - 1] = 0;
        }
    }
    return found;
}

// The most that a callback may request.
constexpr std::size_t kSharedBytes = 16384;

template <class Element>
void load_by(const Callback& callback, void* data, Element* to, const std::vector<std::size_t>& places) {
    const auto function = reinterpret_cast<Element (*)(void*, std::size_t, void*, void*)>(callback.function);
    alignas(16) char shared[kSharedBytes];
    for (const std::size_t place : places)
        to[place] = function(data, place, callback.caller_info, shared);
}

template <class Element>
void store_by(const Callback& callback, void* data, const Element* from,
              const std::vector<std::size_t>& places) {
    const auto function =
        reinterpret_cast<void (*)(void*, std::size_t, Element, void*, void*)>(callback.function);
    alignas(16) char shared[kSharedBytes];
    for (const std::size_t place : places)
        function(data, place, from[place], callback.caller_info, shared);
}

template <class Precision>
bool transform(const char* function, const Plan& plan, void* input, void* output, int direction) {
    using Real = typename Precision::Real;
    using Complex = typename Precision::Complex;
    const Form kind = form(*plan.type);
    const bool in_place = input == output;
    const bool complex_input = kind != Form::to_complex, complex_output = kind != Form::to_real;
    const Layout in = plan.input.value_or(dense(plan, complex_input, in_place));
    const Layout out = plan.output.value_or(dense(plan, complex_output, in_place));
    const std::size_t input_bytes =
        elements(plan, in, complex_input) * (complex_input ? sizeof(Complex) : sizeof(Real));
    const std::size_t output_bytes =
        elements(plan, out, complex_output) * (complex_output ? sizeof(Complex) : sizeof(Real));
    const Region written{.name = "the output", .pointer = output, .bytes = output_bytes};
    if (!reachable(function, {.name = "the input", .pointer = input, .bytes = input_bytes}) ||
        !reachable(function, written))
        return false;

    // FFTW destroys the input of transforms to real numbers.
    std::vector<char> copy;
    if (plan.load.function != nullptr) {
        copy.resize(input_bytes);
        const std::vector<std::size_t> places = positions(plan, in, complex_input);
        if (complex_input)
            load_by(plan.load, input, reinterpret_cast<typename Precision::Number*>(copy.data()), places);
        else
            load_by(plan.load, input, reinterpret_cast<Real*>(copy.data()), places);
        input = copy.data();
    } else if (kind == Form::to_real && !in_place) {
        copy.assign(static_cast<char*>(input), static_cast<char*>(input) + input_bytes);
        input = copy.data();
    }
    void* const stored_to = output;
    std::vector<char> result;
    if (plan.store.function != nullptr) {
        result.resize(output_bytes);
        output = result.data();
    }
    const int rank = static_cast<int>(plan.extents.size());
    const unsigned flags =
        FFTW_ESTIMATE | FFTW_UNALIGNED |
        (copy.empty() && input != output && kind != Form::to_real ? FFTW_PRESERVE_INPUT : 0u);
    typename Precision::Plan fftw;
    {
        const std::scoped_lock lock(planner_mutex);
        const auto* n = plan.extents.data();
        switch (kind) {
            case Form::complex:
                fftw = Precision::plan_c2c(rank, n, plan.batch, static_cast<Complex*>(input), in.embed.data(),
                                           in.stride, in.distance, static_cast<Complex*>(output),
                                           out.embed.data(), out.stride, out.distance, direction, flags);
                break;
            case Form::to_complex:
                fftw = Precision::plan_r2c(rank, n, plan.batch, static_cast<Real*>(input), in.embed.data(),
                                           in.stride, in.distance, static_cast<Complex*>(output),
                                           out.embed.data(), out.stride, out.distance, flags);
                break;
            case Form::to_real:
                fftw = Precision::plan_c2r(rank, n, plan.batch, static_cast<Complex*>(input), in.embed.data(),
                                           in.stride, in.distance, static_cast<Real*>(output),
                                           out.embed.data(), out.stride, out.distance, flags);
                break;
        }
    }
    if (fftw == nullptr) {
        std::fprintf(stderr, "cuda_on_cpu: %s: FFTW has no plan for this transform\n", function);
        return false;
    }
    Precision::execute(fftw);
    {
        const std::scoped_lock lock(planner_mutex);
        Precision::destroy(fftw);
    }
    if (plan.store.function != nullptr) {
        const std::vector<std::size_t> places = positions(plan, out, complex_output);
        if (complex_output)
            store_by(plan.store, stored_to, reinterpret_cast<typename Precision::Number*>(output), places);
        else
            store_by(plan.store, stored_to, static_cast<Real*>(output), places);
    }
    note_written(written);
    return true;
}

cufftResult execute(const char* function, cufftHandle handle, cufftType type, void* input, void* output,
                    int direction = CUFFT_FORWARD) {
    Plan plan;
    {
        const std::scoped_lock lock(mutex);
        const auto found = plans().find(handle);
        if (found == plans().end()) return no_plan(function, handle);
        plan = found->second;
    }
    if (!plan.type)
        return refuse(CUFFT_INVALID_PLAN, function, "plan %d has not been made; expected cufftMakePlan",
                      handle);
    if (*plan.type != type)
        return refuse(CUFFT_INVALID_PLAN, function, "the plan is for cufftType %#x; expected one for %#x",
                      *plan.type, type);
    if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)
        return refuse(CUFFT_INVALID_VALUE, function,
                      "the direction is %d; expected CUFFT_FORWARD or CUFFT_INVERSE", direction);
    if (input == nullptr || output == nullptr)
        return refuse(CUFFT_INVALID_VALUE, function, "the %s is null", input == nullptr ? "input" : "output");
    const auto work = [=] {
        const bool done = is_double(type) ? transform<Double>(function, plan, input, output, direction)
                                          : transform<Single>(function, plan, input, output, direction);
        (void)done;  // a failure shows at the next synchronisation
        return cudaSuccess;
    };
    return submit(plan.stream, function, work) == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

// Checks a plan's arguments: FFTW takes them as int.
struct Arguments {
    int rank;
    const long long* n;
    const long long *inembed, *onembed;
    long long istride, idist, ostride, odist;
    cufftType type;
    long long batch;
};

cufftResult make(const char* function, cufftHandle handle, const Arguments& arguments, size_t* work_size) {
    constexpr long long kMost = std::numeric_limits<int>::max();
    const auto& a = arguments;
    if (a.rank < 1 || a.rank > 3 || a.n == nullptr)
        return refuse(CUFFT_INVALID_SIZE, function, "the rank is %d; expected 1 to 3 dimensions", a.rank);
    for (int i = 0; i < a.rank; ++i) {
        if (a.n[i] < 1 || a.n[i] > kMost)
            return refuse(CUFFT_INVALID_SIZE, function,
                          "dimension %d is %lld; expected at least 1, below 2^31", i, a.n[i]);
    }
    if (a.batch < 1 || a.batch > kMost)
        return refuse(CUFFT_INVALID_SIZE, function, "the batch is %lld; expected at least 1, below 2^31",
                      a.batch);
    switch (a.type) {
        case CUFFT_C2C:
        case CUFFT_R2C:
        case CUFFT_C2R:
        case CUFFT_Z2Z:
        case CUFFT_D2Z:
        case CUFFT_Z2D:
            break;
        default:
            return refuse(CUFFT_INVALID_TYPE, function, "the type is %#x; expected one of cufftType", a.type);
    }
    Plan plan{.type = a.type, .extents = {a.n, a.n + a.rank}, .batch = static_cast<int>(a.batch)};
    if (a.inembed != nullptr && a.onembed != nullptr) {
        if (a.istride < 1 || a.ostride < 1 || a.idist < 0 || a.odist < 0)
            return refuse(CUFFT_INVALID_VALUE, function, "the strides are %lld and %lld; expected at least 1",
                          a.istride, a.ostride);
        plan.input =
            Layout{{a.inembed, a.inembed + a.rank}, static_cast<int>(a.istride), static_cast<int>(a.idist)};
        plan.output =
            Layout{{a.onembed, a.onembed + a.rank}, static_cast<int>(a.ostride), static_cast<int>(a.odist)};
    }
    if (work_size != nullptr) *work_size = 0;
    const std::scoped_lock lock(mutex);
    const auto found = plans().find(handle);
    if (found == plans().end()) return no_plan(function, handle);
    plan.stream = found->second.stream;
    found->second = plan;
    return CUFFT_SUCCESS;
}

// Creates a handle and its plan in one call.
cufftResult create(const char* function, cufftHandle* handle, const Arguments& arguments) {
    if (handle == nullptr) return refuse(CUFFT_INVALID_VALUE, function, "plan is null");
    cufftHandle made = 0;
    cufftCreate(&made);
    const cufftResult result = make(function, made, arguments, nullptr);
    if (result != CUFFT_SUCCESS) {
        cufftDestroy(made);
    } else {
        *handle = made;
    }
    return result;
}

std::vector<long long> widened(const int* values, int count) {
    return values == nullptr || count < 1 || count > 3 ? std::vector<long long>{}
                                                       : std::vector<long long>(values, values + count);
}

Arguments packed(int rank, const long long* n, cufftType type, long long batch) {
    return {rank, n, nullptr, nullptr, 1, 0, 1, 0, type, batch};
}

// The arguments of PlanMany in 32 bits, and storage for the arrays that they point to.
struct Many {
    Many(int rank, const int* n, const int* inembed, int istride, int idist, const int* onembed, int ostride,
         int odist, cufftType type, int batch)
        : extents(widened(n, rank)),
          in(widened(inembed, rank)),
          out(widened(onembed, rank)),
          arguments{rank,
                    extents.empty() ? nullptr : extents.data(),
                    in.empty() ? nullptr : in.data(),
                    out.empty() ? nullptr : out.data(),
                    istride,
                    idist,
                    ostride,
                    odist,
                    type,
                    batch} {}
    std::vector<long long> extents, in, out;
    Arguments arguments;
};

}  // namespace
}  // namespace cuda_on_cpu::fft

using namespace cuda_on_cpu::fft;

cufftResult cufftCreate(cufftHandle* plan) {
    if (plan == nullptr) return refuse(CUFFT_INVALID_VALUE, __func__, "plan is null");
    const std::scoped_lock lock(mutex);
    *plan = next_handle++;
    plans()[*plan] = {};
    return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle plan) {
    const std::scoped_lock lock(mutex);
    return plans().erase(plan) == 1 ? CUFFT_SUCCESS : no_plan(__func__, plan);
}

cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch) {
    const long long n[] = {nx};
    return create(__func__, plan, packed(1, n, type, batch));
}
cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type) {
    const long long n[] = {nx, ny};
    return create(__func__, plan, packed(2, n, type, 1));
}
cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type) {
    const long long n[] = {nx, ny, nz};
    return create(__func__, plan, packed(3, n, type, 1));
}
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist,
                          int* onembed, int ostride, int odist, cufftType type, int batch) {
    const Many many(rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
    return create(__func__, plan, many.arguments);
}

cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t* work_size) {
    const long long n[] = {nx};
    return make(__func__, plan, packed(1, n, type, batch), work_size);
}
cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t* work_size) {
    const long long n[] = {nx, ny};
    return make(__func__, plan, packed(2, n, type, 1), work_size);
}
cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t* work_size) {
    const long long n[] = {nx, ny, nz};
    return make(__func__, plan, packed(3, n, type, 1), work_size);
}
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* inembed, int istride, int idist,
                              int* onembed, int ostride, int odist, cufftType type, int batch,
                              size_t* work_size) {
    const Many many(rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
    return make(__func__, plan, many.arguments, work_size);
}
cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long* n, long long* inembed,
                                long long istride, long long idist, long long* onembed, long long ostride,
                                long long odist, cufftType type, long long batch, size_t* work_size) {
    return make(__func__, plan, {rank, n, inembed, onembed, istride, idist, ostride, odist, type, batch},
                work_size);
}

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
    const std::scoped_lock lock(mutex);
    const auto found = plans().find(plan);
    if (found == plans().end()) return no_plan(__func__, plan);
    found->second.stream = stream;
    return CUFFT_SUCCESS;
}

namespace {

cufftResult check_plan(const char* function, cufftHandle plan) {
    const std::scoped_lock lock(mutex);
    return plans().contains(plan) ? CUFFT_SUCCESS : no_plan(function, plan);
}

cufftResult no_work_area(size_t* work_size) {
    if (work_size == nullptr) return CUFFT_INVALID_VALUE;
    *work_size = 0;
    return CUFFT_SUCCESS;
}

}  // namespace

cufftResult cufftSetAutoAllocation(cufftHandle plan, int) {
    return check_plan(__func__, plan);
}
cufftResult cufftSetWorkArea(cufftHandle plan, void*) {
    return check_plan(__func__, plan);
}
cufftResult cufftGetSize(cufftHandle plan, size_t* work_size) {
    const cufftResult result = check_plan(__func__, plan);
    return result == CUFFT_SUCCESS ? no_work_area(work_size) : result;
}
cufftResult cufftEstimate1d(int, cufftType, int, size_t* work_size) {
    return no_work_area(work_size);
}
cufftResult cufftEstimate2d(int, int, cufftType, size_t* work_size) {
    return no_work_area(work_size);
}
cufftResult cufftEstimate3d(int, int, int, cufftType, size_t* work_size) {
    return no_work_area(work_size);
}

cufftResult cufftGetVersion(int* version) {
    if (version == nullptr) return CUFFT_INVALID_VALUE;
    *version = CUFFT_VERSION;
    return CUFFT_SUCCESS;
}
cufftResult cufftGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr || type > PATCH_LEVEL) return CUFFT_INVALID_VALUE;
    constexpr int kVersion[] = {CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH};
    *value = kVersion[type];
    return CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* input, cufftComplex* output, int direction) {
    return execute(__func__, plan, CUFFT_C2C, input, output, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* input, cufftComplex* output) {
    return execute(__func__, plan, CUFFT_R2C, input, output);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* input, cufftReal* output) {
    return execute(__func__, plan, CUFFT_C2R, input, output);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* input, cufftDoubleComplex* output,
                         int direction) {
    return execute(__func__, plan, CUFFT_Z2Z, input, output, direction);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* input, cufftDoubleComplex* output) {
    return execute(__func__, plan, CUFFT_D2Z, input, output);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* input, cufftDoubleReal* output) {
    return execute(__func__, plan, CUFFT_Z2D, input, output);
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long* n, long long* inembed,
                                long long istride, long long idist, cudaDataType input, long long* onembed,
                                long long ostride, long long odist, cudaDataType output, long long batch,
                                size_t* work_size, cudaDataType) {
    struct Types {
        cudaDataType input, output;
        cufftType type;
    };
    constexpr Types kTypes[] = {{CUDA_C_32F, CUDA_C_32F, CUFFT_C2C}, {CUDA_R_32F, CUDA_C_32F, CUFFT_R2C},
                                {CUDA_C_32F, CUDA_R_32F, CUFFT_C2R}, {CUDA_C_64F, CUDA_C_64F, CUFFT_Z2Z},
                                {CUDA_R_64F, CUDA_C_64F, CUFFT_D2Z}, {CUDA_C_64F, CUDA_R_64F, CUFFT_Z2D}};
    for (const Types& types : kTypes) {
        if (types.input == input && types.output == output)
            return make(__func__, plan,
                        {rank, n, inembed, onembed, istride, idist, ostride, odist, types.type, batch},
                        work_size);
    }
    return refuse(CUFFT_NOT_SUPPORTED, __func__,
                  "the types are %d and %d; expected float or double, of which one is complex", input,
                  output);
}

namespace {

// The callback of a plan of that type. If there is none, prints a message and returns null.
Callback* callback_of(const char* function, cufftHandle handle, cufftXtCallbackType type,
                      cufftResult* result) {
    const auto found = plans().find(handle);
    if (found == plans().end() || !found->second.type) {
        *result = no_plan(function, handle);
        return nullptr;
    }
    Plan& plan = found->second;
    const Form kind = form(*plan.type);
    const bool stores = type >= CUFFT_CB_ST_COMPLEX;
    const bool is_real = kind == (stores ? Form::to_real : Form::to_complex);
    const int expected = (stores ? CUFFT_CB_ST_COMPLEX : CUFFT_CB_LD_COMPLEX) + (is_real ? 2 : 0) +
                         (is_double(*plan.type) ? 1 : 0);
    *result = CUFFT_SUCCESS;
    if (type == expected) return stores ? &plan.store : &plan.load;
    *result = refuse(CUFFT_INVALID_TYPE, function,
                     "the callback is of type %d; expected %d for a plan of cufftType %#x",
                     static_cast<int>(type), expected, *plan.type);
    return nullptr;
}

}  // namespace

cufftResult cufftXtSetCallback(cufftHandle plan, void** callbacks, cufftXtCallbackType type,
                               void** caller_infos) {
    if (callbacks == nullptr || *callbacks == nullptr)
        return refuse(CUFFT_INVALID_VALUE, __func__, "the callback is null");
    const std::scoped_lock lock(mutex);
    cufftResult result = CUFFT_SUCCESS;
    if (Callback* const callback = callback_of(__func__, plan, type, &result))
        *callback = {*callbacks, caller_infos != nullptr ? *caller_infos : nullptr};
    return result;
}

cufftResult cufftXtClearCallback(cufftHandle plan, cufftXtCallbackType type) {
    const std::scoped_lock lock(mutex);
    cufftResult result = CUFFT_SUCCESS;
    if (Callback* const callback = callback_of(__func__, plan, type, &result)) *callback = {};
    return result;
}

cufftResult cufftXtSetCallbackSharedSize(cufftHandle plan, cufftXtCallbackType type, size_t bytes) {
    const std::scoped_lock lock(mutex);
    cufftResult result = CUFFT_SUCCESS;
    if (callback_of(__func__, plan, type, &result) != nullptr && bytes > kSharedBytes)
        return refuse(CUFFT_INVALID_VALUE, __func__, "%zu bytes; expected at most %zu", bytes, kSharedBytes);
    return result;
}

cufftResult cufftXtExec(cufftHandle plan, void* input, void* output, int direction) {
    std::optional<cufftType> type;
    {
        const std::scoped_lock lock(mutex);
        const auto found = plans().find(plan);
        if (found == plans().end()) return no_plan(__func__, plan);
        type = found->second.type;
    }
    if (!type)
        return refuse(CUFFT_INVALID_PLAN, __func__, "plan %d has not been made; expected cufftXtMakePlanMany",
                      plan);
    return execute(__func__, plan, *type, input, output,
                   form(*type) == Form::complex ? direction : CUFFT_FORWARD);
}
