#include "store/core/manifest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "base/checksum.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "store/core/store_files.h"

namespace linblock {

namespace {

constexpr double kLeastKnownShare = 1e-6;  // of a sum of squares, that is left when rows are removed

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

// Only what hex() writes: a flipped bit must not pass as another spelling of the same number.
uint64_t from_hex(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || hex(value) != text)
    fail(ErrorKind::damaged, "'{}' is not a number in 16 hexadecimal digits", text);
  return value;
}

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

const char* axis_name(Axis axis) {
  switch (axis) {
    case Axis::rows: return "rows";
    case Axis::features: return "features";
    case Axis::forest: return "forest";
  }
  return "";
}

Axis axis_from(const std::string& name) {
  for (const Axis axis : {Axis::rows, Axis::features, Axis::forest})
    if (name == axis_name(axis)) return axis;
  fail(ErrorKind::damaged, "its axis is not known");
}

Json forest_to_json(const ForestInfo& forest) {
  Json covered = Json::array();
  for (const ForestInfo::Covered& segment : forest.covered)
    covered.push_back({{"number", segment.number}, {"directory_checksum", hex(segment.directory_checksum)}});
  Json files = Json::array();
  for (const ForestInfo::Trees& file : forest.files)
    files.push_back({{"number", file.number},
                     {"bytes", file.bytes},
                     {"trees", file.trees},
                     {"nodes", file.nodes},
                     {"checksum", hex(file.checksum)},
                     {"nearest_angle", file.nearest_angle},
                     {"mean_angle", file.mean_angle}});
  return {{"rows_seal", hex(forest.rows_seal)},
          {"removed_number", forest.removed_number},
          {"removed_checksum", hex(forest.removed_checksum)},
          {"covered", covered},
          {"tree_rows", forest.tree_rows},
          {"branch", forest.branch},
          {"bias", forest.bias},
          {"page_bytes", forest.page_bytes},
          {"files", files}};
}

// Counts of things that take at least a bit each somewhere: sums and products of a few of them do not overflow.
constexpr uint64_t kMostOfAnything = uint64_t{1} << 56;

// A whole number within a limit.
uint64_t whole(const Json& json, const char* name, uint64_t limit = kMostOfAnything) {
  const Json& value = json.at(name);
  if (!value.is_unsigned())
    fail(ErrorKind::damaged, "its {} is '{}', not a whole number", name, value.dump().substr(0, 40));
  return checked_size(value.whole(), limit, fmt::format("its {}", name));
}

double finite(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_number() || !std::isfinite(value.number()))
    fail(ErrorKind::damaged, "its {} is '{}', not a number", name, value.dump().substr(0, 40));
  return value.number();
}

ForestInfo forest_from_json(const Json& json) {
  ForestInfo forest;
  forest.rows_seal = from_hex(json.at("rows_seal").text());
  forest.removed_number = whole(json, "removed_number");
  forest.removed_checksum = from_hex(json.at("removed_checksum").text());
  for (const Json& entry : json.at("covered").items())
    forest.covered.push_back(
        {.number = whole(entry, "number"), .directory_checksum = from_hex(entry.at("directory_checksum").text())});
  forest.tree_rows = whole(json, "tree_rows");
  forest.branch = static_cast<uint32_t>(whole(json, "branch", format::kMostBranch));
  forest.bias = finite(json, "bias");
  forest.page_bytes = whole(json, "page_bytes");
  for (const Json& entry : json.at("files").items())
    forest.files.push_back({.number = whole(entry, "number"),
                            .bytes = whole(entry, "bytes"),
                            .trees = whole(entry, "trees", UINT32_MAX),
                            .nodes = whole(entry, "nodes", UINT32_MAX),
                            .checksum = from_hex(entry.at("checksum").text()),
                            .nearest_angle = finite(entry, "nearest_angle"),
                            .mean_angle = finite(entry, "mean_angle")});
  return forest;
}

Json tags_to_json(const std::vector<TaggedRows>& tags) {
  Json list = Json::array();
  for (const TaggedRows& tagged : tags)
    list.push_back({{"tag", tagged.tag}, {"first_row", tagged.first_row}, {"ids", tagged.ids}, {"rows", tagged.rows}});
  return list;
}

std::vector<TaggedRows> tags_from_json(const Json& json) {
  std::vector<TaggedRows> tags;
  for (const Json& entry : json.items())
    tags.push_back({.tag = entry.at("tag").text(),
                    .first_row = whole(entry, "first_row"),
                    .ids = whole(entry, "ids"),
                    .rows = whole(entry, "rows")});
  return tags;
}

Json to_json(const StoreInfo& info) {
  std::string labels;  // as one string: 65,536 of them as JSON values would take megabytes
  for (const auto& [label, rows] : info.labels)
    labels += fmt::format("{}{}:{}", labels.empty() ? "" : " ", label, rows);
  Json segments = Json::array();
  for (const SegmentInfo& segment : info.segments)
    segments.push_back({{"number", segment.number},
                        {"bytes", segment.bytes},
                        {"chunks", segment.chunks},
                        {"rows", segment.rows},
                        {"nonzeros", segment.nonzeros},
                        {"first_row", segment.first_row},
                        {"directory_checksum", hex(segment.directory_checksum)}});
  Json json = {{"axis", axis_name(info.axis)},
               {"seal", hex(info.seal)},
               {"seed", info.seed},
               {"buckets", info.buckets},
               {"chunk_bytes", info.chunk_bytes},
               {"width_set", info.width_set},
               {"codec", codec_name(info.codec)},
               {"codec_reason", info.codec_reason},
               {"index_base", info.index_base},
               {"index_base_given", info.index_base_given},
               {"normalized", info.normalized},
               {"weighted", info.weighted},
               {"has_features", info.has_features},
               {"largest_index", info.largest_index},
               {"rows", info.rows},
               {"nonzeros", info.nonzeros},
               {"next_row_id", info.next_row_id},
               {"frequent_features", info.frequent_features},
               {"features_checksum", hex(info.features_checksum)},
               {"labels", labels},
               {"segments", segments}};
  if (info.values)
    json["values"] = {
        {"squares", info.values->squares}, {"negative", info.values->negative}, {"content", hex(info.values->content)}};
  if (!info.label_names.empty()) json["label_names"] = info.label_names.text();
  if (info.feature_names.count > 0)
    json["feature_names"] = {{"count", info.feature_names.count},
                             {"named", info.feature_names.named},
                             {"bytes", info.feature_names.bytes},
                             {"checksum", hex(info.feature_names.checksum)}};
  if (info.next_segment > 0) json["next_segment"] = info.next_segment;
  if (info.removed.number > 0)
    json["removed"] = {{"number", info.removed.number},
                       {"rows", info.removed.rows},
                       {"nonzeros", info.removed.nonzeros},
                       {"checksum", hex(info.removed.checksum)}};
  if (!info.tags.empty()) json["tags"] = tags_to_json(info.tags);
  if (info.axis == Axis::features) {
    json["rows_id"] = hex(info.rows_id);
    json["columns"] = info.columns;
    json["row_facts"] = {{"number", info.row_facts.number},
                         {"rows", info.row_facts.rows},
                         {"weighted", info.row_facts.weighted},
                         {"checksum", hex(info.row_facts.checksum)}};
  }
  if (info.axis == Axis::forest) {
    json["rows_id"] = hex(info.rows_id);
    json["forest"] = forest_to_json(info.forest);
  }
  return json;
}

// "-1:12500 1:12500"
std::map<int32_t, uint64_t> labels_from(const std::string& text) {
  std::map<int32_t, uint64_t> labels;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int32_t label = 0;
    uint64_t rows = 0;
    const auto [colon, bad_label] = std::from_chars(at, end, label);
    if (bad_label != std::errc() || colon == end || *colon != ':')
      fail(ErrorKind::damaged, "its labels are not a list");
    const auto [next, bad_rows] = std::from_chars(colon + 1, end, rows);
    if (bad_rows != std::errc() || (next != end && *next != ' ')) fail(ErrorKind::damaged, "its labels are not a list");
    labels[label] = rows;
    at = next == end ? end : next + 1;
  }
  return labels;
}

SegmentInfo segment_from_json(const Json& json) {
  return {.number = whole(json, "number"),
          .bytes = whole(json, "bytes"),
          // A reader holds all entries of the chunk table, whose size in bytes is a 32-bit number.
          .chunks = whole(json, "chunks", UINT32_MAX / format::kDirectoryEntryBytes),
          .rows = whole(json, "rows"),
          .nonzeros = whole(json, "nonzeros"),
          .first_row = whole(json, "first_row"),
          .directory_checksum = from_hex(json.at("directory_checksum").text())};
}

ValueSums values_from_json(const Json& json) {
  const ValueSums values{.squares = finite(json, "squares"),
                         .negative = json.at("negative").flag(),
                         .content = from_hex(json.at("content").text())};
  if (values.squares < 0) fail(ErrorKind::damaged, "its sum of squares is below 0");
  return values;
}

FeatureNamesInfo feature_names_from_json(const Json& json) {
  const FeatureNamesInfo names{.count = whole(json, "count", uint64_t{format::kLargestIndex} + 1),
                               .named = whole(json, "named"),
                               .bytes = whole(json, "bytes"),
                               .checksum = from_hex(json.at("checksum").text())};
  const uint64_t without_text = format::kFeatureNamesHeaderBytes + names.count * sizeof(uint16_t);
  if (names.named == 0 || names.named > names.count || names.bytes < without_text + names.named ||
      names.bytes > without_text + names.named * format::kMostFeatureNameBytes)
    fail(ErrorKind::damaged, "its names of features do not add up");
  return names;
}

StoreInfo from_json(const Json& json) {
  StoreInfo info;
  info.axis = axis_from(json.at("axis").text());
  info.seal = from_hex(json.at("seal").text());
  info.seed = whole(json, "seed", UINT64_MAX);
  info.buckets = static_cast<uint32_t>(whole(json, "buckets", format::kMostBuckets));
  info.chunk_bytes = whole(json, "chunk_bytes", format::kLargestChunkBytes);
  info.width_set = static_cast<unsigned>(whole(json, "width_set", format::kWidthSets.size() - 1));
  info.codec = codec_of(json.at("codec").text());
  info.codec_reason = json.at("codec_reason").text();
  info.index_base = static_cast<int>(whole(json, "index_base", 1));
  info.index_base_given = json.at("index_base_given").flag();
  info.normalized = json.at("normalized").flag();
  info.weighted = json.at("weighted").flag();
  info.has_features = json.at("has_features").flag();
  info.largest_index = static_cast<uint32_t>(whole(json, "largest_index", format::kLargestIndex));
  info.rows = whole(json, "rows");
  info.nonzeros = whole(json, "nonzeros");
  info.next_row_id = whole(json, "next_row_id");
  info.frequent_features = whole(json, "frequent_features", format::kMostFrequent);
  info.features_checksum = from_hex(json.at("features_checksum").text());
  info.labels = labels_from(json.at("labels").text());
  if (json.contains("label_names")) {
    info.label_names = LabelNames::from_text(json.at("label_names").text());
    for (const auto& [label, rows] : info.labels)
      if (label < 0 || static_cast<size_t>(label) >= info.label_names.size())
        fail(ErrorKind::damaged, "its label {} has no name", label);
  }
  for (const Json& entry : json.at("segments").items()) info.segments.push_back(segment_from_json(entry));
  if (json.contains("values")) info.values = values_from_json(json.at("values"));
  if (json.contains("next_segment")) info.next_segment = whole(json, "next_segment");
  if (json.contains("removed")) {
    const Json& removed = json.at("removed");
    info.removed = {.number = whole(removed, "number"),
                    .rows = whole(removed, "rows"),
                    .nonzeros = whole(removed, "nonzeros"),
                    .checksum = from_hex(removed.at("checksum").text())};
  }
  if (json.contains("feature_names")) info.feature_names = feature_names_from_json(json.at("feature_names"));
  if (json.contains("tags")) info.tags = tags_from_json(json.at("tags"));
  if (info.axis == Axis::features) {
    info.rows_id = from_hex(json.at("rows_id").text());
    info.columns = whole(json, "columns");
    const Json& facts = json.at("row_facts");
    info.row_facts = {.number = whole(facts, "number"),
                      .rows = whole(facts, "rows", format::kLargestIndex),
                      .weighted = facts.at("weighted").flag(),
                      .checksum = from_hex(facts.at("checksum").text())};
  }
  if (info.axis == Axis::forest) {
    info.rows_id = from_hex(json.at("rows_id").text());
    info.forest = forest_from_json(json.at("forest"));
  }
  if (info.axis != Axis::rows && info.feature_names.count > 0)
    fail(ErrorKind::damaged, "only a store of rows has names of features");
  if (info.buckets == 0) fail(ErrorKind::damaged, "it has no buckets");
  if (info.chunk_bytes < format::kSmallestChunkBytes)
    fail(ErrorKind::damaged, "its chunk_bytes are {}, and {} are the least", info.chunk_bytes,
         format::kSmallestChunkBytes);
  if (info.has_features && info.largest_index < static_cast<uint32_t>(info.index_base))
    fail(ErrorKind::damaged, "its largest index is below its index base");
  return info;
}

}  // namespace

namespace {

// Of everything that a row is to a learner, however a chunk keeps it: equal values may stand there once, or all of
// them.
uint64_t hash_of(const EncodedRow& row) {
  const auto bytes_of = [](std::span<const float> values) {
    return std::span(reinterpret_cast<const unsigned char*>(values.data()), values.size_bytes());
  };
  const float one = 1;
  std::span<const float> values = row.values;
  if (row.equal && values.empty() && row.count > 0) values = {&one, 1};
  if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end())
    values = values.first(std::min<size_t>(1, values.size()));
  const uint64_t head = mix64(static_cast<uint32_t>(row.label), std::bit_cast<uint32_t>(row.weight));
  const uint64_t indices = checksum(row.indices, mix64(head, uint64_t{row.count} * 2 + (row.wide ? 1 : 0)));
  return checksum(bytes_of(values), indices);
}

}  // namespace

void ValueSums::add(const EncodedRow& row) {
  content += hash_of(row);
  if (row.equal) {  // and then only the first value is there, or none of them where all are 1
    const double value = row.values.empty() ? 1 : row.values.front();
    squares += row.count * value * value;
    negative = negative || (row.count > 0 && value < 0);
    return;
  }
  std::array<double, 4> sums{};  // several, so that no addition waits for the one before
  bool below = false;
  const auto take = [&](size_t lane, float value) {
    sums[lane] += double{value} * double{value};
    below |= value < 0;
  };
  size_t k = 0;
  for (; k + sums.size() <= row.values.size(); k += sums.size())
    for (size_t lane = 0; lane < sums.size(); ++lane) take(lane, row.values[k + lane]);
  for (; k < row.values.size(); ++k) take(0, row.values[k]);
  squares += (sums[0] + sums[2]) + (sums[1] + sums[3]);
  negative = negative || below;
}

bool ValueSums::subtract(const ValueSums& gone) {
  content -= gone.content;
  const double left = squares - gone.squares;
  const bool known = left > kLeastKnownShare * squares;
  squares = left;
  return known;
}

uint64_t RowFactsInfo::bytes() const {
  return format::kRowFactsHeaderBytes + rows * (weighted ? format::kWeightedFactBytes : format::kFactBytes);
}

uint64_t ForestInfo::trees() const {
  uint64_t sum = 0;
  for (const Trees& file : files) sum += file.trees;
  return sum;
}

uint64_t ForestInfo::nodes() const {
  uint64_t sum = 0;
  for (const Trees& file : files) sum += file.nodes;
  return sum;
}

double ForestInfo::contrast() const {
  double nearest = 0;
  double mean = 0;
  for (const Trees& file : files) {
    nearest += file.nearest_angle;
    mean += file.mean_angle;
  }
  return mean > 0 ? std::clamp(1 - nearest / mean, 0.0, 1.0) : 0;
}

uint64_t StoreInfo::bytes() const {
  uint64_t sum = 16 + 4 * frequent_features + feature_names.bytes;
  for (const ForestInfo::Trees& file : forest.files) sum += file.bytes;
  if (axis == Axis::features) sum += row_facts.bytes();
  if (removed.rows > 0) sum += format::kRemovedHeaderBytes + sizeof(uint64_t) * removed.rows;
  for (const SegmentInfo& segment : segments) sum += segment.bytes + segment.chunks * format::kDirectoryEntryBytes;
  return sum;
}

std::string segment_path(const std::string& store, uint64_t number) {
  return fmt::format("{}/segment-{:06}.rows", store, number);
}
std::string directory_path(const std::string& store, uint64_t number) {
  return fmt::format("{}/segment-{:06}.directory", store, number);
}
std::string removed_path(const std::string& store, uint64_t number) {
  return fmt::format("{}/removed-{:06}", store, number);
}
std::string row_facts_path(const std::string& columns, uint64_t number) {
  return fmt::format("{}/rows-{:06}", columns, number);
}
std::string spill_path(const std::string& columns, uint64_t number) {
  return fmt::format("{}/spill-{:06}", columns, number);
}
std::string forest_path(const std::string& index, uint64_t number) {
  return fmt::format("{}/forest-{:06}", index, number);
}
std::string columns_path(const std::string& store) { return store + "/" + format::kColumnsName; }
std::string index_path(const std::string& store) { return store + "/" + format::kIndexName; }
std::string manifest_path(const std::string& store) { return store + "/" + format::kManifestName; }
std::string features_path(const std::string& store) { return store + "/" + format::kFeaturesName; }

std::string feature_names_path(const std::string& store) { return store + "/" + format::kFeatureNamesName; }

uint32_t manifest_version(const StoreInfo& info) {
  const bool old = info.tags.empty() && info.label_names.empty() && info.feature_names.count == 0;
  return old ? format::kVersion : format::kManifestVersion;
}

// The first line, "linblock-store VERSION CHECKSUM BYTES", covers the JSON behind it.
void write_manifest(const std::string& store, StoreInfo& info) {
  std::string text = to_json(info).dump(1) + "\n";
  info.id = checksum(bytes_of(text));
  text.insert(0,
              fmt::format("{} {} {} {}\n", format::kManifestMagic, manifest_version(info), hex(info.id), text.size()));
  replace_file(manifest_path(store), bytes_of(text), format::kManifestMagic);
}

StoreInfo read_manifest(const std::string& store) {
  const std::string path = manifest_path(store);
  if (path_kind(store) == PathKind::absent)
    fail(ErrorKind::input, {say("make a store with 'linblock pack INPUT -o {}'", store)}, "'{}' does not exist", store);
  if (path_kind(store) == PathKind::directory && path_kind(path) == PathKind::absent)
    fail(ErrorKind::input, "'{}' is a folder but not a linblock store: it has no {}", store, format::kManifestName);
  if (path_kind(store) != PathKind::directory)
    fail(ErrorKind::input, {say("make one from it with 'linblock pack {0} -o {0}.store'", store)},
         "'{}' is not a store", store);
  const std::vector<unsigned char> bytes = read_whole_file(path, format::kMostManifestBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t end = text.find('\n');
  const std::string_view head = text.substr(0, std::min(end, size_t{200}));
  const std::string_view body = end == std::string_view::npos ? "" : text.substr(end + 1);
  const std::string magic(format::kManifestMagic);
  if (!head.starts_with(magic + " "))
    fail(ErrorKind::damaged, "'{}' is damaged: it does not begin as a manifest", path);
  uint32_t version = format::kVersion;
  while (version <= format::kManifestVersion && !head.starts_with(fmt::format("{} {} ", magic, version))) ++version;
  if (version > format::kManifestVersion)
    fail(ErrorKind::damaged, "'{}' is damaged, or of a newer format than version {}", path, format::kManifestVersion);
  const uint64_t id = checksum(bytes_of(body));
  if (head != fmt::format("{} {} {} {}", magic, version, hex(id), body.size()))
    fail(ErrorKind::damaged, "'{}' is damaged: its checksum does not match", path);
  try {
    StoreInfo info = from_json(Json::parse(body));
    if (manifest_version(info) != version)
      fail(ErrorKind::damaged, "it says version {}, and what it holds is version {}", version, manifest_version(info));
    info.id = id;
    return info;
  } catch (const JsonError& error) {
    fail(ErrorKind::damaged, "'{}' cannot be understood: {}", path, error.what());
  } catch (const Error& error) {
    fail(ErrorKind::damaged, "'{}' cannot be understood: {}", path, error.what());
  }
}

std::string codec_measured(const std::string& store) {
  const std::string path = fmt::format("{}/{}", store, format::kBuiltName);
  if (path_kind(path) != PathKind::file) return "";
  try {
    const std::vector<unsigned char> bytes = read_whole_file(path, uint64_t{1} << 16);
    return Json::parse(bytes).at("codec_measured").text();
  } catch (const std::exception&) {
    return "";  // only for people to read
  }
}

void expect_rows(const StoreInfo& info, const std::string& store) {
  if (info.axis == Axis::rows) return;
  fail(ErrorKind::input, "'{}' holds the {} of a store: name that store, the folder it is in", store,
       info.axis == Axis::features ? "feature columns" : "index");
}

void expect_present(const std::string& path) {
  if (path_kind(path) != PathKind::file)
    fail(ErrorKind::damaged, "'{}' is missing from the store: restore it from a copy or pack the data again", path);
}

bool may_be_committed(const std::string& store, const StoreInfo& info) {
  if (path_kind(manifest_path(store)) == PathKind::absent) return false;  // the first columns or index of a store
  try {
    return read_manifest(store).id == info.id;
  } catch (const Error&) {
    return true;  // it cannot be read just now: better a leftover than a loss
  }
}

namespace {

std::optional<std::string_view> beginning_of(std::string_view name) {
  if (name == format::kManifestName) return format::kManifestMagic;
  if (name == format::kFeaturesName) return format::kFeatureMagic;
  if (name == format::kFeatureNamesName) return format::kFeatureNamesMagic;
  if (name == format::kLockName) return kLockBeginning;
  if (name == format::kSourceName) return format::kSourceBeginning;
  if (name == format::kBuiltName) return format::kBuiltBeginning;
  if (name == format::kProbeName) return "";
  if (is_numbered(name, "segment-", ".rows")) return format::kSegmentMagic;
  if (is_numbered(name, "segment-", ".directory")) return "";
  if (is_numbered(name, "removed-")) return format::kRemovedMagic;
  if (is_numbered(name, "rows-")) return format::kRowFactsMagic;
  if (is_numbered(name, "spill-")) return "";
  if (is_numbered(name, "forest-")) return format::kForestMagic;
  return {};
}

}  // namespace

const OwnDirectory& store_directory() {
  static const OwnDirectory kind{
      .what = "store", .beginning_of = beginning_of, .subdirectories = {format::kColumnsName, format::kIndexName}};
  return kind;
}

namespace {

std::vector<std::string> leftovers_of(const std::string& store, const StoreInfo& info) {
  std::set<std::string> named;
  for (const std::string& name : numbered_files(info)) named.insert(name);
  std::vector<std::string> leftovers;
  for (const std::string& name : list_directory(store)) {
    const bool numbered = name.find('-') != std::string::npos;  // and so belongs to one state of the store alone
    const std::string path = fmt::format("{}/{}", store, name);
    if ((numbered || is_temporary(name)) && !named.contains(name) && is_own_file(store, store_directory(), name))
      leftovers.push_back(path);
  }
  return leftovers;
}

}  // namespace

bool has_leftovers(const std::string& store, const StoreInfo& info) { return !leftovers_of(store, info).empty(); }

void remove_leftovers(const std::string& store, const StoreInfo& info) {
  const std::vector<std::string> leftovers = leftovers_of(store, info);
  if (leftovers.empty()) return;
  sync_directory(store);  // the manifest that does without them must not be lost in a power cut and these not
  for (const std::string& path : leftovers) remove_file(path);
}

std::vector<unsigned char> encode_frequent(const std::vector<uint32_t>& frequent) {
  std::vector<unsigned char> bytes(16 + 4 * frequent.size());
  std::copy(format::kFeatureMagic.begin(), format::kFeatureMagic.end(), bytes.begin());
  store_le(bytes.data() + 8, format::kVersion);
  store_le(bytes.data() + 12, static_cast<uint32_t>(frequent.size()));
  if (!frequent.empty()) std::memcpy(bytes.data() + 16, frequent.data(), 4 * frequent.size());
  return bytes;
}

std::vector<unsigned char> segment_header(uint64_t seal, uint64_t number) {
  std::vector<unsigned char> page(format::kPageBytes, 0);
  std::copy(format::kSegmentMagic.begin(), format::kSegmentMagic.end(), page.begin());
  store_le(page.data() + 8, format::kVersion);
  store_le(page.data() + 16, seal);
  store_le(page.data() + 24, number);
  store_le(page.data() + page.size() - 8, checksum({page.data(), page.size() - 8}));
  return page;
}

uint32_t bucket_of(uint64_t seed, uint64_t row_id, uint32_t buckets) {
  return static_cast<uint32_t>(scale_to(mix64(seed, row_id), buckets));
}

uint64_t chunk_seed(uint64_t seal, uint64_t segment, uint64_t chunk) { return mix64(mix64(seal, segment), chunk); }

}  // namespace linblock
