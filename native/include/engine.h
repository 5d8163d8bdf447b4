/*
 * The contract of the native core: a C ABI over spans. No C++ exception crosses it, no function keeps a pointer,
 * and every function may be called from any thread. Memory belongs to the caller.
 *
 * Bits: every result is the same with every instruction set and any number of threads; of a NaN that comes in, only
 * that it stays one. Arithmetic is float32, one rounding an operation, in the order written, unless a comment says
 * double; fma is written out when it is meant.
 * Work on more than ENGINE_PARALLEL_MIN elements is split over the pool.
 *
 * Spans may be empty. An output may alias an input only if a comment says so.
 */
#ifndef LATENTKIT_ENGINE_H
#define LATENTKIT_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ENGINE_PARALLEL_MIN 65536

typedef struct {
  float *data;
  size_t len;
} engine_f32;
typedef struct {
  const float *data;
  size_t len;
} engine_cf32;
typedef struct {
  uint8_t *data;
  size_t len;
} engine_u8;
typedef struct {
  const uint8_t *data;
  size_t len;
} engine_cu8;
typedef struct {
  uint32_t *data;
  size_t len;
} engine_u32;

typedef enum {
  ENGINE_OK = 0,
  ENGINE_BAD_LENGTH,   /* spans whose lengths do not match each other or the given shape */
  ENGINE_BAD_ARGUMENT, /* a number outside its documented range */
  ENGINE_NO_MEMORY,
  ENGINE_NO_SPACE, /* the output span is shorter than the result; *written is what is needed, if it can be computed */
  ENGINE_ZERO_DEVIATION,
  ENGINE_BAD_FILE,  /* not the format, truncated, or a checksum is wrong */
  ENGINE_TOO_LARGE, /* a file that announces more pixels than allowed */
  ENGINE_UNSUPPORTED,
  ENGINE_DEVICE_LOST, /* a fault of the GPU; only functions of engine_cuda.h return it */
} engine_status;

/* A short English phrase for a status; never NULL. */
const char *engine_status_text(engine_status status);

/* ---- runtime ---------------------------------------------------------------------------------------------- */

/* "avx512", "avx2" or "baseline": the kernels in use. LATENTKIT_ISA forces one at first use; a set that the
 * processor lacks is ignored there and refused (ENGINE_UNSUPPORTED) by engine_set_isa. */
const char *engine_isa(void);
engine_status engine_set_isa(const char *name);
int engine_isa_supported(const char *name);

/* Threads that share the work, the caller included, 1 to 256; LATENTKIT_THREADS, else the processors this process may
 * run on. engine_set_threads waits for running work. */
int engine_threads(void);
engine_status engine_set_threads(int count);
/* Finishes what engine_submit has queued, then ends all threads; the next call starts them again. For an orderly exit.
 * When submitted work calls it, it leaves the background threads alone: it would wait for itself. */
void engine_shutdown(void);

/* Queues work(data) on a background thread of the core, separate from the compute pool; the work may start, and end,
 * before this returns. Used for whole-image jobs that must not hold the caller's thread. The work may submit more.
 * Fails: ENGINE_NO_MEMORY, ENGINE_BAD_ARGUMENT (no function). */
engine_status engine_submit(void (*work)(void *data), void *data);

/* Memory for short use, not cleared, NULL if there is none. Blocks given back are cached for the next caller, up
 * to 64 MiB in all, until engine_shutdown. */
void *engine_scratch_take(size_t bytes);
void engine_scratch_give(void *memory); /* NULL is allowed */

/* ---- graphics adapters ------------------------------------------------------------------------------------- */

#define ENGINE_ADAPTERS_MAX 32

/* In the order in which WebGPU prefers them. */
typedef enum {
  ENGINE_ADAPTER_DISCRETE,
  ENGINE_ADAPTER_INTEGRATED,
  ENGINE_ADAPTER_VIRTUAL,
  ENGINE_ADAPTER_CPU,
  ENGINE_ADAPTER_OTHER,
} engine_adapter_type;

typedef struct {
  char name[256];                /* UTF-8, as is driver */
  char driver[513];              /* name and version; only the version number if the driver has no text */
  uint32_t vendor_id, device_id; /* of PCI */
  engine_adapter_type type;
  int32_t has_float16; /* shaders compute with float16 and have it in storage buffers */
} engine_adapter;

/* Lists the adapters of Vulkan by type, and within a type in the loader's order. Returns how many; 0
 * if no loader is installed, a call fails, or the system has no Vulkan (macOS). Runs code of every installed driver,
 * and a fault in it can end the process. */
size_t engine_adapters(engine_adapter out[ENGINE_ADAPTERS_MAX]);

/* ---- noise: PyTorch's generators --------------------------------------------------------------------------- */

/* MT19937 with the cached normal of the short path. Plain data: copy it to fork the stream. */
typedef struct {
  uint32_t state[624];
  uint32_t next;       /* words used of the current state, 624: refresh first */
  uint32_t has_normal; /* the short path holds one value over */
  double normal;
} engine_mt19937;

/* Only the low 32 bits of the seed count; clears the cached normal. */
void engine_mt_seed(engine_mt19937 *generator, uint64_t seed);
/* Fills out: 16 values or more by the vector path, fewer by the double path.
 * Fails: BAD_ARGUMENT, if `next` is above 624, which no state of this generator has. */
engine_status engine_mt_randn(engine_mt19937 *generator, engine_f32 out);

/* One cut of a Brownian path: the increment W over a node becomes left = (W * length) * reciprocal + z * spread and
 * right = W - left, of the CPU normals z of `seed`. */
typedef struct {
  uint32_t node; /* 0 is the root; of cut i, 2 i + 1 is the left half and 2 i + 2 the right one */
  uint32_t seed;
  uint32_t row;   /* of `lefts`; no other cut of the call has it */
  uint32_t drawn; /* the row holds the left half of an earlier call; else it is written */
  float length, reciprocal, spread;
} engine_cut;

/* An increment of a Brownian path: out = (the sum of the nodes in `terms`, in order) / divisor. root [n] is the
 * increment over the whole path. `ends` are the ends of the ranges of elements that threads work on independently:
 * they rise to n, and all but the last are multiples of 16. lefts [ranges, rows, pitch] are the left halves of cuts:
 * the elements of a range are the first floats of a row. A cut names the root or a half of a cut before it. Results do
 * not depend on the ranges. Fails: BAD_LENGTH (ranges, rows), BAD_ARGUMENT (nodes, rows), NO_MEMORY. */
engine_status engine_brownian(engine_f32 out, engine_cf32 root, engine_f32 lefts, size_t pitch, const uint32_t *ends,
                              size_t ranges, const engine_cut *cuts, size_t count, const uint32_t *terms,
                              size_t term_count, float divisor);

/* PyTorch's CUDA normals: Philox 4x32-10, all 64 bits of the seed count. threads: the grid (a multiple of 256), 0 for
 * no cap. offset: the generator's offset, a multiple of 4, which advances. k: each is multiplied by it, as
 * engine_scale would do afterwards; 1 for the normals themselves. Fails: BAD_ARGUMENT. */
engine_status engine_philox_randn(engine_f32 out, uint64_t seed, uint64_t *offset, uint32_t threads, float k);
/* Advances the offset as engine_philox_randn of n values does, without computing them. Fails: BAD_ARGUMENT. */
engine_status engine_philox_skip(size_t n, uint64_t *offset, uint32_t threads);
/* The four words behind each of n = out.len / 4 elements: out[row * n + element]. Fails: BAD_LENGTH, BAD_ARGUMENT. */
engine_status engine_philox_words(engine_u32 out, uint64_t seed, uint64_t offset, uint32_t threads);

/* ---- sigmas ------------------------------------------------------------------------------------------------ */

typedef enum {
  ENGINE_DISCRETE = 0,
  ENGINE_EDM,
  ENGINE_FLOW,
  ENGINE_FLUX,
  ENGINE_CASCADE,
} engine_sampling_kind;

typedef struct {
  int32_t kind;                    /* engine_sampling_kind */
  int32_t zsnr;                    /* discrete: zero terminal SNR */
  double linear_start, linear_end; /* discrete, above 0 and below 1 */
  double sigma_min, sigma_max;     /* edm, 0 < min < max */
  double shift;                    /* flow and cascade above 0, flux any */
  double multiplier;               /* flow, above 0 */
} engine_sampling;

/* Length of the table: 1000, or 10000 for flux and cascade; 0 for a bad description. */
size_t engine_sampling_size(const engine_sampling *sampling);
/* The rising table of sigmas. Fails: BAD_LENGTH, BAD_ARGUMENT. */
engine_status engine_sampling_table(const engine_sampling *sampling, engine_f32 out);
/* sigma above 0 to the sampling's timestep, and back; float32 in, float32 out. */
engine_status engine_sampling_timestep(const engine_sampling *sampling, float sigma, float *out);
engine_status engine_sampling_sigma(const engine_sampling *sampling, float timestep, float *out);

/* PyTorch's linspace in float32; at most 2^24 values. Fails: BAD_LENGTH. */
engine_status engine_linspace(float start, float end, engine_f32 out);

typedef enum {
  ENGINE_SIMPLE = 0,
  ENGINE_SGM_UNIFORM,
  ENGINE_KARRAS,
  ENGINE_EXPONENTIAL,
  ENGINE_DDIM_UNIFORM,
  ENGINE_BETA,
  ENGINE_NORMAL,
  ENGINE_LINEAR_QUADRATIC,
  ENGINE_KL_OPTIMAL,
  ENGINE_SCHEDULER_COUNT,
} engine_scheduler;

const char *engine_scheduler_name(int scheduler); /* "simple" …; NULL past the end */

/* Falling sigmas. The rising table, at least 2 sigmas, need not be the sampling's own: sgm_uniform and normal take the
 * sampling's maps between its ends, all others read the table alone. extra_step: computed for one more step, and the
 * last but one dropped (dpm_2, dpm_2_ancestral, uni_pc, uni_pc_bh2). denoise above 0.9999: all; above 0: computed for
 * floor(steps / denoise) steps, the last steps + 1 kept; else empty. steps 0 gives the single sigma 0. *written is the
 * length; if out.len is too short, it is the length needed. steps at most 10000, floor(steps / denoise) at most
 * 1000000. Fails: NO_SPACE, BAD_ARGUMENT, BAD_LENGTH, NO_MEMORY. */
engine_status engine_schedule(const engine_sampling *sampling, engine_cf32 table, int scheduler, int32_t steps,
                              int extra_step, double denoise, engine_f32 out, size_t *written);

/* ---- element by element: equal lengths, out may alias any input ---------------------------------------------- */

engine_status engine_scale(engine_f32 out, engine_cf32 x, float k);               /* x * k */
engine_status engine_axpy(engine_f32 out, engine_cf32 x, engine_cf32 y, float k); /* x + y * k */
engine_status engine_average(engine_f32 out, engine_cf32 x, engine_cf32 y);       /* (x + y) / 2 */
engine_status engine_lerp(engine_f32 out, engine_cf32 a, engine_cf32 b, float t); /* a + (b - a) * t */

#define ENGINE_MAX_TERMS 8

/* The sum of coefficients[k] * x[k] over `count` operands, 1 to ENGINE_MAX_TERMS, once or several times, one after the
 * other: out has a multiple of the operands' length, and may begin with operands. Each coefficient is the sum of two
 * floats, which are multiplied and added one by one, fused: small halves first, from the first operand on, then the
 * large ones. An infinite element of an operand gives an infinity or NaN. Fails: BAD_LENGTH, BAD_ARGUMENT. */
engine_status engine_weighted_sum(engine_f32 out, const engine_cf32 *x, const double *coefficients, size_t count);

/* Unbiased standard deviation of all elements, in double over a fixed tree (mean first, then squares), rounded once.
 * Fewer than two elements: NaN. Fails: NO_MEMORY. */
engine_status engine_std(engine_cf32 x, float *out);
/* engine_std of each of out.len equal parts of x. Fails: BAD_LENGTH, NO_MEMORY. */
engine_status engine_std_items(engine_f32 out, engine_cf32 x);

/* The error norm of an adaptive step: the root of the mean of ((low - high) / max(atol, rtol * max(|low|,
 * |previous|)))^2, all of it in double, added up as by engine_std. No elements: NaN. Fails: BAD_LENGTH, NO_MEMORY. */
engine_status engine_scaled_error(engine_cf32 low, engine_cf32 high, engine_cf32 previous, double atol, double rtol,
                                  double *out);

/* ---- planes ---------------------------------------------------------------------------------------------- */

/* planes images [in_h, in_w] to [out_h, out_w]: bilinear, align_corners false, no antialias, edges clamped. */
engine_status engine_resize_bilinear(engine_f32 out, engine_cf32 x, size_t planes, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w);

typedef enum {
  ENGINE_NEAREST_EXACT = 0, /* f32(in) / f32(out) * (i + 0.5), rounded down */
  ENGINE_BILINEAR,          /* as engine_resize_bilinear */
  ENGINE_BICUBIC,           /* Keys' cubic convolution, a = -0.75; sums from the first tap on, across rows first */
  ENGINE_AREA,              /* mean of the window that each output covers: sum by rows, / height, / width */
  ENGINE_BISLERP,           /* vectors of the channels turned into each other; in double, rounded after each pass */
  /* pixels as bytes, as Pillow: weights of 22 bits, antialias but for the nearest */
  ENGINE_LANCZOS,         /* three lobes */
  ENGINE_PILLOW_NEAREST,  /* 0.5 and i steps of in / out, one after the other in double, rounded down */
  ENGINE_PILLOW_BOX,      /* mean of what each output covers */
  ENGINE_PILLOW_BILINEAR, /* falls to 0 at one pixel */
  ENGINE_PILLOW_HAMMING,  /* Hamming's window of one lobe */
  ENGINE_PILLOW_BICUBIC,  /* Keys' cubic convolution, a = -0.5 */
  ENGINE_RESIZE_METHOD_COUNT,
} engine_resize_method;

const char *engine_resize_method_name(int method); /* "nearest-exact" …; NULL past the end */

typedef struct {
  int32_t method;                /* engine_resize_method */
  int32_t pixels;                /* x [batch, in_h, in_w, channels], else [batch, channels, inner, in_h, in_w] */
  size_t batch, channels, inner; /* inner 1 with pixels */
  size_t in_h, in_w, out_h, out_w;
} engine_resize_options;

/* The last two sides of planes, or the two before the channels of pixels, resized; align_corners false, edges clamped.
 * Pillow's methods take pixels of 1 to 4 channels: floats to bytes as by engine_f32_to_u8, the last of 2 or 4 channels
 * multiplied into the others during the resize (not for the nearest), bytes to floats as by engine_u8_to_f32. out must
 * not alias x. Fails: BAD_LENGTH, BAD_ARGUMENT, NO_MEMORY. */
engine_status engine_resize(engine_f32 out, engine_cf32 x, const engine_resize_options *options);

/* out = m * a + (1 - m) * b over [batch, channels, plane]; the mask [mask_batch, plane] is shared by the channels and
 * repeats over the batch. out may alias a or b. */
engine_status engine_masked_blend(engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask, size_t batch,
                                  size_t channels, size_t plane, size_t mask_batch);

typedef struct {
  size_t n, c, h, w;
} engine_shape4;

/* Pastes source at (x, y) of destination, in place, cropped to the overlap. Source batches repeat or are cut off; the
 * source has the destination's channels, or 1. Covered elements are the source's value exactly; with a mask
 * [mask_batch, source h, source w] they are m * source + (1 - m) * destination. */
engine_status engine_composite(engine_f32 destination, engine_shape4 shape, engine_cf32 source,
                               engine_shape4 source_shape, int64_t x, int64_t y, engine_cf32 mask, size_t mask_batch);

typedef struct {
  size_t y, x, h, w;
} engine_area;

/* source * mask added to an area of destination, in place, the product rounded first. The source is
 * [shape.n, shape.c, area.h, area.w]; the mask [mask_batch, area.h, area.w] is shared by the channels, mask_batch is 1
 * or shape.n. Fails: BAD_LENGTH, BAD_ARGUMENT (an area that is not inside, another mask_batch). */
engine_status engine_add_masked(engine_f32 destination, engine_shape4 shape, engine_cf32 source, engine_area area,
                                engine_cf32 mask, size_t mask_batch);

/* A part of the pixels x [shape.n, shape.h, shape.w, shape.c] resized to height x width, out [shape.n, part.h, part.w,
 * shape.c], as PyTorch's bicubic with antialias: weights of ENGINE_PILLOW_BICUBIC in float32, across first, then down,
 * each product added in double and the sum rounded to float32. out must not alias x.
 * Fails: BAD_LENGTH, BAD_ARGUMENT (a part that is not inside), NO_MEMORY. */
engine_status engine_resize_antialiased(engine_f32 out, engine_cf32 x, engine_shape4 shape, size_t height, size_t width,
                                        engine_area part);

/* ---- injectNoise ------------------------------------------------------------------------------------------ */

typedef struct {
  double strength;
  int32_t average;               /* (base + noise) / 2, else base + noise * f32(strength) */
  int32_t normalize;             /* divide by the standard deviation of all elements */
  engine_shape4 shape;           /* of base and noise; needed with a mask */
  engine_cf32 mask;              /* [mask_n, mask_h, mask_w], resized to h x w, repeats over the batch; len 0: none */
  size_t mask_n, mask_h, mask_w; /* mask_n at most shape.n */
  double mix;                    /* above 0: (f32(1-m) * x + f32(m) * random) / f32(sqrt(m^2 + (1-m)^2)) */
  engine_cf32 random;            /* as long as base if mix > 0 */
} engine_inject_options;

/* Add or average, normalise, mask, mix, in that order and in as few passes as that allows. out may alias base or noise.
 * Fails: BAD_LENGTH, BAD_ARGUMENT, ZERO_DEVIATION, NO_MEMORY. */
engine_status engine_inject_noise(engine_f32 out, engine_cf32 base, engine_cf32 noise,
                                  const engine_inject_options *options);

/* ---- images ------------------------------------------------------------------------------------------------ */

/* x * 255, clipped to 0 … 255, truncated; NaN is 0. */
engine_status engine_f32_to_u8(engine_u8 out, engine_cf32 x);
engine_status engine_u8_to_f32(engine_f32 out, engine_cu8 x); /* f32(x) / 255 */
/* In double x * 65535, rounded to the nearest whole number, halves up, clipped to 0 … 65535; two bytes each,
 * big-endian. NaN is 0. Fails: BAD_LENGTH. */
engine_status engine_f32_to_u16(engine_u8 out, engine_cf32 x);
/* image [pixels, channels], channels 1, 3 or 4, channel 0 to 2 (grey replicated): v = byte / 255, (v + v + v) / 3.
 * Fails: BAD_LENGTH, BAD_ARGUMENT. */
engine_status engine_channel_to_mask(engine_f32 out, engine_cf32 image, int channels, int channel);

/* Planes x [batch, 3, plane] as pixels out [batch, plane, 3], clamped to 0 … 1; NaN is 0. out must not alias x.
 * Fails: BAD_LENGTH. */
engine_status engine_planes_to_image(engine_f32 out, engine_cf32 x, size_t batch);

/* A latent x [batch, channels, plane] seen as colours, planes out [batch, 3, plane] in 0 … 1. In double: bias[k] and,
 * in the order of the channels c, ((x - shift) * scale) * factors[3 * c + k] added up, then (sum + 1) / 2, rounded to
 * float. factors: three a channel; bias: three. out must not alias x. Fails: BAD_LENGTH. */
engine_status engine_latent_to_rgb(engine_f32 out, engine_cf32 x, size_t batch, size_t channels, const double *factors,
                                   const double *bias, double shift, double scale);

/* engine_resize_bilinear of planes x [batch, 3, in_h, in_w] and engine_planes_to_image of these, in one pass:
 * out [batch, out_h, out_w, 3], which must not alias x. Fails: BAD_LENGTH, BAD_ARGUMENT, NO_MEMORY. */
engine_status engine_resize_to_image(engine_f32 out, engine_cf32 x, size_t batch, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w);
/* engine_resize_to_image and engine_f32_to_u8 of that; the floats are never in memory. */
engine_status engine_resize_to_bytes(engine_u8 out, engine_cf32 x, size_t batch, size_t in_h, size_t in_w, size_t out_h,
                                     size_t out_w);

/* Images x [batch, height, width, channels], each weighted along both axes with an odd number of weights, at most 4095:
 * first down, then across, a product and a sum rounded each, the terms added in order; borders are mirrored without
 * repeating the outermost pixel. out must not alias x. Fails: BAD_LENGTH, BAD_ARGUMENT, NO_MEMORY. */
engine_status engine_convolve_image(engine_f32 out, engine_cf32 x, size_t batch, size_t height, size_t width,
                                    size_t channels, engine_cf32 weights);

typedef enum {
  ENGINE_BLEND_NORMAL = 0, /* b */
  ENGINE_BLEND_MULTIPLY,   /* a * b */
  ENGINE_BLEND_SCREEN,     /* 1 - (1 - a) * (1 - b) */
  ENGINE_BLEND_OVERLAY,    /* a <= 0.5: 2 * a * b, else 1 - 2 * (1 - a) * (1 - b) */
  ENGINE_BLEND_SOFT_LIGHT, /* b <= 0.5: a - (1 - 2 * b) * a * (1 - a), else a + (2 * b - 1) * (g(a) - a), where g(a) is
                        ((16 * a - 12) * a + 4) * a for a <= 0.25 and the square root of a above */
  ENGINE_BLEND_DIFFERENCE, /* a - b */
} engine_blend_mode;

/* a * (1 - factor) + mode(a, b) * factor, clamped to 0 … 1; NaN stays NaN. out may be a or b.
 * Fails: BAD_LENGTH, BAD_ARGUMENT. */
engine_status engine_blend_images(engine_f32 out, engine_cf32 a, engine_cf32 b, engine_blend_mode mode, double factor);

/* x clamped to 0 … 1, in place; NaN stays NaN. */
void engine_clamp_to_unit(engine_f32 x);

/* Lines x [outer, count, inner]: along the middle axis, the greater (`least`: the lesser) of the values `before`
 * positions before each and `after` positions behind it, clamped to the line. `more`: and of what out holds. out
 * must not alias x. Fails: BAD_LENGTH. */
engine_status engine_extremes_along(engine_f32 out, engine_cf32 x, size_t outer, size_t count, size_t inner,
                                    size_t before, size_t after, int least, int more);

#define ENGINE_HASH_BYTES 32

/* The state of a BLAKE3 hash of bytes that come in pieces; only the three functions read and write it. */
typedef struct {
  uint64_t words[240];
} engine_hasher;
void engine_hash_init(engine_hasher *hasher);
void engine_hash_update(engine_hasher *hasher, engine_cu8 bytes);
/* The hash of the bytes so far; more may follow. */
void engine_hash_final(uint8_t out[ENGINE_HASH_BYTES], const engine_hasher *hasher);

/* BLAKE3 of width, height and channels, 32 bits big-endian each, and the samples in rows from the top. Samples of 16
 * bits are big-endian, and their channels count 2^20 more. Fails: BAD_LENGTH, BAD_ARGUMENT (channels not 1 to 4,
 * bit_depth neither 8 nor 16). */
engine_status engine_pixel_hash(uint8_t out[ENGINE_HASH_BYTES], engine_cu8 samples, uint32_t width, uint32_t height,
                                uint32_t channels, uint32_t bit_depth);

/* ---- PNG ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *key, *value;
  size_t key_len, value_len;
} engine_text; /* Latin-1 */

typedef struct {
  uint32_t width, height;
  int32_t channels;  /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA */
  int32_t level;     /* 0 stored, 1 fastest to 9 smallest: native/core/png/encode.cpp */
  int32_t bit_depth; /* 8, or 16 with big-endian samples */
  const engine_text *text;
  size_t text_count;
} engine_png_options;

/* An upper bound of the encoded size; 0 when the options are bad or the size would overflow. */
size_t engine_png_bound(const engine_png_options *options);
/* Filters rows and deflates them at the level, writes IHDR, tEXt in order, IDAT, IEND.
 * Fails: BAD_LENGTH, BAD_ARGUMENT, NO_SPACE, NO_MEMORY. */
engine_status engine_png_encode(engine_u8 out, engine_cu8 pixels, const engine_png_options *options, size_t *written);
/* The file of engine_png_encode from rows already filtered by the least sums of absolute differences: height lines of a
 * filter byte, 0 to 4, and the bytes of a row. Levels with other filters undo these first.
 * Fails: BAD_LENGTH, BAD_ARGUMENT, NO_SPACE, NO_MEMORY. */
engine_status engine_png_deflate(engine_u8 out, engine_cu8 filtered, const engine_png_options *options,
                                 size_t *written);

typedef struct {
  uint32_t width, height;
  int32_t channels;  /* after a palette is expanded */
  int32_t bit_depth; /* 8 or 16, after small depths are scaled to 8 */
  size_t bytes;      /* of the decoded pixels; 16-bit samples in the machine's byte order */
  size_t text_bytes; /* room engine_png_text needs */
  uint32_t frames;   /* 1, or as many as engine_png_decode_frames returns */
  int32_t is_keyed;  /* by engine_png_inspect_frames: alpha is one colour's, of a grey or RGB file with tRNS */
} engine_png_info;

/* Reads the header and walks the chunks: signature, order, lengths, checksums, sizes. Nothing is allocated.
 * Fails: BAD_FILE, TOO_LARGE (more than max_pixels), UNSUPPORTED. reason, when not NULL, receives a static phrase. */
engine_status engine_png_inspect(engine_cu8 file, uint64_t max_pixels, engine_png_info *info, const char **reason);
/* Decodes into out, info.bytes long: every colour type, depth and Adam7; tRNS becomes alpha. Fails as inspect, and
 * NO_SPACE, NO_MEMORY, BAD_FILE if the data ends early, goes on, or names a filter or palette entry that does not
 * exist. */
engine_status engine_png_decode(engine_u8 out, engine_cu8 file, uint64_t max_pixels, const char **reason);
/* engine_png_inspect for the pictures of engine_png_decode_frames: sides, frames and bytes in all. most: the largest
 * number of frames. Fails as inspect; max_pixels counts the pixels of all frames; BAD_FILE, if the animation is
 * damaged. */
engine_status engine_png_inspect_frames(engine_cu8 file, uint64_t max_pixels, uint32_t most, engine_png_info *info,
                                        const char **reason);
/* Decodes the first `most` pictures that a viewer shows, [frames, height, width, channels]: each frame of an animation
 * composited as Pillow does, and turned as the EXIF orientation says. A picture in front of an animation is its first
 * frame. Fails as engine_png_decode and engine_png_inspect_frames. */
engine_status engine_png_decode_frames(engine_u8 out, engine_cu8 file, uint64_t max_pixels, uint32_t most,
                                       const char **reason);
/* The text of tEXt, zTXt and iTXt chunks as UTF-8: key \0 value \0 …, each value at most 16 MiB. */
engine_status engine_png_text(engine_u8 out, engine_cu8 file, size_t *written, const char **reason);

/* Quantised weights. Blocks are those of GGUF files; `type` is the format's number: 2 Q4_0, 3 Q4_1, 6 Q5_0, 7 Q5_1, 8
 * Q8_0, 10 Q2_K, 11 Q3_K, 12 Q4_K, 13 Q5_K, 14 Q6_K, 20 IQ4_NL, 23 IQ4_XS. Values of blocks are used as they are:
 * scales may be infinite or NaN. Fail: BAD_ARGUMENT (another type), BAD_LENGTH. */
engine_status engine_unpack_blocks(engine_f32 out, engine_cu8 blocks, uint32_t type);
/* The same values as scales[g] * (code - 8) + offsets[g], for groups of 16 (Q2_K, Q3_K, Q6_K) or 32 and codes of 4
 * bits, the first of two in the low half. Types of more bits (Q5_0, Q5_1, Q8_0, Q5_K, Q6_K, IQ4_NL, IQ4_XS) have two
 * codes, 16 * (code - 8) + low - 8, Q8_0 minus 8 as well; lows is empty for others. offsets is empty except for Q4_1,
 * Q5_1, Q2_K, Q4_K and Q5_K. */
engine_status engine_repack_blocks(engine_u8 codes, engine_u8 lows, engine_f32 scales, engine_f32 offsets,
                                   engine_cu8 blocks, uint32_t type);
/* Rows from `first` on of a matrix of 8-bit floats, columns a multiple of 32, times 2^(exponent - 127), one for
 * each 32. scales: the whole matrix of exponents in blocks of 128 rows and 4 columns. Fails: BAD_LENGTH, also if
 * scales does not have all rows. */
engine_status engine_unpack_mxfp8(engine_f32 out, engine_cu8 codes, engine_cu8 scales, size_t columns, size_t first);
/* The same of 4-bit floats, the first of two in the high half, columns a multiple of 16, times an 8-bit float for each
 * 16 and a factor; or as two codes of 4 bits, and group_scales one for each 16. */
engine_status engine_unpack_nvfp4(engine_f32 out, engine_cu8 values, engine_cu8 scales, float factor, size_t columns,
                                  size_t first);
engine_status engine_repack_nvfp4(engine_u8 codes, engine_u8 lows, engine_f32 group_scales, engine_cu8 values,
                                  engine_cu8 scales, float factor, size_t columns, size_t first);
/* table[code] * largest[g] for groups of an even number of values, the last perhaps shorter; the first of two codes is
 * in the high half. Fails: BAD_LENGTH, BAD_ARGUMENT (another group). */
engine_status engine_unpack_nf4(engine_f32 out, engine_cu8 codes, engine_cf32 table, engine_cf32 largest, size_t group);

#ifdef __cplusplus
}
#endif
#endif
