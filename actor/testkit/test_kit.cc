#include "fraktor/actor/testkit/test_kit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/testkit/internal/probe_inbox.h"
#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::FindLiving;
using actor_internal::TaskForActor;
using actor_internal::WorkerExecutorOptions;
using utils_internal::Inbox;

namespace {

constexpr size_t kLogTail = 20;
// How long a kit with threads waits for the system to come to rest.
constexpr absl::Duration kQuietTimeout = absl::Minutes(1);

// The number of busy actors that a text names.
constexpr size_t kNamed = 10;

}  // namespace

namespace testkit_internal {

void EventTally::Count(bool fits, std::string what) {
  {
    MutexLock lock(mutex_);
    if (fits) ++count_;
    if (shown_.size() < kShown) shown_.push_back(absl::StrCat("\n  ", fits ? "counted: " : "not meant: ", what));
  }
  monitor_.NotifyChanged();
}

int EventTally::count() const {
  MutexLock lock(mutex_);
  return count_;
}

std::string EventTally::Describe() const {
  MutexLock lock(mutex_);
  return absl::StrJoin(shown_, "");
}

std::string DescribeEvent(const AllDeadLetters& event) {
  return absl::StrCat(ToAbsl(event.message.type_name), " to ", ToAbsl(event.recipient), " from ",
                      event.sender.empty() ? "no one" : ToAbsl(event.sender), ": ", ToAbsl(NameOf(event.reason)));
}

std::string DescribeEvent(const UnhandledMessage& event) {
  return absl::StrCat(ToAbsl(event.message.type_name), " to ", ToAbsl(event.recipient), " from ",
                      event.sender.empty() ? "no one" : ToAbsl(event.sender));
}

}  // namespace testkit_internal

TestKit::TestKit(const TestKitOptions& options) : options_(options) {
  if (options.threads > 0) {
    own_toolbox_ = StdToolbox::Make({}).value();
  } else {
    auto local = LocalToolbox::Make({.max_steps = options.max_steps}).value();
    pumped_ = local.get();
    own_toolbox_ = std::move(local);
  }
  toolbox_ = own_toolbox_.get();
  Boot();
}

TestKit::TestKit(const TestKitOptions& options, std::unique_ptr<PumpedToolbox> own, PumpedToolbox* pumped)
    : options_(options), own_toolbox_(std::move(own)), toolbox_(pumped), pumped_(pumped) {
  Boot();
}

void TestKit::Boot() {
  started_ = toolbox_->Now();
  ActorSystemOptions system = options_.system;
  system.toolbox = toolbox_;
  system.log_sink = &log_;
  if (options_.threads > 0) system.workers = options_.threads;
  if (pumped_ != nullptr) {
    // One run per step, so that max_steps counts runs of actors.
    DispatchersOptions& dispatchers = system.scheduler.dispatchers;
    for (WorkerExecutorOptions* pool : {&dispatchers.default_pool, &dispatchers.system_pool, &dispatchers.pinned}) {
      pool->runs_per_step = 1;
    }
  }
  system_ = ActorSystem::Create(system).value();
}

TestKit::~TestKit() { EndSystem(); }

void TestKit::EndSystem() {
  if (std::exchange(has_ended_, true)) return;
  const absl::Duration timeout = options_.system.shutdown_timeout;
  const ShutdownReport report = system_->Shutdown(timeout);
  if (report.ok() || !options_.must_end) return;
  ReportFailure(TestLocation::Here(),
                absl::StrCat("the test is over, but these actors have not ended within ", absl::FormatDuration(timeout),
                             ":\n  ", absl::StrJoin(report.not_stopped, "\n  "), Surroundings()));
}

std::string TestKit::Surroundings() const {
  const std::string tail = log_.Tail(kLogTail);
  return absl::StrCat("\n  after ", absl::FormatDuration(Elapsed()), pumped_ == nullptr ? "" : " of virtual time",
                      tail.empty() ? "; the log is empty" : "; the log's last lines:", tail);
}

absl::Duration TestKit::Elapsed() const { return toolbox_->Now() - started_; }

ActorRef TestKit::Spawn(const ActorProps& props, std::string_view name, TestLocation at) {
  const absl::StatusOr<ActorRef> actor = system_->TrySpawn(props, name);
  if (!actor.ok()) {
    EndTest(at, absl::StrCat("no ", ToAbsl(props.type_name()), " could be spawned: ", actor.status().message()));
  }
  return *actor;
}

void TestKit::AwaitTask(ActorRef actor, TestLocation at,
                        absl::FunctionRef<Task<void>(std::shared_ptr<testkit_internal::EventTally> called)> make) {
  const auto called = std::make_shared<testkit_internal::EventTally>(monitor_);
  if (TellSystem(actor, MakeEnvelope<TaskForActor>(ActorRef(), make(called))) != nullptr) {
    EndTest(at, absl::StrCat("no function can run in ", system_->PathOf(actor), ": it has ended", Surroundings()));
  }
  AwaitThat(
      absl::StrCat("a function in ", system_->PathOf(actor)), [&] { return called->count() > 0; }, TestProbe::kPatience,
      at);
}

void TestKit::EndOnOtherClass(ActorRef actor, std::string_view wanted, TestLocation at) const {
  EndTest(at, absl::StrCat(system_->PathOf(actor), " is not a ", ToAbsl(wanted), Surroundings()));
}

TestProbe TestKit::Probe(std::string_view name, TestLocation at) {
  const std::string given = name.empty() ? absl::StrCat("probe-", ++probes_) : std::string(name);
  auto inbox = std::make_shared<testkit_internal::ProbeInbox>(monitor_);
  // The probe runs on the dispatcher of the actors that it stands for.
  const PropsOptions options{.dispatcher = DispatcherChoice::kDefault};
  const absl::StatusOr<ActorRef> ref =
      system_->TrySpawnSystemActor(*MakeProps<testkit_internal::ProbeActor>(options, inbox), given);
  if (!ref.ok()) EndTest(at, absl::StrCat("no probe \"", given, "\" could be made: ", ref.status().message()));
  return TestProbe(*this, std::move(inbox), *ref);
}

void TestKit::Settle(TestLocation at) {
  if (pumped_ == nullptr) {
    if (!system_->scheduler().dispatchers().AwaitQuiet(kQuietTimeout)) {
      EndTest(at, absl::StrCat("the actors have not come to rest within ", absl::FormatDuration(kQuietTimeout),
                               DescribeBusy(), Surroundings()));
    }
    return;
  }
  const absl::Status idle = pumped_->RunUntilIdle();
  if (!idle.ok()) EndPumping(at, idle);
}

std::vector<std::string> TestKit::BusyActors() const {
  std::vector<std::string> busy;
  for (const ActorRef actor : FindLiving(system_->root_guardian(), SIZE_MAX)) {
    const Inbox& inbox = actor.slot()->mailbox.inbox;
    if (!inbox.IsIdle() && !inbox.IsParked()) busy.push_back(system_->PathOf(actor));
  }
  return busy;
}

std::string TestKit::DescribeBusy() const {
  std::vector<std::string> busy = BusyActors();
  if (busy.empty()) {
    return "\n  no actor has work now: look for a timer that fires again and again";
  }
  const size_t more = busy.size() - std::min(busy.size(), kNamed);
  busy.resize(busy.size() - more);
  return absl::StrCat(
      "\n  these actors have work:\n    ", absl::StrJoin(busy, "\n    "),
      more == 0 ? "" : absl::StrCat("\n    and ", more, " more"),
      "\n  check whether they, or actors that they talk to, send a message in each turn; use a timer for "
      "what repeats");
}

void TestKit::EndPumping(TestLocation at, const absl::Status& ran) {
  const bool is_restless = ran.code() == absl::StatusCode::kResourceExhausted;
  EndTest(at, absl::StrCat(ran.message(), is_restless ? DescribeBusy() : "", Surroundings()));
}

void TestKit::Advance(absl::Duration duration, TestLocation at) {
  if (pumped_ == nullptr) EndTest(at, "a kit with threads has the real clock, which cannot be advanced");
  const absl::Status ran = pumped_->RunFor(duration);
  if (!ran.ok()) EndPumping(at, ran);
}

bool TestKit::RunUntil(absl::FunctionRef<bool()> done, absl::Duration within, TestLocation at) {
  if (pumped_ == nullptr) return monitor_.Await(*toolbox_, done, within);
  const absl::Status ran = pumped_->RunUntil(done, within);
  if (ran.ok()) return true;
  // The time is over, or nothing is left to run; any other error is a mistake.
  if (ran.code() == absl::StatusCode::kResourceExhausted || (!done() && pumped_->RunUntilIdle() != absl::OkStatus())) {
    EndPumping(at, ran);
  }
  return done();
}

void TestKit::AwaitThat(std::string_view what, absl::FunctionRef<bool()> done, absl::Duration within, TestLocation at) {
  const absl::Duration patience = within == TestProbe::kPatience ? options_.patience : within;
  if (RunUntil(done, patience, at)) return;
  EndTest(at, absl::StrCat("this did not happen within ", absl::FormatDuration(patience), ": ", ToAbsl(what),
                           Surroundings()));
}

void TestKit::AwaitReady(FutureNode& future, absl::Duration within, TestLocation at) {
  constexpr std::string_view kWhat = "a future is ready";
  if (pumped_ != nullptr) {
    AwaitThat(
        kWhat, [&] { return future.IsReady(); }, within, at);
    return;
  }
  const absl::Duration patience = within == TestProbe::kPatience ? options_.patience : within;
  if (future_internal::BlockUntilReady(future, patience)) return;
  EndTest(at, absl::StrCat("this did not happen within ", absl::FormatDuration(patience), ": ", ToAbsl(kWhat),
                           Surroundings()));
}

bool TestKit::IsAliveRef(ActorRef actor) const { return actor.IsCurrent(); }

void TestKit::AwaitTally(const testkit_internal::EventTally& tally, std::string_view what, int times, TestLocation at) {
  if (times > 0) RunUntil([&] { return tally.count() >= times; }, options_.patience, at);
  Settle(at);
  const int count = tally.count();
  if (count == times) return;
  const std::string seen = tally.Describe();
  EndTest(at, absl::StrCat("expected ", times, " of ", ToAbsl(what), ", but there were ", count,
                           seen.empty() ? "" : "; seen:", seen, Surroundings()));
}

void TestKit::ExpectLog(const LogFilter& filter, int times, absl::FunctionRef<void()> block, TestLocation at) {
  const uint64_t before = log_.written();
  block();
  const auto count = [&] { return static_cast<int>(log_.Find(before, filter).size()); };
  if (times > 0) RunUntil([&] { return count() >= times; }, options_.patience, at);
  Settle(at);
  if (count() == times) return;
  const std::vector<std::string> found = log_.Find(before, filter);
  EndTest(at, absl::StrCat("expected ", times, " lines of the log at ", ToAbsl(NameOf(filter.level)),
                           " or above with \"", filter.contains, "\" of \"", filter.path, "\", but there were ",
                           found.size(), found.empty() ? "" : ":\n  ", absl::StrJoin(found, "\n  "), Surroundings()));
}

}  // namespace fraktor::inline v0
