// The hash of pictures. Its golden values come from another implementation of BLAKE3 (@noble/hashes).
#include <algorithm>

#include "check.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes hash(const Bytes &samples, uint32_t width, uint32_t height, uint32_t channels, uint32_t bit_depth = 8) {
  Bytes out(ENGINE_HASH_BYTES);
  const engine_cu8 span{samples.data(), samples.size()};
  CHECK(engine_pixel_hash(out.data(), span, width, height, channels, bit_depth) == ENGINE_OK);
  return out;
}

std::string hex(const Bytes &bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

Bytes picture(size_t n) {
  Bytes samples(n);
  for (size_t i = 0; i < n; i++) samples[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
  return samples;
}

void golden() {
  const Bytes samples = picture(300 * 100 * 3);
  const Bytes digest = everywhere([&] { return hash(samples, 300, 100, 3); });
  CHECK(hex(digest) == "12c947ed3995339f5595b8297a9cd99b50aef2bd6f1155a72a5470d5d7951d07");
}

/* The same bytes are another picture with samples of 16 bits, whatever its sides. */
void depths() {
  const Bytes samples = picture(12 * 8 * 3 * 2);
  CHECK(hash(samples, 12, 8, 3, 16) != hash(samples, 24, 8, 3));
  CHECK(hash(samples, 12, 8, 3, 16) != hash(samples, 12, 16, 3));
}

/* Around each border of blocks, chunks and vectors; the vectors end where the memory does. */
void lengths() {
  for (const size_t border : {12, 64, 1024, 2048, 4096, 8192, 16384, 32768, 262144}) {
    for (size_t n = border - 12; n <= border; n++) {
      const Bytes samples = picture(n);
      everywhere([&] { return hash(samples, static_cast<uint32_t>(n), 1, 1); });
    }
  }
}

void pieces() {
  const Bytes samples = picture(100'000);
  // the hash of a picture is that of its three sides and its samples
  const Bytes sides = {0, 0, 0, 100, 0, 0, 3, 232, 0, 0, 0, 1};
  const Bytes whole = hash(samples, 100, 1000, 1);
  for (const size_t step : {1000, 1024, 65536, 100'000}) {
    const Bytes digest = everywhere([&] {
      engine_hasher hasher;
      engine_hash_init(&hasher);
      engine_hash_update(&hasher, {sides.data(), sides.size()});
      for (size_t at = 0; at < samples.size(); at += step)
        engine_hash_update(&hasher, {samples.data() + at, std::min(step, samples.size() - at)});
      Bytes out(ENGINE_HASH_BYTES);
      engine_hash_final(out.data(), &hasher);
      return out;
    });
    CHECK(digest == whole);
  }
}

void refusals() {
  Bytes out(ENGINE_HASH_BYTES), samples = picture(24);
  const auto status = [&](uint32_t width, uint32_t height, uint32_t channels) {
    return engine_pixel_hash(out.data(), {samples.data(), samples.size()}, width, height, channels, 8);
  };
  CHECK(status(4, 2, 3) == ENGINE_OK);
  CHECK(status(4, 2, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(5, 5, 1) == ENGINE_BAD_LENGTH);
  CHECK(status(0xffffffff, 0xffffffff, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(24, 1, 0) == ENGINE_BAD_ARGUMENT);
  CHECK(status(4, 1, 6) == ENGINE_BAD_ARGUMENT);
  const engine_cu8 span{samples.data(), samples.size()};
  CHECK(engine_pixel_hash(out.data(), span, 4, 1, 3, 16) == ENGINE_OK);
  CHECK(engine_pixel_hash(out.data(), span, 4, 2, 3, 16) == ENGINE_BAD_LENGTH);
  CHECK(engine_pixel_hash(out.data(), span, 4, 2, 3, 12) == ENGINE_BAD_ARGUMENT);
}

}  // namespace

int main() {
  golden();
  depths();
  lengths();
  pieces();
  refusals();
  return report();
}
