"""A server in front of a hub: a forward proxy, or a mirror below a path prefix that alters some headers."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Front:
    """log: (method, target) of each request. prefix: path before the hub's own. alter: headers -> headers."""

    def __init__(self, hub_url, prefix="", alter=lambda headers: headers):
        self.hub, self.prefix, self.alter, self.log = urlsplit(hub_url), prefix, alter, []
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_CONNECT(self):
                front.log.append(("CONNECT", self.path, None))
                self.send_response(502)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self):
                front.log.append(("GET", self.path, self.headers.get("Authorization")))
                target = urlsplit(self.path)
                path = target.path
                if not path.startswith(front.prefix):
                    return self.answer(404, [], b"outside the prefix")
                path = path[len(front.prefix) :] + ("?" + target.query if target.query else "")
                hub = http.client.HTTPConnection(front.hub.hostname, front.hub.port)
                keep = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
                hub.request("GET", path, headers=keep)
                got = hub.getresponse()
                body = got.read()
                skip = ("content-length", "connection", "transfer-encoding", "date", "server")
                headers = [(k, v) for k, v in got.getheaders() if k.lower() not in skip]
                return self.answer(got.status, front.alter(headers), body)

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
