// Every kernel: its name, and whether its threads wait for each other. A launch has one dimension, of kBlock threads.
#ifndef LATENTKIT_CUDA_KERNELS_H
#define LATENTKIT_CUDA_KERNELS_H

#include "kernels/platform.h"

#define LK_BLOCK 256 /* threads of a block, of every kernel */

/* ALONE(name): threads work on their own. TOGETHER(name): they meet. */
#define LK_KERNELS(ALONE, TOGETHER) \
  ALONE(scale)

LK_KERNEL lk_scale(float *out, const float *x, float k, uint64_t n);

#endif
