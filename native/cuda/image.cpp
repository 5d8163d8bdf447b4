#include "driver.h"

// LK_CUDA_IMAGE: the file. The section is where nvcc puts the images of a program and NVIDIA's tools look for them.
__asm__(
    ".pushsection .nv_fatbin, \"a\"\n"
    ".balign 16\n"
    ".globl lk_cuda_image\n"
    ".hidden lk_cuda_image\n"
    "lk_cuda_image:\n"
    ".incbin \"" LK_CUDA_IMAGE
    "\"\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char lk_cuda_image[];

namespace latentkit::cuda {

const void *image() { return lk_cuda_image; }
const char *architectures() { return LK_CUDA_ARCHITECTURES; }
const char *compiler() { return LK_CUDA_COMPILER; }

}  // namespace latentkit::cuda
