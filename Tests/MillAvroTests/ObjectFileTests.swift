import Testing
@testable import MillAvro
