/*
 * The contract of the CUDA backend: the functions of engine.h on the memory of one NVIDIA device, in a separate
 * shared library that is opened at run time. It needs no CUDA runtime: it opens the driver by its path, and carries its
 * kernels.
 *
 * Bits: every result is that of the function of the same name in engine.h.
 * Order: all work of a device runs on one stream in the order of the calls; only download, wait, std, std_items and
 * scaled_error wait for it. Threads: every function may be called from any thread, and makes the device's context
 * current if it needs to. Spans point to device memory unless a comment says CPU memory. Memory belongs to the
 * caller, which takes it and gives it back. ENGINE_NO_MEMORY is the device's memory as well as the CPU's: nothing was
 * written, the device stays usable. ENGINE_DEVICE_LOST: the driver reported a fault; every later call of this device
 * returns it too.
 */
#ifndef LATENTKIT_ENGINE_CUDA_H
#define LATENTKIT_ENGINE_CUDA_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ENGINE_CUDA_ABI 5

typedef struct engine_cuda engine_cuda; /* one opened device: its context, stream and pool of memory */

typedef struct {
  uint64_t total, free;  /* bytes of the device, by the driver */
  uint64_t lent, pooled; /* bytes of the pool: with callers, and cached for the next */
} engine_cuda_memory;

/* Normals not yet computed: those of philox_randn with these arguments. */
typedef struct {
  uint64_t seed, offset;
  uint32_t threads;
  float k;
} engine_cuda_draw;

typedef struct {
  uint32_t abi;   /* ENGINE_CUDA_ABI; compare before anything else */
  uint32_t bytes; /* sizeof this table */
  const char
      *architectures; /* "75,80,86,89,90,100,120": those that it has kernels for; "" when built without a compiler */

  /* driver: the path or name of libcuda. Retains the device's primary context and loads the kernels. why receives one
   * sentence on failure (CPU memory, why_len bytes, ended by 0). Fails: ENGINE_UNSUPPORTED (no driver, too old, no
   * such device, no kernels for its architecture), NO_MEMORY, DEVICE_LOST. */
  engine_status (*open)(const char *driver, int ordinal, engine_cuda **device, char *why, size_t why_len);
  void (*close)(engine_cuda *device); /* waits, frees lent memory too */

  engine_status (*take)(engine_cuda *device, size_t bytes, void **memory); /* not cleared; 0 bytes: NULL */
  void (*give)(engine_cuda *device, void *memory); /* NULL is allowed; queued work may still use it */
  engine_status (*memory)(engine_cuda *device, engine_cuda_memory *memory);
  engine_status (*trim)(engine_cuda *device); /* waits, frees the cached blocks of the pool */

  engine_status (*upload)(engine_cuda *device, void *to, const void *from,
                          size_t bytes); /* from: CPU memory, may be reused at once */
  engine_status (*download)(engine_cuda *device, void *to, const void *from, size_t bytes); /* to: CPU memory */
  engine_status (*copy)(engine_cuda *device, void *to, const void *from, size_t bytes);
  engine_status (*fill)(engine_cuda *device, engine_f32 out, float value);
  engine_status (*wait)(engine_cuda *device);

  /* offset: CPU memory, as in engine.h */
  engine_status (*philox_randn)(engine_cuda *device, engine_f32 out, uint64_t seed, uint64_t *offset, uint32_t threads,
                                float k);
  engine_status (*philox_words)(engine_cuda *device, engine_u32 out, uint64_t seed, uint64_t offset, uint32_t threads);

  engine_status (*scale)(engine_cuda *device, engine_f32 out, engine_cf32 x, float k);
  engine_status (*axpy)(engine_cuda *device, engine_f32 out, engine_cf32 x, engine_cf32 y, float k);
  engine_status (*average)(engine_cuda *device, engine_f32 out, engine_cf32 x, engine_cf32 y);
  engine_status (*lerp)(engine_cuda *device, engine_f32 out, engine_cf32 a, engine_cf32 b, float t);
  engine_status (*weighted_sum)(engine_cuda *device, engine_f32 out, const engine_cf32 *x, const double *coefficients,
                                size_t count);                                    /* x and coefficients: CPU memory */
  engine_status (*std)(engine_cuda *device, engine_cf32 x, float *out);           /* out: CPU memory */
  engine_status (*std_items)(engine_cuda *device, engine_f32 out, engine_cf32 x); /* out: CPU memory */
  engine_status (*scaled_error)(engine_cuda *device, engine_cf32 low, engine_cf32 high, engine_cf32 previous,
                                double atol, double rtol, double *out); /* out: CPU memory */
  engine_status (*resize_bilinear)(engine_cuda *device, engine_f32 out, engine_cf32 x, size_t planes, size_t in_h,
                                   size_t in_w, size_t out_h, size_t out_w);
  engine_status (*masked_blend)(engine_cuda *device, engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask,
                                size_t batch, size_t channels, size_t plane, size_t mask_batch);
  /* resize_bilinear of the mask [mask_batch, mask_h, mask_w] to h x w, and masked_blend, in one pass */
  engine_status (*resized_blend)(engine_cuda *device, engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask,
                                 engine_shape4 shape, size_t mask_batch, size_t mask_h, size_t mask_w);
  engine_status (*composite)(engine_cuda *device, engine_f32 destination, engine_shape4 shape, engine_cf32 source,
                             engine_shape4 source_shape, int64_t x, int64_t y, engine_cf32 mask, size_t mask_batch);
  engine_status (*add_masked)(engine_cuda *device, engine_f32 destination, engine_shape4 shape, engine_cf32 source,
                              engine_area area, engine_cf32 mask, size_t mask_batch);
  /* the mask and random of the options are device memory too. drawn, if not NULL, replaces random: the normals
   * are computed as they are mixed, and need memory only if lengths or addresses allow no access in fours.
   * ZERO_DEVIATION is returned at once: normalize waits for the deviation, but not for what divides by it */
  engine_status (*inject_noise)(engine_cuda *device, engine_f32 out, engine_cf32 base, engine_cf32 noise,
                                const engine_inject_options *options, const engine_cuda_draw *drawn);
  engine_status (*f32_to_u8)(engine_cuda *device, engine_u8 out, engine_cf32 x);
  engine_status (*u8_to_f32)(engine_cuda *device, engine_f32 out, engine_cu8 x);
  engine_status (*channel_to_mask)(engine_cuda *device, engine_f32 out, engine_cf32 image, int channels, int channel);
  engine_status (*planes_to_image)(engine_cuda *device, engine_f32 out, engine_cf32 x, size_t batch);
  /* The rows of one image of bytes [height, width, channels] as PNG filters them: out is height rows of one filter byte
   * and width * channels bytes, the very bytes engine_png_encode deflates. Fails: BAD_LENGTH, BAD_ARGUMENT. */
  engine_status (*png_filter)(engine_cuda *device, engine_u8 out, engine_cu8 pixels, uint32_t width, uint32_t height,
                              int channels);
} engine_cuda_table;

/* The one exported symbol. */
const engine_cuda_table *latentkit_cuda(void);

#ifdef __cplusplus
}
#endif
#endif
