#include "store/core/store_files.h"

namespace linblock {

std::vector<std::string> numbered_files(const StoreInfo& info) {
  std::vector<std::string> paths;
  for (const SegmentInfo& segment : info.segments) {
    paths.push_back(segment_path("", segment.number));
    paths.push_back(directory_path("", segment.number));
  }
  if (info.removed.rows > 0) paths.push_back(removed_path("", info.removed.number));
  if (info.axis == Axis::features) paths.push_back(row_facts_path("", info.row_facts.number));
  for (const ForestInfo::Trees& file : info.forest.files) paths.push_back(forest_path("", file.number));
  for (std::string& path : paths) path.erase(0, 1);  // the slash
  return paths;
}

}  // namespace linblock
