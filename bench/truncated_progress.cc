// What a method makes of the truncated objective while it reads: 1/2 |w|^2 + cost * sum of min(loss, 1 + s), of its
// weights after every pass and every twentieth of a reading, from a copy of all rows that counts for nothing. One JSON
// object for bench/indexed.py.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "objective/certificate.h"
#include "solve/solver.h"

namespace {

using namespace linblock;
using Json = nlohmann::ordered_json;

constexpr uint64_t kLooksAReading = 20;

// Any other by its name, with its defaults.
template <size_t... Numbers>
std::optional<Method> named(std::string_view name, std::index_sequence<Numbers...>) {
  std::optional<Method> found;
  ((name_of_method(Numbers) == name ? void(found.emplace(std::in_place_index<Numbers>)) : void()), ...);
  return found;
}

Method method_of(std::string_view name, size_t blocks, double cache_fraction) {
  // BLOCK-L-10 of the block minimization paper, with rows near the margin kept.
  if (name == "fixed")
    return DualBlock{.schedule = Schedule::fixed, .blocks = blocks, .inner = 10, .cache_fraction = cache_fraction};
  if (name == "recomposed") return DualBlock{};
  const auto found = named(name, std::make_index_sequence<std::variant_size_v<Method>>());
  if (!found) fail(ErrorKind::usage, "no method '{}': fixed, recomposed, or what --solver knows", name);
  return *found;
}

// --name value, in pairs.
class Options {
 public:
  Options(char** begin, char** end) {
    for (; begin + 1 < end; begin += 2) values_[begin[0]] = begin[1];
    if (begin != end) fail(ErrorKind::usage, "'{}' has no value", *begin);
  }
  std::string take(const std::string& name, const std::string& usual) {
    const auto found = values_.extract(name);
    return found.empty() ? usual : found.mapped();
  }
  double number(const std::string& name, const std::string& usual) {
    return std::strtod(take(name, usual).c_str(), nullptr);
  }
  uint64_t whole(const std::string& name, const std::string& usual) {
    return std::strtoull(take(name, usual).c_str(), nullptr, 10);
  }
  void check_none_left() const {
    if (!values_.empty()) fail(ErrorKind::usage, "no option '{}'", values_.begin()->first);
  }

 private:
  std::map<std::string, std::string> values_;
};

class Progress {
 public:
  Progress(const Problem& problem, const std::vector<Solution>& solutions, size_t threads)
      : problem_(problem), solutions_(solutions), threads_(threads), rows_(problem.store->chunks().size()) {
    for_each_on_threads(threads, rows_.size(), [&](size_t chunk) {
      problem.store->read(chunk, rows_[chunk]);
      rows_[chunk].decode();
    });
  }

  void on_block(const BlockReport& report) {
    block_bytes_ += report.costs.bytes;
    if (block_bytes_ - looked_at_ < problem_.store->bytes() / kLooksAReading) return;
    looked_at_ = block_bytes_;
    add(pass_bytes_ + block_bytes_, report.seconds, solutions_);
  }
  void on_pass(const PassReport& report) {
    pass_bytes_ = report.bytes_read;
    block_bytes_ = looked_at_ = 0;
    certify_bytes_ += report.certify_costs.bytes;
    add(report.bytes_read, report.seconds, *report.solutions);
  }
  void at_end(const Summary& summary) { add(summary.costs.bytes, summary.total_seconds, solutions_); }
  const Json& points() const { return points_; }

 private:
  void add(uint64_t bytes, double seconds, const std::vector<Solution>& solutions) {
    if (solutions.empty() || solutions[0].weights.empty()) return;
    const Stopwatch looking;
    points_.push_back({{"bytes_read", bytes},
                       {"certify_bytes", certify_bytes_},
                       {"seconds", seconds - looking_seconds_},
                       {"objective", objective(solutions[0].weights)}});
    looking_seconds_ += looking.seconds();
  }
  double objective(std::span<const float> weights) const {
    const RowCost costs(problem_, problem_.tasks[0]);
    std::vector<double> losses(rows_.size());
    for_each_on_threads(threads_, rows_.size(), [&](size_t chunk) {
      RowBuffer buffer;
      for (size_t i = 0; i < rows_[chunk].rows(); ++i) {
        const Row row = rows_[chunk].row(i, buffer);
        const double margin = margin_of(row, costs.sign(row), problem_.bias, weights);
        const double loss = std::visit([&](const auto& one) { return one.value(margin); }, problem_.loss);
        losses[chunk] += costs.cost(row) * std::min(loss, 1 + problem_.truncate.value_or(HUGE_VAL));
      }
    });
    const auto square = [](float weight) { return double{weight} * double{weight}; };
    return std::transform_reduce(weights.begin(), weights.end(), 0.0, std::plus<>(), square) / 2 +
           std::reduce(losses.begin(), losses.end());
  }

  const Problem& problem_;
  const std::vector<Solution>& solutions_;  // as the solver goes on
  size_t threads_;
  std::vector<Chunk> rows_;
  Json points_ = Json::array();
  uint64_t pass_bytes_ = 0;   // until the last pass ended
  uint64_t block_bytes_ = 0;  // since then
  uint64_t looked_at_ = 0;    // of those
  uint64_t certify_bytes_ = 0;
  double looking_seconds_ = 0;
};

void run(const std::string& path, std::string_view name, Options options) {
  const Store store = Store::open(path);
  Problem problem{.store = &store,
                  .tasks = {{.positive = store.info().labels.rbegin()->first, .cost = options.number("--cost", "1")}},
                  .loss = loss_of(options.take("--loss", "squared-hinge"))};
  if (const std::string s = options.take("--truncate", ""); !s.empty())
    problem.truncate = std::strtod(s.c_str(), nullptr);
  const SolveOptions solving{
      .method = method_of(name, options.whole("--blocks", "0"), options.number("--cache-fraction", "0.5")),
      .tolerance = options.number("--tolerance", "0.01"),
      .max_passes = 100000,
      .max_seconds = options.number("--max-seconds", "0"),
      .seed = options.whole("--seed", "1")};
  const std::filesystem::path spilled = path + ".progress";  // what does not fit the memory
  std::filesystem::remove_all(spilled);
  std::filesystem::create_directory(spilled);
  Context context{.memory_bytes = options.whole("--memory", "1073741824"),
                  .threads = options.whole("--threads", "2"),
                  .checkpoint = {.path = spilled / "state", .every_seconds = HUGE_VAL}};
  options.check_none_left();
  std::vector<Solution> solutions;
  Progress progress(problem, solutions, context.threads);
  context.on_block = [&](const BlockReport& report) { progress.on_block(report); };
  context.observer = [&](const PassReport& report) { progress.on_pass(report); };
  std::string plan;
  context.on_plan = [&](const Plan& made) { plan = made.describe(); };
  const Summary summary = solve(problem, solving, solutions, context);
  progress.at_end(summary);
  std::filesystem::remove_all(spilled);
  fmt::print("{}\n", Json{{"plan", plan}, {"points", progress.points()}}.dump());
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    fmt::print(stderr,
               "usage: truncated_progress STORE METHOD [--loss LOSS] [--cost X] [--truncate S] [--memory BYTES] "
               "[--blocks M] [--cache-fraction F] [--tolerance X] [--max-seconds X] [--threads N] [--seed N]\n");
    return 2;
  }
  try {
    run(words[1], words[2], Options(words + 3, words + count));
  } catch (const std::exception& error) {
    fmt::print(stderr, "truncated_progress: {}\n", error.what());
    return 1;
  }
}
