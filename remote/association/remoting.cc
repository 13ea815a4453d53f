#include "fraktor/remote/association/remoting.h"

#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/termination_hook.h"
#include "fraktor/remote/association/core_handle.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

struct Remoting::Factories {
  mutable Mutex mutex;
  std::map<std::string, RemoteFactory, std::less<>> by_name ABSL_GUARDED_BY(mutex);
};

namespace {

// The way to another node is over.
struct Flushed {};

// What is left of a node when its system has ended: kept for ever, in a place that tools that look for leaks find.
CoreHandle& MakeHandle() {
  struct All {
    Mutex mutex;
    std::vector<CoreHandle*> handles ABSL_GUARDED_BY(mutex);
  };
  static All& all = *new All;
  auto* const handle = new CoreHandle;  // NOLINT(cppcoreguidelines-owning-memory): of the process.
  MutexLock lock(all.mutex);
  all.handles.push_back(handle);
  return *handle;
}

// /system/remote: spawns actors for other nodes, and sees that nothing is left on its way when the system ends.
class RemoteDaemon final : public ActorInstance {
 public:
  RemoteDaemon(CoreHandle* handle, std::function<absl::StatusOr<PropsPtr>(const RemoteSpawn&)> make)
      : handle_(*handle), make_(std::move(make)) {}

  absl::Status PreStart(ActorContext& context) override {
    context.Tell(context.system().system_guardian(), RegisterTerminationHook{});
    return absl::OkStatus();
  }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<TerminationHook>()) {
      hook_ = context.sender();
      Section section(handle_);
      if (section.core() == nullptr) {
        context.Tell(hook_, TerminationHookDone{});
        return absl::OkStatus();
      }
      section.core()->Flush(section, [self = context.self()] { fraktor::Tell(self, Flushed{}); });
      return absl::OkStatus();
    }
    if (message.Is<Flushed>()) {
      context.Tell(hook_, TerminationHookDone{});
      return absl::OkStatus();
    }
    if (const auto* const spawn = message.TryAs<RemoteSpawn>()) {
      absl::StatusOr<ActorRef> spawned = Spawn(context, *spawn);
      if (spawned.ok()) {
        context.Reply(RemoteSpawned{*spawned});
      } else {
        context.Reply(ErrorReply{spawned.status()});
      }
      return absl::OkStatus();
    }
    return context.Unhandled(message);
  }

 private:
  absl::StatusOr<ActorRef> Spawn(ActorContext& context, const RemoteSpawn& spawn) {
    PropsPtr props;
    try {
      FRAKTOR_ASSIGN_OR_RETURN(props, make_(spawn));
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("the factory \"", spawn.factory, "\" threw: ", error.what()));
    }
    if (props == nullptr) {
      return absl::InternalError(absl::StrCat("the factory \"", spawn.factory, "\" made no recipe: it is null"));
    }
    return context.TrySpawn(*props, spawn.name);
  }

  CoreHandle& handle_;
  const std::function<absl::StatusOr<PropsPtr>(const RemoteSpawn&)> make_;
  ActorRef hook_;
};

}  // namespace

struct RemotingExtension {
  explicit RemotingExtension(ActorSystem&) {}
  std::unique_ptr<Remoting> remoting;
  // The same. Released when it is complete; acquired by Of, also in actors that others call before.
  std::atomic<Remoting*> started{nullptr};
};

Remoting::Remoting(ActorSystem& system, CoreHandle& handle, std::unique_ptr<RemotingCore> core)
    : system_(system), handle_(handle), core_(std::move(core)), factories_(std::make_shared<Factories>()) {}

absl::StatusOr<Remoting*> Remoting::Start(ActorSystem& system, std::unique_ptr<Transport> transport,
                                          const RemoteOptions& options) {
  if (transport == nullptr) return absl::InvalidArgumentError("Remoting::Start needs a transport");
  auto& extension = system.Extension<RemotingExtension>();
  if (extension.remoting != nullptr) return absl::FailedPreconditionError("the system has its remoting already");
  CoreHandle& handle = MakeHandle();
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<RemotingCore> core,
                           RemotingCore::Make(handle, system, std::move(transport), options));
  const std::shared_ptr<const LocalNode> node = core->node();
  std::unique_ptr<Remoting> remoting(new Remoting(system, handle, std::move(core)));
  {
    MutexLock lock(handle.mutex);
    handle.core = remoting->core_.get();
    handle.node.store(node.get(), std::memory_order_seq_cst);
  }
  // From here on its destructor has something to end.
  FRAKTOR_RETURN_IF_ERROR(remoting->core_->transport().Start(MakeReceiver(handle, node)));
  const bool allows = options.allow_deployment && !options.untrusted;
  const auto make = [factories = remoting->factories_, allows](const RemoteSpawn& spawn) -> absl::StatusOr<PropsPtr> {
    if (!allows) {
      return absl::PermissionDeniedError("this node spawns nothing for others; see RemoteOptions.allow_deployment");
    }
    RemoteFactory factory;
    {
      MutexLock lock(factories->mutex);
      const auto found = factories->by_name.find(spawn.factory);
      if (found != factories->by_name.end()) factory = found->second;
    }
    if (factory == nullptr) {
      return absl::NotFoundError(absl::StrCat("no factory \"", spawn.factory, "\" is registered at this node"));
    }
    return factory(spawn.argument);
  };
  FRAKTOR_ASSIGN_OR_RETURN(
      remoting->daemon_,
      system.TrySpawnSystemActor(
          *MakeProps<RemoteDaemon>({}, &handle, std::function<absl::StatusOr<PropsPtr>(const RemoteSpawn&)>(make)),
          "remote"));
  FRAKTOR_ASSIGN_OR_RETURN(remoting->timer_, system.toolbox().SchedulePeriodic({.period = options.tick}, [&handle] {
    Section section(handle);
    if (section.core() != nullptr) section.core()->Tick(section);
  }));
  system.SetRemoteProvider(remoting.get());
  extension.remoting = std::move(remoting);
  extension.started.store(extension.remoting.get(), std::memory_order_release);
  return extension.remoting.get();
}

Remoting* Remoting::Of(ActorSystem& system) {
  return system.Extension<RemotingExtension>().started.load(std::memory_order_acquire);
}

Remoting::~Remoting() { Stop(); }

void Remoting::Stop() {
  system_.toolbox().CancelTimer(timer_);
  // Streams end, and nobody calls from there any more.
  core_->Close();
  handle_.node.store(nullptr, std::memory_order_seq_cst);
  MutexLock lock(handle_.mutex);
  handle_.core = nullptr;
  while (handle_.busy > 0 || handle_.visitors.load(std::memory_order_seq_cst) > 0) handle_.idle.wait(lock);
}

const ActorPathParts& Remoting::address() const { return core_->node()->parts; }

uint64_t Remoting::system_uid() const { return core_->node()->uid; }

bool Remoting::is_untrusted() const { return core_->node()->options.untrusted; }

void Remoting::OpenDoor(ActorRef actor, const MessageType* type, RemoteDoor& door) {
  const Section section(handle_);
  Doorway& doorway = *core_->node()->doorway;
  doorway.all.push_back(
      std::make_unique<const Doorway::Door>(Doorway::Door{.actor = actor, .type = type, .door = &door}));
  doorway.current.store(doorway.all.back().get(), std::memory_order_release);
}

absl::StatusOr<ActorRef> Remoting::RefAt(const ActorPath& path) {
  const std::string text = path.uid().IsNone()
                               ? std::string(path.TextWithoutAddress())
                               : absl::StrCat(ToAbsl(path.TextWithoutAddress()), "#", path.uid().value());
  Section section(handle_);
  if (section.core() == nullptr) return absl::UnavailableError("the actor system has ended");
  return section.core()->RefAt(path.parts(), text, false);
}

absl::StatusOr<ActorRef> Remoting::SelectionAt(const ActorPath& anchor, std::string_view elements) {
  Section section(handle_);
  if (section.core() == nullptr) return absl::UnavailableError("the actor system has ended");
  return section.core()->RefAt(anchor.parts(), elements, true);
}

size_t Remoting::MaxMessageBytes(std::string_view path) const { return core_->MaxMessageBytes(path); }

absl::Status Remoting::Quarantine(const PathAuthority& node, uint64_t system_uid, const QuarantineOptions& options) {
  Section section(handle_);
  if (section.core() == nullptr) return absl::UnavailableError("the actor system has ended");
  return section.core()->Quarantine(section, node, system_uid, options.reason, options.is_harmless);
}

absl::Status Remoting::EndQuarantine(const PathAuthority& node) {
  Section section(handle_);
  if (section.core() == nullptr) return absl::UnavailableError("the actor system has ended");
  return section.core()->EndQuarantine(section, node);
}

void Remoting::GiveBack(const PathAuthority& node, absl::Span<const MessageType* const> types) {
  Section section(handle_);
  if (section.core() != nullptr) section.core()->GiveBack(section, node, types);
}

std::vector<PeerInfo> Remoting::Peers() const {
  Section section(handle_);
  return section.core() == nullptr ? std::vector<PeerInfo>() : section.core()->Peers();
}

absl::Status Remoting::RegisterFactory(std::string_view name, RemoteFactory factory) {
  if (name.empty() || factory == nullptr) return absl::InvalidArgumentError("a factory needs a name and a function");
  MutexLock lock(factories_->mutex);
  if (!factories_->by_name.emplace(std::string(name), std::move(factory)).second) {
    return absl::AlreadyExistsError(absl::StrCat("a factory \"", ToAbsl(name), "\" is registered already"));
  }
  return absl::OkStatus();
}

Future<ActorRef> Remoting::SpawnAt(const ActorPathParts& node, std::string_view factory, std::string_view argument,
                                   std::string_view name, absl::Duration timeout) {
  absl::StatusOr<ActorRef> daemon = absl::UnavailableError("the actor system has ended");
  if (node == address()) {
    daemon = daemon_;
  } else {
    Section section(handle_);
    if (section.core() != nullptr) daemon = section.core()->RefAt(node, "/system/remote", false);
  }
  if (!daemon.ok()) return MakeReadyFuture<ActorRef>(daemon.status());
  RemoteSpawn spawn{.factory = std::string(factory), .name = std::string(name), .argument = std::string(argument)};
  return system_.Ask<RemoteSpawned>(*daemon, std::move(spawn), timeout)
      .MapResult([](absl::StatusOr<RemoteSpawned> spawned) -> absl::StatusOr<ActorRef> {
        if (!spawned.ok()) return spawned.status();
        return spawned->ref;
      });
}

}  // namespace fraktor::inline v0
