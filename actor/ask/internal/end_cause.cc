#include "fraktor/actor/ask/internal/end_cause.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::TableSlot;

namespace {

// The slot and generation name one actor of the process.
using Key = std::pair<const TableSlot*, uint32_t>;

Key KeyOf(ActorRef actor) { return {actor.any_slot(), actor.generation()}; }

struct EndCauses {
  static EndCauses& Get() {
    static auto& causes = *new EndCauses;
    return causes;
  }

  void Add(Key key, const absl::Status& cause) {
    MutexLock lock(mutex);
    if (!causes.insert_or_assign(key, cause).second) return;
    if (order.size() < kRememberedEndCauses) {
      order.push_back(key);
      return;
    }
    causes.erase(std::exchange(order[oldest], key));
    oldest = (oldest + 1) % kRememberedEndCauses;
  }

  absl::Status Find(Key key) {
    MutexLock lock(mutex);
    const auto found = causes.find(key);
    return found == causes.end() ? absl::OkStatus() : found->second;
  }

  Mutex mutex;
  absl::flat_hash_map<Key, absl::Status> causes ABSL_GUARDED_BY(mutex);
  // A ring of the keys, by age. The entry at `oldest` is forgotten next.
  std::vector<Key> order ABSL_GUARDED_BY(mutex);
  size_t oldest ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace

void RememberEndCause(ActorRef actor, const absl::Status& cause) { EndCauses::Get().Add(KeyOf(actor), cause); }

bool HasEndCause(ActorRef actor) { return !EndCauses::Get().Find(KeyOf(actor)).ok(); }

absl::Status NoReplyOfEnded(std::string_view asked, ActorRef actor, const std::string& path) {
  const std::string what = absl::StrCat(ToAbsl(asked), " gets no reply");
  // The text that describes an unnamed actor says that it has ended.
  const std::string ended = absl::StartsWith(path, "an actor that has ended") ? path : absl::StrCat(path, " has ended");
  const absl::Status cause = EndCauses::Get().Find(KeyOf(actor));
  if (cause.ok()) {
    return MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout, absl::StrCat(what, ": ", ended));
  }
  // Some causes begin with the path of the actor.
  return Annotate(cause, absl::StartsWith(cause.message(), path) ? what : absl::StrCat(what, ": ", ended));
}

}  // namespace fraktor::inline v0::actor_internal
