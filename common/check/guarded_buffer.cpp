#include "common/check/guarded_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/check/check.hpp"

namespace course::detail {
namespace {

// `count` bytes of a guard, from byte `begin` of the memory on.
std::vector<std::byte> guard_at(std::size_t begin, std::size_t count, std::span<const std::byte> guard) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i)
        bytes[i] = guard[(begin + i) % guard.size()];
    return bytes;
}

// Describes which bytes of a guard are not as `expected`; `signed_offset(i)` is the distance of
// byte i from the payload.
template <class Offset>
std::string describe(const std::vector<std::byte>& guard, const std::vector<std::byte>& expected,
                     const char* side, Offset signed_offset) {
    std::size_t changed = 0;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < guard.size(); ++i) {
        if (guard[i] == expected[i]) continue;
        if (changed == 0) first = signed_offset(static_cast<std::int64_t>(i));
        ++changed;
    }
    if (changed == 0) return "";
    return fmt::format(
        "{} {} the output {} overwritten, the first at byte {:+} from its {}: is an index out of range?",
        changed == 1 ? "1 byte" : fmt::format("{} bytes", changed), side, changed == 1 ? "was" : "were",
        first, first < 0 ? "beginning" : "end");
}

std::vector<std::byte> read_bytes(const DeviceBuffer<std::byte>& memory, std::size_t offset,
                                  std::size_t count) {
    std::vector<std::byte> bytes(count);
    copy_device_to_host(bytes.data(), count, memory.data() + offset, count, 1, nullptr);
    return bytes;
}

}  // namespace

void arm_guards(DeviceBuffer<std::byte>& memory, std::size_t payload_offset, std::size_t payload_bytes,
                std::span<const std::byte> element, std::span<const std::byte> guard) {
    const std::size_t end = payload_offset + payload_bytes;
    for (const auto& [begin, count] :
         {std::pair{std::size_t{0}, payload_offset}, {end, memory.size() - end}}) {
        const std::vector<std::byte> bytes = guard_at(begin, count, guard);
        CUDA_CHECK(cudaMemcpy(memory.data() + begin, bytes.data(), count, cudaMemcpyHostToDevice));
    }
    if (payload_bytes > 0) {
        // The host copies the first few elements. Then the filled part is copied behind itself,
        // and doubles each time.
        std::byte* const payload = memory.data() + payload_offset;
        const std::size_t first = std::min(payload_bytes, element.size() * 1024);
        std::vector<std::byte> elements(first);
        for (std::size_t i = 0; i < first; ++i)
            elements[i] = element[i % element.size()];
        CUDA_CHECK(cudaMemcpy(payload, elements.data(), first, cudaMemcpyHostToDevice));
        for (std::size_t filled = first; filled < payload_bytes; filled *= 2)
            CUDA_CHECK(cudaMemcpyAsync(payload + filled, payload, std::min(filled, payload_bytes - filled),
                                       cudaMemcpyDeviceToDevice, nullptr));
    }
    CUDA_CHECK(
        cudaStreamSynchronize(nullptr));  // a launch on a non-blocking stream would not wait for the fill
}

std::string find_guard_damage(const DeviceBuffer<std::byte>& memory, std::size_t payload_offset,
                              std::size_t payload_bytes, std::span<const std::byte> guard) {
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto begin = static_cast<std::int64_t>(payload_offset);
    const std::size_t end = payload_offset + payload_bytes;
    const std::size_t left = memory.size() - end;
    const std::string before =
        describe(read_bytes(memory, 0, payload_offset), guard_at(0, payload_offset, guard), "before",
                 [begin](std::int64_t i) { return i - begin; });
    const std::string after = describe(read_bytes(memory, end, left), guard_at(end, left, guard), "after",
                                       [](std::int64_t i) { return i; });
    return before.empty() || after.empty() ? before + after : before + "; " + after;
}

}  // namespace course::detail

template class course::GuardedBuffer<float>;
