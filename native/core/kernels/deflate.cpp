// Parts of deflate: how often each byte occurs, the anchors of a survey, and symbols written as bits.
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "table.h"

namespace {

/* ---- counts: filtered rows are mostly small numbers, which vectors compare; the others take counters ---- */
constexpr int kNear = 16;          /* values compared: -8 to 7 */
constexpr size_t kBlock = 63 * 64; /* bytes; at most 255 vectors, whose matches a byte can count */
constexpr size_t kFarShare = 8;    /* comparing does not pay if more than one byte of so many is far */
constexpr size_t kTables = 4;      /* equal bytes that follow each other do not wait for the same counter */

/* Words that recur eight or 24 bytes later, in flat colours of one, two, three or four channels, are counted
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

/* Adds 1 to each lane of v that is `value`. */
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

/* ---- codes written into a stream; long runs of literals in vectors ---- */
inline uint64_t bits_of(uint32_t entry) { return entry >> 8; }
inline uint32_t count_of(uint32_t entry) { return entry & 63; }

inline void store64(uint8_t *p, uint64_t v) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  __builtin_memcpy(p, &v, 8);
}

/* A copy in registers while one call runs. */
struct Writer {
  uint8_t *next, *limit;
  uint64_t bits;
  uint32_t count;

  bool roomy() const { return (size_t)(limit - next) >= 8; }

  /* At most 56 bits; those above `n` are 0; whole words, if roomy. */
  void put(uint64_t value, uint32_t n) {
    bits |= value << count;
    count += n;
    store64(next, bits);
    next += count >> 3;
    bits >>= count & 56;
    count &= 7;
  }

  void put_narrow(uint64_t value, uint32_t n) {
    bits |= value << count;
    for (count += n; count >= 8; count -= 8) {
      *next++ = (uint8_t)bits;
      bits >>= 8;
    }
  }

  void put_any(uint64_t value, uint32_t n) { roomy() ? put(value, n) : put_narrow(value, n); }
};

inline const uint8_t *put_literals(Writer &w, const uint32_t *codes, const uint8_t *p, size_t n) {
  for (; n >= 4 && w.roomy(); n -= 4, p += 4) {
    uint32_t a = codes[p[0]], b = codes[p[1]], c = codes[p[2]], d = codes[p[3]];
    uint64_t first = bits_of(a) | bits_of(b) << count_of(a), second = bits_of(c) | bits_of(d) << count_of(c);
    w.put(first | second << count_of(a + b), count_of(a + b + c + d));
  }
  for (; n > 0; n--, p++) w.put_any(bits_of(codes[*p]), count_of(codes[*p]));
  return p;
}

#if defined(__AVX512BW__)
constexpr size_t kWide = 32; /* literals whose codes are joined in registers */

typedef uint8_t Bytes32 __attribute__((vector_size(32)));
typedef uint32_t Pairs __attribute__((vector_size(64)));
typedef uint64_t Fours __attribute__((vector_size(64)));

/* One word for each literal, to be looked up 32 at a time. */
struct Words {
  __m512i all[8], near[2]; /* near: of the literals -32 to 31, by their six low bits */

  explicit Words(const uint16_t *of) {
    for (size_t k = 0; k < 8; k++) all[k] = _mm512_loadu_si512(of + kWide * k);
    near[0] = all[0], near[1] = all[7];
  }
  __m512i near_at(__m512i at) const { return _mm512_permutex2var_epi16(near[0], at, near[1]); }
  __m512i at(__m512i at) const {
    const __mmask32 has_64 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(64));
    const __mmask32 has_128 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
    __m512i a = _mm512_permutex2var_epi16(all[0], at, all[1]), b = _mm512_permutex2var_epi16(all[2], at, all[3]);
    __m512i c = _mm512_permutex2var_epi16(all[4], at, all[5]), d = _mm512_permutex2var_epi16(all[6], at, all[7]);
    __m512i low = _mm512_mask_blend_epi16(has_64, a, b), high = _mm512_mask_blend_epi16(has_64, c, d);
    return _mm512_mask_blend_epi16(has_128, low, high);
  }
};

/* The codes of a block and their numbers of bits. */
struct WordCodes {
  Words bits, counts;
};

inline WordCodes in_words(const uint32_t *codes) {
  uint16_t bits[256], counts[256];
  for (size_t i = 0; i < 256; i++) bits[i] = (uint16_t)bits_of(codes[i]), counts[i] = (uint16_t)count_of(codes[i]);
  return {Words(bits), Words(counts)};
}

/* Bits and how many there are of them. */
struct Joined {
  Fours bits, counts;
};

/* The codes of 32 literals, four in each lane. */
inline Joined join(Pairs bits, Pairs counts) {
  const Pairs first = counts & 0xFFFF;
  const Fours two = (Fours)((bits & 0xFFFF) | (bits >> 16) << first), numbers = (Fours)(first + (counts >> 16));
  const Fours half = numbers & 0xFFFFFFFF;
  return {(two & 0xFFFFFFFF) | (two >> 32) << half, half + (numbers >> 32)};
}

inline bool are_near(__m256i bytes) {
  const __m256i high = (__m256i)(((Bytes32)bytes + 32) & 0xC0);
  return _mm256_testz_si256(high, high);
}

inline Fours odd_lanes(Fours v) { return __builtin_shufflevector(v, v, 1, 1, 3, 3, 5, 5, 7, 7); }

/* Writes 32 literals at a time, while there is room. Returns their end. */
inline const uint8_t *put_wide(Writer &to, const WordCodes &codes, const uint8_t *p, const uint8_t *end) {
  Writer w = to; /* its own: what is stored might be part of another */
  const __m512i most = _mm512_set1_epi64(56);
  for (; (size_t)(end - p) >= kWide && (size_t)(w.limit - w.next) >= 64; p += kWide) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
    const __m512i at = _mm512_maskz_cvtepu8_epi16((__mmask32)-1, bytes);
    const Joined v = are_near(bytes) ? join((Pairs)codes.bits.near_at(at), (Pairs)codes.counts.near_at(at))
                                     : join((Pairs)codes.bits.at(at), (Pairs)codes.counts.at(at));
    const Joined eights = {v.bits | odd_lanes(v.bits) << v.counts, v.counts + odd_lanes(v.counts)};
    // the odd lanes hold their own number twice
    if (_mm512_cmpgt_epu64_mask((__m512i)eights.counts, most) == 0) {
      for (size_t k = 0; k < 8; k += 2) w.put(eights.bits[k], (uint32_t)eights.counts[k]);
    } else {
      for (size_t k = 0; k < 8; k++) w.put(v.bits[k], (uint32_t)v.counts[k]);
    }
  }
  to = w;
  return p;
}

constexpr size_t kLong = 16 * kWide; /* literals in a row that are worth the tables in words */
#endif

/* Writes a run of literals of one block. */
inline const uint8_t *put_run(Writer &w, const uint32_t *codes, const uint8_t *p, size_t n) {
#if defined(__AVX512BW__)
  const uint8_t *end = p + n;
  if (n >= kLong) p = put_wide(w, in_words(codes), p, end);
  n = (size_t)(end - p);
#endif
  return put_literals(w, codes, p, n);
}

/* Symbol and extra bits of a distance are the positions of its two highest bits and the bits below. */
inline void put_match(Writer &w, const lk_codes *codes, lk_sequence s) {
  uint32_t length = codes->length[s.length - 3], d = s.distance - 1u, symbol = d, extra = 0;
  if (d >= 4) {
    extra = 30u - (uint32_t)__builtin_clz(d);
    symbol = 2 * extra + (d >> extra);
  }
  uint32_t code = codes->distance[symbol];
  uint64_t rest = bits_of(code) | (uint64_t)(d & ((1u << extra) - 1)) << count_of(code);
  w.put_any(bits_of(length) | rest << count_of(length), count_of(length) + count_of(code) + extra);
}

void put_symbols(lk_bits *to, const lk_codes *codes, const uint8_t *raw, size_t len, const lk_sequence *sequences,
                 size_t count) {
  Writer w = {to->next, to->limit, to->bits, to->count};
  const uint8_t *p = raw;
  for (size_t i = 0; i < count; i++) {
    p = put_run(w, codes->literal, p, sequences[i].literals) + sequences[i].length;
    put_match(w, codes, sequences[i]);
  }
  put_run(w, codes->literal, p, len - (size_t)(p - raw));
  *to = {w.next, w.limit, w.bits, w.count};
}

/* ---- anchors of a survey ---- */
inline Bytes twice(Bytes v) { return v + v; }

/* The low bits of a weighted sum of four bytes. */
void anchors(uint64_t *masks, const uint8_t *raw, size_t words) {
  for (size_t w = 0; w < words; w++, raw += 64) {
    masks[w] = 0;
    for (size_t i = 0; i < 64; i += kBytes) {
      const uint8_t *p = raw + i;
      Bytes pair = load(p) + twice(load(p + 1)), next = load(p + 2) + twice(load(p + 3));
      masks[w] |= zeros((pair + twice(twice(next))) & (LK_ANCHOR_SPACING - 1)) << i;
    }
  }
}

}  // namespace

extern "C" void LK_JOIN(deflate, LK_ISA)(lk_kernels *table) {
  table->count_bytes = count_bytes;
  table->put_symbols = put_symbols;
  table->anchors = anchors;
}
