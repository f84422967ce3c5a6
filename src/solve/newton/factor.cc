#include "solve/newton/factor.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace linblock {

// One instruction set, whatever the processor has: this file is compiled for the oldest that linblock supports, and
// Eigen starts no threads. So the bits are the same everywhere.
struct Factor::Matrix {
  explicit Matrix(Eigen::Index size) : values(size, size) {}
  Eigen::MatrixXd values;
};

Factor::Factor(size_t weights) : matrix_(std::make_unique<Matrix>(static_cast<Eigen::Index>(weights))) {}
Factor::~Factor() = default;
Factor::Factor(Factor&&) noexcept = default;
Factor& Factor::operator=(Factor&&) noexcept = default;

std::span<double> Factor::matrix() { return {matrix_->values.data(), static_cast<size_t>(matrix_->values.size())}; }

bool Factor::factorize() {
  // In place: the factor takes the matrix's memory.
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>, Eigen::Lower> factor(matrix_->values);
  return factor.info() == Eigen::Success;
}

void Factor::solve(std::span<double> x) const {
  Eigen::Map<Eigen::VectorXd> solution(x.data(), static_cast<Eigen::Index>(x.size()));
  matrix_->values.triangularView<Eigen::Lower>().solveInPlace(solution);
  matrix_->values.triangularView<Eigen::Lower>().adjoint().solveInPlace(solution);
}

}  // namespace linblock
