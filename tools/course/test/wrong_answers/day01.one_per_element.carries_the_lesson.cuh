// The lesson's file among the bytes of its own object: nothing of it is compiled.
// exercise: day01/one_per_element
// expect: does not compile
// added to: vector_add.cuh
__asm__(".pushsection .rodata\n.incbin \"@ROOT@/day01_vector_add/vector_add.cuh\"\n.popsection");
