#include "kernel_line.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "image_file.hpp"
#include "module_ranges.hpp"

namespace cuda_on_cpu {
namespace {

std::vector<std::string> output_lines(const std::string& command) {
    std::vector<std::string> lines;
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return lines;
    std::array<char, 4096> line;
    while (std::fgets(line.data(), line.size(), pipe) != nullptr)
        lines.emplace_back(line.data());
    pclose(pipe);
    return lines;
}

const void* base_of_image(const void* address) {
    Dl_info image;
    return dladdr(address, &image) == 0 ? nullptr : image.dli_fbase;
}

// Kernels are in the image that the stand-in is linked into.
bool is_in_program(const void* instruction) {
    static const void* const program = base_of_image(reinterpret_cast<const void*>(&base_of_image));
    return base_of_image(instruction) == program || in_module(instruction, 1);
}

// For a shell.
std::string shell_quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text)
        result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

// By addr2line, as "/path/file.cu:93": binutils are there wherever a compiler is. -i: also the
// functions that the code was inlined into.
std::vector<std::string> source_lines(void* instruction) {
    Dl_info image;
    if (dladdr(instruction, &image) == 0) return {};
    const std::ptrdiff_t offset = static_cast<char*>(instruction) - static_cast<char*>(image.dli_fbase);
    std::array<char, 32> address;
    std::snprintf(address.data(), address.size(), "0x%tx", offset);
    std::vector<std::string> lines = output_lines("addr2line -i -e " + shell_quoted(file_of_image(instruction)) +
                                                  " " + address.data() + " 2>/dev/null");
    for (std::string& line : lines) {
        // A directory's name may have blanks: what is cut off is no more than " (discriminator 2)".
        line.resize(std::min(line.find('\n'), line.size()));
        line.resize(std::min(line.rfind(" (discriminator"), line.size()));
    }
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("??"); });
    return lines;
}

bool is_in(std::string_view line, std::initializer_list<std::string_view> directories) {
    return std::ranges::any_of(directories, [line](std::string_view directory) {
        return line.find(directory) != std::string_view::npos;
    });
}

bool is_of_the_stand_in(std::string_view line) {
    // The copies that exercises are built from: their lines have other names, but for what no line
    // stands for.
    if (is_in(line, {"/build/"}) && is_in(line, {"/exercises/"})) return true;
    return line.starts_with("/usr/") ||
           is_in(line, {"/cuda_on_cpu/include/", "/cuda_on_cpu/src/", "/cuda_on_cpu/inspector/"});
}

}  // namespace

std::string kernel_line(std::span<void* const> instructions) {
    std::string of_shared_header;
    for (void* const instruction : instructions) {
        if (!is_in_program(instruction)) continue;
        for (const std::string& line : source_lines(instruction)) {
            if (is_of_the_stand_in(line)) continue;
            if (!is_in(line, {"/common/"})) return line;
            if (of_shared_header.empty()) of_shared_header = line;
        }
    }
    return of_shared_header;
}

std::string calling_kernel_line() {
    std::array<void*, 16> frames;
    const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
    for (void*& frame : frames)
        frame = static_cast<char*>(frame) - 1;  // a return address belongs to the line after the call
    return kernel_line(std::span(frames).first(static_cast<std::size_t>(count)));
}

}  // namespace cuda_on_cpu
