// The columns of a row store: a store of its own in the folder STORE/columns, made by transpose().
//
// One "row" of it is one feature's column, or a piece of a long one. Row::id is the feature's original index,
// Row::index holds the places of the rows that have the feature, increasing, and Row::value their values; label and
// weight mean nothing. A row's place is its rank in the row store as it lies: chunk by chunk, row by row, removed rows
// included, though they have no entries. Columns come by increasing feature, one bucket of them; a feature that no row
// has, has none. A long column goes on in the next chunk: as the first row there, with the id of the last row before
// it, which is the only one of its chunk.
#pragma once

#include <string>

#include "store/columns/row_facts.h"
#include "store/core/store.h"

namespace linblock {

enum class ColumnsState {
  absent,
  stale,  // made before rows were appended, removed or compacted
  fresh,
};

ColumnsState columns_state(const Store& rows);
// A store's columns go, where it has any.
void remove_columns(const std::string& store);

class Columns {
 public:
  // Throws ErrorKind::input where they are absent or stale, with the remedy.
  static Columns open(const Store& rows);

  const Store& store() const { return store_; }
  // Read when asked for; throws ErrorKind::damaged.
  RowFacts facts() const { return read_row_facts(store_.path(), store_.info()); }

 private:
  explicit Columns(Store store) : store_(std::move(store)) {}

  Store store_;
};

}  // namespace linblock
