#include "learn/train.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "learn/examples.h"
#include "solve/run.h"

namespace linblock {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSourceName = "SOURCE";
constexpr uint64_t kTestBytes = uint64_t{2} << 20;  // for reading the test data, a piece at a time

// What the text and the packing options were: a store is used again only while both are the same.
std::string fingerprint(const TrainOptions& options) {
  Json files = Json::array();
  for (const std::string& input : options.inputs) {
    const FileStamp stamp = file_stamp(input);
    files.push_back({{"path", input}, {"bytes", stamp.bytes}, {"modified", stamp.modified_nanoseconds}});
  }
  const PackOptions& pack = options.pack;
  return Json{{"files", files},
              {"seed", pack.seed},
              {"shuffle", pack.shuffle},
              {"chunk_bytes", pack.chunk_bytes.value_or(0)},
              {"codec", pack.codec},
              {"normalize", pack.normalize},
              {"index_base", pack.index_base},
              {"weights", pack.weights},
              {"max_bad_rows", pack.max_bad_rows}}
      .dump(1);
}

std::string solver_type(const AnyLoss& loss) {
  struct Names {
    std::string operator()(const Hinge&) const { return "L2R_L1LOSS_SVC_DUAL"; }
    std::string operator()(const SquaredHinge&) const { return "L2R_L2LOSS_SVC_DUAL"; }
    std::string operator()(const Logistic&) const { return "L2R_LR_DUAL"; }
  };
  return std::visit(Names{}, loss);
}

// The label that counts as +1, then the one that stands for the others.
std::vector<int32_t> choose_labels(const StoreInfo& info, const TrainOptions& options) {
  if (options.positive) {
    if (!info.labels.contains(*options.positive))
      fail(ErrorKind::input, "--positive {}: no row has this label; 'linblock info' lists them", *options.positive);
    if (info.labels.size() == 2) {
      const int32_t other =
          info.labels.begin()->first == *options.positive ? info.labels.rbegin()->first : info.labels.begin()->first;
      return {*options.positive, other};
    }
    return {*options.positive, *options.positive == -1 ? 1 : -1};
  }
  if (info.labels.size() < 2)
    fail(ErrorKind::input, "every row has the label {}: a classifier needs two classes",
         info.labels.empty() ? 0 : info.labels.begin()->first);
  if (info.labels.size() > 2)
    fail(ErrorKind::usage, "there are {} classes: --positive LABEL trains one of them against all others",
         info.labels.size());
  return {info.labels.rbegin()->first, info.labels.begin()->first};
}

std::map<int32_t, double> choose_class_weights(const StoreInfo& info, const TrainOptions& options) {
  for (const auto& [label, weight] : options.class_weights)
    if (!info.labels.contains(label))
      fail(ErrorKind::input, "--class-weight {}={}: no row has this label", label, weight);
  if (!options.balanced) return options.class_weights;
  std::map<int32_t, double> weights;
  for (const auto& [label, rows] : info.labels)
    weights[label] =
        static_cast<double>(info.rows) / (static_cast<double>(info.labels.size()) * static_cast<double>(rows));
  return weights;
}

}  // namespace

std::string store_for(const TrainOptions& options, const TrainObserver& observer, bool& packed) {
  packed = false;
  if (options.inputs.size() == 1 && is_store(options.inputs.front())) return options.inputs.front();
  const bool piped = std::find(options.inputs.begin(), options.inputs.end(), "-") != options.inputs.end();
  if (piped && options.store.empty())
    fail(ErrorKind::usage, "standard input is packed before training: say where with --store DIR");
  std::string store = options.store.empty() ? options.inputs.front() + ".linblock" : options.store;
  const std::string source = store + "/" + kSourceName;
  const std::string wanted = piped ? "" : fingerprint(options);
  if (is_store(store)) {
    if (!piped && path_kind(source) == PathKind::file) {
      const std::vector<unsigned char> found = read_whole_file(source, uint64_t{1} << 24);
      if (std::string(found.begin(), found.end()) == wanted) {
        observer.say("using the store '" + store + "', made from this text before");
        return store;
      }
    }
    if (path_kind(source) != PathKind::file)
      fail(ErrorKind::usage, "'{}' is a store that was not made by train: name another place with --store", store);
    observer.say("the text or its options have changed: packing anew");
    remove_flat_directory(store);
  }
  pack(options.inputs, store, options.pack, observer.packing);
  replace_file(source, {reinterpret_cast<const unsigned char*>(wanted.data()), wanted.size()});
  packed = true;
  return store;
}

std::string identity_of(const TrainOptions& options, const Context& context, const StoreInfo& info) {
  std::string text;
  const auto line = [&](std::string_view name, const auto& value) { text += fmt::format("{}: {}\n", name, value); };
  line("store", fmt::format("{:016x}", info.id));
  line("loss", name_of(options.loss));
  line("cost", options.cost);
  line("bias", options.bias);
  line("positive", options.positive ? fmt::to_string(*options.positive) : "chosen");
  std::string weights = options.balanced ? "balanced" : "";
  for (const auto& [label, weight] : options.class_weights) weights += fmt::format(" {}={}", label, weight);
  line("class weights", weights);
  line("solver", name_of(options.solve.method));
  if (const auto* dual = std::get_if<DualBlock>(&options.solve.method)) {
    line("schedule", dual->schedule == Schedule::fixed ? "fixed" : "recomposed");
    line("blocks", dual->blocks);
    line("block order", dual->sequence == BlockSequence::permuted ? "permuted" : "sequential");
    line("cache fraction", dual->cache_fraction ? fmt::to_string(*dual->cache_fraction) : "auto");
    line("inner", dual->converge ? "converge" : dual->inner == 0 ? "auto" : fmt::to_string(dual->inner));
  }
  if (const auto* pegasos = std::get_if<Pegasos>(&options.solve.method)) line("step", pegasos->step);
  line("tolerance", options.solve.tolerance);
  line("seed", options.solve.seed);
  line("memory", context.memory_bytes);
  line("tested each pass", options.test.empty() ? "no" : "yes");
  return text;
}

namespace {

// The lines that differ, as "memory: 64 then, 128 now".
std::string differences(const std::string& then, const std::string& now) {
  const auto lines = [](const std::string& text) {
    std::map<std::string, std::string> found;
    size_t at = 0;
    while (at < text.size()) {
      const size_t end = text.find('\n', at);
      const std::string one = text.substr(at, end - at);
      const size_t colon = one.find(": ");
      if (colon != std::string::npos) found[one.substr(0, colon)] = one.substr(colon + 2);
      if (end == std::string::npos) break;
      at = end + 1;
    }
    return found;
  };
  const auto before = lines(then);
  std::string different;
  for (const auto& [name, value] : lines(now)) {
    const auto found = before.find(name);
    const std::string old = found == before.end() ? "not there" : found->second;
    if (old != value) different += fmt::format("\n  {}: {} then, {} now", name, old, value);
  }
  return different;
}

void check_checkpoint(const std::string& path, const std::string& identity, bool fresh, const TrainObserver& observer) {
  if (path.empty() || path_kind(path) != PathKind::file) return;
  if (fresh) {
    remove_file(path);
    return;
  }
  const std::string then = SnapshotReader(path).take_text("identity");
  if (then != identity)
    fail(ErrorKind::usage, "'{}' is a checkpoint of another run:{}\nGive the same options, or --fresh to begin anew",
         path, differences(then, identity));
  observer.say("going on from the checkpoint '" + path + "'");
}

// How many rows of the test data the weights of this pass get right; by the store's feature numbers, so that no second
// copy of the weights is needed.
std::optional<double> test_accuracy(const TrainOptions& options, const Store& store, const std::vector<int32_t>& labels,
                                    const std::vector<float>& weights, uint64_t memory_bytes) {
  if (options.test.empty()) return {};
  const StoreInfo& info = store.info();
  const FeatureMap& features = store.features();
  const bool against_rest = options.positive.has_value();
  uint64_t correct = 0;
  const ExampleOptions reading{
      .index_base = info.index_base, .normalized = info.normalized, .memory_bytes = memory_bytes};
  const uint64_t rows = for_each_example(options.test, reading, [&](const Example& example) {
    if (!example.label) fail(ErrorKind::input, "--test: a row has no label, so it cannot be tested on");
    double sum = options.bias >= 0 ? options.bias * double{weights.back()} : 0;
    for (size_t k = 0; k < example.index.size(); ++k)
      if (example.index[k] < info.feature_numbers())
        sum += double{weights[features.number(example.index[k])]} * double{example.value[k]};
    const bool positive = *example.label == labels[0];
    const bool known = against_rest || positive || *example.label == labels[1];
    if (known && (sum > 0) == positive) ++correct;
  });
  return static_cast<double>(correct) / static_cast<double>(rows);
}

}  // namespace

TrainReport train(const TrainOptions& options, const Context& context, const TrainObserver& observer, bool dry_run) {
  check_inputs(options.test, "--test");  // before hours of packing and training, not after them
  TrainReport report;
  const auto begin = std::chrono::steady_clock::now();
  report.store = store_for(options, observer, report.packed);
  report.pack_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Store store = Store::open(report.store);
  report.info = store.info();
  if (!options.test.empty()) store.features();  // while there is room for what reading it needs
  const std::vector<int32_t> labels = choose_labels(store.info(), options);
  const Problem problem{.store = &store,
                        .tasks = {{.positive = labels[0], .cost = options.cost}},
                        .loss = options.loss,
                        .bias = options.bias,
                        .class_weights = choose_class_weights(store.info(), options)};
  Context solving = context;
  if (!options.test.empty()) solving.reserved_bytes = store.features().memory_bytes() + kTestBytes;
  if (dry_run) {
    report.summary.plan = make_plan(problem, options.solve.method, solving);
    observer.plan(report.summary.plan);
    return report;
  }
  solving.on_plan = observer.plan;
  solving.on_block = observer.block;
  solving.observer = [&](const PassReport& pass) {
    observer.pass(pass, test_accuracy(options, store, labels, *pass.weights, context.memory_bytes));
  };
  solving.checkpoint.identity = identity_of(options, context, store.info());
  check_checkpoint(solving.checkpoint.path, solving.checkpoint.identity, options.fresh, observer);
  std::vector<Solution> solutions;
  report.summary = solve(problem, options.solve, solutions, solving);
  std::vector<std::vector<float>> weights;
  for (Solution& solution : solutions) {
    solution.duals = {};
    weights.push_back(std::move(solution.weights));
  }
  report.model = make_model(store, std::move(weights), labels, options.bias, solver_type(options.loss));
  report.model.against_rest = options.positive.has_value() && store.info().labels.size() > 2;
  return report;
}

std::string describe_model(const TrainOptions& options, const TrainReport& report) {
  const Summary& summary = report.summary;
  const Certificate& certificate = summary.certificates.front();
  const Json json = {{"program", "linblock 0.1.0"},
                     {"loss", name_of(options.loss)},
                     {"cost", options.cost},
                     {"bias", options.bias},
                     {"solver", name_of(options.solve.method)},
                     {"tolerance", options.solve.tolerance},
                     {"seed", options.solve.seed},
                     {"labels", report.model.labels},
                     {"against_rest", report.model.against_rest},
                     {"index_base", report.model.index_base},
                     {"normalized", report.model.normalized},
                     {"store_id", fmt::format("{:016x}", report.info.id)},
                     {"rows", report.info.rows},
                     {"features", report.info.features()},
                     {"passes", summary.passes},
                     {"primal", certificate.primal},
                     {"certified", summary.certified},
                     {"dual", summary.certified ? Json(certificate.dual) : Json(nullptr)},
                     {"gap", summary.certified ? Json(certificate.gap()) : Json(nullptr)},
                     {"plan", summary.plan.describe()}};
  return json.dump(1) + "\n";
}

}  // namespace linblock
