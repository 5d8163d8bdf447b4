// Resizes with antialias, of pixels as bytes and as floats, against plain loops.
#include <algorithm>
#include <cmath>
#include <functional>

#include "lk_libm.h"
#include "resize_check.h"

namespace {

constexpr double kPi = 3.14159265358979323846;

/* Rounding of each number on the way. */
using Round = double (*)(double);
double exactly(double v) { return v; }
double to_float(double v) { return static_cast<double>(static_cast<float>(v)); }

struct Filter {
  double reach;
  std::function<double(double x, Round round)> at;
};

double bicubic(double x, Round round) {
  const double t = std::fabs(x);
  if (t < 1.0) return round(round(round(1.5 * t - 2.5) * t) * t + 1.0);
  return t < 2.0 ? round(round(round(-0.5 * t + 2.5) * t - 4.0) * t + 2.0) : 0.0;
}

double hamming(double x, Round) {
  const double angle = std::fabs(x) * kPi;
  return angle >= kPi ? 0.0 : angle == 0.0 ? 1.0 : lk_sin(angle) / angle * (0.54 + 0.46 * lk_cos(angle));
}

double lanczos(double x, Round) {
  const auto sinc = [](double v) { return v == 0.0 ? 1.0 : lk_sin(v * kPi) / (v * kPi); };
  return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

const Filter kCubic = {2.0, bicubic};

Filter filter_of(int method) {
  switch (method) {
    case ENGINE_LANCZOS: return {3.0, lanczos};
    case ENGINE_PILLOW_BOX: return {0.5, [](double x, Round) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }};
    case ENGINE_PILLOW_BILINEAR: return {1.0, [](double x, Round) { return std::max(0.0, 1.0 - std::fabs(x)); }};
    case ENGINE_PILLOW_HAMMING: return {1.0, hamming};
    default: return kCubic;
  }
}

/* What makes value i of `out`. */
struct Window {
  size_t first;
  std::vector<double> shares;

  Window(size_t in, size_t out, size_t i, const Filter &filter, Round round) {
    const double scale = round(static_cast<double>(in) / static_cast<double>(out)), wide = std::max(1.0, scale);
    const double middle = round((static_cast<double>(i) + 0.5) * scale), reach = round(filter.reach * wide);
    const auto low = static_cast<long>(round(middle - reach) + 0.5);
    const auto high = static_cast<long>(round(middle + reach) + 0.5);
    first = static_cast<size_t>(std::max(low, 0L));
    double total = 0.0;
    for (size_t k = first; k < std::min(static_cast<size_t>(high), in); k++) {
      const double distance = round(static_cast<double>(k) - middle) + 0.5;
      shares.push_back(filter.at(round(distance * round(1.0 / wide)), round));
      total = round(total + shares.back());
    }
    for (double &share : shares) share = round(share / total);
  }
};

/* One axis of bytes [lines, length, step], for each of `step` values. */
std::vector<uint8_t> bytes_axis(const std::vector<uint8_t> &x, int method, size_t lines, size_t in, size_t out,
                                size_t step) {
  if (in == out) return x;
  std::vector<uint8_t> result(lines * out * step);
  const double ratio = static_cast<double>(in) / static_cast<double>(out);
  double middle = 0.5 * ratio;
  for (size_t i = 0; i < out; i++, middle += ratio) {
    Window window(in, out, i, filter_of(method), exactly);
    if (method == ENGINE_PILLOW_NEAREST) {
      window.first = static_cast<size_t>(middle);
      window.shares = {1.0};
    }
    for (size_t at = 0; at < lines * step; at++) {
      int64_t sum = 1 << 21;
      for (size_t k = 0; k < window.shares.size(); k++) {
        const double fixed = window.shares[k] * 4194304.0;
        const auto weight = static_cast<int64_t>(fixed < 0.0 ? fixed - 0.5 : fixed + 0.5);
        sum += weight * x[(at / step * in + window.first + k) * step + at % step];
      }
      result[(at / step * out + i) * step + at % step] = static_cast<uint8_t>(std::clamp<int64_t>(sum >> 22, 0, 255));
    }
  }
  return result;
}

Floats by_bytes(const Floats &x, const Sizes &s, int method) {
  std::vector<uint8_t> bytes;
  for (const float v : x) bytes.push_back(static_cast<uint8_t>(v > 0.0f ? std::min(v * 255.0f, 255.0f) : 0.0f));
  const bool resizes = s.in_h != s.out_h || s.in_w != s.out_w;
  const bool has_alpha = s.channels % 2 == 0 && resizes && method != ENGINE_PILLOW_NEAREST;
  const size_t c = s.channels;
  for (size_t i = 0; has_alpha && i < bytes.size(); i++) {
    if (i % c == c - 1) continue;
    const uint32_t scaled = uint32_t{bytes[i]} * bytes[i / c * c + c - 1] + 128;
    bytes[i] = static_cast<uint8_t>(((scaled >> 8) + scaled) >> 8);
  }
  bytes = bytes_axis(bytes, method, s.count * s.in_h, s.in_w, s.out_w, c);
  bytes = bytes_axis(bytes, method, s.count, s.in_h, s.out_h, s.out_w * c);
  Floats result;
  for (size_t i = 0; i < bytes.size(); i++) {
    const uint32_t alpha = bytes[i / c * c + c - 1];
    uint32_t level = bytes[i];
    if (has_alpha && i % c != c - 1 && alpha != 0) level = std::min(255u, 255u * level / alpha);
    result.push_back(static_cast<float>(level) / 255.0f);
  }
  return result;
}

/* One axis of floats [lines, in, step] to the `count` of `out` from `from` on. */
Floats floats_axis(const Floats &x, size_t lines, size_t in, size_t out, size_t from, size_t count, size_t step) {
  Floats result(lines * count * step);
  for (size_t i = 0; i < count; i++) {
    const Window window(in, out, from + i, kCubic, to_float);
    for (size_t at = 0; at < lines * step; at++) {
      double sum = 0.0;
      for (size_t k = 0; k < window.shares.size(); k++) {
        sum = to_float(sum + window.shares[k] * x[(at / step * in + window.first + k) * step + at % step]);
      }
      result[(at / step * count + i) * step + at % step] = static_cast<float>(sum);
    }
  }
  return result;
}

std::vector<Sizes> all_sizes() {
  std::vector<Sizes> all = sizes();
  // rows too long for a strip; windows of more than 1000 rows
  all.push_back({1, 2, 400000, 1, 7, 3});
  all.push_back({1, 3000, 2, 2, 3, 3});
  return all;
}

void bytes() {
  for (const Sizes &s : all_sizes()) {
    if (s.channels > 4) continue;
    Floats x = numbers(s.count * s.in_h * s.in_w * s.channels, 9, 1.1f);
    for (float &v : x) v = std::fabs(v) - 0.05f;
    x[x.size() / 2] = NAN;
    // transparent and opaque pixels
    if (s.channels % 2 == 0) {
      for (size_t i = s.channels - 1; i < x.size(); i += 5 * s.channels) x[i] = i % 2 == 0 ? 0.0f : 1.0f;
    }
    for (int method = ENGINE_LANCZOS; method < ENGINE_RESIZE_METHOD_COUNT; method++) {
      CHECK(same_bytes(by_bytes(x, s, method), resized(x, pixels_of(s, method))));
    }
  }
}

Floats antialiased(const Floats &x, const Sizes &s, const engine_area &part) {
  return everywhere([&] {
    Floats values(s.count * part.h * part.w * s.channels);
    const engine_shape4 shape = {s.count, s.channels, s.in_h, s.in_w};
    CHECK(engine_resize_antialiased(out(values), in(x), shape, s.out_h, s.out_w, part) == ENGINE_OK);
    return values;
  });
}

void floats() {
  for (const Sizes &s : all_sizes()) {
    const Floats x = numbers(s.count * s.in_h * s.in_w * s.channels, 9);
    const engine_area middle = {s.out_h / 3, s.out_w / 4, (s.out_h + 1) / 2, (s.out_w + 1) / 2};
    for (const engine_area &part : {engine_area{0, 0, s.out_h, s.out_w}, middle}) {
      const Floats wide = floats_axis(x, s.count * s.in_h, s.in_w, s.out_w, part.x, part.w, s.channels);
      const Floats expected = floats_axis(wide, s.count, s.in_h, s.out_h, part.y, part.h, part.w * s.channels);
      CHECK(same_bytes(expected, antialiased(x, s, part)));
    }
  }
}

/* Positions that floats cannot tell apart: the windows stay inside, even if nothing is left of them. */
void far_positions() {
  const size_t wide = (size_t{1} << 25) + 3;
  const Floats x(wide, 0.5f);
  for (const float v : antialiased(x, {1, 1, wide, 1, wide - 5, 1}, {0, wide - 12, 1, 7})) {
    CHECK(v == 0.0f || std::fabs(v - 0.5f) < 1e-6f);
  }
}

void refuse() {
  Floats x(12), to(27), none;
  const auto status = [](Floats &to, const Floats &x, const engine_shape4 &shape, const engine_area &part) {
    return engine_resize_antialiased(out(to), in(x), shape, 4, 3, part);
  };
  CHECK(status(to, x, {1, 3, 2, 2}, {1, 0, 3, 3}) == ENGINE_OK);
  CHECK(status(to, x, {1, 3, 2, 2}, {2, 0, 3, 3}) == ENGINE_BAD_ARGUMENT);
  CHECK(status(to, x, {1, 3, 2, 2}, {1, SIZE_MAX, 3, 3}) == ENGINE_BAD_ARGUMENT);
  CHECK(status(to, x, {1, 3, 2, 2}, {0, 0, 9, 1}) == ENGINE_BAD_ARGUMENT);
  CHECK(status(to, x, {1, 3, 2, 2}, {0, 0, 2, 3}) == ENGINE_BAD_LENGTH);
  CHECK(status(to, x, {1, 3, 2, 3}, {0, 0, 3, 3}) == ENGINE_BAD_LENGTH);
  CHECK(status(to, x, {1, SIZE_MAX, 2, 2}, {0, 0, 3, 3}) == ENGINE_BAD_LENGTH);
  CHECK(status(to, none, {1, 3, 0, 2}, {0, 0, 3, 3}) == ENGINE_BAD_LENGTH);
  CHECK(status(none, x, {1, 3, 2, 2}, {0, 0, 0, 3}) == ENGINE_OK);
  CHECK(status(none, none, {0, 3, 2, 2}, {0, 0, 3, 3}) == ENGINE_OK);
}

}  // namespace

int main() {
  bytes();
  floats();
  far_positions();
  refuse();
  return report();
}
