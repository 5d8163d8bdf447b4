// Costs of symbols before there are codes, and prefix codes of limited length.
#include <algorithm>
#include <array>

#include "deflate/deflate.h"

namespace latentkit::deflate {

/* ---- costs: entropy in integers, so that every machine decides alike ---- */
namespace {

constexpr int kSteps = 8; /* bits of the table's index */

/* log2(1 + i / 256) in 1/65536, by squaring. */
constexpr std::array<uint32_t, (1 << kSteps) + 1> make_logarithms() {
  std::array<uint32_t, (1 << kSteps) + 1> table{};
  for (uint32_t i = 0; i < 1u << kSteps; i++) {
    uint64_t x = (uint64_t{1} << 31) + (uint64_t{i} << (31 - kSteps));
    for (int bit = 0; bit < kBit; bit++) {
      x = x * x >> 31;
      const bool carry = x >= uint64_t{1} << 32;
      table[i] = table[i] << 1 | carry;
      x >>= carry;
    }
  }
  table[1 << kSteps] = 1u << kBit;
  return table;
}
constexpr auto kLogarithms = make_logarithms();

/* log2(v), v >= 1. */
uint64_t logarithm(uint32_t v) {
  const int high = 31 - __builtin_clz(v);
  const uint32_t rest = (v << (31 - high)) & 0x7FFFFFFF;
  const uint32_t i = rest >> (31 - kSteps), between = rest >> (31 - 2 * kSteps) & 0xFF;
  const uint32_t step = (kLogarithms[i + 1] - kLogarithms[i]) * between >> kSteps;
  return (static_cast<uint64_t>(high) << kBit) + kLogarithms[i] + step;
}

/* A symbol takes a bit at least, and some of a header. */
uint64_t cost_of(const uint32_t *counts, size_t n) {
  constexpr uint64_t kHeaderBits = 4;
  uint64_t sum = 0, parts = 0, symbols = 0;
  for (size_t i = 0; i < n; i++) {
    if (counts[i] == 0) continue;
    sum += counts[i];
    parts += counts[i] * logarithm(counts[i]);
    symbols++;
  }
  if (sum == 0) return 0;
  const uint64_t entropy = sum * logarithm(static_cast<uint32_t>(sum)) - parts;
  return std::max(entropy, sum << kBit) + (symbols * kHeaderBits << kBit);
}

}  // namespace

void Counts::add(const Counts &other) {
  for (size_t i = 0; i < kLiterals; i++) literal[i] += other.literal[i];
  for (size_t i = 0; i < kDistances; i++) distance[i] += other.distance[i];
  extra_bits += other.extra_bits;
}

uint64_t cost(const Counts &counts) {
  constexpr uint64_t kBlockBits = 80;
  return cost_of(counts.literal, kLiterals) + cost_of(counts.distance, kDistances) +
         ((counts.extra_bits + kBlockBits) << kBit);
}

void literal_prices(const uint32_t counts[256], uint16_t prices[256]) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 256; i++) sum += counts[i];
  const uint64_t whole = logarithm(std::max(sum, 1u));
  for (size_t i = 0; i < 256; i++) {
    const uint64_t price = (whole - logarithm(std::clamp(counts[i], 1u, std::max(sum, 1u)))) >> (kBit - 8);
    prices[i] = static_cast<uint16_t>(std::clamp<uint64_t>(price, 256, kMaxBits * 256));
  }
}

/* ---- prefix codes ---- */
namespace {

constexpr size_t kMost = kLiterals;

/* Lengths of an optimal code, in place of the counts of n sorted symbols: Moffat and Katajainen, 1995. */
void optimal_lengths(uint32_t *a, size_t n) {
  size_t leaf = 2, root = 0;
  a[0] += a[1];
  for (size_t next = 1; next < n - 1; next++) {
    const auto take = [&] {
      if (leaf >= n || (root < next && a[root] < a[leaf])) {
        const uint32_t weight = a[root];
        a[root++] = static_cast<uint32_t>(next);
        return weight;
      }
      return a[leaf++];
    };
    a[next] = take();
    a[next] += take();
  }
  a[n - 2] = 0;
  for (size_t next = n - 2; next-- > 0;) a[next] = a[a[next]] + 1;
  size_t available = 1, used = 0, next = n;
  size_t inner = n - 1;
  for (uint32_t depth = 0; available > 0; depth++) {
    while (inner > 0 && a[inner - 1] == depth) used++, inner--;
    for (; available > used; available--) a[--next] = depth;
    available = 2 * used;
    used = 0;
  }
}

}  // namespace

void code_lengths(const uint32_t *counts, size_t n, int limit, uint8_t *lengths) {
  std::array<uint64_t, kMost> sorted;
  size_t used = 0;
  for (size_t i = 0; i < n; i++) {
    if (counts[i] > 0) sorted[used++] = uint64_t{counts[i]} << 16 | i;
  }
  std::fill(lengths, lengths + n, uint8_t{0});
  for (size_t i = 0; used < 2; i++) {
    if (counts[i] == 0) sorted[used++] = i;
  }
  std::sort(sorted.begin(), sorted.begin() + static_cast<long>(used));
  std::array<uint32_t, kMost> depths;
  for (size_t i = 0; i < used; i++) depths[i] = static_cast<uint32_t>(sorted[i] >> 16);
  optimal_lengths(depths.data(), used);

  std::array<uint32_t, 33> per_length{};
  const auto most = static_cast<uint32_t>(limit);
  for (size_t i = 0; i < used; i++) per_length[std::min(depths[i], most)]++;
  // what the cut at the limit took too much: a leaf above moves down, next to one of the deepest
  uint64_t sum = 0;
  for (uint32_t d = 1; d <= most; d++) sum += uint64_t{per_length[d]} << (most - d);
  for (; sum > uint64_t{1} << most; sum--) {
    uint32_t d = most - 1;
    while (per_length[d] == 0) d--;
    per_length[d]--;
    per_length[d + 1] += 2;
    per_length[most]--;
  }
  size_t at = 0;
  for (uint32_t d = most; d > 0; d--) {
    for (uint32_t k = per_length[d]; k > 0; k--) lengths[sorted[at++] & 0xFFFF] = static_cast<uint8_t>(d);
  }
}

void assign_codes(const uint8_t *lengths, size_t n, uint32_t *codes) {
  std::array<uint32_t, 17> next{};
  for (size_t i = 0; i < n; i++) next[lengths[i] + 1u]++;
  next[1] = 0;
  for (size_t d = 2; d < next.size(); d++) next[d] = (next[d - 1] + next[d]) << 1;
  for (size_t i = 0; i < n; i++) {
    uint32_t code = lengths[i] > 0 ? next[lengths[i]]++ : 0, reversed = 0;
    for (int k = 0; k < lengths[i]; k++, code >>= 1) reversed = reversed << 1 | (code & 1);
    codes[i] = reversed << 8 | lengths[i];
  }
}

}  // namespace latentkit::deflate
