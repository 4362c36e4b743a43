import MillColumnar

extension SQLType {
    /// Whether values that are equal may look different: 1.0 and 1.00, 0 and -0, a day and 24 hours. A condition may then tell the rows of
    /// one group apart.
    var looksVary: Bool { isNumeric || isFloat || self == .interval }
}
