// Eight loads and eight stores of one value each.
// exercise: day30/dequantize
// expect: To global memory it makes \d+ requests|In global memory it needs \d+ sectors
template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    dequantize_octets(DeviceMatrix<const std::int8_t> in, DeviceMatrix<T> out,
                      GivenParameters<kScheme, kGranularity> parameters, std::size_t octets) {
    const OctetCoords at(octets);
    if (at.row >= in.rows()) return;
    for (std::size_t col = at.col(); col < min(at.col() + kOctet, in.cols()); ++col) {
        const Parameters p = parameters(at.row, col);
        out(at.row, col) = static_cast<T>(static_cast<float>(in(at.row, col) - p.zero_point) * p.scale);
    }
}
