#include "services/common/rpc/unacked_settings.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string_view>

#include "services/common/base/errno_error.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"

// An entry of the table of gRPC, whose header is not installed.
struct grpc_chttp2_setting_parameters {
  const char* name;
  uint32_t default_value;
  uint32_t min_value;
  uint32_t max_value;
  int invalid_value_behavior;
  uint32_t error_value;
};

extern const grpc_chttp2_setting_parameters grpc_chttp2_settings_parameters[];

namespace muster {
namespace {

// Positions in the table.
constexpr size_t kMaxConcurrentStreams = 2;
constexpr size_t kMaxHeaderListSize = 5;

// Returns true if the linker has made the pages of `address` read-only after relocation.
bool IsRelro(uintptr_t address) {
  const auto contains = [](dl_phdr_info* info, size_t, void* wanted) -> int {
    const uintptr_t wanted_address = *static_cast<uintptr_t*>(wanted);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
      if (header.p_type == PT_GNU_RELRO && begin <= wanted_address &&
          wanted_address < begin + header.p_memsz) {
        return 1;
      }
    }
    return 0;
  };
  return dl_iterate_phdr(contains, &address) != 0;
}

absl::Status Write(const uint32_t& constant, uint32_t value) {
  const auto address = reinterpret_cast<uintptr_t>(&constant);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* const begin = reinterpret_cast<void*>(address / page * page);
  const size_t length = address + sizeof(value) - address / page * page;
  if (mprotect(begin, length, PROT_READ | PROT_WRITE) != 0) {
    return ErrnoError(errno, "write to", "the settings of gRPC");
  }
  *const_cast<volatile uint32_t*>(&constant) = value;
  if (IsRelro(address) && mprotect(begin, length, PROT_READ) != 0) {
    return ErrnoError(errno, "protect", "the settings of gRPC");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BoundUnackedSettings(const UnackedSettings& bounds) {
  static Mutex mutex;
  static bool checked = false;
  const MutexLock lock(mutex);
  const auto& streams = grpc_chttp2_settings_parameters[kMaxConcurrentStreams];
  const auto& metadata = grpc_chttp2_settings_parameters[kMaxHeaderListSize];
  if (!checked && (std::string_view(streams.name) != "MAX_CONCURRENT_STREAMS" ||
                   streams.default_value != std::numeric_limits<uint32_t>::max() ||
                   std::string_view(metadata.name) != "MAX_HEADER_LIST_SIZE" ||
                   metadata.default_value != 16 * 1024 * 1024)) {
    return absl::InternalError("gRPC has other defaults of HTTP/2 settings than version 1.51");
  }
  checked = true;
  RETURN_IF_ERROR(Write(streams.default_value, bounds.streams));
  return Write(metadata.default_value, bounds.metadata_bytes);
}

}  // namespace muster
