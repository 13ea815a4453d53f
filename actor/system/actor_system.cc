#include "fraktor/actor/system/actor_system.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/reply_promise.h"
#include "fraktor/actor/cell/actor_names.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/actor_tree.h"
#include "fraktor/actor/cell/tree_signals.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/dispatch/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/pooled_memory.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/actor_path_registry.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/actor_lifecycle.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/actor/system/guardians.h"
#include "fraktor/actor/system/remote_provider.h"
#include "fraktor/actor/system/system_state.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/fork_guard.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// The end of a system, for which none of its actors may wait in a handler: it ends after them.
class TerminationSource final : public FutureSource<void> {
 public:
  TerminationSource(const ActorSystem& system, Future<void> inner) : system_(system), inner_(std::move(inner)) {}

  bool IsReady() const override { return inner_.IsReady(); }
  bool Poll(const Waker& waker) override { return inner_.Poll(waker); }
  bool StopWaking() override { return inner_.StopWaking(); }
  bool Cancel() override { return inner_.Cancel(); }
  const char* AwaitsThisThread() const override {
    const ActorWorker* const worker = ActorWorker::Current();
    if (worker == nullptr || worker->turn.running() == nullptr || worker->lifecycle.system() != &system_)
      return nullptr;
    return "Wait for the end of the system in a handler of one of its actors, which the system waits for, would have "
           "no "
           "end: call Terminate there, and let main() wait, or use OnTermination";
  }
  absl::Status Take() override { return inner_.Take(); }
  void Drop() noexcept override { delete this; }

 private:
  ~TerminationSource() override = default;

  const ActorSystem& system_;
  Future<void> inner_;
};

constexpr size_t kMaxReported = 1000;
// Streams of the toolbox's generator.
constexpr uint64_t kUidKeyStream = 0x756964;

// Coroutines of actors come from the pool of nodes.
void InstallHooks() {
  static constexpr TaskFrames kFrames{.allocate = &AllocatePooled, .free = &FreePooled};
  static const bool installed = InstallTaskFrames(kFrames);
  static_cast<void>(installed);
  // What an actor has sent before it waits, as a pinned one may, must not wait with it.
  future_internal::InstallBeforeBlocking([] {
    ActorWorker* const worker = ActorWorker::Current();
    if (worker != nullptr) worker->outbox.Flush();
  });
}

ReadyQueueSchedulerOptions SchedulerOptionsOf(const ActorSystemOptions& options) {
  ReadyQueueSchedulerOptions scheduler = options.scheduler;
  if (options.workers > 0) scheduler.dispatchers.default_pool.workers = options.workers;
  std::vector<DispatcherOptions>& named = scheduler.dispatchers.named;
  named.insert(named.end(), options.dispatchers.begin(), options.dispatchers.end());
  return scheduler;
}

// From any thread, with the sender that it has.
void SendAsItIs(ActorRef to, EnvelopePtr message) {
  if (message->type()->is_intercepted()) {
    SendMarked(to, std::move(message));
  } else if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->Send(to, message.release());
  } else {
    SendForeign(to, std::move(message)).IgnoreError();
  }
}

}  // namespace

absl::Status ActorSystemOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(config.Validate());
  if (workers < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ActorSystemOptions.workers is ", workers, "; it is 0 (as many as there are cores) or more"));
  }
  if (shutdown_timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("ActorSystemOptions.shutdown_timeout is ",
                                                   absl::FormatDuration(shutdown_timeout),
                                                   "; it must not be negative"));
  }
  FRAKTOR_RETURN_IF_ERROR(Annotate(dead_letters.Validate(), "ActorSystemOptions.dead_letters"));
  FRAKTOR_RETURN_IF_ERROR(Annotate(log_limits.Validate(), "ActorSystemOptions.log_limits"));
  FRAKTOR_RETURN_IF_ERROR(coordinated_shutdown.Validate());
  FRAKTOR_RETURN_IF_ERROR(Annotate(guardian_strategy.Validate(), "ActorSystemOptions.guardian_strategy"));
  return SchedulerOptionsOf(*this).Validate();
}

// What a system is made of, in the order in which it goes.
class SystemParts {
 public:
  explicit SystemParts(const ActorSystemOptions& given)
      : options(given),
        strategy(given.guardian_strategy),
        log(given.log_sink, given.log_level, given.log_limits),
        events(StreamOptions()) {}

  ~SystemParts() {
    if (scheduler != nullptr) scheduler->ForceStop();
    shutdown.reset();
    // The latest first, and without the lock: one may still use the others.
    for (bool more = true; more;) {
      Extension last;
      MutexLock lock(mutex);
      more = !extensions.empty();
      if (more) {
        last = std::move(extensions.back());
        extensions.pop_back();
      }
    }
    tree.reset();
    scheduler.reset();
  }

  absl::Status Boot(ActorSystem& system);
  void OnRootEnded(ActorRef root);

  // Whose children the actors are that are spawned from outside.
  ActorRef UserParent() const {
    const bool in_system = options.config.default_guardian == Guardian::kSystem;
    return running->guardian(in_system ? GuardianKind::kSystem : GuardianKind::kUser);
  }

  // Also while it boots; no one if there is none yet.
  ActorRef GuardianOf(GuardianKind kind) const {
    return is_running.load(std::memory_order_acquire) ? running->guardian(kind) : booting.guardian(kind);
  }

  // The guardians only wait for the others; they are named if there is nobody else.
  void ReportLiving(ShutdownReport& report) const {
    const ActorRef root = running->guardian(GuardianKind::kRoot);
    const auto is_guardian = [&](ActorRef actor) {
      return actor == root || actor == running->guardian(GuardianKind::kUser) ||
             actor == running->guardian(GuardianKind::kSystem) || actor == temp;
    };
    std::vector<std::string> guardians;
    for (const ActorRef actor : tree->Living(root, kMaxReported + kGuardianKinds + 1)) {
      (is_guardian(actor) ? guardians : report.not_stopped).push_back(tree->PathOf(actor));
    }
    if (report.not_stopped.empty()) report.not_stopped = std::move(guardians);
    if (report.not_stopped.size() > kMaxReported) report.not_stopped.resize(kMaxReported);
  }

  // Completes what waits for the end.
  void CompleteTermination() {
    std::vector<std::function<void()>> callbacks;
    std::vector<Promise<void>> waiting;
    {
      MutexLock lock(mutex);
      if (is_terminated.exchange(true, std::memory_order_acq_rel)) return;
      callbacks.swap(termination_callbacks);
      waiting.swap(termination_promises);
    }
    for (auto callback = callbacks.rbegin(); callback != callbacks.rend(); ++callback) (*callback)();
    const absl::Status why = EndedBy();
    for (Promise<void>& promise : waiting) promise.Set(why);
  }

  // A guardian has failed, and the system ends with it.
  void OnGuardianFailed(ActorRef guardian, const absl::Status& error) {
    {
      MutexLock lock(mutex);
      if (!ended_by.ok()) return;
      ended_by = error;
    }
    log.Log(LogLevel::kError,
            {.at = toolbox->WallNow(),
             .text = ToStd(absl::StrCat("the actor system \"", options.config.system_name, "\" ends, since ",
                                        tree->PathOf(guardian), " has failed: ", error.message(),
                                        "; WhenTerminated() comes to this error. Handle it in the actor or its parent, "
                                        "or give the system another ActorSystemOptions.guardian_strategy"))});
  }
  absl::Status EndedBy() {
    MutexLock lock(mutex);
    return ended_by;
  }

  // The log hears of listeners that throw, unless somebody else does.
  EventStreamOptions StreamOptions() {
    EventStreamOptions stream = options.events;
    if (stream.on_throw == nullptr) {
      stream.on_throw = [this](std::string_view line) {
        log.Log(LogLevel::kError, {.at = toolbox->WallNow(), .text = line});
      };
    }
    return stream;
  }

  const ActorSystemOptions options;
  const SupervisorStrategy strategy;
  Logger log;
  std::unique_ptr<RuntimeToolbox> own_toolbox;
  RuntimeToolbox* toolbox = nullptr;
  EventStream events;
  std::optional<DeadLetters> dead_letters;
  std::shared_ptr<ActorNames> names;
  std::unique_ptr<ReadyQueueScheduler> scheduler;
  std::unique_ptr<ActorTree> tree;
  std::unique_ptr<CoordinatedShutdown> shutdown;
  ActorRef temp;
  BootingSystemState booting{[this](ActorRef actor) {
    log.Log(LogLevel::kWarning,
            {.at = toolbox->WallNow(),
             .text = ToStd(absl::StrCat(tree->PathOf(actor), " was said to have stopped as a guardian, and is none"))});
  }};
  std::unique_ptr<RunningSystemState> running;
  // Whether `running` is there, and the boot is over. Released at the end of the boot.
  std::atomic<bool> is_running{false};
  // Released with what it is.
  std::atomic<RemoteProvider*> remote{nullptr};
  // Set once; release, with what the actors did before.
  std::atomic<bool> is_terminated{false};

  Mutex mutex;
  std::vector<std::function<void()>> termination_callbacks ABSL_GUARDED_BY(mutex);
  std::vector<Promise<void>> termination_promises ABSL_GUARDED_BY(mutex);
  // The failure of the first guardian that has failed.
  absl::Status ended_by ABSL_GUARDED_BY(mutex);
  struct Extension {
    const void* key = nullptr;
    std::shared_ptr<void> object = nullptr;
  };
  std::vector<Extension> extensions ABSL_GUARDED_BY(mutex);
};

absl::Status SystemParts::Boot(ActorSystem& system) {
  InstallHooks();
  toolbox = options.toolbox;
  if (toolbox == nullptr) {
    FRAKTOR_ASSIGN_OR_RETURN(own_toolbox, StdToolbox::Make({.name = options.config.system_name}));
    toolbox = own_toolbox.get();
  }
  DeadLetterOptions letters = options.dead_letters;
  if (letters.log == nullptr) {
    letters.log = [this](std::string_view line) { log.Log(LogLevel::kInfo, {.at = toolbox->WallNow(), .text = line}); };
  }
  dead_letters.emplace(events, std::move(letters));
  Random keys = toolbox->MakeRandom(kUidKeyStream);
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<ActorPathRegistry> registry,
                           ActorPathRegistry::Create(options.config, {.uid_key = keys.Next()}));
  names = ActorNames::Make(std::move(registry), {.toolbox = *toolbox, .events = events});
  ReadyQueueSchedulerOptions scheduling = SchedulerOptionsOf(options);
  if (options.workers == 0 && toolbox->has_threads()) {
    scheduling.dispatchers.default_pool.workers = StdToolbox::HardwareThreads();
  }
  FRAKTOR_ASSIGN_OR_RETURN(scheduler, ReadyQueueScheduler::Make(scheduling, *toolbox));
  tree = std::make_unique<ActorTree>(ActorTreeOptions{.mailboxes = scheduler->mailboxes(),
                                                      .dispatchers = scheduler->dispatchers(),
                                                      .hub = &scheduler->hub(),
                                                      .dead_letters = &*dead_letters,
                                                      .names = names.get(),
                                                      .log = &log,
                                                      .toolbox = toolbox,
                                                      .events = &events,
                                                      .observer = options.tree_observer,
                                                      .system = &system,
                                                      .on_root_ended = [this](ActorRef root) { OnRootEnded(root); }});
  shutdown = std::make_unique<CoordinatedShutdown>(system, options.coordinated_shutdown);
  FRAKTOR_RETURN_IF_ERROR(scheduler->Start(*tree));

  const PropsOptions on_system_pool{.dispatcher = DispatcherChoice::kSystem};
  FRAKTOR_ASSIGN_OR_RETURN(
      const ActorRef root,
      tree->SpawnRoot(*MakeProps<RootGuardian>(on_system_pool, [this](ActorRef guardian, const absl::Status& error) {
        OnGuardianFailed(guardian, error);
      })));
  FRAKTOR_RETURN_IF_ERROR(names->RegisterRoot(*root.slot()));
  ActorTree::ExpectForeignChildren(root);
  booting.SetGuardian(GuardianKind::kRoot, root);
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef user,
                           tree->SpawnChildOf(root, *MakeProps<UserGuardian>(on_system_pool, &strategy), "user"));
  ActorTree::ExpectForeignChildren(user);
  booting.SetGuardian(GuardianKind::kUser, user);
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef guardian,
                           tree->SpawnChildOf(root, *MakeProps<SystemGuardian>(on_system_pool), "system"));
  ActorTree::ExpectForeignChildren(guardian);
  booting.SetGuardian(GuardianKind::kSystem, guardian);
  FRAKTOR_ASSIGN_OR_RETURN(temp, tree->SpawnChildOf(root, *MakeProps<TempGuardian>(on_system_pool), "temp"));
  if (options.on_boot != nullptr) FRAKTOR_RETURN_IF_ERROR(options.on_boot(system));
  FRAKTOR_ASSIGN_OR_RETURN(running, std::move(booting).IntoRunning());
  Tell(root, GuardiansReady{running.get()});
  is_running.store(true, std::memory_order_release);
  return shutdown->ListenToSignals();
}

void SystemParts::OnRootEnded(ActorRef root) {
  // Not `running`, which Boot may be about to set on another thread.
  if (is_running.load(std::memory_order_acquire)) running->MarkStopped(root);
  CompleteTermination();
}

ActorSystem::ActorSystem(std::unique_ptr<SystemParts> parts) : parts_(std::move(parts)) {}

namespace {

ActorSystemOptions UsualOptions(std::string_view name) {
  ActorSystemOptions options;
  options.config.system_name = std::string(name);
  return options;
}

std::unique_ptr<SystemParts> MakeParts(const ActorSystemOptions& options) {
  if (absl::Status valid = options.Validate(); !valid.ok()) throw ActorSystemError(valid);
  return std::make_unique<SystemParts>(options);
}

}  // namespace

ActorSystem::ActorSystem(std::string_view name) : ActorSystem(UsualOptions(name)) {}

// By another constructor, so that the destructor ends what a failed boot has begun.
ActorSystem::ActorSystem(const ActorSystemOptions& options) : ActorSystem(MakeParts(options)) {
  if (absl::Status booted = parts_->Boot(*this); !booted.ok()) {
    throw ActorSystemError(SystemNotBootstrapped(ToStd(booted.message())));
  }
}

ActorRef ActorSystem::Spawn(const ActorProps& props, std::string_view name) {
  return spawn_internal::OrThrow(TrySpawn(props, name));
}

ActorRef ActorSystem::SpawnWatched(const ActorProps& props, ActorRef watcher, std::string_view name) {
  return spawn_internal::OrThrow(TrySpawnWatched(props, watcher, name));
}

ActorRef ActorSystem::SpawnSystemActor(const ActorProps& props, std::string_view name) {
  return spawn_internal::OrThrow(TrySpawnSystemActor(props, name));
}

absl::StatusOr<std::unique_ptr<ActorSystem>> ActorSystem::Create(const ActorSystemOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<ActorSystem> system(new ActorSystem(std::make_unique<SystemParts>(options)));
  if (absl::Status booted = system->parts_->Boot(*system); !booted.ok()) {
    return SystemNotBootstrapped(ToStd(booted.message()));
  }
  return system;
}

bool ActorSystem::IsLeftBehind() const {
  return IsForkedFromThreads() && parts_->toolbox != nullptr && parts_->toolbox->has_threads();
}

ActorSystem::~ActorSystem() {
  if (parts_ == nullptr) return;
  // Nothing of it may be destroyed: that would wait for threads of the parent, and touch files that
  // the parent uses.
  if (IsLeftBehind()) {
    internal_toolbox::KeepForEver(parts_.release());
    return;
  }
  // It would wait for the very turn that it is in.
  if (const ActorWorker* const worker = ActorWorker::Current();
      worker != nullptr && worker->lifecycle.system() == this) {
    const ActorRef self = worker->turn.self();
    const std::string where = self.IsNoOne() ? std::string("on one of its workers, as in a callback")
                                             : absl::StrCat("in a turn of ", parts_->tree->PathOf(self));
    std::fprintf(stderr,
                 "fraktor: the actor system \"%s\" was destroyed %s, which it would have to wait for: let main own the "
                 "system, and call Terminate() in handlers\n",
                 std::string(name()).c_str(), where.c_str());
    std::abort();
  }
  const bool may_wait = !IsWorkerThread() && ActorWorker::Current() == nullptr;
  if (parts_->is_running.load(std::memory_order_acquire) && !IsTerminated() && may_wait) {
    const ShutdownReport report = Shutdown(parts_->options.shutdown_timeout);
    if (!report.ok()) {
      parts_->log.Log(LogLevel::kWarning,
                      {.at = parts_->toolbox->WallNow(),
                       .text = absl::StrCat(
                           report.not_stopped.size(), " actors had not ended within ",
                           absl::FormatDuration(parts_->options.shutdown_timeout),
                           " (ActorSystemOptions.shutdown_timeout) and were ended without their hooks, the first: ",
                           report.not_stopped.front(), "; look for handlers that wait, or allow more time")});
    }
  }
  parts_->CompleteTermination();
}

std::string_view ActorSystem::name() const { return parts_->options.config.system_name; }

absl::StatusOr<ActorRef> ActorSystem::TrySpawn(const ActorProps& props, std::string_view name) {
  if (IsLeftBehind()) return ForkedError("Spawn");
  if (!parts_->is_running.load(std::memory_order_acquire)) return SystemNotBootstrapped("it is booting; spawn later");
  if (IsTerminated()) return Ended();
  return OrEnded(parts_->tree->SpawnChildOf(parts_->UserParent(), props, name));
}

absl::StatusOr<ActorRef> ActorSystem::TrySpawnWatched(const ActorProps& props, ActorRef watcher,
                                                      std::string_view name) {
  if (IsLeftBehind()) return ForkedError("Spawn");
  if (!parts_->is_running.load(std::memory_order_acquire)) return SystemNotBootstrapped("it is booting; spawn later");
  if (IsTerminated()) return Ended();
  return OrEnded(parts_->tree->TrySpawnWatched(parts_->UserParent(), watcher, props, name));
}

absl::StatusOr<ActorRef> ActorSystem::TrySpawnSystemActor(const ActorProps& props, std::string_view name) {
  if (IsLeftBehind()) return ForkedError("Spawn");
  if (!parts_->is_running.load(std::memory_order_acquire)) return SystemNotBootstrapped("it is booting; spawn later");
  if (IsTerminated()) return Ended();
  return OrEnded(parts_->tree->SpawnChildOf(system_guardian(), props, name, DispatcherChoice::kSystem));
}

absl::StatusOr<ActorRef> ActorSystem::OrEnded(absl::StatusOr<ActorRef> spawned) const {
  // The system may end between the check before the spawn and the spawn.
  return spawned.ok() || !IsTerminated() ? spawned : Ended();
}

absl::Status ActorSystem::Ended() const {
  return MakeError(absl::StatusCode::kUnavailable, ActorErrorKind::kTerminating,
                   absl::StrCat("the actor system \"", ToAbsl(name()), "\" has ended"));
}

void ActorSystem::Stop(ActorRef actor) { ActorTree::Stop(actor); }

absl::Status ActorSystem::Observe(ActorRef actor) { return parts_->tree->Observe(actor); }

void ActorSystem::StopObserving(ActorRef actor) { ActorTree::StopObserving(actor); }

void ActorSystem::AskFor(ActorRef to, EnvelopePtr question, AskCompletion& completion) {
  if (IsLeftBehind()) {
    completion.Fail(ForkedError("Ask"));
    return;
  }
  ActorLifecycle& lifecycle = *parts_->tree;
  absl::Status refused = CheckQuestion(lifecycle, to, completion);
  if (IsTerminated() && completion.timeout > absl::ZeroDuration()) {
    refused = Ended();
    question->set_target_word(to.word());
    lifecycle.OnDeadLetter(NodeCache::OfThisThread(), std::move(question), to.any_slot(), DeadLetterReason::kShutdown);
  } else if (refused.ok()) {
    const absl::StatusOr<ActorRef> promise =
        OpenPromiseFor(parts_->temp, parts_->scheduler->mailboxes().promises(), *parts_->toolbox,
                       {.timeout = completion.timeout, .target = to, .completion = &completion});
    if (promise.ok()) {
      completion.promise = *promise;
      question->set_sender(*promise);
      SendAsItIs(to, std::move(question));
      return;
    }
    refused = promise.status();
  } else if (completion.timeout > absl::ZeroDuration()) {
    question->set_target_word(to.word());
    lifecycle.OnDeadLetter(NodeCache::OfThisThread(), std::move(question), to.any_slot(),
                           to.IsNoOne() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kStopped);
  }
  completion.Fail(std::move(refused));
}

absl::Status ActorSystem::MayWait() const {
  if (IsLeftBehind()) return ForkedError("AskAndWait");
  if (!IsWorkerThread()) return absl::OkStatus();
  const ActorRef self = ActorWorker::Current() == nullptr ? ActorRef() : ActorWorker::Current()->turn.self();
  return absl::FailedPreconditionError(absl::StrCat(
      "AskAndWait in ", self.IsNoOne() ? std::string("a worker") : parts_->tree->PathOf(self),
      ": a worker must not wait for an actor, since others could not run meanwhile; use context.Ask and co_await"));
}

void ActorSystem::AwaitReady(FutureNode& node) {
  if (parts_->toolbox->has_threads()) {
    future_internal::BlockUntilReady(node, absl::InfiniteDuration());
    return;
  }
  auto& pumped = static_cast<PumpedToolbox&>(*parts_->toolbox);
  if (!pumped.RunUntil([&] { return node.IsReady(); }, absl::InfiniteDuration()).ok()) node.Cancel();
}

void ActorSystem::Run(Task<void> task) {
  if (TellSystem(parts_->temp, MakeEnvelope<TaskForActor>(ActorRef(), std::move(task))) != nullptr) {
    parts_->log.Log(LogLevel::kWarning, {.at = parts_->toolbox->WallNow(),
                                         .text = "a task came when the system had ended; it was dropped"});
  }
}

absl::StatusOr<ActorRef> ActorSystem::Resolve(std::string_view path) const {
  if (!parts_->is_running.load(std::memory_order_acquire)) return SystemNotBootstrapped("it is booting; resolve later");
  std::string text(path);
  if (!text.empty() && text.front() == '/') {
    FRAKTOR_ASSIGN_OR_RETURN(const ActorPathParts parts, parts_->options.config.LocalParts());
    const std::string root(ActorPath::Root(parts).ToString());
    text = absl::StrCat(absl::string_view(root).substr(0, root.size() - 1), text);
  }
  FRAKTOR_ASSIGN_OR_RETURN(const ActorPath parsed, ActorPathParser::Parse(text));
  if (IsElsewhere(parsed)) return remote_provider()->RefAt(parsed);
  const ActorRef found = parts_->names->Find(parsed);
  if (!found.IsNoOne()) return found;
  absl::Status missing = parts_->names->WhyMissing(parsed);
  if (ErrorKindOf<PathResolutionErrorKind>(missing) == PathResolutionErrorKind::kUidReserved) return missing;
  return MakeError(
      absl::StatusCode::kNotFound, PathResolutionErrorKind::kPidUnknown,
      absl::StrCat("no living actor has the path ", ToAbsl(parsed.ToCanonical()),
                   parsed.parts().system() == name()
                       ? "; look at its name, or whether it has ended: with a uid (#7) only one life is meant"
                       : absl::StrCat("; this system is \"", ToAbsl(name()), "\"")));
}

std::string ActorSystem::PathOf(ActorRef actor) const { return parts_->tree->PathOf(actor); }

std::string ActorSystem::CanonicalPathOf(ActorRef actor) const { return parts_->tree->CanonicalPathOf(actor); }

void ActorSystem::Terminate() {
  if (IsLeftBehind()) return;
  if (parts_->options.coordinated_shutdown.run_by_terminate) {
    static_cast<void>(parts_->shutdown->Run(ShutdownReason::ActorSystemTerminate()));
  } else {
    ActorTree::Stop(user_guardian());
  }
}

CoordinatedShutdown& ActorSystem::coordinated_shutdown() { return *parts_->shutdown; }

Future<void> ActorSystem::WhenTerminated() {
  MutexLock lock(parts_->mutex);
  if (parts_->is_terminated.load(std::memory_order_acquire)) return MakeReadyFuture<void>(parts_->ended_by);
  auto [promise, future] = MakePromise<void>();
  parts_->termination_promises.push_back(std::move(promise));
  return Future<void>::FromSource(*new TerminationSource(*this, std::move(future)));
}

bool ActorSystem::IsTerminated() const { return parts_->is_terminated.load(std::memory_order_acquire); }

absl::Status ActorSystem::OnTermination(std::function<void()> callback) {
  MutexLock lock(parts_->mutex);
  if (parts_->is_terminated.load(std::memory_order_acquire)) {
    return absl::FailedPreconditionError("the actor system has ended already");
  }
  parts_->termination_callbacks.push_back(std::move(callback));
  return absl::OkStatus();
}

ShutdownReport ActorSystem::Shutdown(absl::Duration timeout) {
  ShutdownReport report;
  if (IsLeftBehind()) {
    // Nobody can say more: a thread of the parent may have held any lock of the tree.
    report.not_stopped.push_back(absl::StrCat("pekko://", ToAbsl(name()), "/"));
    return report;
  }
  if (parts_->scheduler->state() == SchedulerState::kStopped) return report;
  if (IsWorkerThread() || ActorWorker::Current() != nullptr) {
    parts_->log.Log(LogLevel::kError,
                    {.at = parts_->toolbox->WallNow(),
                     .text = "Shutdown was called by a worker, which must not wait for actors: the system ends, and "
                             "nobody has waited for it; call Terminate there"});
    Terminate();
    return NotStopped();
  }
  Future<void> terminated = WhenTerminated();
  const Instant deadline = parts_->toolbox->Now() + timeout;
  const auto await = [&](Future<void>& future) {
    const absl::Duration left = std::max(deadline - parts_->toolbox->Now(), absl::ZeroDuration());
    if (parts_->toolbox->has_threads()) {
      future_internal::BlockUntilReady(future.node(), left);
    } else {
      static_cast<PumpedToolbox&>(*parts_->toolbox).RunUntil([&] { return future.IsReady(); }, left).IgnoreError();
    }
  };
  if (parts_->options.coordinated_shutdown.run_by_terminate) {
    Future<void> down = parts_->shutdown->Run(ShutdownReason::ActorSystemTerminate());
    await(down);
    // A phase that does not recover has ended it.
    if (down.IsReady() && !terminated.IsReady()) ActorTree::Stop(user_guardian());
  } else {
    Terminate();
  }
  await(terminated);
  if (!terminated.IsReady()) {
    parts_->ReportLiving(report);
    // Only with threads there may be handlers to wait for.
    if (!report.ok() && parts_->toolbox->has_threads()) {
      parts_->log.Log(LogLevel::kWarning,
                      {.at = parts_->toolbox->WallNow(),
                       .text = absl::StrCat(report.not_stopped.size(), " actors have not ended within ",
                                            absl::FormatDuration(timeout), ", the first: ", report.not_stopped.front(),
                                            "; the shutdown goes on when the handlers that run have returned")});
    }
  }
  // Nobody runs from here on.
  parts_->scheduler->Shutdown(absl::ZeroDuration()).IgnoreError();
  if (!terminated.IsReady()) parts_->CompleteTermination();
  for (const GuardianKind kind : {GuardianKind::kUser, GuardianKind::kSystem, GuardianKind::kRoot}) {
    parts_->running->MarkStopped(parts_->running->guardian(kind));
  }
  return report;
}

ShutdownReport ActorSystem::NotStopped() const {
  ShutdownReport report;
  if (parts_->running != nullptr && !IsTerminated()) parts_->ReportLiving(report);
  return report;
}

ActorRef ActorSystem::root_guardian() const { return parts_->GuardianOf(GuardianKind::kRoot); }
ActorRef ActorSystem::user_guardian() const { return parts_->GuardianOf(GuardianKind::kUser); }
ActorRef ActorSystem::system_guardian() const { return parts_->GuardianOf(GuardianKind::kSystem); }
const RunningSystemState& ActorSystem::state() const { return *parts_->running; }
EventStream& ActorSystem::events() { return parts_->events; }
DeadLetters& ActorSystem::dead_letters() { return *parts_->dead_letters; }
const Logger& ActorSystem::log() const { return parts_->log; }
Logger& ActorSystem::log() { return parts_->log; }
RuntimeToolbox& ActorSystem::toolbox() { return *parts_->toolbox; }
ObservabilityHub& ActorSystem::hub() { return parts_->scheduler->hub(); }
ActorTree& ActorSystem::tree() { return *parts_->tree; }
ActorNames& ActorSystem::names() { return *parts_->names; }
ReadyQueueScheduler& ActorSystem::scheduler() { return *parts_->scheduler; }
const ActorSystemOptions& ActorSystem::options() const { return parts_->options; }

RemoteProvider* ActorSystem::remote_provider() const { return parts_->remote.load(std::memory_order_acquire); }

void ActorSystem::SetRemoteProvider(RemoteProvider* provider) {
  parts_->remote.store(provider, std::memory_order_release);
}

bool ActorSystem::IsElsewhere(const ActorPath& path) const {
  if (!path.has_authority() || remote_provider() == nullptr) return false;
  const absl::StatusOr<ActorPathParts> ours = parts_->options.config.CanonicalParts();
  return !ours.ok() || path.parts() != *ours;
}

void* ActorSystem::FindOrMakeExtension(const void* key, std::shared_ptr<void> (*make)(ActorSystem& system)) {
  const auto find = [&]() -> void* {
    MutexLock lock(parts_->mutex);
    for (const SystemParts::Extension& extension : parts_->extensions) {
      if (extension.key == key) return extension.object.get();
    }
    return nullptr;
  };
  if (void* const found = find()) return found;
  // Those that this thread is making, the latest first: one that needs itself would be made for ever.
  struct Making {
    const ActorSystem* system;
    const void* key;
    const Making* outer;
  };
  thread_local constinit const Making* being_made = nullptr;
  for (const Making* making = being_made; making != nullptr; making = making->outer) {
    if (making->system != this || making->key != key) continue;
    std::fprintf(stderr,
                 "fraktor: an extension of the actor system \"%s\" asks for itself in its constructor, or for another "
                 "that needs it there: do that later, when it is used\n",
                 std::string(name()).c_str());
    std::abort();
  }
  const Making making{.system = this, .key = key, .outer = being_made};
  const struct Scope {
    explicit Scope(const Making& now) { being_made = &now; }
    ~Scope() { being_made = outer; }
    const Making* const outer = being_made;
  } scope(making);
  // Without the lock: an extension may need others. Of two that are made at once the first stays.
  std::shared_ptr<void> made = make(*this);
  {
    MutexLock lock(parts_->mutex);
    for (const SystemParts::Extension& extension : parts_->extensions) {
      if (extension.key == key) return extension.object.get();
    }
    parts_->extensions.push_back({.key = key, .object = made});
  }
  return made.get();
}

}  // namespace fraktor::inline v0
