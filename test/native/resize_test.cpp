// engine_resize, in both layouts, against plain loops; antialias_test has Pillow's methods.
#include <algorithm>
#include <cmath>
#include <functional>

#include "resize_check.h"

namespace {

/* A plane at (y, x) of the output. */
using Value = std::function<float(const float *plane, const Sizes &s, size_t y, size_t x)>;

Floats planes_by(const Floats &x, const Sizes &s, const Value &value) {
  Floats result(s.count * s.channels * s.out_h * s.out_w);
  for (size_t i = 0; i < result.size(); i++) {
    const float *plane = x.data() + i / (s.out_h * s.out_w) * s.in_h * s.in_w;
    result[i] = value(plane, s, i / s.out_w % s.out_h, i % s.out_w);
  }
  return result;
}

float ratio(size_t in, size_t out) { return static_cast<float>(in) / static_cast<float>(out); }

float nearest(const float *plane, const Sizes &s, size_t y, size_t x) {
  const auto at = [](size_t in, size_t out, size_t i) {
    const float middle = static_cast<float>((static_cast<double>(i) + 0.5) * ratio(in, out));
    return std::min(static_cast<size_t>(middle), in - 1);
  };
  return plane[at(s.in_h, s.out_h, y) * s.in_w + at(s.in_w, s.out_w, x)];
}

float area(const float *plane, const Sizes &s, size_t y, size_t x) {
  const auto first = [](size_t in, size_t out, size_t i) { return i * in / out; };
  const auto end = [](size_t in, size_t out, size_t i) { return ((i + 1) * in + out - 1) / out; };
  const size_t top = first(s.in_h, s.out_h, y), bottom = end(s.in_h, s.out_h, y);
  const size_t left = first(s.in_w, s.out_w, x), right = end(s.in_w, s.out_w, x);
  float sum = 0.0f;
  for (size_t r = top; r < bottom; r++) {
    for (size_t c = left; c < right; c++) sum += plane[r * s.in_w + c];
  }
  return sum / static_cast<float>(bottom - top) / static_cast<float>(right - left);
}

float bicubic(const float *plane, const Sizes &s, size_t y, size_t x) {
  struct Taps {
    size_t at[4];
    float w[4];
    Taps(size_t in, size_t out, size_t i) {
      const float position = std::fmaf(ratio(in, out), static_cast<float>(i) + 0.5f, -0.5f);
      const long low = static_cast<long>(std::floor(position)), most = static_cast<long>(in) - 1;
      const float t = position - static_cast<float>(low);
      for (long k = 0; k < 4; k++) at[k] = static_cast<size_t>(std::clamp(low + k - 1, 0L, most));
      const auto inner = [](float d) { return (1.25f * d - 2.25f) * d * d + 1.0f; };
      const auto outer = [](float d) { return ((-0.75f * d + 3.75f) * d - 6.0f) * d + 3.0f; };
      w[0] = outer(t + 1.0f), w[1] = inner(t), w[2] = inner(1.0f - t), w[3] = outer(2.0f - t);
    }
  };
  const Taps rows(s.in_h, s.out_h, y), columns(s.in_w, s.out_w, x);
  float down[4];
  for (size_t r = 0; r < 4; r++) {
    const float *row = plane + rows.at[r] * s.in_w;
    down[r] = row[columns.at[0]] * columns.w[0] + row[columns.at[1]] * columns.w[1] +
              row[columns.at[2]] * columns.w[2] + row[columns.at[3]] * columns.w[3];
  }
  return down[0] * rows.w[0] + down[1] * rows.w[1] + down[2] * rows.w[2] + down[3] * rows.w[3];
}

/* Both layouts of one method give the values of the loop. */
void by_value(int method, const Value &value) {
  for (const Sizes &s : sizes()) {
    Floats x = numbers(s.count * s.channels * s.in_h * s.in_w, 7);
    const Floats expected = planes_by(x, s, value);
    CHECK(same_bytes(expected, resized(x, planes_of(s, method))));
    const Floats pixels = as_pixels(x, s.channels, s.in_h * s.in_w);
    CHECK(same_bytes(as_pixels(expected, s.channels, s.out_h * s.out_w), resized(pixels, pixels_of(s, method))));
  }
}

/* engine_resize_bilinear is tested by planes_test. */
void bilinear() {
  for (const Sizes &s : sizes()) {
    Floats x = numbers(s.count * s.channels * s.in_h * s.in_w, 7), expected(s.count * s.channels * s.out_h * s.out_w);
    CHECK(engine_resize_bilinear(out(expected), in(x), s.count * s.channels, s.in_h, s.in_w, s.out_h, s.out_w) ==
          ENGINE_OK);
    CHECK(same_bytes(expected, resized(x, planes_of(s, ENGINE_BILINEAR))));
    const Floats pixels = as_pixels(x, s.channels, s.in_h * s.in_w);
    CHECK(
        same_bytes(as_pixels(expected, s.channels, s.out_h * s.out_w), resized(pixels, pixels_of(s, ENGINE_BILINEAR))));
  }
}

/* Large enough to be written around the caches. */
void large() {
  const Sizes s = {1, 40, 30, 1100, 1000, 3};
  const Floats x = numbers(3 * 40 * 30, 2), pixels = as_pixels(x, 3, 40 * 30);
  const std::pair<int, Value> methods[] = {{ENGINE_BICUBIC, bicubic}, {ENGINE_NEAREST_EXACT, nearest}};
  for (const auto &[method, value] : methods) {
    const Floats expected = planes_by(x, s, value);
    CHECK(same_bytes(expected, resized(x, planes_of(s, method))));
    CHECK(same_bytes(as_pixels(expected, 3, 1100 * 1000), resized(pixels, pixels_of(s, method))));
  }
  bool is_same = same_bytes(as_pixels(resized(x, planes_of(s, ENGINE_BILINEAR)), 3, 1100 * 1000),
                            resized(pixels, pixels_of(s, ENGINE_BILINEAR)));
  CHECK(is_same);
}

/* One vector between two others. */
std::vector<double> turned(const std::vector<double> &a, const std::vector<double> &b, double r) {
  double aa = 0.0, bb = 0.0, ab = 0.0;
  for (size_t c = 0; c < a.size(); c++) aa += a[c] * a[c], bb += b[c] * b[c], ab += a[c] * b[c];
  const double p = std::sqrt(aa), q = std::sqrt(bb), cosine = p > 0.0 && q > 0.0 ? ab / p / q : 0.0;
  const bool is_line = std::fabs(cosine) > 1.0 - 1e-5;
  const double angle = std::acos(cosine), norm = p * (1.0 - r) + q * r;
  std::vector<double> result;
  for (size_t c = 0; c < a.size(); c++) {
    const double from = p > 0.0 ? std::sin((1.0 - r) * angle) / std::sin(angle) * a[c] / p : 0.0;
    const double to = q > 0.0 ? std::sin(r * angle) / std::sin(angle) * b[c] / q : 0.0;
    result.push_back(is_line ? (1.0 - r) * a[c] + r * b[c] : norm * (from + to));
  }
  return result;
}

/* Along the last axis of [channels, lines, in]; the positions are those of exact arithmetic. */
std::vector<double> bislerp_axis(const std::vector<double> &x, size_t channels, size_t lines, size_t in, size_t out) {
  std::vector<double> result(channels * lines * out);
  for (size_t line = 0; line < lines; line++) {
    for (size_t i = 0; i < out; i++) {
      const double position = (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
      const double at = std::clamp(position, 0.0, static_cast<double>(in - 1));
      const auto first = static_cast<size_t>(at), second = std::min(first + 1, in - 1);
      std::vector<double> a, b;
      for (size_t c = 0; c < channels; c++) {
        a.push_back(x[(c * lines + line) * in + first]);
        b.push_back(x[(c * lines + line) * in + second]);
      }
      const std::vector<double> v = turned(a, b, at - static_cast<double>(first));
      for (size_t c = 0; c < channels; c++) result[(c * lines + line) * out + i] = v[c];
    }
  }
  return result;
}

std::vector<double> swapped(const std::vector<double> &x, size_t h, size_t w) {
  std::vector<double> result(x.size());
  for (size_t i = 0; i < x.size(); i++) result[i / (h * w) * h * w + i % w * h + i / w % h] = x[i];
  return result;
}

void bislerp() {
  const size_t all[][5] = {
      {1, 1, 1, 3, 3}, {4, 8, 10, 12, 16}, {4, 16, 16, 8, 4}, {16, 6, 4, 9, 10}, {4, 64, 64, 96, 128}};
  for (const auto &[channels, in_h, in_w, out_h, out_w] : all) {
    Floats x = numbers(channels * in_h * in_w, 4);
    // vectors of zeros, and one opposite to its neighbour
    for (size_t c = 0; c < channels; c++) {
      for (size_t i = 0; i < std::min<size_t>(in_w, 3); i++) x[c * in_h * in_w + i] = 0.0f;
      if (in_h > 2 && in_w > 2) x[(c * in_h + 2) * in_w + 1] = -2.0f * x[(c * in_h + 2) * in_w];
    }
    std::vector<double> expected(x.begin(), x.end());
    expected = bislerp_axis(expected, channels, in_h, in_w, out_w);
    expected = swapped(bislerp_axis(swapped(expected, in_h, out_w), channels, out_w, in_h, out_h), out_w, out_h);
    const Sizes s = {1, in_h, in_w, out_h, out_w, channels};
    const Floats got = resized(x, planes_of(s, ENGINE_BISLERP));
    for (size_t i = 0; i < got.size(); i++) CHECK(std::fabs(got[i] - expected[i]) < 2e-5);
    const Floats pixels = resized(as_pixels(x, channels, in_h * in_w), pixels_of(s, ENGINE_BISLERP));
    CHECK(same_bytes(as_pixels(got, channels, out_h * out_w), pixels));
    // frames between the channels and the sides, and two items: the same picture in each
    Floats many;
    for (size_t i = 0; i < 2 * channels * 3; i++) {
      const size_t plane = i / 3 % channels * in_h * in_w;
      many.insert(many.end(), x.begin() + static_cast<long>(plane), x.begin() + static_cast<long>(plane + in_h * in_w));
    }
    const Floats frames = resized(many, {ENGINE_BISLERP, 0, 2, channels, 3, in_h, in_w, out_h, out_w});
    for (size_t i = 0; i < frames.size(); i++) {
      const size_t plane = out_h * out_w;
      CHECK(frames[i] == got[i / plane / 3 % channels * plane + i % plane]);
    }
  }
  // equal sizes change nothing, whatever the values
  const Floats same = {1.0f, -1.0f, NAN, 3e38f, 0.0f, 1e-45f, 5.0f, -7.0f};
  const Floats got = resized(same, {ENGINE_BISLERP, 0, 1, 2, 1, 2, 2, 2, 2});
  CHECK(same_bytes(same, got));
}

/* Values beyond the range of floats, and none at all. */
void extremes() {
  const Sizes s = {1, 4, 4, 7, 7, 3};
  Floats x = numbers(48, 3);
  x[5] = INFINITY, x[20] = -INFINITY, x[30] = NAN, x[40] = 3.4e38f;
  for (int method = 0; method < ENGINE_RESIZE_METHOD_COUNT; method++) {
    Floats first;
    for (const std::string &isa : supported_isas()) {
      CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
      Floats values(3 * 49);
      const engine_resize_options options = pixels_of(s, method);
      CHECK(engine_resize(out(values), in(x), &options) == ENGINE_OK);
      if (first.empty()) first = values;
      for (size_t i = 0; i < values.size(); i++) {
        CHECK(std::isnan(first[i]) ? std::isnan(values[i]) : first[i] == values[i]);
      }
    }
  }
}

void refuse() {
  Floats a(12), b(27), none;
  const auto status = [](Floats &to, const Floats &x, const engine_resize_options &options) {
    return engine_resize(out(to), in(x), &options);
  };
  const Sizes s = {1, 2, 2, 3, 3, 3};
  CHECK(status(b, a, pixels_of(s, ENGINE_AREA)) == ENGINE_OK);
  for (const int method : {-1, static_cast<int>(ENGINE_RESIZE_METHOD_COUNT)}) {
    CHECK(status(b, a, pixels_of(s, method)) == ENGINE_BAD_ARGUMENT);
    CHECK(engine_resize_method_name(method) == nullptr);
  }
  CHECK(std::string("nearest-exact") == engine_resize_method_name(ENGINE_NEAREST_EXACT));
  CHECK(std::string("lanczos") == engine_resize_method_name(ENGINE_LANCZOS));
  CHECK(std::string("pillow-bicubic") == engine_resize_method_name(ENGINE_PILLOW_BICUBIC));
  for (int method = 0; method < ENGINE_RESIZE_METHOD_COUNT; method++) {
    CHECK(status(a, a, pixels_of(s, method)) == ENGINE_BAD_LENGTH);
    CHECK(status(b, b, pixels_of(s, method)) == ENGINE_BAD_LENGTH);
    CHECK(status(b, none, {method, 1, 1, 3, 1, 0, 2, 3, 3}) == ENGINE_BAD_LENGTH);
    CHECK(status(none, a, {method, 1, 1, 3, 1, 2, 2, 0, 3}) == ENGINE_OK);
    CHECK(status(none, none, {method, 1, 0, 3, 1, 2, 2, 3, 3}) == ENGINE_OK);
    CHECK(status(b, a, {method, 1, SIZE_MAX, SIZE_MAX, 1, 2, 2, 3, 3}) == ENGINE_BAD_LENGTH);
    CHECK(status(b, a, {method, 1, 1, 1, 3, 2, 2, 3, 3}) == ENGINE_BAD_ARGUMENT);
    constexpr size_t wide = INT32_MAX / 3 + 1;
    const engine_resize_options long_rows = {method, 1, 1, 3, 1, 1, wide, 3, 3};
    CHECK(engine_resize(out(b), {nullptr, 3 * wide}, &long_rows) == ENGINE_BAD_ARGUMENT);
  }
  Floats c(20), d(45);
  for (int method = ENGINE_LANCZOS; method < ENGINE_RESIZE_METHOD_COUNT; method++) {
    CHECK(status(b, a, planes_of(s, method)) == ENGINE_BAD_ARGUMENT);
    CHECK(status(d, c, {method, 1, 1, 5, 1, 2, 2, 3, 3}) == ENGINE_BAD_ARGUMENT);
  }
}

}  // namespace

int main() {
  by_value(ENGINE_NEAREST_EXACT, nearest);
  by_value(ENGINE_AREA, area);
  by_value(ENGINE_BICUBIC, bicubic);
  bilinear();
  large();
  bislerp();
  extremes();
  refuse();
  return report();
}
