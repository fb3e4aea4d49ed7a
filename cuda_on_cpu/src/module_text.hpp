// A module as text: the output of nvcc -ptx and NVRTC's PTX. Programs handle PTX as a string, which
// ends with a null character.
#pragma once

#include <string>
#include <string_view>

namespace cuda_on_cpu {

inline constexpr std::string_view kModuleTextMark = "// A module of cuda_on_cpu: code for the CPU, not PTX\n";
inline constexpr char kModuleDigits[] = "0123456789abcdef";

inline std::string text_of_image(std::string_view bytes) {
    std::string text(kModuleTextMark);
    text.reserve(text.size() + 2 * bytes.size() + bytes.size() / 64 + 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        text += kModuleDigits[byte / 16];
        text += kModuleDigits[byte % 16];
        if (i % 64 == 63) text += '\n';
    }
    return text + '\n';
}

}  // namespace cuda_on_cpu
