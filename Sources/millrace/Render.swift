import ArgumentParser
import MillIO
import MillTemplate

struct Render: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Renders a Jinja2-style template on standard output.")

    @Argument(help: "The template.") var file: String
    @Option(name: .shortAndLong, help: "A YAML file of variables; later files win.") var env: [String] = []
    @Option(name: .customLong("var"), help: "A variable as name=value; wins over files.") var assignments: [String] = []

    func run() throws {
        StandardOutput.write(try Self.render(file, files: env, assignments: assignments))
    }

    static func render(_ file: String, files: [String], assignments: [String]) throws -> String {
        var variables: [String: TemplateValue] = [:]
        for file in files { variables.merge(try TemplateValue.variables(yaml: text(of: file), name: file)) { $1 } }
        for assignment in assignments {
            guard let equals = assignment.firstIndex(of: "=") else { throw ValidationError("\(assignment) is not name=value") }
            variables[String(assignment[..<equals])] = .string(String(assignment[assignment.index(after: equals)...]))
        }
        return try Template(try text(of: file), name: file).render(variables: variables)
    }

    private static func text(of path: String) throws -> String {
        let file = try LocalFileSystem().open(path, .read)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: try file.size(), alignment: 1)
        defer { buffer.deallocate() }
        let count = try file.read(at: 0, into: buffer)
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}
