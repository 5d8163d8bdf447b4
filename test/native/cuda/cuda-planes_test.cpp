// Resizes, blends and pasting: the device against the CPU, bit for bit, on 200 random shapes each.
#include "cuda-check.h"
#include "kernels/kernels.h"

namespace {

size_t side(Choices &choose) { return choose.one_in(3) ? choose.from(1, 40) : 4 * choose.from(1, 10); }

void resized(const Device &device) {
  Choices choose(21);
  for (int round = 0; round < 200; round++) {
    const size_t planes = choose.from(1, 4), in_h = side(choose), in_w = side(choose), h = side(choose),
                 w = side(choose);
    const std::vector<float> x = awkward(planes * in_h * in_w, choose.seed());
    std::vector<float> expected(planes * h * w);
    CHECK(engine_resize_bilinear(out(expected), in(x), planes, in_h, in_w, h, w) == ENGINE_OK);
    OnDevice<float> from(device, x, choose.below(3)), to(device, expected.size(), choose.below(3));
    CHECK(cuda().resize_bilinear(device.handle, out(to), in(from), planes, in_h, in_w, h, w) == ENGINE_OK);
    CHECK(same_values(expected, to.read()));
  }
}

void blended(const Device &device) {
  Choices choose(22);
  for (int round = 0; round < 200; round++) {
    const size_t batch = choose.from(1, 4), channels = choose.from(1, 5), plane = choose.length(3000);
    const size_t masks = choose.from(1, batch), n = batch * channels * plane, shift = choose.below(2);
    const std::vector<float> a = awkward(n, choose.seed()), b = awkward(n, choose.seed()),
                             m = awkward(masks * plane, choose.seed());
    std::vector<float> expected(n);
    CHECK(engine_masked_blend(out(expected), in(a), in(b), in(m), batch, channels, plane, masks) == ENGINE_OK);
    OnDevice<float> first(device, a, shift), second(device, b, 0), mask(device, m, shift), to(device, n, 0);
    const auto blend = [&](const OnDevice<float> &result) {
      return cuda().masked_blend(device.handle, out(result), in(first), in(second), in(mask), batch, channels, plane,
                                 masks);
    };
    CHECK(blend(to) == ENGINE_OK && same_values(expected, to.read()));
    const OnDevice<float> &input = choose.one_in(2) ? first : second;
    CHECK(blend(input) == ENGINE_OK && same_values(expected, input.read()));
  }
}

void resized_blended(const Device &device) {
  Choices choose(23);
  for (int round = 0; round < 200; round++) {
    const engine_shape4 shape = {choose.from(1, 4), choose.from(1, 4), side(choose), side(choose)};
    // one in four has the size already
    const bool same = choose.one_in(4);
    const size_t masks = choose.from(1, shape.n), mask_h = same ? shape.h : side(choose),
                 mask_w = same ? shape.w : side(choose);
    const size_t plane = shape.h * shape.w, n = shape.n * shape.c * plane;
    const std::vector<float> a = numbers(n, choose.seed()), b = awkward(n, choose.seed()),
                             m = awkward(masks * mask_h * mask_w, choose.seed());
    std::vector<float> resized(masks * plane), expected(n);
    CHECK(engine_resize_bilinear(out(resized), in(m), masks, mask_h, mask_w, shape.h, shape.w) == ENGINE_OK);
    CHECK(engine_masked_blend(out(expected), in(a), in(b), in(resized), shape.n, shape.c, plane, masks) == ENGINE_OK);
    OnDevice<float> first(device, a, 0), second(device, b, choose.below(2)), mask(device, m, choose.below(2)),
        to(device, n, 0);
    CHECK(cuda().resized_blend(device.handle, out(to), in(first), in(second), in(mask), shape, masks, mask_h, mask_w) ==
          ENGINE_OK);
    CHECK(same_values(expected, to.read()));
  }
}

void pasted(const Device &device) {
  Choices choose(24);
  for (int round = 0; round < 200; round++) {
    const engine_shape4 shape = {choose.from(1, 4), choose.from(1, 4), choose.from(1, 20), choose.from(1, 20)};
    const engine_shape4 from = {choose.from(1, 5), choose.one_in(2) ? 1 : shape.c, choose.from(1, 20),
                                choose.from(1, 20)};
    const auto x = static_cast<int64_t>(choose.below(50)) - 25, y = static_cast<int64_t>(choose.below(50)) - 25;
    const size_t masks = choose.from(1, 4);
    const std::vector<float> d = awkward(shape.n * shape.c * shape.h * shape.w, choose.seed()),
                             s = awkward(from.n * from.c * from.h * from.w, choose.seed()),
                             m = numbers(choose.one_in(3) ? 0 : masks * from.h * from.w, choose.seed());
    std::vector<float> expected = d;
    CHECK(engine_composite(out(expected), shape, in(s), from, x, y, in(m), masks) == ENGINE_OK);
    OnDevice<float> destination(device, d, choose.below(3)), source(device, s, 0), mask(device, m, 0);
    CHECK(cuda().composite(device.handle, out(destination), shape, in(source), from, x, y, in(mask), masks) ==
          ENGINE_OK);
    CHECK(same_values(expected, destination.read()));
  }
}

/* The device refuses what the CPU refuses, and in the same words. */
void refused(const Device &device) {
  OnDevice<float> eight(device, 8, 0), four(device, 4, 0);
  std::vector<float> a(8), b(4);
  engine_cuda *d = device.handle;
  const size_t sizes[] = {0, 1, 2, 4, SIZE_MAX / 2};
  for (size_t p : sizes) {
    for (size_t q : sizes) {
      for (size_t r : sizes) {
        CHECK(cuda().resize_bilinear(d, out(eight), in(four), p, q, r, 2, 4) ==
              engine_resize_bilinear(out(a), in(b), p, q, r, 2, 4));
        CHECK(cuda().resize_bilinear(d, {eight.data(), 0}, in(four), p, q, r, 0, 4) ==
              engine_resize_bilinear({a.data(), 0}, in(b), p, q, r, 0, 4));
        CHECK(cuda().masked_blend(d, out(eight), in(eight), in(eight), in(four), p, q, r, 1) ==
              engine_masked_blend(out(a), in(a), in(a), in(b), p, q, r, 1));
        CHECK(cuda().masked_blend(d, out(eight), in(eight), in(eight), {four.data(), 0}, p, q, r, 0) ==
              engine_masked_blend(out(a), in(a), in(a), {b.data(), 0}, p, q, r, 0));
        const engine_shape4 shape = {p, q, r, 2};
        CHECK(cuda().composite(d, out(eight), shape, in(four), {1, 1, 2, 2}, 0, 0, {nullptr, 0}, 1) ==
              engine_composite(out(a), shape, in(b), {1, 1, 2, 2}, 0, 0, {nullptr, 0}, 1));
        const bool fits = p * q * r * 2 == 8 && p < 9 && q < 9 && r < 9;
        CHECK((cuda().resized_blend(d, out(eight), in(eight), in(eight), in(four), shape, 1, 2, 2) == ENGINE_OK) ==
              fits);
      }
    }
  }
  CHECK(cuda().composite(d, out(eight), {1, 2, 2, 2}, in(four), {1, 1, 2, 2}, INT64_MIN, 0, in(four), 1) == ENGINE_OK);
  CHECK(cuda().composite(d, out(eight), {1, 2, 2, 2}, in(four), {1, 1, 2, 2}, 0, 0, in(four), 2) == ENGINE_BAD_LENGTH);
}

/* The kernels' divisions, compiled for the CPU, at the ends of quotients and of 32 bits. */
void divisions() {
  Choices choose(45);
  const auto compare = [](uint64_t a, uint64_t b) {
    const Divided result = divided(a, lk_divisor(b));
    CHECK(result.quotient == a / b && result.rest == a % b);
  };
  const auto around = [&](uint64_t b) {
    const uint64_t most = UINT32_MAX;
    for (uint64_t q : {uint64_t{1}, uint64_t{2}, most / b, most / b + 1, choose.below(most) / b + 1}) {
      compare(q * b - 1, b), compare(q * b, b), compare(q * b + 1, b);
    }
    for (uint64_t a : {uint64_t{0}, most, most + 1, uint64_t{1} << 63, UINT64_MAX}) compare(a, b);
  };
  for (uint64_t b = 1; b < 3000; b++) around(b);
  for (int bit = 1; bit < 40; bit++) {
    for (int near = -2; near < 3; near++) around((uint64_t{2} << bit) + static_cast<uint64_t>(near));
  }
  for (int round = 0; round < 20000; round++) around(1 + (choose.below(size_t{1} << 32) >> choose.below(30)));
}

void masked_sums(const Device &device) {
  Choices choose(52);
  for (int round = 0; round < 200; round++) {
    const engine_shape4 shape = {choose.from(1, 4), choose.from(1, 4), choose.from(1, 20), choose.from(1, 20)};
    engine_area area = {0, 0, choose.from(0, shape.h), choose.from(0, shape.w)};
    area.y = choose.from(0, shape.h - area.h), area.x = choose.from(0, shape.w - area.w);
    const size_t masks = choose.one_in(2) ? 1 : shape.n;
    const std::vector<float> d = awkward(shape.n * shape.c * shape.h * shape.w, choose.seed()),
                             s = awkward(shape.n * shape.c * area.h * area.w, choose.seed()),
                             m = numbers(masks * area.h * area.w, choose.seed());
    std::vector<float> expected = d;
    CHECK(engine_add_masked(out(expected), shape, in(s), area, in(m), masks) == ENGINE_OK);
    OnDevice<float> destination(device, d, choose.below(3)), source(device, s, 0), mask(device, m, 0);
    CHECK(cuda().add_masked(device.handle, out(destination), shape, in(source), area, in(mask), masks) == ENGINE_OK);
    CHECK(same_values(expected, destination.read()));
  }
}

/* The device refuses what the CPU refuses. */
void refused_areas(const Device &device) {
  OnDevice<float> eight(device, 8, 0), four(device, 4, 0);
  std::vector<float> a(8), b(4);
  const size_t sizes[] = {0, 1, 2, 3, SIZE_MAX / 2};
  for (size_t p : sizes) {
    for (size_t q : sizes) {
      for (size_t r : sizes) {
        for (size_t masks : sizes) {
          const engine_area area = {p, q, r, 2};
          const auto mask = [&](const float *data) { return engine_cf32{data, masks < 3 ? masks * 2 : 4}; };
          CHECK(cuda().add_masked(device.handle, out(eight), {2, 1, 2, 2}, in(four), area, mask(four.data()), masks) ==
                engine_add_masked(out(a), {2, 1, 2, 2}, in(b), area, mask(b.data()), masks));
        }
      }
    }
  }
}

}  // namespace

int main() {
  configure("");
  divisions();
  {
    Device device;
    resized(device);
    blended(device);
    resized_blended(device);
    pasted(device);
    refused(device);
    masked_sums(device);
    refused_areas(device);
  }
  return finished();
}
