
#include "base/bytes.h"
#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/show/outputs.h"
#include "cli/show/print_json.h"
#include "store/columns/columns.h"
#include "store/index/metric_forest.h"

namespace linblock::cli {

namespace {

constexpr size_t kShownLabels = 20;
constexpr size_t kShownTags = 40;

double bytes_per_nonzero(const Store& store) {
  const uint64_t nonzeros = store.info().nonzeros;
  return nonzeros == 0 ? 0 : static_cast<double>(store.bytes()) / static_cast<double>(nonzeros);
}

const char* name_of(ColumnsState state) {
  switch (state) {
    case ColumnsState::absent: return "absent";
    case ColumnsState::stale: return "stale";
    case ColumnsState::fresh: return "fresh";
  }
  return "";
}

Json columns_json(const Store& store) {
  const ColumnsState state = columns_state(store);
  Json json = {{"state", name_of(state)}};
  if (state == ColumnsState::absent) return json;
  const StoreInfo info = read_manifest(columns_path(store.path()));
  json["columns"] = info.columns;
  json["bytes"] = info.bytes();
  return json;
}

void print_columns(const Store& store) {
  const ColumnsState state = columns_state(store);
  if (state == ColumnsState::absent) {
    fmt::print("  columns     absent: 'linblock transpose {}' makes them\n", store.path());
    return;
  }
  const StoreInfo info = read_manifest(columns_path(store.path()));
  fmt::print("  columns     {}: {} features, {}{}\n", name_of(state), grouped(info.columns), human_bytes(info.bytes()),
             state == ColumnsState::fresh
                 ? ""
                 : fmt::format("; rows have changed since: 'linblock transpose {}' makes them again", store.path()));
}

const char* name_of(ForestState state) {
  switch (state) {
    case ForestState::absent: return "absent";
    case ForestState::stale: return "stale";
    case ForestState::behind: return "behind";
    case ForestState::fresh: return "fresh";
  }
  return "";
}

double ratio_to(const Store& store, const StoreInfo& index) {
  return static_cast<double>(index.bytes()) / static_cast<double>(store.bytes());
}

Json index_json(const Store& store) {
  const ForestState state = forest_state(store);
  Json json = {{"state", name_of(state)}};
  if (state == ForestState::absent) return json;
  const StoreInfo info = read_manifest(index_path(store.path()));
  uint64_t pages = 0;
  for (const SegmentInfo& segment : info.segments) pages += segment.chunks;
  json["rows"] = info.rows;
  json["bytes"] = info.bytes();
  json["ratio"] = ratio_to(store, info);
  json["trees"] = info.forest.trees();
  json["pages"] = pages;
  json["tree_rows"] = info.forest.tree_rows;
  json["branch"] = info.forest.branch;
  json["bias"] = info.forest.bias;
  json["seed"] = info.seed;
  json["page_bytes"] = info.chunk_bytes;
  json["contrast"] = info.forest.contrast();
  json["build_seconds"] = forest_build_seconds(store.path());
  return json;
}

void print_index(const Store& store) {
  const ForestState state = forest_state(store);
  if (state == ForestState::absent) {
    fmt::print("  index       absent: 'linblock index {}' makes it\n", store.path());
    return;
  }
  const StoreInfo info = read_manifest(index_path(store.path()));
  std::string remedy;
  if (state == ForestState::stale)
    remedy = fmt::format("; rows have changed since: 'linblock index {}' makes it again", store.path());
  if (state == ForestState::behind)
    remedy = fmt::format("; rows were appended since: 'linblock index {}' adds trees for them", store.path());
  fmt::print(
      "  index       {}: {} trees, branch {}, {}, {} ({:.2f} times the rows), made in {:.2f} s, contrast {:.2f}{}\n",
      name_of(state), grouped(info.forest.trees()), info.forest.branch,
      info.forest.bias < 0 ? "no bias" : fmt::format("bias {}", info.forest.bias), human_bytes(info.bytes()),
      ratio_to(store, info), forest_build_seconds(store.path()), info.forest.contrast(), remedy);
}

void print_json(const Store& store) {
  const StoreInfo& info = store.info();
  Json labels = Json::object();
  for (const auto& [label, rows] : info.labels) labels[info.label_names.show(label)] = rows;
  Json segments = Json::array();
  for (const SegmentInfo& segment : info.segments)
    segments.push_back({{"number", segment.number},
                        {"rows", segment.rows},
                        {"nonzeros", segment.nonzeros},
                        {"chunks", segment.chunks},
                        {"bytes", segment.bytes},
                        {"first_row", segment.first_row}});
  Json tags = Json::array();
  for (const TaggedRows& tagged : info.tags)
    tags.push_back({{"tag", tagged.tag}, {"first_row", tagged.first_row}, {"rows", tagged.rows}});
  Json summary = {{"store", store.path()},
                  {"id", fmt::format("{:016x}", info.id)},
                  {"rows", info.rows},
                  {"features", info.features()},
                  {"nonzeros", info.nonzeros},
                  {"removed_rows", info.removed.rows},
                  {"labels", labels},
                  {"bytes", store.bytes()},
                  {"bytes_per_nonzero", bytes_per_nonzero(store)},
                  {"chunks", store.chunks().size()},
                  {"chunk_bytes", info.chunk_bytes},
                  {"buckets", info.buckets},
                  {"seed", info.seed},
                  {"segments", segments},
                  {"tags", tags},
                  {"codec", codec_name(info.codec)},
                  {"codec_reason", info.codec_reason},
                  {"index_base", info.index_base},
                  {"frequent_features", info.frequent_features},
                  {"named_features", info.feature_names.named},
                  {"normalized", info.normalized},
                  {"weighted", info.weighted}};
  if (info.values) {
    summary["mean_squared_length"] = info.values->squares / static_cast<double>(std::max<uint64_t>(info.rows, 1));
    summary["negative_values"] = info.values->negative;
  }
  if (info.axis == Axis::rows) {
    summary["index"] = index_json(store);
    summary["columns"] = columns_json(store);
  }
  print_line(summary);
}

// The newest are at the end, and are never left out.
void print_tags(const StoreInfo& info) {
  if (info.tags.empty()) return;
  fmt::print("  tags        {}\n", grouped(info.tags.size()));
  const size_t hidden = info.tags.size() > kShownTags ? info.tags.size() - kShownTags : 0;
  if (hidden > 0) fmt::print("              {} older ones, which --json lists ...\n", grouped(hidden));
  for (size_t i = hidden; i < info.tags.size(); ++i)
    fmt::print("    {} {} rows from {} on\n", info.tags[i].tag, grouped(info.tags[i].rows),
               grouped(info.tags[i].first_row));
}

void print_text(const Store& store) {
  const StoreInfo& info = store.info();
  fmt::print("{}\n", store.path());
  fmt::print("  rows        {}{}{}\n", grouped(info.rows), info.normalized ? ", scaled to unit length" : "",
             info.weighted ? ", with weights" : "");
  if (info.removed.rows > 0)
    fmt::print("  removed     {} rows more, which 'linblock compact' takes out of the files\n",
               grouped(info.removed.rows));
  fmt::print("  features    {}, numbered from {}{}; {} frequent ones first\n", grouped(info.features()),
             info.index_base, info.index_base_given ? " (as given)" : " (found from the data)",
             grouped(info.frequent_features));
  if (info.feature_names.count > 0)
    fmt::print("  names       {}, of features up to {}\n", grouped(info.feature_names.named),
               info.feature_names.count + static_cast<uint64_t>(info.index_base) - 1);
  fmt::print("  nonzeros    {}\n", grouped(info.nonzeros));
  fmt::print("  labels      {}\n", grouped(info.labels.size()));
  size_t shown = 0;
  for (const auto& [label, rows] : info.labels) {
    if (shown++ == kShownLabels) {
      fmt::print("              ... and {} more\n", grouped(info.labels.size() - kShownLabels));
      break;
    }
    fmt::print("    {:>9} {} rows ({})\n", info.label_names.show(label), grouped(rows),
               percent(static_cast<double>(rows) / static_cast<double>(std::max<uint64_t>(info.rows, 1))));
  }
  fmt::print("  bytes       {} ({:.2f} a nonzero)\n", human_bytes(store.bytes()), bytes_per_nonzero(store));
  fmt::print("  chunks      {} of about {}, in {} {}\n", grouped(store.chunks().size()), human_bytes(info.chunk_bytes),
             info.buckets, info.buckets == 1 ? "bucket (input order)" : "buckets (shuffled)");
  const std::string measured = codec_measured(store.path());
  fmt::print("  codec       {} ({}{}{})\n", codec_name(info.codec), info.codec_reason, measured.empty() ? "" : ": ",
             measured);
  fmt::print("  segments    {}\n", info.segments.size());
  for (const SegmentInfo& segment : info.segments)
    fmt::print("    {:>9} {} rows from {} on, {}\n", segment.number, grouped(segment.rows), grouped(segment.first_row),
               human_bytes(segment.bytes));
  print_tags(info);
  if (info.axis == Axis::rows) {
    print_columns(store);
    print_index(store);
  }
  fmt::print("  id          {:016x}, format version {}\n", info.id, manifest_version(info));
}

}  // namespace

void add_info(Parser& parser, Session& session) {
  Command command = parser.add("info", "What a store holds: rows, features, labels, sizes, codec");
  if (!command.wanted()) return;
  auto path = std::make_shared<std::string>();
  command.argument("STORE", "The store to describe", *path);
  add_json_option(command, session);
  command.examples("  linblock info train.store\n  linblock info train.store --json | jq .labels");
  command.run([path, &session] {
    if (is_model(*path))
      fail(ErrorKind::input,
           "'{0}' is a model, and info is about stores: {0}.json has its options and certificate; "
           "'linblock evaluate {0} DATA.svm' says how good it is",
           *path);
    const Store store = Store::open(*path);
    if (session.json)
      print_json(store);
    else
      print_text(store);
  });
}

}  // namespace linblock::cli
