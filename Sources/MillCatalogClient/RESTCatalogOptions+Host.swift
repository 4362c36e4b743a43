extension RESTCatalogOptions {
    /// Whether the catalog runs on this machine, so that its tables may lie on the local disk. Decided by the host that is connected to:
    /// what stands before an `@` is a user's name, whatever it looks like.
    package var isOnThisMachine: Bool {
        guard let scheme = uri.firstRange(of: "://") else { return false }
        let authority = uri[scheme.upperBound...].prefix { !"/?#\\".contains($0) }
        let address = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        let host = address.hasPrefix("[") ? address.dropFirst().prefix { $0 != "]" } : address.prefix { $0 != ":" }
        return ["localhost", "127.0.0.1", "::1"].contains(host.lowercased())
    }
}
