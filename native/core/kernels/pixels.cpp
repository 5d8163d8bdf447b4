// Floats to bytes and back, masks from image channels, pixels from planes. Plain loops the compiler vectorises.
#include "shared/pixels.h"
#include "lanes.h"
#include "pack.h"
#include "table.h"

namespace {

void to_bytes(uint8_t *__restrict out, const float *__restrict x, size_t n, [[maybe_unused]] int stream) {
  size_t i = 0;
#if LK_HAS_PACK
  // Reads 4 KiB ahead into the second-level cache: whole pictures are bound by memory.
  constexpr size_t kAhead = 1024;
  if (stream) {
    size_t head = (size_t)(-(intptr_t)out & (intptr_t)(sizeof(Levels) - 1));
    for (head = head < n ? head : n; i < head; i++) out[i] = (uint8_t)to_level(x[i]);
  }
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (size_t j = 0; j < 4 * kLanes; j += 16) __builtin_prefetch(x + i + j + kAhead, 0, 2);
    const float *p = x + i;
    Levels bytes = to_levels(load(p), load(p + kLanes), load(p + 2 * kLanes), load(p + 3 * kLanes));
    if (stream) store_stream(out + i, bytes);
    else store(out + i, bytes);
  }
  if (stream) end_stream();
#endif
  for (; i < n; i++) out[i] = (uint8_t)to_level(x[i]);
}

constexpr size_t kBuffer = 256;

void levels(float *__restrict out, const uint8_t *__restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = from_level(x[i]);
}

void from_bytes(float *out, const uint8_t *x, size_t n, int stream) {
  if (!stream) return levels(out, x, n);
  // through a buffer in the first cache, so that the loop that converts can stay plain
  alignas(64) float buffer[kBuffer];
  size_t i = until_aligned(out, n);
  levels(out, x, i);
  for (; i + kBuffer <= n; i += kBuffer) {
    levels(buffer, x + i, kBuffer);
    for (size_t j = 0; j < kBuffer; j += kLanes) store_stream(out + i + j, load(buffer + j));
  }
  end_stream();
  levels(out + i, x + i, n - i);
}

/* a / b, correctly rounded for the 256 levels and their sums: what the inverse leaves out is added as well. */
inline Floats quotient(Floats a, float b) {
#if defined(__FMA__)
  float inverse = 1.0f / b;
  return fused(a, inverse, a * (float)(1.0 / b - inverse));
#else
  return a / b;
#endif
}

inline Floats truncated_level(Floats x) {
#if LK_LANES == 16
  // too large for an integer is the largest without a sign
  __m512 v = _mm512_maskz_max_ps((__mmask16)-1, (__m512)(x * 255.0f), _mm512_setzero_ps());
  __m512i level = _mm512_maskz_cvttps_epi32((__mmask16)-1, v);
  return to_floats((Ints)_mm512_maskz_min_epu32((__mmask16)-1, level, _mm512_set1_epi32(255)));
#elif LK_LANES == 8
  // the second operand if the first is NaN
  __m256 v = _mm256_max_ps((__m256)(x * 255.0f), _mm256_setzero_ps());
  return to_floats((Ints)_mm256_cvttps_epi32(_mm256_min_ps(v, _mm256_set1_ps(255.0f))));
#elif defined(__x86_64__)
  __m128 v = _mm_max_ps((__m128)(x * 255.0f), _mm_setzero_ps());
  return to_floats((Ints)_mm_cvttps_epi32(_mm_min_ps(v, _mm_set1_ps(255.0f))));
#else
  Floats v = x * 255.0f;
  v = v > 0.0f ? v : Floats{};
  v = v < 255.0f ? v : Floats{} + 255.0f;
  return to_floats(to_ints(v));
#endif
}

inline Floats mean_of_three(Floats x) {
  Floats v = quotient(truncated_level(x), 255.0f);
  // twice a float is exact: one rounding either way
#if defined(__FMA__)
  return quotient(fused(v, 2.0f, v), 3.0f);
#else
  return quotient(v + v + v, 3.0f);
#endif
}

/* One value of `channels` of each pixel; vectors stop early, since their loads reach into the next pixel. */
template <int Channels>
inline void channel_loop(float *out, const float *image, size_t pixels, int stream) {
  size_t i = 0;
  if (stream) {
    size_t head = until_aligned(out, pixels);
    for (; i < head; i++) out[i] = mean_of_three(image[i * Channels]);
  }
  for (; i + kLanes < pixels; i += kLanes) {
    const float *p = image + i * Channels;
    Floats v = mean_of_three(Channels == 3 ? every_third(p) : Channels == 4 ? every_fourth(p) : load(p));
    if (stream) store_stream(out + i, v);
    else store(out + i, v);
  }
  for (; i < pixels; i++) out[i] = mean_of_three(image[i * Channels]);
  if (stream) end_stream();
}

void channel_mask(float *out, const float *image, int channels, int channel, size_t pixels, int stream) {
  if (channels == 3) channel_loop<3>(out, image + channel, pixels, stream);
  else if (channels == 4) channel_loop<4>(out, image + channel, pixels, stream);
  else channel_loop<1>(out, image, pixels, stream);
}

/* Pixels out of three vectors of colours. */
inline void interleave(float *out, Floats r, Floats g, Floats b) {
#if defined(__AVX512F__)
  // which value goes where in each third: 0 to 15 of the first operand, 16 to 31 of the second
  static const int kRedGreen[3][16] = {{0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5},
                                       {21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26},
                                       {0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0}};
  static const int kBlue[3][16] = {{0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15},
                                   {0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15},
                                   {26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31}};
  for (size_t third = 0; third < 3; third++) {
    const __m512 two = _mm512_permutex2var_ps((__m512)r, _mm512_loadu_si512(kRedGreen[third]), (__m512)g);
    const __m512 all = _mm512_permutex2var_ps(two, _mm512_loadu_si512(kBlue[third]), (__m512)b);
    store(out + kLanes * third, (Floats)all);
  }
#else
  for (size_t k = 0; k < kLanes; k++) {
    out[3 * k] = r[k];
    out[3 * k + 1] = g[k];
    out[3 * k + 2] = b[k];
  }
#endif
}

void colours_last(float *__restrict out, const float *__restrict red, const float *__restrict green,
                  const float *__restrict blue, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    interleave(out + 3 * i, clamped(load(red + i)), clamped(load(green + i)), clamped(load(blue + i)));
  }
  for (; i < n; i++) {
    out[3 * i] = in_unit(red[i]);
    out[3 * i + 1] = in_unit(green[i]);
    out[3 * i + 2] = in_unit(blue[i]);
  }
}

/* V is a vector of doubles or one; in(i) reads it, put(p, v) writes it as floats. */
template <class V, class In, class Put>
inline void cell_colours(float *out, size_t i, size_t stride, size_t channels, const double *factors,
                         const double *bias, double shift, double scale, In in, Put put) {
  V red = V{} + bias[0], green = V{} + bias[1], blue = V{} + bias[2];
  for (size_t c = 0; c < channels; c++, factors += 3) {
    const V seen = (in(c * stride + i) - shift) * scale;
    red += seen * factors[0];
    green += seen * factors[1];
    blue += seen * factors[2];
  }
  put(out + i, (red + 1.0) * 0.5);
  put(out + stride + i, (green + 1.0) * 0.5);
  put(out + 2 * stride + i, (blue + 1.0) * 0.5);
}

void latent_colours(float *__restrict out, const float *__restrict x, size_t stride, size_t n, size_t channels,
                    const double *__restrict factors, const double *__restrict bias, double shift, double scale) {
  size_t i = 0;
  for (; i + kWide <= n; i += kWide) {
    cell_colours<Doubles>(
        out, i, stride, channels, factors, bias, shift, scale, [=](size_t at) { return widen(x + at); },
        [](float *p, Doubles v) { store_narrow(p, v); });
  }
  for (; i < n; i++) {
    cell_colours<double>(
        out, i, stride, channels, factors, bias, shift, scale, [=](size_t at) { return (double)x[at]; },
        [](float *p, double v) { *p = (float)v; });
  }
}

}  // namespace

extern "C" void LK_JOIN(pixels, LK_ISA)(lk_kernels *table) {
  table->to_bytes = to_bytes;
  table->from_bytes = from_bytes;
  table->channel_mask = channel_mask;
  table->colours_last = colours_last;
  table->latent_colours = latent_colours;
}
