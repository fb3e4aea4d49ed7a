// What a library's function reads or writes in device memory, and whether a GPU could reach it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace cuda_on_cpu {

// `columns` pieces of `bytes` each, which begin `pitch` bytes apart. Nothing if one of the two is
// 0.
struct Region {
    const char* name;  // of the argument
    const void* pointer;
    std::size_t bytes;
    std::size_t columns = 1;
    std::size_t pitch = 0;
    bool written = false;
};

// Is the region inside one live allocation? If not, a sentence says so on stderr, and the context
// is lost, as after a kernel that reads there.
bool reachable(const char* function, const Region& region);

// While it lives, the guard pages behind these allocations can be read: vectorised functions of a
// host's library may load, and not use, what lies behind an operand. Writes still stop there.
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

// Tells the inspector, if there is one, that the region has been written.
void note_written(const Region& region);

}  // namespace cuda_on_cpu
