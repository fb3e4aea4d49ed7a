// What lies outside of the image is read instead of taken for 0.
// exercise: day28/direct
// expect: conv_layers.cuh:\d+|is an index out of range
__global__ void conv_direct(const float* x, const float* w, float* y, Shape shape) {
    const int tiles_across = course::ceil_div(shape.q(), kTile);
    const int tile = static_cast<int>(blockIdx.x);
    const int p = tile / tiles_across * kTile + static_cast<int>(threadIdx.y);
    const int q = tile % tiles_across * kTile + static_cast<int>(threadIdx.x);
    const int k = static_cast<int>(blockIdx.y);
    const int n = static_cast<int>(blockIdx.z);
    if (p >= shape.p() || q >= shape.q()) return;
    const float* image = x + n * shape.image();
    const float* filter = w + k * shape.filter();
    float sum = 0;
    for (int c = 0; c < shape.c; ++c)
        for (int r = 0; r < shape.r; ++r)
            for (int s = 0; s < shape.s; ++s)
                sum += image[(c * shape.h + p * shape.stride - shape.padding + r) * shape.w +
                             q * shape.stride - shape.padding + s] *
                       filter[(c * shape.r + r) * shape.s + s];
    y[(n * shape.k + k) * shape.plane() + p * shape.q() + q] = sum;
}
