import MillColumnar

extension Column {
    /// UUIDs as the texts that compare as their bytes do, and as they are read again; the column itself where all are such.
    func canonicalUUIDs(_ count: Int) -> Column {
        let views = UnsafePointer(values(StringView.self))
        if (0..<count).allSatisfy({ isNull($0) || views[$0].withBytes(Self.isCanonicalUUID) }) { return self }
        let result = Column(type, capacity: count)
        for row in 0..<count {
            guard !isNull(row) else {
                result.append(Scalar.null)
                continue
            }
            let text = views[row].withBytes { UUIDText.bytes(utf8: $0) }.flatMap(UUIDText.text)
            result.append(Scalar.string(text ?? String(views[row])))
        }
        return result
    }

    private static func isCanonicalUUID(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard text.count == 36 else { return false }
        for (place, byte) in text.enumerated() {
            let isHyphen = place == 8 || place == 13 || place == 18 || place == 23
            let isCapital = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "F")
            guard (byte == UInt8(ascii: "-")) == isHyphen, !isCapital else { return false }
        }
        return true
    }
}
