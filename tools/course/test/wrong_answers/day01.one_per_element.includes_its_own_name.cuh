// Includes the lesson's file by the name of its own, which #line has changed.
// exercise: day01/one_per_element
// expect: it includes the lesson
// whole file: vector_add.cuh
#line 1 "@ROOT@/day01_vector_add/vector_add.cuh"
#include __FILE__
