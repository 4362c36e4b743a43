import MillTestKit
import Testing

@testable import MillObjectStore

@Suite struct XMLElementTests {
    private func root(_ text: String) -> XMLElement? { XMLElement(document: Array(text.utf8)) }

    @Test func elementsTextAndReferences() {
        let root = root(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!-- a comment --><s3:List xmlns:s3="http://x/" a='>'>
              <Key>a &amp; b &#x41;&#66;</Key><Key><![CDATA[<raw>]]></Key><Empty/><ns:Size x="1">3</ns:Size>
            </s3:List>
            """)
        #expect(root?.name == "List")
        #expect(root?.all("Key").map(\.text) == ["a & b AB", "<raw>"])
        #expect(root?["Empty"]?.text == "" && root?["Size"]?.text == "3" && root?["Nothing"] == nil)
    }

    @Test func whatIsNotWellFormedOrDangerousIsNothing() {
        let deep = String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40)
        let bad = [
            "", "text", "<a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a>&unknown;</a>", "<a>&#xD800;</a>", "<a b></a>", "<a b=c/>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", deep, "<a><!-- </a>", "<a>&", "<", "<a b='", "</a>",
        ]
        for text in bad { #expect(root(text) == nil, "\(text)") }
    }

    @Test func everyTruncationAndRandomChangeIsReadOrRefused() {
        let document = Array("<List a='b'><Key>a &amp; &#65; b</Key><!-- c --><![CDATA[d]]><E/></List>".utf8)
        for end in 0..<document.count { #expect(XMLElement(document: Array(document[..<end])) == nil, "\(end)") }
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<5000 {
            var bytes = document
            for _ in 0..<random.number(1...4) { bytes[random.number(0...bytes.count - 1)] = random.pick(Array("<>/&;=!-[]'\"ab\0".utf8)) }
            _ = XMLElement(document: bytes)  // It must come back, whatever with: seed \(seed).
        }
    }

    @Test func textIsEscapedOrImpossible() {
        #expect(XMLElement.escaped("a<b>&\r") == "a&lt;b&gt;&amp;&#13;")
        #expect(XMLElement.escaped("a\u{1}") == nil)
    }
}
