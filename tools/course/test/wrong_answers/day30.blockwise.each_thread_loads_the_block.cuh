// Each thread loads its whole block, in the place of shuffles.
// exercise: day30/blockwise
// expect: To global memory it makes \d+ requests|In global memory it needs \d+ sectors
template <class T, Code kCode, bool kAligned, int kBlock>
__global__ void __launch_bounds__(kThreads)
    quantize_block_octets(DeviceMatrix<const T> in, DeviceMatrix<std::uint8_t> codes,
                          DeviceMatrix<float> scales, std::size_t octets) {
    constexpr int kThreadsOfBlock = kBlock / kOctet;
    const OctetCoords at(octets);
    const std::size_t col = at.col();
    if (at.row >= in.rows() || col >= in.cols()) return;
    const T* const row = in.data() + at.row * in.leading_dimension();
    unsigned largest = 0;
    for (int k = 0; k < kThreadsOfBlock; ++k) {
        const auto y = Octet<T>::template load<kAligned>(row, col / kBlock * kBlock + k * kOctet, in.cols());
        largest = max(largest, range_of<Scheme::kSymmetric>(&y, 1).above);
    }
    const auto x = Octet<T>::template load<kAligned>(row, col, in.cols());
    float scale = __uint_as_float(largest) / Coder<kCode>::kLargest;
    if (largest >= kInfinityBits) scale = __uint_as_float(0x7fffffffu);
    if (scale < FLT_MIN) scale = 0;
    const float inverse = scale >= FLT_MIN ? 1 / scale : 0.0f;
    unsigned long long packed = 0;
    for (int k = 0; k < kOctet; ++k) {
        const float value = inverse > 0 ? x[k] : 0.0f;
        if (col + k < in.cols()) packed |= shifted<kCode>(Coder<kCode>::code(value, inverse), k);
    }
    store_codes<kCode, kAligned>(packed, codes.data() + at.row * codes.leading_dimension(), at.octet,
                                 codes.cols());
    if (at.octet % kThreadsOfBlock == 0) scales(at.row, at.octet / kThreadsOfBlock) = scale;
}
