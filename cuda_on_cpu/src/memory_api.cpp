// cudaMalloc, cudaMemcpy and similar functions.
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "capture.hpp"
#include "child_grids.hpp"
#include "copies.hpp"
#include "cuda_on_cpu/kernel_api.h"
#include "cuda_runtime_api.h"
#include "current_device.hpp"
#include "device.hpp"
#include "device_variables.hpp"
#include "devices.hpp"
#include "errors.hpp"
#include "exit_report.hpp"
#include "fault.hpp"
#include "host_shadows.hpp"
#include "managed_watch.hpp"
#include "memory.hpp"
#include "memory_operations.hpp"
#include "memory_pools.hpp"
#include "observer.hpp"
#include "stream.hpp"
#include "variable_gaps.hpp"

namespace cuda_on_cpu {
namespace {

double gibibytes(std::size_t bytes) {
    return static_cast<double>(bytes) / (1 << 30);
}

cudaError_t allocate_for(const char* function, void** pointer, std::size_t bytes, cudaMemoryType type) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (pointer == nullptr) return refuse(cudaErrorInvalidValue, function, "the pointer to set is null");
    if (const cudaError_t error = check_no_capture(function, Forbidden::by_strict_captures);
        error != cudaSuccess) {
        return error;
    }
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (!in_kernel()) {
        note_host_thread();
        if (must_be_refused(RefusedCall::allocation))
            return refuse(cudaErrorMemoryAllocation, function, "%s", kRefusedForATest);
    }
    if (type != cudaMemoryTypeDevice) expect_concurrency();
    *pointer = allocate(bytes, type);
    if (*pointer == nullptr) {
        if (bytes <= free_bytes()) {
            return refuse(
                cudaErrorMemoryAllocation, function,
                "%zu bytes: the system gives no more pages to this program, which has %zu allocations", bytes,
                live_allocations().size());
        }
        return refuse(cudaErrorMemoryAllocation, function,
                      "%zu bytes (%.3g GiB) do not fit: of this machine's %.3g GiB, %.3g GiB are free", bytes,
                      gibibytes(bytes), gibibytes(total_bytes()), gibibytes(free_bytes()));
    }
    return cudaSuccess;
}

cudaError_t release_for(const char* function, void* pointer, cudaMemoryType type) {
    if (pointer == nullptr) return cudaSuccess;
    if (!in_kernel()) {
        const auto allocation = several_devices() ? find_allocation(pointer) : std::nullopt;
        if (allocation && type == cudaMemoryTypeDevice && allocation->type == cudaMemoryTypeDevice) {
            wait_for_streams_of(allocation->device);
        } else {
            wait_for_all_streams();
        }
    }
    if (type == cudaMemoryTypeDevice && release_to_graph(pointer)) return cudaSuccess;
    return set_last_error(release_any(pointer, type, function));
}

// One side of a copy of `height` rows. As on a GPU, a device pointer must point to memory of
// CUDA's, pinned host memory included, and the rows must lie inside its allocation. Host memory
// that was not allocated by CUDA cannot be checked.
struct Side {
    const char* name;
    const void* pointer;
    std::size_t pitch;
    bool on_device;
};

cudaError_t check_side(const char* function, const Side& side, std::size_t width, std::size_t height) {
    if (side.pointer == nullptr) return refuse(cudaErrorInvalidValue, function, "%s is null", side.name);
    const std::size_t extent = bytes_of({.row_bytes = width, .pitch = side.pitch, .rows = height});
    const auto allocation = find_allocation(side.pointer);
    if (!allocation && !side.on_device) return cudaSuccess;
    if (!device_accessible(side.pointer, extent)) {
        if (is_live_array(static_cast<cudaArray_const_t>(side.pointer))) {
            return refuse(cudaErrorInvalidValue, function,
                          "%s = %p is a CUDA array; expected a pointer, or cudaMemcpy2DToArray() and "
                          "cudaMemcpy2DFromArray()",
                          side.name, side.pointer);
        }
        const std::string where = describe_address(side.pointer);
        if (const std::string shadow = describe_shadow(side.pointer); !shadow.empty())
            return refuse(cudaErrorInvalidValue, function, "%s = %p is %s", side.name, side.pointer,
                          shadow.c_str());
        return refuse(cudaErrorInvalidValue, function, "%s = %p, %zu bytes: %s%s", side.name, side.pointer,
                      extent, allocation ? "not inside one live allocation; it starts " : "not device memory",
                      where.c_str());
    }
    return cudaSuccess;
}

// Checks both sides of a copy, as far as possible.
cudaError_t check_copy(const char* function, const Copy& c) {
    if (c.kind < cudaMemcpyHostToHost || c.kind > cudaMemcpyDefault) {
        return refuse(cudaErrorInvalidMemcpyDirection, function, "kind %d", static_cast<int>(c.kind));
    }
    if (c.width == 0 || c.height == 0) return cudaSuccess;
    if (c.to_pitch < c.width || c.from_pitch < c.width) {
        return refuse(cudaErrorInvalidPitchValue, function, "pitches %zu and %zu for rows of %zu bytes",
                      c.to_pitch, c.from_pitch, c.width);
    }
    const bool to_device = c.kind == cudaMemcpyHostToDevice || c.kind == cudaMemcpyDeviceToDevice;
    const bool from_device = c.kind == cudaMemcpyDeviceToHost || c.kind == cudaMemcpyDeviceToDevice;
    for (const Side& side : {Side{"destination", c.to, c.to_pitch, to_device},
                             Side{"source", c.from, c.from_pitch, from_device}}) {
        if (const cudaError_t error = check_side(function, side, c.width, c.height); error != cudaSuccess)
            return error;
    }
    return cudaSuccess;
}

void carry_out(const Copy& c) {
    const bool to_host =
        c.kind == cudaMemcpyDeviceToHost || (c.kind == cudaMemcpyDefault && plain_host_memory(c.to));
    for (std::size_t row = 0; row < c.height; ++row) {
        char* const to = static_cast<char*>(c.to) + row * c.to_pitch;
        const char* const from = static_cast<const char*>(c.from) + row * c.from_pitch;
        if (!copy_variable(to, from, c.width)) {
            const CopyWatch watch(to, from, c.width);
            std::memmove(to, from, c.width);
        }
        if (to_host) look_at_copy(to, c.width);
        if (memory_observer != nullptr) memory_observer->memory_written(to, c.width);
    }
}

// Checks again, because the memory may have been freed since the copy was issued.
cudaError_t carry_out_later(const char* function, const Copy& c) {
    if (const cudaError_t error = check_copy(function, c); error != cudaSuccess) return error;
    carry_out(c);
    return cudaSuccess;
}

// Is it host memory that was not allocated by CUDA? An address in the program's image may be a
// __device__ variable, so the copy's kind decides.
bool is_pageable(const void* pointer, bool said_to_be_host) {
    return !find_allocation(pointer) && (said_to_be_host || !device_accessible(pointer, 1));
}

bool is_device_memory(const void* pointer) {
    const auto allocation = find_allocation(pointer);
    return allocation && allocation->type == cudaMemoryTypeDevice;
}

// Does the call return only when the copy is done? `returns_early` as in copy().
bool host_waits_for(const Copy& c, bool returns_early) {
    const bool to_host = c.kind == cudaMemcpyDeviceToHost || c.kind == cudaMemcpyHostToHost;
    const bool inside_device =
        c.kind == cudaMemcpyDeviceToDevice ||
        (c.kind == cudaMemcpyDefault && is_device_memory(c.to) && is_device_memory(c.from));
    return is_pageable(c.to, to_host) || (!returns_early && !inside_device);
}

void tell_observer(const Copy& c, bool returns_early) {
    if (launch_observer == nullptr || in_kernel()) return;
    const bool to_host = c.kind == cudaMemcpyDeviceToHost ||
                         (c.kind == cudaMemcpyDefault && is_device_memory(c.from) && !is_device_memory(c.to));
    if (to_host && host_waits_for(c, returns_early)) launch_observer->host_awaits_copy(c.width * c.height);
}

// Copies a pageable source to a staging buffer, because it must be read before the call returns.
Work with_staged_source(const char* function, Copy c) {
    auto staged = std::make_shared<std::vector<char>>(c.width * c.height);
    carry_out({staged->data(), c.width, c.from, c.from_pitch, c.width, c.height, cudaMemcpyHostToHost});
    c.from = staged->data();
    c.from_pitch = c.width;
    return [=, owner = std::move(staged)] { return carry_out_later(function, c); };
}

// `returns_early`: for the asynchronous functions, and for copies inside the device.
cudaError_t copy(const char* function, const Copy& c, cudaStream_t stream, bool returns_early) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (const cudaError_t error = check_copy(function, c); error != cudaSuccess) return error;
    if (c.width == 0 || c.height == 0) return cudaSuccess;
    if (!in_kernel() && must_be_refused(RefusedCall::copy))
        return refuse(cudaErrorInvalidValue, function, "%s", kRefusedForATest);
    if (in_kernel() && !returns_early)
        return refuse(cudaErrorNotPermitted, function, "not in a kernel; expected the asynchronous form");
    tell_observer(c, returns_early);
    if (c.kind == cudaMemcpyHostToDevice && own_program) {
        open_changed_pages();
        look_for_virtual_functions(c.from, c.width);
    }
    const auto carry_out_now = [=] {
        carry_out(c);
        return cudaSuccess;
    };
    if (in_kernel()) return submit(stream, function, StreamOperation{.work = carry_out_now, .launch = {}});
    // submit() would check again: if another host thread issued work in between, it would queue the
    // copy, and this call would return before the copy is done.
    if (const WorkAtOnce permitted; permitted && !somebody_captures()) {
        if (const cudaError_t error = check_issue(stream, function); error != cudaSuccess) return error;
        const DeviceScope scope(device_of(stream));
        const cudaError_t error = carry_out_now();
        // A copy to the device, too, begins when the kernels before it have ended.
        if (!returns_early || host_waits_for(c, returns_early)) forget_changed_pages();
        return set_last_error(error);
    }
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, function, capture); error != cudaSuccess) return error;
    StreamOperation operation;
    operation.work = [=] { return carry_out_later(function, c); };
    const bool from_host = c.kind == cudaMemcpyHostToDevice || c.kind == cudaMemcpyHostToHost;
    if (host_waits_for(c, returns_early)) {
        operation.host_waits = true;
    } else if (is_pageable(c.from, from_host) && capture == nullptr) {
        operation.work = with_staged_source(function, c);
    }
    return submit(stream, function, std::move(operation));
}

cudaError_t check_memset(const char* function, const cudaMemsetParams& p) {
    if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4)
        return refuse(cudaErrorInvalidValue, function, "elements of %u bytes; expected 1, 2 or 4",
                      p.elementSize);
    const std::size_t width = product(p.width, p.elementSize);
    if (width == 0 || p.height == 0) return cudaSuccess;
    if (p.pitch < width && p.height > 1)
        return refuse(cudaErrorInvalidPitchValue, function, "pitch %zu for rows of %zu bytes", p.pitch,
                      width);
    return check_side(function, {"destination", p.dst, p.pitch, true}, width, p.height);
}

void carry_out(const cudaMemsetParams& p) {
    const std::size_t width = p.width * p.elementSize;
    for (std::size_t row = 0; row < p.height; ++row) {
        char* const to = static_cast<char*>(p.dst) + row * p.pitch;
        if (several_devices() && in_program(to)) {
            std::vector<char> values(width);
            for (std::size_t i = 0; i < width; i += p.elementSize)
                std::memcpy(&values[i], &p.value, p.elementSize);
            if (!copy_variable(to, values.data(), width)) std::memcpy(to, values.data(), width);
        } else if (p.elementSize == 1) {
            std::memset(to, static_cast<int>(p.value), width);
        } else {
            for (std::size_t i = 0; i < width; i += p.elementSize)
                std::memcpy(to + i, &p.value, p.elementSize);
        }
        if (memory_observer != nullptr) memory_observer->memory_written(to, width);
    }
}

// The host waits for a synchronous memset only if it shares the memory with the device.
cudaError_t set(const char* function, void* pointer, std::size_t pitch, int value, std::size_t width,
                std::size_t height, cudaStream_t stream, bool returns_early) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (width == 0 || height == 0) return cudaSuccess;
    if (pitch < width)
        return refuse(cudaErrorInvalidPitchValue, function, "pitch %zu for rows of %zu bytes", pitch, width);
    StreamOperation operation;
    if (const cudaError_t error = memset_operation(
            function, {pointer, pitch, static_cast<unsigned>(value), 1, width, height}, &operation);
        error != cudaSuccess) {
        return error;
    }
    const auto allocation = find_allocation(pointer);
    operation.host_waits = !returns_early && allocation && allocation->type != cudaMemoryTypeDevice;
    return submit(stream, function, std::move(operation));
}

cudaError_t check_symbol(const char* function, const void* symbol, std::size_t size, std::size_t bytes,
                         std::size_t offset) {
    if (offset <= size && bytes <= size - offset) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, function, "bytes %zu to %zu of the symbol%s, which has %zu bytes",
                  offset, offset + bytes, quoted_name_of_variable(symbol).c_str(), size);
}

// A symbol is on the device, so three kinds fit. A copy of nothing may have any, as on an H200.
cudaError_t check_symbol_kind(const char* function, std::size_t bytes, cudaMemcpyKind kind,
                              cudaMemcpyKind with_host, const char* name_with_host) {
    if (bytes == 0 || kind == with_host || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault)
        return cudaSuccess;
    const char* const name = kind == cudaMemcpyHostToHost     ? " (cudaMemcpyHostToHost)"
                             : kind == cudaMemcpyHostToDevice ? " (cudaMemcpyHostToDevice)"
                             : kind == cudaMemcpyDeviceToHost ? " (cudaMemcpyDeviceToHost)"
                                                              : "";
    return refuse(cudaErrorInvalidMemcpyDirection, function,
                  "kind %d%s; expected %s, cudaMemcpyDeviceToDevice or cudaMemcpyDefault",
                  static_cast<int>(kind), name, name_with_host);
}

}  // namespace

std::size_t product(std::size_t a, std::size_t b) {
    std::size_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? kTooManyBytes : result;
}

std::size_t bytes_of(const Extent& extent) {
    std::size_t sum = extent.row_bytes;
    for (const std::size_t more :
         {product(extent.rows - 1, extent.pitch), product(extent.slices - 1, extent.slice_bytes)}) {
        if (__builtin_add_overflow(sum, more, &sum)) return kTooManyBytes;
    }
    return sum;
}

cudaError_t copy_operation(const char* function, const Copy& c, StreamOperation* operation) {
    if (const cudaError_t error = check_copy(function, c); error != cudaSuccess) return error;
    *operation = {.work = [=] { return carry_out_later(function, c); }, .launch = {}};
    return cudaSuccess;
}

cudaError_t copy_operation(const char* function, const cudaMemcpy3DParms& p, StreamOperation* operation) {
    if (p.srcArray != nullptr || p.dstArray != nullptr)
        return refuse(cudaErrorNotSupported, function, "a copy of a CUDA array in a graph");
    if (p.extent.width == 0 || p.extent.height == 0 || p.extent.depth == 0)
        return refuse(cudaErrorInvalidValue, function,
                      "an extent of (%zu, %zu, %zu); expected 1 or more each", p.extent.width,
                      p.extent.height, p.extent.depth);
    std::vector<Copy> slices;
    const auto place = [](const cudaPitchedPtr& memory, const cudaPos& position, std::size_t slice) {
        return static_cast<char*>(memory.ptr) +
               ((position.z + slice) * memory.ysize + position.y) * memory.pitch + position.x;
    };
    for (std::size_t z = 0; z < p.extent.depth; ++z) {
        slices.push_back({place(p.dstPtr, p.dstPos, z), p.dstPtr.pitch, place(p.srcPtr, p.srcPos, z),
                          p.srcPtr.pitch, p.extent.width, p.extent.height, p.kind});
        if (const cudaError_t error = check_copy(function, slices.back()); error != cudaSuccess) return error;
    }
    operation->work = [=] {
        for (const Copy& slice : slices) {
            if (const cudaError_t error = carry_out_later(function, slice); error != cudaSuccess)
                return error;
        }
        return cudaSuccess;
    };
    operation->type = cudaGraphNodeTypeMemcpy;
    return cudaSuccess;
}

cudaError_t memset_operation(const char* function, const cudaMemsetParams& params,
                             StreamOperation* operation) {
    if (const cudaError_t error = check_memset(function, params); error != cudaSuccess) return error;
    operation->work = [=] {
        if (const cudaError_t error = check_memset(function, params); error != cudaSuccess) return error;
        carry_out(params);
        return cudaSuccess;
    };
    operation->type = cudaGraphNodeTypeMemset;
    return cudaSuccess;
}

// A symbol is the variable itself, not its address in another variable.
cudaError_t check_symbol_place(const char* function, const volatile void* symbol) {
    if (in_program(const_cast<const void*>(symbol))) return cudaSuccess;
    return refuse(cudaErrorInvalidSymbol, function,
                  "the symbol is not a __device__ variable; expected the variable by its name, as in "
                  "cudaMemcpyToSymbol(x, ...), and not &x, x + 1 or another pointer");
}

cudaError_t copy_to_symbol(void* symbol, std::size_t size, const void* from, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool returns_early) {
    const char* const function = returns_early ? "cudaMemcpyToSymbolAsync" : "cudaMemcpyToSymbol";
    if (const cudaError_t error = check_symbol_place(function, symbol); error != cudaSuccess) return error;
    if (const cudaError_t error = check_symbol(function, symbol, size, bytes, offset); error != cudaSuccess)
        return error;
    if (const cudaError_t error =
            check_symbol_kind(function, bytes, kind, cudaMemcpyHostToDevice, "cudaMemcpyHostToDevice");
        error != cudaSuccess)
        return error;
    note_variable(function, symbol, size, false);
    return copy(function, {static_cast<char*>(symbol) + offset, bytes, from, bytes, bytes, 1, kind}, stream,
                returns_early);
}

cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                             bool returns_early) {
    const char* const function = returns_early ? "cudaMemcpyFromSymbolAsync" : "cudaMemcpyFromSymbol";
    if (const cudaError_t error = check_symbol_place(function, symbol); error != cudaSuccess) return error;
    if (const cudaError_t error = check_symbol(function, symbol, size, bytes, offset); error != cudaSuccess)
        return error;
    if (const cudaError_t error =
            check_symbol_kind(function, bytes, kind, cudaMemcpyDeviceToHost, "cudaMemcpyDeviceToHost");
        error != cudaSuccess)
        return error;
    note_variable(function, const_cast<void*>(symbol), size, true);
    return copy(function, {to, bytes, static_cast<const char*>(symbol) + offset, bytes, bytes, 1, kind},
                stream, returns_early);
}

cudaError_t check_copied(const char* function, const char* name, const void* pointer, bool on_device,
                         std::size_t bytes) {
    return check_side(function, {name, pointer, bytes, on_device}, bytes, 1);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

namespace {

// All memory is host memory here, so nothing is moved; only the errors of a GPU are reported.
cudaError_t check_prefetch(const char* function, const void* pointer, std::size_t bytes,
                           cudaMemLocation location, unsigned flags) {
    if (flags != 0) return refuse(cudaErrorInvalidValue, function, "flags %u; expected 0", flags);
    if (location.type < cudaMemLocationTypeDevice || location.type > cudaMemLocationTypeHostNumaCurrent)
        return refuse(cudaErrorInvalidValue, function, "location of type %d",
                      static_cast<int>(location.type));
    if (location.type == cudaMemLocationTypeDevice) {
        if (const cudaError_t error = expect_device(function, location.id); error != cudaSuccess)
            return error;
    }
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->type != cudaMemoryTypeManaged)
        return refuse(cudaErrorInvalidValue, function, "pointer %p is not managed memory", pointer);
    if (bytes == 0 || !device_accessible(pointer, bytes)) {
        return refuse(cudaErrorInvalidValue, function,
                      "%zu bytes from %p; expected 1 or more, inside %zu bytes", bytes, pointer,
                      allocation->size);
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
    static constexpr std::size_t kPitch = 512;
    if (pitch == nullptr) return refuse(cudaErrorInvalidValue, __func__, "pitch is null");
    *pitch = product(width / kPitch + (width % kPitch == 0 ? 0 : 1), kPitch);
    const std::size_t bytes = product(*pitch, height);
    if (bytes == kTooManyBytes)
        return refuse(cudaErrorInvalidValue, __func__, "%zu rows of %zu bytes; no memory holds them", height,
                      width);
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture != nullptr) {
        if (pointer == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the pointer to set is null");
        StreamOperation operation;
        const cudaError_t error = graph_allocation(__func__, bytes, pointer, &operation);
        return error != cudaSuccess ? error : submit(stream, __func__, std::move(operation));
    }
    const cudaError_t error = allocate_for(__func__, pointer, bytes, cudaMemoryTypeDevice);
    if (error == cudaSuccess && *pointer != nullptr) note_pool_allocation(nullptr, *pointer, bytes);
    return error;
}

cudaError_t cudaFree(void* pointer) {
    runtime_in_use = true;
    if (pointer == nullptr) context_made_by_runtime = true;
    return release_for(__func__, pointer, cudaMemoryTypeDevice);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (pointer == nullptr) return cudaSuccess;
    if (capture != nullptr) {
        StreamOperation operation;
        const cudaError_t error = graph_release(__func__, pointer, &operation);
        return error != cudaSuccess ? error : submit(stream, __func__, std::move(operation));
    }
    const auto release_now = [=] {
        if (release_to_graph(pointer)) return cudaSuccess;
        return set_last_error(release_any(pointer, cudaMemoryTypeDevice, "cudaFreeAsync"));
    };
    return submit(stream, __func__, StreamOperation{.work = release_now, .launch = {}});
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, unsigned) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaFreeHost(void* pointer) {
    return release_for(__func__, pointer, cudaMemoryTypeHost);
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
    if (pointer == nullptr || bytes == 0) {
        return refuse(cudaErrorInvalidValue, __func__, "pointer %p, %zu bytes", pointer, bytes);
    }
    if (find_allocation(pointer)) {
        return refuse(cudaErrorHostMemoryAlreadyRegistered, __func__, "pointer %p is known already", pointer);
    }
    register_host(pointer, bytes);
    expect_concurrency();
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
    wait_for_all_streams();
    if (unregister_host(pointer)) return cudaSuccess;
    return refuse(cudaErrorHostMemoryNotRegistered, __func__, "pointer %p", pointer);
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned) {
    if (device_pointer == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the pointer to set is null");
    const auto allocation = find_allocation(host_pointer);
    if (!allocation || allocation->freed || allocation->type == cudaMemoryTypeDevice) {
        return refuse(cudaErrorInvalidValue, __func__, "pointer %p is not pinned", host_pointer);
    }
    *device_pointer = host_pointer;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    if (attributes == nullptr) return refuse(cudaErrorInvalidValue, __func__, "attributes is null");
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed) {
        *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, const_cast<void*>(pointer)};
        return cudaSuccess;
    }
    auto* address = const_cast<void*>(pointer);
    *attributes = {allocation->type, allocation->device, address,
                   allocation->type == cudaMemoryTypeDevice ? nullptr : address};
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return copy(__func__, {to, bytes, from, bytes, bytes, 1, kind}, nullptr, false);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return copy(__func__, {to, bytes, from, bytes, bytes, 1, kind}, stream, true);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
    return copy(__func__, {to, to_pitch, from, from_pitch, width, height, kind}, nullptr, false);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
    return copy(__func__, {to, to_pitch, from, from_pitch, width, height, kind}, stream, true);
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
    return set(__func__, pointer, bytes, value, bytes, 1, nullptr, false);
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t stream) {
    return set(__func__, pointer, bytes, value, bytes, 1, stream, true);
}

cudaError_t cudaMemset2D(void* pointer, std::size_t pitch, int value, std::size_t width, std::size_t height) {
    return set(__func__, pointer, pitch, value, width, height, nullptr, false);
}

cudaError_t cudaMemset2DAsync(void* pointer, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
    return set(__func__, pointer, pitch, value, width, height, stream, true);
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture != nullptr)
        return refuse(cudaErrorNotSupported, __func__, "prefetch in a stream that captures");
    if (const cudaError_t error = check_prefetch(__func__, pointer, bytes, location, flags);
        error != cudaSuccess) {
        return error;
    }
    return submit(
        stream, __func__,
        StreamOperation{.work = [] { return cudaSuccess; }, .type = cudaGraphNodeTypeEmpty, .launch = {}});
}
