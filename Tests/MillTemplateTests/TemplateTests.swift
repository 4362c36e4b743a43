import Foundation
import MillBase
import Testing

@testable import MillTemplate

@Suite struct TemplateTests {
    private func render(_ template: String, _ variables: String = "") throws(TemplateError) -> String {
        try Template(template, name: "t.j2").render(variables: TemplateValue.variables(yaml: variables, name: "vars.yml"))
    }

    private func refusal(_ template: String, _ variables: String = "") -> TemplateError? {
        do {
            let text = try render(template, variables)
            Issue.record("\(template) rendered \(text.prefix(200))")
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: GoldenTemplates.all.cases)
    func rendersAsJinja2Does(_ golden: GoldenTemplates.Case) throws {
        #expect(try render(golden.template, golden.variables) == golden.expected)
    }

    @Test(arguments: GoldenTemplates.all.errors)
    func refusesWhatJinja2Refuses(_ golden: GoldenTemplates.Refusal) {
        guard let error = refusal(golden.template, golden.variables) else { return }
        #expect(error.line == golden.line, "\(error)")
        #expect(golden.word.isEmpty || error.sqlError.message.contains(golden.word), "\(error)")
    }

    @Test func everyTruncationOfATemplateIsAnAnswerOrAnError() {
        for golden in GoldenTemplates.all.cases {
            let scalars = Array(golden.template.unicodeScalars)
            for length in scalars.indices {
                var text = String.UnicodeScalarView()
                text.append(contentsOf: scalars[..<length])
                _ = try? render(String(text), golden.variables)
            }
        }
    }

    @Test func undefinedVariablesAreNamedWithFileLineAndWayOut() {
        let error = refusal("a\n  {{ topic }}\n")
        #expect(error?.sqlError.sqlState == .undefinedParameter)
        #expect(error?.sqlError.message == "t.j2, line 2: variable \"topic\" is undefined")
        #expect(error?.sqlError.hint == "Define it in the variables file, or write {{ topic | default(\"...\") }}.")
    }

    @Test func variablesThatAreTemplatesAreRendered() throws {
        let variables = """
            host: broker
            port: 9092
            servers: "{{ host }}:{{ port }}"
            all: ["{{ servers }}", "{{ port }}"]
            settings: {bootstrap: "{{ servers }}"}
            """
        #expect(
            try render("{{ servers }} {{ all | join(',') }} {{ settings.bootstrap }}", variables)
                == "broker:9092 broker:9092,9092 broker:9092")
    }

    @Test func aVariableThatIsOneExpressionKeepsItsType() throws {
        let variables = "port: 9092\nsame: '{{ port }}'\nlist: '{{ [1, 2] }}'"
        #expect(try render("{{ same + 1 }} {% for x in list %}{{ x }};{% endfor %}", variables) == "9093 1;2;")
    }

    @Test func computedTextIsNotRenderedAgain() throws {
        #expect(try render("{{ '{{ a }}' }} {% set x = '{' ~ '{ a }}' %}{{ x }}", "a: 1") == "{{ a }} {{ a }}")
    }

    @Test func loopNamesDoNotReachIntoVariables() {
        #expect(refusal("{% for x in [1] %}{{ outer }}{% endfor %}", "outer: '{{ x }}'")?.reason == .undefined("x"))
    }

    @Test func variablesInACircleAreFound() {
        guard case .limit(let text)? = refusal("{{ a }}", "a: '{{ b }}'\nb: 'x{{ a }}'")?.reason else {
            Issue.record("no limit")
            return
        }
        #expect(text.contains("others, or on itself"))
    }

    @Test func growthIsBounded() {
        let doubling = (1...19).map { "v\($0): '{{ v\($0 - 1) }}{{ v\($0 - 1) }}'" }.joined(separator: "\n")
        let error = refusal("{{ v19 }}", "v0: '\(String(repeating: "x", count: 1000))'\n" + doubling)
        guard case .limit? = error?.reason else {
            Issue.record("no limit: \(String(describing: error))")
            return
        }
    }

    @Test func nestingIsBounded() {
        for text in [
            "{{ " + String(repeating: "(", count: 10_000) + "1" + String(repeating: ")", count: 10_000) + " }}",
            "{{ " + String(repeating: "-", count: 100_000) + "1 }}",
            "{{ " + String(repeating: "not ", count: 100_000) + "1 }}", String(repeating: "{% if 1 %}", count: 10_000),
            "{{ " + String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000) + " }}",
            "{{ " + String(repeating: "1 if 1 else ", count: 10_000) + "1 }}",
        ] {
            guard case .limit? = refusal(text)?.reason else {
                Issue.record("no limit for \(text.prefix(30))")
                return
            }
        }
    }

    @Test func longChainsAreBoundedToo() {
        let text = "{{ a" + String(repeating: ".b", count: 100_000) + " }}{{ 1" + String(repeating: " + 1", count: 100_000) + " }}"
        guard case .limit? = refusal(text, "a: 1")?.reason else {
            Issue.record("no limit")
            return
        }
    }

    @Test func nestedLoopsEndByTheStepBound() throws {
        let nodes = try TemplateParser.parse(
            "{% for a in range(100) %}{% for b in range(100) %}{% set x = b %}{% endfor %}{% endfor %}", name: "t.j2")
        var renderer = TemplateRenderer(name: "t.j2", variables: [:], stepsMax: 1000)
        let error = #expect(throws: TemplateError.self) { try renderer.render(nodes) }
        guard case .limit? = error?.reason else {
            Issue.record("no limit")
            return
        }
    }

    @Test func unsupportedStatementsAreNamed() {
        for statement in ["include 'x'", "macro f()", "extends 'x'", "block b"] {
            #expect(refusal("{% \(statement) %}")?.sqlError.sqlState == .featureNotSupported)
        }
    }

    @Test func quotesForShells() throws {
        #expect(try render("{{ a | quote }} {{ b | quote }} {{ '' | quote }}", "a: it's\nb: plain-1.2") == "'it'\"'\"'s' plain-1.2 ''")
    }

    @Test func integersDoNotOverflow() {
        for expression in [
            "9223372036854775807 + 1", "10 ** 30", "-9223372036854775807 - 2", "9223372036854775807 * 2",
            "(-9223372036854775807 - 1) // -1",
        ] {
            guard case .invalidValue? = refusal("{{ \(expression) }}")?.reason else {
                Issue.record("no error for \(expression)")
                return
            }
        }
        #expect((try? render("{{ (-9223372036854775807 - 1) % -1 }}")) == "0")
        guard case .syntax? = refusal("{{ 99999999999999999999 }}")?.reason else {
            Issue.record("no error")
            return
        }
    }
}

@Suite struct TemplateVariablesTests {
    @Test func readsTheTypesOfYAML() throws {
        let value = try TemplateValue(yaml: "a: 1\nb: [x, 1.5, yes, null, '1', 2024-01-01]\nc: {d: 0x10}", name: "vars.yml")
        #expect(value[key: "a"] == .int(1))
        #expect(value[key: "b"] == .list([.string("x"), .float(1.5), .bool(true), .none, .string("1"), .string("2024-01-01")]))
        #expect(value[key: "c"]?[key: "d"] == .int(16))
    }

    @Test func anEmptyFileHoldsNothing() throws {
        #expect(try TemplateValue.variables(yaml: "", name: "vars.yml").isEmpty)
        #expect(try TemplateValue.variables(yaml: "---\n# nothing\n", name: "vars.yml").isEmpty)
    }

    @Test func refusesWhatIsNoMap() {
        #expect(throws: TemplateError.self) { try TemplateValue.variables(yaml: "- 1\n- 2", name: "vars.yml") }
    }

    @Test func namesTheLineOfAMistake() throws {
        let error = #expect(throws: TemplateError.self) { try TemplateValue.variables(yaml: "a: 1\nb: [1\nc: 2\n", name: "vars.yml") }
        #expect(error?.name == "vars.yml")
        #expect(try #require(error).line >= 2)
    }

    @Test func aliasesCannotExplode() {
        var text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        for level in 1...12 {
            text += "a\(level): &a\(level) [" + Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ",") + "]\n"
        }
        let error = #expect(throws: TemplateError.self) { try TemplateValue.variables(yaml: text, name: "vars.yml") }
        guard case .limit? = error?.reason else {
            Issue.record("no limit")
            return
        }
    }

    @Test func deepValuesAreRefused() {
        for text in [
            String(repeating: "[", count: 100_000), "a: " + String(repeating: "{a: ", count: 50_000),
            String(repeating: "- ", count: 100_000) + "x",
            String(repeating: "? ", count: 100_000) + "x", String(repeating: "-\t", count: 100_000) + "x",
        ] {
            #expect(throws: TemplateError.self) { try TemplateValue(yaml: text, name: "vars.yml") }
        }
    }
}
