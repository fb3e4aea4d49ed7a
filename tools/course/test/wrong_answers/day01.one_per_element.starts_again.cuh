// Starts the program again, with a library of its own before all others.
// exercise: day01/one_per_element
// expect: the program ended in the middle of them
// added to the solution: vector_add.cuh
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void start_again() {
    char name[] = "/proc/self/exe", list[] = "--gtest_list_tests";
    char* const arguments[] = {name, list, nullptr};
    if (getenv("LD_PRELOAD") != nullptr) return;
    setenv("LD_PRELOAD", "/tmp/forger.so", 1);
    execv(name, arguments);
}
