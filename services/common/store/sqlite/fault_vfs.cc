#include "services/common/store/sqlite/fault_vfs.h"

#include <sqlite3.h>

#include <cstdlib>
#include <new>

#include "services/common/base/mutex.h"

namespace muster::sqlite {
namespace {

struct State {
  Mutex mutex;
  Fault fault ABSL_GUARDED_BY(mutex) = Fault::kFullDisk;
  int left ABSL_GUARDED_BY(mutex) = 0;  // calls until it fails; 0: never
  bool for_good ABSL_GUARDED_BY(mutex) = false;
  bool sync_failed ABSL_GUARDED_BY(mutex) = false;
  int syncs_after_failure ABSL_GUARDED_BY(mutex) = 0;
};

State& Shared() {
  static State& state = *new State;
  return state;
}

bool Due(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  if (state.left == 0 || --state.left > 0) return false;
  if (state.for_good) state.left = 1;
  return true;
}

// SQLite's file object, which wraps the real one.
struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real;
};

sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real; }

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  {
    State& state = Shared();
    MutexLock lock(state.mutex);
    if (state.fault != Fault::kSyncError && Due(state)) {
      return state.fault == Fault::kFullDisk ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
  }
  return Real(file)->pMethods->xWrite(Real(file), data, size, offset);
}

int Sync(sqlite3_file* file, int flags) {
  {
    State& state = Shared();
    MutexLock lock(state.mutex);
    if (state.sync_failed) ++state.syncs_after_failure;
    if (state.fault == Fault::kSyncError && Due(state)) {
      state.sync_failed = true;
      return SQLITE_IOERR_FSYNC;
    }
  }
  return Real(file)->pMethods->xSync(Real(file), flags);
}

int Close(sqlite3_file* file) {
  const int code = Real(file)->pMethods->xClose(Real(file));
  std::free(Real(file));
  return code;
}

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Close,
    .xRead = [](sqlite3_file* f, void* d, int n,
                sqlite3_int64 o) { return Real(f)->pMethods->xRead(Real(f), d, n, o); },
    .xWrite = Write,
    .xTruncate = [](sqlite3_file* f,
                    sqlite3_int64 n) { return Real(f)->pMethods->xTruncate(Real(f), n); },
    .xSync = Sync,
    .xFileSize = [](sqlite3_file* f,
                    sqlite3_int64* n) { return Real(f)->pMethods->xFileSize(Real(f), n); },
    .xLock = [](sqlite3_file* f, int l) { return Real(f)->pMethods->xLock(Real(f), l); },
    .xUnlock = [](sqlite3_file* f, int l) { return Real(f)->pMethods->xUnlock(Real(f), l); },
    .xCheckReservedLock = [](sqlite3_file* f,
                             int* r) { return Real(f)->pMethods->xCheckReservedLock(Real(f), r); },
    .xFileControl = [](sqlite3_file* f, int op,
                       void* a) { return Real(f)->pMethods->xFileControl(Real(f), op, a); },
    .xSectorSize = [](sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); },
    .xDeviceCharacteristics =
        [](sqlite3_file* f) { return Real(f)->pMethods->xDeviceCharacteristics(Real(f)); },
    .xShmMap = [](sqlite3_file* f, int p, int s, int e,
                  void volatile** r) { return Real(f)->pMethods->xShmMap(Real(f), p, s, e, r); },
    .xShmLock = [](sqlite3_file* f, int o, int n,
                   int flags) { return Real(f)->pMethods->xShmLock(Real(f), o, n, flags); },
    .xShmBarrier = [](sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); },
    .xShmUnmap = [](sqlite3_file* f, int d) { return Real(f)->pMethods->xShmUnmap(Real(f), d); },
};

sqlite3_vfs* g_real = nullptr;
sqlite3_vfs g_fault;

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* fault = reinterpret_cast<FaultFile*>(file);
  fault->base.pMethods = nullptr;
  fault->real = static_cast<sqlite3_file*>(std::calloc(1, static_cast<size_t>(g_real->szOsFile)));
  const int code = g_real->xOpen(g_real, name, fault->real, flags, out_flags);
  if (code != SQLITE_OK) {
    std::free(fault->real);
    return code;
  }
  fault->base.pMethods = &kMethods;
  return SQLITE_OK;
}

}  // namespace

FaultVfs::FaultVfs() {
  g_real = sqlite3_vfs_find(nullptr);
  g_fault = *g_real;
  g_fault.zName = "fault";
  g_fault.szOsFile = sizeof(FaultFile);
  g_fault.xOpen = Open;
  sqlite3_vfs_register(&g_fault, 1);
  Clear();
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&g_fault);
  sqlite3_vfs_register(g_real, 1);
}

void FaultVfs::FailAt(Fault fault, int n, bool for_good) {
  State& state = Shared();
  MutexLock lock(state.mutex);
  state.fault = fault;
  state.left = n;
  state.for_good = for_good;
}

void FaultVfs::Clear() {
  State& state = Shared();
  MutexLock lock(state.mutex);
  state.left = 0;
  state.sync_failed = false;
  state.syncs_after_failure = 0;
}

int FaultVfs::syncs_after_failure() const {
  State& state = Shared();
  MutexLock lock(state.mutex);
  return state.syncs_after_failure;
}

}  // namespace muster::sqlite
