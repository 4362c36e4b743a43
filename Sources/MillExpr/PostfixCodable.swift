/// A tree that is stored as the list of its nodes in postfix order, operands before what uses them.
///
/// So the depth of the stored text is that of one node, however high the tree: JSON readers refuse deep text. Used by
/// expressions and by the plans of views.
package protocol PostfixCodable: Codable {
    /// A node without its operands.
    associatedtype Step: PostfixStep where Step.Tree == Self
    var step: Step { get }
    var operands: [Self] { get }
}

package protocol PostfixStep: Codable {
    associatedtype Tree
    /// How many trees `tree` takes.
    var operandCount: Int { get }
    func tree(_ operands: [Tree]) -> Tree
}

extension PostfixCodable {
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try encodeSteps(into: &container)
    }

    private func encodeSteps(into container: inout any UnkeyedEncodingContainer) throws {
        for operand in operands { try operand.encodeSteps(into: &container) }
        try container.encode(step)
    }

    package init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        var trees: [Self] = []
        while !container.isAtEnd {
            let step = try container.decode(Step.self)
            let count = step.operandCount
            guard (0...trees.count).contains(count) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "a step has \(trees.count) operands and takes \(count)")
            }
            let operands = Array(trees.suffix(count))
            trees.removeLast(count)
            trees.append(step.tree(operands))
        }
        guard trees.count == 1 else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "the steps leave \(trees.count) results")
        }
        self = trees[0]
    }
}
