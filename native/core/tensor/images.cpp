// Floats and bytes of images, and the hash of their samples.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "runtime/runtime.h"
#include "shared/checks.h"

extern "C" {
#include "blake3.h"
#include "blake3_impl.h"
}

using latentkit::for_ranges;
using latentkit::Isa;
using latentkit::kernels;
using latentkit::kGrain;

constexpr size_t kManyBytes = size_t{8} << 20;

engine_status engine_f32_to_u8(engine_u8 out, engine_cf32 x) {
  if (x.len != out.len) return ENGINE_BAD_LENGTH;
  // the bytes of one picture are read again at once, to be compressed
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

// decisions: Pixels are hashed by BLAKE3
/* ---- the hash of samples, independent of the file: BLAKE3 with the instruction set in use ---- */
// Called by blake3.c, whose own choice at run time would ignore LATENTKIT_ISA and engine_set_isa.

void blake3_compress_in_place(uint32_t cv[8], const uint8_t block[BLAKE3_BLOCK_LEN], uint8_t block_len,
                              uint64_t counter, uint8_t flags) {
#if defined(__x86_64__)
  const auto compress =
      latentkit::isa() == Isa::avx512 ? blake3_compress_in_place_avx512 : blake3_compress_in_place_sse2;
  compress(cv, block, block_len, counter, flags);
#else
  blake3_compress_in_place_portable(cv, block, block_len, counter, flags);
#endif
}

void blake3_compress_xof(const uint32_t cv[8], const uint8_t block[BLAKE3_BLOCK_LEN], uint8_t block_len,
                         uint64_t counter, uint8_t flags, uint8_t out[64]) {
#if defined(__x86_64__)
  const auto compress = latentkit::isa() == Isa::avx512 ? blake3_compress_xof_avx512 : blake3_compress_xof_sse2;
  compress(cv, block, block_len, counter, flags, out);
#else
  blake3_compress_xof_portable(cv, block, block_len, counter, flags, out);
#endif
}

void blake3_hash_many(const uint8_t *const *inputs, size_t num_inputs, size_t blocks, const uint32_t key[8],
                      uint64_t counter, bool increment_counter, uint8_t flags, uint8_t flags_start, uint8_t flags_end,
                      uint8_t *out) {
#if defined(__x86_64__)
  auto hash_many = blake3_hash_many_sse2;
  if (latentkit::isa() == Isa::avx2) hash_many = blake3_hash_many_avx2;
  if (latentkit::isa() == Isa::avx512) hash_many = blake3_hash_many_avx512;
#elif BLAKE3_USE_NEON == 1
  const auto hash_many = blake3_hash_many_neon;
#else
  const auto hash_many = blake3_hash_many_portable;
#endif
  hash_many(inputs, num_inputs, blocks, key, counter, increment_counter, flags, flags_start, flags_end, out);
}

size_t blake3_simd_degree(void) {
  if (latentkit::isa() == Isa::avx512) return 16;
  if (latentkit::isa() == Isa::avx2) return 8;
  // SSE2 and NEON; 1 if there is only the portable code
  return std::min(MAX_SIMD_DEGREE, 4);
}

static_assert(sizeof(blake3_hasher) <= sizeof(engine_hasher) && alignof(blake3_hasher) <= alignof(engine_hasher));

void engine_hash_init(engine_hasher *hasher) { blake3_hasher_init(reinterpret_cast<blake3_hasher *>(hasher->words)); }

void engine_hash_update(engine_hasher *hasher, engine_cu8 bytes) {
  blake3_hasher_update(reinterpret_cast<blake3_hasher *>(hasher->words), bytes.data, bytes.len);
}

void engine_hash_final(uint8_t out[ENGINE_HASH_BYTES], const engine_hasher *hasher) {
  blake3_hasher_finalize(reinterpret_cast<const blake3_hasher *>(hasher->words), out, ENGINE_HASH_BYTES);
}

engine_status engine_pixel_hash(uint8_t out[ENGINE_HASH_BYTES], engine_cu8 samples, uint32_t width, uint32_t height,
                                uint32_t channels, uint32_t bit_depth) {
  if (channels == 0 || channels > 4 || (bit_depth != 8 && bit_depth != 16)) return ENGINE_BAD_ARGUMENT;
  // with the channels it could pass 2^64
  const uint64_t pixels = uint64_t{width} * height;
  const size_t pixel = size_t{channels} * (bit_depth / 8);
  if (samples.len % pixel != 0 || samples.len / pixel != pixels) return ENGINE_BAD_LENGTH;
  const uint32_t kind = bit_depth == 8 ? channels : channels + (bit_depth << 16);
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  for (const uint32_t side : {width, height, kind}) {
    const std::array<uint8_t, 4> bytes = {static_cast<uint8_t>(side >> 24), static_cast<uint8_t>(side >> 16),
                                          static_cast<uint8_t>(side >> 8), static_cast<uint8_t>(side)};
    blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  }
  blake3_hasher_update(&hasher, samples.data, samples.len);
  blake3_hasher_finalize(&hasher, out, ENGINE_HASH_BYTES);
  return ENGINE_OK;
}
