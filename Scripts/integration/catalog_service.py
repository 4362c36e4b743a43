"""`millrace serve` with its table catalog, for Scripts/test-catalog."""
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

from pyiceberg.catalog.rest import RestCatalog

from harness import BINARY, free_port


class Service:
    """The server in a directory, on one port through restarts. A context manager."""

    def __init__(self, directory):
        self.directory, self.port, self.process = directory, free_port(), None
        self.base = f"http://127.0.0.1:{self.port}"
        self.uri = self.base + "/api/catalog"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        arguments = ["serve", "--data-dir", self.directory, "--pg", "127.0.0.1:0", "--kafka", "127.0.0.1:0", "--http", "off"]
        self.process = subprocess.Popen(
            [BINARY, *arguments, "--catalog", f"127.0.0.1:{self.port}"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if re.match("millrace: ready", line):
                break
        else:
            sys.exit("the server did not get ready:\n" + "".join(lines))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.stop()
        self.start()

    def client(self, warehouse, credential="root:secret", **more):
        """A client as the balloon tutorial makes it."""
        return RestCatalog(
            "balloon", **{
                "uri": self.uri, "credential": credential, "header.content-type": "application/vnd.api+json",
                "header.X-Iceberg-Access-Delegation": "vended-credentials", "header.Polaris-Realm": "POLARIS",
                "oauth2-server-uri": self.uri + "/v1/oauth/tokens", "warehouse": warehouse, "scope": "PRINCIPAL_ROLE:ALL",
            } | more)

    def call(self, method, path, body=None, form=None, headers=None):
        """Status and JSON of a plain request."""
        data = urllib.parse.urlencode(form).encode() if form else json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, data=data, method=method, headers=headers or {})
        if body is not None:
            request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        return status, json.loads(text) if text else None
