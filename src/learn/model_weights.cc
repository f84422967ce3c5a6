#include "learn/model_weights.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/memory.h"

namespace linblock {

namespace {

double size_of(const FeatureWeight& weight) { return std::abs(weight.weight); }
double size_of(const WeightChange& change) { return change.size(); }

// The largest of what it is shown, in a heap whose top is the smallest.
template <class Item>
class Largest {
 public:
  explicit Largest(size_t count) : count_(count) {}

  void show(const Item& item) {
    if (count_ == 0 || !(size_of(item) > 0)) return;
    if (items_.size() == count_) {
      if (!is_larger(item, items_.front())) return;
      std::pop_heap(items_.begin(), items_.end(), is_larger);
      items_.pop_back();
    }
    items_.push_back(item);
    std::push_heap(items_.begin(), items_.end(), is_larger);
  }
  std::vector<Item> take() {
    std::sort(items_.begin(), items_.end(), is_larger);
    return std::move(items_);
  }

 private:
  static bool is_larger(const Item& a, const Item& b) {
    return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a.feature < b.feature;
  }

  size_t count_;
  std::vector<Item> items_;
};

// A model's rows by the index of their feature, with zeros outside of what it knows.
class FeatureRows {
 public:
  explicit FeatureRows(const std::string& path) : rows_(path), row_(rows_.header().columns()) {}

  const Model& header() const { return rows_.header(); }
  uint64_t begin() const { return static_cast<uint64_t>(header().index_base); }
  uint64_t end() const { return begin() + header().features; }
  // Features must be asked for in increasing order, each once.
  std::span<const float> at(uint64_t feature) {
    if (feature < begin() || feature >= end())
      std::fill(row_.begin(), row_.end(), 0.0F);
    else
      rows_.next(row_);
    return row_;
  }
  // After all features: what the bias adds to each column's decision.
  std::span<const float> bias() {
    if (header().bias >= 0)
      rows_.next(row_);
    else
      std::fill(row_.begin(), row_.end(), 0.0F);
    return row_;
  }

 private:
  ModelRows rows_;
  std::vector<float> row_;
};

// Where the columns of one model stand in another, and with which sign.
struct ColumnPlace {
  size_t column = 0;
  double sign = 1;
};

// Models may have other codes for the same words.
std::vector<std::string> words_of(const Model& model) {
  std::vector<std::string> words;
  for (const int32_t label : model.labels) words.push_back(model.label_names.show(label));
  return words;
}

std::vector<ColumnPlace> places_in(const Model& model, const Model& of) {
  const std::vector<std::string> words = words_of(model);
  std::vector<std::string> known = words;
  std::vector<std::string> asked = words_of(of);
  std::sort(known.begin(), known.end());
  std::sort(asked.begin(), asked.end());
  if (known != asked || model.columns() != of.columns())
    fail(ErrorKind::input, "the models tell other classes apart: one has the labels {}, the other {}",
         of.label_names.list(of.labels, ", "), model.label_names.list(model.labels, ", "));
  std::vector<ColumnPlace> places;
  for (size_t c = 0; c < of.columns(); ++c) {
    const auto at = std::find(words.begin(), words.end(), of.label_names.show(of.labels[c]));
    const auto number = static_cast<size_t>(at - words.begin());
    places.push_back(number < model.columns() ? ColumnPlace{.column = number} : ColumnPlace{.column = 0, .sign = -1});
  }
  return places;
}

// The model's labels get codes of other names. A number is a word there.
void use_names(Model& model, LabelNames& names) {
  for (int32_t& label : model.labels) label = names.add(model.label_names.show(label));
}

// For items whose features have one. Names come by increasing feature, and so are the items looked at.
template <class Column>
void take_names(const FeatureNameSource& source, std::vector<Column>& columns) {
  if (!source) return;
  using Item = typename decltype(Column::largest)::value_type;
  std::vector<Item*> items;
  for (Column& column : columns)
    for (Item& item : column.largest) items.push_back(&item);
  std::sort(items.begin(), items.end(), [](const Item* a, const Item* b) { return a->feature < b->feature; });
  auto next = items.begin();
  source([&](uint64_t feature, std::string_view name) {
    while (next != items.end() && (*next)->feature < feature) ++next;
    for (; next != items.end() && (*next)->feature == feature; ++next) (*next)->name = name;
  });
}

}  // namespace

double WeightChange::size() const { return std::abs(after - before); }

std::vector<ColumnWeights> largest_weights(ModelRows& rows, size_t count) {
  const Model& model = rows.header();
  std::vector<ColumnWeights> columns(model.columns());
  std::vector<Largest<FeatureWeight>> largest(columns.size(), Largest<FeatureWeight>(count));
  std::vector<float> row(columns.size());
  for (uint64_t number = 0; number < model.features; ++number) {
    rows.next(row);
    for (size_t c = 0; c < columns.size(); ++c) {
      const double weight = row[c];
      columns[c].nonzeros += weight != 0 ? 1 : 0;
      columns[c].norm += weight * weight;
      largest[c].show({.feature = number + static_cast<uint64_t>(model.index_base), .weight = weight});
    }
  }
  if (model.bias >= 0) rows.next(row);
  for (size_t c = 0; c < columns.size(); ++c) {
    columns[c].label = model.labels[c];
    columns[c].norm = std::sqrt(columns[c].norm);
    columns[c].largest = largest[c].take();
    if (model.bias >= 0) columns[c].bias = model.bias * double{row[c]};
  }
  take_names(model.feature_names, columns);
  return columns;
}

std::vector<ColumnDifference> difference_of(const std::string& before, const std::string& after, size_t count) {
  FeatureRows old_rows(before);
  FeatureRows new_rows(after);
  const std::vector<ColumnPlace> places = places_in(new_rows.header(), old_rows.header());
  std::vector<ColumnDifference> columns(places.size());
  std::vector<Largest<WeightChange>> largest(columns.size(), Largest<WeightChange>(count));
  const uint64_t end = std::max(old_rows.end(), new_rows.end());
  for (uint64_t feature = std::min(old_rows.begin(), new_rows.begin()); feature < end; ++feature) {
    const std::span<const float> from = old_rows.at(feature);
    const std::span<const float> to = new_rows.at(feature);
    for (size_t c = 0; c < columns.size(); ++c) {
      const double old_weight = from[c];
      const double new_weight = places[c].sign * double{to[places[c].column]};
      columns[c].norm_before += old_weight * old_weight;
      columns[c].norm_after += new_weight * new_weight;
      columns[c].cosine += old_weight * new_weight;
      largest[c].show({.feature = feature, .before = old_weight, .after = new_weight});
    }
  }
  const std::span<const float> old_bias = old_rows.bias();
  const std::span<const float> new_bias = new_rows.bias();
  for (size_t c = 0; c < columns.size(); ++c) {
    ColumnDifference& column = columns[c];
    column.label = old_rows.header().labels[c];
    column.norm_before = std::sqrt(column.norm_before);
    column.norm_after = std::sqrt(column.norm_after);
    const double lengths = column.norm_before * column.norm_after;
    const bool both_zero = column.norm_before == 0 && column.norm_after == 0;
    column.cosine = both_zero ? 1 : lengths > 0 ? std::clamp(column.cosine / lengths, -1.0, 1.0) : 0;
    column.bias_before = std::max(0.0, old_rows.header().bias) * double{old_bias[c]};
    column.bias_after = std::max(0.0, new_rows.header().bias) * places[c].sign * double{new_bias[places[c].column]};
    const double sign = places[c].sign * (places[c].column == c ? 1 : -1);  // two columns may have changed places
    column.threshold_before = old_rows.header().threshold.value_or(0) * (c == 0 ? 1 : -1);
    column.threshold_after = new_rows.header().threshold.value_or(0) * sign * (c == 0 ? 1 : -1);
    column.largest = largest[c].take();
  }
  take_names(old_rows.header().feature_names, columns);
  take_names(new_rows.header().feature_names, columns);
  return columns;
}

LabelChanges label_changes(const std::string& before, const std::string& after, const std::vector<std::string>& inputs,
                           uint64_t memory_bytes, const ReadContext& context) {
  Model old_model = load_model(before);
  Model new_model = load_model(after);
  if (old_model.normalized != new_model.normalized || old_model.index_base != new_model.index_base)
    fail(ErrorKind::usage, {say("compare what 'linblock predict' writes for each of them")},
         "'{}' and '{}' read rows in different ways: one scales them to unit length or counts features from another "
         "index",
         before, after);
  LabelNames names;
  if (!old_model.label_names.empty() || !new_model.label_names.empty()) {
    use_names(old_model, names);
    use_names(new_model, names);
  }
  const uint64_t new_bytes = new_model.weights.size() * sizeof(float);
  std::vector<double> decisions(new_model.columns());
  LabelChanges changes;
  uint64_t unknown = 0;
  const auto compare = [&](const Decision& decision) {
    new_model.decide(decision.index, decision.value, decisions, unknown);
    const int32_t predicted = new_model.label_of(decisions);
    ++changes.rows;
    changes.changed += predicted != decision.predicted ? 1 : 0;
    if (!decision.label) return;
    ++changes.labeled;
    changes.correct_before += old_model.own_label(*decision.label) == decision.predicted ? 1 : 0;
    changes.correct_after += new_model.own_label(*decision.label) == predicted ? 1 : 0;
  };
  apply_model(old_model, inputs, memory_bytes > new_bytes ? memory_bytes - new_bytes : 0, names, compare, context);
  return changes;
}

}  // namespace linblock
