"""Everything that fraktor needs, from installed packages: for WORKSPACE files, ours and those of our users.

    local_repository(name = "fraktor", path = "…")
    load("@fraktor//third_party/system:dependencies.bzl", "fraktor_system_dependencies")
    fraktor_system_dependencies()
"""

load(":system_repository.bzl", "system_repository", "vendored_repository")

# Debian's bazel-rules-java and bazel-rules-proto install here. Bazel 4.2 asks for both when it analyses a C++ test.
_DEBIAN_RULES = "/usr/share/bazel/rules"

def fraktor_system_dependencies():
    """Defines the repositories that BUILD files of fraktor name. One that exists already is kept."""
    for name in ["com_google_absl", "com_google_googletest", "com_github_google_benchmark", "com_google_protobuf", "com_github_grpc_grpc", "com_googlesource_code_re2", "rocksdb"]:
        if not native.existing_rule(name):
            system_repository(name = name)

    # Debian's bazel-rules-cc is too new for its own Bazel 4.2, and there is no bazel-rules-shell: these re-export the native rules.
    for name in ["rules_cc", "rules_shell", "remote_coverage_tools"]:
        if not native.existing_rule(name):
            vendored_repository(name = name)
    for name in ["java", "proto"]:
        if not native.existing_rule("rules_" + name):
            native.local_repository(name = "rules_" + name, path = _DEBIAN_RULES + "/" + name)
