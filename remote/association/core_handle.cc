#include "fraktor/remote/association/core_handle.h"

#include <cxxabi.h>

#include <utility>

#include "fraktor/actor/send/internal/system_core.h"

namespace fraktor::inline v0 {

using actor_internal::NonBlockingScope;

void Section::WriteFrames() {
  for (FrameToWrite& write : writes_) write.stream->Write(std::move(write.frame));
}

void Section::RunLater() {
  const NonBlockingScope non_blocking;
  for (auto& task : later_) {
    try {
      std::move(task)();
    } catch (const abi::__forced_unwind&) {
      throw;
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody whom it could be told.
    }
  }
}

}  // namespace fraktor::inline v0
