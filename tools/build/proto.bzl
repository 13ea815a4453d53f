"""C++ from protocol buffers and gRPC services.

    load("//tools/build:proto.bzl", "cc_grpc_library", "fraktor_cc_proto_library")

    fraktor_cc_proto_library(
        name = "frame",
        srcs = ["frame.proto"],
    )

    cc_grpc_library(
        name = "peer",
        srcs = ["peer.proto"],  # import "fraktor/remote/wire/frame.proto";
        deps = [":frame"],
    )

A .proto file is imported by the name of its header: `fraktor/`, its package, its own name. C++ code includes
`fraktor/remote/wire/frame.pb.h` and `fraktor/remote/wire/peer.grpc.pb.h`. The well-known types (`google/protobuf/timestamp.proto` and
so on) may be imported by every library without being named in `deps`.

protoc and the gRPC plugin are the ones of the repositories that BUILD files name, never what happens to be on PATH.
"""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

_ProtoSourcesInfo = provider(
    doc = "The .proto files of a library.",
    fields = {"sources": "A depset of the .proto files of this library and of everything that it depends on."},
)

_WELL_KNOWN = "google/protobuf/"

def _import_name(package, name):
    return "/".join(["fraktor", package, name]) if package else "fraktor/" + name

def _map_ours(source):
    return "-I%s=%s" % (_import_name(source.owner.package, source.owner.name), source.path)

def _map_well_known(source):
    return "-I%s=%s" % (source.path[source.path.rfind(_WELL_KNOWN):], source.path)

def _generated_sources_impl(ctx):
    sources = depset(ctx.files.srcs, transitive = [dep[_ProtoSourcesInfo].sources for dep in ctx.attr.deps])

    # Output files are <root>/<import name without .proto>.pb.h and so on; protoc wants the root.
    first = ctx.outputs.outs[0]
    root = first.path[:first.path.rfind("/" + _import_name(ctx.label.package, ""))]

    arguments = ctx.actions.args()
    arguments.add_all(sources, map_each = _map_ours)
    arguments.add_all(ctx.files._well_known, map_each = _map_well_known)
    arguments.add("--cpp_out=" + root)
    tools = []
    if ctx.attr.grpc:
        arguments.add("--grpc_out=" + root)
        arguments.add("--plugin=protoc-gen-grpc=" + ctx.executable._grpc_plugin.path)
        tools.append(ctx.executable._grpc_plugin)
    arguments.add_all(ctx.files.srcs)

    ctx.actions.run(
        arguments = [arguments],
        executable = ctx.executable._protoc,
        inputs = depset(ctx.files._well_known, transitive = [sources]),
        mnemonic = "Protoc",
        outputs = ctx.outputs.outs,
        progress_message = "Generating C++ of %s" % ctx.label,
        tools = tools,
    )
    return [DefaultInfo(files = depset(ctx.outputs.outs)), _ProtoSourcesInfo(sources = sources)]

_generated_sources = rule(
    implementation = _generated_sources_impl,
    attrs = {
        "srcs": attr.label_list(allow_empty = False, allow_files = [".proto"], mandatory = True),
        "outs": attr.output_list(allow_empty = False, mandatory = True),
        "grpc": attr.bool(mandatory = True),
        "deps": attr.label_list(providers = [_ProtoSourcesInfo]),
        "_protoc": attr.label(
            allow_files = True,
            cfg = "exec",
            default = "@com_google_protobuf//:protoc",
            executable = True,
        ),
        "_grpc_plugin": attr.label(
            allow_files = True,
            cfg = "exec",
            default = "@com_github_grpc_grpc//src/compiler:grpc_cpp_plugin",
            executable = True,
        ),
        "_well_known": attr.label(
            allow_files = [".proto"],
            default = "@com_google_protobuf//:well_known_type_protos",
        ),
    },
)

def _compiled_sources_impl(ctx):
    library = ctx.attr.library
    return [
        DefaultInfo(files = library[DefaultInfo].files, runfiles = library[DefaultInfo].default_runfiles),
        library[CcInfo],
        ctx.attr.generated[_ProtoSourcesInfo],
    ]

# What a library's name stands for: its C++ to those who include it, its .proto files to those who import them.
_compiled_sources = rule(
    implementation = _compiled_sources_impl,
    attrs = {
        "generated": attr.label(mandatory = True, providers = [_ProtoSourcesInfo]),
        "library": attr.label(mandatory = True, providers = [CcInfo]),
    },
    provides = [CcInfo, _ProtoSourcesInfo],
)

def _library(name, srcs, deps, grpc, cc_deps, tags, testonly, visibility):
    folder = name + "_generated"
    suffixes = [".pb"] + ([".grpc.pb"] if grpc else [])
    stems = []
    for src in srcs:
        if not src.endswith(".proto") or src.startswith("//") or src.startswith("@") or src.startswith(":"):
            fail("//%s:%s: srcs names files of its own package that end in .proto, not \"%s\"" % (native.package_name(), name, src))
        stems.append(folder + "/" + _import_name(native.package_name(), src[:-len(".proto")]))
    headers = [stem + suffix + ".h" for stem in stems for suffix in suffixes]
    sources = [stem + suffix + ".cc" for stem in stems for suffix in suffixes]

    _generated_sources(
        name = folder,
        srcs = srcs,
        outs = headers + sources,
        grpc = grpc,
        tags = tags,
        testonly = testonly,
        visibility = ["//visibility:private"],
        deps = deps,
    )

    # Nobody reads the warnings of generated code: -w for its sources, and `includes` makes its headers system headers.
    # gRPC hands the bytes of a message from thread to thread. Where gRPC itself is not built for TSan, TSan sees both ends of that in
    # generated code but not the hand-over, and reports a race; so generated code is built like gRPC.
    cc_library(
        name = name + "_compiled",
        srcs = sources,
        hdrs = headers,
        copts = [
            "-w",
            "-fno-sanitize=thread",
        ],
        includes = [folder],
        tags = tags,
        testonly = testonly,
        visibility = ["//visibility:private"],
        deps = deps + cc_deps,
    )
    _compiled_sources(
        name = name,
        generated = folder,
        library = name + "_compiled",
        tags = tags,
        testonly = testonly,
        visibility = visibility,
    )

def fraktor_cc_proto_library(name, srcs, deps = [], tags = [], testonly = False, visibility = None):
    """Messages: `frame.proto` becomes `fraktor/<package>/frame.pb.h`.

    Args:
      name: the target's name.
      srcs: .proto files of this package.
      deps: other libraries of this file whose .proto files are imported.
      tags: as for cc_library.
      testonly: as for cc_library.
      visibility: as for cc_library.
    """
    _library(name, srcs, deps, False, ["@com_google_protobuf//:protobuf"], tags, testonly, visibility)

def cc_grpc_library(name, srcs, deps = [], tags = [], testonly = False, visibility = None):
    """Messages and services: `peer.proto` becomes `fraktor/<package>/peer.pb.h` and `fraktor/<package>/peer.grpc.pb.h`.

    Args:
      name: the target's name.
      srcs: .proto files of this package. One without a service gets a `.grpc.pb.h` too, with nothing in it.
      deps: other libraries of this file whose .proto files are imported.
      tags: as for cc_library.
      testonly: as for cc_library.
      visibility: as for cc_library.
    """
    _library(name, srcs, deps, True, ["@com_github_grpc_grpc//:grpc++", "@com_google_protobuf//:protobuf"], tags, testonly, visibility)
