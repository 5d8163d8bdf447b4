// The sequences of the fewest bits, by dynamic programming over all matches, where each symbol has its price.
#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "deflate.h"
#include "deflate_room.h"
#include "deflate_tree.h"

namespace latentkit::deflate {
namespace {

constexpr size_t kStripe = 4;         /* units parsed one after the other */
constexpr size_t kSegment = 32768;    /* bytes parsed in one go */
constexpr size_t kMatches = Tree::kMostMatches * kSegment;
constexpr uint32_t kExpected = 4;     /* one symbol in so many is supposed to be a match where nobody has looked yet */

struct Prices {
  std::array<uint16_t, 256> literal; /* 1/256 bits */
  std::array<uint16_t, kMaxMatch + 1> length;
  std::array<uint16_t, kDistances> distance;

  explicit Prices(const Counts &counts);
};

Prices::Prices(const Counts &counts) {
  std::array<uint16_t, kLiterals> symbols;
  symbol_prices(counts.literal, kLiterals, symbols.data());
  symbol_prices(counts.distance, kDistances, distance.data());
  std::copy_n(symbols.begin(), 256, literal.begin());
  for (size_t n = 3; n <= kMaxMatch; n++) {
    const Symbol s = length_symbol(n);
    length[n] = static_cast<uint16_t>(symbols[s.symbol] + 256 * s.extra_bits);
  }
  for (uint32_t d = 4; d < kDistances; d++) distance[d] = static_cast<uint16_t>(distance[d] + 256 * (d / 2 - 1));
}

/* Adds matches as there might be: where none is expected, none is found to be worth its price. */
void expect_matches(Counts &counts) {
  uint32_t literals = 0;
  for (size_t i = 0; i < kEnd; i++) literals += counts.literal[i];
  for (size_t k = 0; kEnd + 1 + k < kLiterals; k++) counts.literal[kEnd + 1 + k] += literals / (kExpected << k / 4);
  for (size_t k = 0; k < kDistances; k++) counts.distance[k] += literals / kExpected / 4;
}

struct Stored {
  uint16_t length, distance;
};

struct Step {
  uint32_t cost; /* from here to the end of the segment, in 1/256 bits */
  uint16_t length, distance; /* 1: a literal */
};

class Parser {
 public:
  Parser(const uint8_t *base, const uint8_t *end, const Care &care)
      : base_(base), care_(care), tree_(base, end, care.depth, care.nice) {}

  void enter(size_t from, size_t to) {
    Match ignored[Tree::kMostMatches];
    for (; from < to; from++) tree_.find(from, ignored);
  }
  /* False where memory is short. */
  bool parse(const Unit &unit, Unit &result);

 private:
  void collect(size_t from, size_t to);
  void choose(const uint8_t *raw, size_t len, const Prices &prices);
  Counts tally(const uint8_t *raw, size_t len) const;

  const uint8_t *base_;
  Care care_;
  std::array<uint32_t, kSegment + 1> first_; /* of a position's matches in matches_ */
  std::array<Stored, kMatches> matches_;
  std::array<Step, kSegment + 1> steps_;
  Tree tree_;
};

/* Finds the matches of all positions, none longer than up to `to`. */
void Parser::collect(size_t from, size_t to) {
  Match found[Tree::kMostMatches];
  size_t size = 0, taken = from; /* positions below have a long match over them */
  for (size_t at = from; at < to; at++) {
    first_[at - from] = static_cast<uint32_t>(size);
    const size_t count = tree_.find(at, found);
    if (at < taken) continue;
    for (size_t k = 0; k < count; k++) {
      const size_t length = std::min(found[k].length, to - at);
      if (length < 3) break;
      matches_[size++] = {static_cast<uint16_t>(length), static_cast<uint16_t>(found[k].distance)};
    }
    if (count > 0 && found[count - 1].length >= kMaxMatch) taken = at + std::min(found[count - 1].length, to - at);
  }
  first_[to - from] = static_cast<uint32_t>(size);
}

void Parser::choose(const uint8_t *raw, size_t len, const Prices &prices) {
  steps_[len] = {0, 1, 0};
  for (size_t at = len; at-- > 0;) {
    Step best = {prices.literal[raw[at]] + steps_[at + 1].cost, 1, 0};
    size_t length = 3;
    for (uint32_t k = first_[at]; k < first_[at + 1]; k++) {
      const Stored match = matches_[k];
      const uint32_t base = prices.distance[distance_symbol(match.distance).symbol];
      for (; length <= match.length; length++) {
        const uint32_t cost = base + prices.length[length] + steps_[at + length].cost;
        if (cost < best.cost) best = {cost, static_cast<uint16_t>(length), match.distance};
      }
    }
    steps_[at] = best;
  }
}

Counts Parser::tally(const uint8_t *raw, size_t len) const {
  Counts counts;
  for (size_t at = 0; at < len; at += steps_[at].length) {
    const Step &step = steps_[at];
    if (step.length == 1) {
      counts.literal[raw[at]]++;
      continue;
    }
    const Symbol length = length_symbol(step.length), distance = distance_symbol(step.distance);
    counts.literal[length.symbol]++;
    counts.distance[distance.symbol]++;
    counts.extra_bits += length.extra_bits + distance.extra_bits;
  }
  return counts;
}

/* False where memory is short. */
bool copy_sequences(const Unit &from, Unit &to) {
  to.counts = from.counts;
  to.sequence_count = from.sequence_count;
  to.sequences.reset(new (std::nothrow) lk_sequence[from.sequence_count]);
  if (to.sequences == nullptr) return false;
  std::copy_n(from.sequences.get(), from.sequence_count, to.sequences.get());
  return true;
}

bool Parser::parse(const Unit &unit, Unit &result) {
  const Room<lk_sequence> room(unit.len / 3 + 1);
  if (room.get() == nullptr) return false;
  size_t size = 0, literals = 0;
  Counts counts;
  for (size_t at = 0; at < unit.len; at += kSegment) {
    const uint8_t *const raw = unit.raw + at;
    const size_t len = std::min(unit.len - at, kSegment), begin = static_cast<size_t>(raw - base_);
    collect(begin, begin + len);
    Counts part = unit.counts;
    if (unit.sequence_count == 0) expect_matches(part);
    for (int pass = 0; pass < care_.passes; pass++) {
      choose(raw, len, Prices(part));
      part = tally(raw, len);
    }
    counts.add(part);
    for (size_t k = 0; k < len; k += steps_[k].length) {
      const Step &step = steps_[k];
      if (step.length == 1) {
        literals++;
        continue;
      }
      room.get()[size++] = {static_cast<uint32_t>(literals), step.length, step.distance};
      literals = 0;
    }
  }
  if (cost(counts) >= cost(unit.counts)) return copy_sequences(unit, result);
  result.counts = counts;
  result.sequence_count = size;
  result.sequences.reset(new (std::nothrow) lk_sequence[size]);
  if (result.sequences == nullptr) return false;
  std::copy_n(room.get(), size, result.sequences.get());
  return true;
}

bool parse_stripe(std::vector<Unit> &results, const std::vector<Unit> &units, size_t first, size_t last, const Care &care) {
  const Room<Parser> room(1);
  if (room.get() == nullptr) return false;
  Parser *parser = nullptr;
  for (size_t u = first; u < last; u++) {
    const Unit &unit = units[u];
    results[u].raw = unit.raw;
    results[u].len = unit.len;
    results[u].repeats = unit.repeats;
    if (!unit.repeats) {
      parser = nullptr;
      if (!copy_sequences(unit, results[u])) return false;
      continue;
    }
    if (parser == nullptr) {
      const size_t before = std::min(static_cast<size_t>(unit.raw - units[0].raw), kWindow);
      parser = new (room.get()) Parser(unit.raw - before, units.back().raw + units.back().len, care);
      parser->enter(0, before);
    }
    if (!parser->parse(unit, results[u])) return false;
  }
  return true;
}

}  // namespace

std::vector<Unit> parse_again(const std::vector<Unit> &units, const Care &care) {
  std::vector<Unit> results(units.size());
  in_stripes(units.size(), kStripe, [&](size_t first, size_t last) {
    return parse_stripe(results, units, first, last, care);
  });
  return results;
}

bool parse(Unit &unit, size_t before, const Care &care) {
  const Room<Parser> room(1);
  Unit result;
  if (room.get() == nullptr) return false;
  Parser *const parser = new (room.get()) Parser(unit.raw - before, unit.raw + unit.len, care);
  parser->enter(0, before);
  if (!parser->parse(unit, result)) return false;
  unit.counts = result.counts;
  unit.sequence_count = result.sequence_count;
  unit.sequences = std::move(result.sequences);
  return true;
}

}  // namespace latentkit::deflate
