import MillIO

extension FileSystem {
    /// Makes a directory durable with what is in it, and the two above it: any of them may be new, and an earlier try to sync it may have
    /// failed.
    func syncChain(_ directory: String) throws(IOFailure) {
        try syncDirectory(directory)
        var place = directory.split(separator: "/", omittingEmptySubsequences: false)
        for _ in 0..<2 where place.count > 1 {
            place.removeLast()
            try syncDirectory(place == [""] ? "/" : place.joined(separator: "/"))
        }
    }
}
