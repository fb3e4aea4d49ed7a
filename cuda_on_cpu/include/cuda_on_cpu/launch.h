// How a kernel gets from `kernel<<<grid, block>>>(arguments)` to its threads.
//
// The translator turns the body of every kernel into a closure over its parameters,
//
//     __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }
//     void scale(float* x, float a) { <Kernel object>; ...prepare("x, a", [=]() mutable { x[threadIdx.x] *= a; }, x, a); }
//
// and every launch into a configuration, and a call of that function behind it:
//
//     scale<<<1, 32>>>(x, 2.0f);
//     (::cuda_on_cpu::configuration(1, 32) << (scale(x, 2.0f), ::cuda_on_cpu::Prepared()));
//
// C++ evaluates the left side of << first, just as CUDA evaluates the configuration before the
// arguments. Both may launch other kernels, which are launched before the call of the function
// prepares this one. Overloads, templates, deduced arguments, conversions and function pointers to
// kernels therefore keep working without special treatment.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_on_cpu/atomic_word.h"
#include "cuda_on_cpu/host_memory.h"
#include "cuda_on_cpu/pointers_in.h"
#include "cuda_on_cpu/regions.h"
#include "cuda_on_cpu/rows.h"
#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

// The first argument of __launch_bounds__(max_threads, min_blocks, max_cluster).
template <class... Rest>
constexpr unsigned first_of(unsigned first, Rest...) {
    return first;
}

// True for a user's own program, compiled by the stand-in's `nvcc`: see src/exit_report.hpp.
extern constinit bool own_program;

// A kernel gets an object whose virtual functions are those of the host: see exit_report.hpp.
void note_virtual_functions();

// One argument of a launch, by its bytes in memory.
struct Argument {
    const volatile void* bytes;
    std::size_t size;
    const bool* pointers;  // see pointers_in.h
};

// Calls the kernel function with arguments passed by address, as cudaLaunchKernel does.
template <class... Parameters>
void prepare_from_addresses(void (*function)(Parameters...), void** arguments) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        function(*reinterpret_cast<std::remove_reference_t<Parameters>*>(arguments[I])...);
    }
    (std::index_sequence_for<Parameters...>{});
}

// One parameter in a buffer of arguments; a list ends with a size of 0.
struct ParameterSize {
    std::size_t size;
    std::size_t alignment;
};

// A parameter's type without __restrict__, which is not part of a function's type.
template <class T>
struct Unrestricted {
    using type = std::remove_cv_t<T>;
};
template <class T>
struct Unrestricted<T* __restrict__> {
    using type = T*;
};
template <class T>
struct Unrestricted<T* const __restrict__> {
    using type = T*;
};

// The properties of one kernel (each instantiation of a template is a kernel). Several host threads
// may launch and query it at the same time, so everything that may change is atomic.
class Kernel {
  public:
    // `name` in the compiler's notation of the function; the bounds are those of __launch_bounds__
    // and __cluster_dims__.
    constexpr explicit Kernel(const char* name, unsigned max_threads = 1024, dim3 cluster = dim3(0, 0, 0))
        : pretty_name(name), max_threads_per_block(max_threads), cluster_dims(cluster) {}

    // True when the kernel's function is called only to find its Kernel (kernel_of below).
    bool is_query();
    // The same for a kernel with these parameters. It also stores how to call the kernel later,
    // when only its address is known.
    template <class... Parameters>
    bool is_query_with() {
        if (!is_query()) return false;
        static constexpr ParameterSize kParameters[] = {{sizeof(Parameters), alignof(Parameters)}..., {0, 0}};
        parameters.store(kParameters, MemoryOrder::relaxed);
        constexpr auto kPrepare = [](const void* function, void** arguments) {
            using Function = void (*)(typename Unrestricted<Parameters>::type...);
            prepare_from_addresses(reinterpret_cast<Function>(const_cast<void*>(function)), arguments);
        };
        prepare_untyped.store(kPrepare, MemoryOrder::relaxed);
        return true;
    }

    // For a kernel in a file where some loop polls memory: it may wait for the host, or for a later
    // kernel.
    void may_poll();

    // Copies the closure, checks pointer arguments, and stores both for launch(). `names` are those
    // of the arguments: "x, a".
    template <class Closure, class... Arguments>
    void prepare(const char* names, const Closure& closure, const Arguments&... arguments) {
        prepare_to_run([](const void* prepared) { run_copy(*static_cast<const Closure*>(prepared)); },
                       nullptr, names, closure, arguments...);
    }
    // The same for a kernel whose threads only compute. The closure takes the thread's place.
    template <bool kPlainTypes, class Closure, class... Arguments>
    void prepare_rows(const char* names, const Closure& closure, const Arguments&... arguments) {
        if constexpr (CUDA_ON_CPU_ROWS && kPlainTypes && (true && ... && IsPlain<Arguments>::value)) {
            prepare_to_run(run_thread_of_row<Closure>, run_in_rows<Closure>, names, closure, arguments...);
        } else {
            prepare_to_run(
                [](const void* prepared) {
                    run_copy(*static_cast<const Closure*>(prepared),
                             ThreadPlace{threadIdx, blockIdx, blockDim, gridDim});
                },
                nullptr, names, closure, arguments...);
        }
    }

    // The same for a kernel in regions. The closure takes the threads to run.
    template <bool kPlainTypes, class Closure, class... Arguments>
    void prepare_regions(const char* names, const Closure& closure, const Arguments&... arguments) {
        if constexpr (CUDA_ON_CPU_ROWS && kPlainTypes && (true && ... && IsPlain<Arguments>::value)) {
            prepare_to_run(run_thread_of_regions<Closure>, run_regions<Closure>, names, closure,
                           arguments...);
        } else {
            prepare_to_run(
                [](const void* prepared) {
                    run_copy(*static_cast<const Closure*>(prepared),
                             SingleThread{{blockIdx, blockDim, gridDim}});
                },
                nullptr, names, closure, arguments...);
        }
    }

    const char* pretty_name;
    unsigned max_threads_per_block;
    dim3 cluster_dims;
    Atomic<std::size_t> static_shared = 0;  // set when a block runs
    // Set by cudaFuncSetAttribute; -1: 48 KB less static_shared.
    Atomic<int> max_dynamic_shared = -1;
    Atomic<int> preferred_carveout = -1;
    Atomic<bool> non_portable_cluster = false;
    Atomic<void (*)(const void* function, void** arguments)> prepare_untyped = nullptr;
    Atomic<const ParameterSize*> parameters = nullptr;  // set together with prepare_untyped
    Atomic<unsigned> times_repeated = 0;                // see order_check.hpp
    Atomic<bool> polls = false;

  private:
    template <class T>
    void check_argument(int position, const T& argument) {
        if constexpr (std::is_pointer_v<T>) {
            using Pointed = std::remove_cv_t<std::remove_pointer_t<T>>;
            // A handle of a graph is for a kernel that launches it.
            if constexpr (!std::is_function_v<Pointed> && !std::is_same_v<Pointed, CUgraphExec_st>)
                check_pointer(position, argument);
        } else if constexpr (std::is_class_v<T>) {
            if constexpr (std::is_polymorphic_v<T>) note_virtual_functions();
        }
    }
    void check_pointer(int position, const volatile void* pointer);
    template <class Closure, class... Arguments>
    void prepare_to_run(void (*run)(const void*), RunBlock run_block, const char* names,
                        const Closure& closure, const Arguments&... arguments) {
        const UsesHostMemory for_closure;  // a kernel may launch it
        int position = 0;
        const Argument list[] = {
            {__builtin_addressof(arguments), sizeof arguments, pointers_in<Arguments>()}...,
            {nullptr, 0, nullptr}};
        (check_argument(++position, arguments), ...);
        prepare_erased(
            new Closure(closure), run, run_block,
            [](const void* prepared) { delete static_cast<const Closure*>(prepared); }, names, list,
            sizeof...(arguments));
    }
    // Takes ownership of the closure.
    void prepare_erased(const void* closure, void (*run)(const void*), RunBlock run_block,
                        void (*destroy)(const void*), const char* names, const Argument* arguments,
                        std::size_t count);
};

struct LaunchConfiguration {
    dim3 grid;
    dim3 block;
    std::size_t dynamic_shared = 0;
    cudaStream_t stream = nullptr;
    bool cooperative = false;
    // Zeros: not given at the launch.
    dim3 cluster = dim3(0, 0, 0);
    // Programmatic dependent launch: the grid may begin before the stream's previous one has ended.
    bool programmatic = false;
    // The number of the launch, and that of the launch before whose end it may begin; 0: none.
    std::uint64_t number = 0;
    std::uint64_t beside = 0;
};

// Launches what the last call of a kernel function prepared. Errors are reported as on a GPU,
// through cudaGetLastError().
cudaError_t launch_prepared(const LaunchConfiguration& configuration);

inline LaunchConfiguration configuration(dim3 grid, dim3 block, std::size_t dynamic_shared = 0,
                                         cudaStream_t stream = nullptr) {
    return {.grid = grid, .block = block, .dynamic_shared = dynamic_shared, .stream = stream};
}
struct Prepared {};
inline void operator<<(const LaunchConfiguration& configuration, Prepared) {
    static_cast<void>(launch_prepared(configuration));
}

// Returns the Kernel of a function pointer: calls the function, with zeroed arguments, in a mode in
// which it only returns its Kernel.
void begin_query();
Kernel* end_query();

template <class... Parameters>
Kernel* kernel_of(void (*function)(Parameters...)) {
    if (function == nullptr) return nullptr;
    begin_query();
    [function]<std::size_t... I>(std::index_sequence<I...>) {
        struct Storage {
            alignas(64) unsigned char bytes[sizeof...(Parameters) == 0 ? 1 : 4096];
        };
        [[maybe_unused]] static constinit thread_local Storage zeros{};
        static_assert((true && ... && (sizeof(Parameters) <= sizeof zeros.bytes)),
                      "a kernel takes at most 4 KB");
        function(*reinterpret_cast<std::remove_reference_t<Parameters>*>(zeros.bytes)...);
    }
    (std::index_sequence_for<Parameters...>{});
    return end_query();
}

// Returns the Kernel of the function at an address; null if it is not a kernel. The kernel's
// parameters are available from then on (prepare_untyped).
Kernel* kernel_at(const void* function);

}  // namespace cuda_on_cpu
