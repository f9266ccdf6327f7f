"""The gRPC servers: ports, and launch paths that do not have them."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """Port and threads, the sidecar, then what the native server excludes."""
    args = r.args
    if not r.since(0, 5, 16):
        _by_variable_alone(r)
        return
    if args.grpc_mode and not args.smg_grpc_mode:
        r.warn(
            "WARNING: --grpc-mode is deprecated and will be removed in a future version. Use --smg-grpc-mode for the "
            "legacy SMG gRPC server, or --grpc-port for the native gRPC server."
        )
        r.set("smg_grpc_mode", True, "--grpc-mode means this")
    threads = environ.read(r, "SGLANG_GRPC_WORKER_THREADS")
    if args.grpc_port is None:
        port = environ.read(r, "SGLANG_GRPC_PORT")
        if port is None and args.smg_grpc_mode:
            port = args.port + 10000
        r.fill("grpc_port", port)
    if args.grpc_response_timeout_secs <= 0:
        raise invalid("--grpc-response-timeout-secs must be positive")
    if args.grpc_port is not None:
        if not 1 <= args.grpc_port <= 65535:
            raise invalid(f"--grpc-port / SGLANG_GRPC_PORT ({args.grpc_port}) must be between 1 and 65535")
        if threads is not None and threads < 1:
            raise invalid(f"SGLANG_GRPC_WORKER_THREADS ({threads}) must be >= 1")
    _sidecar(r)
    if args.grpc_port is not None and not args.smg_grpc_mode:
        _native(r)


def _by_variable_alone(r: Resolution) -> None:
    """Until 0.5.15 the native server had no option, and its port was checked whether it ran or not."""
    port = environ.read(r, "SGLANG_GRPC_PORT")
    if port is None:
        port = r.args.port + 10000
    if not 1 <= port <= 65535:
        raise invalid(f"SGLANG_GRPC_PORT ({port}) must be between 1 and 65535")


def _sidecar(r: Resolution) -> None:
    args = r.args
    if args.sidecar_args is not None:
        if args.sidecar is None:
            raise invalid("--sidecar-args requires --sidecar.")
        if not isinstance(args.sidecar_args, list) or not all(isinstance(word, str) for word in args.sidecar_args):
            raise invalid("--sidecar-args must be a JSON array of strings.")
    if args.sidecar is None:
        return
    if not args.sidecar.strip():
        raise invalid("--sidecar must not be empty.")
    if args.smg_grpc_mode:
        raise invalid(
            "--sidecar requires SGLang's native gRPC server; it cannot be combined with --smg-grpc-mode/--grpc-mode."
        )
    if args.grpc_port is None:
        raise invalid("--sidecar requires --grpc-port or SGLANG_GRPC_PORT.")
    if environ.read(r, "SGLANG_RUST_SERVER") and r.since(0, 5, 22) and not r.since(0, 5, 23):
        raise invalid(
            "--sidecar is not yet supported with SGLANG_RUST_SERVER: Rust-server mode does not run the Python sidecar "
            "lifecycle."
        )


def _native(r: Resolution) -> None:
    args = r.args
    if args.use_ray:
        raise invalid(
            "--grpc-port is not supported with --use-ray: the Ray serve launch path does not start the native gRPC "
            "server."
        )
    if args.encoder_only:
        raise invalid("--grpc-port is not supported with --encoder-only: encoder disaggregation uses its own server.")
    if args.tokenizer_worker_num > 1:
        raise invalid(
            "Native gRPC does not yet support --tokenizer-worker-num > 1. Unset --grpc-port or set "
            "--tokenizer-worker-num "
            "1."
        )
    if args.api_key or args.admin_api_key:
        raise invalid(
            "--grpc-port is incompatible with --api-key/--admin-api-key: the native gRPC listener bypasses HTTP auth "
            "middleware."
        )
