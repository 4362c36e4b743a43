import MillColumnar

/// Where the row of each key lies: which file, which position. What an upsert needs to take the row before away.
///
/// Made by reading the key's columns of all files, kept up by what is written, and by reading files that others brought. A key that others
/// wrote twice is at the last place found; they are told apart by nobody else.
struct KeyPlaces {
    struct Place: Hashable {
        var file: Int32
        var position: Int64
    }

    /// What deletes of a file's rows have to say of it.
    struct File {
        var path: String
        var specID: Int
        var partition: [Scalar]
    }

    private(set) var files: [File] = []
    private var numbers: [String: Int32] = [:]
    /// Numbers of files that are gone, for others.
    private var free: [Int32] = []
    private var places: [[UInt8]: Place] = [:]
    private let encoder: KeyEncoder
    private let fieldIDs: [Int]
    private let keysMax: Int

    /// - Parameters:
    ///   - fieldIDs: the columns of the key.
    ///   - keysMax: keys that may be held; more are an error.
    init(_ schema: IcebergSchema, _ fieldIDs: [Int], keysMax: Int) throws(IcebergError) {
        var order: [KeyOrder] = []
        for id in fieldIDs {
            guard let type = schema.fields.first(where: { $0.id == id })?.type.sqlType else {
                throw .badRequest("the key has a column that the table lacks or that cannot be read")
            }
            order.append(KeyOrder(type))
        }
        encoder = KeyEncoder(order: order)
        self.fieldIDs = fieldIDs
        self.keysMax = keysMax
    }

    var count: Int { places.count }

    func place(of key: [UInt8]) -> Place? { places[key] }
    mutating func remove(_ key: [UInt8]) -> Place? { places.removeValue(forKey: key) }

    /// Forgets all files with their rows.
    mutating func removeAll() { (files, numbers, free, places) = ([], [:], [], [:]) }

    mutating func set(_ key: [UInt8], _ place: Place) throws(IcebergError) {
        places[key] = place
        guard places.count <= keysMax else { throw .unsupported("an upsert into a table of more than \(keysMax) keys") }
    }

    /// A file by its path, known from now on. Specs and partitions of files being written are filled in when they are closed.
    mutating func number(of path: String) -> Int32 {
        if let known = numbers[path] { return known }
        let file = File(path: path, specID: 0, partition: [])
        let number: Int32
        if let gone = free.popLast() {
            number = gone
            files[Int(gone)] = file
        } else {
            number = Int32(files.count)
            files.append(file)
        }
        numbers[path] = number
        return number
    }

    /// Rows of a file that was sorted are at other positions.
    /// - Parameters:
    ///   - keys: of the rows as they came: a key's last one has its place.
    ///   - positions: for each of them, the new one.
    mutating func reorder(_ file: Int32, _ keys: [[UInt8]], _ positions: [UInt32]) {
        for (row, key) in keys.enumerated() where places[key] == Place(file: file, position: Int64(row)) {
            places[key] = Place(file: file, position: Int64(positions[row]))
        }
    }

    mutating func fill(_ file: DataFile) {
        let number = Int(number(of: file.path))
        files[number].specID = file.specID
        files[number].partition = file.partition
    }

    /// The keys of a batch's rows; columns are those of the key, in its order.
    func keys(_ columns: [Column], count: Int) -> [[UInt8]] {
        let encoded = encoder.encode(columns, count: count)
        return (0..<count).map { Array(encoded[$0]) }
    }

    /// Takes in the files of a table that are not known yet, and forgets what lies in files that are gone.
    mutating func refresh(_ table: IcebergTable, branch: String) throws(IcebergError) {
        _ = try takeUp(table, branch: branch, pending: [], takenBack: [])
    }

    /// The same while files are written that the table does not have yet: their rows are newer than all that others brought.
    /// - Parameters:
    ///   - pending: paths of those files.
    ///   - takenBack: keys that shall have no row.
    /// - Returns: places of rows that others brought, of keys that are taken back or have a pending row; and the numbers of files that
    ///   are gone, which others get from the next call on.
    mutating func takeUp(
        _ table: IcebergTable, branch: String, pending: Set<String>, takenBack: Set<[UInt8]>
    ) throws(IcebergError) -> (replaced: [Place], gone: Set<Int32>) {
        let plan = try ScanPlan(table, .reference(branch), isNewAllowed: true)
        let live = Set(plan.tasks.map(\.file.path)).union(pending)
        let gone = Set(numbers.filter { !live.contains($0.key) }.values)
        if !gone.isEmpty {
            places = places.filter { !gone.contains($0.value.file) }
            for number in gone { numbers[files[Int(number)].path] = nil }
        }
        let own = Set(pending.compactMap { numbers[$0] })
        var replaced: [Place] = []
        for task in plan.tasks where numbers[task.file.path] == nil {
            fill(task.file)
            let number = number(of: task.file.path)
            let reader = try DataFileReader(task, plan, table, fieldIDs: fieldIDs)
            while let batch = try reader.next() {
                for (row, key) in keys(batch.columns, count: batch.count).enumerated() {
                    let place = Place(file: number, position: batch.positions[row])
                    if takenBack.contains(key) || places[key].map({ own.contains($0.file) }) == true {
                        replaced.append(place)
                    } else {
                        try set(key, place)
                    }
                }
            }
        }
        free += gone
        return (replaced, gone)
    }
}
