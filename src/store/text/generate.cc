#include "store/text/generate.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "store/chunk/format.h"

namespace linblock {

namespace {

constexpr uint64_t kRowsPerPiece = 512;
constexpr uint32_t kCentres = 4;  // a class, for clusters

// Digits written by hand: printf would take most of the time.
class LineWriter {
 public:
  explicit LineWriter(std::string& out) : out_(out) {}

  void label(int64_t number) {
    if (number < 0) out_ += '-';
    whole(static_cast<uint64_t>(std::abs(number)));
  }

  void feature(uint32_t index, double value) {
    out_ += ' ';
    whole(index);
    out_ += ':';
    // Five decimals, as text exports have them; no trailing zeros.
    const auto scaled = static_cast<int64_t>(std::lround(value * 100000));
    if (scaled < 0) out_ += '-';
    const auto magnitude = static_cast<uint64_t>(std::abs(scaled));
    whole(magnitude / 100000);
    uint64_t rest = magnitude % 100000;
    if (rest == 0) return;
    char digits[5];
    int last = 0;
    for (int i = 4; i >= 0; --i, rest /= 10) {
      digits[i] = static_cast<char>('0' + rest % 10);
      if (last == 0 && digits[i] != '0') last = i + 1;
    }
    out_ += '.';
    out_.append(digits, static_cast<size_t>(last));
  }

  void end() { out_ += '\n'; }

 private:
  void whole(uint64_t number) {
    char digits[20];
    char* at = digits + sizeof(digits);
    do {
      *--at = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    out_.append(at, static_cast<size_t>(digits + sizeof(digits) - at));
  }

  std::string& out_;
};

// A bijection of [0, features): words that sort together are not equally frequent.
uint32_t scatter(uint64_t rank, uint64_t features, uint64_t seed) {
  uint64_t bits = 1;
  while ((uint64_t{1} << bits) < features) ++bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t value = rank;
  do {
    // Each step is invertible modulo 2^bits; walking on until the value is in range keeps it a bijection.
    value = (value * 0x9e3779b97f4a7c15ULL + seed) & mask;
    value ^= value >> (bits / 2 + 1);
    value = (value * 0xbf58476d1ce4e5b9ULL) & mask;
    value ^= value >> (bits / 2 + 1);
  } while (value >= features);
  return static_cast<uint32_t>(value);
}

class Generator {
 public:
  explicit Generator(const GenerateOptions& options) : options_(options) {}

  void piece(uint64_t first, uint64_t last, std::string& out) const {
    out.clear();
    LineWriter line(out);
    std::vector<uint32_t> words;
    for (uint64_t row = first; row < last; ++row) {
      Random random(options_.seed, row);
      const uint32_t true_class = class_of(row, random);
      const bool noisy = random.unit() < options_.noise;
      const auto shown = static_cast<uint32_t>(noisy && !options_.sorted ? random.below(options_.classes) : true_class);
      // Sorted data stays sorted: there a noisy row keeps its label and takes another class's features.
      const auto drawn = static_cast<uint32_t>(noisy && options_.sorted ? random.below(options_.classes) : true_class);
      line.label(options_.classes == 2 ? (shown == 0 ? -1 : 1) : int64_t{shown} + 1);
      if (options_.kind == DataKind::documents)
        document(drawn, random, words, line);
      else
        dense(drawn, random, line);
      line.end();
    }
  }

 private:
  uint32_t class_of(uint64_t row, Random& random) const {
    const uint64_t drawn = random.below(options_.classes);
    if (!options_.sorted) return static_cast<uint32_t>(drawn);
    const uint64_t rows_per_class = (options_.rows + options_.classes - 1) / options_.classes;
    return static_cast<uint32_t>(row / rows_per_class);
  }

  // Word frequencies fall as 1/rank. One word in five is the class's own: another ranking of the same words.
  void document(uint32_t drawn, Random& random, std::vector<uint32_t>& words, LineWriter& line) const {
    const double spread = 0.5 + random.unit();
    const auto count = static_cast<size_t>(std::clamp(options_.nonzeros * spread, 1.0, options_.features / 2.0 + 1));
    const double logarithm = std::log(static_cast<double>(options_.features));
    words.clear();
    for (size_t i = 0; i < count + count / 4; ++i) {
      const double rank = std::exp(random.unit() * logarithm) - 1;
      const bool is_topical = random.below(5) == 0;
      words.push_back(scatter(static_cast<uint64_t>(rank), options_.features,
                              is_topical ? options_.seed + 1 + drawn : options_.seed));
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    // Rarer words weigh more; the row is scaled to unit length.
    double sum = 0;
    values(words, random, [&](uint32_t, double value) { sum += value * value; });
    const double scale = 1 / std::sqrt(sum);
    values(words, random, [&](uint32_t word, double value) { line.feature(word + 1, std::max(value * scale, 1e-5)); });
  }

  template <typename Visit>
  void values(const std::vector<uint32_t>& words, const Random& random, const Visit& visit) const {
    Random value_random = random;  // the same values each time
    for (const uint32_t word : words)
      visit(word, 0.5 + value_random.unit() + static_cast<double>(mix64(options_.seed, word) >> 60) / 8);
  }

  void dense(uint32_t drawn, Random& random, LineWriter& line) const {
    const uint64_t centre = options_.kind == DataKind::clusters ? random.below(kCentres) : 0;
    const double spread = options_.kind == DataKind::clusters ? 0.25 : 0.8;
    for (uint32_t feature = 0; feature < options_.features; ++feature) {
      Random place(mix64(options_.seed, uint64_t{drawn} * kCentres + centre), feature);
      const double mean = 2 * place.unit() - 1;
      // The sum of three uniforms is near enough to normal, and ten times as fast.
      const double draw = random.unit() + random.unit() + random.unit() - 1.5;
      line.feature(feature + 1, 0.5 * mean + spread * draw);
    }
  }

  const GenerateOptions options_;
};

}  // namespace

void check(const GenerateOptions& options) {
  if (options.rows == 0) fail(ErrorKind::usage, "`rows` must be at least 1");
  if (options.skip > 0 && options.sorted) fail(ErrorKind::usage, "`skip` and `sorted` do not go together");
  if (options.features == 0 || options.features > format::kLargestIndex)
    fail(ErrorKind::usage, "`features` must be between 1 and {}", format::kLargestIndex);
  if (options.classes < 2 || options.classes > format::kMostLabels)
    fail(ErrorKind::usage, "`classes` must be between 2 and {}", format::kMostLabels);
  if (options.kind == DataKind::documents && (options.nonzeros == 0 || options.nonzeros > options.features))
    fail(ErrorKind::usage, "`nonzeros` must be between 1 and `features` ({})", options.features);
  if (!(options.noise >= 0 && options.noise <= 1)) fail(ErrorKind::usage, "`noise` must be between 0 and 1");
}

void generate(const GenerateOptions& options, const std::function<void(std::string_view)>& sink) {
  check(options);
  const Generator generator(options);
  const uint64_t pieces = (options.rows + kRowsPerPiece - 1) / kRowsPerPiece;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t next_piece = 0;
  uint64_t next_written = 0;
  bool failed = false;
  options.team.run_loops(
      options.team.size(),
      [&] {
        std::string text;
        std::unique_lock lock(mutex);
        while (!failed && next_piece < pieces) {
          const uint64_t piece = next_piece++;
          lock.unlock();
          generator.piece(options.skip + piece * kRowsPerPiece,
                          options.skip + std::min(options.rows, (piece + 1) * kRowsPerPiece), text);
          lock.lock();
          changed.wait(lock, [&] { return failed || next_written == piece; });
          if (failed) return;
          sink(text);
          ++next_written;
          changed.notify_all();
        }
      },
      [&] {
        const std::lock_guard lock(mutex);
        failed = true;
        changed.notify_all();
      });
}

}  // namespace linblock
