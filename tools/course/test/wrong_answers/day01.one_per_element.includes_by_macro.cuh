// Includes the lesson's file by a macro.
// exercise: day01/one_per_element
// expect: it includes the lesson
// whole file: vector_add.cuh
#define LESSON "@ROOT@/day01_vector_add/vector_add.cuh"
#include LESSON
