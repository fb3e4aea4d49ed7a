// Loads a library and runs the tests in it.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
    void* const library = argc < 2 ? nullptr : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* const run_tests = library == nullptr ? nullptr : dlsym(library, "run_tests");
    if (run_tests == nullptr) {
        std::fprintf(stderr, "usage: load_shared_object LIBRARY [GTEST_ARGUMENT...]\n%s\n",
                     argc < 2 ? "" : dlerror());
        return 2;
    }
    return reinterpret_cast<int (*)(int, char**)>(run_tests)(argc - 1, argv + 1);
}
