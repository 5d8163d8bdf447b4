// Floats and bytes of images.
#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/spans.h"
#include "shared/checks.h"

using latentkit::for_ranges;
using latentkit::kernels;
using latentkit::kGrain;

constexpr size_t kManyBytes = size_t{8} << 20;

engine_status engine_f32_to_u8(engine_u8 out, engine_cf32 x) {
  if (x.len != out.len) return ENGINE_BAD_LENGTH;
  // the bytes of one picture are read again at once, where it is compressed
  const int stream = out.len >= kManyBytes;
  for_ranges(out.len, kGrain, [&](size_t begin, size_t end) {
    kernels().to_bytes(out.data + begin, x.data + begin, end - begin, stream);
  });
  return ENGINE_OK;
}

engine_status engine_f32_to_u16(engine_u8 out, engine_cf32 x) {
  if (out.len % 2 != 0 || x.len != out.len / 2) return ENGINE_BAD_LENGTH;
  for_ranges(x.len, kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
      const double scaled = static_cast<double>(x.data[i]) * 65535.0 + 0.5;
      // a NaN passes neither comparison
      const auto sample = static_cast<uint32_t>(scaled >= 65535.0 ? 65535.0 : scaled >= 0.0 ? scaled : 0.0);
      out.data[2 * i] = static_cast<uint8_t>(sample >> 8);
      out.data[2 * i + 1] = static_cast<uint8_t>(sample);
    }
  });
  return ENGINE_OK;
}

engine_status engine_u8_to_f32(engine_f32 out, engine_cu8 x) {
  if (x.len != out.len) return ENGINE_BAD_LENGTH;
  int stream = latentkit::streams(out.len + out.len / 4);
  for_ranges(out.len, kGrain, [&](size_t begin, size_t end) {
    kernels().from_bytes(out.data + begin, x.data + begin, end - begin, stream);
  });
  return ENGINE_OK;
}

engine_status engine_channel_to_mask(engine_f32 out, engine_cf32 image, int channels, int channel) {
  const engine_status status = latentkit::check_channel(out.len, image.len, channels, channel);
  if (status != ENGINE_OK) return status;
  int stream = latentkit::streams(out.len + image.len);
  for_ranges(out.len, kGrain, [&](size_t begin, size_t end) {
    const float *from = image.data + begin * static_cast<size_t>(channels);
    kernels().channel_mask(out.data + begin, from, channels, channel, end - begin, stream);
  });
  return ENGINE_OK;
}

engine_status engine_planes_to_image(engine_f32 out, engine_cf32 x, size_t batch) {
  bool nothing = false;
  const engine_status status = latentkit::check_planes_to_image(out.len, x.len, batch, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  const size_t plane = x.len / batch / 3;
  for (size_t item = 0; item < batch; item++) {
    const float *red = x.data + item * plane * 3;
    float *to = out.data + item * plane * 3;
    for_ranges(plane, kGrain, [&](size_t begin, size_t end) {
      kernels().colours_last(to + 3 * begin, red + begin, red + plane + begin, red + 2 * plane + begin, end - begin);
    });
  }
  return ENGINE_OK;
}

engine_status engine_latent_to_rgb(engine_f32 out, engine_cf32 x, size_t batch, size_t channels, const double *factors,
                                   const double *bias, double shift, double scale) {
  bool nothing = false;
  const engine_status status = latentkit::check_planes_to_image(out.len, out.len, batch, &nothing);
  if (status != ENGINE_OK) return status;
  if (nothing) return x.len == 0 ? ENGINE_OK : ENGINE_BAD_LENGTH;
  const size_t plane = out.len / batch / 3;
  size_t count;
  if (!latentkit::elements({1, batch, channels, plane}, &count) || x.len != count) return ENGINE_BAD_LENGTH;
  for (size_t item = 0; item < batch; item++) {
    const float *from = x.data + item * channels * plane;
    float *to = out.data + item * 3 * plane;
    for_ranges(plane, kGrain, [&](size_t begin, size_t end) {
      kernels().latent_colours(to + begin, from + begin, plane, end - begin, channels, factors, bias, shift, scale);
    });
  }
  return ENGINE_OK;
}
