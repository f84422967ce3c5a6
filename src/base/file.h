// All file input and output of linblock. Every call passes a hook, so that tests can make the N-th one fail,
// shorten reads, and find out which writes a power cut would lose.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace linblock {

// Closes its descriptor; offsets are explicit, so one File serves several threads.
class File {
 public:
  static File open_read(const std::string& path);
  // A file under a name that linblock gives. An older one is emptied, but only if linblock wrote it: it begins with
  // `beginning` (see base/own_files). A symbolic link is never followed: it may lead to somebody else's file.
  static File create(const std::string& path, std::string_view beginning);
  // Keeps what is there; an absent file is made. No link is followed.
  static File open_update(const std::string& path);
  // A file under a name that the user gave. Links are followed; whoever calls this has asked check_output first.
  static File create_output(const std::string& path);
  static File update_output(const std::string& path);
  static File standard_input();
  static File standard_output();

  File() = default;
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  // Reads up to `into.size()` bytes; fewer only at the end of the file.
  size_t read_at(std::span<unsigned char> into, uint64_t offset) const;
  // Reads exactly `into.size()` bytes or throws ErrorKind::damaged: the file is shorter than what points into it.
  void read_exactly_at(std::span<unsigned char> into, uint64_t offset) const;
  // The next bytes of a stream (pipes too); fewer than asked only at its end.
  size_t read_next(std::span<unsigned char> into) const;
  void write_at(std::span<const unsigned char> bytes, uint64_t offset) const;
  void write_next(std::span<const unsigned char> bytes) const;
  // Asks the kernel to begin writing these bytes out, so that the final sync has little left to do.
  void start_writeback(uint64_t offset, uint64_t bytes) const;
  void drop_from_cache() const;
  void advise_sequential() const;
  void sync() const;
  // Errors of close() are errors of the write: call it rather than leave it to the destructor.
  void close();

  uint64_t size() const;
  bool is_regular() const;
  bool is_open() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  File(int descriptor, std::string path);
  static File open_to_write(const std::string& path, int flags);
  void truncate() const;
  void wait_until_readable() const;

  int descriptor_ = -1;
  bool may_block_ = false;  // a pipe, a socket, a terminal
  std::string path_;
};

// How a lock file that is in use begins. One that is not in use is empty.
inline constexpr std::string_view kLockBeginning = "process ";

// Held until destroyed or until the process dies, however it dies.
class FileLock {
 public:
  // Throws ErrorKind::io that names the holder when another process has it. `what` is in use then; by default the
  // directory of the lock file.
  static FileLock acquire(const std::string& path, std::string_view purpose, const std::string& what = "");
  // Its file is deleted when the lock is given up.
  static FileLock acquire_temporary(const std::string& path, std::string_view purpose, const std::string& what = "");
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
  std::string delete_at_end_;  // empty: the file stays
};

enum class PathKind { absent, file, directory, other };
PathKind path_kind(const std::string& path);
bool is_link(const std::string& path);
void make_directory(const std::string& path);
void remove_file(const std::string& path);
// Where an error is on its way already, and matters more than a file that stays.
void remove_quietly(const std::string& path) noexcept;
// Only if it is empty; otherwise nothing happens.
void remove_empty_directory(const std::string& path) noexcept;
std::vector<std::string> list_directory(const std::string& path);
void rename_path(const std::string& from, const std::string& to);
// A second name for the same bytes (a hard link). False: the file system of `to` is another one, or has no such links.
bool link_file(const std::string& from, const std::string& to);
void sync_directory(const std::string& path);
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_nanoseconds = 0;
};
// Size and time of the last change: what tells a changed file without reading it.
FileStamp file_stamp(const std::string& path);
uint64_t free_disk_bytes(const std::string& path);
std::string parent_directory(const std::string& path);
// The same file, whatever the names and links that lead to it.
bool same_file(const std::string& a, const std::string& b);
// `limit` guards against a path that points at something huge.
std::vector<unsigned char> read_whole_file(const std::string& path, uint64_t limit);
// How the temporary of a file that is to be replaced is named.
inline std::string temporary_path(const std::string& path) { return path + ".new"; }
// Write a temporary, sync it, rename it over `path`, sync the directory: readers see the old bytes or the new.
// `beginning`: as in File::create, of the temporary and of what is replaced.
void replace_file(const std::string& path, std::span<const unsigned char> bytes, std::string_view beginning);

// Standard input, output or error that a parent has closed leads to /dev/null from here on: the next file that is
// opened would take its number, and what is printed would end up in it.
void open_standard_files();

// While this is true, waiting for a pipe ends with ErrorKind::interrupted. Null: nothing ends it.
void set_interrupt_flag(const std::atomic<bool>* flag);

// What a test hook is told before each call. `bytes` is the length asked for.
struct FileCall {
  enum class Kind {
    open,
    create,
    read,
    write,
    sync,
    close,
    rename,
    remove,
    make_directory,
    sync_directory,
    lock,
    list,
    link
  };
  Kind kind;
  std::string path;
  std::string target = {};  // rename, link: the new name
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
struct FileVerdict {
  int error = 0;                              // an errno makes the call fail with it
  bool lost = false;                          // a rename, remove or sync reports success and does nothing
  std::optional<uint64_t> shortened_to = {};  // a read or write moves at most this many bytes (at least 1)
};
using FileHook = std::function<FileVerdict(const FileCall&)>;
// For tests; not to be changed while other threads do I/O. An empty hook removes it.
void set_file_hook(FileHook hook);

}  // namespace linblock
