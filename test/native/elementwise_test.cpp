// Element by element operations, the standard deviation, and the conversions of images, against plain loops.
#include <cmath>
#include <limits>

#include "check.h"

namespace {

template <class Run, class Each>
void against_loop(size_t n, Run &&run, Each &&each) {
  std::vector<float> x = numbers(n, 1), y = numbers(n, 2);
  std::vector<float> got = everywhere([&] {
    std::vector<float> values(n);
    CHECK(run(out(values), in(x), in(y)) == ENGINE_OK);
    // the output may be any input
    std::vector<float> first = x, second = y;
    CHECK(run(out(first), in(first), in(y)) == ENGINE_OK);
    CHECK(run(out(second), in(x), in(second)) == ENGINE_OK);
    CHECK(same_bytes(values, first) && same_bytes(values, second));
    return values;
  });
  std::vector<float> expected(n);
  for (size_t i = 0; i < n; i++) expected[i] = each(x[i], y[i]);
  CHECK(same_bytes(expected, got));
}

void operations() {
  std::vector<size_t> sizes = edge_sizes();
  sizes.push_back((size_t{1} << 20) + 5);  // written around the caches
  for (size_t n : sizes) {
    against_loop(
        n, [](engine_f32 o, engine_cf32 x, engine_cf32 y) { return engine_axpy(o, x, y, 0.35f); },
        [](float x, float y) { return x + y * 0.35f; });
    against_loop(
        n, [](engine_f32 o, engine_cf32 x, engine_cf32 y) { return engine_average(o, x, y); },
        [](float x, float y) { return (x + y) / 2.0f; });
    against_loop(
        n, [](engine_f32 o, engine_cf32 x, engine_cf32 y) { return engine_lerp(o, x, y, 0.7f); },
        [](float x, float y) { return x + (y - x) * 0.7f; });
    std::vector<float> x = numbers(n, 3);
    std::vector<float> got = everywhere([&] {
      std::vector<float> values = x;
      CHECK(engine_scale(out(values), in(values), 1.7f) == ENGINE_OK);
      return values;
    });
    for (float &value : x) value *= 1.7f;
    CHECK(same_bytes(x, got));
  }
}

/* Unaligned ends: the streaming loops must reach the first and the last element. */
void unaligned() {
  size_t n = (size_t{1} << 20) + 3;
  std::vector<float> x = numbers(n + 1, 4), values(n + 1, -9.0f);
  CHECK(engine_scale({values.data() + 1, n}, {x.data() + 1, n}, 2.0f) == ENGINE_OK);
  CHECK(values[0] == -9.0f);
  for (size_t i = 1; i <= n; i++) CHECK(values[i] == 2.0f * x[i]);
}

void deviation() {
  for (size_t n : edge_sizes()) {
    std::vector<float> x = numbers(n, 5);
    std::vector<float> got = everywhere([&] {
      std::vector<float> value(1);
      CHECK(engine_std(in(x), value.data()) == ENGINE_OK);
      return value;
    });
    if (n < 2) {
      CHECK(std::isnan(got[0]));
      continue;
    }
    long double mean = 0, squares = 0;
    for (float v : x) mean += v;
    mean /= static_cast<long double>(n);
    for (float v : x) squares += (v - mean) * (v - mean);
    CHECK(got[0] == static_cast<float>(std::sqrt(squares / static_cast<long double>(n - 1))));
  }
  std::vector<float> constant(5000, 3.25f);
  float value = -1.0f;
  CHECK(engine_std(in(constant), &value) == ENGINE_OK && value == 0.0f);
}

void lengths() {
  std::vector<float> a(8), b(7);
  std::vector<uint8_t> bytes(7);
  CHECK(engine_scale(out(a), in(b), 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_axpy(out(a), in(a), in(b), 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_axpy(out(a), in(b), in(a), 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_average(out(b), in(a), in(b)) == ENGINE_BAD_LENGTH);
  CHECK(engine_lerp(out(a), in(a), in(b), 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_f32_to_u8({bytes.data(), 7}, in(a)) == ENGINE_BAD_LENGTH);
  CHECK(engine_f32_to_u16({bytes.data(), 7}, in(a)) == ENGINE_BAD_LENGTH);
  CHECK(engine_u8_to_f32(out(a), {bytes.data(), 7}) == ENGINE_BAD_LENGTH);
  CHECK(engine_channel_to_mask(out(a), in(b), 1, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_channel_to_mask(out(a), in(a), 2, 0) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_channel_to_mask(out(a), in(a), 1, 3) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_channel_to_mask({a.data(), SIZE_MAX / 2}, in(a), 3, 0) == ENGINE_BAD_LENGTH);
}

uint8_t level(float x) {
  if (std::isnan(x)) return 0;
  float v = x * 255.0f;
  return v <= 0.0f ? 0 : v >= 255.0f ? 255 : static_cast<uint8_t>(v);
}

void bytes() {
  const float infinity = std::numeric_limits<float>::infinity();
  for (size_t n : edge_sizes()) {
    std::vector<float> x = numbers(n, 6, 1.5f);
    const float special[] = {infinity, -infinity, NAN, -0.0f, 0.0f, 1.0f, 3e38f, -3e38f, 1e-45f, 254.99999f / 255.0f};
    for (size_t i = 0; i < n && i < 10; i++) x[n - 1 - i] = special[i];
    std::vector<uint8_t> got = everywhere([&] {
      std::vector<uint8_t> values(n);
      CHECK(engine_f32_to_u8({values.data(), n}, in(x)) == ENGINE_OK);
      return values;
    });
    for (size_t i = 0; i < n; i++) CHECK(got[i] == level(x[i]));
    for (int channels : {1, 3, 4}) {
      std::vector<float> image = numbers(n * static_cast<size_t>(channels), 7, 1.2f);
      for (int channel : {0, 1, 2}) {
        std::vector<float> mask = everywhere([&] {
          std::vector<float> values(n);
          CHECK(engine_channel_to_mask(out(values), in(image), channels, channel) == ENGINE_OK);
          return values;
        });
        for (size_t i = 0; i < n; i++) {
          size_t at = i * static_cast<size_t>(channels) + static_cast<size_t>(channels == 1 ? 0 : channel);
          float v = static_cast<float>(level(image[at])) / 255.0f;
          CHECK(mask[i] == (v + v + v) / 3.0f);
        }
      }
    }
    std::vector<float> back = everywhere([&] {
      std::vector<float> values(n);
      CHECK(engine_u8_to_f32(out(values), {got.data(), n}) == ENGINE_OK);
      return values;
    });
    for (size_t i = 0; i < n; i++) CHECK(back[i] == static_cast<float>(got[i]) / 255.0f);
  }
}

/* Enough for stores around the caches, which start at an aligned address. */
void many_bytes() {
  const std::vector<float> x = numbers((size_t{8} << 20) + 777, 9, 1.5f);
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{63}}) {
    std::vector<uint8_t> got = everywhere([&] {
      std::vector<uint8_t> values(x.size() + 64, 7);
      CHECK(engine_f32_to_u8({values.data() + offset, x.size()}, in(x)) == ENGINE_OK);
      return values;
    });
    for (size_t i = 0; i < x.size(); i++) CHECK(got[offset + i] == level(x[i]));
    for (size_t i = 0; i < offset; i++) CHECK(got[i] == 7);
    for (size_t i = offset + x.size(); i < got.size(); i++) CHECK(got[i] == 7);
  }
}

/* Every level through the division by multiplication of the mask kernel, in the vector part and in the tail. */
void all_levels() {
  for (size_t n : {size_t{256}, size_t{(1 << 20) + 300}}) {
    std::vector<float> image(n);
    for (size_t i = 0; i < n; i++) image[i] = (static_cast<float>(i % 256) + 0.5f) / 255.0f;
    std::vector<float> mask = everywhere([&] {
      std::vector<float> values(n);
      CHECK(engine_channel_to_mask(out(values), in(image), 1, 0) == ENGINE_OK);
      return values;
    });
    for (size_t i = 0; i < n; i++) {
      float v = static_cast<float>(level(image[i])) / 255.0f;
      CHECK(mask[i] == (v + v + v) / 3.0f);
    }
  }
}

}  // namespace

int main() {
  operations();
  unaligned();
  deviation();
  lengths();
  bytes();
  many_bytes();
  all_levels();
  return report();
}
