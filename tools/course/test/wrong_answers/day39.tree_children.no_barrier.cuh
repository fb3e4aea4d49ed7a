// The block launches before all of its threads have moved their points.
// exercise: day39/tree_children
// expect: with early children|when grids that a kernel launches run before it goes on
// needs: split
__global__ void grow(Tree t, unsigned first) {
    const unsigned quarters = split(t, first + blockIdx.x);
    if (threadIdx.x != 0 || quarters == 0) return;
    bool again = false;
    for (unsigned q = 0; q < 4; ++q)
        again |= must_split(t.nodes[quarters + q], t.limits);
    if (!again) return;
    grow<<<4, kTreeBlock, 0, cudaStreamFireAndForget>>>(t, quarters);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) t.header->launch_error = static_cast<unsigned>(error);
}

__global__ void tree_children(Tree t) {
    grow<<<1, kTreeBlock, 0, cudaStreamFireAndForget>>>(t, 0);
    finish<<<kFinishBlocks, kTreeBlock, 0, cudaStreamTailLaunch>>>(t);
}
