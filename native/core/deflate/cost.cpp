// Costs of symbols before there are codes: their entropy, in integers, so that every machine decides alike.
#include <algorithm>
#include <array>

#include "deflate.h"

namespace latentkit::deflate {
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

}  // namespace latentkit::deflate
