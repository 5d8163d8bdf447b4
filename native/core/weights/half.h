// Floats of 16 and 8 bits.
#pragma once

#include <cstdint>
#include <cstring>

namespace latentkit {

inline float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/* The value of an IEEE half, least byte first. */
inline float half_at(const uint8_t *p) {
  const uint32_t bits = static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8;
  const uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return float_of_bits(sign | 0x7f800000 | fraction << 13);
  // 2^-24 times a whole number is exact
  if (exponent == 0) return (sign != 0 ? -0x1p-24f : 0x1p-24f) * static_cast<float>(fraction);
  return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Codes of 4 bits of two numbers side by side, in the low half that of the first. */
inline uint8_t code_pair(int first, int second) { return static_cast<uint8_t>(first | second << 4); }

/* A number from -128 to 119 as 16 * (high - 8) + low - 8. */
inline int high_code(int number) { return (number + 136) >> 4; }
inline int low_code(int number) { return (number + 8) & 15; }

/* The value of a float of 1 bit of sign, 4 of exponent and 3 of fraction: all ones are NaN, and none is infinite. */
inline float e4m3_value(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, exponent = bits >> 3 & 15, fraction = bits & 7;
  if (exponent == 15 && fraction == 7) return float_of_bits(sign | 0x7fc00000);
  if (exponent == 0) return (sign != 0 ? -0x1p-9f : 0x1p-9f) * static_cast<float>(fraction);
  return float_of_bits(sign | (exponent + 120) << 23 | fraction << 20);
}

}  // namespace latentkit
