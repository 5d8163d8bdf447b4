// How often each byte occurs. Filtered rows are mostly small numbers, which vectors compare; the others take counters.
#include "bytes.h"
#include "table.h"

namespace {

constexpr int kNear = 16;          /* values compared: -8 to 7 */
constexpr size_t kBlock = 63 * 64; /* bytes; at most 255 vectors, whose matches a byte can count */
constexpr size_t kFarShare = 8;    /* where more than one byte of so many is far, comparing does not pay */
constexpr size_t kTables = 4;      /* equal bytes that follow each other do not wait for the same counter */

/* Words that come again eight or 24 bytes later, in flat colours of one, two, three or four channels, are counted
 * together. */
void count_by_tables(uint32_t *counts, const uint8_t *p, size_t n) {
  uint32_t tables[kTables][256] = {};
  size_t i = 0;
  const auto add = [&](uint64_t v, uint32_t times) {
    for (size_t k = 0; k < 8; k++) tables[k % kTables][v >> (8 * k) & 0xFF] += times;
  };
  while (i + 24 <= n) {
    uint64_t v[3];
    __builtin_memcpy(v, p + i, 24);
    uint32_t times = 1;
    for (i += 24; i + 24 <= n && __builtin_memcmp(p + i, p + i - 24, 24) == 0; i += 24) times++;
    for (size_t k = 0; k < 3; k++) add(v[k], times);
  }
  for (; i < n; i++) tables[0][p[i]]++;
  for (size_t b = 0; b < 256; b++) {
    for (size_t k = 0; k < kTables; k++) counts[b] += tables[k][b];
  }
}

/* Adds 1 where v is `value`. */
inline Bytes add_equal(Bytes count, Bytes v, int value) {
#if defined(__AVX512BW__)
  const __mmask64 equal = _mm512_cmpeq_epi8_mask((__m512i)v, _mm512_set1_epi8((char)value));
  return (Bytes)_mm512_mask_sub_epi8((__m512i)count, equal, (__m512i)count, _mm512_set1_epi8(-1));
#else
  return count - (Bytes)(v == (uint8_t)value);
#endif
}

/* Adds the values first to first + 7 of n bytes, whole vectors, to sums. */
inline void compare_eight(Sums *sums, int first, const uint8_t *p, size_t n) {
  Bytes counts[8] = {};
  for (size_t i = 0; i < n; i += kBytes) {
    const Bytes v = load(p + i);
    for (int k = 0; k < 8; k++) counts[k] = add_equal(counts[k], v, first + k);
  }
  for (int k = 0; k < 8; k++) sums[k] += sums_of(counts[k]);
}

void count_bytes(uint32_t *counts, const uint8_t *p, size_t n) {
  Sums sums[kNear] = {};
  for (const uint8_t *end = p + n; p < end;) {
    const size_t left = (size_t)(end - p), block = left < kBlock ? left : kBlock, whole = block - block % kBytes;
    uint64_t far[kBlock / kBytes];
    Bytes near = {};
    for (size_t i = 0; i < whole; i += kBytes) {
      const Bytes high = (load(p + i) + kNear / 2) & -kNear;
      far[i / kBytes] = zeros(high) ^ (~(uint64_t)0 >> (64 - kBytes));
      near = add_equal(near, high, 0);
    }
    if ((whole - total(sums_of(near))) * kFarShare > whole) {
      count_by_tables(counts, p, block);
    } else {
      compare_eight(sums, -8, p, whole);
      compare_eight(sums + 8, 0, p, whole);
      for (size_t i = 0; i < whole; i += kBytes) {
        for (uint64_t mask = far[i / kBytes]; mask != 0; mask &= mask - 1)
          counts[p[i + (size_t)__builtin_ctzll(mask)]]++;
      }
      for (size_t i = whole; i < block; i++) counts[p[i]]++;
    }
    p += block;
  }
  for (int k = 0; k < kNear; k++) counts[(uint8_t)(k - kNear / 2)] += (uint32_t)total(sums[k]);
}

}  // namespace

extern "C" void LK_JOIN(histogram, LK_ISA)(lk_kernels *table) { table->count_bytes = count_bytes; }
