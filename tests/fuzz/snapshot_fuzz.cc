// Any bytes as a checkpoint or a state, behind the right first bytes and before the right checksum: refused as damaged,
// or fields that are the same when they are written and read again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/fields.h"
#include "solve/core/solver.h"

namespace {

using namespace linblock;

void require(bool promise) {
  if (!promise) std::abort();
}

enum class Color { red, green, blue };
constexpr Color last_of(Color) { return Color::blue; }

struct Entry {
  uint8_t small = 0;
  double large = 0;
  bool flag = false;
  Color color = Color::red;
  Certificate certificate = {};

  static void visit_fields(auto& self, auto&& field) {
    field("small", self.small), field("large", self.large), field("flag", self.flag), field("color", self.color);
    field("certificate", self.certificate);
  }
};

// A field of every kind.
struct Everything {
  double f64 = 0;
  float f32 = 0;
  uint64_t u64 = 0;
  uint32_t u32 = 0;
  uint16_t u16 = 0;
  uint8_t u8 = 0;
  int64_t i64 = 0;
  int32_t i32 = 0;
  bool flag = false;
  Color color = Color::red;
  std::string text = {};
  std::optional<double> perhaps = {};
  std::vector<float> floats = {};
  std::array<double, 3> triple = {};
  std::vector<double> fixed = std::vector<double>(2);
  std::vector<Entry> entries = {};

  static void visit_fields(auto& self, auto&& field) {
    field("f64", self.f64), field("f32", self.f32), field("u64", self.u64), field("u32", self.u32);
    field("u16", self.u16), field("u8", self.u8), field("i64", self.i64), field("i32", self.i32);
    field("flag", self.flag), field("color", self.color), field("text", self.text), field("perhaps", self.perhaps);
    field("floats", self.floats), field("triple", self.triple), field("fixed", std::span(self.fixed));
    field("entries", self.entries);
  }
};

struct TemporaryFolder {
  std::string path = "/dev/shm/snapshot-fuzz-XXXXXX";
  TemporaryFolder() { require(::mkdtemp(path.data()) != nullptr); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

const std::string& folder() {
  static const TemporaryFolder folder;
  return folder.path;
}

template <class T>
std::string written(const T& value) {
  const std::string path = folder() + "/file";
  SnapshotWriter file(path);
  FieldWriter to(file);
  to("all", value);
  file.commit();
  std::ifstream bytes(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(bytes), {}};
}

template <class T>
void read_as(const std::string& path) {
  T value{};
  try {
    FieldReader from(path);
    from("all", value);
    from.finish();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::damaged);
    return;
  }
  const std::string once = written(value);
  FieldReader from(folder() + "/file");
  const T again = from.take<T>("all");
  from.finish();
  require(written(again) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(kSnapshotMagic);
  bytes.append(reinterpret_cast<const char*>(data), size);
  const uint64_t sum = checksum(as_raw(std::span<const char>(bytes)));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  const int file = ::memfd_create("snapshot", MFD_CLOEXEC);
  require(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  read_as<Everything>(path);
  read_as<Plan>(path);
  read_as<Summary>(path);
  ::close(file);
  return 0;
}
