"""TLS and HTTP/2 options. Whether the files are there is the node's affair."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """Options that need one another, and HTTP/2's ranges."""
    args = r.args
    certificate, key = args.ssl_certfile, args.ssl_keyfile
    if key and not certificate:
        raise invalid("--ssl-keyfile requires --ssl-certfile to be specified as well.")
    if certificate and not key:
        raise invalid("--ssl-certfile requires --ssl-keyfile to be specified as well.")
    if not certificate:
        alone = "has no effect without --ssl-certfile and --ssl-keyfile."
        if args.ssl_ca_certs:
            raise invalid(f"--ssl-ca-certs {alone}")
        if args.ssl_keyfile_password:
            raise invalid(f"--ssl-keyfile-password {alone}")
        if args.enable_ssl_refresh:
            raise invalid("--enable-ssl-refresh requires --ssl-certfile and --ssl-keyfile to be specified.")
    if args.enable_http_worker_reuseport and (args.tokenizer_worker_num == 1 or args.enable_http2):
        raise invalid(
            "--enable-http-worker-reuseport requires --tokenizer-worker-num > 1 and has no effect with --enable-http2."
        )
    if not args.enable_http2:
        return
    if not 0 < args.http2_max_concurrent_streams < 2**32:
        raise invalid("--http2-max-concurrent-streams must be between 1 and 4294967295.")
    if not 1024 <= args.http2_initial_connection_window_size < 2**31:
        raise invalid("--http2-initial-connection-window-size must be between 1024 and 2147483647.")
    if args.enable_ssl_refresh:
        raise invalid(
            "--enable-ssl-refresh is not supported with --enable-http2. Granian does not support SSL certificate "
            "hot-reloading. Use Uvicorn (the default) or handle certificate rotation externally."
        )
