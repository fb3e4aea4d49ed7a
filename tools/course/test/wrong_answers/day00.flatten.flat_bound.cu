// Compares the index with the number of pixels, not row and column with theirs.
// exercise: day00/flatten
// expect: row 16, column 0
__global__ void to_gray(const Byte* rgb, Byte* gray, int width, int height) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int i = row * width + col;
    if (i < width * height) gray[i] = luminance(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}
