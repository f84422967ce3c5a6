#include "store/core/store_snapshot.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "store/core/new_store.h"
#include "store/core/store.h"
#include "store/core/store_files.h"

namespace linblock {

namespace {

constexpr uint64_t kMostSmallBytes = uint64_t{1} << 26;  // of BUILT and SOURCE

class Linking {
 public:
  Linking(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void run(const StoreInfo& info, StoreSnapshotReport& report) const {
    link(format::kFeaturesName, report);
    if (info.feature_names.count > 0) link(format::kFeatureNamesName, report);
    for (const std::string& name : numbered_files(info)) link(name, report);
    // These are replaced or rewritten in their place.
    copy(format::kBuiltName, format::kBuiltBeginning);
    copy(format::kSourceName, format::kSourceBeginning);
    copy(format::kManifestName, format::kManifestMagic);
    sync_directory(to_);
  }

 private:
  void link(const std::string& name, StoreSnapshotReport& report) const {
    const std::string file = from_ + "/" + name;
    if (!link_file(file, to_ + "/" + name))
      fail(ErrorKind::io,
           {say("choose a name on the disk of '{}'", from_),
            say("copy the folder instead, while nothing writes to the store")},
           "'{}' cannot share '{}': hard links need one file system that has them, and files of your own", to_, file);
    ++report.files;
    report.bytes += file_stamp(file).bytes;
  }
  void copy(const char* name, std::string_view beginning) const {
    const std::string file = from_ + "/" + name;
    if (path_kind(file) != PathKind::file) return;
    write_new(to_ + "/" + name, read_whole_file(file, kMostSmallBytes), beginning);
  }

  std::string from_;
  std::string to_;
};

}  // namespace

StoreSnapshotReport snapshot_store(const std::string& store, const std::string& to) {
  const std::string path = new_store_path(to);
  expect_rows(read_manifest(store), store);  // a path that is no store is refused before a lock is put there
  const FileLock reading = FileLock::acquire(store + "/" + format::kLockName, "taking a snapshot");
  const StoreInfo info = Store::open(store).info();
  const FileLock writing = lock_partial(path, "taking a snapshot");
  const std::string folder = partial_path(path);
  StoreSnapshotReport report{.id = info.id, .rows = info.rows};
  try {
    for (const auto inner : {columns_path, index_path}) {
      if (path_kind(manifest_path(inner(store))) == PathKind::absent) continue;
      make_directory(inner(folder));
      Linking(inner(store), inner(folder)).run(read_manifest(inner(store)), report);
    }
    Linking(store, folder).run(info, report);
    rename_path(folder, path);
  } catch (...) {
    discard_partial(path);
    throw;
  }
  sync_directory(parent_directory(path));
  return report;
}

}  // namespace linblock
