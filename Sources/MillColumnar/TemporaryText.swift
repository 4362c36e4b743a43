package import MillBase
extension Column { package func appendText(row: Int, to out: inout [UInt8]) { out += Array("\(scalar(row))".utf8) } }
extension Decimal { package func divided(by: Decimal) throws(SQLError) -> Decimal { self } }
