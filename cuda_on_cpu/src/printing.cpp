// The output of kernels. With CUDA_ON_CPU_PRINTF=threads each line starts with its thread, "[block
// 0, thread 3] i = 3"; otherwise it is the output of printf(). This file replaces the C library's
// functions, including the two that a compiler substitutes for printf(). __NO_INLINE__ keeps the C
// library's header from defining an inline putchar().
#ifndef __NO_INLINE__
#define __NO_INLINE__
#endif
#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cuda_on_cpu/thread.h"
#include "environment.hpp"
#include "slow_launch.hpp"
#include "thread_name.hpp"

namespace cuda_on_cpu {
namespace {

std::mutex mutex;
// The thread whose line is not complete yet; empty: the last line is complete. Never destroyed,
// because destructors of static objects may launch kernels.
std::string& writer_of_line() {
    static auto& writer = *new std::string;
    return writer;
}

bool names_threads() {
    return environment().named_lines && in_kernel();
}

void print_named(std::string_view text) {
    const std::string thread = name_of_running_thread().data();
    const std::scoped_lock lock(mutex);
    while (!text.empty()) {
        if (writer_of_line() != thread) {
            std::fprintf(stdout, "%s[%s] ", writer_of_line().empty() ? "" : "\n", thread.c_str());
        }
        const auto end = text.find('\n');
        const std::string_view part = end == text.npos ? text : text.substr(0, end + 1);
        std::fwrite(part.data(), 1, part.size(), stdout);
        writer_of_line() = end == text.npos ? thread : "";
        text.remove_prefix(part.size());
    }
}

// The formatted text; a negative length: formatting failed.
struct Text {
    int length;
    std::string text;
};

Text formatted(const char* format, std::va_list arguments) {
    std::va_list again;
    va_copy(again, arguments);
    std::array<char, 256> line;
    const int length = std::vsnprintf(line.data(), line.size(), format, again);
    va_end(again);
    if (length < 0) return {length, ""};
    const auto size = static_cast<std::size_t>(length);
    if (size < line.size()) return {length, std::string(line.data(), size)};
    std::string text(size + 1, '\0');
    std::vsnprintf(text.data(), text.size(), format, arguments);
    text.pop_back();
    return {length, std::move(text)};
}

// A kernel may print a string from memory that it cannot read, which ends the kernel in the middle
// of formatting. So the text is formatted before the stream is locked and before memory is
// allocated.
int print(const char* format, std::va_list arguments) {
    note_output();
    if (!in_kernel()) return std::vfprintf(stdout, format, arguments);
    const auto [length, text] = formatted(format, arguments);
    if (names_threads()) {
        print_named(text);
    } else if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) {
        return -1;
    }
    return length;
}

}  // namespace
}  // namespace cuda_on_cpu

extern "C" int printf(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    const int length = cuda_on_cpu::print(format, arguments);
    va_end(arguments);
    return length;
}

// printf() where the C library checks its arguments (_FORTIFY_SOURCE).
extern "C" int __printf_chk(int, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    const int length = cuda_on_cpu::print(format, arguments);
    va_end(arguments);
    return length;
}

// A compiler makes puts(text) of printf("%s\n", text), so a null pointer is printed as printf()
// prints it, also on a GPU. By another name than the C library's, which says that it is never null.
extern "C" int print_line(const char* text) __asm__("puts");
extern "C" int print_line(const char* text) {
    cuda_on_cpu::note_output();
    if (text == nullptr) text = "(null)";
    if (cuda_on_cpu::names_threads()) {
        cuda_on_cpu::print_named(std::string(text) + "\n");
        return 1;
    }
    return std::fputs(text, stdout) < 0 ? EOF : std::fputc('\n', stdout);
}

extern "C" int putchar(int character) {
    cuda_on_cpu::note_output();
    if (!cuda_on_cpu::names_threads()) return std::fputc(character, stdout);
    const char text = static_cast<char>(character);
    cuda_on_cpu::print_named({&text, 1});
    return character;
}
