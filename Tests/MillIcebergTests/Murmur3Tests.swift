import Testing
@testable import MillIceberg
