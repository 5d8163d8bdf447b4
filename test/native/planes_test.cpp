// Resize, blend, composite and the whole of injectNoise against plain loops.
#include <algorithm>
#include <cmath>

#include "check.h"

namespace {

std::vector<float> reference_resize(const std::vector<float> &x, size_t planes, size_t ih, size_t iw, size_t oh,
                                    size_t ow) {
  auto taps = [](size_t in, size_t out, size_t i, size_t *low, size_t *high, float *w) {
    float ratio = static_cast<float>(in) / static_cast<float>(out);
    float at = std::max(0.0f, std::fmaf(ratio, static_cast<float>(i) + 0.5f, -0.5f));
    *low = std::min(static_cast<size_t>(at), in - 1);
    *high = std::min(*low + 1, in - 1);
    *w = std::min(1.0f, at - static_cast<float>(*low));
  };
  std::vector<float> result(planes * oh * ow);
  for (size_t p = 0; p < planes; p++) {
    for (size_t y = 0; y < oh; y++) {
      for (size_t c = 0; c < ow; c++) {
        size_t y0, y1, x0, x1;
        float fy, fx;
        taps(ih, oh, y, &y0, &y1, &fy);
        taps(iw, ow, c, &x0, &x1, &fx);
        const float *plane = x.data() + p * ih * iw;
        float top = std::fmaf(plane[y0 * iw + x1], fx, plane[y0 * iw + x0] * (1.0f - fx));
        float bottom = std::fmaf(plane[y1 * iw + x1], fx, plane[y1 * iw + x0] * (1.0f - fx));
        result[(p * oh + y) * ow + c] = std::fmaf(bottom, fy, top * (1.0f - fy));
      }
    }
  }
  return result;
}

void resize() {
  const size_t shapes[][5] = {{1, 1, 1, 1, 1},     {1, 1, 1, 5, 7},       {2, 5, 7, 1, 1},     {3, 8, 8, 8, 8},
                              {2, 17, 31, 33, 16}, {1, 512, 300, 64, 37}, {4, 3, 5, 200, 401}, {1, 2, 70000, 2, 35001},
                              {1, 2, 7, 3, 64},    {1, 3, 16, 4, 128},    {2, 2, 17, 2, 35},   {1, 2, 100, 3, 101}};
  for (const auto &s : shapes) {
    std::vector<float> x = numbers(s[0] * s[1] * s[2], 1);
    std::vector<float> got = everywhere([&] {
      std::vector<float> values(s[0] * s[3] * s[4]);
      CHECK(engine_resize_bilinear(out(values), in(x), s[0], s[1], s[2], s[3], s[4]) == ENGINE_OK);
      return values;
    });
    CHECK(same_bytes(reference_resize(x, s[0], s[1], s[2], s[3], s[4]), got));
  }
  // sums that overflow, and values below the smallest normal: one rounding on every set
  std::vector<float> extreme = {3.4e38f, 3.3e38f, -3.4e38f, 1e-45f, 3e-39f, 2e-45f, INFINITY, 1.0f, -INFINITY};
  std::vector<float> got = everywhere([&] {
    std::vector<float> values(35);
    CHECK(engine_resize_bilinear(out(values), in(extreme), 1, 1, 9, 1, 35) == ENGINE_OK);
    return values;
  });
  std::vector<float> expected = reference_resize(extreme, 1, 1, 9, 1, 35);
  for (size_t i = 0; i < 35; i++) CHECK(std::isnan(expected[i]) ? std::isnan(got[i]) : expected[i] == got[i]);
  std::vector<float> a(4);
  CHECK(engine_resize_bilinear(out(a), in(a), 1, 2, 2, 3, 3) == ENGINE_BAD_LENGTH);
  CHECK(engine_resize_bilinear(out(a), in(a), 1, 3, 2, 2, 2) == ENGINE_BAD_LENGTH);
  CHECK(engine_resize_bilinear(out(a), {nullptr, 0}, 1, 0, 2, 2, 2) == ENGINE_BAD_LENGTH);
  CHECK(engine_resize_bilinear({nullptr, 0}, in(a), 1, 2, 2, 0, 2) == ENGINE_OK);
  CHECK(engine_resize_bilinear(out(a), in(a), SIZE_MAX, SIZE_MAX, 2, 2, 2) == ENGINE_BAD_LENGTH);
}

/* One pass gives the bits of its two steps. */
void resize_to_image() {
  const size_t shapes[][5] = {{1, 1, 1, 1, 1},   {1, 1, 1, 5, 7},     {2, 5, 7, 1, 1},        {1, 64, 64, 512, 512},
                              {3, 9, 4, 33, 47}, {1, 3, 5, 20000, 3}, {1, 2, 20000, 2, 9001}, {2, 40, 30, 321, 257},
                              {2, 3, 2, 24, 16}, {1, 2, 5, 3, 40},    {1, 4, 6, 9, 12},       {1, 2, 50, 2, 51}};
  for (const auto &s : shapes) {
    std::vector<float> x = numbers(s[0] * 3 * s[1] * s[2], 5);
    x[x.size() / 2] = NAN;
    x[x.size() / 3] = INFINITY;
    x[x.size() / 4] = -3e38f;
    x[x.size() / 5] = 1e10f;
    std::vector<float> planes(s[0] * 3 * s[3] * s[4]), expected(planes.size());
    CHECK(engine_resize_bilinear(out(planes), in(x), s[0] * 3, s[1], s[2], s[3], s[4]) == ENGINE_OK);
    CHECK(engine_planes_to_image(out(expected), in(planes), s[0]) == ENGINE_OK);
    CHECK(same_bytes(expected, everywhere([&] {
                       std::vector<float> values(expected.size());
                       CHECK(engine_resize_to_image(out(values), in(x), s[0], s[1], s[2], s[3], s[4]) == ENGINE_OK);
                       return values;
                     })));
    std::vector<uint8_t> bytes(expected.size());
    CHECK(engine_f32_to_u8({bytes.data(), bytes.size()}, in(expected)) == ENGINE_OK);
    CHECK(same_bytes(bytes, everywhere([&] {
                       std::vector<uint8_t> values(bytes.size());
                       CHECK(engine_resize_to_bytes({values.data(), values.size()}, in(x), s[0], s[1], s[2], s[3],
                                                    s[4]) == ENGINE_OK);
                       return values;
                     })));
  }
  std::vector<float> a(12);
  CHECK(engine_resize_to_image(out(a), in(a), 1, 2, 2, 3, 3) == ENGINE_BAD_LENGTH);
  constexpr size_t wide = INT32_MAX / 3 + 1;
  CHECK(engine_resize_to_image(out(a), {nullptr, 3 * wide}, 1, 1, wide, 2, 2) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_resize_to_image(out(a), in(a), 2, 2, 2, 2, 2) == ENGINE_BAD_LENGTH);
  uint8_t byte[12];
  CHECK(engine_resize_to_bytes({byte, 12}, in(a), 1, 2, 2, 3, 3) == ENGINE_BAD_LENGTH);
  CHECK(engine_resize_to_bytes({byte, 12}, {nullptr, 3 * wide}, 1, 1, wide, 2, 2) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_resize_to_image({nullptr, 0}, in(a), 1, 2, 2, 0, 2) == ENGINE_OK);
  CHECK(engine_resize_to_image(out(a), in(a), SIZE_MAX / 3 + 1, 2, 2, 2, 2) == ENGINE_BAD_LENGTH);
}

/* In double, in the order of the channels. */
void latent_to_rgb() {
  const size_t shapes[][3] = {{1, 4, 4096},  {2, 16, 35}, {3, 1, 1}, {2, 4, 7},
                              {1, 4, 70003}, {2, 0, 5},   {0, 4, 0}, {2, 4, 0}};
  for (const auto &[batch, channels, plane] : shapes) {
    const std::vector<float> x = numbers(batch * channels * plane, 3);
    std::vector<double> factors;
    for (size_t i = 0; i < 3 * channels; i++) factors.push_back(std::sin(static_cast<double>(i)));
    const double bias[] = {0.1, -0.2, 1.0 / 3}, shift = 0.0609, scale = 1.5305;
    std::vector<float> expected(batch * 3 * plane);
    for (size_t i = 0; i < expected.size(); i++) {
      const size_t item = i / plane / 3, colour = i / plane % 3;
      double value = bias[colour];
      for (size_t c = 0; c < channels; c++) {
        value += (x[(item * channels + c) * plane + i % plane] - shift) * scale * factors[3 * c + colour];
      }
      expected[i] = static_cast<float>((value + 1) / 2);
    }
    CHECK(same_bytes(expected, everywhere([&, batch = batch, channels = channels] {
                       std::vector<float> values(expected.size());
                       CHECK(engine_latent_to_rgb(out(values), in(x), batch, channels, factors.data(), bias, shift,
                                                  scale) == ENGINE_OK);
                       return values;
                     })));
  }
  std::vector<float> a(12), b(6), none;
  const double table[12] = {};
  const auto status = [&](std::vector<float> &to, const std::vector<float> &x, size_t batch, size_t channels) {
    return engine_latent_to_rgb(out(to), in(x), batch, channels, table, table, 0, 1);
  };
  CHECK(status(b, a, 1, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(b, a, 0, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(b, b, 4, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(b, a, 2, SIZE_MAX) == ENGINE_BAD_LENGTH);
  CHECK(status(none, b, 1, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(none, none, SIZE_MAX, 4) == ENGINE_OK);
}

/* Pixels of planes, clamped; NaN is 0. */
void planes_to_image() {
  const size_t shapes[][2] = {{1, 1}, {2, 15}, {3, 17}, {1, 70003}, {0, 0}};
  for (const auto &[batch, plane] : shapes) {
    std::vector<float> x = numbers(batch * 3 * plane, 5), expected(x.size());
    const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 1.0f, 1e-45f, 1.0000001f};
    for (size_t i = 0; i < x.size() && i < 7; i++) x[x.size() - 1 - i] = special[i];
    for (size_t i = 0; i < x.size(); i++) {
      const size_t item = i / (3 * plane), colour = i / plane % 3, pixel = i % plane;
      const float v = x[i] > 0.0f ? (x[i] < 1.0f ? x[i] : 1.0f) : 0.0f;
      expected[(item * plane + pixel) * 3 + colour] = v;
    }
    CHECK(same_bytes(expected, everywhere([&, batch = batch] {
                       std::vector<float> values(x.size());
                       CHECK(engine_planes_to_image(out(values), in(x), batch) == ENGINE_OK);
                       return values;
                     })));
  }
  std::vector<float> a(6), b(7);
  CHECK(engine_planes_to_image(out(a), in(b), 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_planes_to_image(out(a), in(a), 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_planes_to_image(out(a), in(a), 4) == ENGINE_BAD_LENGTH);
  CHECK(engine_planes_to_image(out(b), in(b), 1) == ENGINE_BAD_LENGTH);
}

void blend() {
  const size_t shapes[][4] = {{1, 1, 1, 1},    {2, 3, 15, 1},    {3, 4, 65, 2},
                              {5, 1, 4097, 2}, {2, 2, 70001, 1}, {0, 3, 8, 1}};
  for (const auto &s : shapes) {
    size_t n = s[0] * s[1] * s[2];
    std::vector<float> a = numbers(n, 1), b = numbers(n, 2), m = numbers(s[3] * s[2], 3);
    std::vector<float> got = everywhere([&] {
      std::vector<float> values(n), first = a, second = b;
      CHECK(engine_masked_blend(out(values), in(a), in(b), in(m), s[0], s[1], s[2], s[3]) == ENGINE_OK);
      CHECK(engine_masked_blend(out(first), in(first), in(b), in(m), s[0], s[1], s[2], s[3]) == ENGINE_OK);
      CHECK(engine_masked_blend(out(second), in(a), in(second), in(m), s[0], s[1], s[2], s[3]) == ENGINE_OK);
      CHECK(same_bytes(values, first) && same_bytes(values, second));
      return values;
    });
    for (size_t i = 0; i < n; i++) {
      float w = m[i / s[2] / s[1] % s[3] * s[2] + i % s[2]];
      CHECK(got[i] == w * a[i] + (1.0f - w) * b[i]);
    }
  }
  std::vector<float> v(12);
  CHECK(engine_masked_blend(out(v), in(v), in(v), {v.data(), 3}, 2, 2, 3, 1) == ENGINE_OK);
  CHECK(engine_masked_blend(out(v), in(v), in(v), {v.data(), 4}, 2, 2, 3, 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_masked_blend(out(v), in(v), in(v), {nullptr, 0}, 2, 2, 3, 0) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_masked_blend(out(v), in(v), in(v), in(v), SIZE_MAX, 2, 3, 4) == ENGINE_BAD_LENGTH);
}

bool covered(int64_t at, int64_t from, size_t n) { return at >= from && at - from < static_cast<int64_t>(n); }

void composite() {
  engine_shape4 shape{3, 2, 9, 11};
  std::vector<float> base = numbers(3 * 2 * 9 * 11, 1);
  for (engine_shape4 s : {engine_shape4{1, 2, 4, 5}, engine_shape4{2, 1, 20, 30}, engine_shape4{5, 2, 9, 11}}) {
    std::vector<float> source = numbers(s.n * s.c * s.h * s.w, 2), mask = numbers(2 * s.h * s.w, 3);
    for (int64_t x : {int64_t{0}, int64_t{3}, int64_t{-2}, int64_t{10}, int64_t{11}, INT64_MIN, INT64_MAX}) {
      for (int64_t y : {int64_t{0}, int64_t{-3}, int64_t{8}, int64_t{-30}}) {
        for (bool masked : {false, true}) {
          engine_cf32 m = masked ? in(mask) : engine_cf32{nullptr, 0};
          std::vector<float> got = everywhere([&] {
            std::vector<float> d = base;
            CHECK(engine_composite(out(d), shape, in(source), s, x, y, m, 2) == ENGINE_OK);
            return d;
          });
          for (size_t i = 0; i < base.size(); i++) {
            int64_t col = static_cast<int64_t>(i % 11), row = static_cast<int64_t>(i / 11 % 9);
            size_t channel = i / 99 % 2, image = i / 198;
            float expected = base[i];
            bool far = x == INT64_MIN || x == INT64_MAX;
            if (!far && covered(col, x, s.w) && covered(row, y, s.h)) {
              size_t sc = static_cast<size_t>(col - x), sr = static_cast<size_t>(row - y);
              float v = source[((image % s.n * s.c + (s.c == 1 ? 0 : channel)) * s.h + sr) * s.w + sc];
              float w = mask[(image % 2 * s.h + sr) * s.w + sc];
              expected = masked ? w * v + (1.0f - w) * base[i] : v;
            }
            CHECK(got[i] == expected);
          }
        }
      }
    }
  }
  std::vector<float> source(20);
  engine_cf32 none{nullptr, 0};
  CHECK(engine_composite(out(base), shape, in(source), {1, 3, 1, 1}, 0, 0, none, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_composite(out(base), shape, in(source), {1, 5, 2, 2}, 0, 0, none, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_composite(out(base), shape, in(source), {1, 1, 4, 5}, 0, 0, in(source), 2) == ENGINE_BAD_LENGTH);
  CHECK(engine_composite(out(base), shape, in(source), {SIZE_MAX, 2, SIZE_MAX, 5}, 0, 0, none, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_composite(out(base), shape, none, {0, 2, 4, 5}, 0, 0, none, 0) == ENGINE_OK);
}

void large_composite() {
  engine_shape4 shape{1, 3, 300, 300};
  std::vector<float> base = numbers(3 * 300 * 300, 1), source = numbers(3 * 290 * 290, 2), mask = numbers(290 * 290, 3);
  everywhere([&] {
    std::vector<float> d = base;
    CHECK(engine_composite(out(d), shape, in(source), {1, 3, 290, 290}, 5, 5, in(mask), 1) == ENGINE_OK);
    return d;
  });
}

void inject() {
  const engine_shape4 shapes[] = {{1, 1, 1, 2}, {2, 4, 12, 10}, {1, 4, 65, 65}, {3, 4, 80, 80}};
  for (const engine_shape4 &s : shapes) {
    size_t n = s.n * s.c * s.h * s.w, plane = s.h * s.w;
    std::vector<float> base = numbers(n, 1), noise = numbers(n, 2), random = numbers(n, 3);
    std::vector<float> mask = numbers(s.n * 6 * 9, 4);
    for (int bits = 0; bits < 16; bits++) {
      engine_inject_options options{};
      options.strength = 0.35;
      options.average = bits & 1;
      options.normalize = bits >> 1 & 1;
      options.shape = s;
      if (bits & 4) options.mask = in(mask), options.mask_n = s.n, options.mask_h = 6, options.mask_w = 9;
      if (bits & 8) options.mix = 0.3, options.random = in(random);
      std::vector<float> got = everywhere([&] {
        std::vector<float> values(n), first = base, second = noise;
        CHECK(engine_inject_noise(out(values), in(base), in(noise), &options) == ENGINE_OK);
        CHECK(engine_inject_noise(out(first), in(first), in(noise), &options) == ENGINE_OK);
        CHECK(engine_inject_noise(out(second), in(base), in(second), &options) == ENGINE_OK);
        CHECK(same_bytes(values, first) && same_bytes(values, second));
        return values;
      });
      std::vector<float> expected(n);
      for (size_t i = 0; i < n; i++) {
        expected[i] = options.average ? (base[i] + noise[i]) / 2.0f : base[i] + noise[i] * 0.35f;
      }
      float deviation = 1.0f;
      if (options.normalize) CHECK(engine_std(in(expected), &deviation) == ENGINE_OK);
      std::vector<float> resized = reference_resize(mask, s.n, 6, 9, s.h, s.w);
      double left = 1.0 - 0.3;
      float rest = static_cast<float>(left), length = static_cast<float>(std::sqrt(0.3 * 0.3 + left * left));
      for (size_t i = 0; i < n; i++) {
        float v = expected[i] / deviation, m = resized[i / plane / s.c * plane + i % plane];
        if (bits & 4) v = m * v + (1.0f - m) * base[i];
        if (bits & 8) v = (rest * v + 0.3f * random[i]) / length;
        expected[i] = v;
      }
      CHECK(same_bytes(expected, got));
    }
  }
}

void refuse_inject() {
  std::vector<float> a(8, 1.0f), b(7), mask(4);
  engine_inject_options options{};
  options.strength = 0.1;
  CHECK(engine_inject_noise(out(a), in(a), in(b), &options) == ENGINE_BAD_LENGTH);
  CHECK(engine_inject_noise(out(b), in(a), in(a), &options) == ENGINE_BAD_LENGTH);
  options.normalize = 1;
  CHECK(engine_inject_noise(out(a), in(a), in(a), &options) == ENGINE_ZERO_DEVIATION);
  // one element has no deviation: NaN, as the reference
  CHECK(engine_inject_noise({b.data(), 1}, {a.data(), 1}, {a.data(), 1}, &options) == ENGINE_OK && b[0] != b[0]);
  CHECK(engine_inject_noise({nullptr, 0}, {nullptr, 0}, {nullptr, 0}, &options) == ENGINE_OK);
  options.normalize = 0;
  options.mix = 0.5;
  CHECK(engine_inject_noise(out(a), in(a), in(a), &options) == ENGINE_BAD_LENGTH);
  options.mix = INFINITY;
  options.random = in(a);
  CHECK(engine_inject_noise(out(a), in(a), in(a), &options) == ENGINE_BAD_ARGUMENT);
  options.mix = 0.0;
  options.mask = in(mask);
  CHECK(engine_inject_noise(out(a), in(a), in(a), &options) == ENGINE_BAD_LENGTH);
  options.shape = {1, 2, 2, 2};
  options.mask_n = 2, options.mask_h = 1, options.mask_w = 2;
  CHECK(engine_inject_noise(out(a), in(a), in(a), &options) == ENGINE_BAD_LENGTH);
  options.mask_n = 1, options.mask_h = 2;
  CHECK(engine_inject_noise(out(a), in(a), in(a), &options) == ENGINE_OK);
}

}  // namespace

int main() {
  resize();
  planes_to_image();
  resize_to_image();
  latent_to_rgb();
  blend();
  composite();
  large_composite();
  inject();
  refuse_inject();
  return report();
}
