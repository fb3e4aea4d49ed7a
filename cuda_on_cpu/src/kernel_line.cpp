#include "kernel_line.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "child_process.hpp"
#include "image_file.hpp"
#include "module_ranges.hpp"
#include "report_text.hpp"

namespace cuda_on_cpu {
namespace {

const void* base_of_image(const void* address) {
    Dl_info image;
    return dladdr(address, &image) == 0 ? nullptr : image.dli_fbase;
}

// Kernels are in the image that the stand-in is linked into.
bool is_in_program(const void* instruction) {
    static const void* const program = base_of_image(reinterpret_cast<const void*>(&base_of_image));
    return base_of_image(instruction) == program || in_module(instruction, 1);
}

// Runs addr2line, which prints "/path/file.cu:93" and is installed wherever a compiler is. -i: also
// the functions into which the code was inlined.
std::vector<std::string> source_lines(void* instruction) {
    Dl_info image;
    if (dladdr(instruction, &image) == 0) return {};
    const std::ptrdiff_t offset = static_cast<char*>(instruction) - static_cast<char*>(image.dli_fbase);
    std::array<char, 32> address;
    std::snprintf(address.data(), address.size(), "0x%tx", offset);
    std::istringstream output(
        read_child({.arguments = {"addr2line", "-i", "-e", file_of_image(instruction), address.data()},
                    .errors = Errors::nowhere})
            .output);
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) {
        // Cut off only " (discriminator 2)", because a directory's name may contain spaces.
        line.resize(std::min(line.rfind(" (discriminator"), line.size()));
        lines.push_back(line);
    }
    std::erase_if(lines,
                  [](const std::string& line) { return line.starts_with("??") || line.ends_with(":?"); });
    return lines;
}

bool is_in(std::string_view line, std::initializer_list<std::string_view> directories) {
    return std::ranges::any_of(directories, [line](std::string_view directory) {
        return line.find(directory) != std::string_view::npos;
    });
}

bool is_of_the_stand_in(std::string_view line) {
    // Exercises are built from copies. Their #line directives name the original file; only
    // generated code still has the name of the copy.
    if (is_in(line, {"/build/"}) && is_in(line, {"/exercises/"})) return true;
    return line.starts_with("/usr/") ||
           is_in(line, {"/cuda_on_cpu/include/", "/cuda_on_cpu/src/", "/cuda_on_cpu/inspector/"});
}

// The lines of these instructions that belong neither to the stand-in nor to the system, innermost
// function first.
std::vector<std::string> lines_of_program(std::span<void* const> instructions) {
    std::vector<std::string> lines;
    for (void* const instruction : instructions) {
        if (!is_in_program(instruction)) continue;
        for (std::string& line : source_lines(instruction)) {
            if (!is_of_the_stand_in(line)) lines.push_back(std::move(line));
        }
    }
    return lines;
}

// The first line that is in none of the headers that lessons share; else the first one.
std::string line_of_lesson(std::span<const std::string> lines) {
    const auto own =
        std::ranges::find_if(lines, [](const std::string& line) { return !is_in(line, {"/common/"}); });
    return own != lines.end() ? *own : lines.empty() ? "" : lines.front();
}

// The instructions that have called the present function of the stand-in.
std::vector<void*> calling_instructions() {
    std::vector<void*> frames(16);
    frames.resize(static_cast<std::size_t>(backtrace(frames.data(), static_cast<int>(frames.size()))));
    for (void*& frame : frames)
        frame = static_cast<char*>(frame) - 1;  // a return address belongs to the line after the call
    return frames;
}

}  // namespace

std::string kernel_line(std::span<void* const> instructions) {
    return line_of_lesson(lines_of_program(instructions));
}

std::string calling_kernel_line() {
    return kernel_line(calling_instructions());
}

std::string place_and_caller(Site site) {
    const std::vector<std::string> lines = lines_of_program(calling_instructions());
    if (lines.size() < 2) return place(site);
    return place(site) + ", called in " + line_of_lesson(std::span(lines).subspan(1));
}

}  // namespace cuda_on_cpu
