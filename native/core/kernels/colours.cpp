// Rows of a resize of pixels: three or four colours side by side fill one short vector.
#include "quads.h"
#include "shared/resample.h"
#include "table.h"

namespace {

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
    const int32_t *p = at + 2 * i;
    const float *w = weights + 2 * i;
    return weighted(load(row + p[0]), w[0], load(row + p[1]), w[1]);
  });
}

void cubic_pixels(float *out, const float *row, const int32_t *at, const float *weights, size_t channels,
                  size_t inside, size_t n) {
  each_pixel_of(channels, out, inside, n, [=](size_t i, auto load) {
    const int32_t *p = at + 4 * i;
    const float *w = weights + 4 * i;
    return load(row + p[0]) * w[0] + load(row + p[1]) * w[1] + load(row + p[2]) * w[2] + load(row + p[3]) * w[3];
  });
}

void nearest_pixels(float *out, const float *row, const int32_t *at, size_t channels, size_t inside, size_t n) {
  each_pixel_of(channels, out, inside, n, [=](size_t i, auto load) { return load(row + at[i]); });
}

void area_pixels(float *out, const float *top, size_t len, size_t rows, const int32_t *first, const float *widths,
                 size_t channels, size_t inside, size_t n) {
  each_pixel_of(channels, out, inside, n, [=](size_t i, auto load) {
    const float *p = top + first[i];
    const size_t width = (size_t)widths[i];
    Quad sum = {};
    for (size_t y = 0; y < rows; y++, p += len) {
      for (size_t k = 0; k < width; k++) sum += load(p + k * channels);
    }
    return sum / (float)rows / widths[i];
  });
}

}  // namespace

extern "C" void LK_JOIN(colours, LK_ISA)(lk_kernels *table) {
  table->linear_pixels = linear_pixels;
  table->cubic_pixels = cubic_pixels;
  table->nearest_pixels = nearest_pixels;
  table->area_pixels = area_pixels;
}
