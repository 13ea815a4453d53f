#include "fraktor/persistence/actor/writer_base.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

uint64_t DrawWriterBase(ActorSystem& system) {
  const ActorSystemConfig& config = system.options().config;
  std::string name = config.system_name;
  if (config.remoting.has_value()) {
    absl::StrAppend(&name, "@", config.remoting->canonical_hostname, ":", config.remoting->canonical_port);
  }
  RuntimeToolbox& toolbox = system.toolbox();
  const auto now = static_cast<uint64_t>(absl::ToUnixNanos(toolbox.WallNow()));
  return toolbox.MakeRandom(now).Fork(ExtendCrc32c(0, name)).Next();
}

}  // namespace fraktor::inline v0
