"""The calls that playbooks and init scripts make of the catalog, for Scripts/test-catalog."""
import base64
import socket


def play_scripts(checks, service):
    play_configuration(checks, service)
    token = play_tokens(checks, service)
    play_management(checks, service, {"authorization": f"Bearer {token}"})
    play_hostile(checks, service)


def play_configuration(checks, service):
    status, answer = service.call("GET", "/api/catalog/v1/config")
    checks.check(status == 200 and "POST /v1/{prefix}/transactions/commit" in answer["endpoints"], "the configuration is there without a token")
    for path in ("/api/v1/config", "/api/catalog/api/v1/config"):
        status, answer = service.call("GET", path)
        checks.check(status == 200 and "/api/catalog/v1/config" in answer["message"], f"{path} tells the right path")
    status, answer = service.call("GET", "/api/catalog/v1/config?warehouse=dev")
    checks.check(status == 401 and answer["error"]["code"] == 401, "a warehouse's configuration takes a token")


def play_tokens(checks, service):
    path = "/api/catalog/v1/oauth/tokens"
    form = {"grant_type": "client_credentials", "scope": "PRINCIPAL_ROLE:ALL"}
    basic = {"authorization": "Basic " + base64.b64encode(b"root:secret").decode()}
    checks.check(service.call("POST", path, form=form, headers=basic)[0] == 200, "a token by HTTP Basic")
    full = form | {"client_id": "root", "client_secret": "secret"}
    status, answer = service.call("POST", path, form=full, headers={"authorization": "Bearer root:secret", "Polaris-Realm": "any"})
    checks.check(status == 200 and answer["token_type"] == "bearer", "a token by a form that carries Bearer id:secret, too")
    status, refused = service.call("POST", path, form=form | {"client_id": "root", "client_secret": "wrong"})
    checks.check((status, refused["error"]) == (401, "invalid_client"), "a wrong secret is refused")
    return answer["access_token"]


def play_management(checks, service, headers):
    def call(method, path, body=None):
        return service.call(method, "/api/management/v1/" + path, body, headers=headers)

    catalog = {
        "name": "balloon-game", "type": "INTERNAL", "properties": {"default-base-location": f"file://{service.directory}/warehouse/balloon-game"},
        "storageConfigInfo": {"storageType": "FILE", "roleArn": "arn:aws:iam::000000000000:role/polaris-access-role"},
    }
    steps = [
        ("POST", "catalogs", {"catalog": catalog}, 201), ("POST", "catalogs", catalog, 409), ("GET", "catalogs", None, 200),
        ("GET", "catalogs/balloon-game", None, 200), ("GET", "catalogs/none", None, 404),
        ("POST", "principals", {"principal": {"name": "player"}, "credentialRotationRequired": False}, 201),
        ("POST", "principal-roles", {"principalRole": {"name": "players"}}, 201), ("POST", "principal-roles", {"principalRole": {"name": "players"}}, 409),
        ("PUT", "principals/player/principal-roles", {"principalRole": {"name": "players"}}, 201),
        ("POST", "catalogs/balloon-game/catalog-roles", {"catalogRole": {"name": "admin"}}, 201),
        ("PUT", "principal-roles/players/catalog-roles/balloon-game", {"catalogRole": {"name": "admin"}}, 201),
        ("PUT", "catalogs/balloon-game/catalog-roles/admin/grants", {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}}, 201),
        ("PUT", "catalogs/balloon-game/catalog-roles/none/grants", {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}}, 404),
        ("DELETE", "principal-roles/none", None, 404),
    ]
    credentials = {}
    for method, path, body, expected in steps:
        status, answer = call(method, path, body)
        checks.check(status == expected, f"{method} {path} gives {expected}", f"{status} {answer}")
        if path == "principals":
            credentials = answer["credentials"]
    client = service.client("balloon-game", f"{credentials['clientId']}:{credentials['clientSecret']}")
    client.create_namespace("players")
    checks.check(("players",) in client.list_namespaces(), "the principal works with the rights of its role")
    status, answer = service.call("POST", "/api/catalog/v1/balloon-game/namespaces", {"namespace": ["pops"]}, headers=headers)
    checks.check(status == 200 and answer["namespace"] == ["pops"], "a namespace by a plain call")
    status, answer = service.call("POST", "/api/catalog/v1/balloon-game/namespaces", {"namespace": ["pops"]}, headers=headers)
    checks.check((status, answer["error"]["type"]) == (409, "AlreadyExistsException"), "the same namespace again is refused")


def play_hostile(checks, service):
    """What is no request, too long a one or half of one; and many in one connection."""
    def exchange(text, until_closed=True):
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
            connection.sendall(text)
            answer = b""
            while until_closed or answer.count(b"HTTP/1.1 ") < 3:
                piece = connection.recv(65536)
                if not piece:
                    break
                answer += piece
            return answer

    checks.check(b" 400 " in exchange(b"\x00\x01\x02 nonsense\r\n\r\n"), "what is not HTTP is refused")
    long = b"POST /api/catalog/v1/oauth/tokens HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n"
    checks.check(b" 413 " in exchange(long), "a body of 100 MB is refused before it comes")
    three = b"GET /api/catalog/v1/config HTTP/1.1\r\nhost: x\r\n\r\n" * 3
    checks.check(exchange(three, until_closed=False).count(b"HTTP/1.1 200") == 3, "three requests in one packet get three answers")
    waits = b"POST /api/catalog/v1/oauth/tokens HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\nconnection: close\r\n\r\nabc=d"
    answer = exchange(waits)
    checks.check(b" 100 Continue" in answer and b"invalid_request" in answer, "a client that waits to be asked for its body is asked")
