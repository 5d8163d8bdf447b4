// Floats and bytes of images on the device.
#include "launch.h"
#include "operations.h"
#include "shared/checks.h"

namespace latentkit::cuda {
namespace {

engine_status f32_to_u8(engine_cuda *device, engine_u8 out, engine_cf32 x) {
  if (x.len != out.len) return ENGINE_BAD_LENGTH;
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    return LK_LAUNCH(*device, to_bytes, blocks_for(quads(out.len)), out.data, x.data, out.len);
  });
}

engine_status u8_to_f32(engine_cuda *device, engine_f32 out, engine_cu8 x) {
  if (x.len != out.len) return ENGINE_BAD_LENGTH;
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    return LK_LAUNCH(*device, from_bytes, blocks_for(quads(out.len)), out.data, x.data, out.len);
  });
}

engine_status channel_to_mask(engine_cuda *device, engine_f32 out, engine_cf32 image, int channels, int channel) {
  const engine_status checked = check_channel(out.len, image.len, channels, channel);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    // grey stands for every channel
    return LK_LAUNCH(*device, channel_mask, blocks_for(out.len), out.data, image.data, out.len, channels,
                     channels == 1 ? 0 : channel);
  });
}

engine_status planes_to_image(engine_cuda *device, engine_f32 out, engine_cf32 x, size_t batch) {
  bool nothing = false;
  const engine_status checked = check_planes_to_image(out.len, x.len, batch, &nothing);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (nothing) return ENGINE_OK;
    const size_t pixels = x.len / 3;
    return LK_LAUNCH(*device, planes_to_image, blocks_for(pixels), out.data, x.data, pixels, pixels / batch);
  });
}

engine_status png_filter(engine_cuda *device, engine_u8 out, engine_cu8 pixels, uint32_t width, uint32_t height,
                         int channels) {
  if (width == 0 || height == 0 || channels < 1 || channels > 4) return ENGINE_BAD_ARGUMENT;
  const size_t row_bytes = size_t{width} * static_cast<size_t>(channels);
  size_t count;
  if (!multiply(row_bytes, height, &count) || pixels.len != count || out.len != count + height) {
    return ENGINE_BAD_LENGTH;
  }
  return on(device, [&] {
    return LK_LAUNCH(*device, filter_rows, blocks_for(uint64_t{height} * kWarp), out.data, pixels.data, row_bytes,
                     height, static_cast<uint32_t>(channels));
  });
}

}  // namespace

void fill_images(engine_cuda_table *table) {
  table->f32_to_u8 = f32_to_u8;
  table->u8_to_f32 = u8_to_f32;
  table->channel_to_mask = channel_to_mask;
  table->planes_to_image = planes_to_image;
  table->png_filter = png_filter;
}

}  // namespace latentkit::cuda
