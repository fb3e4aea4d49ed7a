// A GPU shares what it draws with; the CPU has nothing to share.
#error "cudaGL.h: buffers and textures of OpenGL cannot be shared with kernels that run on the CPU"
