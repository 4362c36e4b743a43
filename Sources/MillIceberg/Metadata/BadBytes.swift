/// Why bytes of a file are not what its format says, in words; who knows the file's name makes an `IcebergError` of it.
package struct BadBytes: Error, Hashable, Sendable {
    package let what: String
    package init(_ what: String) { self.what = what }
}
