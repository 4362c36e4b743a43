import MillIO

/// Arrays to and from files; the closures of arrays do not carry the type of an error.
extension File {
    func write(_ bytes: [UInt8], at offset: Int = 0) throws(IOFailure) {
        let result: Result<Void, IOFailure> = bytes.withUnsafeBytes { memory in
            do throws(IOFailure) { return .success(try write(memory, at: offset)) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Fills the first bytes of an array; returns how many there were.
    func read(at offset: Int, into bytes: inout [UInt8], count: Int) throws(IOFailure) -> Int {
        let result: Result<Int, IOFailure> = bytes.withUnsafeMutableBytes { memory in
            do throws(IOFailure) {
                return .success(try read(at: offset, into: UnsafeMutableRawBufferPointer(rebasing: memory[..<count])))
            } catch { return .failure(error) }
        }
        return try result.get()
    }

    func readAll() throws(IOFailure) -> [UInt8] {
        let size = try size()
        var bytes = [UInt8](repeating: 0, count: size)
        let found = try read(at: 0, into: &bytes, count: size)
        bytes.removeLast(size - found)
        return bytes
    }
}
