package import MillBase
package import MillCatalog
package import MillConnectorKit
package import MillPlan

/// What `meta.db` holds.
package struct StoredCatalog: Sendable {
    /// Schemas that users made, in the order of their names.
    package var schemas: [String]
    /// Catalogs that are attached, with their options, in the order of their names.
    package var catalogs: [StoredAttachment]
    /// No object has had this identifier or a higher one.
    package var nextID: ObjectID
    /// Oldest first, which is an order of dependency.
    package var objects: [StoredObject]
}

/// A catalog of tables elsewhere, as it was attached.
package struct StoredAttachment: Sendable, Equatable {
    package var name: String
    package var options: [CatalogOption]

    package init(name: String, options: [CatalogOption]) {
        self.name = name
        self.options = options
    }
}

package struct StoredObject: Sendable {
    package var object: CatalogObject
    /// Where a source begins; empty for everything else.
    package var origin: [SourceSplit: SplitOffset]
    /// nil for what does not run: sources, and views that are not materialized.
    package var job: StoredJob?
    /// nil for what is not paused.
    package var pause: StoredPause?
    /// Why the query of a view cannot be read.
    package var failure: SQLError?
}

/// That a source or view is paused.
package struct StoredPause: Sendable, Equatable {
    /// Tells this pause from others of the object.
    package var number: UInt64
    /// Microseconds since 1970; nil when it was stored before times were.
    package var sinceMicros: Int64?

    package init(number: UInt64, sinceMicros: Int64?) {
        self.number = number
        self.sinceMicros = sinceMicros
    }
}

package struct StoredJob: Sendable {
    package var state: JobState
    /// Of the form in which the plan is stored.
    package var planVersion: Int
    /// Or why it cannot be used.
    package var plan: Result<StreamPlan, SQLError>
    /// Of the plan as it is stored.
    package var planChecksum: UInt32
}

package enum JobState: String, Sendable {
    /// It has not yet taken over what was there before it. After a crash it begins anew.
    case creating
    case running
}
