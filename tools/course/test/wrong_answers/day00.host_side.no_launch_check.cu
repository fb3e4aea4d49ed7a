// A refused launch goes unnoticed.
// exercise: day00/host_side
// expect: the launch failed, and the program did not report it
float add_on_gpu(const float* a, const float* b, float* c, int n) {
    const size_t bytes = n * sizeof(float);
    float *a_d = nullptr, *b_d = nullptr, *c_d = nullptr;
    CUDA_CHECK(cudaMalloc(&a_d, bytes));
    CUDA_CHECK(cudaMalloc(&b_d, bytes));
    CUDA_CHECK(cudaMalloc(&c_d, bytes));
    CUDA_CHECK(cudaMemcpy(a_d, a, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(b_d, b, bytes, cudaMemcpyHostToDevice));
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start));
    add<<<(n + kThreadsPerBlock - 1) / kThreadsPerBlock, kThreadsPerBlock>>>(a_d, b_d, c_d, n);
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    CUDA_CHECK(cudaMemcpy(c, c_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    CUDA_CHECK(cudaFree(a_d));
    CUDA_CHECK(cudaFree(b_d));
    CUDA_CHECK(cudaFree(c_d));
    return milliseconds;
}
