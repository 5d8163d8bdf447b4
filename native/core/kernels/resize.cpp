// Rows of a resize: of planes, across one and between several, and of pixels, whose colours fill one short vector.
#include "core/kernels/lanes.h"
#include "core/kernels/pack.h"
#include "core/kernels/table.h"
#include "shared/pixels.h"
#include "shared/resample.h"

namespace {

/* row[at[i]] for a vector of indices that rise: a permutation takes what lies within one vector. */
inline Floats taken(const float *row, size_t len, const int32_t *at) {
#if LK_LANES >= 8
  // of colours side by side, a vector may begin with the last of a pixel
  const ptrdiff_t low = (ptrdiff_t)at[0] - 2, last = (ptrdiff_t)len - (ptrdiff_t)kLanes;
  const ptrdiff_t from = low < 0 ? 0 : low < last ? low : last;
  if (last < 0) return gather(row, at);
  const Words within = load((const uint32_t *)at) - (uint32_t)from;
#if LK_LANES == 16
  if (_mm512_cmpgt_epu32_mask((__m512i)within, _mm512_set1_epi32(15)) != 0) return gather(row, at);
  return (Floats)_mm512_maskz_permutexvar_ps((__mmask16)-1, (__m512i)within, (__m512)load(row + from));
#else
  if (!_mm256_testz_si256((__m256i)within, _mm256_set1_epi32(~7))) return gather(row, at);
  return (Floats)_mm256_permutevar8x32_ps((__m256)load(row + from), (__m256i)within);
#endif
#else
  (void)len;
  return gather(row, at);
#endif
}

void resize_across(float *__restrict out, const float *__restrict row, size_t len, const int32_t *__restrict i0,
                   const int32_t *__restrict i1, const float *__restrict w0, const float *__restrict w1, size_t n) {
  const auto mixed = [=](Floats a, Floats b, size_t i) { return weighted(a, load(w0 + i), b, load(w1 + i)); };
  // when shrinking, they lie too far apart
  if (len > n) {
    for (size_t i = 0; i < n; i += kLanes) store(out + i, mixed(gather(row, i0 + i), gather(row, i1 + i), i));
  } else {
    for (size_t i = 0; i < n; i += kLanes) store(out + i, mixed(taken(row, len, i0 + i), taken(row, len, i1 + i), i));
  }
}

void nearest_across(float *__restrict out, const float *__restrict row, const int32_t *__restrict at, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, gather(row, at + i));
  for (; i < n; i++) out[i] = row[at[i]];
}

void cubic_across(float *__restrict out, const float *__restrict row, size_t len, const int32_t *__restrict at,
                  const float *__restrict weights, size_t stride, size_t n) {
  const auto sum = [=](size_t i, auto tap) {
    Floats v = tap(at + i) * load(weights + i);
    for (size_t k = 1; k < 4; k++) v += tap(at + k * stride + i) * load(weights + k * stride + i);
    return v;
  };
  const auto far = [=](const int32_t *from) { return gather(row, from); };
  const auto near = [=](const int32_t *from) { return taken(row, len, from); };
  if (len > n) {
    for (size_t i = 0; i < n; i += kLanes) store(out + i, sum(i, far));
  } else {
    for (size_t i = 0; i < n; i += kLanes) store(out + i, sum(i, near));
  }
}

template <bool DoVary>
inline void area_windows(float *__restrict out, const float *__restrict top, size_t len, size_t rows,
                         const int32_t *__restrict first, const int32_t *__restrict more,
                         const float *__restrict widths, size_t least, size_t step, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    Floats sum = {};
    const float *row = top;
    for (size_t y = 0; y < rows; y++, row += len) {
      for (size_t k = 0; k < least; k++) sum += gather(row + k * step, first + i);
      if constexpr (DoVary) {
        const Ints longer = (Ints)load((const uint32_t *)more + i) != (Ints)load((const uint32_t *)first + i);
        // negative zero changes no sum
        sum += longer ? gather(row, more + i) : Floats{} - 0.0f;
      }
    }
    const Floats mean = sum / (float)rows / load(widths + i);
    if (i + kLanes <= n) store(out + i, mean);
    else {
      for (size_t k = 0; i + k < n; k++) out[i + k] = mean[k];
    }
  }
}

void area_across(float *out, const float *top, size_t len, size_t rows, const int32_t *first, const int32_t *more,
                 const float *widths, size_t least, size_t step, size_t n) {
  if (more == nullptr) area_windows<false>(out, top, len, rows, first, more, widths, least, step, n);
  else area_windows<true>(out, top, len, rows, first, more, widths, least, step, n);
}

/* out[i …] = at(i); `at` may read a whole vector past any i below n. */
template <class At>
inline void each_vector(float *__restrict out, size_t n, int stream, At at) {
  if (n < kLanes) {
    const Floats few = at(0);
    for (size_t i = 0; i < n; i++) out[i] = few[i];
    return;
  }
  // stores that cross no line; the first and the last vector overlap their neighbours
  store(out, at(0));
  size_t i = until_aligned(out, n);
  if (stream) {
    for (; i + kLanes <= n; i += kLanes) store_stream(out + i, at(i));
    end_stream();
  } else {
    for (; i + kLanes <= n; i += kLanes) store(out + i, at(i));
  }
  store(out + n - kLanes, at(n - kLanes));
}

template <bool IsImage>
inline void between(float *out, const float *top, const float *bottom, float f0, float f1, size_t n, int stream) {
  each_vector(out, n, stream, [=](size_t i) {
    const Floats v = weighted(load(top + i), f0, load(bottom + i), f1);
    return IsImage ? clamped(v) : v;
  });
}

void resize_between(float *out, const float *top, const float *bottom, float f0, float f1, size_t n, int stream) {
  between<false>(out, top, bottom, f0, f1, n, stream);
}

void resize_between_in_unit(float *out, const float *top, const float *bottom, float f0, float f1, size_t n,
                            int stream) {
  between<true>(out, top, bottom, f0, f1, n, stream);
}

void cubic_between(float *out, const float *const rows[4], const float weights[4], size_t n, int stream) {
  const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  const float p = weights[0], q = weights[1], r = weights[2], s = weights[3];
  each_vector(out, n, stream,
              [=](size_t i) { return load(a + i) * p + load(b + i) * q + load(c + i) * r + load(d + i) * s; });
}

void resize_between_bytes(uint8_t *__restrict out, const float *__restrict top, const float *__restrict bottom,
                          float f0, float f1, size_t n, int) {
  const auto at = [=](size_t i) { return weighted(load(top + i), f0, load(bottom + i), f1); };
  size_t i = 0;
#if LK_HAS_PACK
  constexpr size_t kFour = 4 * kLanes;
  const auto put = [=](size_t from) {
    store(out + from, to_levels(at(from), at(from + kLanes), at(from + 2 * kLanes), at(from + 3 * kLanes)));
  };
  for (; i + kFour <= n; i += kFour) put(i);
  if (i < n && n >= kFour) {
    // the last ones overlap their neighbours
    put(n - kFour);
    i = n;
  }
#endif
  for (; i < n; i += kLanes) {
    const Floats few = at(i);
    for (size_t k = 0; k < kLanes && i + k < n; k++) out[i + k] = (uint8_t)to_level(few[k]);
  }
}

/* ---- pixels: three or four colours side by side ---- */
/* Rows are consecutive in memory: what lies a page further on is read soon. */
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
inline void area_of_pixels(float *out, const float *top, size_t len, size_t rows, const int32_t *first,
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
    area_of_pixels<true>(out, top, len, rows, first, widths, shares, channels, inside, n);
  } else {
    area_of_pixels<false>(out, top, len, rows, first, widths, shares, channels, inside, n);
  }
}

}  // namespace

extern "C" void LK_JOIN(resize, LK_ISA)(lk_kernels *table) {
  table->resize_across = resize_across;
  table->resize_between = resize_between;
  table->resize_between_in_unit = resize_between_in_unit;
  table->resize_between_bytes = resize_between_bytes;
  table->nearest_across = nearest_across;
  table->cubic_across = cubic_across;
  table->cubic_between = cubic_between;
  table->area_across = area_across;
  table->linear_pixels = linear_pixels;
  table->cubic_pixels = cubic_pixels;
  table->nearest_pixels = nearest_pixels;
  table->area_pixels = area_pixels;
}
