#include "learn/model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/own_files.h"
#include "base/team.h"
#include "store/chunk/format.h"

namespace linblock {

namespace {

constexpr uint64_t kMostMetadata = uint64_t{64} << 20;
constexpr uint64_t kWeightsPerPiece = 2048;
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

void append_number(double number, std::string& to) {
  char digits[40];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), number);
  to.append(digits, end);
}

std::string header(const Model& model) {
  std::string text = fmt::format("solver_type {}\nnr_class {}\nlabel", model.solver_type, model.labels.size());
  for (const int32_t label : model.labels) text += fmt::format(" {}", label);
  // The blank after the w says that a section follows the weights: without it, the file was cut short.
  return text + fmt::format("\nnr_feature {}\nbias {}\nw \n", model.features, model.bias);
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// "# linblock-model 1 {...}": '#' so that readers of tables of numbers take it for a comment. Keys that a later version
// adds are passed over; a version that must not be passed over has another number.
constexpr std::string_view kSectionBeginning = "# linblock-model ";
constexpr int kSectionVersion = 1;
constexpr int kNamesVersion = 2;                  // of a model that has names of features
constexpr std::string_view kSoftmax = "softmax";  // how several columns make one decision, where it is not as usual

// {"name": "huber-hinge", "huber": "0.5"}
Json loss_json(AnyLoss loss) {
  Json json = {{"name", name_of(loss)}};
  for (const Setting& setting : settings_of(loss)) json[setting.name] = setting.get();
  return json;
}

AnyLoss loss_from(const std::string& path, const Json& json) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::damaged, "'{}' has a loss that cannot be: {}", path, why);
  };
  const std::optional<AnyLoss> made = Losses::make(json.at("name").text());
  if (!made) refuse(fmt::format("'{}' is unknown to this version", json.at("name").text()));
  AnyLoss loss = *made;
  for (const Setting& setting : settings_of(loss))
    if (const std::string wrong = setting.set(json.at(setting.name).text()); !wrong.empty())
      refuse(fmt::format("its {} {}", setting.name, wrong));
  return loss;
}

Json section_json(const Model& model, const ModelNames& names) {
  Json json = {
      {"index_base", model.index_base}, {"normalized", model.normalized}, {"against_rest", model.against_rest}};
  json["calibration"] = Json::array();
  for (const Sigmoid& sigmoid : model.calibration) json["calibration"].push_back({sigmoid.slope, sigmoid.offset});
  if (model.threshold) json["threshold"] = *model.threshold;
  if (model.loss) json["loss"] = loss_json(*model.loss);
  if (model.softmax) json["multiclass"] = kSoftmax;
  if (!model.label_names.empty()) json["label_names"] = model.label_names.text();
  if (!names.empty()) json["feature_names"] = names.json();
  if (!model.bounds.empty()) {
    json["bounds"] = {{"problem", model.bounds.problem}, {"duals", Json::array()}};
    for (const auto& [label, dual] : model.bounds.by_label) json["bounds"]["duals"].push_back({label, dual});
  }
  return json;
}

std::string section_of(const Model& model, const ModelNames& names) {
  return fmt::format("{}{} {}\n", kSectionBeginning, names.empty() ? kSectionVersion : kNamesVersion,
                     section_json(model, names).dump());
}

// The binary form: this, a JSON object with the header and the section, blanks up to a multiple of kBinaryAligned,
// weights as floats by feature and then by column, names of features as in text, and a checksum of everything before
// it.
struct BinaryHead {
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kVersionWithNames = 2;
  static constexpr size_t kBytes = kBinaryModelBeginning.size() + sizeof(uint32_t) + sizeof(uint32_t);

  uint32_t version = kVersion;
  uint32_t json_bytes = 0;  // with the blanks

  std::string text() const {
    std::string bytes(kBinaryModelBeginning);
    bytes.resize(kBytes);
    auto* const at = reinterpret_cast<unsigned char*>(bytes.data()) + kBinaryModelBeginning.size();
    store_le(at, version);
    store_le(at + sizeof(version), json_bytes);
    return bytes;
  }
};
constexpr size_t kBinaryAligned = 64;

std::string binary_head(const Model& model, const ModelNames& names) {
  Json json = section_json(model, names);
  json["solver_type"] = model.solver_type;
  json["labels"] = model.labels;
  json["features"] = model.features;
  json["bias"] = model.bias;
  std::string text = json.dump();
  const size_t used = BinaryHead::kBytes + text.size() + 1;
  text.append((kBinaryAligned - used % kBinaryAligned) % kBinaryAligned, ' ');
  text += '\n';
  const BinaryHead head{.version = names.empty() ? BinaryHead::kVersion : BinaryHead::kVersionWithNames,
                        .json_bytes = static_cast<uint32_t>(text.size())};
  return head.text() + text;
}

// The last line: the checksum of everything before it, and how long the section is.
struct Trailer {
  static constexpr size_t kBytes = 41;

  uint64_t checksum = 0;
  uint64_t section_bytes = 0;

  std::string text() const { return fmt::format("# checksum {:016x} {:012}\n", checksum, section_bytes); }
};

// Nothing where the file does not end with one, exactly as it is written.
std::optional<Trailer> read_trailer(const File& file) {
  const uint64_t size = file.size();
  if (size < Trailer::kBytes) return {};
  std::string text(Trailer::kBytes, ' ');
  file.read_exactly_at({reinterpret_cast<unsigned char*>(text.data()), text.size()}, size - text.size());
  Trailer trailer;
  std::from_chars(text.data() + 11, text.data() + 27, trailer.checksum, 16);
  std::from_chars(text.data() + 28, text.data() + 40, trailer.section_bytes);
  if (text != trailer.text() || trailer.section_bytes > size - text.size()) return {};
  return trailer;
}

void add_to_sum(const File& file, uint64_t begin, uint64_t bytes, Checksum& sum) {
  std::vector<unsigned char> piece;
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(std::min(kPieceBytes, bytes - at));
    file.read_exactly_at(piece, begin + at);
    sum.add(piece);
  }
}

}  // namespace

// The words of a model file, a piece of it in memory at a time, with its name for complaints.
class ModelRows::Words {
 public:
  explicit Words(const std::string& path)
      : path_(path),
        file_(std::make_shared<const File>(File::open_read(path))),
        size_(file_->size()),
        trailer_(read_trailer(*file_)) {
    if (!trailer_) return;
    size_ -= Trailer::kBytes + trailer_->section_bytes;
    section_.resize(checked_size(trailer_->section_bytes, kMostMetadata, "the section of '" + path + "'"));
    file_->read_exactly_at({reinterpret_cast<unsigned char*>(section_.data()), section_.size()}, size_);
  }

  void read_header(Model& model);
  // Written by linblock, later than 0.1.0.
  bool has_section() const { return trailer_.has_value(); }
  const std::string& section() const { return section_; }
  uint64_t checksum() const { return trailer_->checksum; }
  // After the last word.
  void check() {
    if (!trailer_) return;
    add_to_sum(*file_, size_, names_.bytes, sum_);
    sum_.add(bytes_of(section_));
    if (sum_.value() != trailer_->checksum) refuse("its checksum does not match");
    names_.each(*file_, size_, [](uint64_t, std::string_view) {});
  }
  // Before anything is read: the names are no words.
  FeatureNameSource leave_out(const ModelNames& names) {
    if (names.bytes > size_) refuse("it is cut short");
    names_ = names;
    size_ -= names.bytes;
    return names.source(file_, size_);
  }
  // Until the next word.
  std::string_view word() {
    skip_blanks();
    if (rest().empty()) refuse("it ends too early");
    if (word_end() == piece_.size()) read_on();
    const std::string_view text = rest().substr(0, word_end() - at_);
    at_ += text.size();
    return text;
  }
  bool at_end() {
    skip_blanks();
    return rest().empty();
  }
  uint64_t left() const { return size_ - read_ + rest().size(); }

  template <typename Number>
  Number number(const char* what) {
    Number value{};
    if (!number_at_hand(value)) value = unusual_number<Number>(what);
    if constexpr (std::floating_point<Number>)
      if (!std::isfinite(value)) refuse(fmt::format("its {} is not finite", what));
    return value;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::damaged, "'{}' is not a usable model: {}; train it again or restore it from a copy", path_, why);
  }

 private:
  // The next number, if it is in memory as a whole and nothing is wrong with it: it need not be looked at twice.
  template <typename Number>
  bool number_at_hand(Number& value) {
    skip_blanks();
    const char* const last = piece_.data() + piece_.size();
    const auto [end, error] = std::from_chars(piece_.data() + at_, last, value);
    if (error != std::errc() || end == last || !is_blank(*end)) return false;
    at_ = static_cast<size_t>(end - piece_.data());
    return true;
  }
  template <typename Number>
  Number unusual_number(const char* what) {
    const std::string_view text = word();
    Number value{};
    const char* first = text.data() + (text.starts_with('+') ? 1 : 0);
    const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      refuse(fmt::format("its {} is '{}', not a number", what, text.substr(0, 40)));
    return value;
  }

  std::string_view rest() const { return std::string_view(piece_).substr(at_); }
  // Words are short: a loop is faster than a search.
  size_t word_end() const {
    size_t end = at_;
    while (end < piece_.size() && !is_blank(piece_[end])) ++end;
    return end;
  }
  void skip_blanks() {
    for (;;) {
      while (at_ < piece_.size() && is_blank(piece_[at_])) ++at_;
      if (at_ < piece_.size() || read_ == size_) return;
      read_on();
    }
  }
  // A longer word than a piece is nothing that a model has.
  void read_on() {
    piece_.erase(0, at_);
    at_ = 0;
    const size_t kept = piece_.size();
    piece_.resize(kept + std::min<uint64_t>(kPieceBytes, size_ - read_));
    file_->read_exactly_at({reinterpret_cast<unsigned char*>(piece_.data()) + kept, piece_.size() - kept}, read_);
    sum_.add({reinterpret_cast<const unsigned char*>(piece_.data()) + kept, piece_.size() - kept});
    read_ += piece_.size() - kept;
  }

  const std::string path_;
  std::shared_ptr<const File> file_;
  uint64_t size_;  // without the names, the section and the trailer
  ModelNames names_;
  std::optional<Trailer> trailer_;
  std::string section_;
  Checksum sum_;  // of what was read so far
  uint64_t read_ = 0;
  std::string piece_;
  size_t at_ = 0;
};

// Up to the first weight.
void ModelRows::Words::read_header(Model& model) {
  bool have_features = false;
  size_t classes = 0;
  std::set<std::string, std::less<>> seen;
  while (true) {
    const std::string_view key = word();
    if (seen.empty() && key.find_first_not_of("+-.,0123456789") == std::string_view::npos)
      fail(ErrorKind::input,
           "'{}' is not a model: it begins with '{}'; is the model named first, and the rows after it?", path_,
           key.substr(0, 40));
    if (!seen.emplace(key).second) refuse(fmt::format("its header has '{}' twice", key.substr(0, 40)));
    if (key == "solver_type") {
      model.solver_type = word();
    } else if (key == "nr_class") {
      classes = number<uint32_t>("number of classes");
      if (classes < 2 || classes > format::kMostLabels) refuse("its number of classes is impossible");
    } else if (key == "nr_feature") {
      model.features = number<uint64_t>("number of features");
      have_features = true;
    } else if (key == "bias") {
      model.bias = number<double>("bias");
    } else if (key == "label") {
      if (classes == 0) refuse("its labels come before their number");
      for (size_t i = 0; i < classes; ++i) model.labels.push_back(number<int32_t>("label"));
      if (std::set<int32_t>(model.labels.begin(), model.labels.end()).size() != classes)
        refuse("it has the same label twice");
    } else if (key == "w") {
      break;
    } else {
      refuse(fmt::format("its header has '{}'", key.substr(0, 40)));
    }
  }
  if (model.solver_type.empty() || model.labels.empty() || !have_features) refuse("its header is not complete");
  if (rest().size() < 2) read_on();
  if (rest().starts_with(' ') != has_section()) refuse("it was cut short or changed");
}

namespace {

// The section, or MODEL.json of 0.1.0: `path` is where it stands.
void take_metadata(const std::string& path, const Json& json, Model& model) {
  const double index_base = json.at("index_base").number();
  if (index_base != 0 && index_base != 1)
    fail(ErrorKind::damaged, "'{}' has the index base {}: only 0 and 1 are possible", path, index_base);
  model.index_base = static_cast<int>(index_base);
  model.normalized = json.at("normalized").flag();
  model.against_rest = json.at("against_rest").flag();
  if (const Json* const loss = json.find("loss"); loss != nullptr && loss->is_object())
    model.loss = loss_from(path, *loss);
  if (const Json* const multiclass = json.find("multiclass"); multiclass != nullptr) {
    if (multiclass->text() != kSoftmax)
      fail(ErrorKind::damaged, "'{}' has the multiclass method '{}', which is unknown to this version", path,
           multiclass->text());
    model.softmax = true;
  }
  if (const Json* const threshold = json.find("threshold"); threshold != nullptr) {
    model.threshold = threshold->number();
    if (!std::isfinite(*model.threshold) || model.labels.size() != 2)
      fail(ErrorKind::damaged, "'{}' has a decision threshold that cannot be: train the model again", path);
  }
  const Json* const pairs = json.find("calibration");
  if (pairs == nullptr) return;
  for (const Json& item : pairs->items()) {
    std::vector<double> pair;
    for (const Json& value : item.items()) pair.push_back(value.number());
    if (pair.size() != 2 || !std::isfinite(pair[0]) || !std::isfinite(pair[1]))
      fail(ErrorKind::damaged, "'{}' has a calibration that is not a slope and an offset: train the model again", path);
    model.calibration.push_back({.slope = pair[0], .offset = pair[1]});
  }
  if (!model.calibration.empty() && model.calibration.size() != model.columns())
    fail(ErrorKind::damaged, "'{}' has {} calibrations and the model {} columns: the two do not belong together", path,
         model.calibration.size(), model.columns());
}

Json parse_json(const std::string& path) {
  const std::vector<unsigned char> bytes = read_whole_file(path, kMostMetadata);
  return Json::parse(bytes);
}

// A model of 0.1.0 has in MODEL.json what others have in their section; beside LIBLINEAR's stands nothing of ours.
void read_old_metadata(const std::string& path, Model& model) {
  const std::string beside = model_json_path(path);
  if (path_kind(beside) != PathKind::file) return;
  if (!file_begins_as(beside, kModelJsonBeginning)) {
    model.warning = fmt::format("'{}' was not written by linblock, and is ignored", beside);
    return;
  }
  try {
    const Json json = parse_json(beside);
    if (json.contains("model_checksum")) {
      model.warning = fmt::format("'{}' is of another model than '{}', and is ignored", beside, path);
      return;
    }
    take_metadata(beside, json, model);
  } catch (const JsonError& error) {
    fail(ErrorKind::damaged, "'{}' cannot be understood: {}", beside, error.what());
  }
}

// Of the section alone: MODEL.json has no checksum, and a false bound would be a false certificate.
DualBounds bounds_from(const Json& json) {
  DualBounds bounds{.problem = json.at("problem").text()};
  for (const Json& item : json.at("duals").items()) {
    std::vector<double> pair;
    for (const Json& value : item.items()) pair.push_back(value.number());
    if (pair.size() != 2 || !std::isfinite(pair[1]) || pair[0] != std::floor(pair[0]) || std::abs(pair[0]) > INT32_MAX)
      throw JsonError("its bounds are not pairs of a label and a number");
    bounds.by_label[static_cast<int32_t>(pair[0])] = pair[1];
  }
  return bounds;
}

// What MODEL.json does not decide.
void take_checked(const std::string& path, const Json& json, Model& model) {
  if (const Json* const bounds = json.find("bounds"); bounds != nullptr) model.bounds = bounds_from(*bounds);
  const Json* const names = json.find("label_names");
  if (names == nullptr) return;
  try {
    model.label_names = LabelNames::from_text(names->text());
  } catch (const Error& error) {
    fail(ErrorKind::damaged, "'{}' is not a usable model: {}; train it again or restore it from a copy", path,
         error.sentence());
  }
  for (const int32_t label : model.labels)
    if (label < 0 || static_cast<size_t>(label) >= model.label_names.size())
      fail(ErrorKind::damaged,
           "'{}' is not a usable model: its label {} has no name; train it again or restore it from a copy", path,
           label);
}

Json parse_section(const std::string& path, std::string_view section) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::damaged, "'{}' is not a usable model: {}; train it again or restore it from a copy", path, why);
  };
  if (!section.starts_with(kSectionBeginning)) refuse("what follows its weights is not linblock's");
  section.remove_prefix(kSectionBeginning.size());
  int version = 0;
  const auto [end, error] = std::from_chars(section.data(), section.data() + section.size(), version);
  if (error != std::errc()) refuse("what follows its weights is not linblock's");
  if (version != kSectionVersion && version != kNamesVersion)
    refuse(fmt::format("it is of version {}, and this linblock knows version {}", version, kNamesVersion));
  section.remove_prefix(static_cast<size_t>(end - section.data()));
  Json json = Json::parse(section);
  if (json.contains("feature_names") != (version == kNamesVersion)) refuse("its version is not what it holds");
  return json;
}

ModelNames names_in(const Json& section) {
  const Json* const names = section.find("feature_names");
  return names == nullptr ? ModelNames() : ModelNames::from(*names);
}

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

// MODEL.json decides nothing. But who reads it should know when it is of another model: a run may have been killed
// between the two renames, or one of the two was copied without the other.
void look_beside(const std::string& path, uint64_t checksum, Model& model) {
  const std::string beside = model_json_path(path);
  if (path_kind(beside) != PathKind::file) return;
  bool same = false;
  try {
    same = parse_json(beside).at("model_checksum") == hex(checksum);
  } catch (const std::exception&) {
    same = false;
  }
  if (!same)
    model.warning =
        fmt::format("'{}' does not describe '{}': it is of another model or damaged. It is not needed", beside, path);
}

}  // namespace

// A model of the binary form, some of it in memory at a time.
class ModelRows::Binary {
 public:
  explicit Binary(const std::string& path)
      : path_(path), file_(std::make_shared<const File>(File::open_read(path))), size_(file_->size()) {}

  void read_header(Model& model) {
    std::string head(BinaryHead::kBytes, ' ');
    if (size_ < head.size() + sizeof(uint64_t)) refuse("it is cut short");
    read(head);
    const auto* const at = reinterpret_cast<const unsigned char*>(head.data()) + kBinaryModelBeginning.size();
    const auto version = load_le<uint32_t>(at);
    if (version != BinaryHead::kVersion && version != BinaryHead::kVersionWithNames)
      refuse(fmt::format("it is of version {}, and this linblock knows version {}", version,
                         BinaryHead::kVersionWithNames));
    const auto bytes = load_le<uint32_t>(at + sizeof(uint32_t));
    if (bytes > kMostMetadata || bytes > size_ - head.size() - sizeof(uint64_t)) refuse("it is cut short");
    std::string text(bytes, ' ');
    read(text);
    try {
      const Json json = Json::parse(std::string_view(text));
      model.solver_type = json.at("solver_type").text();
      for (const Json& label : json.at("labels").items()) model.labels.push_back(integer<int32_t>(label, "label"));
      model.features = integer<uint64_t>(json.at("features"), "number of features");
      model.bias = json.at("bias").number();
      if (model.labels.size() < 2 || model.labels.size() > format::kMostLabels ||
          std::set<int32_t>(model.labels.begin(), model.labels.end()).size() != model.labels.size())
        refuse("its labels are impossible");
      if (!std::isfinite(model.bias)) refuse("its bias is not finite");
      take_metadata(path_, json, model);
      take_checked(path_, json, model);
      names_ = names_in(json);
      if (names_.empty() != (version == BinaryHead::kVersion)) refuse("its version is not what it holds");
    } catch (const JsonError& wrong) {
      refuse(wrong.what());
    }
    if (names_.bytes > size_ - at_ - sizeof(uint64_t)) refuse("it is cut short");
    weights_end_ = size_ - sizeof(uint64_t) - names_.bytes;
    const uint64_t left = weights_end_ - at_;
    const uint64_t rows = model.features + (model.bias >= 0 ? 1 : 0);
    if (model.features > format::kLargestIndex || left != rows * model.columns() * sizeof(float))
      refuse(fmt::format("it claims {} features, and has other weights", model.features));
    if (!names_.empty()) model.feature_names = names_.source(file_, weights_end_);
  }

  void next(std::span<float> row) {
    const size_t bytes = row.size() * sizeof(float);
    if (piece_.size() - used_ < bytes) read_on(bytes);
    for (float& weight : row) {
      weight = load_le<float>(reinterpret_cast<const unsigned char*>(piece_.data()) + used_);
      used_ += sizeof(float);
      if (!std::isfinite(weight)) refuse("one of its weights is not finite");
    }
  }

  // After the last weight.
  void check() {
    add_to_sum(*file_, weights_end_, names_.bytes, sum_);
    const uint64_t sum = sum_.value();
    if (checksum() != sum) refuse("its checksum does not match");
    names_.each(*file_, weights_end_, [](uint64_t, std::string_view) {});
  }
  // As it stands at the end; next() finds out whether it is true.
  uint64_t checksum() const {
    std::array<unsigned char, sizeof(uint64_t)> bytes{};
    file_->read_exactly_at(bytes, size_ - bytes.size());
    return load_le<uint64_t>(bytes.data());
  }

 private:
  template <typename Integer>
  Integer integer(const Json& json, const char* what) const {
    constexpr double kMost =
        std::min(static_cast<double>(std::numeric_limits<Integer>::max()), static_cast<double>(format::kLargestIndex));
    const double value = json.number();
    if (value != std::floor(value) || value < static_cast<double>(std::numeric_limits<Integer>::min()) || value > kMost)
      refuse(fmt::format("its {} is impossible", what));
    return static_cast<Integer>(value);
  }

  void read(std::string& to) {
    file_->read_exactly_at({reinterpret_cast<unsigned char*>(to.data()), to.size()}, at_);
    sum_.add(bytes_of(to));
    at_ += to.size();
  }

  void read_on(size_t least) {
    std::string rest = piece_.substr(used_);
    const uint64_t left = weights_end_ - at_;
    piece_.resize(std::min<uint64_t>(std::max<uint64_t>(kPieceBytes, least), left));
    read(piece_);
    piece_.insert(0, rest);
    used_ = 0;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::damaged, "'{}' is not a usable model: {}; train it again or restore it from a copy", path_, why);
  }

  const std::string path_;
  std::shared_ptr<const File> file_;
  uint64_t size_;
  uint64_t weights_end_ = 0;
  ModelNames names_;
  uint64_t at_ = 0;
  Checksum sum_;
  std::string piece_;
  size_t used_ = 0;
};

namespace {

// Several sums, so that the memory is asked for several weights at a time.
double sum_of_products(std::span<const uint32_t> index, std::span<const float> value, std::span<const float> weights,
                       uint32_t base) {
  std::array<double, 4> sums{};
  const auto product = [&](size_t k) { return double{weights[index[k] - base]} * double{value[k]}; };
  size_t k = 0;
  for (; k + sums.size() <= index.size(); k += sums.size())
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += product(k + i);
  for (; k < index.size(); ++k) sums[0] += product(k);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

}  // namespace

void Model::decide(std::span<const uint32_t> index, std::span<const float> value, std::span<double> decisions,
                   uint64_t& unknown) const {
  const size_t width = columns();
  const auto base = static_cast<uint32_t>(index_base);
  // Indices increase: the features that the model does not know are the first (below the base) and the last.
  size_t begin = 0;
  size_t end = index.size();
  while (begin < end && index[begin] < base) ++begin;
  while (begin < end && index[end - 1] - base >= features) --end;
  unknown += index.size() - (end - begin);
  if (width == 1) {
    decisions[0] = sum_of_products(index.subspan(begin, end - begin), value.subspan(begin), weights, base);
  } else {
    std::fill(decisions.begin(), decisions.end(), 0.0);
    for (size_t k = begin; k < end; ++k) {
      const float* const row = weights.data() + (index[k] - base) * width;
      for (size_t c = 0; c < width; ++c) decisions[c] += double{row[c]} * double{value[k]};
    }
  }
  if (bias >= 0)
    for (size_t c = 0; c < width; ++c) decisions[c] += bias * double{weights[features * width + c]};
}

size_t place_of_label(std::span<const double> decisions, std::optional<double> threshold) {
  if (decisions.size() == 1) return decisions[0] > threshold.value_or(0) ? 0 : 1;
  if (threshold) return decisions[0] - decisions[1] > *threshold ? 0 : 1;
  return static_cast<size_t>(std::max_element(decisions.begin(), decisions.end()) - decisions.begin());
}

int32_t Model::label_of(std::span<const double> decisions) const {
  return labels[place_of_label(decisions, threshold)];
}

void Model::probabilities(std::span<const double> decisions, std::span<double> out) const {
  constexpr Sigmoid kLogistic = {.slope = -1, .offset = 0};  // what logistic regression means by a decision
  const auto sigmoid = [&](size_t c) -> const Sigmoid& { return calibration.empty() ? kLogistic : calibration[c]; };
  if (decisions.size() == 1) {
    out[0] = sigmoid(0).probability(decisions[0]);
    out[1] = 1 - out[0];
    return;
  }
  // In logarithms, so that shares that are all next to nothing keep their proportions.
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < decisions.size(); ++c) {
    out[c] = softmax ? decisions[c] : sigmoid(c).log_probability(decisions[c]);
    largest = std::max(largest, out[c]);
  }
  double sum = 0;
  for (double& share : out) sum += share = std::exp(share - largest);
  for (double& share : out) share /= sum;
}

Model make_model(const Store& store, std::vector<float> weights, std::vector<int32_t> labels, double bias,
                 std::string solver_type) {
  Model model;
  model.solver_type = std::move(solver_type);
  model.labels = std::move(labels);
  model.label_names = store.info().label_names;
  if (!store.feature_names().empty())
    model.feature_names = [names = store.feature_names()](const FeatureNameVisitor& visit) { names.each(visit); };
  model.bias = bias;
  model.index_base = store.info().index_base;
  model.normalized = store.info().normalized;
  model.features = store.info().features();
  model.weights = std::move(weights);
  if (!model.weights.empty()) sort_by_index(store, model.weights, model.columns());
  return model;
}

namespace {

// Weights of some rows, by row and then by column.
using RowReader = std::function<void(uint64_t first, std::span<float> out)>;

// Numbers become text in pieces of fixed size, on all threads, while the pieces before them are written in their order.
void write_weights(const std::function<void(const std::string&)>& write, uint64_t rows, size_t width,
                   const RowReader& read, const Team& team) {
  const uint64_t rows_per_piece = std::max<uint64_t>(1, kWeightsPerPiece / width);
  std::vector<std::string> next(kPlannedThreads);
  std::vector<std::string> ready;
  const auto format = [&](uint64_t begin, std::string& text) {
    text.clear();
    std::vector<float> weights((std::min(rows, begin + rows_per_piece) - begin) * width);
    read(begin, weights);
    for (size_t i = 0; i < weights.size(); ++i) {
      append_number(double{weights[i]}, text);
      text += ' ';
      if ((i + 1) % width == 0) text += '\n';
    }
  };
  for (uint64_t first = 0; first < rows || !ready.empty();) {
    const uint64_t pieces = std::min<uint64_t>(next.size(), (rows - first + rows_per_piece - 1) / rows_per_piece);
    team.for_each(pieces + 1, [&](size_t job) {
      if (job > 0) return format(first + (job - 1) * rows_per_piece, next[job - 1]);
      for (const std::string& text : ready) write(text);
    });
    first = std::min(rows, first + pieces * rows_per_piece);
    std::swap(ready, next);
    ready.resize(pieces);
    next.resize(kPlannedThreads);
  }
}

void write_binary_weights(const std::function<void(const std::string&)>& write, uint64_t rows, size_t width,
                          const RowReader& read) {
  static_assert(std::endian::native == std::endian::little);
  const uint64_t rows_per_piece = std::max<uint64_t>(1, kPieceBytes / (width * sizeof(float)));
  std::vector<float> weights;
  for (uint64_t first = 0; first < rows; first += rows_per_piece) {
    weights.resize((std::min(rows, first + rows_per_piece) - first) * width);
    read(first, weights);
    write({reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)});
  }
}

// The names that the file gets: of features with a weight that is not 0 in some column.
void each_line_of_names(const Model& model, uint64_t rows, const RowReader& read,
                        const std::function<void(const std::string&)>& line) {
  if (!model.feature_names) return;
  const size_t width = model.columns();
  const uint64_t rows_per_piece = std::max<uint64_t>(1, kWeightsPerPiece / width);
  const auto base = static_cast<uint64_t>(model.index_base);
  std::vector<float> weights;
  uint64_t begin = 0;
  uint64_t end = 0;
  model.feature_names([&](uint64_t index, std::string_view name) {
    if (index < base || index - base >= model.features) return;
    const uint64_t row = index - base;
    if (row < begin || row >= end) {
      begin = row;
      end = std::min(rows, row + rows_per_piece);
      weights.resize((end - begin) * width);
      read(begin, weights);
    }
    const std::span<const float> own = std::span(weights).subspan((row - begin) * width, width);
    if (std::any_of(own.begin(), own.end(), [](float weight) { return weight != 0; }))
      line(ModelNames::line(index, name));
  });
}

// What a run that was killed has left there, in whichever form, is ours to replace.
File create_model_file(const std::string& path) {
  return File::create(path, file_begins_as(path, kBinaryModelBeginning) ? kBinaryModelBeginning : kModelBeginning);
}

// Everything that may fail for lack of space comes before the first rename. Returns how many names are left out.
uint64_t write_model(const std::string& path, const Model& model, uint64_t rows, const RowReader& read,
                     const std::string& metadata_json, const Team& team, ModelFormat form) {
  const std::string temporary = temporary_path(path);
  const std::string beside = model_json_path(path);
  ModelNames names;
  each_line_of_names(model, rows, read, [&](const std::string& line) {
    ++names.count;
    names.bytes += line.size();
  });
  const uint64_t left_out = names.fit() ? 0 : names.count;
  if (!names.fit()) names = {};
  File file = create_model_file(temporary);
  File json_file;
  try {
    Checksum sum;
    const auto write = [&](const std::string& text) {
      file.write_next(bytes_of(text));
      sum.add(bytes_of(text));
    };
    const auto write_names = [&] {
      if (names.empty()) return;
      std::string lines;
      each_line_of_names(model, rows, read, [&](const std::string& line) {
        lines += line;
        if (lines.size() < kPieceBytes) return;
        write(lines);
        lines.clear();
      });
      write(lines);
    };
    if (form == ModelFormat::binary) {
      write(binary_head(model, names));
      write_binary_weights(write, rows, model.columns(), read);
      write_names();
      std::array<unsigned char, sizeof(uint64_t)> bytes{};
      store_le(bytes.data(), sum.value());
      file.write_next(bytes);
    } else {
      write(header(model));
      write_weights(write, rows, model.columns(), read, team);
      write_names();
      const std::string section = section_of(model, names);
      write(section);
      file.write_next(bytes_of(Trailer{.checksum = sum.value(), .section_bytes = section.size()}.text()));
    }
    file.sync();
    file.close();
    Json metadata = Json::parse(metadata_json);
    metadata["model_checksum"] = hex(sum.value());
    json_file = File::create(temporary_path(beside), kModelJsonBeginning);
    json_file.write_next(bytes_of(metadata.dump(1) + "\n"));
    json_file.sync();
    json_file.close();
    // Once more: hours may have passed since the caller looked.
    if (!may_be_model(path)) refuse_foreign(path);
    if (!file_begins_as(beside, kModelJsonBeginning)) refuse_foreign(beside);
    rename_path(temporary, path);
  } catch (...) {
    remove_quietly(temporary);
    if (!json_file.path().empty()) remove_quietly(temporary_path(beside));
    throw;
  }
  try {
    rename_path(temporary_path(beside), beside);
    sync_directory(parent_directory(path));
  } catch (const Error& error) {
    throw PartlySaved(
        error.kind(),
        fmt::format("the model is saved in '{}', but something beside it is not: {}", path, error.sentence()),
        error.remedies());
  }
  return left_out;
}

}  // namespace

namespace {

bool is_binary(const std::string& path) {
  if (path_kind(path) != PathKind::file) return false;
  const File file = File::open_read(path);
  std::string text(std::min<uint64_t>(kBinaryModelBeginning.size(), file.size()), ' ');
  file.read_exactly_at({reinterpret_cast<unsigned char*>(text.data()), text.size()}, 0);
  return text == kBinaryModelBeginning;
}

}  // namespace

bool may_be_model(const std::string& path) {
  return file_begins_as(path, kModelBeginning) || file_begins_as(path, kBinaryModelBeginning);
}

uint64_t save_model(const std::string& path, const Model& model, const std::string& metadata_json, const Team& team,
                    ModelFormat form) {
  const size_t width = model.columns();
  return write_model(
      path, model, model.weights.size() / width,
      [&](uint64_t first, std::span<float> out) {
        std::copy_n(model.weights.begin() + static_cast<ptrdiff_t>(first * width), out.size(), out.begin());
      },
      metadata_json, team, form);
}

uint64_t save_model(const std::string& path, const Model& model, const ModelColumns& columns,
                    const std::string& metadata_json, const Team& team, ModelFormat form) {
  const size_t width = columns.size();
  return write_model(
      path, model, columns.rows(),
      [&](uint64_t first, std::span<float> out) {
        std::vector<float> column(out.size() / width);
        for (size_t c = 0; c < width; ++c) {
          columns.read(c, first, column);
          for (size_t i = 0; i < column.size(); ++i) out[i * width + c] = column[i];
        }
      },
      metadata_json, team, form);
}

ModelRows::ModelRows(const std::string& path) {
  if (path_kind(path) == PathKind::directory)
    fail(ErrorKind::input, {say("name the file that 'linblock train' wrote")}, "'{}' is a folder, not a model", path);
  if (is_binary(path)) {
    binary_ = std::make_unique<Binary>(path);
    binary_->read_header(header_);
    look_beside(path, binary_->checksum(), header_);
    if (rows() == 0) finish();
    return;
  }
  words_ = std::make_unique<Words>(path);
  Json section;
  if (words_->has_section()) {
    try {
      section = parse_section(path, words_->section());
      if (const ModelNames names = names_in(section); !names.empty()) header_.feature_names = words_->leave_out(names);
    } catch (const JsonError& wrong) {
      words_->refuse(wrong.what());
    }
  }
  words_->read_header(header_);
  // A weight takes two characters at least, so the file bounds what may be allocated.
  if (header_.features > format::kLargestIndex || rows() * header_.columns() > words_->left() / 2 + 1)
    words_->refuse(fmt::format("it claims {} features, more than it can hold", header_.features));
  if (words_->has_section()) {
    try {
      take_metadata(path, section, header_);
      take_checked(path, section, header_);
    } catch (const JsonError& wrong) {
      words_->refuse(wrong.what());
    }
    look_beside(path, words_->checksum(), header_);
  } else {
    read_old_metadata(path, header_);
  }
  if (rows() == 0) finish();
}

ModelRows::~ModelRows() = default;

void ModelRows::next(std::span<float> row) {
  if (binary_) {
    binary_->next(row);
    if (++row_ == rows()) finish();
    return;
  }
  for (float& weight : row) {
    weight = static_cast<float>(words_->number<double>("weight"));
    if (!std::isfinite(weight)) words_->refuse("its weight is too large for a 32-bit float");
  }
  if (++row_ == rows()) finish();
}

void ModelRows::finish() {
  if (binary_) {
    binary_->check();
    return;
  }
  if (!words_->at_end()) words_->refuse("it has more weights than features");
  words_->check();
}

Model load_model(const std::string& path) {
  ModelRows rows(path);
  Model model = rows.header();
  const size_t width = model.columns();
  model.weights.resize(rows.rows() * width);
  for (uint64_t row = 0; row < rows.rows(); ++row) rows.next(std::span(model.weights).subspan(row * width, width));
  return model;
}

uint64_t convert_model(const std::string& from, const std::string& to, ModelFormat form, const Team& team) {
  ModelRows rows(from);
  std::string metadata = "{\"program\": \"linblock\"}";
  if (rows.header().warning.empty() && path_kind(model_json_path(from)) == PathKind::file)
    metadata = parse_json(model_json_path(from)).dump(1);
  // Rows come in their order: text is formatted in pieces on several threads, each of which asks for its own.
  Model model = rows.header();
  model.weights.resize(rows.rows() * model.columns());
  for (uint64_t row = 0; row < rows.rows(); ++row)
    rows.next(std::span(model.weights).subspan(row * model.columns(), model.columns()));
  return save_model(to, model, metadata, team, form);
}

}  // namespace linblock
