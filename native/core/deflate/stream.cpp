#include "deflate.h"

#include <algorithm>
#include <cstring>

#include "runtime/dispatch.h"
#include "runtime/parallel.h"

namespace latentkit::deflate {
namespace {

size_t stored_pieces(size_t len) { return (len + kMaxStored - 1) / kMaxStored; }

/* The end of stored data whose first bit is `begin`; each piece starts with three bits and goes on at a whole byte. */
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
