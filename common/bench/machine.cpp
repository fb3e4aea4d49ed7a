#include "common/bench/machine.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/check/check.hpp"

namespace course {
namespace {

int current_device() {
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    return device;
}

// CUDA writes 13.0 as 13000 and 12.4 as 12040.
std::string cuda_version(int number) {
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

}  // namespace

std::string machine_slug(std::string_view device_name) {
    std::string slug;
    for (const char c : device_name) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0) {
            slug += static_cast<char>(std::tolower(byte));
        } else if (!slug.empty() && slug.back() != '-') {
            slug += '-';
        }
    }
    while (!slug.empty() && slug.back() == '-')
        slug.pop_back();
    constexpr std::string_view kMaker = "nvidia-";
    if (slug.starts_with(kMaker)) slug.erase(0, kMaker.size());
    return slug.empty() ? "unknown" : slug;
}

std::string driver_version(std::string_view proc_text) {
    const std::size_t line = proc_text.find("NVRM version:");
    if (line == proc_text.npos) return "";
    // The version is the first word that consists of numbers separated by points.
    std::istringstream words(std::string(proc_text.substr(line, proc_text.find('\n', line) - line)));
    for (std::string word; words >> word;)
        if (word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos) return word;
    return "";
}

Machine this_machine() {
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, current_device()));
    int runtime = 0;
    CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    int supported = 0;
    CUDA_CHECK(cudaDriverGetVersion(&supported));

    Machine machine;
    machine.device = properties.name;
    machine.slug = is_cpu_stand_in() ? "cpu" : machine_slug(machine.device);
    machine.cuda = cuda_version(runtime);
    if (!is_cpu_stand_in()) {
        std::ifstream file("/proc/driver/nvidia/version");
        machine.driver = driver_version(std::string(std::istreambuf_iterator<char>(file), {}));
    }
    if (machine.driver.empty()) machine.driver = "CUDA " + cuda_version(supported);
    return machine;
}

std::size_t l2_cache_bytes() {
    int bytes = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, current_device()));
    return static_cast<std::size_t>(bytes);
}

}  // namespace course
