// The lesson's file in the place of an answer.
// exercise: day00/flatten
// expect: it includes the lesson
// whole file: grayscale.cu
#include "@ROOT@/day00_first_program/grayscale.cu"
