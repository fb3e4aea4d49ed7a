// A GPU shares its graphics buffers with kernels; the CPU has none to share.
#error "cuda_gl_interop.h: buffers and textures of OpenGL cannot be shared with kernels that run on the CPU"
