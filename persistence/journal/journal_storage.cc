#include "fraktor/persistence/journal/journal_storage.h"

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

absl::Status CheckWriteResults(const WriteResults& results, size_t atomic_writes) {
  if (results.empty() || results.size() == atomic_writes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInternal, JournalErrorKind::kIo,
                   absl::StrCat("the journal gave ", results.size(), " results for ", atomic_writes,
                                " atomic writes; it must give none or one for each. Mend the store"));
}

bool JournalStorage::WriteAtOnce(std::span<const AtomicWrite> /*writes*/, absl::StatusOr<WriteResults>& /*answer*/) {
  return false;
}

}  // namespace fraktor::inline v0
