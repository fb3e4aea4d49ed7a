// A GPU shares what it draws with; the CPU has nothing to share.
#error "cuda_egl_interop.h: images and streams of EGL cannot be shared with kernels that run on the CPU"
