/// A Jinja2 template, parsed once and rendered with variables as often as wanted: `millrace render FILE.j2 -e VARS.yml`.
///
/// What Ansible's template module does, so that files written for it come out the same: `{{ expression }}`, `if`/`elif`/
/// `else`, `for`/`else`, `set`, comments, `raw`, white-space control, filters, tests, and variables whose values are
/// themselves templates. A variable that nobody defined is an error that names it and its line, unless `default` is
/// applied to it or `is defined` asks for it. Inheritance, macros and includes are refused by name.
///
/// The path: `TemplateLexer` (text to tokens) -> `TemplateParser` (tokens to `TemplateNode`s) -> `TemplateRenderer`.
/// Everything is bounded: nesting by `TemplateParser.nestingMax`, variables inside variables, steps and output by
/// `TemplateRenderer`. A template is a value and may be rendered from any thread.
package struct Template {
    private let name: String
    private let nodes: [TemplateNode]

    /// - Parameter name: the file's name, for messages.
    /// - Throws: `TemplateError` with the line, for text that is not a template.
    package init(_ text: String, name: String) throws(TemplateError) {
        self.name = name
        nodes = try TemplateParser.parse(text, name: name)
    }

    /// The text with every expression replaced by its value.
    /// - Throws: `TemplateError` for an undefined variable, a value the operation does not take, or a bound reached.
    package func render(variables: [String: TemplateValue]) throws(TemplateError) -> String {
        var renderer = TemplateRenderer(name: name, variables: variables)
        return try renderer.render(nodes)
    }
}
