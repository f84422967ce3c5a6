// Sums over all weights, on the team. Cut into fixed pieces whose sums are added in their order: the same bits for any
// number of threads.
#pragma once

#include <array>
#include <cstddef>

#include "base/team.h"

namespace linblock {

inline constexpr size_t kSweepPieces = 16;
using SweepSums = std::array<double, 4>;

// Calls work(i, sums) for every i below `count`.
template <typename Work>
SweepSums sweep(const Team& team, size_t count, const Work& work) {
  std::array<SweepSums, kSweepPieces> parts{};
  const auto sum_up = [&](size_t piece) {
    const size_t end = count * (piece + 1) / kSweepPieces;
    SweepSums sums{};
    for (size_t i = count * piece / kSweepPieces; i < end; ++i) work(i, sums);
    parts[piece] = sums;
  };
  if (count >= kSweepPieces * 1024)
    team.for_each(kSweepPieces, sum_up);
  else
    for (size_t piece = 0; piece < kSweepPieces; ++piece) sum_up(piece);  // few weights are not worth a thread
  SweepSums all{};
  for (const SweepSums& part : parts)
    for (size_t k = 0; k < all.size(); ++k) all[k] += part[k];
  return all;
}

// The largest number of terms that one of its sums has been added up from, one after another.
inline double sweep_terms(size_t count) {
  return static_cast<double>(count) / static_cast<double>(kSweepPieces) + static_cast<double>(kSweepPieces) + 1;
}

}  // namespace linblock
