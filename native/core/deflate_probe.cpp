// Looks over a unit: how often each byte occurs, and whether strings of eight bytes come again.
#include <algorithm>
#include <array>
#include <cstring>

#include "deflate.h"
#include "dispatch.h"
#include "little.h"

namespace latentkit::deflate {
namespace {

constexpr int kSlotBits = 11;
constexpr size_t kSmall = 4096;     /* too little to judge by samples; the search costs nothing */
constexpr size_t kShare = 32;       /* one byte in so many must come again */
constexpr size_t kChanceBits = 32;  /* of strings that come again by chance, at most */
constexpr size_t kLooks = 2048;     /* more anchors than a unit has without runs; then what was seen decides */
constexpr size_t kMostWorth = 64;
constexpr size_t kWords = 128;      /* of 64 positions looked at in one go */

/* Whether enough strings of `worth` bytes come again. Anchors are chosen by what stands there, so that a string and its
 * repetition are both looked at or both not. */
bool comes_again(const uint8_t *raw, size_t len, size_t worth) {
  if (len < kSmall) return true;
  std::array<uint32_t, size_t{1} << kSlotBits> seen{};
  std::array<uint64_t, kWords> masks;
  size_t bytes = 0, looks = 0;
  const auto look_at = [&](size_t i) {
    uint32_t &slot = seen[little64(raw + i) * 0x9E3779B97F4A7C15u >> (64 - kSlotBits)];
    const size_t before = slot;
    looks++;
    slot = static_cast<uint32_t>(i);
    if (before == 0 || i - before > kWindow || std::memcmp(raw + before, raw + i, worth) != 0) return;
    bytes += before + 1 == i ? 1 : LK_ANCHOR_SPACING;
  };
  const size_t words = (len - kMostWorth) / 64;
  for (size_t first = 0; first < words; first += kWords) {
    const size_t n = std::min(kWords, words - first);
    kernels().anchors(masks.data(), raw + 64 * first, n);
    for (size_t w = 0; w < n; w++) {
      for (uint64_t mask = masks[w]; mask != 0; mask &= mask - 1) {
        look_at(64 * (first + w) + static_cast<size_t>(__builtin_ctzll(mask)));
      }
      if (bytes * kShare >= len) return true;
      if (looks >= kLooks) return bytes * kShare >= 64 * (first + w);
    }
  }
  return false;
}

}  // namespace

void survey(Unit &unit) {
  unit.counts = {};
  kernels().count_bytes(unit.counts.literal, unit.raw, unit.len);
  // repeats this long do not happen by chance
  const uint64_t bits = cost(unit.counts) >> kBit;
  const size_t worth = std::clamp<uint64_t>(kChanceBits * unit.len / bits, 8, kMostWorth);
  unit.repeats = 2 * bits < 3 * unit.len || comes_again(unit.raw, unit.len, worth);
}

}  // namespace latentkit::deflate
