// Arithmetic of samplers and guidance: sums of terms, sums in areas, deviations of items, the error norm of a step.
#include <cmath>
#include <cstring>

#include "check.h"

namespace {

/* Sums of `count` terms on every set, once over an operand and three times into one output; the loop has the small
 * halves of the coefficients, then the large ones. */
void against_loop(size_t n, size_t count) {
  const double coefficients[] = {1.0 / 3, -0.7, 14.6146, 1e-3, -2.0, 0.1, 7.5, -1.0 / 7};
  std::vector<std::vector<float>> x(count);
  std::vector<engine_cf32> operands(count);
  for (size_t k = 0; k < count; k++) x[k] = numbers(n, static_cast<uint32_t>(k + 1)), operands[k] = in(x[k]);
  const std::vector<float> got = everywhere([&] {
    std::vector<float> values(n), over = x[n % count];
    CHECK(engine_weighted_sum(out(values), operands.data(), coefficients, count) == ENGINE_OK);
    std::vector<engine_cf32> same = operands;
    same[n % count] = in(over);
    CHECK(engine_weighted_sum(out(over), same.data(), coefficients, count) == ENGINE_OK);
    CHECK(same_bytes(values, over));
    std::vector<float> thrice(3 * n);
    CHECK(engine_weighted_sum(out(thrice), operands.data(), coefficients, count) == ENGINE_OK);
    for (size_t copy = 0; copy < 3; copy++) {
      CHECK(n == 0 || std::memcmp(thrice.data() + copy * n, values.data(), n * sizeof(float)) == 0);
    }
    return values;
  });
  std::vector<float> expected(n);
  for (size_t i = 0; i < n; i++) {
    float sum = 0;
    double exact = 0, most = 0;
    const auto high = [&](size_t k) { return static_cast<float>(coefficients[k]); };
    const auto low = [&](size_t k) { return static_cast<float>(coefficients[k] - static_cast<double>(high(k))); };
    for (size_t k = 0; k < count; k++) sum = std::fma(x[k][i], low(k), sum);
    for (size_t k = 0; k < count; k++) {
      sum = std::fma(x[k][i], high(k), sum);
      exact += coefficients[k] * static_cast<double>(x[k][i]);
      most = std::fmax(most, std::fabs(exact));
    }
    expected[i] = sum;
    // half a unit of the largest partial sum for each rounding
    CHECK(std::fabs(static_cast<double>(sum) - exact) <= most * static_cast<double>(count + 1) * 0x1p-24);
  }
  CHECK(same_bytes(expected, got));
}

void weighted_sums() {
  for (size_t count = 1; count <= ENGINE_MAX_TERMS; count++) {
    for (size_t n : edge_sizes()) against_loop(n, count);
  }
  against_loop((size_t{1} << 20) + 5, 3);  // written around the caches
}

/* A zero keeps its sign, a term past the largest float is infinite, and of a NaN only that it is one is fixed. */
void odd_sums() {
  const float x[] = {-0.0f, 3e38f, 1e-45f, INFINITY, NAN, -1e-40f, 16777216.0f},
              y[] = {-0.0f, -3e38f, 1e-45f, INFINITY, 1.0f, 0.0f, 1.0f};
  const engine_cf32 operands[] = {{x, 7}, {y, 7}};
  const double coefficients[] = {2.0, -1.0};
  for (const std::string &isa : supported_isas()) {
    CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
    std::vector<float> sums(7), alone(7);
    CHECK(engine_weighted_sum(out(sums), operands, coefficients, 2) == ENGINE_OK);
    CHECK(sums[0] == 0.0f && !std::signbit(sums[0]) && sums[1] == INFINITY && sums[2] == 1e-45f);
    CHECK(std::isnan(sums[3]) && std::isnan(sums[4]) && sums[5] == 2 * -1e-40f && sums[6] == 33554431.0f);
    CHECK(engine_weighted_sum(out(alone), operands, coefficients, 1) == ENGINE_OK);
    CHECK(std::signbit(alone[0]) && alone[1] == INFINITY && alone[6] == 33554432.0f);
    // past the largest float and below the smallest
    for (const double coefficient : {1e300, -1e300, 1e-300}) {
      CHECK(engine_weighted_sum(out(alone), operands, &coefficient, 1) == ENGINE_OK);
      CHECK(alone[6] == static_cast<float>(coefficient * 16777216.0));
    }
  }
}

void refused_sums() {
  std::vector<float> a(8), b(7);
  const double coefficients[9] = {};
  const std::vector<engine_cf32> equal(9, in(a)), unequal = {in(a), in(b)};
  CHECK(engine_weighted_sum(out(a), equal.data(), coefficients, 0) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_weighted_sum(out(a), equal.data(), coefficients, 9) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_weighted_sum(out(a), unequal.data(), coefficients, 2) == ENGINE_BAD_LENGTH);
  CHECK(engine_weighted_sum(out(b), equal.data(), coefficients, 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_weighted_sum({a.data(), 0}, equal.data(), coefficients, 1) == ENGINE_BAD_LENGTH);
  const engine_cf32 none = {nullptr, 0};
  CHECK(engine_weighted_sum(out(b), &none, coefficients, 1) == ENGINE_BAD_LENGTH);
  CHECK(engine_weighted_sum({nullptr, 0}, &none, coefficients, 1) == ENGINE_OK);
}

void masked_sums() {
  const struct {
    engine_shape4 shape;
    engine_area area;
  } areas[] = {{{1, 1, 1, 1}, {0, 0, 1, 1}},   {{3, 2, 9, 11}, {4, 3, 5, 8}},        {{2, 4, 16, 33}, {0, 0, 16, 33}},
               {{1, 3, 7, 20}, {6, 1, 1, 17}}, {{2, 2, 300, 130}, {1, 0, 297, 130}}, {{2, 1, 5, 6}, {5, 6, 0, 0}},
               {{0, 4, 8, 8}, {0, 0, 8, 8}}};
  for (const auto &[shape, area] : areas) {
    const size_t n = shape.n * shape.c * shape.h * shape.w, covered = shape.n * shape.c * area.h * area.w;
    const std::vector<float> base = numbers(n, 1), source = numbers(covered, 2);
    for (const size_t masks : {size_t{1}, shape.n}) {
      const std::vector<float> mask = numbers(masks * area.h * area.w, 3);
      const std::vector<float> got = everywhere([&, shape = shape, area = area] {
        std::vector<float> values = base;
        CHECK(engine_add_masked(out(values), shape, in(source), area, in(mask), masks) == ENGINE_OK);
        return values;
      });
      std::vector<float> expected = base;
      for (size_t i = 0; i < covered; i++) {
        const size_t column = i % area.w, row = i / area.w % area.h, plane = i / area.w / area.h;
        const size_t m = (plane / shape.c % masks * area.h + row) * area.w + column;
        expected[(plane * shape.h + area.y + row) * shape.w + area.x + column] += source[i] * mask[m];
      }
      CHECK(same_bytes(expected, got));
    }
  }
}

void refused_areas() {
  std::vector<float> d(2 * 3 * 4 * 5), s(2 * 3 * 2 * 2), m(8);
  const auto status = [&](engine_shape4 shape, engine_area area, size_t masks, size_t mask_len) {
    return engine_add_masked(out(d), shape, in(s), area, {m.data(), mask_len}, masks);
  };
  const engine_shape4 shape = {2, 3, 4, 5};
  CHECK(status(shape, {2, 3, 2, 2}, 2, 8) == ENGINE_OK && status(shape, {0, 0, 2, 2}, 1, 4) == ENGINE_OK);
  CHECK(status(shape, {3, 3, 2, 2}, 1, 4) == ENGINE_BAD_ARGUMENT);
  CHECK(status(shape, {2, 4, 2, 2}, 1, 4) == ENGINE_BAD_ARGUMENT);
  CHECK(status(shape, {SIZE_MAX, 0, 2, 2}, 1, 4) == ENGINE_BAD_ARGUMENT);
  CHECK(status(shape, {0, SIZE_MAX, 2, 2}, 1, 4) == ENGINE_BAD_ARGUMENT);
  CHECK(status(shape, {0, 0, 2, 2}, 2, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(shape, {0, 0, 1, 1}, 3, 3) == ENGINE_BAD_LENGTH);
  CHECK(status(shape, {0, 0, 2, 2}, 0, 0) == ENGINE_BAD_ARGUMENT);
  CHECK(status({2, 3, 4, 4}, {0, 0, 2, 2}, 1, 4) == ENGINE_BAD_LENGTH);
  CHECK(status({2, 3, SIZE_MAX, 5}, {0, 0, 2, 2}, 1, 4) == ENGINE_BAD_LENGTH);
  CHECK(status(shape, {0, 0, SIZE_MAX, 2}, 1, 4) == ENGINE_BAD_LENGTH);
  std::vector<float> three(3);
  CHECK(engine_add_masked({d.data(), 4}, {4, 1, 1, 1}, {s.data(), 4}, {0, 0, 1, 1}, in(three), 3) ==
        ENGINE_BAD_ARGUMENT);
}

void deviations_of_items() {
  const size_t shapes[][2] = {{1, 1}, {3, 1}, {1, 4097}, {4, 16384}, {3, 70001}, {2, 0}};
  for (const auto &[items, size] : shapes) {
    const std::vector<float> x = numbers(items * size, 4);
    for (const std::string &isa : supported_isas()) {
      CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
      std::vector<float> got(items);
      CHECK(engine_std_items(out(got), in(x)) == ENGINE_OK);
      for (size_t item = 0; item < items; item++) {
        float alone = 0;
        CHECK(engine_std({x.data() + item * size, size}, &alone) == ENGINE_OK);
        CHECK(size < 2 ? std::isnan(got[item]) && std::isnan(alone) : got[item] == alone && alone > 0.1f);
      }
    }
  }
  std::vector<float> a(3), b(8);
  CHECK(engine_std_items(out(a), in(b)) == ENGINE_BAD_LENGTH);
  CHECK(engine_std_items({nullptr, 0}, in(b)) == ENGINE_BAD_LENGTH);
  CHECK(engine_std_items({nullptr, 0}, {nullptr, 0}) == ENGINE_OK);
}

void error_norms() {
  for (size_t n : edge_sizes()) {
    const std::vector<float> low = numbers(n, 5), high = numbers(n, 6), previous = numbers(n, 7);
    const double atol = 0.0078, rtol = 0.05;
    const std::vector<double> got = everywhere([&] {
      std::vector<double> norm(1);
      CHECK(engine_scaled_error(in(low), in(high), in(previous), atol, rtol, norm.data()) == ENGINE_OK);
      if (std::isnan(norm[0])) norm[0] = -1;
      return norm;
    });
    long double squares = 0;
    for (size_t i = 0; i < n; i++) {
      const double l = low[i], h = high[i], p = previous[i];
      const double ratio = (l - h) / std::fmax(atol, rtol * std::fmax(std::fabs(l), std::fabs(p)));
      squares += static_cast<long double>(ratio * ratio);
    }
    const auto expected = n == 0 ? -1.0 : static_cast<double>(std::sqrt(squares / static_cast<long double>(n)));
    CHECK(std::fabs(got[0] - expected) <= 1e-14 * std::fabs(expected));
    // terms of one element are exact: the same bits as the loop's
    if (n == 1) CHECK(got[0] == expected);
  }
}

void odd_norms() {
  std::vector<float> zeros(100), ones(100, 1.0f), short_one(99);
  double norm = 0;
  const auto of = [&](const std::vector<float> &low, const std::vector<float> &high, const std::vector<float> &previous,
                      double atol, double rtol) {
    CHECK(engine_scaled_error(in(low), in(high), in(previous), atol, rtol, &norm) == ENGINE_OK);
    return norm;
  };
  for (const std::string &isa : supported_isas()) {
    CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
    CHECK(of(zeros, ones, zeros, 0.5, 0.1) == 2.0 && of(zeros, ones, ones, 0.5, 4.0) == 0.25);
    CHECK(of(ones, ones, zeros, 0.5, 0.1) == 0.0 && of(zeros, ones, zeros, 0.0, 0.1) == INFINITY);
    CHECK(std::isnan(of(zeros, zeros, zeros, 0.0, 0.1)) && std::isnan(of(zeros, ones, ones, NAN, NAN)));
    // one NaN in the vectors and one in the rest of them
    for (size_t at : {size_t{3}, size_t{98}}) {
      std::vector<float> odd = ones;
      odd[at] = NAN;
      CHECK(std::isnan(of(odd, zeros, zeros, 0.5, 0.1)) && std::isnan(of(zeros, odd, zeros, 0.5, 0.1)));
      CHECK(std::isnan(of(zeros, ones, odd, 0.5, 0.1)));
    }
  }
  CHECK(engine_scaled_error(in(ones), in(short_one), in(ones), 1, 1, &norm) == ENGINE_BAD_LENGTH);
  CHECK(engine_scaled_error(in(ones), in(ones), in(short_one), 1, 1, &norm) == ENGINE_BAD_LENGTH);
}

}  // namespace

int main() {
  weighted_sums();
  odd_sums();
  refused_sums();
  masked_sums();
  refused_areas();
  deviations_of_items();
  error_norms();
  odd_norms();
  return report();
}
