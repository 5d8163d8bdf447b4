// Parts of deflate: the anchors of a survey, and the writing of symbols, here for BMI2's shifts.
#include "bytes.h"
#include "literals.h"
#include "table.h"

namespace {

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
