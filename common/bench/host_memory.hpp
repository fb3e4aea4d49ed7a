// Memory of the host that there is not. A system grants more than it has, and ends the program that
// uses it: programs that are linked with host_memory.cpp refuse an array that does not fit, and say
// how large it would have been.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <string>

namespace course {

// What operator new throws there.
class OutOfHostMemory : public std::bad_alloc {
  public:
    explicit OutOfHostMemory(std::size_t bytes);
    // "an array of 1.2 PiB; this machine has 23 GiB, of which 21 GiB are free"
    const char* what() const noexcept override { return text_.data(); }

  private:
    std::array<char, 128> text_{};
};

}  // namespace course
