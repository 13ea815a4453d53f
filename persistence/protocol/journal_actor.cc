#include "fraktor/persistence/protocol/journal_actor.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

namespace journal_actor_internal {

// To itself: the time of a hold is over.
struct HoldOver {
  uint64_t number;
};

}  // namespace journal_actor_internal

template <>
inline constexpr bool kIsSuppressedDeadLetter<journal_actor_internal::HoldOver> = true;

using journal_actor_internal::HoldOver;

namespace {

static_assert(!MessageLayout<WriteMessages>::kIsOnHeap, "a write would cost one more allocation");

// A write is held back for at most this part of what the one before it took.
constexpr int kHoldPart = 4;
// The number of writes that are not held back after a hold that was in vain. It doubles with each
// further one, up to the limit.
constexpr int kFirstLeftOut = 16;
constexpr int kMaxLeftOut = 1024;

// Whether the writer of a rejected write cannot go on. See JournalStorage::Write.
bool EndsWriter(const absl::Status& rejection) {
  const std::optional<JournalErrorKind> kind = ErrorKindOf<JournalErrorKind>(rejection);
  if (!kind.has_value()) return false;
  switch (*kind) {
    // Something is stored there: perhaps what the event was when it was first sent.
    case JournalErrorKind::kSequenceMismatch:
    case JournalErrorKind::kEventsLost:
    case JournalErrorKind::kFenced:
    case JournalErrorKind::kNotOpen:
    case JournalErrorKind::kCorrupt:
    case JournalErrorKind::kNewerSchema:
    case JournalErrorKind::kIo:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status JournalActorOptions::Validate() const {
  if (max_writes_in_flight == 0) {
    return absl::InvalidArgumentError("JournalActorOptions::max_writes_in_flight must be above 0");
  }
  if (max_write_bytes == 0) {
    return absl::InvalidArgumentError("JournalActorOptions::max_write_bytes is 0; it must be at least 1");
  }
  return breaker.Validate();
}

JournalActor::JournalActor(std::shared_ptr<JournalStorage> storage, const JournalActorOptions& options)
    : StoreActor("journal", std::move(storage), options) {}

absl::Status JournalActor::Receive(ActorContext& context, Envelope& message) {
  if (auto* const write = message.TryAs<WriteMessages>()) {
    Write(context, *write);
  } else if (Resume(message)) {
    // Done.
  } else if (auto* const replay = message.TryAs<ReplayMessages>()) {
    Replay(context, std::move(*replay));
  } else if (auto* const open = message.TryAs<OpenWriter>()) {
    Open(context, *open);
  } else if (auto* const deletion = message.TryAs<DeleteMessagesTo>()) {
    Delete(context, *deletion);
  } else if (auto* const highest = message.TryAs<GetHighestSequenceNr>()) {
    FindHighest(context, *highest);
  } else if (const auto* const over = message.TryAs<HoldOver>()) {
    if (!hold_.has_timer || over->number != hold_.number) return absl::OkStatus();
    hold_.has_timer = false;
    EndHoldInVain(context);
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

void JournalActor::Open(ActorContext& context, OpenWriter& request) {
  WriteCollectedOf(context, request.persistence_id);
  const auto open = [&] {
    return storage().OpenWriter(std::move(request.persistence_id),
                                request.token == 0 ? std::nullopt : std::make_optional(request.token));
  };
  Run(context, open,
      [&context, client = request.client, instance_id = request.instance_id](absl::StatusOr<WriterOpened> opened) {
        if (opened.ok()) {
          context.Tell(client, WriterIsOpen{.epoch = opened->epoch,
                                            .highest_sequence_nr = opened->highest_sequence_nr,
                                            .instance_id = instance_id,
                                            .deleted_to = opened->deleted_to});
        } else {
          context.Tell(client, OpenWriterFailure{opened.status(), instance_id});
        }
      });
}

void JournalActor::Write(ActorContext& context, WriteMessages& request) {
  if (!request.writes.empty()) {
    if (!WriteAtOnce(context, request)) Collect(context, request);
    return;
  }
  const WriteClient client{.client = request.client,
                           .instance_id = request.instance_id,
                           .batch = request.batch,
                           .write_count = 0,
                           .deferred = std::move(request.deferred),
                           .only_events_are_answered = request.only_events_are_answered};
  AnswerClient(context, client, {}, {}, absl::OkStatus());
}

bool JournalActor::WriteAtOnce(ActorContext& context, WriteMessages& request) {
  // Nothing must be overtaken.
  if (writes_in_flight_ > 0 || !collected_.empty() || is_ending()) return false;
  absl::StatusOr<WriteResults> results{WriteResults()};
  const auto write_at_once = [&] { return storage().WriteAtOnce(request.writes, results); };
  if (!breaker().RunAtOnce(context, write_at_once, results)) return false;
  if (results.ok() && results->empty() && request.deferred.empty()) {
    // The usual case, without what it does not need.
    if (!request.only_events_are_answered) {
      context.Tell(request.client, WriteMessagesSuccessful{.instance_id = request.instance_id, .batch = request.batch});
    }
    for (const AtomicWrite& write : request.writes) {
      for (const PersistentRepr& event : write.events()) {
        context.Tell(request.client, WriteMessageSuccess{event.sequence_nr, request.instance_id, request.batch});
      }
    }
    return true;
  }
  absl::InlinedVector<WriteNumbers, 2> numbers;
  for (const AtomicWrite& write : request.writes) {
    numbers.push_back({.lowest = write.lowest_sequence_nr(), .count = write.events().size()});
  }
  absl::Status failure = results.status();
  if (failure.ok()) failure = CheckWriteResults(*results, numbers.size());
  const WriteClient client{.client = request.client,
                           .instance_id = request.instance_id,
                           .batch = request.batch,
                           .write_count = numbers.size(),
                           .deferred = std::move(request.deferred),
                           .only_events_are_answered = request.only_events_are_answered};
  AnswerClient(context, client, numbers, failure.ok() ? *results : std::span<const absl::Status>(), failure);
  return true;
}

void JournalActor::Collect(ActorContext& context, WriteMessages& request) {
  absl::InlinedVector<WriteNumbers, 2> numbers;
  for (const AtomicWrite& write : request.writes) {
    numbers.push_back({.lowest = write.lowest_sequence_nr(), .count = write.events().size()});
  }
  AddToGroups({.client = request.client,
               .instance_id = request.instance_id,
               .batch = request.batch,
               .write_count = request.writes.size(),
               .deferred = std::move(request.deferred),
               .only_events_are_answered = request.only_events_are_answered},
              std::span<AtomicWrite>(request.writes), numbers);
  if (hold_.awaited > 0) {
    if (--hold_.awaited == 0) {
      hold_.next_left_out = kFirstLeftOut;
      EndHold(context);
    } else if (collected_.size() > 1) {
      // The first write is full.
      EndHold(context);
    } else if (!HoldOn(context)) {
      EndHoldInVain(context);
    }
  } else {
    WriteCollected(context);
  }
}

size_t JournalActor::BytesOf(std::span<const AtomicWrite> writes) {
  size_t bytes = 0;
  for (const AtomicWrite& write : writes) bytes += write.ByteSize();
  return bytes;
}

void JournalActor::Collected::Add(WriteClient client, std::span<AtomicWrite> its_writes,
                                  std::span<const WriteNumbers> its_numbers) {
  clients.push_back(std::move(client));
  numbers.insert(numbers.end(), its_numbers.begin(), its_numbers.end());
  writes.insert(writes.end(), std::make_move_iterator(its_writes.begin()), std::make_move_iterator(its_writes.end()));
}

void JournalActor::AddToGroups(WriteClient client, std::span<AtomicWrite> writes,
                               std::span<const WriteNumbers> numbers) {
  const size_t bytes = BytesOf(writes);
  if (collected_.empty() || collected_.back().bytes + bytes > options().max_write_bytes) collected_.emplace_back();
  collected_.back().bytes += bytes;
  collected_.back().Add(std::move(client), writes, numbers);
}

void JournalActor::AfterWrite(ActorContext& context, size_t clients, absl::Duration took) {
  if (writes_in_flight_ > 0) {
    WriteCollected(context);
    return;
  }
  const absl::Duration time = took / kHoldPart;
  if (collected_.size() > 1) {
    // The next write is full.
  } else if (hold_.left_out > 0) {
    --hold_.left_out;
  } else if (clients > 0 && time > absl::ZeroDuration()) {
    hold_.awaited = clients;
    hold_.until = ActorContext::worker().toolbox->Now() + time;
    // An empty hold waits for nothing: a client that comes too late begins a write of its own.
    if (collected_.empty() || HoldOn(context)) return;
  }
  EndHold(context);
}

bool JournalActor::HoldOn(ActorContext& context) {
  RuntimeToolbox& toolbox = *ActorContext::worker().toolbox;
  if (toolbox.Now() >= hold_.until) return false;
  if (hold_.has_timer) return true;
  const absl::StatusOr<TimerId> armed = toolbox.ScheduleAt(
      hold_.until, [self = context.self(), number = ++hold_.number] { Tell(self, HoldOver{number}); });
  hold_.has_timer = armed.ok();
  if (armed.ok()) hold_.timer = *armed;
  return armed.ok();
}

void JournalActor::EndHoldInVain(ActorContext& context) {
  hold_.left_out = hold_.next_left_out;
  hold_.next_left_out = std::min(2 * hold_.next_left_out, kMaxLeftOut);
  EndHold(context);
}

void JournalActor::EndHold(ActorContext& context) {
  StopHold();
  WriteCollected(context);
}

void JournalActor::StopHold() {
  hold_.awaited = 0;
  if (std::exchange(hold_.has_timer, false)) ActorContext::worker().toolbox->CancelTimer(hold_.timer);
}

bool JournalActor::HasCollected(std::string_view persistence_id) const {
  for (const Collected& group : collected_) {
    for (const AtomicWrite& write : group.writes) {
      if (write.persistence_id() == persistence_id) return true;
    }
  }
  return false;
}

void JournalActor::WriteCollectedOf(ActorContext& context, std::string_view persistence_id) {
  if (is_ending() || !HasCollected(persistence_id)) return;
  StopHold();
  // One group goes as it is. Of several only what has to go does, or else all of them would be in
  // the storage at once.
  Collected first = collected_.size() == 1 ? std::move(collected_.front()) : Collected();
  std::deque<Collected> groups = std::exchange(collected_, {});
  if (groups.size() > 1) Divide(groups, persistence_id, first);
  WriteGroup(context, std::move(first));
}

void JournalActor::Divide(std::deque<Collected>& groups, std::string_view persistence_id, Collected& first) {
  struct Request {
    WriteClient* client;
    std::span<AtomicWrite> writes;
    std::span<const WriteNumbers> numbers;
    bool goes_first;
  };
  std::vector<Request> requests;
  for (Collected& group : groups) {
    size_t at = 0;
    for (WriteClient& client : group.clients) {
      requests.push_back({.client = &client,
                          .writes = std::span<AtomicWrite>(group.writes).subspan(at, client.write_count),
                          .numbers = std::span<const WriteNumbers>(group.numbers).subspan(at, client.write_count),
                          .goes_first = false});
      at += client.write_count;
    }
  }
  // From the last one: a client that writes to several ids must not overtake earlier writes to any
  // of them.
  absl::flat_hash_set<std::string> ids = {std::string(persistence_id)};
  for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
    for (const AtomicWrite& write : request->writes) {
      request->goes_first = request->goes_first || ids.contains(write.persistence_id());
    }
    if (!request->goes_first) continue;
    for (const AtomicWrite& write : request->writes) ids.insert(write.persistence_id());
  }
  for (Request& request : requests) {
    if (request.goes_first) {
      first.Add(std::move(*request.client), request.writes, request.numbers);
    } else {
      AddToGroups(std::move(*request.client), request.writes, request.numbers);
    }
  }
}

void JournalActor::WriteCollected(ActorContext& context) {
  while (!collected_.empty() && !is_ending() && writes_in_flight_ < options().max_writes_in_flight) {
    Collected group = std::move(collected_.front());
    collected_.pop_front();
    WriteGroup(context, std::move(group));
  }
}

void JournalActor::WriteGroup(ActorContext& context, Collected group) {
  ++writes_in_flight_;
  auto write = [this, writes = std::exchange(group.writes, {})]() mutable {
    return storage().Write(std::move(writes));
  };
  auto answer = [this, &context, sent = std::move(group),
                 begin = ActorContext::worker().toolbox->Now()](const absl::StatusOr<WriteResults>& results) {
    --writes_in_flight_;
    AnswerWrites(context, sent, results);
    // After a failure nobody is expected to come again.
    AfterWrite(context, results.ok() ? sent.clients.size() : 0, ActorContext::worker().toolbox->Now() - begin);
  };
  Run(context, std::move(write), std::move(answer));
}

void JournalActor::AnswerWrites(ActorContext& context, const Collected& sent,
                                const absl::StatusOr<WriteResults>& results) {
  absl::Status failure = results.status();
  if (failure.ok()) failure = CheckWriteResults(*results, sent.numbers.size());
  const bool has_results = failure.ok() && !results->empty();
  size_t at = 0;  // among the atomic writes of all clients
  for (const WriteClient& client : sent.clients) {
    const std::span<const absl::Status> own =
        has_results ? std::span<const absl::Status>(*results).subspan(at, client.write_count)
                    : std::span<const absl::Status>();
    AnswerClient(context, client, std::span<const WriteNumbers>(sent.numbers).subspan(at, client.write_count), own,
                 failure);
    at += client.write_count;
  }
}

void JournalActor::AnswerClient(ActorContext& context, const WriteClient& client, std::span<const WriteNumbers> numbers,
                                std::span<const absl::Status> results, const absl::Status& failure) {
  const uint64_t instance_id = client.instance_id;
  const uint64_t batch = client.batch;
  if (client.only_events_are_answered) {
    // They say it all.
  } else if (failure.ok()) {
    context.Tell(client.client, WriteMessagesSuccessful{.instance_id = instance_id, .batch = batch});
  } else {
    context.Tell(client.client,
                 WriteMessagesFailed{
                     .cause = failure, .write_count = client.write_count, .instance_id = instance_id, .batch = batch});
  }
  auto deferred = client.deferred.begin();
  for (size_t i = 0; i <= numbers.size(); ++i) {
    for (; deferred != client.deferred.end() && deferred->position == i; ++deferred) {
      context.Tell(client.client, LoopMessageSuccess{deferred->token, instance_id, batch});
    }
    if (i == numbers.size()) break;
    const absl::Status& result = results.empty() ? failure : results[i];
    for (uint64_t nr = numbers[i].lowest; nr != numbers[i].lowest + numbers[i].count; ++nr) {
      if (result.ok()) {
        context.Tell(client.client, WriteMessageSuccess{nr, instance_id, batch});
      } else if (!failure.ok() || EndsWriter(result)) {
        context.Tell(client.client, WriteMessageFailure{nr, result, instance_id, batch});
      } else {
        context.Tell(client.client, WriteMessageRejected{nr, result, instance_id, batch});
      }
    }
  }
}

void JournalActor::Delete(ActorContext& context, DeleteMessagesTo& request) {
  if (options().publish_commands) context.system().events().Publish(request);
  WriteCollectedOf(context, request.persistence_id);
  const auto remove = [&] {
    return storage().DeleteTo(std::move(request.persistence_id), request.to_sequence_nr, request.epoch);
  };
  Run(context, remove,
      [&context, client = request.client, to = request.to_sequence_nr,
       instance_id = request.instance_id](const absl::Status& deleted) {
        if (deleted.ok()) {
          context.Tell(client, DeleteMessagesSuccess{to, instance_id});
        } else {
          context.Tell(client, DeleteMessagesFailure{deleted, to, instance_id});
        }
      });
}

void JournalActor::FindHighest(ActorContext& context, GetHighestSequenceNr& request) {
  const auto find = [&] { return storage().HighestSequenceNr(std::move(request.persistence_id)); };
  Run(context, find,
      [&context, client = request.client, instance_id = request.instance_id](const absl::StatusOr<uint64_t>& highest) {
        if (highest.ok()) {
          context.Tell(client, HighestSequenceNrSuccess{*highest, instance_id});
        } else {
          context.Tell(client, HighestSequenceNrFailure{highest.status(), instance_id});
        }
      });
}

void JournalActor::Replay(ActorContext& context, ReplayMessages request) {
  if (request.knows_highest) {
    ReadPage(context, std::move(request));
    return;
  }
  const auto find = [this, id = request.persistence_id] { return storage().HighestSequenceNr(id); };
  Run(context, find, [this, &context, request = std::move(request)](const absl::StatusOr<uint64_t>& highest) mutable {
    if (!highest.ok()) {
      context.Tell(request.client, ReplayMessagesFailure{highest.status(), request.instance_id});
      return;
    }
    request.knows_highest = true;
    request.highest_sequence_nr = *highest;
    ReadPage(context, std::move(request));
  });
}

void JournalActor::ReadPage(ActorContext& context, ReplayMessages request) {
  // In a loop: a store may have long stretches of deleted events, and be ready at once.
  for (;;) {
    const uint64_t to = std::min(request.to_sequence_nr, request.highest_sequence_nr);
    if (request.max_events == 0 || request.from_sequence_nr > to) {
      AnswerEnd(context, request, 0);
      return;
    }
    ReplayPage page{.persistence_id = request.persistence_id,
                    .from_sequence_nr = request.from_sequence_nr,
                    .to_sequence_nr = to,
                    .limits = request.limits};
    page.limits.max_events = static_cast<size_t>(std::min<uint64_t>(page.limits.max_events, request.max_events));
    auto read = [&] { return storage().Replay(std::move(page)); };
    Future<EventBatch> reading = protocol_internal::CheckedCall(read);
    if (!reading.IsReady()) {
      Await(context, std::move(reading),
            [this, &context, request = std::move(request)](absl::StatusOr<EventBatch> events) mutable {
              if (!AnswerPage(context, request, std::move(events))) ReadPage(context, std::move(request));
            });
      return;
    }
    if (AnswerPage(context, request, reading.Take())) return;
  }
}

bool JournalActor::AnswerPage(ActorContext& context, ReplayMessages& request, absl::StatusOr<EventBatch> page) {
  if (page.ok() && page->empty() && !page->at_end()) {
    if (page->resume_at() > request.from_sequence_nr) {
      request.from_sequence_nr = page->resume_at();
      return false;
    }
    page =
        EventError(absl::StatusCode::kInternal, JournalErrorKind::kIo, request.persistence_id, request.from_sequence_nr,
                   "the storage has given an empty page that ends where it begins: a fault of the storage");
  }
  if (!page.ok()) {
    context.Tell(request.client, ReplayMessagesFailure{page.status(), request.instance_id});
    return true;
  }
  const bool is_last = page->at_end() || page->size() >= request.max_events;
  const uint64_t last_sent = page->empty() ? 0 : page->back().sequence_nr;
  if (!page->empty()) {
    context.Tell(request.client,
                 ReplayedMessages{.events = *std::move(page), .is_last = is_last, .instance_id = request.instance_id});
  }
  if (is_last) AnswerEnd(context, request, last_sent);
  return true;
}

void JournalActor::AnswerEnd(ActorContext& context, const ReplayMessages& request, uint64_t last_sent_nr) {
  RecoverySuccess success{request.highest_sequence_nr, request.instance_id};
  if (request.asks_for_last_sent) success.last_sent_nr = last_sent_nr;
  context.Tell(request.client, success);
}

void JournalActor::OnEnd(ActorContext& context) {
  if (std::exchange(hold_.has_timer, false)) ActorContext::worker().toolbox->CancelTimer(hold_.timer);
  for (const Collected& group : std::exchange(collected_, {})) AnswerWrites(context, group, EndsStatus());
}

}  // namespace fraktor::inline v0
