import MillIceberg
import Testing

@testable import MillLakeCatalog

@Suite struct ManagementTests {
    private static let path = "/api/management/v1/"

    private static let catalog: JSONValue = [
        "catalog": [
            "name": "game", "type": "INTERNAL", "properties": ["default-base-location": "s3://balloon-game", "s3.secret-access-key": "k"],
            "storageConfigInfo": [
                "roleArn": "arn:aws:iam::000000000000:role/polaris-access-role", "storageType": "S3",
                "allowedLocations": ["s3://balloon-game/*"],
            ],
        ]
    ]

    @Test func catalogsAreMadeOnceAndListed() throws {
        let world = try CatalogWorld()
        let made = try world.send("POST", Self.path + "catalogs", Self.catalog)
        #expect(made.status == 201, "\(made.json.text)")
        #expect(made.json["properties"] == ["default-base-location": "s3://balloon-game"])
        #expect(made.json["entityVersion"].int == 1)
        #expect(try world.send("POST", Self.path + "catalogs", Self.catalog["catalog"]).status == 409)
        #expect(try world.send("GET", Self.path + "catalogs").json["catalogs"].array?.map { $0["name"].string } == ["dev", "game"])
        #expect(try world.send("GET", Self.path + "catalogs/none").status == 404)
        #expect(try world.send("POST", "/api/catalog/v1/game/namespaces", ["namespace": ["pops"]]).status == 200)
        #expect(try world.send("DELETE", Self.path + "catalogs/game").status == 400)
        #expect(try world.send("DELETE", "/api/catalog/v1/game/namespaces/pops").status == 204)
        #expect(try world.send("DELETE", Self.path + "catalogs/game").status == 204)
    }

    @Test func keysAreToldOnlyToThoseWhoMayUseThem() throws {
        let world = try CatalogWorld()
        _ = try world.send("POST", Self.path + "catalogs", Self.catalog)
        _ = try world.send("POST", "/api/catalog/v1/game/namespaces", ["namespace": ["pops"]])
        _ = try world.send("POST", "/api/catalog/v1/game/namespaces/pops/tables", ["name": "t", "schema": CatalogWorld.schema])
        let table = "/api/catalog/v1/game/namespaces/pops/tables/t"
        #expect(try world.send("GET", table).json["config"] == [:])
        let vended = try world.send("GET", table, headers: [("X-Iceberg-Access-Delegation", "vended-credentials")])
        #expect(vended.json["config"]["s3.secret-access-key"].string == "k")
        #expect(vended.json["storage-credentials"].array?.first?["prefix"].string == "s3://balloon-game")
        #expect(try world.send("GET", Self.path + "catalogs").json.text.contains("\"k\"") == false)
    }

    @Test func principalsWorkWithinTheRightsOfTheirRoles() throws {
        let world = try CatalogWorld()
        try world.makeNamespace("shop")
        try world.makeTable("orders")
        let made = try world.send("POST", Self.path + "principals", ["principal": ["name": "ann"]])
        #expect(made.status == 201)
        let id = try #require(made.json["credentials"]["clientId"].string)
        let secret = try #require(made.json["credentials"]["clientSecret"].string)
        #expect(try world.send("POST", Self.path + "principals", ["name": "ann"]).status == 409)
        #expect(try world.send("GET", Self.path + "principals/ann").json.text.contains(secret) == false)
        let ann = [(name: "authorization", value: "Bearer " + (try world.newToken(id, secret)))]
        let table = "/api/catalog/v1/dev/namespaces/shop/tables/orders"
        #expect(try world.send("GET", table, headers: ann).status == 403)
        #expect(try world.send("GET", Self.path + "catalogs", headers: ann).status == 403)
        #expect(try world.send("POST", Self.path + "principal-roles", ["principalRole": ["name": "reader"]]).status == 201)
        #expect(try world.send("POST", Self.path + "principal-roles", ["name": "reader"]).status == 409)
        #expect(try world.send("PUT", Self.path + "principals/ann/principal-roles", ["principalRole": ["name": "reader"]]).status == 201)
        #expect(try world.send("POST", Self.path + "catalogs/dev/catalog-roles", ["catalogRole": ["name": "looks"]]).status == 201)
        #expect(
            try world.send("PUT", Self.path + "principal-roles/reader/catalog-roles/dev", ["catalogRole": ["name": "looks"]]).status == 201)
        let grants = Self.path + "catalogs/dev/catalog-roles/looks/grants"
        let reads: JSONValue = ["grant": ["type": "catalog", "privilege": "TABLE_READ_DATA"]]
        #expect(try world.send("PUT", grants, reads).status == 201)
        #expect(try world.send("GET", grants).json["grants"].array?.count == 1)
        #expect(try world.send("GET", table, headers: ann).status == 200)
        #expect(try world.send("DELETE", table, headers: ann).status == 403)
        #expect(
            try world.send("PUT", grants, ["type": "namespace", "namespace": ["shop"], "privilege": "CATALOG_MANAGE_CONTENT"]).status == 201
        )
        #expect(
            try world.send("POST", table, ["updates": [["action": "set-properties", "updates": ["a": "b"]]]], headers: ann).status == 200)
        #expect(try world.send("POST", "/api/catalog/v1/dev/namespaces", ["namespace": ["other"]], headers: ann).status == 403)
        #expect(
            try world.send("POST", grants, ["type": "namespace", "namespace": ["shop"], "privilege": "CATALOG_MANAGE_CONTENT"]).status
                == 201)
        #expect(try world.send("DELETE", table, headers: ann).status == 403)
        let rotated = try world.send("POST", Self.path + "principals/ann/rotate")
        #expect(rotated.status == 200)
        #expect(try world.send("GET", table, headers: ann).status == 401)
        #expect(try world.askForToken(id, secret).status == 401)
        #expect(try world.send("DELETE", Self.path + "principals/ann").status == 204)
        #expect(try world.send("DELETE", Self.path + "principals/root").status == 400)
    }

    @Test func whatIsNotThereIs404() throws {
        let world = try CatalogWorld()
        for (method, path) in [
            ("PUT", "principals/x/principal-roles"), ("PUT", "principal-roles/x/catalog-roles/dev"), ("GET", "principals/x"),
            ("GET", "principal-roles/x"),
            ("PUT", "catalogs/dev/catalog-roles/x/grants"), ("GET", "catalogs/x/catalog-roles"), ("DELETE", "catalogs/x"),
            ("GET", "catalogs/dev/x"),
        ] {
            let body: JSONValue = ["name": "service_admin", "type": "catalog", "privilege": "TABLE_READ_DATA"]
            #expect(try world.send(method, Self.path + path, method == "PUT" ? body : nil).status == 404, "\(method) \(path)")
        }
        #expect(try world.send("PATCH", Self.path + "catalogs").status == 405)
        let before = try world.send("GET", Self.path + "catalogs/dev").json["entityVersion"]
        #expect(try world.send("PUT", Self.path + "catalogs/dev", ["currentEntityVersion": 9, "properties": [:]]).status == 409)
        #expect(
            try world.send("PUT", Self.path + "catalogs/dev", ["currentEntityVersion": before, "properties": ["a": "b"]]).status == 200)
    }

    /// Seeing the way to a table is not seeing what lies beside it.
    @Test func aRightOnOneTableIsNoneOnItsNeighbours() throws {
        let world = try CatalogWorld()
        try world.makeNamespace("shop")
        try world.makeNamespace("shop", "eu")
        for table in ["orders", "other"] { try world.makeTable(table, in: "shop%1Feu") }
        try world.makeTable("sales")
        let made = try world.send("POST", Self.path + "principals", ["principal": ["name": "ann"]])
        let id = try #require(made.json["credentials"]["clientId"].string)
        let secret = try #require(made.json["credentials"]["clientSecret"].string)
        #expect(try world.send("POST", Self.path + "principal-roles", ["name": "reader"]).status == 201)
        #expect(try world.send("PUT", Self.path + "principals/ann/principal-roles", ["principalRole": ["name": "reader"]]).status == 201)
        #expect(try world.send("POST", Self.path + "catalogs/dev/catalog-roles", ["catalogRole": ["name": "looks"]]).status == 201)
        #expect(
            try world.send("PUT", Self.path + "principal-roles/reader/catalog-roles/dev", ["catalogRole": ["name": "looks"]]).status == 201)
        let grant: JSONValue = [
            "type": "table", "namespace": ["shop", "eu"], "tableName": "orders", "privilege": "TABLE_READ_DATA",
        ]
        #expect(try world.send("PUT", Self.path + "catalogs/dev/catalog-roles/looks/grants", grant).status == 201)
        let ann = [(name: "authorization", value: "Bearer " + (try world.newToken(id, secret)))]
        func status(_ path: String) throws -> Int { try world.send("GET", "/api/catalog/v1/dev/" + path, headers: ann).status }
        #expect(try status("namespaces/shop%1Feu/tables/orders") == 200)
        #expect(try status("namespaces/shop") == 200)
        #expect(try status("namespaces/shop%1Feu/tables") == 200)
        #expect(try status("namespaces/shop%1Feu/tables/other") == 403)
        #expect(try status("namespaces/shop/tables/sales") == 403)
        #expect(try status("namespaces/shop/tables/sales/credentials") == 403)
    }
}
