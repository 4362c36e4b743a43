/// A statement of a template's body.
indirect enum TemplateNode {
    case text(String)
    case print(TemplateExpression, line: Int)
    /// The first branch whose condition holds; `else` has none.
    case branches([(condition: TemplateExpression?, body: [TemplateNode])])
    case loop(Loop)
    /// `{% set a = x %}`; several names take the items of a list.
    case set([String], TemplateExpression, line: Int)
    /// `{% set a %}...{% endset %}`.
    case capture(String, [TemplateNode])

    struct Loop {
        /// Several names take the items of each item, as in `for key, value in map.items()`.
        var names: [String]
        var over: TemplateExpression
        /// `for ... if filter`: items for which it does not hold do not count.
        var filter: TemplateExpression?
        var body: [TemplateNode]
        /// The body for a loop that did not run.
        var otherwise: [TemplateNode]
        var line: Int
    }
}
