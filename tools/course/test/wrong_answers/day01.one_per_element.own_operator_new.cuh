// An operator new of its own: the results of a test lie where it wants.
// exercise: day01/one_per_element
// expect: defines operator new
// added to the solution: vector_add.cuh
#include <cstdlib>
#include <new>

void* operator new(std::size_t bytes) {
    return std::calloc(1, bytes + 1);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
