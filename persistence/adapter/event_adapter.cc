#include "fraktor/persistence/adapter/event_adapter.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

class Tagger final : public EventAdapter {
 public:
  explicit Tagger(std::vector<std::string> tags) : tags_(std::move(tags)) {}

  absl::StatusOr<AdaptedEvent> ToJournal(const Envelope&) const override {
    return AdaptedEvent::Unchanged().WithTags(tags_);
  }

 private:
  const std::vector<std::string> tags_;
};

}  // namespace

absl::StatusOr<AdaptedEvent> EventAdapter::ToJournal(const Envelope&) const { return AdaptedEvent::Unchanged(); }

bool EventAdapter::OnlyReads() const { return false; }

absl::Status EventAdapter::FromJournal(EnvelopePtr event, const StoredEvent&, EventSink sink) const {
  return sink(std::move(event));
}

namespace adapter_internal {

absl::Status PassAll(std::vector<EnvelopePtr> events, EventCodec::EventSink sink) {
  for (EnvelopePtr& event : events) FRAKTOR_RETURN_IF_ERROR(sink(std::move(event)));
  return absl::OkStatus();
}

}  // namespace adapter_internal

std::shared_ptr<const EventAdapter> TagEvents(std::vector<std::string> tags) {
  return std::make_shared<const Tagger>(std::move(tags));
}

}  // namespace fraktor::inline v0
