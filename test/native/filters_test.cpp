// The separable convolution and the blend modes against plain loops.
#include <cmath>

#include "check.h"

namespace {

using Floats = std::vector<float>;

Floats numbers(size_t n, uint32_t seed) {
  Floats values(n);
  for (float &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / 8388608.0f - 0.5f;
  }
  return values;
}

size_t mirrored(long i, long n) {
  while (n > 1 && (i < 0 || i >= n)) i = i < 0 ? -i : 2 * (n - 1) - i;
  return n == 1 ? 0 : static_cast<size_t>(i);
}

/* Along lines of n elements that lie `step` apart. */
Floats along(const Floats &x, size_t n, size_t step, const Floats &weights) {
  Floats out(x.size());
  const long reach = static_cast<long>(weights.size() / 2);
  for (size_t i = 0; i < x.size(); i++) {
    const size_t at = i / step % n, start = i - at * step;
    for (size_t tap = 0; tap < weights.size(); tap++) {
      const long from = static_cast<long>(at + tap) - reach;
      const float term = x[start + mirrored(from, static_cast<long>(n)) * step] * weights[tap];
      out[i] = tap == 0 ? term : out[i] + term;
    }
  }
  return out;
}

engine_status convolve(Floats &out, const Floats &x, size_t batch, size_t h, size_t w, size_t c, const Floats &k) {
  return engine_convolve_image({out.data(), out.size()}, {x.data(), x.size()}, batch, h, w, c, {k.data(), k.size()});
}

void convolutions() {
  struct Size {
    size_t batch, height, width, channels, taps;
  };
  for (const Size s : {Size{1, 1, 1, 1, 5}, Size{2, 3, 2, 3, 9}, Size{1, 5, 1, 4, 3}, Size{3, 7, 6, 1, 1},
                       Size{2, 40, 33, 4, 63}, Size{1, 190, 130, 3, 7}}) {
    const Floats x = numbers(s.batch * s.height * s.width * s.channels, 1), weights = numbers(s.taps, 2);
    const Floats result = everywhere([&] {
      Floats out(x.size());
      CHECK(convolve(out, x, s.batch, s.height, s.width, s.channels, weights) == ENGINE_OK);
      return out;
    });
    const Floats down = along(x, s.height, s.width * s.channels, weights);
    CHECK(same_bytes(result, along(down, s.width, s.channels, weights)));
  }
}

void refusals() {
  Floats out(12), x(12), long_weights(4097);
  CHECK(convolve(out, x, 1, 2, 2, 3, {1, 2}) == ENGINE_BAD_ARGUMENT);
  CHECK(convolve(out, x, 1, 2, 2, 3, {}) == ENGINE_BAD_ARGUMENT);
  CHECK(convolve(out, x, 1, 2, 2, 3, long_weights) == ENGINE_BAD_ARGUMENT);
  CHECK(convolve(out, x, 1, 2, 2, 4, {1}) == ENGINE_BAD_LENGTH);
  CHECK(convolve(out, x, SIZE_MAX, 2, 2, 3, {1}) == ENGINE_BAD_LENGTH);
  Floats none;
  CHECK(convolve(none, none, 0, 2, 2, 3, {1}) == ENGINE_OK);
  const engine_cf32 twelve = {x.data(), 12}, eleven = {x.data(), 11};
  CHECK(engine_blend_images({out.data(), 12}, twelve, eleven, ENGINE_BLEND_NORMAL, 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_blend_images({out.data(), 12}, twelve, twelve, static_cast<engine_blend_mode>(6), 1) ==
        ENGINE_BAD_ARGUMENT);
}

float mixed(engine_blend_mode mode, float a, float b) {
  if (mode == ENGINE_BLEND_NORMAL) return b;
  if (mode == ENGINE_BLEND_MULTIPLY) return a * b;
  if (mode == ENGINE_BLEND_SCREEN) return 1 - (1 - a) * (1 - b);
  if (mode == ENGINE_BLEND_OVERLAY) return a <= 0.5f ? 2 * a * b : 1 - 2 * (1 - a) * (1 - b);
  if (mode == ENGINE_BLEND_DIFFERENCE) return a - b;
  const float curve = a <= 0.25f ? ((16 * a - 12) * a + 4) * a : std::sqrt(a);
  return b <= 0.5f ? a - (1 - 2 * b) * a * (1 - a) : a + (2 * b - 1) * (curve - a);
}

void clamps() {
  const size_t n = 70001;
  Floats x = numbers(n, 5);
  x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY, x[3] = -0.0f, x[4] = 1e-45f, x[n - 1] = 2;
  const Floats result = everywhere([&] {
    Floats out = x;
    engine_clamp_to_unit({out.data(), n});
    CHECK(std::isnan(out[0]));
    out[0] = 0;
    return out;
  });
  CHECK(result[1] == 1 && result[2] == 0 && result[3] == 0 && result[4] == 1e-45f && result[n - 1] == 1);
  for (size_t i = 5; i < n; i++) CHECK(result[i] == std::min(std::max(x[i], 0.0f), 1.0f));
}

void blends() {
  const size_t n = 70001;
  Floats a = numbers(n, 3), b = numbers(n, 4);
  for (size_t i = 0; i < n; i++) a[i] = std::fabs(a[i]) * 1.1f;
  a[7] = NAN;
  for (int k = ENGINE_BLEND_NORMAL; k <= ENGINE_BLEND_DIFFERENCE; k++) {
    const auto mode = static_cast<engine_blend_mode>(k);
    const Floats result = everywhere([&] {
      Floats out = a;
      CHECK(engine_blend_images({out.data(), n}, {out.data(), n}, {b.data(), n}, mode, 0.3) == ENGINE_OK);
      CHECK(std::isnan(out[7]));
      out[7] = 0;
      return out;
    });
    for (size_t i = 0; i < n; i++) {
      if (i == 7) continue;
      const float v = a[i] * static_cast<float>(1 - 0.3) + mixed(mode, a[i], b[i]) * 0.3f;
      CHECK(result[i] == (v < 0 ? 0 : v > 1 ? 1 : v));
    }
  }
}

void extremes() {
  struct Case {
    size_t outer, count, inner, before, after;
  };
  for (const Case c : {Case{2, 5, 3, 1, 0}, Case{3, 1, 7, 4, 4}, Case{40, 61, 33, 9, 20}, Case{2, 170, 211, 0, 3},
                       Case{1, 9, 1, SIZE_MAX, SIZE_MAX}, Case{500, 41, 4, 30, 30}}) {
    const size_t n = c.outer * c.count * c.inner;
    const Floats x = numbers(n, 5), held = numbers(n, 6);
    for (const bool least : {false, true}) {
      for (const bool more : {false, true}) {
        const Floats result = everywhere([&] {
          Floats out = held;
          CHECK(engine_extremes_along({out.data(), n}, {x.data(), n}, c.outer, c.count, c.inner, c.before, c.after,
                                      least, more) == ENGINE_OK);
          return out;
        });
        for (size_t i = 0; i < n; i++) {
          const size_t at = i / c.inner % c.count, start = i - at * c.inner;
          const float a = x[start + (at < c.before ? 0 : at - c.before) * c.inner];
          const float b = x[start + (c.after > c.count - 1 - at ? c.count - 1 : at + c.after) * c.inner];
          float expected = least ? std::fmin(a, b) : std::fmax(a, b);
          if (more) expected = least ? std::fmin(expected, held[i]) : std::fmax(expected, held[i]);
          CHECK(result[i] == expected);
        }
      }
    }
  }
  Floats few(6);
  CHECK(engine_extremes_along({few.data(), 6}, {few.data(), 6}, 2, 2, 2, 1, 1, 0, 0) == ENGINE_BAD_LENGTH);
}

}  // namespace

int main() {
  convolutions();
  refusals();
  clamps();
  blends();
  extremes();
  return report();
}
