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

}  // namespace

void resize_planes(float *out, const float *x, size_t planes, size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  Taps rows(in_h, out_h), columns(in_w, out_w);
  const size_t width = out_w + kPadding;
  auto body = [&](size_t begin, size_t end, float *kept) {
    // an enlarged picture needs each row many times: two of them stay resized across
    const float *known[2] = {nullptr, nullptr};
    const auto across = [&](const float *row, const float *other) {
      const size_t slot = known[0] == row || (known[1] != row && known[0] != other) ? 0 : 1;
      float *made = kept + slot * width;
      if (known[slot] != row) {
        kernels().resize_across(made, row, columns.first.data(), columns.second.data(), columns.first_weight.data(),
                                columns.second_weight.data(), out_w);
        known[slot] = row;
      }
      return made;
    };
    for (size_t row = begin; row < end; row++) {
      size_t y = row % out_h;
      const float *plane = x + row / out_h * in_h * in_w;
      const float *first = plane + static_cast<size_t>(rows.first[y]) * in_w;
      const float *second = plane + static_cast<size_t>(rows.second[y]) * in_w;
      const float *top = across(first, second), *bottom = across(second, first);
      kernels().resize_between(out + row * out_w, top, bottom, rows.first_weight[y], rows.second_weight[y], out_w);
    }
  };
  size_t total = planes * out_h;
  size_t rows_per_chunk = total * out_w <= ENGINE_PARALLEL_MIN ? total : out_w >= kGrain ? 1 : kGrain / out_w;
  size_t chunks = (total + rows_per_chunk - 1) / rows_per_chunk;
  // bodies must not throw, so all of them get their rows here
  std::vector<float> kept(chunks * 2 * width);
  for_chunks(chunks, [&](size_t chunk) {
    size_t begin = chunk * rows_per_chunk;
    size_t end = total - begin < rows_per_chunk ? total : begin + rows_per_chunk;
    body(begin, end, kept.data() + chunk * 2 * width);
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
