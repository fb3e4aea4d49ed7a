// Thread 0 does the whole row.
// exercise: day25/masked_softmax
// expect: In global memory it needs \d+ sectors|To global memory it makes \d+ requests
template <int WIDTH, int PACKS>
__global__ void __launch_bounds__(kSoftmaxThreads)
    softmax_short_rows(DeviceMatrix<float> scores, MaskedRows rows) {
    if (threadIdx.x != 0) return;
    const Visible visible = rows.visible(blockIdx.x, scores.cols());
    float max = -kInfinity;
    for (std::size_t i = 0; i < scores.cols(); ++i)
        if (visible(i)) max = fmaxf(max, scores(blockIdx.x, i));
    const Exponential exponential(max);
    float sum = 0;
    for (std::size_t i = 0; i < scores.cols(); ++i)
        if (visible(i)) sum += exponential(scores(blockIdx.x, i));
    const float scale = Exponential::scale(sum);
    for (std::size_t i = 0; i < scores.cols(); ++i)
        scores(blockIdx.x, i) = visible(i) ? exponential(scores(blockIdx.x, i)) * scale : 0.0f;
}
