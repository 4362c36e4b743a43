import MillBase
import MillColumnar

/// A function over columns. Gets the columns of all arguments but a constant that it has taken in.
typealias Kernel = (_ arguments: [Column], _ count: Int, _ frame: EvaluationFrame) -> Column

/// From a resolved function to its kernel: the families are asked in turn, each switching on the name.
enum KernelTable {
    /// `constants` has the values of literal arguments. The second part is the argument that the kernel needs no column of.
    static func kernel(_ function: ScalarFunction, result: SQLType, constants: [Scalar?]) throws(SQLError) -> (Kernel, takenConstant: Int?) {
        if let (kernel, taken) = ComparisonKernels.make(function, constants) ?? ArithmeticKernels.make(function, constants) { return (kernel, taken) }
        let name = function.name
        let types = function.argumentTypes
        if let kernel = MathKernels.make(name, types) ?? DateTimeKernels.make(name, types) ?? PatternKernels.make(name, types, constants)
            ?? StringKernels.make(name, types) ?? JSONKernels.make(name, types) ?? FormatKernels.make(name, types)
            ?? CatalogKernels.make(name, types) ?? SubqueryKernels.make(name)
        {
            return (kernel, nil)
        }
        throw SQLError(.internalError, "function \(FunctionRegistry.call(name, types)) has no kernel")
    }
}
