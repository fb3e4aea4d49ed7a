// The device memory that a library's function reads or writes, and whether a GPU could access it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace cuda_on_cpu {

// `columns` pieces of `bytes` each, which begin `pitch` bytes apart. Empty if `columns` or `bytes`
// is 0.
struct Region {
    const char* name;  // of the argument
    const void* pointer;
    std::size_t bytes;
    std::size_t columns = 1;
    std::size_t pitch = 0;
    bool written = false;
};

// Is the region inside one live allocation? If not, prints a message on stderr and loses the
// context, as after a kernel with an illegal access.
bool reachable(const char* function, const Region& region);

// During its lifetime the guard pages behind these allocations are readable, because vectorised
// functions of a host library may load bytes behind an operand without using them. Writes still
// fault.
class ReadableGuards {
  public:
    ReadableGuards(std::initializer_list<const void*> pointers);
    explicit ReadableGuards(const std::vector<Region>& regions);
    ~ReadableGuards();
    ReadableGuards(const ReadableGuards&) = delete;
    ReadableGuards& operator=(const ReadableGuards&) = delete;

  private:
    void open(const void* pointer);
    std::vector<char*> guards_;
};

// Notifies the inspector, if there is one, that the region has been written.
void note_written(const Region& region);

}  // namespace cuda_on_cpu
