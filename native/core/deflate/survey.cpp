// Survey of a unit: how often each byte occurs, whether strings of eight bytes recur, and runs of one byte.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "deflate/deflate.h"
#include "deflate/search.h"
#include "runtime/runtime.h"

// decisions: PNG files are written by our own deflate
namespace latentkit::deflate {
namespace {

constexpr int kSlotBits = 11;
constexpr size_t kSmall = 4096;       /* too little to judge by samples; the search costs nothing */
constexpr size_t kShare = 32;         /* one byte in so many must recur */
constexpr size_t kChanceBits = 32;    /* of strings that recur by chance, at most */
constexpr size_t kMostAnchors = 2048; /* inspected at most: more than a unit without runs has */
constexpr size_t kMostWorth = 64;
constexpr size_t kWords = 128; /* of 64 positions inspected at once */

/* Writes the positions of the set bits, less than 8192, and up to four more; returns how many there are. */
size_t positions_of(const uint64_t *masks, size_t words, uint16_t *positions) {
  uint16_t *next = positions;
  for (size_t w = 0; w < words; w++) {
    uint64_t mask = masks[w];
    const auto put = [&] {
      *next = static_cast<uint16_t>(64 * w + static_cast<size_t>(__builtin_ctzll(mask | uint64_t{1} << 63)));
      next += mask != 0;
      mask &= mask - 1;
    };
    // most words have one or two; their number is unpredictable
    put(), put(), put(), put();
    while (mask != 0) put();
  }
  return static_cast<size_t>(next - positions);
}

bool are_equal(const uint8_t *a, const uint8_t *b, size_t n) {
  uint64_t differ = little64(a) ^ little64(b);
  for (size_t k = 8; k + 8 < n; k += 8) differ |= little64(a + k) ^ little64(b + k);
  return (differ | (little64(a + n - 8) ^ little64(b + n - 8))) == 0;
}

/* True if enough strings of `worth` bytes recur. Anchors are chosen by their bytes, so that a string and its
 * repetition are both inspected or both not. */
bool comes_again(const uint8_t *raw, size_t len, size_t worth) {
  if (len < kSmall) return true;
  std::array<uint32_t, size_t{1} << kSlotBits> seen{};
  std::array<uint64_t, kWords> masks;
  std::array<uint16_t, 64 * kWords + 4> positions;
  size_t bytes = 0, inspected = 0;
  const size_t words = (len - kMostWorth) / 64;
  for (size_t first = 0; first < words; first += kWords) {
    const size_t n = std::min(kWords, words - first);
    kernels().anchors(masks.data(), raw + 64 * first, n);
    const size_t count = positions_of(masks.data(), n, positions.data());
    for (size_t k = 0; k < count; k++) {
      const size_t i = 64 * first + positions[k];
      uint32_t &slot = seen[little64(raw + i) * 0x9E3779B97F4A7C15u >> (64 - kSlotBits)];
      const size_t before = slot;
      slot = static_cast<uint32_t>(i);
      const bool again = (before != 0) & (i - before <= kWindow) & are_equal(raw + before, raw + i, worth);
      bytes += (before + 1 == i ? 1 : LK_ANCHOR_SPACING) & -static_cast<size_t>(again);
      if (bytes * kShare >= len) return true;
      if (++inspected >= kMostAnchors) return bytes * kShare >= i;
    }
  }
  return false;
}

}  // namespace

void count_bytes(Unit &unit) {
  unit.counts = {};
  kernels().count_bytes(unit.counts.literal, unit.raw, unit.len);
  std::copy_n(unit.counts.literal, 256, unit.plain);
  unit.plain_cost = cost(unit.counts);
}

void survey(Unit &unit) {
  count_bytes(unit);
  // strings this long do not recur by chance
  const uint64_t bits = unit.plain_cost >> kBit;
  const size_t worth = std::clamp<uint64_t>(kChanceBits * unit.len / bits, 8, kMostWorth);
  unit.repeats = 2 * bits < 3 * unit.len || comes_again(unit.raw, unit.len, worth);
}

/* ---- runs of one byte as matches at distance 1: what filters leave of flat areas, found without a table ---- */
namespace {

constexpr size_t kStripe = 1;
constexpr uint64_t kFavour = 16; /* bits */
constexpr size_t kLeastRun = 12; /* bytes after the first: fewer may cost less as literals */

/* Bytes from p on that equal the one before each. */
size_t run_from(const uint8_t *p, const uint8_t *end) { return common(p, p - 1, static_cast<size_t>(end - p)); }

}  // namespace

bool find_runs(Unit &unit) {
  if (2 * (unit.plain_cost >> kBit) >= 3 * unit.len) return true;
  Counts counts;
  std::copy_n(unit.plain, 256, counts.literal);
  const Workspace<lk_sequence> memory(unit.len / kLeastRun + unit.len / kMaxMatch + 2);
  if (memory.get() == nullptr) return false;
  size_t size = 0;
  const uint8_t *const end = unit.raw + unit.len, *done = unit.raw;
  // eight equal bytes at a multiple of eight lie in every run that is long enough
  for (const uint8_t *p = unit.raw + 8; p + 8 <= end;) {
    if (little64(p) != little64(p - 1)) {
      p += 8;
      continue;
    }
    const uint8_t *first = p, *stop = p + run_from(p, end);
    while (first - 1 > done && first[-1] == first[-2]) first--;
    if (static_cast<size_t>(stop - first) >= kLeastRun) {
      const auto run = static_cast<size_t>(stop - first);
      for (size_t left = run; left >= 3;) {
        // the last match of a run is never shorter than the shortest there is
        const size_t length = left > kMaxMatch && left < kMaxMatch + 3 ? kMaxMatch - 3 : std::min(left, kMaxMatch);
        const Symbol symbol = length_symbol(length);
        counts.literal[symbol.symbol]++;
        counts.distance[0]++;
        counts.extra_bits += symbol.extra_bits;
        memory.get()[size++] = {static_cast<uint32_t>(first - done), static_cast<uint16_t>(length), 1};
        first += length;
        done = first;
        left -= length;
      }
      counts.literal[stop[-1]] -= static_cast<uint32_t>(run);
    }
    p += std::max<size_t>(8, static_cast<size_t>(stop - p) & ~size_t{7});
  }
  // a header with one distance is smaller than estimated
  const uint64_t favour = unit.sequence_count > 0 ? kFavour << kBit : 0;
  if (cost(counts) >= cost(unit.counts) + favour) return true;
  unit.sequences.reset(new (std::nothrow) lk_sequence[size]);
  if (unit.sequences == nullptr) return false;
  std::copy_n(memory.get(), size, unit.sequences.get());
  unit.counts = counts;
  unit.sequence_count = size;
  return true;
}

void find_runs(std::vector<Unit> &units) {
  in_stripes(units.size(), kStripe, [&](size_t u, size_t) { return units[u].is_sure || find_runs(units[u]); });
}

}  // namespace latentkit::deflate
