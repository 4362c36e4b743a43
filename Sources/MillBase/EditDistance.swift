/// How many single-character insertions, deletions and replacements lead from `a` to `b`; anything over `limit` is
/// `limit + 1`.
package func editDistance(_ a: String, _ b: String, atMost limit: Int) -> Int {
    let a = Array(a.unicodeScalars)
    let b = Array(b.unicodeScalars)
    guard abs(a.count - b.count) <= limit else { return limit + 1 }
    var previous = Array(0...b.count)
    for i in 0..<a.count {
        var current = [i + 1]
        for j in 0..<b.count {
            current.append(min(previous[j + 1] + 1, current[j] + 1, previous[j] + (a[i] == b[j] ? 0 : 1)))
        }
        previous = current
    }
    return min(previous[b.count], limit + 1)
}
