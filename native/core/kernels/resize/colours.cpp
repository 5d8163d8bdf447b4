// Rows of a resize of pixels: three or four colours side by side fill one short vector.
#include "core/kernels/resize/quads.h"
#include "core/kernels/table.h"
#include "shared/resample.h"

namespace {

/* Rows follow each other in memory: what lies a page further on is read soon. */
inline void ahead(const float *p) { __builtin_prefetch(p + 1024, 0, 2); }

/* out = make(i, load) for each pixel; load(p) reads the pixel at p. */
template <class Make>
inline void each_pixel(float *__restrict out, size_t channels, size_t inside, size_t n, Make make) {
  const auto whole = [](const float *p) { return quad(p); };
  const auto part = [channels](const float *p) { return pixel(p, channels); };
  // what is written past a pixel of three colours, the next pixel overwrites
  for (size_t i = 0; i < inside; i++) *(QuadAt *)(out + i * channels) = make(i, whole);
  for (size_t i = inside; i < n; i++) {
    const Quad v = make(i, part);
    for (size_t c = 0; c < channels; c++) out[i * channels + c] = v[c];
  }
}

/* The number of channels as a constant. */
template <class Make>
inline void each_pixel_of(size_t channels, float *out, size_t inside, size_t n, Make make) {
  if (channels == 3) each_pixel(out, 3, inside, n, make);
  else each_pixel(out, 4, inside, n, make);
}

void linear_pixels(float *out, const float *row, const int32_t *at, const float *weights, size_t channels,
                   size_t inside, size_t n) {
  each_pixel_of(channels, out, inside, n, [=](size_t i, auto load) {
    const uint32_t *p = (const uint32_t *)at + 2 * i;
    const float *w = weights + 2 * i;
    ahead(row + p[0]);
    return weighted(load(row + p[0]), w[0], load(row + p[1]), w[1]);
  });
}

void cubic_pixels(float *out, const float *row, const int32_t *at, const float *weights, size_t channels, size_t inside,
                  size_t n) {
  each_pixel_of(channels, out, inside, n, [=](size_t i, auto load) {
    const uint32_t *p = (const uint32_t *)at + 4 * i;
    const float *w = weights + 4 * i;
    ahead(row + p[0]);
    return load(row + p[0]) * w[0] + load(row + p[1]) * w[1] + load(row + p[2]) * w[2] + load(row + p[3]) * w[3];
  });
}

void nearest_pixels(float *out, const float *row, const int32_t *at, size_t channels, size_t inside, size_t n) {
  each_pixel_of(channels, out, inside, n, [=](size_t i, auto load) { return load(row + (uint32_t)at[i]); });
}

template <bool IsExact>
inline void area_windows(float *out, const float *top, size_t len, size_t rows, const int32_t *first,
                         const float *widths, const float *shares, size_t channels, size_t inside, size_t n) {
  const float height = (float)rows, share = 1.0f / height;
  each_pixel_of(channels, out, inside, n, [=](size_t i, auto load) {
    const float *p = top + (uint32_t)first[i];
    const size_t width = (size_t)widths[i];
    Quad sum = {};
    for (size_t y = 0; y < rows; y++, p += len) {
      ahead(p);
      for (size_t k = 0; k < width; k++) sum += load(p + k * channels);
    }
    return IsExact ? sum * share * shares[i] : sum / height / widths[i];
  });
}

void area_pixels(float *out, const float *top, size_t len, size_t rows, const int32_t *first, const float *widths,
                 const float *shares, size_t channels, size_t inside, size_t n) {
  // divisions by powers of two are products with the same bits
  if (shares != nullptr && (rows & (rows - 1)) == 0) {
    area_windows<true>(out, top, len, rows, first, widths, shares, channels, inside, n);
  } else {
    area_windows<false>(out, top, len, rows, first, widths, shares, channels, inside, n);
  }
}

}  // namespace

extern "C" void LK_JOIN(colours, LK_ISA)(lk_kernels *table) {
  table->linear_pixels = linear_pixels;
  table->cubic_pixels = cubic_pixels;
  table->nearest_pixels = nearest_pixels;
  table->area_pixels = area_pixels;
}
