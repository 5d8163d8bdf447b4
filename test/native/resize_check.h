// Sizes that are resized, and both layouts of their values.
#pragma once

#include "check.h"

using Floats = std::vector<float>;

/* Sides of one picture, or of all planes, and the channels that lie side by side. */
struct Sizes {
  size_t count, in_h, in_w, out_h, out_w, channels;
};

inline const std::vector<Sizes> &sizes() {
  static const std::vector<Sizes> all = {
      {1, 1, 1, 1, 1, 3},     {1, 1, 1, 5, 7, 3},       {2, 5, 7, 1, 1, 3},         {1, 1, 2, 1, 9, 4},
      {3, 8, 8, 8, 8, 3},     {2, 17, 31, 33, 16, 3},   {2, 17, 31, 33, 16, 4},     {1, 40, 33, 20, 50, 1},
      {1, 9, 14, 30, 5, 2},   {1, 6, 5, 7, 40, 5},      {1, 64, 48, 32, 24, 3},     {1, 100, 7, 3, 100, 3},
      {1, 3, 900, 5, 13, 3},  {1, 90, 70, 131, 200, 3}, {1, 300, 260, 111, 401, 3}, {2, 70, 64, 70, 20, 4},
      {2, 70, 64, 13, 64, 4}, {1, 2, 300, 2, 35, 1},    {1, 300, 600, 300, 300, 1}};
  return all;
}

inline engine_resize_options planes_of(const Sizes &s, int method) {
  return {method, 0, s.count, s.channels, 1, s.in_h, s.in_w, s.out_h, s.out_w};
}

inline engine_resize_options pixels_of(const Sizes &s, int method) {
  return {method, 1, s.count, s.channels, 1, s.in_h, s.in_w, s.out_h, s.out_w};
}

/* Planes [count, channels, h, w] as pixels [count, h, w, channels]. */
inline Floats as_pixels(const Floats &x, size_t channels, size_t plane) {
  Floats pixels(x.size());
  for (size_t i = 0; i < x.size(); i++) {
    const size_t item = i / plane / channels, channel = i / plane % channels;
    pixels[(item * plane + i % plane) * channels + channel] = x[i];
  }
  return pixels;
}

inline Floats resized(const Floats &x, const engine_resize_options &options) {
  return everywhere([&] {
    Floats values(options.batch * options.channels * options.inner * options.out_h * options.out_w);
    CHECK(engine_resize(out(values), in(x), &options) == ENGINE_OK);
    return values;
  });
}
