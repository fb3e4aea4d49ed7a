// A GPU shares its graphics buffers with kernels; the CPU has none to share.
#error "cuda_egl_interop.h: images and streams of EGL cannot be shared with kernels that run on the CPU"
