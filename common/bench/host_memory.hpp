// Detects allocations that exceed the host's memory. An operating system grants more memory than
// it has, and kills the program that then uses it (overcommitment). Programs that are linked with
// host_memory.cpp refuse an array that does not fit, and report its size.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <string>

namespace course {

// The exception that operator new throws in these programs.
class OutOfHostMemory : public std::bad_alloc {
  public:
    explicit OutOfHostMemory(std::size_t bytes);
    // "an array of 1.2 PiB; this machine has 23 GiB, of which 21 GiB are free"
    const char* what() const noexcept override { return text_.data(); }

  private:
    std::array<char, 128> text_{};
};

}  // namespace course
