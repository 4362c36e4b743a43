import ArgumentParser
import CMemory

@main
struct Millrace: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "millrace", abstract: "Takes events in, keeps SQL views of them correct, and serves them.", version: "0.1.0",
        subcommands: [Serve.self, Demo.self, Render.self, Bench.self, Inspect.self])

    static func main() async {
        mill_heap_keep()
        await main(nil)
    }
}
