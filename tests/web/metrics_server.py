"""A small HTTP server on this machine that shows metrics, in a thread of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

METRICS = b"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m",engine="0"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m",engine="0"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m",engine="0"} 0.5
"""


@dataclass
class MetricsServer:
    """Where it listens, and what it has been asked: path and Authorization."""

    port: int
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def metrics_server() -> Iterator[MetricsServer]:
    """A server with metrics at /metrics, and a redirect to them at /moved."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append((self.path, self.headers["Authorization"]))
            found = self.path.partition("?")[0] == "/metrics"
            self.send_response(200 if found else 307 if self.path == "/moved" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            if self.path == "/moved":
                self.send_header("Location", "/metrics")
            self.end_headers()
            if found:
                self.wfile.write(METRICS)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Not on the error stream."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = MetricsServer(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
