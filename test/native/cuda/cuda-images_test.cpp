// Floats and bytes of images, and the filters of PNG rows: the device against the CPU, on 200 random shapes each.
#include "cuda-check.h"
#include "runtime/runtime.h"

namespace {

void bytes(const Device &device) {
  Choices choose(41);
  for (int round = 0; round < 200; round++) {
    const size_t n = choose.length(20000), shift = choose.below(3);
    std::vector<float> x = choose.one_in(2) ? awkward(n, choose.seed()) : numbers(n, choose.seed(), 1.2f);
    std::vector<uint8_t> expected(n);
    CHECK(engine_f32_to_u8({expected.data(), n}, in(x)) == ENGINE_OK);
    OnDevice<float> from(device, x, shift), back(device, n, choose.below(2));
    OnDevice<uint8_t> to(device, n, choose.below(5));
    CHECK(cuda().f32_to_u8(device.handle, out(to), in(from)) == ENGINE_OK);
    CHECK(same_bytes(expected, to.read()));
    std::vector<float> floats(n);
    CHECK(engine_u8_to_f32(out(floats), {expected.data(), n}) == ENGINE_OK);
    CHECK(cuda().u8_to_f32(device.handle, out(back), in(to)) == ENGINE_OK);
    CHECK(same_values(floats, back.read()));
  }
}

void masks(const Device &device) {
  Choices choose(42);
  for (int round = 0; round < 200; round++) {
    const size_t pixels = choose.length(5000);
    const int kinds[] = {1, 3, 4}, channels = kinds[choose.below(3)], channel = static_cast<int>(choose.below(3));
    const std::vector<float> image = awkward(pixels * static_cast<size_t>(channels), choose.seed());
    std::vector<float> expected(pixels);
    CHECK(engine_channel_to_mask(out(expected), in(image), channels, channel) == ENGINE_OK);
    OnDevice<float> from(device, image, choose.below(2)), to(device, pixels, choose.below(2));
    CHECK(cuda().channel_to_mask(device.handle, out(to), in(from), channels, channel) == ENGINE_OK);
    CHECK(same_values(expected, to.read()));
  }
}

void planes(const Device &device) {
  Choices choose(43);
  for (int round = 0; round < 200; round++) {
    const size_t batch = choose.from(1, 4), n = batch * 3 * choose.length(2000);
    const std::vector<float> x = awkward(n, choose.seed());
    std::vector<float> expected(n);
    CHECK(engine_planes_to_image(out(expected), in(x), batch) == ENGINE_OK);
    OnDevice<float> from(device, x, choose.below(2)), to(device, n, choose.below(2));
    CHECK(cuda().planes_to_image(device.handle, out(to), in(from), batch) == ENGINE_OK);
    CHECK(same_values(expected, to.read()));
  }
}

/* Pictures of several kinds, so that every filter is the best of some row. */
std::vector<uint8_t> picture(size_t width, size_t height, size_t channels, Choices &choose) {
  std::vector<uint8_t> pixels(width * height * channels);
  for (size_t y = 0; y < height; y++) {
    const size_t kind = choose.below(5);
    for (size_t i = 0; i < width * channels; i++) {
      uint8_t &pixel = pixels[y * width * channels + i];
      if (kind == 0) pixel = static_cast<uint8_t>(choose.below(256));
      else if (kind == 1) pixel = static_cast<uint8_t>(i / channels * 3 + y);
      else if (kind == 2) pixel = y == 0 ? 7 : pixels[(y - 1) * width * channels + i];
      else if (kind == 3) pixel = static_cast<uint8_t>((i * i / 50 + y * y / 9) / 2 + choose.below(3));
      else pixel = static_cast<uint8_t>(choose.below(4));
    }
  }
  return pixels;
}

void filters(const Device &device) {
  Choices choose(44);
  size_t used[5] = {};
  for (int round = 0; round < 200; round++) {
    const size_t width = choose.from(1, 90), height = choose.from(1, 20), channels = choose.from(1, 4);
    const size_t n = width * channels;
    const std::vector<uint8_t> pixels = picture(width, height, channels, choose), first(n);
    std::vector<uint8_t> expected(height * (n + 1));
    for (size_t y = 0; y < height; y++) {
      const uint8_t *row = pixels.data() + y * n;
      latentkit::kernels().filter_row(expected.data() + y * (n + 1), row, y == 0 ? first.data() : row - n, n, channels);
      used[expected[y * (n + 1)]]++;
    }
    OnDevice<uint8_t> from(device, pixels, choose.below(5)), to(device, expected.size(), choose.below(5));
    CHECK(cuda().png_filter(device.handle, out(to), in(from), static_cast<uint32_t>(width),
                            static_cast<uint32_t>(height), static_cast<int>(channels)) == ENGINE_OK);
    CHECK(same_bytes(expected, to.read()));
  }
  for (size_t count : used) CHECK(count > 20);
}

void refused(const Device &device) {
  OnDevice<float> nine(device, 9, 0), three(device, 3, 0);
  OnDevice<uint8_t> pixels(device, 12, 0), lines(device, 14, 0);
  engine_cuda *d = device.handle;
  CHECK(cuda().f32_to_u8(d, out(pixels), in(nine)) == ENGINE_BAD_LENGTH);
  CHECK(cuda().u8_to_f32(d, out(nine), in(pixels)) == ENGINE_BAD_LENGTH);
  CHECK(cuda().channel_to_mask(d, out(three), in(nine), 2, 0) == ENGINE_BAD_ARGUMENT);
  CHECK(cuda().channel_to_mask(d, out(three), in(nine), 3, 3) == ENGINE_BAD_ARGUMENT);
  CHECK(cuda().channel_to_mask(d, out(three), in(nine), 4, 0) == ENGINE_BAD_LENGTH);
  CHECK(cuda().planes_to_image(d, out(nine), in(nine), 2) == ENGINE_BAD_LENGTH);
  CHECK(cuda().planes_to_image(d, out(nine), in(nine), 0) == ENGINE_BAD_LENGTH);
  CHECK(cuda().planes_to_image(d, {nullptr, 0}, {nullptr, 0}, 0) == ENGINE_OK);
  CHECK(cuda().png_filter(d, out(lines), in(pixels), 2, 2, 3) == ENGINE_OK);
  CHECK(cuda().png_filter(d, out(lines), in(pixels), 2, 2, 2) == ENGINE_BAD_LENGTH);
  CHECK(cuda().png_filter(d, out(pixels), in(pixels), 2, 2, 3) == ENGINE_BAD_LENGTH);
  CHECK(cuda().png_filter(d, out(lines), in(pixels), 0, 2, 3) == ENGINE_BAD_ARGUMENT);
  CHECK(cuda().png_filter(d, out(lines), in(pixels), 2, 0, 3) == ENGINE_BAD_ARGUMENT);
  CHECK(cuda().png_filter(d, out(lines), in(pixels), 1, 2, 6) == ENGINE_BAD_ARGUMENT);
}

}  // namespace

int main() {
  configure("");
  {
    Device device;
    bytes(device);
    masks(device);
    planes(device);
    filters(device);
    refused(device);
  }
  return finished();
}
