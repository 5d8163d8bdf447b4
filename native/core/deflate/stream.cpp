// Units become blocks with codes of their own, and blocks a stream.
#include <algorithm>
#include <cstring>

#include "deflate/deflate.h"
#include "runtime/runtime.h"

// decisions: PNG files are written by our own deflate
namespace latentkit::deflate {

/* ---- the units of each block, its codes, and the header that holds them ---- */
namespace {

constexpr size_t kLengthSymbols = 19;
constexpr uint8_t kOrder[kLengthSymbols] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

struct Run {
  uint8_t symbol, extra, extra_bits;
};

/* The lengths as symbols 0 to 15, and 16 to 18 for what repeats. */
std::vector<Run> runs_of(const uint8_t *lengths, size_t n) {
  std::vector<Run> runs;
  const auto repeat = [&](size_t count, uint8_t symbol, uint8_t bits, size_t least) {
    runs.push_back({symbol, static_cast<uint8_t>(count - least), bits});
    return count;
  };
  for (size_t i = 0; i < n;) {
    const uint8_t length = lengths[i];
    size_t same = 1;
    while (i + same < n && lengths[i + same] == length) same++;
    if (length == 0 && same >= 11) {
      i += repeat(std::min<size_t>(same, 138), 18, 7, 11);
    } else if (length == 0 && same >= 3) {
      i += repeat(same, 17, 3, 3);
    } else if (length != 0 && same >= 4) {
      runs.push_back({length, 0, 0});
      i += 1 + repeat(std::min<size_t>(same - 1, 6), 16, 2, 3);
    } else {
      runs.push_back({length, 0, 0});
      i++;
    }
  }
  return runs;
}

size_t used(const uint8_t *lengths, size_t n, size_t least) {
  while (n > least && lengths[n - 1] == 0) n--;
  return n;
}

void make_header(Block &block) {
  const size_t literals = used(block.lengths, kLiterals, 257);
  const size_t distances = used(block.lengths + kLiterals, kDistances, 1);
  uint8_t all[kLiterals + kDistances];
  std::copy_n(block.lengths + kLiterals, distances, std::copy_n(block.lengths, literals, all));
  const std::vector<Run> runs = runs_of(all, literals + distances);
  uint32_t counts[kLengthSymbols] = {}, codes[kLengthSymbols];
  for (const Run &run : runs) counts[run.symbol]++;
  uint8_t lengths[kLengthSymbols], ordered[kLengthSymbols];
  code_lengths(counts, kLengthSymbols, 7, lengths);
  assign_codes(lengths, kLengthSymbols, codes);
  for (size_t k = 0; k < kLengthSymbols; k++) ordered[k] = lengths[kOrder[k]];
  const size_t sent = used(ordered, kLengthSymbols, 4);

  const auto put = [&](size_t value, uint32_t bits) {
    block.header.push_back(static_cast<uint32_t>(value) << 8 | bits);
    block.header_bits += bits;
  };
  put(literals - 257, 5), put(distances - 1, 5), put(sent - 4, 4);
  for (size_t k = 0; k < sent; k++) put(ordered[k], 3);
  for (const Run &run : runs) {
    put(codes[run.symbol] >> 8, codes[run.symbol] & 0xFF);
    if (run.extra_bits > 0) put(run.extra, run.extra_bits);
  }
}

void set_fixed(uint8_t *lengths) {
  for (size_t i = 0; i < kLiterals; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  std::fill_n(lengths + kLiterals, kDistances, uint8_t{5});
}

void make_codes(Block &block) {
  uint32_t literal[288];
  // the fixed code has two more symbols, which take part in counting
  uint8_t lengths[288] = {};
  std::copy_n(block.lengths, kLiterals, lengths);
  if (block.kind == Kind::kFixed) lengths[286] = lengths[287] = 8;
  assign_codes(lengths, 288, literal);
  std::copy_n(literal, 256, block.codes.literal);
  block.codes.end = literal[kEnd];
  for (size_t length = 3; length <= kMaxMatch; length++) {
    const Symbol s = length_symbol(length);
    const uint32_t code = literal[s.symbol], bits = code & 0xFF;
    const auto extra = static_cast<uint32_t>((length - 3) & ((size_t{1} << s.extra_bits) - 1));
    block.codes.length[length - 3] = ((code >> 8) | extra << bits) << 8 | (bits + s.extra_bits);
  }
  assign_codes(block.lengths + kLiterals, kDistances, block.codes.distance);
}

uint64_t bits_of(const uint8_t *lengths, const Counts &counts) {
  uint64_t sum = counts.extra_bits;
  for (size_t i = 0; i < kLiterals; i++) sum += uint64_t{lengths[i]} * counts.literal[i];
  for (size_t i = 0; i < kDistances; i++) sum += uint64_t{lengths[kLiterals + i]} * counts.distance[i];
  return sum;
}

/* The smallest kind of block for the counts, which include one end. */
void choose(Block &block, const Counts &counts, uint64_t stored_bits) {
  code_lengths(counts.literal, kLiterals, kMaxBits, block.lengths);
  code_lengths(counts.distance, kDistances, kMaxBits, block.lengths + kLiterals);
  make_header(block);
  uint8_t fixed[kLiterals + kDistances];
  set_fixed(fixed);
  const uint64_t fixed_bits = 3 + bits_of(fixed, counts);
  const uint64_t dynamic_bits = 3 + block.header_bits + bits_of(block.lengths, counts);
  block.kind = fixed_bits <= dynamic_bits ? Kind::kFixed : Kind::kDynamic;
  if (stored_bits <= std::min(fixed_bits, dynamic_bits)) block.kind = Kind::kStored;
  if (block.kind != Kind::kDynamic) block.header.clear(), block.header_bits = 0;
  if (block.kind == Kind::kFixed) std::copy_n(fixed, sizeof fixed, block.lengths);
  if (block.kind != Kind::kStored) make_codes(block);
}

}  // namespace

uint64_t Block::bits(const Unit &unit) const { return bits_of(lengths, unit.counts); }

std::vector<Block> plan_blocks(const std::vector<Unit> &units) {
  const auto stored_bits = [&](size_t u) { return 8 * (units[u].len + 5 * (units[u].len / kMaxStored + 1)); };
  std::vector<Block> blocks;
  for (size_t u = 0; u < units.size();) {
    Block block;
    block.first = u;
    Counts counts = units[u].counts;
    uint64_t bits = cost(counts), stored = stored_bits(u);
    const bool plain = bits >= stored << kBit;
    for (u++; u < units.size(); u++) {
      const uint64_t alone = cost(units[u].counts);
      if (plain != (alone >= stored_bits(u) << kBit)) break;
      Counts both = counts;
      both.add(units[u].counts);
      const uint64_t together = cost(both);
      if (!plain && together > bits + alone) break;
      counts = both;
      bits = together;
      stored += stored_bits(u);
    }
    block.last = u;
    counts.literal[kEnd]++;
    if (!plain) choose(block, counts, stored);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/* ---- the stream ---- */
namespace {

size_t stored_pieces(size_t len) { return (len + kMaxStored - 1) / kMaxStored; }

/* The end of stored data whose first bit is `begin`; each piece starts with three bits and continues at a whole byte.
 */
uint64_t stored_end(uint64_t begin, size_t len) {
  return ((begin + 3 + 7) & ~uint64_t{7}) + 32 + 8 * uint64_t{len} + (stored_pieces(len) - 1) * 40;
}

void put(lk_bits &to, uint64_t value, uint32_t bits) {
  to.bits |= value << to.count;
  for (to.count += bits; to.count >= 8; to.count -= 8) {
    *to.next++ = static_cast<uint8_t>(to.bits);
    to.bits >>= 8;
  }
}

}  // namespace

Stream::Stream(std::vector<Unit> units) : units_(std::move(units)) {
  blocks_ = plan_blocks(units_);
  pieces_.reserve(units_.size());
  for (const Block &block : blocks_) {
    for (size_t u = block.first; u < block.last; u++) {
      const uint64_t begin = end_;
      if (block.kind == Kind::kStored) {
        end_ = stored_end(begin, units_[u].len);
      } else {
        if (u == block.first) end_ += 3 + block.header_bits;
        end_ += block.bits(units_[u]);
        if (u + 1 == block.last) end_ += block.lengths[kEnd];
      }
      pieces_.push_back({&block, begin, end_, 0});
    }
  }
}

/* Pieces write the bytes they fill up; what each leaves of its last byte is added when all are done. */
void Stream::write(uint8_t *out) {
  for (const Piece &piece : pieces_) out[piece.end / 8 - (piece.end % 8 == 0)] = 0;
  for_chunks(units_.size(), [&](size_t unit) {
    if (pieces_[unit].block->kind == Kind::kStored) write_stored(out, unit);
    else write_piece(out, unit);
  });
  for (const Piece &piece : pieces_) {
    if (piece.end % 8 != 0) out[piece.end / 8] |= piece.tail;
  }
}

void Stream::write_piece(uint8_t *out, size_t unit) {
  Piece &piece = pieces_[unit];
  const Block &block = *piece.block;
  const Unit &u = units_[unit];
  lk_bits to = {out + piece.begin / 8, out + piece.end / 8, 0, static_cast<uint32_t>(piece.begin % 8)};
  if (unit == block.first) {
    put(to, block.last == units_.size(), 1);
    put(to, block.kind == Kind::kFixed ? 1 : 2, 2);
    for (const uint32_t entry : block.header) put(to, entry >> 8, entry & 0xFF);
  }
  kernels().put_symbols(&to, &block.codes, u.raw, u.len, u.sequences.get(), u.sequence_count);
  if (unit + 1 == block.last) put(to, block.codes.end >> 8, block.codes.end & 0xFF);
  piece.tail = static_cast<uint8_t>(to.bits);
}

void Stream::write_stored(uint8_t *out, size_t unit) {
  Piece &piece = pieces_[unit];
  const Unit &u = units_[unit];
  lk_bits to = {out + piece.begin / 8, out + piece.end / 8, 0, static_cast<uint32_t>(piece.begin % 8)};
  for (size_t at = 0; at < u.len;) {
    const size_t n = std::min(u.len - at, kMaxStored);
    put(to, unit + 1 == units_.size() && at + n == u.len, 3);
    if (to.count > 0) put(to, 0, 8 - to.count);
    put(to, n, 16);
    put(to, ~n & 0xFFFF, 16);
    std::memcpy(to.next, u.raw + at, n);
    to.next += n;
    at += n;
  }
}

}  // namespace latentkit::deflate
