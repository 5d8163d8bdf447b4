// Resizes, blends, pasting, and floats and bytes of images on the device.
#include "device.h"
#include "masks.h"
#include "shared/checks.h"

namespace latentkit::cuda {
namespace {

engine_status resize_bilinear(engine_cuda *device, engine_f32 out, engine_cf32 x, size_t planes, size_t in_h,
                              size_t in_w, size_t out_h, size_t out_w) {
  bool nothing = false;
  const engine_status checked = check_resize(out.len, x.len, planes, in_h, in_w, out_h, out_w, &nothing);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (nothing) return ENGINE_OK;
    return LK_LAUNCH(*device, resize, blocks_for(out.len), out.data, x.data, out.len,
                     sizes_of(in_h, in_w, out_h, out_w));
  });
}

engine_status masked_blend(engine_cuda *device, engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask,
                           size_t batch, size_t channels, size_t plane, size_t mask_batch) {
  bool nothing = false;
  const engine_status checked =
      check_blend(out.len, a.len, b.len, mask.len, batch, channels, plane, mask_batch, &nothing);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (nothing) return ENGINE_OK;
    const lk_mask how = {mask.data, lk_divisor(mask_batch), lk_divisor(channels), lk_divisor(plane), 0, {}};
    return LK_LAUNCH(*device, blend, blocks_for(quads(out.len)), out.data, a.data, b.data, how, out.len);
  });
}

engine_status resized_blend(engine_cuda *device, engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask,
                            engine_shape4 shape, size_t mask_batch, size_t mask_h, size_t mask_w) {
  // what the resize and the blend would refuse, one after the other
  size_t plane, resized;
  if (!multiply(shape.h, shape.w, &plane) || !multiply(mask_batch, plane, &resized)) return ENGINE_BAD_LENGTH;
  bool nothing = false;
  engine_status checked = check_resize(resized, mask.len, mask_batch, mask_h, mask_w, shape.h, shape.w, &nothing);
  if (checked != ENGINE_OK) return checked;
  checked = check_blend(out.len, a.len, b.len, resized, shape.n, shape.c, plane, mask_batch, &nothing);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (nothing) return ENGINE_OK;
    // equal sizes go through the resize as well: beside an infinity it makes NaN
    lk_mask how = mask_of(mask.data, mask_batch, shape.c, mask_h, mask_w, shape.h, shape.w);
    how.resized = 1;
    Block ahead(*device);
    const engine_status status = resize_ahead(*device, ahead, shape.n * shape.c, &how);
    if (status != ENGINE_OK) return status;
    return LK_LAUNCH(*device, blend, blocks_for(quads(out.len)), out.data, a.data, b.data, how, out.len);
  });
}

engine_status composite(engine_cuda *device, engine_f32 destination, engine_shape4 shape, engine_cf32 source,
                        engine_shape4 from, int64_t x, int64_t y, engine_cf32 mask, size_t mask_batch) {
  Overlap across, down;
  bool nothing = false;
  const engine_status checked =
      check_composite(destination.len, shape, source.len, from, x, y, mask.len, mask_batch, &across, &down, &nothing);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (nothing) return ENGINE_OK;
    const uint64_t n = shape.n * shape.c * down.count * across.count;
    const lk_paste how = {destination.data,
                          source.data,
                          mask.len > 0 ? mask.data : nullptr,
                          shape.h,
                          shape.w,
                          from.c,
                          from.h,
                          from.w,
                          across.from,
                          down.from,
                          across.to,
                          down.to,
                          lk_divisor(shape.c),
                          lk_divisor(from.n),
                          lk_divisor(mask_batch),
                          lk_divisor(across.count),
                          lk_divisor(down.count)};
    return LK_LAUNCH(*device, composite, blocks_for(n), how, n);
  });
}

engine_status add_masked(engine_cuda *device, engine_f32 destination, engine_shape4 shape, engine_cf32 source,
                         engine_area area, engine_cf32 mask, size_t mask_batch) {
  bool nothing = false;
  const engine_status checked =
      check_add_masked(destination.len, shape, source.len, area, mask.len, mask_batch, &nothing);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (nothing) return ENGINE_OK;
    lk_paste how = {};
    how.destination = destination.data, how.source = source.data, how.mask = mask.data;
    how.h = shape.h, how.w = shape.w;
    how.source_c = shape.c, how.source_h = area.h, how.source_w = area.w;
    how.to_x = area.x, how.to_y = area.y;
    how.channels = lk_divisor(shape.c), how.source_n = lk_divisor(shape.n), how.mask_n = lk_divisor(mask_batch);
    how.width = lk_divisor(area.w), how.height = lk_divisor(area.h);
    return LK_LAUNCH(*device, add_masked, blocks_for(source.len), how, source.len);
  });
}

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
    // grey is every channel
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

void fill_planes(engine_cuda_table *table) {
  table->resize_bilinear = resize_bilinear;
  table->masked_blend = masked_blend;
  table->resized_blend = resized_blend;
  table->composite = composite;
  table->add_masked = add_masked;
  table->f32_to_u8 = f32_to_u8;
  table->u8_to_f32 = u8_to_f32;
  table->channel_to_mask = channel_to_mask;
  table->planes_to_image = planes_to_image;
  table->png_filter = png_filter;
}

}  // namespace latentkit::cuda
