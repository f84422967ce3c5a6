// A Cholesky factorization of a dense symmetric matrix, by Eigen: for Hessians with few features.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace linblock {

class Factor {
 public:
  static constexpr size_t kMostWeights = 2000;
  // At least that of one number: data may have no features.
  static constexpr uint64_t bytes(uint64_t weights) {
    return std::max<uint64_t>(1, weights * weights) * sizeof(double);
  }

  explicit Factor(size_t weights);
  ~Factor();
  Factor(Factor&&) noexcept;
  Factor& operator=(Factor&&) noexcept;

  // The lower triangle is filled in, column by column: row i of column j at i + j * weights; then factored.
  std::span<double> matrix();
  // False where the matrix is not positive definite, as far as numbers of double precision can tell.
  bool factorize();
  // x becomes the solution of matrix * x = x.
  void solve(std::span<double> x) const;

 private:
  struct Matrix;
  std::unique_ptr<Matrix> matrix_;
};

}  // namespace linblock
