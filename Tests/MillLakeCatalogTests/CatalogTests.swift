import MillBase
import MillIO
import MillIceberg
import Testing

@testable import MillLakeCatalog

@Suite struct CatalogTests {
    // MARK: Configuration and tokens

    @Test func configurationIsForEverybody() throws {
        let world = try CatalogWorld()
        let headers = [(name: "authorization", value: "")]
        for path in ["/api/catalog/v1/config", "/api/v1/config", "/api/catalog/api/v1/config"] {
            let answer = try world.send("GET", path, headers: headers)
            #expect(answer.status == 200)
            #expect(answer.json["endpoints"].array?.isEmpty == false)
        }
        #expect(try world.send("GET", "/api/v1/config").json["message"].string?.contains("/api/catalog/v1/config") == true)
        #expect(try world.send("GET", "/api/catalog/v1/config?warehouse=dev", headers: headers).status == 401)
        #expect(try world.send("GET", "/api/catalog/v1/config?warehouse=dev").json["overrides"]["prefix"].string == "dev")
    }

    @Test func anUnknownWarehouseIsMadeOrRefusedAsTheSettingSays() throws {
        #expect(try CatalogWorld().send("GET", "/api/catalog/v1/config?warehouse=game").json["overrides"]["prefix"].string == "game")
        let strict = try CatalogWorld { $0.makesWarehouses = false }
        #expect(try strict.send("GET", "/api/catalog/v1/config?warehouse=game").status == 404)
        #expect(try CatalogWorld().send("GET", "/api/catalog/v1/config?warehouse=a%2Fb").status == 400)
    }

    @Test func tokensComeByFormBasicOrBearer() throws {
        let world = try CatalogWorld()
        let path = "/api/catalog/v1/oauth/tokens"
        let bare = "grant_type=client_credentials&scope=PRINCIPAL_ROLE:ALL"
        let full = bare + "&client_id=root&client_secret=secret"
        let basic = [(name: "Authorization", value: "Basic cm9vdDpzZWNyZXQ=")]
        #expect(try world.send("POST", path, headers: basic, form: bare).status == 200)
        #expect(try world.send("POST", path, headers: [("authorization", "Bearer root:secret")], form: full).status == 200)
        #expect(try world.send("POST", path, headers: [("authorization", "Bearer root:secret")], form: bare).status == 200)
        let answer = try world.send("POST", path, headers: [("content-type", "application/vnd.api+json")], form: full)
        #expect(answer.json["token_type"].string == "bearer")
        #expect(answer.json["expires_in"].int == 3600)
        for form in [bare + "&client_id=root&client_secret=no", bare + "&client_id=nobody&client_secret=secret"] {
            let refused = try world.send("POST", path, headers: [("authorization", "")], form: form)
            #expect(refused.status == 401)
            #expect(refused.json["error"].string == "invalid_client")
        }
        #expect(try world.send("POST", path, form: "grant_type=password").json["error"].string == "unsupported_grant_type")
        #expect(try world.send("POST", path, form: "%zz").status == 400)
    }

    @Test func tokensExpire() throws {
        let world = try CatalogWorld()
        #expect(try world.call("GET", "namespaces").status == 200)
        world.clock.advance(seconds: 3601)
        #expect(try world.call("GET", "namespaces").status == 419)
        #expect(try world.send("GET", "/api/catalog/v1/dev/namespaces", headers: [("authorization", "Bearer x")]).status == 401)
    }

    @Test func bootstrapCredentialsComeFromTheEnvironmentsText() throws {
        #expect(throws: SQLError.self) { try BootstrapCredentials(environmentText: "realm,id") }
        let credentials = try BootstrapCredentials(environmentText: "default-realm,admin,s3cret;other,x,y")
        #expect(credentials == BootstrapCredentials(clientID: "admin", secret: "s3cret"))
        let world = try CatalogWorld { $0.credentials = credentials }
        #expect(try world.call("GET", "namespaces").status == 200)
        #expect(try world.askForToken("root", "secret").status == 401)
    }

    // MARK: Namespaces

    @Test func namespacesNest() throws {
        let world = try CatalogWorld()
        try world.makeNamespace("shop")
        try world.makeNamespace("shop", "eu")
        #expect(try world.call("POST", "namespaces", ["namespace": ["none", "eu"]]).status == 404)
        #expect(try world.call("POST", "namespaces", ["namespace": ["shop"]]).errorType == "AlreadyExistsException")
        #expect(try world.call("GET", "namespaces").json["namespaces"] == [["shop"]])
        #expect(try world.call("GET", "namespaces?parent=shop").json["namespaces"] == [["shop", "eu"]])
        #expect(try world.call("HEAD", "namespaces/shop%1Feu").status == 204)
        #expect(try world.call("GET", "namespaces/shop%1Feu").json["properties"]["location"].string == "file:///lake/dev/shop/eu")
        #expect(try world.call("DELETE", "namespaces/shop").errorType == "NamespaceNotEmptyException")
        #expect(try world.call("DELETE", "namespaces/shop%1Feu").status == 204)
        #expect(try world.call("DELETE", "namespaces/shop").status == 204)
        #expect(try world.call("GET", "namespaces/shop").errorType == "NoSuchNamespaceException")
    }

    @Test func namespacePropertiesAreSetAndRemoved() throws {
        let world = try CatalogWorld()
        _ = try world.call("POST", "namespaces", ["namespace": ["shop"], "properties": ["a": "1", "b": "2"]])
        let answer = try world.call("POST", "namespaces/shop/properties", ["updates": ["c": "3"], "removals": ["a", "x"]])
        #expect(answer.json == ["updated": ["c"], "removed": ["a"], "missing": ["x"]])
        let found = try world.call("GET", "namespaces/shop").json["properties"].texts
        #expect(found["b"] == "2" && found["c"] == "3" && found["a"] == nil)
        #expect(try world.call("POST", "namespaces/shop/properties", ["updates": ["c": "3"], "removals": ["c"]]).status == 422)
    }

    @Test func listsComeInPages() throws {
        let world = try CatalogWorld()
        try world.makeNamespace("shop")
        for number in 0..<7 { try world.makeTable("t\(number)") }
        var (token, names): (String, [String]) = ("", [])
        for _ in 0..<3 {
            let answer = try world.call("GET", "namespaces/shop/tables?pageToken=\(token)&pageSize=3").json
            names += (answer["identifiers"].array ?? []).compactMap { $0["name"].string }
            token = answer["next-page-token"].string ?? "end"
        }
        #expect(names == (0..<7).map { "t\($0)" })
        #expect(token == "end")
        #expect(try world.call("GET", "namespaces/shop/tables").json["identifiers"].array?.count == 7)
        #expect(try world.call("GET", "namespaces/shop/tables?pageSize=5").json["identifiers"].array?.count == 5)
        #expect(try world.call("GET", "namespaces/shop/tables?pageToken=zz").status == 400)
        #expect(try world.call("GET", "namespaces/shop/tables?pageToken=&pageSize=0").status == 400)
    }

    // MARK: Views

    @Test func viewsAreReplacedWithTheirHistory() throws {
        let world = try CatalogWorld()
        try world.makeNamespace("shop")
        func version(_ id: Int64, _ sql: String) -> JSONValue {
            [
                "version-id": .int(id), "schema-id": 0, "timestamp-ms": 1000, "summary": ["engine-name": "spark"],
                "default-namespace": ["shop"],
                "representations": [["type": "sql", "sql": .string(sql), "dialect": "spark"]],
            ]
        }
        let body: JSONValue = [
            "name": "v", "schema": CatalogWorld.schema, "view-version": version(1, "SELECT 1"), "properties": ["a": "b"],
        ]
        let made = try world.call("POST", "namespaces/shop/views", body)
        #expect(made.status == 200, "\(made.json.text)")
        #expect(try world.call("POST", "namespaces/shop/views", body).status == 409)
        #expect(try world.call("POST", "namespaces/shop/tables", ["name": "v", "schema": CatalogWorld.schema]).status == 409)
        #expect(try world.call("HEAD", "namespaces/shop/views/v").status == 204)
        #expect(try world.call("HEAD", "namespaces/shop/tables/v").status == 404)
        let replaced = try world.call(
            "POST", "namespaces/shop/views/v",
            [
                "requirements": [["type": "assert-view-uuid", "uuid": made.json["metadata"]["view-uuid"]]],
                "updates": [
                    ["action": "add-view-version", "view-version": version(2, "SELECT 2")],
                    ["action": "set-current-view-version", "view-version-id": -1],
                ],
            ])
        #expect(replaced.status == 200, "\(replaced.json.text)")
        #expect(replaced.json["metadata"]["current-version-id"].int == 2)
        #expect(replaced.json["metadata"]["version-log"].array?.count == 2)
        let other: JSONValue = ["requirements": [["type": "assert-view-uuid", "uuid": "x"]], "updates": []]
        #expect(try world.call("POST", "namespaces/shop/views/v", other).errorType == "CommitFailedException")
        #expect(try world.call("GET", "namespaces/shop/views").json["identifiers"].array?.count == 1)
        #expect(try world.call("GET", "namespaces/shop/tables").json["identifiers"].array?.isEmpty == true)
        #expect(try world.call("DELETE", "namespaces/shop/views/v").status == 204)
        #expect(try world.call("GET", "namespaces/shop/views/v").errorType == "NoSuchViewException")
        let again: JSONValue = ["name": "again", "metadata-location": replaced.json["metadata-location"]]
        #expect(try world.call("POST", "namespaces/shop/register-view", again).json["metadata"] == replaced.json["metadata"])
    }

    // MARK: Hostile requests

    @Test func nothingThatComesMakesItStumble() throws {
        let world = try CatalogWorld()
        let deep = String(repeating: "[", count: 100_000)
        for body in [
            deep, "{\"namespace\":" + deep, "nonsense", "[]", "{\"namespace\":[1]}", "{\"namespace\":[\"\u{1F}\"]}", "\u{0}",
            "{\"namespace\":[]}",
        ] {
            let answer = try world.send("POST", "/api/catalog/v1/dev/namespaces", form: body)
            #expect(answer.status == 400, "\(body.prefix(40))")
        }
        for path in [
            "/", "/api", "/api/catalog", "/api/catalog/v1", "/api/catalog/v1/none/namespaces", "/api/catalog/v1/dev/none",
            "/api/management/v1", "/metrics",
        ] {
            #expect(try world.send("GET", path).status == 404, "\(path)")
        }
        #expect(throws: CatalogFailure.self) { try CatalogRequest(method: "GET", target: "/%fe") }
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededBytes(seed)
        for _ in 0..<2000 {
            let body = random.bytes(upTo: 60)
            let request = try CatalogRequest(method: "POST", target: "/api/catalog/v1/oauth/tokens", body: body)
            #expect(world.catalog.answer(request).status >= 400, "seed \(seed)")
        }
    }

    @Test func whatWasAnsweredOutlivesTheProcess() throws {
        let directory = try TemporaryPlace()
        let path = directory.path + "/catalog.db"
        let first = try CatalogWorld(path: path)
        try first.makeNamespace("shop")
        let token = try first.newToken("root", "secret")
        first.catalog.close()
        let second = try CatalogWorld(path: path)
        #expect(try second.call("GET", "namespaces").json["namespaces"] == [["shop"]])
        #expect(try second.send("GET", "/api/catalog/v1/dev/namespaces", headers: [("authorization", "Bearer " + token)]).status == 200)
    }
}

/// A directory that goes with the test.
final class TemporaryPlace {
    let path: String

    init() throws {
        path = "/tmp/millrace-catalog-" + String(UInt64.random(in: .min ... .max), radix: 16)
        try LocalFileSystem().createDirectory(path)
    }

    deinit { try? LocalFileSystem().remove(path) }  // Nothing but what the test made.
}

/// Bytes from a seed.
struct SeededBytes {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    private mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }

    mutating func bytes(upTo count: UInt64) -> [UInt8] { (0..<next() % count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}
