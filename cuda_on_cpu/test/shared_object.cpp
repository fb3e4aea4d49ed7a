// The tests of a library that is loaded at run time, as Python does it: linked with this file, and
// with `load_shared_object`.
#include <gtest/gtest.h>

extern "C" int run_tests(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
