#include "deflate/deflate.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <utility>

#include "check.h"
#include "libdeflate.h"
#include "runtime/runtime.h"

using namespace latentkit;
using Bytes = std::vector<uint8_t>;

namespace {

void code_lengths_make_a_full_code() {
  std::mt19937 random(1);
  for (int round = 0; round < 300; round++) {
    const size_t n = round % 3 == 0 ? 19 : round % 3 == 1 ? deflate::kDistances : deflate::kLiterals;
    const int limit = round % 3 == 0 ? 7 : deflate::kMaxBits;
    std::vector<uint32_t> counts(n);
    uint32_t a = 1, b = 1;
    for (size_t i = 0; i < n; i++) {
      // Fibonacci numbers ask for the deepest tree
      if (round % 2 == 0) counts[i] = i < 40 ? a : 0, b += std::exchange(a, b);
      else counts[i] = random() % 5 == 0 ? random() % (1u << (random() % 24)) : 0;
    }
    std::vector<uint8_t> lengths(n);
    deflate::code_lengths(counts.data(), n, limit, lengths.data());
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
      CHECK(lengths[i] <= limit);
      CHECK(counts[i] == 0 || lengths[i] > 0);
      if (lengths[i] > 0) sum += uint64_t{1} << (limit - lengths[i]);
      for (size_t k = 0; k < n; k++) CHECK(!(counts[i] > counts[k] && counts[k] > 0) || lengths[i] <= lengths[k]);
    }
    CHECK(sum == uint64_t{1} << limit);
  }
}

void symbols_are_those_of_the_format() {
  CHECK(deflate::length_symbol(3).symbol == 257 && deflate::length_symbol(10).symbol == 264);
  CHECK(deflate::length_symbol(11).symbol == 265 && deflate::length_symbol(11).extra_bits == 1);
  CHECK(deflate::length_symbol(257).symbol == 284 && deflate::length_symbol(257).extra_bits == 5);
  CHECK(deflate::length_symbol(258).symbol == 285 && deflate::length_symbol(258).extra_bits == 0);
  CHECK(deflate::distance_symbol(1).symbol == 0 && deflate::distance_symbol(4).symbol == 3);
  CHECK(deflate::distance_symbol(5).symbol == 4 && deflate::distance_symbol(7).symbol == 5);
  CHECK(deflate::distance_symbol(24577).symbol == 29 && deflate::distance_symbol(32768).extra_bits == 13);
}

Bytes data(size_t n, unsigned kind, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(n);
  for (size_t i = 0; i < n; i++) {
    const uint32_t r = random();
    switch (kind) {
      case 0: bytes[i] = static_cast<uint8_t>(r); break;
      case 1: bytes[i] = static_cast<uint8_t>(__builtin_ctz(r | 1u << 20)); break;
      case 2: bytes[i] = i >= 300 && r % 97 != 0 ? bytes[i - 300] : static_cast<uint8_t>(r >> 8); break;
      case 3: bytes[i] = r % 1000 == 0; break;
      case 4: bytes[i] = i / 70000 % 2 == 0 ? static_cast<uint8_t>(r) : 0; break;
      case 6: bytes[i] = i / 3073 % 4 == 0 && i % 3073 % 12 < 3 ? static_cast<uint8_t>(r % 15 - 7) : 0; break;
      case 7: bytes[i] = static_cast<uint8_t>((i + (r % 40 == 0)) % 2 * 255); break;
      case 8: bytes[i] = static_cast<uint8_t>(i % 65535 < 32000 ? r : i % 7); break;
      case 9: bytes[i] = static_cast<uint8_t>(i % 65535 < 6000 ? 0 : r % 6); break;
      default: bytes[i] = i >= 32768 ? bytes[i - 32768] : static_cast<uint8_t>(r); break;
    }
    // first halves of units that repeat a little, which does not pay
    if (kind == 9 && i % 16384 >= 14384) bytes[i] = bytes[i - 5000];
    if (kind == 8 && i >= 1500 && i % 1500 < 12 && i % 65535 < 32000) bytes[i] = bytes[i - 1500];
  }
  return bytes;
}

enum class Search { kRuns, kQuick, kThorough, kSure };
constexpr Search kSearches[] = {Search::kRuns, Search::kQuick, Search::kThorough, Search::kSure};

void find(std::vector<deflate::Unit> &units, Search search) {
  if (search == Search::kRuns) return deflate::find_runs(units);
  for (deflate::Unit &unit : units) {
    if (search == Search::kSure) unit.repeats = unit.is_sure = true;
  }
  deflate::find_matches(units, search == Search::kQuick ? deflate::kQuick : deflate::kThorough, deflate::kBrisk);
}

Bytes compress(const Bytes &raw, size_t unit, Search search = Search::kThorough) {
  std::vector<deflate::Unit> units;
  for (size_t at = 0; at < raw.size(); at += unit) {
    deflate::Unit u;
    u.raw = raw.data() + at;
    u.len = std::min(unit, raw.size() - at);
    u.line = 3073;
    deflate::survey(u);
    units.push_back(std::move(u));
  }
  find(units, search);
  deflate::Stream stream(std::move(units));
  Bytes out(stream.size());
  stream.write(out.data());
  return out;
}

bool inflates_to(const Bytes &stream, const Bytes &raw) {
  libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
  Bytes back(raw.size());
  size_t read = 0, written = 0;
  const auto result = libdeflate_deflate_decompress_ex(inflater, stream.data(), stream.size(), back.data(), back.size(),
                                                       &read, &written);
  libdeflate_free_decompressor(inflater);
  return result == LIBDEFLATE_SUCCESS && read == stream.size() && written == raw.size() && back == raw;
}

void streams_inflate() {
  unsigned seed = 0;
  for (const size_t n : {1, 2, 3, 4, 7, 8, 9, 100, 258, 259, 4095, 5000, 65535, 65536, 200000, 300001})
    for (unsigned kind = 0; kind < 6; kind++)
      for (const size_t unit : {size_t{65535}, size_t{70001}, size_t{1000}, n}) {
        if (n / unit > 100) continue;
        const Bytes raw = data(n, kind, seed++);
        for (const Search search : kSearches) {
          const Bytes stream = compress(raw, unit, search);
          CHECK(inflates_to(stream, raw));
          CHECK(stream.size() <= n + 5 * ((n + unit - 1) / unit + n / deflate::kMaxStored) + 1);
        }
      }
}

void same_bytes_everywhere() {
  for (unsigned kind = 0; kind < 10; kind++) {
    const Bytes raw = data(700001, kind, kind);
    CHECK(inflates_to(everywhere([&] { return compress(raw, 65535); }), raw));
  }
  for (unsigned kind = 0; kind < 10; kind++)
    for (const Search search : kSearches) {
      const Bytes raw = data(150001, kind, kind);
      CHECK(inflates_to(everywhere([&] { return compress(raw, 65535, search); }), raw));
    }
}

void runs_are_taken() {
  // some 860 runs; as literals they take a bit a byte, 37500 bytes
  Bytes raw;
  std::mt19937 random(3);
  while (raw.size() < 300000) raw.insert(raw.end(), 1 + random() % 700, static_cast<uint8_t>(random() % 2));
  const Bytes stream = compress(raw, 65535, Search::kRuns);
  CHECK(inflates_to(stream, raw));
  CHECK(stream.size() < 5000);
  // runs of every length, and between them literals that do not compress
  for (size_t length = 1; length <= 600; length++) {
    Bytes mixed(100 + length % 8);
    mixed.resize(mixed.size() + length, 9);
    for (size_t i = 0; i < 5; i++) mixed.push_back(static_cast<uint8_t>(random()));
    for (const Search search : kSearches) CHECK(inflates_to(compress(mixed, mixed.size(), search), mixed));
  }
}

void finds_what_repeats() {
  CHECK(compress(data(300000, 3, 1), 65535).size() < 6000);
  CHECK(compress(data(300000, 2, 1), 65535).size() < 30000);
  CHECK(compress(data(300000, 5, 1), 65535).size() < 36000);
  // a picture enlarged four times: three of four rows repeat the one above, which no sample of a single row shows
  CHECK(compress(data(300000, 6, 1), 65535).size() < 20000);
  CHECK(compress(data(300000, 4, 1), 65535).size() < 171000);
  // a chequered pattern with faults: a bit a byte is the least without matches
  CHECK(compress(data(300000, 7, 1), 65535).size() < 30000);
  // noise with repeats between, which a search that skips through the noise still finds
  CHECK(compress(data(280000, 9, 1), 65535).size() < 78000);
}

uint8_t predicted(int filter, int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  const int nearest = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
  return static_cast<uint8_t>(std::array<int, 5>{0, a, b, (a + b) / 2, nearest}[static_cast<size_t>(filter)]);
}

void rows_take_the_cheapest_filter() {
  std::mt19937 random(5);
  for (const std::string &isa : supported_isas()) {
    CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
    for (size_t step = 1; step <= 4; step++)
      for (const size_t pixels : {1, 2, 5, 16, 17, 22, 43, 64, 65, 300}) {
        const size_t n = pixels * step;
        const unsigned kind = random() % 4;
        Bytes above(n), row(n), out(n + 1);
        for (size_t i = 0; i < n; i++) {
          above[i] = static_cast<uint8_t>(kind == 0 ? random() : kind == 1 ? i * 5 : i / 2 + random() % 9);
          row[i] = static_cast<uint8_t>(kind == 0   ? random()
                                        : kind == 2 ? above[i] + random() % 3
                                                    : i * 5 + random() % 3);
        }
        kernels().filter_row(out.data(), row.data(), above.data(), n, step);
        Bytes expected;
        uint64_t least = UINT64_MAX;
        for (int filter = 0; filter < 5; filter++) {
          Bytes filtered{static_cast<uint8_t>(filter)};
          uint64_t cost = 0;
          for (size_t i = 0; i < n; i++) {
            const int a = i < step ? 0 : row[i - step], c = i < step ? 0 : above[i - step];
            filtered.push_back(static_cast<uint8_t>(row[i] - predicted(filter, a, above[i], c)));
            cost += std::min<uint64_t>(filtered.back(), 256u - filtered.back());
          }
          if (cost < least) least = cost, expected = filtered;
        }
        CHECK(out == expected);
        for (int filter = 0; filter < 5; filter++) {
          kernels().filter_row_by(filter, out.data(), row.data(), above.data(), n, step);
          CHECK(out[0] == filter);
          for (size_t i = 0; i < n; i++) {
            const int a = i < step ? 0 : row[i - step], c = i < step ? 0 : above[i - step];
            CHECK(out[1 + i] == static_cast<uint8_t>(row[i] - predicted(filter, a, above[i], c)));
          }
        }
      }
  }
}

void bytes_are_counted() {
  std::mt19937 random(7);
  for (unsigned kind = 0; kind < 4; kind++)
    for (const size_t n : {0, 1, 15, 63, 64, 65, 300, 4031, 4032, 4033, 20000, 70001}) {
      Bytes raw(n);
      for (uint8_t &byte : raw) {
        const uint32_t r = random();
        // all near 0, a few far from it, all values, one value
        const std::array<uint32_t, 4> values = {r % 16 - 8, r % 40 == 0 ? r >> 8 : r % 5 - 2, r, 248};
        byte = static_cast<uint8_t>(values[kind]);
      }
      std::vector<uint32_t> expected(256, 3);
      for (const uint8_t byte : raw) expected[byte]++;
      for (const std::string &isa : supported_isas()) {
        CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
        std::vector<uint32_t> counts(256, 3);
        kernels().count_bytes(counts.data(), raw.data(), n);
        CHECK(counts == expected);
      }
    }
}

/* Bit by bit, what put_symbols writes of literals into the whole bytes before `limit`. */
Bytes spelled_out(const Bytes &raw, const uint32_t *codes, uint32_t pending, uint32_t pending_count) {
  std::vector<bool> bits;
  const auto add = [&](uint32_t value, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) bits.push_back(value >> k & 1);
  };
  add(pending, pending_count);
  for (const uint8_t byte : raw) add(codes[byte] >> 8, codes[byte] & 0xFF);
  Bytes out(bits.size() / 8 + 1);
  for (size_t i = 0; i < bits.size(); i++) out[i / 8] = static_cast<uint8_t>(out[i / 8] | bits[i] << i % 8);
  return out;
}

void literals_are_written_alike() {
  std::mt19937 random(6);
  for (unsigned kind = 0; kind < 5; kind++)
    for (const size_t n : {1, 31, 511, 512, 513, 543, 544, 575, 4096, 5003}) {
      Bytes raw(n);
      for (uint8_t &byte : raw) {
        const uint32_t r = random(), low = static_cast<uint32_t>(__builtin_ctz(r | 1u << 20));
        const std::array<uint32_t, 5> values = {low, r % 3 - 1, r % 64 - 32, r, low * 37 + (r >> 31) * 128};
        byte = static_cast<uint8_t>(values[kind]);
      }
      deflate::Counts counts;
      // Fibonacci numbers: codes of every length up to the longest
      uint32_t a = 1, b = 1;
      for (size_t i = 0; kind == 4 && i < 22; i++) counts.literal[i * 37 % 256] += a, b += std::exchange(a, b);
      for (const uint8_t byte : raw) counts.literal[byte]++;
      std::array<uint8_t, 256> lengths;
      lk_codes codes{};
      deflate::code_lengths(counts.literal, 256, deflate::kMaxBits, lengths.data());
      deflate::assign_codes(lengths.data(), 256, codes.literal);
      const uint32_t pending = 0x55 & ((1u << kind) - 1);
      const Bytes expected = spelled_out(raw, codes.literal, pending, kind);
      for (const std::string &isa : supported_isas()) {
        CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
        Bytes out(expected.size() - 1);
        lk_bits to = {out.data(), out.data() + out.size(), pending, kind};
        kernels().put_symbols(&to, &codes, raw.data(), n, nullptr, 0);
        CHECK(to.next == to.limit);
        out.push_back(static_cast<uint8_t>(to.bits));
        CHECK(out == expected);
      }
    }
}

}  // namespace

int main() {
  code_lengths_make_a_full_code();
  symbols_are_those_of_the_format();
  streams_inflate();
  same_bytes_everywhere();
  runs_are_taken();
  finds_what_repeats();
  rows_take_the_cheapest_filter();
  bytes_are_counted();
  literals_are_written_alike();
  return report();
}
