/// Members that are lists of one kind, and texts by names, read strictly: what a client asks for is not half done.
extension JSONValue {
    static let countMax = Int64(1) << 60

    /// What is counted on from: times, sequence numbers, rows. Not negative, and so far from the end of 64 bits that nobody's sum overflows.
    package func requiredCount(_ key: String) throws(BadBytes) -> Int64 {
        let value = try requiredInt64(key)
        guard (0...Self.countMax).contains(value) else { throw BadBytes("\"\(key)\" is \(value), which is not one of 0 to \(Self.countMax)") }
        return value
    }

    package func optionalCount(_ key: String) throws(BadBytes) -> Int64? { self[key].isNull ? nil : try requiredCount(key) }

    /// An age in milliseconds; some writers say the largest number there is where they mean for ever.
    func age(_ key: String) -> Int64? { self[key].int64.map { min(max($0, 0), Self.countMax) } }

    package func optionalInt64(_ key: String) throws(BadBytes) -> Int64? { self[key].isNull ? nil : try requiredInt64(key) }

    package func requiredInt64s(_ key: String) throws(BadBytes) -> [Int64] {
        guard let values = try required(key).array else { throw BadBytes("\"\(key)\" is no list") }
        var result: [Int64] = []
        for value in values {
            guard let number = value.int64 else { throw BadBytes("\"\(key)\" has something in it that is no whole number") }
            result.append(number)
        }
        return result
    }

    package func requiredInts(_ key: String) throws(BadBytes) -> [Int] {
        var result: [Int] = []
        for number in try requiredInt64s(key) {
            guard let number = Int32(exactly: number) else {
                throw BadBytes("\"\(key)\" has \(number) in it, which does not fit into 32 bits")
            }
            result.append(Int(number))
        }
        return result
    }

    /// - Parameter name: what errors call it.
    package func textList(_ name: String) throws(BadBytes) -> [String] {
        guard let values = array else { throw BadBytes("\"\(name)\" is no list") }
        var result: [String] = []
        for value in values {
            guard let text = value.string else { throw BadBytes("\"\(name)\" has something in it that is no text") }
            result.append(text)
        }
        return result
    }

    /// Properties: every member a text. Numbers and truth values are taken as clients mean them.
    package func allTexts(_ name: String) throws(BadBytes) -> [String: String] {
        guard let members = object else { throw BadBytes("\"\(name)\" is no object") }
        var result: [String: String] = [:]
        for (key, value) in members {
            switch value {
            case .string(let text): result[key] = text
            case .int, .double, .boolean: result[key] = value.text
            default: throw BadBytes("\"\(key)\" of \"\(name)\" is no text")
            }
        }
        return result
    }
}
