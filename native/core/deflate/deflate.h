/*
 * This package's deflate. Data come in units; each unit chooses between its bytes as literals and a search for matches,
 * neighbours share a block if one set of codes serves both, and a block that would grow is stored. Units do not
 * depend on the number of threads, so neither do the bytes.
 */
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "runtime/runtime.h"

namespace latentkit::deflate {

constexpr size_t kWindow = 32768;
constexpr size_t kMaxStored = 65535;
constexpr size_t kEnd = 256, kLiterals = 286, kDistances = 30;
constexpr int kMaxBits = 14; /* of a code: see lk_codes */
constexpr size_t kMinMatch = 4, kMaxMatch = 258;

/* How often each symbol occurs, and the extra bits that go with them. */
struct Counts {
  uint32_t literal[kLiterals] = {};
  uint32_t distance[kDistances] = {};
  uint64_t extra_bits = 0;

  void add(const Counts &other);
};

/* A piece of the data with one choice. Pieces lie next to each other in memory. */
struct Unit {
  const uint8_t *raw = nullptr;
  size_t len = 0;
  size_t line = 0;          /* bytes of a row: repetitions of the row above have this distance */
  bool repeats = false;     /* a search for matches should pay */
  bool is_sure = false;     /* the search goes to the end without asking whether it pays */
  Counts counts;            /* without the end of a block */
  uint32_t plain[256] = {}; /* how often each byte occurs */
  uint64_t plain_cost = 0;  /* of the bytes as literals: see cost() */
  std::unique_ptr<lk_sequence[]> sequences;
  size_t sequence_count = 0;
};

/* Sets counts to those of the bytes as literals. */
void count_bytes(Unit &unit);
/* count_bytes(), and sets repeats. */
void survey(Unit &unit);

/* ---- memory and the pool: work on the pool must not throw, so it returns false if memory is short ---- */
/* Uninitialised memory for n objects that need no destructor; NULL if there is none. */
template <class T>
class Workspace {
 public:
  explicit Workspace(size_t n) : block_(static_cast<uint8_t *>(engine_scratch_take(n * sizeof(T)))) {}
  T *get() const { return reinterpret_cast<T *>(block_.get()); }

 private:
  Scratch block_;
};

/* Calls body(first, last) for every stripe of `count` units, on the pool. Throws std::bad_alloc if one returns false.
 */
template <class Body>
void in_stripes(size_t count, size_t stripe, Body &&body) {
  std::atomic<bool> is_short{false};
  for_chunks((count + stripe - 1) / stripe, [&](size_t k) {
    if (!body(k * stripe, std::min(k * stripe + stripe, count))) is_short = true;
  });
  if (is_short) throw std::bad_alloc();
}

/* Eight bytes as a number, the first the lowest. */
inline uint64_t little64(const uint8_t *p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  return v;
}

/* ---- symbols ---- */
struct Symbol {
  uint32_t symbol, extra_bits;
};
inline Symbol length_symbol(size_t length) {
  const auto d = static_cast<uint32_t>(length - 3);
  if (length == kMaxMatch) return {285, 0};
  if (d < 8) return {257 + d, 0};
  const auto extra = 29u - static_cast<uint32_t>(__builtin_clz(d));
  return {257 + 4 * extra + (d >> extra), extra};
}
inline Symbol distance_symbol(size_t distance) {
  const auto d = static_cast<uint32_t>(distance - 1);
  if (d < 4) return {d, 0};
  const auto extra = 30u - static_cast<uint32_t>(__builtin_clz(d));
  return {2 * extra + (d >> extra), extra};
}

/* ---- matches ---- */
/* Limits of a search for matches. */
struct Effort {
  int max_chain;      /* positions compared */
  size_t nice_length; /* a match as long as this ends the search of its chain */
  size_t max_lazy;    /* a shorter one is compared with those of the next position */
  size_t tail;        /* positions at the end of a long match that go into the chains */
};
constexpr Effort kQuick = {2, 16, 0, 24}, kThorough = {8, 32, 8, 24};
/* For units that are sure to repeat: they have so many matches that each must be found in less time. */
constexpr Effort kBrisk = {8, 16, 4, 8};

/* Searches for matches, which are taken if they are estimated to be smaller than literals. Throws std::bad_alloc. */
void find_matches(std::vector<Unit> &units, const Effort &effort, const Effort &where_sure);
/* find_matches() in one unit, as if nothing stood before it, on the calling thread. False if memory is short. */
bool find_matches(Unit &unit, const Effort &effort);
/* Takes runs of one byte as matches at distance 1, if they are estimated to be smaller than what the units have;
 * not in those that are sure to have longer matches. Throws std::bad_alloc. */
void find_runs(std::vector<Unit> &units);
/* find_runs() in one unit, on the calling thread. False if memory is short. */
bool find_runs(Unit &unit);

/* ---- costs: estimates in 1/65536 bits ---- */
constexpr int kBit = 16;
uint64_t cost(const Counts &counts);
/* The price of each byte as a literal, in 1/256 bits. */
void literal_prices(const uint32_t counts[256], uint16_t prices[256]);

/* ---- codes ---- */
/* Lengths of a prefix code of at most `limit` bits; 0 for symbols that never occur. At least two symbols get one. */
void code_lengths(const uint32_t *counts, size_t n, int limit, uint8_t *lengths);
/* The codes of the lengths, first bit lowest, as bits << 8 | length. */
void assign_codes(const uint8_t *lengths, size_t n, uint32_t *codes);

/* ---- blocks ---- */
enum class Kind { kStored, kFixed, kDynamic };

struct Block {
  size_t first = 0, last = 0; /* units [first, last) */
  Kind kind = Kind::kStored;
  uint8_t lengths[kLiterals + kDistances] = {};
  lk_codes codes = {};
  std::vector<uint32_t> header; /* of a dynamic block, after its three first bits: bits << 8 | number */
  uint64_t header_bits = 0;

  /* The bits of a unit of this block, without what opens and ends the block; not for stored ones. */
  uint64_t bits(const Unit &unit) const;
};

std::vector<Block> plan_blocks(const std::vector<Unit> &units);

/* ---- the stream ---- */
/* Plans and lays out the units, then writes them on the compute pool. */
class Stream {
 public:
  /* units: with their counts and sequences. Throws std::bad_alloc. */
  explicit Stream(std::vector<Unit> units);
  size_t size() const { return (end_ + 7) / 8; }
  /* Writes size() bytes. */
  void write(uint8_t *out);

 private:
  struct Piece {
    const Block *block;
    uint64_t begin, end; /* bits */
    uint8_t tail;        /* the bits of the last byte, if it is shared or not full */
  };
  void write_piece(uint8_t *out, size_t unit);
  void write_stored(uint8_t *out, size_t unit);

  std::vector<Unit> units_;
  std::vector<Block> blocks_;
  std::vector<Piece> pieces_;
  uint64_t end_ = 0;
};

}  // namespace latentkit::deflate
