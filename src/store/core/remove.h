// Takes rows out of a store. Only the manifest changes, and a list of the rows that are gone; compact() makes the files
// smaller. A segment whose rows are all gone leaves the store at once.
#pragma once

#include <string>

#include "store/core/removal.h"
#include "store/core/row_list.h"

namespace linblock {

// All of these rows or none (ErrorKind::input): an id must be in the store and be named once, and a range must have a
// row that is in the store.
RemoveReport remove_rows(const std::string& store, const RowList& rows, const RemoveContext& context = {});
// All rows of one pack or append.
RemoveReport remove_segment(const std::string& store, uint64_t number, const RemoveContext& context = {});
// All rows with this tag, wherever compact() has put them. The tag is free again.
RemoveReport remove_tag(const std::string& store, const std::string& tag, const RemoveContext& context = {});

}  // namespace linblock
