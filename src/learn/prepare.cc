#include "learn/prepare.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/version.h"
#include "learn/examples.h"
#include "solve/choose.h"
#include "store/columns/columns.h"
#include "store/columns/transpose.h"
#include "store/core/store_writer.h"
#include "store/index/build_forest.h"
#include "store/index/metric_forest.h"

namespace linblock {

namespace {

// What the text and the packing options were: a store is used again only while both are the same.
std::string fingerprint(const TrainOptions& options) {
  Json files = Json::array();
  for (const std::string& input : options.inputs) {
    if (input == "-") {
      files.push_back("standard input");
      continue;
    }
    const FileStamp stamp = file_stamp(input);
    files.push_back({{"path", input}, {"bytes", stamp.bytes}, {"modified", stamp.modified_nanoseconds}});
  }
  const PackOptions& pack = options.pack;
  Json source = {{"files", files},
                 {"seed", pack.seed},
                 {"shuffle", pack.shuffle},
                 {"chunk_bytes", pack.chunk_bytes.value_or(0)},
                 {"codec", pack.codec},
                 {"normalize", pack.normalize},
                 {"index_base", pack.index_base},
                 {"weights", pack.weights},
                 {"max_bad_rows", pack.max_bad_rows}};
  if (!pack.names.empty()) {
    source["names"] = {{"path", pack.names}};
    if (pack.names != "-") {
      const FileStamp stamp = file_stamp(pack.names);
      source["names"]["bytes"] = stamp.bytes;
      source["names"]["modified"] = stamp.modified_nanoseconds;
    }
  }
  return source.dump(1);
}

Remedy another_place() { return say("name another place with `store`"); }

// The code of the name that stands for all other labels: one that no row has.
int32_t name_of_rest(LabelNames& names, int32_t positive) {
  std::string name = "not-" + names.show(positive);
  while (names.find(name)) name.insert(0, "not-");
  return names.add(name);
}

// The label that counts as +1, then the one that stands for the others.
std::vector<int32_t> one_against_rest(const StoreInfo& info, const LabelText& named, LabelNames& names) {
  const std::optional<int32_t> found = find_label(info, named);
  if (!found)
    fail(ErrorKind::input, {say("choose one of the labels that 'linblock info' lists")},
         "`positive` {}: no row has this label", named.text);
  const int32_t positive = *found;
  if (info.labels.size() == 2)
    return {positive,
            info.labels.begin()->first == positive ? info.labels.rbegin()->first : info.labels.begin()->first};
  if (!names.empty()) return {positive, name_of_rest(names, positive)};
  return {positive, positive == -1 ? 1 : -1};
}

// Of two labels, the larger number or the name that sorts last is the positive class, whatever the order of the rows.
std::vector<int32_t> larger_first(const StoreInfo& info) {
  std::vector<int32_t> labels = {info.labels.rbegin()->first, info.labels.begin()->first};
  const LabelNames& names = info.label_names;
  if (!names.empty() && names.show(labels[0]) < names.show(labels[1])) std::swap(labels[0], labels[1]);
  return labels;
}

std::map<int32_t, double> choose_class_weights(const StoreInfo& info, const TrainOptions& options) {
  std::map<int32_t, double> weights;
  for (const auto& [label, weight] : options.class_weight.factors) {
    const std::optional<int32_t> found = find_label(info, label);
    if (!found)
      fail(ErrorKind::input, {say("choose one of the labels that 'linblock info' lists")},
           "`class_weight` {}={}: no row has this label", label.text, weight);
    weights[*found] = weight;
  }
  if (!options.class_weight.balanced) return weights;
  weights.clear();
  for (const auto& [label, rows] : info.labels)
    weights[label] =
        static_cast<double>(info.rows) / (static_cast<double>(info.labels.size()) * static_cast<double>(rows));
  return weights;
}

// The old store makes room for the new one, which may need its disk space. It becomes what a killed pack leaves: at
// every moment there is either the whole old store or none, and the next pack deletes what is left of it.
void give_up_store(const std::string& store) {
  expect_own(store, store_directory(), {say("move it away"), another_place()});
  const std::string partial = partial_path(store);
  if (path_kind(partial) == PathKind::directory) {
    const FileLock lock = FileLock::acquire(fmt::format("{}/{}", partial, format::kLockName), "packing", store);
    remove_own_directory(partial, store_directory());
  }
  const FileLock lock = FileLock::acquire(fmt::format("{}/{}", store, format::kLockName), "replacing it", store);
  rename_path(store, partial);
  sync_directory(parent_directory(store));
  remove_own_file(partial, store_directory(), format::kManifestName);  // it is no store any more
}

std::string store_for(const TrainOptions& options, size_t threads, const TrainObserver& observer, bool& packed) {
  if (options.inputs.size() == 1 && is_store(options.inputs.front())) {
    expect_rows(read_manifest(options.inputs.front()), options.inputs.front());
    if (!options.pack.names.empty())
      fail(ErrorKind::usage, {leave_out("names")},
           "'{}' is a store, which takes `names` of features when it is packed, and keeps them",
           options.inputs.front());
    return options.inputs.front();
  }
  const bool piped = std::find(options.inputs.begin(), options.inputs.end(), "-") != options.inputs.end();
  if (piped && options.store.empty())
    fail(ErrorKind::usage, {say("name one with `store` DIR")},
         "standard input is packed before training, and the store needs a place");
  std::string store = options.store.empty() ? options.inputs.front() + ".linblock" : options.store;
  while (store.size() > 1 && store.back() == '/') store.pop_back();
  PackOptions packing = options.pack;
  packing.source = fingerprint(options);
  if (is_store(store)) {
    const std::string source = fmt::format("{}/{}", store, format::kSourceName);
    if (path_kind(source) != PathKind::file)
      fail(ErrorKind::usage, {say("train on it with 'linblock train {}'", store), another_place()},
           "'{}' is a store that was not made by train", store);
    const std::vector<unsigned char> bytes = read_whole_file(source, uint64_t{1} << 24);
    const std::string text(bytes.begin(), bytes.end());
    const std::string made = source_line(read_manifest(store));
    const StoreInfo info = read_manifest(store);
    const bool says_which = text.find("\nstore ") != std::string::npos;
    if (says_which ? !text.ends_with(made) : info.segments.size() > 1 || info.removed.rows > 0)
      fail(ErrorKind::usage,
           "rows were appended to '{0}' or removed from it since it was made from the text: train on '{0}' itself, or "
           "remove it to start over with the text (the appended rows are lost then)",
           store);
    if (!piped && text == packing.source + made) {
      observer.say("using the store '" + store + "', made from this text before");
      return store;
    }
    observer.say("the text or its options have changed: packing anew");
    give_up_store(store);
  }
  // A team of its own: with its threads goes what they keep for packing.
  packing.team = Team(threads);
  pack(options.inputs, store, packing, observer.packing);
  packing.team = 1;
  return_free_memory();  // training has none to spare
  packed = true;
  return store;
}

}  // namespace

namespace {

// Those there are, while the rows are what they were made from.
void make_columns(const Store& store, const Context& context, const TrainObserver& observer) {
  const ColumnsState state = columns_state(store);
  if (state == ColumnsState::fresh) return StoreWriter::clean(store.path(), columns_path(store.path()));
  observer.say(fmt::format("the columns of '{}' are {}: transposing", store.path(),
                           state == ColumnsState::absent ? "not there yet" : "of other rows"));
  transpose(store, {.memory_bytes = context.memory_bytes, .team = Team(context.team.size())},
            {.observer =
                 [&](uint64_t done, uint64_t total) {
                   observer.reading("to transpose them",
                                    total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
                 },
             .stop = context.stop});
  return_free_memory();
}

// As columns: one that is there is used, or brought up to date.
void make_index(const Store& store, double bias, const Context& context, const TrainObserver& observer) {
  const ForestState state = forest_state(store);
  if (state == ForestState::fresh) return StoreWriter::clean(store.path(), index_path(store.path()));
  ForestOptions options{.memory_bytes = context.memory_bytes, .team = Team(context.team.size())};
  if (state != ForestState::behind) options.bias = bias;
  observer.say(fmt::format("the index of '{}' is {}", store.path(),
                           state == ForestState::absent  ? "not there yet: building it"
                           : state == ForestState::stale ? "of other rows: building it anew"
                                                         : "missing the rows that were appended: adding them"));
  build_forest(store, options,
               {.observer =
                    [&](uint64_t done, uint64_t total) {
                      observer.reading("to index them",
                                       total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
                    },
                .stop = context.stop});
  return_free_memory();
}

}  // namespace

std::optional<int32_t> find_label(const StoreInfo& info, const LabelText& label) {
  const std::optional<int32_t> found = info.label_names.read(label.text);
  return found && info.labels.contains(*found) ? found : std::nullopt;
}

Classes choose_classes(const StoreInfo& info, const TrainOptions& options) {
  if (info.labels.size() < 2)
    fail(ErrorKind::input, "every row has the label {}: a classifier needs two classes",
         info.labels.empty() ? "0" : info.label_names.show(info.labels.begin()->first));
  Classes classes{.label_names = info.label_names};
  classes.all_at_once = abilities_of(options.solve.method).tasks == TaskKind::all_classes;
  if (classes.all_at_once) {
    for (const auto& [label, rows] : info.labels) classes.labels.push_back(label);
    classes.positives = {classes.labels.front()};  // which has no meaning then
    return classes;
  }
  if (options.positive) {
    classes.labels = one_against_rest(info, *options.positive, classes.label_names);
    classes.against_rest = info.labels.size() > 2;
  } else if (info.labels.size() == 2) {
    classes.labels = larger_first(info);
  } else {
    for (const auto& [label, rows] : info.labels) classes.labels.push_back(label);
  }
  classes.positives = classes.labels;
  if (classes.labels.size() == 2) classes.positives.pop_back();
  return classes;
}

int32_t Classes::label_of(std::span<const double> decisions, std::optional<double> threshold) const {
  return labels[place_of_label(decisions, threshold)];
}

Problem make_problem(const Store& store, const TrainOptions& options, const Classes& classes) {
  Problem problem{.store = &store,
                  .loss = options.loss,
                  .bias = options.bias,
                  .free_bias = options.free_bias,
                  .class_weights = choose_class_weights(store.info(), options),
                  .truncate = options.truncate};
  for (const int32_t positive : classes.positives)
    problem.tasks.push_back({.positive = positive, .cost = options.cost});
  return problem;
}

std::optional<LabelText> LabelText::read(std::string_view text) {
  return wrong_with_label(text).empty() ? std::optional(LabelText(std::string(text))) : std::nullopt;
}

std::optional<PositiveLabel> PositiveLabel::read(std::string_view text) {
  const std::optional<LabelText> label = LabelText::read(text);
  return label ? std::optional(PositiveLabel(*label)) : std::nullopt;
}

std::strong_ordering LabelText::operator<=>(const LabelText& other) const {
  const std::optional<int32_t> number = Text<int32_t>::read(text, {});
  const std::optional<int32_t> other_number = Text<int32_t>::read(other.text, {});
  if (number && other_number && *number != *other_number) return *number <=> *other_number;
  if (number.has_value() != other_number.has_value())
    return number ? std::strong_ordering::less : std::strong_ordering::greater;
  return text <=> other.text;
}

std::optional<ClassWeights> ClassWeights::read(std::string_view text) {
  ClassWeights weights;
  while (true) {
    const std::string_view item = text.substr(0, text.find(','));
    if (item == "balanced") {
      weights.balanced = true;
    } else {
      const size_t equals = std::min(item.rfind('='), item.size());  // the last: a word may have one
      const std::optional<LabelText> label = LabelText::read(item.substr(0, equals));
      const std::optional<double> factor = read_finite(item.substr(std::min(equals + 1, item.size())));
      if (!label || !factor || *factor < 0) return {};
      weights.factors[*label] = *factor;
    }
    if (item.size() == text.size()) return weights;
    text.remove_prefix(item.size() + 1);
  }
}

std::string ClassWeights::show() const {
  std::string text = balanced ? "balanced" : "";
  for (const auto& [label, factor] : factors)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", label.text, factor);
  return text;
}

TrainOptions with_method(const TrainOptions& options, const Store& store, const Context& context) {
  TrainOptions chosen = options;
  chosen.choose_method = false;
  if (!options.choose_method) return chosen;
  const Problem problem = make_problem(store, options, choose_classes(store.info(), options));
  chosen.solve.method = choose_method(problem, context, options.solve.tolerance).method;
  return chosen;
}

TrainOptions choose_solver(const TrainOptions& options, const Store& store, const Context& context,
                           const TrainObserver& observer) {
  TrainOptions chosen = options;
  const Problem problem = make_problem(store, options, choose_classes(store.info(), options));
  if (options.choose_method) {
    const Choice choice = choose_method(problem, context, options.solve.tolerance);
    chosen.choose_method = false;
    chosen.solve.method = choice.method;
    // A state, a start and truncation go by dual variables from one end to the other.
    chosen.solve.may_change = std::holds_alternative<Dual>(choice.method) && options.keep_state.empty() &&
                              options.warm.empty() && !options.truncate;
    observer.say(choice.reason);
  } else {
    observer.say(fmt::format("{}: {}{}", describe_data(problem), name_of(options.solve.method),
                             options.method_reason.empty() ? "" : ", because " + options.method_reason));
  }
  const Reads reads = abilities_of(chosen.solve.method).reads;
  if (reads == Reads::columns) make_columns(store, context, observer);
  if (reads == Reads::index) make_index(store, options.bias, context, observer);
  return chosen;
}

Context watched(const Context& context, const TrainObserver& observer) {
  Context watching = context;
  watching.observer.plan = observer.plan;
  watching.observer.block = observer.block;
  watching.observer.reading = observer.reading;
  watching.observer.note = observer.say;
  return watching;
}

std::string solver_type(const TrainOptions& options) {
  const Abilities abilities = abilities_of(options.solve.method);
  if (!abilities.liblinear_name.empty()) return std::string(abilities.liblinear_name);
  const LiblinearNames names = liblinear_names(options.loss);
  return std::string(abilities.primal ? names.primal : names.dual);
}

Store open_store(const TrainOptions& options, size_t threads, const TrainObserver& observer, Source& source) {
  const Stopwatch packing;
  try {
    source.store = store_for(options, threads, observer, source.packed);
    source.pack_seconds = packing.seconds();
    Store store = Store::open(source.store);
    source.info = store.info();
    return store;
  } catch (const Error& error) {
    const bool is_own = !(options.inputs.size() == 1 && is_store(options.inputs.front()));
    if (error.kind() != ErrorKind::damaged || !is_own) throw;
    fail(ErrorKind::damaged, {say("remove it, and train makes it again")}, "{}\nThis store was made from the text",
         error.sentence());
  }
}

std::string identity_of(const TrainOptions& options, uint64_t memory_bytes, const StoreInfo& info) {
  std::string text;
  const auto line = [&](std::string_view name, const auto& value) { text += fmt::format("{}: {}\n", name, value); };
  line("version", kVersion);
  line("store", fmt::format("{:016x}", info.id));
  text += identity_of(options.loss);
  text += identity_of(options);
  text += identity_of(options.solve.method);
  text += identity_of(options.solve);
  if (options.positive && !info.label_names.empty()) line("one label", "yes");  // whatever its name
  line("memory", memory_bytes);
  line("tested each pass", options.test.empty() ? "no" : "yes");
  line("calibrate", options.calibrate);
  if (options.threshold) {
    line("threshold", Text<Metric>::show(*options.threshold));
    line("hold out", options.share_held_out());
  }
  line("warm", options.warm.empty() ? "no" : options.warm);
  line("keeps its state", options.keep_state.empty() ? "no" : "yes");
  return text;
}

}  // namespace linblock
