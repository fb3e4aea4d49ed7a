#include "curand.h"

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>

#include "generators.hpp"
#include "library_arguments.hpp"
#include "stream.hpp"

using namespace cuda_on_cpu;
using namespace cuda_on_cpu::random;

struct curandGenerator_st {
    Settings settings;
    bool for_host = false;
    cudaStream_t stream = nullptr;
    // Null: settings have changed.
    std::shared_ptr<Generator> generator{};
};

namespace {

std::mutex mutex;

std::set<curandGenerator_t>& generators() {
    static auto* alive = new std::set<curandGenerator_t>;  // usable until the last static destructor
    return *alive;
}

[[gnu::format(printf, 3, 4)]] curandStatus_t refuse(curandStatus_t status, const char* function,
                                                    const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[512];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (curandStatus_t %d)\n", function, message,
                 static_cast<int>(status));
    return status;
}

bool is_alive(curandGenerator_t generator) {
    const std::scoped_lock lock(mutex);
    return generators().contains(generator);
}

curandStatus_t no_generator(const char* function) {
    return refuse(CURAND_STATUS_NOT_INITIALIZED, function,
                  "the generator is not one of curandCreateGenerator (any more)");
}

bool is_quasi(const Settings& settings) {
    return settings.type >= CURAND_RNG_QUASI_DEFAULT;
}

curandStatus_t create(const char* function, curandGenerator_t* generator, curandRngType_t type,
                      bool for_host) {
    if (generator == nullptr) return refuse(CURAND_STATUS_NOT_INITIALIZED, function, "generator is null");
    switch (type) {
        case CURAND_RNG_PSEUDO_DEFAULT:
        case CURAND_RNG_PSEUDO_XORWOW:
        case CURAND_RNG_PSEUDO_MRG32K3A:
        case CURAND_RNG_PSEUDO_MTGP32:
        case CURAND_RNG_PSEUDO_MT19937:
        case CURAND_RNG_PSEUDO_PHILOX4_32_10:
        case CURAND_RNG_QUASI_DEFAULT:
        case CURAND_RNG_QUASI_SOBOL32:
            break;
        default:
            return refuse(
                CURAND_STATUS_TYPE_ERROR, function,
                "the generator's type is %d; expected XORWOW, MRG32K3A, MTGP32, MT19937, PHILOX4_32_10 or "
                "SOBOL32, the types that exist here",
                static_cast<int>(type));
    }
    *generator = new curandGenerator_st{.settings = {.type = type}, .for_host = for_host};
    const std::scoped_lock lock(mutex);
    generators().insert(*generator);
    return CURAND_STATUS_SUCCESS;
}

std::size_t size_of(Kind kind) {
    return kind == Kind::uniform_double || kind == Kind::normal_double || kind == Kind::log_normal_double ? 8
                                                                                                          : 4;
}

curandStatus_t generate(const char* function, curandGenerator_t generator, Request request) {
    if (!is_alive(generator)) return no_generator(function);
    const Settings& settings = generator->settings;
    const bool pairs = request.kind == Kind::normal || request.kind == Kind::normal_double ||
                       request.kind == Kind::log_normal || request.kind == Kind::log_normal_double;
    if (pairs && request.count % 2 != 0 && !is_quasi(settings) &&
        settings.type != CURAND_RNG_PSEUDO_PHILOX4_32_10)
        return refuse(CURAND_STATUS_LENGTH_NOT_MULTIPLE, function,
                      "the count is %zu; expected an even number", request.count);
    if (is_quasi(settings) && request.count % settings.dimensions != 0)
        return refuse(CURAND_STATUS_LENGTH_NOT_MULTIPLE, function,
                      "the count is %zu; expected a multiple of %u dimensions", request.count,
                      settings.dimensions);
    if (generator->generator == nullptr) generator->generator = make_generator(settings);
    if (request.count == 0) return CURAND_STATUS_SUCCESS;
    if (generator->for_host) {
        generator->generator->generate(request);
        return CURAND_STATUS_SUCCESS;
    }
    const auto work = [function, request, source = generator->generator] {
        const Region output{
            .name = "the output", .pointer = request.output, .bytes = request.count * size_of(request.kind)};
        // Reported at the next synchronisation.
        if (!reachable(function, output)) return cudaSuccess;
        source->generate(request);
        note_written(output);
        return cudaSuccess;
    };
    return submit(generator->stream, function, work) == cudaSuccess ? CURAND_STATUS_SUCCESS
                                                                    : CURAND_STATUS_LAUNCH_FAILURE;
}

}  // namespace

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
    return create(__func__, generator, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
    return create(__func__, generator, type, true);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
    const std::scoped_lock lock(mutex);
    if (generators().erase(generator) == 0) return CURAND_STATUS_NOT_INITIALIZED;
    delete generator;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetVersion(int* version) {
    if (version == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr || type > PATCH_LEVEL) return CURAND_STATUS_OUT_OF_RANGE;
    constexpr int kVersion[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH};
    *value = kVersion[type];
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
    if (!is_alive(generator)) return no_generator(__func__);
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
    if (!is_alive(generator)) return no_generator(__func__);
    if (is_quasi(generator->settings))
        return refuse(CURAND_STATUS_TYPE_ERROR, __func__, "a quasirandom generator has no seed");
    generator->settings.seed = seed;
    generator->generator = nullptr;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
    if (!is_alive(generator)) return no_generator(__func__);
    const curandRngType_t type = generator->settings.type;
    if (type == CURAND_RNG_PSEUDO_MTGP32 || type == CURAND_RNG_PSEUDO_MT19937)
        return refuse(CURAND_STATUS_TYPE_ERROR, __func__, "a Mersenne Twister has no offset");
    generator->settings.offset = offset;
    generator->generator = nullptr;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t ordering) {
    if (!is_alive(generator)) return no_generator(__func__);
    const bool quasi = ordering == CURAND_ORDERING_QUASI_DEFAULT;
    const bool pseudo = ordering >= CURAND_ORDERING_PSEUDO_BEST &&
                        ordering <= CURAND_ORDERING_PSEUDO_DYNAMIC &&
                        ordering != CURAND_ORDERING_PSEUDO_SEEDED;
    if (is_quasi(generator->settings) ? !quasi : !pseudo)
        return refuse(CURAND_STATUS_OUT_OF_RANGE, __func__,
                      "the ordering is %d, which this generator does not have here",
                      static_cast<int>(ordering));
    generator->settings.ordering = ordering;
    generator->generator = nullptr;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned dimensions) {
    if (!is_alive(generator)) return no_generator(__func__);
    if (!is_quasi(generator->settings))
        return refuse(CURAND_STATUS_TYPE_ERROR, __func__, "a pseudorandom generator has no dimensions");
    if (dimensions == 0 || dimensions > kSobolDimensions)
        return refuse(CURAND_STATUS_OUT_OF_RANGE, __func__, "the dimensions are %u; expected 1 to %u",
                      dimensions, kSobolDimensions);
    generator->settings.dimensions = dimensions;
    generator->generator = nullptr;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
    if (!is_alive(generator)) return no_generator(__func__);
    if (generator->generator == nullptr) generator->generator = make_generator(generator->settings);
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* output, size_t count) {
    return generate(__func__, generator, {Kind::integer, output, count});
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* output, size_t count) {
    return generate(__func__, generator, {Kind::uniform, output, count});
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* output, size_t count) {
    return generate(__func__, generator, {Kind::uniform_double, output, count});
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* output, size_t count, float mean,
                                    float stddev) {
    return generate(__func__, generator, {Kind::normal, output, count, mean, stddev});
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* output, size_t count,
                                          double mean, double stddev) {
    return generate(__func__, generator, {Kind::normal_double, output, count, mean, stddev});
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* output, size_t count, float mean,
                                       float stddev) {
    return generate(__func__, generator, {Kind::log_normal, output, count, mean, stddev});
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* output, size_t count,
                                             double mean, double stddev) {
    return generate(__func__, generator, {Kind::log_normal_double, output, count, mean, stddev});
}

curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* output, size_t count,
                                     double lambda) {
    if (!(lambda > 0))
        return refuse(CURAND_STATUS_OUT_OF_RANGE, __func__, "lambda is %g; expected more than 0", lambda);
    return generate(__func__, generator, {Kind::poisson, output, count, lambda});
}

// The library owns the table; programs only copy from it.
curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t* vectors[],
                                           curandDirectionVectorSet_t set) {
    if (vectors == nullptr || set != CURAND_DIRECTION_VECTORS_32_JOEKUO6)
        return refuse(CURAND_STATUS_OUT_OF_RANGE, __func__,
                      "the set is %d; expected CURAND_DIRECTION_VECTORS_32_JOEKUO6", static_cast<int>(set));
    *vectors = reinterpret_cast<curandDirectionVectors32_t*>(
        const_cast<std::uint32_t*>(sobol_directions32().data()));
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t* vectors[],
                                           curandDirectionVectorSet_t set) {
    if (vectors == nullptr || set != CURAND_DIRECTION_VECTORS_64_JOEKUO6)
        return refuse(CURAND_STATUS_OUT_OF_RANGE, __func__,
                      "the set is %d; expected CURAND_DIRECTION_VECTORS_64_JOEKUO6", static_cast<int>(set));
    *vectors = reinterpret_cast<curandDirectionVectors64_t*>(
        const_cast<std::uint64_t*>(sobol_directions64().data()));
    return CURAND_STATUS_SUCCESS;
}
