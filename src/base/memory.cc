#include "base/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/cgroup.h"

namespace linblock {

namespace {

uint64_t page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  file >> total >> resident;
  return resident * page_bytes();
}

uint64_t peak_resident_bytes() {
  // What getrusage says is never less than what the program that started this one held: Linux counts from before exec.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

uint64_t permitted_memory_bytes() {
  uint64_t least = std::min(static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes(), cgroup_memory_bytes());
  // `ulimit -v` and `ulimit -d`: of the address space, and of the part of it that is private and may be written to.
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      least = std::min(least, static_cast<uint64_t>(limit.rlim_cur));
  }
  return least;
}

void keep_heap_small() {
  // Buffers of a chunk or a piece of text go back to the system whole; one arena, so that what one thread frees another
  // can use. Measured: 11 MB instead of 18 to pack in 16.
  ::mallopt(M_MMAP_THRESHOLD, 32 * 1024);
  ::mallopt(M_TRIM_THRESHOLD, 128 * 1024);
  ::mallopt(M_ARENA_MAX, 1);
}

void return_free_memory() { ::malloc_trim(0); }

void release_code_pages() {
  // Code is never written to, so that dropping its pages loses nothing.
  const auto release = [](dl_phdr_info* info, size_t, void*) {
    const auto page = static_cast<uintptr_t>(page_bytes());
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0 || (part.p_flags & PF_W) != 0) continue;
      const uintptr_t begin = (info->dlpi_addr + part.p_vaddr) / page * page;
      const uintptr_t end = info->dlpi_addr + part.p_vaddr + part.p_memsz;
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
    }
    return 1;  // the program itself comes first; libraries stay
  };
  ::dl_iterate_phdr(release, nullptr);
}

}  // namespace linblock
