#include "fraktor/actor/testkit/test_probe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "fraktor/actor/testkit/internal/probe_inbox.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

namespace testkit_internal {

void ProbeInbox::Put(EnvelopePtr message) {
  if (message == nullptr) return;
  {
    MutexLock lock(mutex_);
    if (std::find(ignored_.begin(), ignored_.end(), message->type()) != ignored_.end()) return;
    messages_.push_back(std::move(message));
  }
  monitor_.NotifyChanged();
}

EnvelopePtr ProbeInbox::Take() {
  MutexLock lock(mutex_);
  if (messages_.empty()) return nullptr;
  EnvelopePtr message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

size_t ProbeInbox::size() const {
  MutexLock lock(mutex_);
  return messages_.size();
}

void ProbeInbox::Ignore(const MessageType* type) {
  MutexLock lock(mutex_);
  ignored_.push_back(type);
  std::erase_if(messages_, [type](const EnvelopePtr& message) { return message->type() == type; });
}

std::string ProbeInbox::Describe() const {
  constexpr size_t kShown = 10;
  std::string text;
  MutexLock lock(mutex_);
  for (size_t i = 0; i < std::min(messages_.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", ToAbsl(messages_[i]->type()->name()));
  }
  if (messages_.size() > kShown) absl::StrAppend(&text, " and ", messages_.size() - kShown, " more");
  return text;
}

}  // namespace testkit_internal

std::string TestProbe::Path() const { return PathOf(ref_); }

std::string TestProbe::PathOf(ActorRef actor) const {
  for (const auto& [watched, path] : watched_) {
    if (watched == actor) return path;
  }
  return kit_->system().PathOf(actor);
}

absl::Duration TestProbe::Patience(absl::Duration within) const {
  return within == kPatience ? kit_->options().patience : within;
}

std::string TestProbe::OneOf(const std::vector<std::string_view>& names) {
  std::string text = "one of ";
  for (size_t i = 0; i < names.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", ToAbsl(names[i]));
  return text;
}

std::string TestProbe::Describe(const Envelope& message) const {
  std::string text(message.type()->name());
  if (const auto* terminated = message.TryAs<Terminated>()) {
    absl::StrAppend(&text, " of ", PathOf(terminated->actor));
  } else if (!message.sender().IsNoOne()) {
    absl::StrAppend(&text, " from ", PathOf(message.sender()));
  }
  return text;
}

void TestProbe::End(std::string_view expected, const std::string& instead, TestLocation at) const {
  std::string text = absl::StrCat(Path(), " expected ", ToAbsl(expected), ", but ", instead);
  if (inbox_->size() > 0) absl::StrAppend(&text, "\n  behind it: ", inbox_->Describe());
  EndTest(at, absl::StrCat(text, kit_->Surroundings()));
}

void TestProbe::EndOnOther(std::string_view expected, const Envelope& message, TestLocation at) const {
  End(expected, absl::StrCat("got ", Describe(message)), at);
}

void TestProbe::EndOnUnequal(const std::string& expected, const std::string& got, TestLocation at) const {
  End(expected, absl::StrCat("got ", got), at);
}

EnvelopePtr TestProbe::Receive(absl::Duration within) {
  kit_->RunUntil([this] { return inbox_->size() > 0; }, Patience(within));
  return inbox_->Take();
}

Envelope& TestProbe::TakeNext(std::string_view expected, absl::Duration within, TestLocation at) {
  kit_->RunUntil([this] { return inbox_->size() > 0; }, Patience(within), at);
  last_ = inbox_->Take();
  was_moved_ = false;
  if (last_ == nullptr) {
    End(expected, absl::StrCat("nothing came within ", absl::FormatDuration(Patience(within))), at);
  }
  return *last_;
}

Envelope& TestProbe::Fish(std::string_view expected, absl::FunctionRef<bool(const Envelope&)> wanted,
                          absl::Duration within, TestLocation at) {
  std::vector<std::string> dropped;
  bool found = false;
  kit_->RunUntil(
      [&] {
        while (!found) {
          EnvelopePtr message = inbox_->Take();
          if (message == nullptr) return false;
          last_ = std::move(message);
          was_moved_ = false;
          found = wanted(*last_);
          if (!found) dropped.push_back(Describe(*last_));
        }
        return true;
      },
      Patience(within), at);
  if (!found) {
    End(expected,
        absl::StrCat("none came within ", absl::FormatDuration(Patience(within)),
                     "; dropped: ", dropped.empty() ? "nothing" : absl::StrJoin(dropped, ", ")),
        at);
  }
  return *last_;
}

void TestProbe::ExpectNoMessage(absl::Duration duration, TestLocation at) {
  if (duration == absl::ZeroDuration()) {
    kit_->Settle(at);
  } else {
    kit_->RunUntil([this] { return inbox_->size() > 0; }, duration, at);
  }
  if (EnvelopePtr message = inbox_->Take()) {
    End(absl::StrCat("no message for ", absl::FormatDuration(duration)), absl::StrCat("got ", Describe(*message)), at);
  }
}

void TestProbe::ExpectTerminatedOf(ActorRef actor, absl::Duration within, TestLocation at) {
  WatchActor(actor);
  const std::string expected = absl::StrCat("Terminated of ", PathOf(actor));
  const Envelope& message = TakeNext(expected, within, at);
  const auto* const terminated = message.TryAs<Terminated>();
  if (terminated == nullptr || terminated->actor != actor) EndOnOther(expected, message, at);
  std::erase_if(watched_, [actor](const auto& entry) { return entry.first == actor; });
}

void TestProbe::WatchActor(ActorRef actor) {
  for (const auto& entry : watched_) {
    if (entry.first == actor) return;
  }
  watched_.emplace_back(actor, kit_->system().PathOf(actor));
  Tell(ref_, testkit_internal::ProbeDo{[actor](ActorContext& context) { context.Watch(actor).IgnoreError(); }});
}

void TestProbe::UnwatchActor(ActorRef actor) {
  std::erase_if(watched_, [actor](const auto& entry) { return entry.first == actor; });
  Tell(ref_, testkit_internal::ProbeDo{[actor](ActorContext& context) { context.Unwatch(actor); }});
}

void TestProbe::Forward(ActorRef to, TestLocation at) {
  if (last_ == nullptr || was_moved_) {
    EndTest(at, absl::StrCat(Path(), " has no message to pass on: ",
                             was_moved_ ? "it cannot be copied, and the test has it" : "none was taken"));
  }
  const uint64_t flags = last_->target_word() & kIntercepted;
  SendForeign(to, std::move(last_), flags).IgnoreError();
}

size_t TestProbe::pending() const { return inbox_->size(); }

void TestProbe::IgnoreType(const MessageType* type) { inbox_->Ignore(type); }

}  // namespace fraktor::inline v0
