#include "fraktor/actor/system/actor_system.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/actor_names.h"
#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/internal/pooled_memory.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/internal/actor_path_registry.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/actor/system/internal/guardians.h"
#include "fraktor/actor/system/internal/remote_provider.h"
#include "fraktor/actor/system/internal/system_state.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/actor/tree/internal/actor_types.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/internal/fork_guard.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorLifecycle;
using actor_internal::ActorNames;
using actor_internal::ActorPathRegistry;
using actor_internal::ActorTree;
using actor_internal::ActorTreeOptions;
using actor_internal::ActorTypes;
using actor_internal::ActorWorker;
using actor_internal::AllocatePooled;
using actor_internal::AskCompletion;
using actor_internal::BootingSystemState;
using actor_internal::CheckAsk;
using actor_internal::ExpectForeignChildren;
using actor_internal::FindLiving;
using actor_internal::FreePooled;
using actor_internal::GuardianKind;
using actor_internal::GuardiansReady;
using actor_internal::kGuardianKinds;
using actor_internal::NodeCache;
using actor_internal::OpenPromiseFor;
using actor_internal::ReadyQueueScheduler;
using actor_internal::RemoteProvider;
using actor_internal::RootGuardian;
using actor_internal::RunningSystemState;
using actor_internal::SchedulerState;
using actor_internal::SystemGuardian;
using actor_internal::SystemNotBootstrapped;
using actor_internal::TaskForActor;
using actor_internal::TempGuardian;
using actor_internal::UserGuardian;
using toolbox_internal::ForkedError;
using toolbox_internal::IsForkedFromThreads;

namespace {

// The future of WhenTerminated. A handler of one of the system's actors must not wait for it: the
// system ends after its actors.
class TerminationSource final : public FutureSource<void> {
 public:
  TerminationSource(const ActorSystem& system, Future<void> inner) : system_(system), inner_(std::move(inner)) {}

  bool IsReady() const override { return inner_.IsReady(); }
  bool Poll(const Waker& waker) override { return inner_.Poll(waker); }
  bool StopWaking() override { return inner_.StopWaking(); }
  bool Cancel() override { return inner_.Cancel(); }
  const char* AwaitsThisThread() const override {
    const ActorWorker* const worker = ActorWorker::Current();
    if (worker == nullptr || worker->turn_state.running() == nullptr || worker->lifecycle.system() != &system_)
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
// The stream of the toolbox's random numbers for the key of uids.
constexpr uint64_t kUidKeyStream = 0x756964;

// Installs the functions that utils/future calls. Coroutine frames come from the pool of nodes.
void InstallHooks() {
  static constexpr TaskFrames kFrames{.allocate = &AllocatePooled, .free = &FreePooled};
  static const bool installed = InstallTaskFrames(kFrames);
  static_cast<void>(installed);
  // A pinned actor may block. Its pending messages are sent before.
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

// Sends an envelope from any thread. The envelope keeps its sender.
void SendAsItIs(ActorRef to, EnvelopePtr message) {
  if (message->type()->is_intercepted()) {
    SendIntercepted(to, std::move(message));
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
  if (const std::optional<int> pool = scheduler.dispatchers.default_pool.workers;
      workers > 0 && pool.value_or(workers) != workers) {
    return absl::InvalidArgumentError(absl::StrCat("ActorSystemOptions.workers is ", workers,
                                                   ", but scheduler.dispatchers.default_pool.workers is ", *pool,
                                                   "; both are the workers of the default pool: set one of them"));
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

// The parts of a system, in the order in which they are made.
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
    // The latest first, and without the lock: an extension may use the earlier ones.
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

  // The parent of actors that are spawned from outside.
  ActorRef UserParent() const {
    const bool in_system = options.config.default_guardian == Guardian::kSystem;
    return running->guardian(in_system ? GuardianKind::kSystem : GuardianKind::kUser);
  }

  // Also while the system boots; no one before the guardian has started.
  ActorRef GuardianOf(GuardianKind kind) const {
    return is_running.load(std::memory_order_acquire) ? running->guardian(kind) : booting.guardian(kind);
  }

  // Names the guardians only if no other actor lives: they wait for the others.
  void ReportLiving(ShutdownReport& report) const {
    const ActorRef root = running->guardian(GuardianKind::kRoot);
    const auto is_guardian = [&](ActorRef actor) {
      return actor == root || actor == running->guardian(GuardianKind::kUser) ||
             actor == running->guardian(GuardianKind::kSystem) || actor == temp;
    };
    std::vector<std::string> guardians;
    for (const ActorRef actor : FindLiving(root, kMaxReported + kGuardianKinds + 1)) {
      (is_guardian(actor) ? guardians : report.not_stopped).push_back(tree->PathOf(actor));
    }
    if (report.not_stopped.empty()) report.not_stopped = std::move(guardians);
    if (report.not_stopped.size() > kMaxReported) report.not_stopped.resize(kMaxReported);
  }

  // Calls the callbacks of OnTermination, and completes the futures of WhenTerminated.
  void CompleteTermination() {
    std::vector<std::function<void()>> callbacks;
    std::vector<Promise<void>> waiting;
    {
      MutexLock lock(mutex);
      if (is_terminated.exchange(true, std::memory_order_acq_rel)) return;
      callbacks.swap(termination_callbacks);
      waiting.swap(termination_promises);
    }
    for (auto callback = callbacks.rbegin(); callback != callbacks.rend(); ++callback) {
      try {
        (*callback)();
      } catch (...) {
        const absl::Status thrown = StatusFromException(CaptureException());
        log.Log(LogLevel::kError,
                {.at = toolbox->WallNow(),
                 .text = ToStd(absl::StrCat("a callback of ActorSystem::OnTermination threw: ", thrown.message()))});
      }
    }
    const absl::Status why = EndedBy();
    for (Promise<void>& promise : waiting) promise.Set(why);
  }

  // A guardian has failed, which ends the system.
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
                                        "; WhenTerminated() returns this error. Handle it in the actor or its parent, "
                                        "or give the system another ActorSystemOptions.guardian_strategy"))});
  }
  absl::Status EndedBy() {
    MutexLock lock(mutex);
    return ended_by;
  }

  // Exceptions of subscribers are logged, unless the options say otherwise.
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
    log.Log(
        LogLevel::kWarning,
        {.at = toolbox->WallNow(),
         .text = ToStd(absl::StrCat(tree->PathOf(actor), " was reported as a stopped guardian, and is no guardian"))});
  }};
  std::unique_ptr<RunningSystemState> running;
  // Whether the boot is over, and `running` is set. Release at the end of the boot: pairs with the
  // acquire of all readers.
  std::atomic<bool> is_running{false};
  // Release in SetRemoteProvider: pairs with the acquire in remote_provider.
  std::atomic<RemoteProvider*> remote{nullptr};
  // Set once. Release in CompleteTermination: pairs with the acquire in IsTerminated.
  std::atomic<bool> is_terminated{false};

  Mutex mutex;
  std::vector<std::function<void()>> termination_callbacks ABSL_GUARDED_BY(mutex);
  std::vector<Promise<void>> termination_promises ABSL_GUARDED_BY(mutex);
  // The error of the first guardian that failed.
  absl::Status ended_by ABSL_GUARDED_BY(mutex);
  struct Extension {
    const void* key = nullptr;
    std::shared_ptr<void> object = nullptr;
  };
  std::vector<Extension> extensions ABSL_GUARDED_BY(mutex);
  // The extensions that threads are making, and those that threads wait for meanwhile.
  struct ExtensionInWork {
    std::thread::id thread;
    const void* key = nullptr;
  };
  std::vector<ExtensionInWork> extensions_in_making ABSL_GUARDED_BY(mutex);
  std::vector<ExtensionInWork> extensions_awaited ABSL_GUARDED_BY(mutex);
  // Signals each change of `extensions_in_making`.
  std::condition_variable_any extension_done;

  // Null if nobody makes it.
  static const ExtensionInWork* FindInWork(const std::vector<ExtensionInWork>& all, const void* key) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.key == key; });
    return found == all.end() ? nullptr : &*found;
  }
  // Returns whether this thread makes the extension, or one that the maker of the extension waits
  // for, and so on: then nobody could finish it.
  bool ExtensionAwaitsThisThread(const void* key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (const ExtensionInWork* const maker = FindInWork(extensions_in_making, key)) {
      if (maker->thread == std::this_thread::get_id()) return true;
      const auto awaited = std::find_if(extensions_awaited.begin(), extensions_awaited.end(),
                                        [&](const auto& one) { return one.thread == maker->thread; });
      if (awaited == extensions_awaited.end()) return false;
      key = awaited->key;
    }
    return false;
  }
  static void Erase(std::vector<ExtensionInWork>& from, const ExtensionInWork& one) {
    std::erase_if(from, [&](const auto& other) { return other.thread == one.thread && other.key == one.key; });
  }
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
  std::optional<int>& workers = scheduling.dispatchers.default_pool.workers;
  if (!workers.has_value() && toolbox->has_threads()) workers = StdToolbox::HardwareThreads();
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
  ExpectForeignChildren(root);
  booting.SetGuardian(GuardianKind::kRoot, root);
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef user,
                           tree->SpawnChildOf(root, *MakeProps<UserGuardian>(on_system_pool, &strategy), "user"));
  ExpectForeignChildren(user);
  booting.SetGuardian(GuardianKind::kUser, user);
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef guardian,
                           tree->SpawnChildOf(root, *MakeProps<SystemGuardian>(on_system_pool), "system"));
  ExpectForeignChildren(guardian);
  booting.SetGuardian(GuardianKind::kSystem, guardian);
  FRAKTOR_ASSIGN_OR_RETURN(temp, tree->SpawnChildOf(root, *MakeProps<TempGuardian>(on_system_pool), "temp"));
  if (options.on_boot != nullptr) FRAKTOR_RETURN_IF_ERROR(future_internal::InvokeForResult(options.on_boot, system));
  FRAKTOR_ASSIGN_OR_RETURN(running, std::move(booting).IntoRunning());
  Tell(root, GuardiansReady{running.get()});
  is_running.store(true, std::memory_order_release);
  return shutdown->ListenToSignals();
}

void SystemParts::OnRootEnded(ActorRef root) {
  // `running` alone is not enough: Boot may be setting it on another thread.
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

// Delegates to another constructor, so that the destructor runs after a failed boot.
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
  // The child of a fork destroys nothing: the destructors would wait for threads of the parent
  // process, and touch files that it uses.
  if (IsLeftBehind()) {
    toolbox_internal::KeepForEver(parts_.release());
    return;
  }
  // The destructor would wait for the turn that calls it.
  if (const ActorWorker* const worker = ActorWorker::Current();
      worker != nullptr && worker->lifecycle.system() == this) {
    const ActorRef self = worker->turn_state.self();
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
  // The system may end between the check of the caller and the spawn.
  return spawned.ok() || !IsTerminated() ? spawned : Ended();
}

absl::Status ActorSystem::Ended() const {
  return MakeError(absl::StatusCode::kUnavailable, ActorErrorKind::kTerminating,
                   absl::StrCat("the actor system \"", ToAbsl(name()), "\" has ended"));
}

void ActorSystem::Stop(ActorRef actor) { ActorTree::Stop(actor); }

absl::Status ActorSystem::Observe(ActorRef actor) { return parts_->tree->types().Observe(actor); }

void ActorSystem::StopObserving(ActorRef actor) { ActorTypes::StopObserving(actor); }

void ActorSystem::AskFor(ActorRef to, EnvelopePtr envelope, AskCompletion& completion) {
  if (IsLeftBehind()) {
    completion.Fail(ForkedError("Ask"));
    return;
  }
  ActorLifecycle& lifecycle = *parts_->tree;
  absl::Status refused = CheckAsk(lifecycle, to, completion);
  if (IsTerminated() && completion.timeout > absl::ZeroDuration()) {
    refused = Ended();
    envelope->set_target_word(to.word());
    lifecycle.OnDeadLetter(NodeCache::OfThisThread(), std::move(envelope), to.any_slot(), DeadLetterReason::kShutdown);
  } else if (refused.ok()) {
    const absl::StatusOr<ActorRef> promise =
        OpenPromiseFor(parts_->temp, parts_->scheduler->mailboxes().promises(), *parts_->toolbox,
                       {.timeout = completion.timeout, .target = to, .completion = &completion});
    if (promise.ok()) {
      completion.promise = *promise;
      envelope->set_sender(*promise);
      SendAsItIs(to, std::move(envelope));
      return;
    }
    refused = promise.status();
  } else if (completion.timeout > absl::ZeroDuration()) {
    envelope->set_target_word(to.word());
    lifecycle.OnDeadLetter(NodeCache::OfThisThread(), std::move(envelope), to.any_slot(),
                           to.IsNoOne() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kStopped);
  }
  completion.Fail(std::move(refused));
}

absl::Status ActorSystem::MayWait() const {
  if (IsLeftBehind()) return ForkedError("AskAndWait");
  if (!IsWorkerThread()) return absl::OkStatus();
  const ActorRef self = ActorWorker::Current() == nullptr ? ActorRef() : ActorWorker::Current()->turn_state.self();
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
                       ? "; check its name, and whether it has ended: a path with a uid (#7) names one incarnation only"
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
  std::vector<Promise<void>>& promises = parts_->termination_promises;
  // Promises whose futures were dropped go when the vector would grow, so it holds at most about
  // twice as many promises as there are futures.
  if (promises.size() == promises.capacity()) {
    std::erase_if(promises, [](const Promise<void>& one) { return one.IsCancelled(); });
    promises.reserve(std::max<size_t>(16, 2 * promises.size()));
  }
  promises.push_back(std::move(promise));
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
    // Another thread of the parent process may hold any lock of the tree, so no actor can be named.
    report.not_stopped.push_back(absl::StrCat("pekko://", ToAbsl(name()), "/"));
    return report;
  }
  if (parts_->scheduler->state() == SchedulerState::kStopped) return report;
  if (IsWorkerThread() || ActorWorker::Current() != nullptr) {
    parts_->log.Log(
        LogLevel::kError,
        {.at = parts_->toolbox->WallNow(),
         .text = "Shutdown was called on a worker, which must not wait for actors, so it does not wait until "
                 "the system has ended; call Terminate there"});
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
    // A phase with `recover` off has ended the shutdown early.
    if (down.IsReady() && !terminated.IsReady()) ActorTree::Stop(user_guardian());
  } else {
    Terminate();
  }
  await(terminated);
  if (!terminated.IsReady()) {
    parts_->ReportLiving(report);
    // Without threads no handler runs now.
    if (!report.ok() && parts_->toolbox->has_threads()) {
      parts_->log.Log(LogLevel::kWarning,
                      {.at = parts_->toolbox->WallNow(),
                       .text = absl::StrCat(report.not_stopped.size(), " actors have not ended within ",
                                            absl::FormatDuration(timeout), ", the first: ", report.not_stopped.front(),
                                            "; the shutdown goes on when the handlers that run have returned")});
    }
  }
  // No worker runs from here on.
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

// Each extension is made once: other threads wait for the one that makes it. It is made without the
// lock, because an extension may need others.
void* ActorSystem::FindOrMakeExtension(const void* key, std::shared_ptr<void> (*make)(ActorSystem& system)) {
  const SystemParts::ExtensionInWork mine{.thread = std::this_thread::get_id(), .key = key};
  {
    MutexLock lock(parts_->mutex);
    for (;;) {
      for (const SystemParts::Extension& extension : parts_->extensions) {
        if (extension.key == key) return extension.object.get();
      }
      if (SystemParts::FindInWork(parts_->extensions_in_making, key) == nullptr) break;
      if (parts_->ExtensionAwaitsThisThread(key)) {
        std::fprintf(stderr,
                     "fraktor: an extension of the actor system \"%s\" asks for itself in its constructor, or for "
                     "another that needs it there: do that later, when it is used\n",
                     std::string(name()).c_str());
        std::abort();
      }
      parts_->extensions_awaited.push_back(mine);
      parts_->extension_done.wait(lock);
      SystemParts::Erase(parts_->extensions_awaited, mine);
    }
    parts_->extensions_in_making.push_back(mine);
  }
  // Also if the constructor throws: then the next thread tries.
  const absl::Cleanup done = [&] {
    MutexLock lock(parts_->mutex);
    SystemParts::Erase(parts_->extensions_in_making, mine);
    parts_->extension_done.notify_all();
  };
  std::shared_ptr<void> made = make(*this);
  MutexLock lock(parts_->mutex);
  return parts_->extensions.emplace_back(SystemParts::Extension{.key = key, .object = std::move(made)}).object.get();
}

}  // namespace fraktor::inline v0
