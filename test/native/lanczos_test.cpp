// Lanczos of pixels as bytes, against plain loops in fixed point.
#include <algorithm>
#include <cmath>

#include "lk_libm.h"
#include "resize_check.h"

namespace {

std::vector<int32_t> lanczos_weights(size_t in, size_t out, size_t i, size_t *first) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(1.0, scale);
  const double middle = (static_cast<double>(i) + 0.5) * scale;
  const auto low = static_cast<long>(middle - 3.0 * wide + 0.5), high = static_cast<long>(middle + 3.0 * wide + 0.5);
  *first = static_cast<size_t>(std::max(low, 0L));
  std::vector<double> shares;
  double total = 0.0;
  for (size_t k = *first; k < std::min(static_cast<size_t>(high), in); k++) {
    const double d = (static_cast<double>(k) - middle + 0.5) * (1.0 / wide), pi = 3.14159265358979323846;
    const auto sinc = [pi](double v) { return v == 0.0 ? 1.0 : lk_sin(v * pi) / (v * pi); };
    shares.push_back(d >= -3.0 && d < 3.0 ? sinc(d) * sinc(d / 3.0) : 0.0);
    total += shares.back();
  }
  std::vector<int32_t> weights;
  for (const double share : shares) {
    const double fixed = share / total * 4194304.0;
    weights.push_back(static_cast<int32_t>(fixed < 0.0 ? fixed - 0.5 : fixed + 0.5));
  }
  return weights;
}

/* One axis of bytes [lines, length, step], for each of `step` values. */
std::vector<uint8_t> lanczos_axis(const std::vector<uint8_t> &x, size_t lines, size_t in, size_t out, size_t step) {
  if (in == out) return x;
  std::vector<uint8_t> result(lines * out * step);
  for (size_t i = 0; i < out; i++) {
    size_t first;
    const std::vector<int32_t> weights = lanczos_weights(in, out, i, &first);
    for (size_t at = 0; at < lines * step; at++) {
      int64_t sum = 1 << 21;
      for (size_t k = 0; k < weights.size(); k++) {
        sum += int64_t{weights[k]} * x[(at / step * in + first + k) * step + at % step];
      }
      result[(at / step * out + i) * step + at % step] = static_cast<uint8_t>(std::clamp<int64_t>(sum >> 22, 0, 255));
    }
  }
  return result;
}

Floats lanczos(const Floats &x, const Sizes &s) {
  std::vector<uint8_t> bytes;
  for (const float v : x) bytes.push_back(static_cast<uint8_t>(v > 0.0f ? std::min(v * 255.0f, 255.0f) : 0.0f));
  const bool resizes = s.in_h != s.out_h || s.in_w != s.out_w, has_alpha = s.channels % 2 == 0 && resizes;
  const size_t c = s.channels;
  for (size_t i = 0; has_alpha && i < bytes.size(); i++) {
    if (i % c == c - 1) continue;
    const uint32_t scaled = uint32_t{bytes[i]} * bytes[i / c * c + c - 1] + 128;
    bytes[i] = static_cast<uint8_t>(((scaled >> 8) + scaled) >> 8);
  }
  bytes = lanczos_axis(bytes, s.count * s.in_h, s.in_w, s.out_w, c);
  bytes = lanczos_axis(bytes, s.count, s.in_h, s.out_h, s.out_w * c);
  Floats result;
  for (size_t i = 0; i < bytes.size(); i++) {
    const uint32_t alpha = bytes[i / c * c + c - 1];
    uint32_t level = bytes[i];
    if (has_alpha && i % c != c - 1 && alpha != 0) level = std::min(255u, 255u * level / alpha);
    result.push_back(static_cast<float>(level) / 255.0f);
  }
  return result;
}

void lanczos_of_pixels() {
  std::vector<Sizes> all = sizes();
  // rows too long for a strip; windows of more than 1000 rows
  all.push_back({1, 2, 400000, 1, 7, 3});
  all.push_back({1, 3000, 2, 2, 3, 3});
  for (const Sizes &s : all) {
    if (s.channels > 4) continue;
    Floats x = numbers(s.count * s.in_h * s.in_w * s.channels, 9, 1.1f);
    for (float &v : x) v = std::fabs(v) - 0.05f;
    x[x.size() / 2] = NAN;
    // transparent and opaque pixels
    if (s.channels % 2 == 0) {
      for (size_t i = s.channels - 1; i < x.size(); i += 5 * s.channels) x[i] = i % 2 == 0 ? 0.0f : 1.0f;
    }
    CHECK(same_bytes(lanczos(x, s), resized(x, pixels_of(s, ENGINE_LANCZOS))));
  }
}

}  // namespace

int main() {
  lanczos_of_pixels();
  return report();
}
