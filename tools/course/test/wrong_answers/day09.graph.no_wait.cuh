// Nothing waits for the graph.
// exercise: day09/graph
// needs: three_calls, one_wait, which_event, chunks
// expect: Never written, or not yet when it was read: does the host wait for the stream
void graph(const Job&, const Device& device) {
    CUDA_CHECK(cudaGraphLaunch(device.graph, device.streams[0]));
}
