// cudaCreateChannelDesc<T>(): the channel descriptor for elements of type T.
#pragma once

#include "cuda_runtime_api.h"

#ifdef __cplusplus

#include "cuda_on_cpu/channels.h"

template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
    using Channel = typename cuda_on_cpu::Channels<T>::Type;
    constexpr int kBits = 8 * static_cast<int>(sizeof(Channel));
    constexpr int kCount = cuda_on_cpu::Channels<T>::kCount;
    return cudaCreateChannelDesc(kBits, kCount > 1 ? kBits : 0, kCount > 2 ? kBits : 0,
                                 kCount > 3 ? kBits : 0, cuda_on_cpu::kChannelKind<Channel>);
}

inline cudaChannelFormatDesc cudaCreateChannelDescHalf() {
    return cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat);
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf1() {
    return cudaCreateChannelDescHalf();
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf2() {
    return cudaCreateChannelDesc(16, 16, 0, 0, cudaChannelFormatKindFloat);
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf4() {
    return cudaCreateChannelDesc(16, 16, 16, 16, cudaChannelFormatKindFloat);
}

#endif
