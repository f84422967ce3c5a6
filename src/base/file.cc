#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/own_files.h"

namespace linblock {

namespace {

// A test's hook. Function-local, so that it exists before any static that might do I/O.
FileHook& hook() {
  static FileHook installed;
  return installed;
}

// Function-local for the same reason.
std::atomic<const std::atomic<bool>*>& interrupt_flag() {
  static std::atomic<const std::atomic<bool>*> flag = nullptr;
  return flag;
}

bool interrupted() {
  const std::atomic<bool>* flag = interrupt_flag();
  return flag != nullptr && *flag;
}

using Call = FileCall::Kind;

// Sets errno and returns false when a test wants the call to fail; may lower `bytes`, and set `lost`.
bool permitted(Call kind, const std::string& path, uint64_t offset = 0, size_t* bytes = nullptr,
               const std::string& target = {}, bool* lost = nullptr) {
  if (!hook()) return true;
  const FileVerdict verdict =
      hook()({.kind = kind, .path = path, .target = target, .offset = offset, .bytes = bytes == nullptr ? 0 : *bytes});
  if (verdict.error != 0) {
    errno = verdict.error;
    return false;
  }
  if (lost != nullptr) *lost = verdict.lost;
  if (bytes != nullptr && verdict.shortened_to)
    *bytes = std::min<size_t>(*bytes, std::max<uint64_t>(1, *verdict.shortened_to));
  return true;
}

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_io(std::string_view doing, const std::string& path) {
  const int error = errno;
  if (error == ENOSPC || error == EDQUOT)
    fail(ErrorKind::io, "cannot {} '{}': the disk is full ({}); free some space or choose another disk", doing, path,
         reason(error));
  if (error == EACCES || error == EPERM || error == EROFS)
    fail(ErrorKind::io, "cannot {} '{}': {}; check the permissions of the file and of its directory", doing, path,
         reason(error));
  fail(ErrorKind::io, "cannot {} '{}': {}", doing, path, reason(error));
}

}  // namespace

void set_file_hook(FileHook installed) { hook() = std::move(installed); }

void open_standard_files() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDWR) < 0) return;
}

void set_interrupt_flag(const std::atomic<bool>* flag) { interrupt_flag() = flag; }

File::File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {
  struct stat status {};
  may_block_ = ::fstat(descriptor_, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode);
}

File File::open_read(const std::string& path) {
  int descriptor = -1;
  do {  // a pipe is waited for until somebody writes to it
    descriptor = permitted(Call::open, path) ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  } while (descriptor < 0 && errno == EINTR && !interrupted());
  if (descriptor < 0) {
    if (errno == EINTR) fail(ErrorKind::interrupted, "interrupted while waiting for '{}'", path);
    if (errno == ENOENT) fail(ErrorKind::input, "'{}' does not exist: check the spelling of the path", path);
    fail_io("open", path);
  }
  return {descriptor, path};
}

File File::create(const std::string& path, std::string_view beginning) {
  if (is_link(path))
    fail(ErrorKind::usage, "'{}' is a symbolic link, and linblock does not write through it: remove the link", path);
  if (!file_begins_as(path, beginning)) refuse_foreign(path);
  File file = open_to_write(path, O_NOFOLLOW);
  if (!file.is_regular()) refuse_foreign(path);
  file.truncate();
  return file;
}

File File::open_update(const std::string& path) { return open_to_write(path, O_NOFOLLOW); }

File File::create_output(const std::string& path) { return open_to_write(path, O_TRUNC); }

File File::update_output(const std::string& path) { return open_to_write(path, 0); }

void File::truncate() const {
  int result = 0;
  do result = ::ftruncate(descriptor_, 0);
  while (result != 0 && errno == EINTR);
  if (result != 0) fail_io("empty", path_);
}

File File::open_to_write(const std::string& path, int flags) {
  // A pipe that is open for reading too never tells that its reader is gone.
  const int access = path_kind(path) == PathKind::other ? O_WRONLY : O_RDWR;
  const int descriptor =
      permitted(Call::create, path) ? ::open(path.c_str(), access | O_CREAT | O_CLOEXEC | flags, 0666) : -1;
  if (descriptor < 0) {
    if (errno == ENOENT)
      fail(ErrorKind::io, "cannot create '{}': the directory '{}' does not exist", path, parent_directory(path));
    if (errno == ELOOP && (flags & O_NOFOLLOW) != 0)
      fail(ErrorKind::usage, "'{}' is a symbolic link, and linblock does not write through it: remove the link", path);
    fail_io("create", path);
  }
  return {descriptor, path};
}

File File::standard_input() { return {::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), "standard input"}; }

File File::standard_output() { return {::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "standard output"}; }

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), may_block_(other.may_block_), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(may_block_, other.may_block_);
  std::swap(path_, other.path_);
  return *this;
}

size_t File::read_at(std::span<unsigned char> into, uint64_t offset) const {
  size_t done = 0;
  while (done < into.size()) {
    size_t wanted = into.size() - done;
    const ssize_t got = permitted(Call::read, path_, offset + done, &wanted)
                            ? ::pread(descriptor_, into.data() + done, wanted, static_cast<off_t>(offset + done))
                            : -1;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io("read", path_);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void File::read_exactly_at(std::span<unsigned char> into, uint64_t offset) const {
  const size_t got = read_at(into, offset);
  if (got != into.size())
    fail(ErrorKind::damaged, "'{}' is cut short: {} bytes were expected at offset {}, {} are there", path_, into.size(),
         offset, got);
}

// Looks at the flag ten times a second, whatever thread the signal went to.
void File::wait_until_readable() const {
  constexpr int kMilliseconds = 100;
  pollfd waiting{.fd = descriptor_, .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, kMilliseconds) <= 0)
    if (interrupted()) fail(ErrorKind::interrupted, "interrupted while waiting for '{}'", path_);
}

size_t File::read_next(std::span<unsigned char> into) const {
  size_t done = 0;
  while (done < into.size()) {
    if (may_block_) wait_until_readable();
    size_t wanted = into.size() - done;
    const ssize_t got = permitted(Call::read, path_, 0, &wanted) ? ::read(descriptor_, into.data() + done, wanted) : -1;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io("read", path_);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void File::write_at(std::span<const unsigned char> bytes, uint64_t offset) const {
  size_t done = 0;
  while (done < bytes.size()) {
    size_t wanted = bytes.size() - done;
    const ssize_t put = permitted(Call::write, path_, offset + done, &wanted)
                            ? ::pwrite(descriptor_, bytes.data() + done, wanted, static_cast<off_t>(offset + done))
                            : -1;
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_io("write", path_);
    done += static_cast<size_t>(put);
  }
}

void File::write_next(std::span<const unsigned char> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    size_t wanted = bytes.size() - done;
    const ssize_t put =
        permitted(Call::write, path_, 0, &wanted) ? ::write(descriptor_, bytes.data() + done, wanted) : -1;
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_io("write", path_);
    done += static_cast<size_t>(put);
  }
}

void File::start_writeback(uint64_t offset, uint64_t bytes) const {
  // Only a hint: on a file system without it the sync at the end does all the work.
  ::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void File::drop_from_cache() const { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

void File::advise_sequential() const { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL); }

namespace {

// A signal may end the wait before the bytes are on the disk.
int sync_fully(int descriptor) {
  int result = 0;
  do result = ::fsync(descriptor);
  while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

void File::sync() const {
  bool lost = false;
  if (!permitted(Call::sync, path_, 0, nullptr, {}, &lost) || (!lost && sync_fully(descriptor_) != 0))
    fail_io("write to disk", path_);
}

void File::close() {
  const bool allowed = permitted(Call::close, path_);
  const int error = errno;
  const int result = ::close(std::exchange(descriptor_, -1));
  if (!allowed) errno = error;
  if (!allowed || result != 0) fail_io("close", path_);
}

uint64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_io("inspect", path_);
  return static_cast<uint64_t>(status.st_size);
}

bool File::is_regular() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_io("inspect", path_);
  return S_ISREG(status.st_mode);
}

namespace {

// "process 17 (packing)", or as much of it as a full disk took; nothing: nobody holds it.
bool is_lock_text(std::string_view text) {
  if (text.size() <= kLockBeginning.size()) return begins_as(text, kLockBeginning);
  if (!text.starts_with(kLockBeginning)) return false;
  text.remove_prefix(kLockBeginning.size());
  const size_t digits = text.find_first_not_of("0123456789");
  return digits == std::string_view::npos || (digits > 0 && text.substr(digits).starts_with(" ("));
}

}  // namespace

FileLock FileLock::acquire(const std::string& path, std::string_view purpose, const std::string& what) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  constexpr int kLockAttempts = 20;
  constexpr auto kLockPause = std::chrono::milliseconds(10);
  int attempt = 0;
  while (true) {
    const int descriptor = permitted(Call::lock, path) ? ::open(path.c_str(), kFlags, 0666) : -1;
    if (descriptor < 0 && errno == ELOOP)
      fail(ErrorKind::usage, "'{}' is a symbolic link, and linblock does not write through it: remove the link", path);
    if (descriptor < 0) fail_io("create the lock", path);
    FileLock lock(descriptor);
    std::array<char, 256> text{};
    const ssize_t length = ::pread(descriptor, text.data(), text.size() - 1, 0);
    const std::string lock_text(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      // A process that was killed just now holds it until its last thread is gone.
      if (attempt++ < kLockAttempts) {
        ::close(std::exchange(lock.descriptor_, -1));
        std::this_thread::sleep_for(kLockPause);
        continue;
      }
      ::close(std::exchange(lock.descriptor_, -1));  // what is written there is its holder's
      fail(ErrorKind::io, "'{}' is in use by {}: wait until it has finished, or stop it",
           what.empty() ? parent_directory(path) : what, lock_text.empty() ? "another linblock process" : lock_text);
    }
    if (!is_lock_text(lock_text)) {
      ::close(std::exchange(lock.descriptor_, -1));
      refuse_foreign(path);
    }
    // Between the two calls its holder may have deleted it: then nobody else would find this lock.
    struct stat held {};
    struct stat named {};
    if (::fstat(descriptor, &held) != 0 || ::stat(path.c_str(), &named) != 0 || held.st_ino != named.st_ino ||
        held.st_dev != named.st_dev)
      continue;
    const std::string holder = fmt::format("{}{} ({})", kLockBeginning, ::getpid(), purpose);
    // Who holds it is for people; a full disk that cannot take the name does not make the lock worse.
    [[maybe_unused]] const bool written =
        ::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, holder.data(), holder.size(), 0) >= 0;
    return lock;
  }
}

FileLock FileLock::acquire_temporary(const std::string& path, std::string_view purpose, const std::string& what) {
  FileLock lock = acquire(path, purpose, what);
  lock.delete_at_end_ = path;
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  // An empty lock file means nobody: what a store holds does not depend on who wrote it. A failure changes nothing.
  [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, 0);
  if (!delete_at_end_.empty()) ::unlink(delete_at_end_.c_str());
  ::close(descriptor_);
}

FileLock::FileLock(FileLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), delete_at_end_(std::move(other.delete_at_end_)) {}

PathKind path_kind(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return PathKind::absent;
    fail_io("inspect", path);
  }
  if (S_ISREG(status.st_mode)) return PathKind::file;
  if (S_ISDIR(status.st_mode)) return PathKind::directory;
  return PathKind::other;
}

bool is_link(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

void make_directory(const std::string& path) {
  if (!permitted(Call::make_directory, path) || ::mkdir(path.c_str(), 0777) != 0) {
    if (errno == ENOENT)
      fail(ErrorKind::io, "cannot create '{}': the directory '{}' does not exist", path, parent_directory(path));
    fail_io("create the directory", path);
  }
}

void remove_file(const std::string& path) {
  bool lost = false;
  if (!permitted(Call::remove, path, 0, nullptr, {}, &lost) ||
      (!lost && ::unlink(path.c_str()) != 0 && errno != ENOENT))
    fail_io("remove", path);
}

void remove_quietly(const std::string& path) noexcept { ::unlink(path.c_str()); }

void remove_empty_directory(const std::string& path) noexcept { ::rmdir(path.c_str()); }

std::vector<std::string> list_directory(const std::string& path) {
  DIR* directory = permitted(Call::list, path) ? ::opendir(path.c_str()) : nullptr;
  if (directory == nullptr) fail_io("list", path);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

void rename_path(const std::string& from, const std::string& to) {
  bool lost = false;
  if (!permitted(Call::rename, from, 0, nullptr, to, &lost) || (!lost && ::rename(from.c_str(), to.c_str()) != 0))
    fail_io("give its final name to", from);
}

bool link_file(const std::string& from, const std::string& to) {
  if (permitted(Call::link, from, 0, nullptr, to) && ::link(from.c_str(), to.c_str()) == 0) return true;
  if (errno == EXDEV || errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK) return false;
  fail_io("make another name for", from);
}

void sync_directory(const std::string& path) {
  const int descriptor =
      permitted(Call::sync_directory, path) ? ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (descriptor < 0) fail_io("write to disk", path);
  const int result = sync_fully(descriptor);
  ::close(descriptor);
  if (result != 0) fail_io("write to disk", path);
}

FileStamp file_stamp(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) fail(ErrorKind::input, "'{}' does not exist: check the spelling of the path", path);
    fail_io("inspect", path);
  }
  return {.bytes = static_cast<uint64_t>(status.st_size),
          .modified_nanoseconds = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

uint64_t free_disk_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) fail_io("find the free space of", path);
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

std::string parent_directory(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "/";
  const size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<unsigned char> read_whole_file(const std::string& path, uint64_t limit) {
  const File file = File::open_read(path);
  std::vector<unsigned char> bytes(checked_size(file.size(), limit, "the size of '" + path + "'"));
  file.read_exactly_at(bytes, 0);
  return bytes;
}

void replace_file(const std::string& path, std::span<const unsigned char> bytes, std::string_view beginning) {
  const std::string temporary = temporary_path(path);
  if (!file_begins_as(path, beginning)) refuse_foreign(path);
  File file = File::create(temporary, beginning);
  try {
    file.write_at(bytes, 0);
    file.sync();
    file.close();
    rename_path(temporary, path);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
  sync_directory(parent_directory(path));
}

}  // namespace linblock
