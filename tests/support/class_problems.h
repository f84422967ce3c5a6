// Small problems with several classes, and an independent solver of the problem of Crammer and Singer for them: dense,
// in double, in LIBLINEAR's variables, by moving mass between two classes of one row at a time. It shares no code with
// src/solve and src/objective, and says how exact it is by its own duality gap.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "support/small_problems.h"

namespace linblock::test {

// Labels 10, 20, 30 ..., all of which occur.
inline Data make_class_data(size_t rows, uint32_t features, uint32_t classes, uint32_t seed) {
  Data data = make_data(rows, features, seed);
  std::mt19937 random(seed + 1000);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> truth(classes, std::vector<double>(features));
  for (auto& own : truth)
    for (double& weight : own) weight = normal(random);
  for (size_t i = 0; i < rows; ++i) {
    OwnedRow& row = data.rows[i];
    std::vector<double> scores(classes);
    for (uint32_t m = 0; m < classes; ++m) {
      scores[m] = 0.7 * normal(random);
      for (size_t k = 0; k < row.index.size(); ++k) scores[m] += truth[m][row.index[k] - 1] * row.value[k];
    }
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    row.label = static_cast<int32_t>(10 * (i < classes ? i + 1 : static_cast<size_t>(best) + 1));
  }
  return data;
}

inline Problem class_problem(const Store& store, double cost, double bias = -1) {
  return {.store = &store, .tasks = {{.cost = cost}}, .loss = Hinge{}, .bias = bias};
}

struct ClassOptimum {
  double primal = 0;
  double dual = 0;
};

// `rows` as dense() gives them; `labels` beside them. A row that costs nothing is left out.
inline ClassOptimum class_optimum(const std::vector<DenseRow>& rows, const std::vector<int32_t>& labels,
                                  const std::vector<int32_t>& classes, double tolerance = 1e-8) {
  const size_t n = rows.empty() ? 0 : rows[0].x.size();
  const size_t count = classes.size();
  std::vector<std::vector<double>> alpha(rows.size(), std::vector<double>(count, 0));
  std::vector<std::vector<double>> w(count, std::vector<double>(n, 0));
  const auto product = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += a[j] * b[j];
    return sum;
  };
  ClassOptimum optimum;
  for (int pass = 0; pass < 20000; ++pass) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].cost == 0) continue;
      const double norm2 = product(rows[i].x, rows[i].x);
      const auto limit = [&](size_t m) { return classes[m] == labels[i] ? rows[i].cost : 0.0; };
      std::vector<double> gradient(count);
      for (size_t m = 0; m < count; ++m) gradient[m] = product(w[m], rows[i].x) + (classes[m] == labels[i] ? 0 : 1);
      const std::vector<double> before = alpha[i];
      for (int round = 0; round < 20; ++round) {
        double largest = 0;
        for (size_t up = 0; up < count; ++up) {
          for (size_t down = 0; down < count; ++down) {
            const double pull = gradient[down] - gradient[up];
            if (up == down || pull <= 0) continue;
            const double most = limit(up) - alpha[i][up];
            const double by = norm2 > 0 ? std::min(most, pull / (2 * norm2)) : most;
            alpha[i][up] += by;
            alpha[i][down] -= by;
            gradient[up] += by * norm2;
            gradient[down] -= by * norm2;
            largest = std::max(largest, by);
          }
        }
        if (largest <= 1e-14 * rows[i].cost) break;
      }
      for (size_t m = 0; m < count; ++m)
        for (size_t j = 0; j < n; ++j) w[m][j] += (alpha[i][m] - before[m]) * rows[i].x[j];
    }
    if (pass % 20 != 19) continue;
    optimum = {};
    double norms = 0;
    for (const auto& own : w) norms += product(own, own);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].cost == 0) continue;
      double own = 0;
      for (size_t m = 0; m < count; ++m)
        if (classes[m] == labels[i]) own = product(w[m], rows[i].x);
      double loss = 0;
      for (size_t m = 0; m < count; ++m) {
        if (classes[m] == labels[i]) continue;
        loss = std::max(loss, product(w[m], rows[i].x) - own + 1);
        optimum.dual -= alpha[i][m];
      }
      optimum.primal += rows[i].cost * loss;
    }
    optimum.primal += 0.5 * norms;
    optimum.dual -= 0.5 * norms;
    if (optimum.primal - optimum.dual <= tolerance * optimum.dual) break;
  }
  return optimum;
}

inline ClassOptimum class_optimum(const Data& data, double cost, double bias,
                                  const std::map<int32_t, double>& weights = {}) {
  std::vector<int32_t> labels;
  std::vector<int32_t> classes;
  for (const OwnedRow& row : data.rows) labels.push_back(row.label);
  classes = labels;
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return class_optimum(dense(data, cost, bias, weights), labels, classes);
}

}  // namespace linblock::test
