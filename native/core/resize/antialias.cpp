// Resizes with antialias: sums of windows across first, then down; of bytes as Pillow's, in fixed point and clipped to
// bytes in between, and of floats as PyTorch's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lk_libm.h"
#include "resize/resize.h"
#include "resize/windows.h"
#include "runtime/runtime.h"
#include "shared/checks.h"

namespace latentkit {
namespace {

/* ---- Pillow's filters ---- */
constexpr double kPi = 3.14159265358979323846;
constexpr double kLobes = 3.0;

double sinc(double x) { return x == 0.0 ? 1.0 : lk_sin(x * kPi) / (x * kPi); }

double lanczos(double x) { return x >= -kLobes && x < kLobes ? sinc(x) * sinc(x / kLobes) : 0.0; }

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double triangle(double x) { return std::max(0.0, 1.0 - std::fabs(x)); }

double hamming(double x) {
  const double angle = std::fabs(x) * kPi;
  if (angle >= kPi) return 0.0;
  return angle == 0.0 ? 1.0 : lk_sin(angle) / angle * (0.54 + 0.46 * lk_cos(angle));
}

Filter<double> filter_of(int method) {
  switch (method) {
    case ENGINE_PILLOW_NEAREST: return {0.0, nullptr};
    case ENGINE_PILLOW_BOX: return {0.5, box};
    case ENGINE_PILLOW_BILINEAR: return {1.0, triangle};
    case ENGINE_PILLOW_HAMMING: return {1.0, hamming};
    case ENGINE_PILLOW_BICUBIC: return {2.0, cubic<double>};
    default: return {kLobes, lanczos};
  }
}

/* ---- what differs between bytes and floats ---- */
/* a * b / 255, rounded. */
uint8_t product(uint8_t a, uint8_t b) {
  const uint32_t scaled = static_cast<uint32_t>(a) * b + 128;
  return static_cast<uint8_t>(((scaled >> 8) + scaled) >> 8);
}

/* Multiplies the last of the channels into the others. */
void premultiply(uint8_t *pixels, size_t n, size_t channels) {
  for (uint8_t *p = pixels; p < pixels + n; p += channels) {
    for (size_t c = 0; c + 1 < channels; c++) p[c] = product(p[c], p[channels - 1]);
  }
}

/* Divides the others by the last, rounded down; if that is 0 they stay. */
void unmultiply(uint8_t *pixels, size_t n, size_t channels) {
  for (uint8_t *p = pixels; p < pixels + n; p += channels) {
    const uint32_t alpha = p[channels - 1];
    if (alpha == 0 || alpha == 255) continue;
    for (size_t c = 0; c + 1 < channels; c++) p[c] = static_cast<uint8_t>(std::min(255u * p[c] / alpha, 255u));
  }
}

/* Bytes, with weights in fixed point, and the last of 2 or 4 channels multiplied into the others on the way. */
struct AsBytes {
  using Value = uint8_t;
  using Weight = uint32_t;
  static constexpr bool kKeepsEqual = true; /* a side that stays as long has the same values */
  static constexpr double kOne = 1 << 22;   /* the fixed point's */

  size_t channels;
  Filter<double> filter;

  bool has_alpha() const { return channels % 2 == 0 && filter.reach > 0.0; }

  /* Weights as the kernel takes them: two at a time. */
  static void put(std::vector<Weight> *weights, const double *shares, size_t taps) {
    const size_t start = weights->size();
    weights->resize(start + (taps + 1) / 2 * 2);
    for (size_t k = 0; k < taps; k++) {
      const auto weight = static_cast<int32_t>(shares[k] * kOne + (shares[k] < 0.0 ? -0.5 : 0.5));
      uint32_t *pair = weights->data() + start + k / 2 * 2;
      const uint32_t shift = k % 2 * 16;
      pair[0] |= (static_cast<uint32_t>(weight) & 0x7fff) << shift;
      pair[1] |= (static_cast<uint32_t>(weight >> 15) & 0xffff) << shift;
    }
  }

  static auto weigh() { return kernels().weigh_bytes; }
  static auto transpose() { return kernels().transpose_bytes; }

  const Value *read(Value *memory, const float *x, size_t n) const {
    kernels().to_bytes(memory, x, n, 0);
    if (has_alpha()) premultiply(memory, n, channels);
    return memory;
  }
  static Value *place(Value *memory, float *) { return memory; }
  void write(float *out, Value *values, size_t n, int stream) const {
    if (has_alpha()) unmultiply(values, n, channels);
    kernels().from_bytes(out, values, n, stream);
  }
};

/* Floats, read and written where they are. */
struct AsFloats {
  using Value = float;
  using Weight = float;
  static constexpr bool kKeepsEqual = false; /* infinite ones spoil their neighbours */

  Filter<float> filter;

  static void put(std::vector<Weight> *weights, const float *shares, size_t taps) {
    weights->insert(weights->end(), shares, shares + taps);
  }

  static auto weigh() { return kernels().weigh_floats; }
  static auto transpose() { return kernels().transpose_floats; }

  static const Value *read(Value *, const float *x, size_t) { return x; }
  static Value *place(Value *, float *out) { return out; }
  static void write(float *, Value *, size_t, int) {}
};

/* ---- both passes ---- */
template <class As>
class Windows {
 public:
  Windows(const As &as, const Side &side) {
    each_window(side, as.filter, [&](size_t first, const auto *shares, size_t taps) {
      windows_.push_back({first, taps, weights_.size()});
      As::put(&weights_, shares, taps);
    });
  }

  /* Value i of a side whose values are `n` numbers each. */
  void sum(typename As::Value *out, const typename As::Value *lines, size_t n, size_t i) const {
    const auto [first, taps, weights] = windows_[i];
    As::weigh()(out, lines + first * n, n, weights_.data() + weights, taps, n);
  }

 private:
  struct Window {
    size_t first, taps, weights; /* weights: where they begin */
  };
  std::vector<Window> windows_;
  std::vector<typename As::Weight> weights_;
};

/* The first pass: rows of floats to values as wide as the output. */
template <class As>
class Across {
  using Value = typename As::Value;
  /* Rows that are turned and resized together, so that a column of them is a vector; very long ones go one by one. */
  static constexpr size_t kStrip = 64 / sizeof(Value), kLongest = (size_t{1} << 20) / sizeof(Value);

 public:
  Across(const As &as, const Pictures &of, const Side &side) : as_(as), of_(of), windows_(as, side) {}

  void run(Value *out, const float *x) const {
    const size_t width = std::max(of_.in_row(), of_.out_row());
    const size_t strip = of_.in_h > 1 && width <= kLongest ? kStrip : 1;
    for_workers((of_.in_h + strip - 1) / strip, 2 * strip * width * sizeof(Value), [&](uint8_t *bytes, auto &&take) {
      Value *memory = reinterpret_cast<Value *>(bytes);
      for (size_t i; take(&i);) {
        const size_t first = i * strip, rows = std::min(strip, of_.in_h - first);
        Value *to = out + first * of_.out_row();
        const bool keeps = As::kKeepsEqual && of_.in_w == of_.out_w;
        const Value *from = as_.read(keeps ? to : memory, x + first * of_.in_row(), rows * of_.in_row());
        if (keeps) continue;
        if (strip == 1) sums(to, from, 1);
        else turned(to, memory, from, memory + strip * width, rows);
      }
    });
  }

 private:
  void sums(Value *out, const Value *columns, size_t strip) const {
    const size_t each = of_.channels * strip;
    for (size_t i = 0; i < of_.out_w; i++) windows_.sum(out + i * each, columns, each, i);
  }

  /* `from` may be `memory`, which is written over; the columns are as long even if there are fewer rows. */
  void turned(Value *out, Value *memory, const Value *from, Value *columns, size_t rows) const {
    if (rows < kStrip) std::memset(columns, 0, of_.in_row() * kStrip * sizeof(Value));
    As::transpose()(columns, kStrip, from, of_.in_row(), rows, of_.in_row());
    sums(memory, columns, kStrip);
    As::transpose()(out, of_.out_row(), memory, kStrip, of_.out_row(), rows);
  }

  const As &as_;
  const Pictures &of_;
  Windows<As> windows_;
};

/* The second pass: each row of the output, of values as wide as it. */
template <class As>
class Down {
  using Value = typename As::Value;

 public:
  Down(const As &as, const Pictures &of, const Side &side) : as_(as), of_(of), windows_(as, side) {}

  void run(float *out, const Value *x) const {
    const size_t width = of_.out_row(), rows = kGrain / width + 1;
    const int stream = streams(of_.out_h * width);
    for_workers((of_.out_h + rows - 1) / rows, width * sizeof(Value), [&](uint8_t *bytes, auto &&take) {
      for (size_t block; take(&block);) {
        const size_t end = std::min(of_.out_h, (block + 1) * rows);
        for (size_t y = block * rows; y < end; y++) {
          float *to = out + y * width;
          Value *sums = As::place(reinterpret_cast<Value *>(bytes), to);
          if (As::kKeepsEqual && of_.in_h == of_.out_h) std::copy_n(x + y * width, width, sums);
          else windows_.sum(sums, x, width, y);
          as_.write(to, sums, width, stream);
        }
      }
    });
  }

 private:
  const As &as_;
  const Pictures &of_;
  Windows<As> windows_;
};

template <class As>
void resize_as(const As &as, float *out, const float *x, const Pictures &of, const Side &across, const Side &down) {
  const Across<As> first(as, of, across);
  const Down<As> second(as, of, down);
  // one picture after the other, so that what lies between both passes is that of one
  const Scratch wide = scratch(of.in_h * of.out_row() * sizeof(typename As::Value));
  auto *between = reinterpret_cast<typename As::Value *>(wide.get());
  for (size_t i = 0; i < of.count; i++) {
    first.run(between, x + i * of.in_picture());
    second.run(out + i * of.out_h * of.out_row(), between);
  }
}

/* Equal sizes: bytes and back, nothing multiplied. */
void through_bytes(float *out, const float *x, size_t n) {
  for_workers((n + kGrain - 1) / kGrain, kGrain, [&](uint8_t *bytes, auto &&take) {
    for (size_t block; take(&block);) {
      const size_t from = block * kGrain, count = std::min(kGrain, n - from);
      kernels().to_bytes(bytes, x + from, count, 0);
      kernels().from_bytes(out + from, bytes, count, streams(n));
    }
  });
}

}  // namespace

void resize_bytes(float *out, const float *x, const Pictures &of, int method) {
  if (of.in_h == of.out_h && of.in_w == of.out_w) return through_bytes(out, x, of.count * of.in_picture());
  const AsBytes as = {of.channels, filter_of(method)};
  resize_as(as, out, x, of, {of.in_w, of.out_w, 0, of.out_w}, {of.in_h, of.out_h, 0, of.out_h});
}

}  // namespace latentkit

engine_status engine_resize_antialiased(engine_f32 out, engine_cf32 x, engine_shape4 shape, size_t height, size_t width,
                                        engine_area part) {
  using namespace latentkit;
  size_t in_count, out_count, between;
  if (!elements(shape, &in_count) || !elements({shape.n, shape.c, part.h, part.w}, &out_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (!elements({shape.c, shape.h, part.w, sizeof(float)}, &between)) return ENGINE_BAD_LENGTH;
  if (x.len != in_count || out.len != out_count) return ENGINE_BAD_LENGTH;
  if (!is_inside(part.y, part.h, height) || !is_inside(part.x, part.w, width)) return ENGINE_BAD_ARGUMENT;
  if (out_count == 0) return ENGINE_OK;
  if (in_count == 0) return ENGINE_BAD_LENGTH;
  return guarded([&] {
    const Pictures of = {shape.n, shape.h, shape.w, part.h, part.w, shape.c};
    const AsFloats as = {{2.0, cubic<float>}};
    resize_as(as, out.data, x.data, of, {shape.w, width, part.x, part.w}, {shape.h, height, part.y, part.h});
    return ENGINE_OK;
  });
}
