// The hash of a picture's samples, whatever the file around them: BLAKE3 with the instruction set in use.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "engine.h"
#include "runtime/dispatch.h"

// decision 159
extern "C" {
#include "blake3.h"
#include "blake3_impl.h"
}

using latentkit::Isa;

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
  // SSE2 and NEON; 1 where there is only the portable code
  return std::min(MAX_SIMD_DEGREE, 4);
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
