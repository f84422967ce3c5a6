#include "store/columns/columns.h"

#include "base/error.h"

namespace linblock {

ColumnsState columns_state(const Store& rows) {
  const std::string path = columns_path(rows.path());
  // What a killed transpose leaves has no manifest.
  if (path_kind(manifest_path(path)) == PathKind::absent) return ColumnsState::absent;
  return read_manifest(path).rows_id == rows.info().id ? ColumnsState::fresh : ColumnsState::stale;
}

void remove_columns(const std::string& store) {
  const std::string path = columns_path(store);
  if (path_kind(path) != PathKind::directory) return;
  remove_own_directory(path, store_directory(), format::kManifestName);  // what a kill leaves then is no store
}

Columns Columns::open(const Store& rows) {
  switch (columns_state(rows)) {
    case ColumnsState::absent:
      fail(ErrorKind::input, {say("make them with 'linblock transpose {}'", rows.path())},
           "'{}' has no feature columns yet", rows.path());
    case ColumnsState::stale:
      fail(ErrorKind::input, {say("make them again with 'linblock transpose {}'", rows.path())},
           "the feature columns of '{}' are stale: its rows have changed since", rows.path());
    case ColumnsState::fresh: break;
  }
  Store store = Store::open(columns_path(rows.path()));
  if (store.info().axis != Axis::features)
    fail(ErrorKind::damaged, {rebuild("columns", rows.path())}, "'{}' holds no columns", store.path());
  return Columns(std::move(store));
}

}  // namespace linblock
