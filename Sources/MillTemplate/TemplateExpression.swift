/// An expression of a template with the line it starts on.
indirect enum TemplateExpression {
    case literal(TemplateValue)
    case variable(String, line: Int)
    case list([TemplateExpression])
    case map([(key: TemplateExpression, value: TemplateExpression)], line: Int)
    /// `base.name`: a map's key first, else one of the value's methods when it is called.
    case attribute(TemplateExpression, String, line: Int)
    case item(TemplateExpression, TemplateExpression, line: Int)
    case slice(TemplateExpression, from: TemplateExpression?, to: TemplateExpression?, line: Int)
    case call(TemplateExpression, Arguments, line: Int)
    case filter(TemplateExpression, String, Arguments, line: Int)
    case test(TemplateExpression, String, [TemplateExpression], line: Int)
    case negate(TemplateExpression, line: Int)
    case not(TemplateExpression)
    case and(TemplateExpression, TemplateExpression)
    case or(TemplateExpression, TemplateExpression)
    case binary(BinaryOperator, TemplateExpression, TemplateExpression, line: Int)
    /// `a < b < c`: every neighbouring pair must hold.
    case comparison(TemplateExpression, [(ComparisonOperator, TemplateExpression)], line: Int)
    case conditional(TemplateExpression, condition: TemplateExpression, otherwise: TemplateExpression?, line: Int)

    enum BinaryOperator: String {
        case add = "+"
        case subtract = "-"
        case multiply = "*"
        case divide = "/"
        case floorDivide = "//"
        case remainder = "%"
        case power = "**"
        case concatenate = "~"
    }

    enum ComparisonOperator: String {
        case equal = "=="
        case notEqual = "!="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="
        case contained = "in"
        case notContained = "not in"
    }

    /// What stands between the parentheses of a call or a filter.
    struct Arguments {
        var positional: [TemplateExpression] = []
        var named: [(name: String, value: TemplateExpression)] = []
    }
}
