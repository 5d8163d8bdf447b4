// Parts of deflate: where a search for repeated strings looks, and the writing of symbols, here for BMI2's shifts.
#include "bytes.h"
#include "table.h"

namespace {

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

  /* At most 56 bits, of which the ones above `n` are 0; whole words, where roomy. */
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

/* Symbol and extra bits of a distance are the places of its two highest bits and what lies below. */
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
    p = put_literals(w, codes->literal, p, sequences[i].literals) + sequences[i].length;
    put_match(w, codes, sequences[i]);
  }
  put_literals(w, codes->literal, p, len - (size_t)(p - raw));
  *to = {w.next, w.limit, w.bits, w.count};
}

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

extern "C" void LK_JOIN(symbols, LK_ISA)(lk_kernels *table) {
  table->put_symbols = put_symbols;
  table->anchors = anchors;
}
