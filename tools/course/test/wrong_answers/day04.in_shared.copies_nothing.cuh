// The list is followed in global memory.
// exercise: day04/in_shared
// expect: global
// inspect: yes
__global__ void chase_shared(const unsigned* next, unsigned lines, unsigned start, unsigned steps,
                             unsigned* last) {
    if (threadIdx.x != 0) return;
    unsigned at = start;
    for (unsigned step = 0; step < steps; ++step)
        at = next[at];
    *last = at;
}
