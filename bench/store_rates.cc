// How fast text is parsed and chunks are read, on this machine: one JSON object for bench/store.py.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/dot.h"
#include "base/file.h"
#include "base/threads.h"
#include "store/store.h"
#include "store/svmlight.h"
#include "store/text_source.h"

namespace {

using namespace linblock;
using Clock = std::chrono::steady_clock;

constexpr size_t kPieceBytes = size_t{128} << 10;
constexpr uint64_t kMostText = uint64_t{256} << 20;
constexpr double kLeastSeconds = 0.5;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Text already in memory, each thread its share: the parser alone.
double parse_rate(const std::vector<TextPiece>& pieces, uint64_t bytes, size_t threads) {
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto begin = Clock::now();
    run_on_threads(threads, [&](size_t thread) {
      ParsedRows rows;
      for (size_t i = thread; i < pieces.size(); i += threads)
        parse_svmlight({pieces[i].text.data(), pieces[i].size}, {}, rows);
    });
    best = std::max(best, static_cast<double>(bytes) / seconds_since(begin) / 1e9);
  }
  return best;
}

// One thread over the whole store, from the page cache; `work` sees every decoded chunk.
template <typename Work>
double read_rate(const Store& store, const Work& work) {
  double best = 0;
  double total = 0;
  Chunk chunk;
  while (total < kLeastSeconds) {
    const auto begin = Clock::now();
    for (size_t i = 0; i < store.chunks().size(); ++i) {
      store.read(i, chunk);
      chunk.decode();
      work(chunk);
    }
    const double seconds = seconds_since(begin);
    total += seconds;
    best = std::max(best, static_cast<double>(store.info().nonzeros) / seconds / 1e6);
  }
  return best;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    fmt::print(stderr, "usage: store_rates TEXT STORE\n");
    return 2;
  }
  try {
    std::vector<TextPiece> pieces;
    uint64_t bytes = 0;
    TextSource source({words[1]}, kPieceBytes, kMostText);
    for (TextPiece piece; bytes < kMostText && source.next(piece); piece = {}) {
      bytes += piece.size;
      pieces.push_back(std::move(piece));
    }
    const Store store = Store::open(words[2]);
    std::vector<float> weights(store.info().feature_numbers(), 0.5F);
    RowBuffer buffer;
    double sum = 0;
    const auto dots = [&](const Chunk& chunk) {
      for (size_t i = 0; i < chunk.rows(); ++i) {
        const Row row = chunk.row(i, buffer);
        sum += linblock::dot(row.index, row.value, weights.data());
      }
    };
    const nlohmann::ordered_json rates = {
        {"parse_gb_per_second_1_thread", parse_rate(pieces, bytes, 1)},
        {"parse_gb_per_second_2_threads", parse_rate(pieces, bytes, 2)},
        {"read_check_decode_million_nonzeros_per_second", read_rate(store, [](const Chunk&) {})},
        {"with_dot_million_nonzeros_per_second", read_rate(store, dots)},
        {"sum_of_dots", sum}};  // printed, so that the work cannot be left out
    fmt::print("{}\n", rates.dump());
  } catch (const std::exception& error) {
    fmt::print(stderr, "store_rates: {}\n", error.what());
    return 1;
  }
}
