// Any bytes as an input file, plain or compressed: pieces of whole lines, or an error of the input. The first byte
// chooses the size of the pieces.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "store/text/text_source.h"

namespace {

using namespace linblock;

void require(bool promise) {
  if (!promise) std::abort();
}

// A few bytes may stand for gigabytes of text.
constexpr size_t kMostText = 1 << 20;

void read_everything(const std::string& path, size_t piece_bytes, const std::string& bytes) {
  TextSource source({path}, piece_bytes, 4096, kMostText);
  std::string text;
  TextPiece piece;
  while (text.size() < kMostText && source.next(piece)) {
    require(piece.size > 0 && piece.text.data()[piece.size - 1] == '\n');
    require(piece.first == text.empty());
    if (piece.too_long) return;
    text.append(reinterpret_cast<const char*>(piece.text.data()), piece.size);
  }
  if (source.any_compressed()) return;
  require(text == bytes + (bytes.back() == '\n' ? "" : "\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string bytes(data + 1, data + size);
  const int file = ::memfd_create("input", MFD_CLOEXEC);
  require(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  try {
    read_everything("/proc/self/fd/" + std::to_string(file), 1 + size_t{data[0]}, bytes);
  } catch (const Error& error) {
    // memory: a file may ask for any window
    require(error.kind() == ErrorKind::input || error.kind() == ErrorKind::memory);
  }
  ::close(file);
  return 0;
}
