#include "resample.h"

#include <cstdint>
#include <vector>

#include "dispatch.h"
#include "engine.h"
#include "parallel.h"
#include "shared/checks.h"
#include "shared/taps.h"
#include "spans.h"

namespace latentkit {
namespace {

/* Kernels read taps in whole vectors: this many past the last may be read. */
constexpr size_t kPadding = 16;

/* For each output position the two input positions and their weights, a row of each for the kernels. */
struct Taps {
  std::vector<int32_t> first, second;
  std::vector<float> first_weight, second_weight;

  Taps(size_t in, size_t out)
      : first(out + kPadding), second(out + kPadding), first_weight(out + kPadding), second_weight(out + kPadding) {
    float ratio = static_cast<float>(in) / static_cast<float>(out);
    for (size_t i = 0; i < out; i++) {
      const Tap tap = tap_at(static_cast<uint32_t>(i), static_cast<uint32_t>(in), ratio);
      first[i] = tap.first;
      second[i] = tap.second;
      first_weight[i] = tap.first_weight;
      second_weight[i] = tap.second_weight;
    }
  }
};

/* Rows of resized planes. An enlarged picture needs each of its rows many times: two of them stay resized across. */
class Rows {
 public:
  /* Floats of memory that `kept` must have. */
  static size_t room(size_t out_w) { return 2 * (out_w + kPadding); }

  Rows(const Taps &rows, const Taps &columns, size_t in_w, size_t out_w, float *kept)
      : rows_(rows), columns_(columns), in_w_(in_w), out_w_(out_w), kept_(kept) {}

  /* Row y of the resized plane. */
  void make(float *out, const float *plane, size_t y) {
    const float *first = plane + static_cast<size_t>(rows_.first[y]) * in_w_;
    const float *second = plane + static_cast<size_t>(rows_.second[y]) * in_w_;
    const float *top = across(first, second), *bottom = across(second, first);
    kernels().resize_between(out, top, bottom, rows_.first_weight[y], rows_.second_weight[y], out_w_);
  }

 private:
  const float *across(const float *row, const float *other) {
    const size_t slot = known_[0] == row || (known_[1] != row && known_[0] != other) ? 0 : 1;
    float *made = kept_ + slot * (out_w_ + kPadding);
    if (known_[slot] != row) {
      kernels().resize_across(made, row, columns_.first.data(), columns_.second.data(), columns_.first_weight.data(),
                              columns_.second_weight.data(), out_w_);
      known_[slot] = row;
    }
    return made;
  }

  const Taps &rows_, &columns_;
  size_t in_w_, out_w_;
  float *kept_;
  const float *known_[2] = {nullptr, nullptr};
};

/* body(begin, end, memory) over all rows of `out_w` floats, on the pool; each call has `room` floats of its own. */
template <class Body>
void for_rows(size_t total, size_t out_w, size_t room, Body &&body) {
  const size_t rows_per_chunk = total * out_w <= ENGINE_PARALLEL_MIN ? total : out_w >= kGrain ? 1 : kGrain / out_w;
  const size_t chunks = (total + rows_per_chunk - 1) / rows_per_chunk;
  // bodies must not throw, so all of them get their memory here
  std::vector<float> memory(chunks * room);
  for_chunks(chunks, [&](size_t chunk) {
    const size_t begin = chunk * rows_per_chunk;
    const size_t end = total - begin < rows_per_chunk ? total : begin + rows_per_chunk;
    body(begin, end, memory.data() + chunk * room);
  });
}

void resize_to_image(float *out, const float *x, size_t batch, size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  const Taps rows(in_h, out_h), columns(in_w, out_w);
  const size_t room = Rows::room(out_w), plane = in_h * in_w;
  for_rows(batch * out_h, 3 * out_w, 3 * (room + out_w), [&](size_t begin, size_t end, float *memory) {
    float *red = memory + 3 * room, *green = red + out_w, *blue = green + out_w;
    Rows reds(rows, columns, in_w, out_w, memory), greens(rows, columns, in_w, out_w, memory + room),
        blues(rows, columns, in_w, out_w, memory + 2 * room);
    for (size_t row = begin; row < end; row++) {
      const float *item = x + row / out_h * 3 * plane;
      const size_t y = row % out_h;
      reds.make(red, item, y);
      greens.make(green, item + plane, y);
      blues.make(blue, item + 2 * plane, y);
      kernels().colours_last(out + row * out_w * 3, red, green, blue, out_w);
    }
  });
}

}  // namespace

void resize_planes(float *out, const float *x, size_t planes, size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  const Taps rows(in_h, out_h), columns(in_w, out_w);
  for_rows(planes * out_h, out_w, Rows::room(out_w), [&](size_t begin, size_t end, float *memory) {
    Rows made(rows, columns, in_w, out_w, memory);
    for (size_t row = begin; row < end; row++) made.make(out + row * out_w, x + row / out_h * in_h * in_w, row % out_h);
  });
}

}  // namespace latentkit

engine_status engine_resize_bilinear(engine_f32 out, engine_cf32 x, size_t planes, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w) {
  using namespace latentkit;
  bool nothing = false;
  const engine_status status = check_resize(out.len, x.len, planes, in_h, in_w, out_h, out_w, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  return guarded([&] {
    resize_planes(out.data, x.data, planes, in_h, in_w, out_h, out_w);
    return ENGINE_OK;
  });
}

engine_status engine_resize_to_image(engine_f32 out, engine_cf32 x, size_t batch, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w) {
  using namespace latentkit;
  if (batch > SIZE_MAX / 3) return ENGINE_BAD_LENGTH;
  bool nothing = false;
  const engine_status status = check_resize(out.len, x.len, 3 * batch, in_h, in_w, out_h, out_w, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  return guarded([&] {
    resize_to_image(out.data, x.data, batch, in_h, in_w, out_h, out_w);
    return ENGINE_OK;
  });
}
