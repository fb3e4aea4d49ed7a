// Copies the result with a loop of the host.
// exercise: day09/three_calls
// expect: host reads device memory at .* in .*copies_and_streams.cuh:[0-9]+
void pageable(const Job& job, const Device& device) {
    CUDA_CHECK(cudaMemcpy(device.in, job.in, job.n * sizeof(float), cudaMemcpyHostToDevice));
    launch_iterate(device.in, device.out, job.n, job.steps, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    for (std::size_t i = 0; i < job.n; ++i)
        job.out[i] = device.out[i];
}
